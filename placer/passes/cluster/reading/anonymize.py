"""A snapshot without its users' names: same decision, other words.

One text becomes always the same other one, and all sort as before, since equal choices are decided by name. Keys and
resources with a meaning (:data:`WELL_KNOWN_KEYS`, :data:`WELL_KNOWN_RESOURCES`) are kept. Patterns of HyperNodes,
fingerprints and measured costs are worked out before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from placer.base.quantity import Resources, format_amount
from placer.kube.base import LEFT_OUT, TEXT_BYTES
from placer.kube.core import ConfigMapManifest
from placer.kube.manifests import UNREADABLE
from placer.kube.marks import MARKS, SHARES, Holds, Place, is_protection, kept_labels
from placer.kube.unread_kinds import KUEUE_GATES
from placer.passes.cluster.reading.snapshot import Snapshot
from placer.problem import Key
from placer.problem.eligibility import REJECTED_BY
from placer.problem.gpus import is_gpu
from placer.problem.instance import ANY_SCHEDULER, Instance
from placer.problem.instance_builder import make_instance
from placer.problem.neighbour_demand import DOMAIN_ANNOTATIONS
from placer.problem.network_objects import NETPERF_COSTS
from placer.problem.node_resource_topology import UPDATED, is_known_setting
from placer.problem.queues import NAMESPACES
from placer.problem.tier_tree import names_found, pattern_error
from placer.problem.unsupported import SAFE_SYSCTLS
from placer.topology.controllers import network_topology_update

__all__ = ["WELL_KNOWN_KEYS", "WELL_KNOWN_RESOURCES", "anonymized"]

Document = dict[str, Any]
Rename = Callable[[str], str]

#: Names that mean something wherever they stand, in the order of the alphabet: the queue of those that name none, the
#: NetworkTopology and the list of it that are used where none is chosen, operating systems. A text stays between the
#: two that it is between.
_MEANT = ("UserDefined", "default", "default-scheduler", "linux", "nt-default", "placer", "windows")
#: How texts begin that sort after none of these, after the first, the second ...
_STARTS = ("0x", "a", "default-", "e", "m", "o", "s", "x")
#: Addresses that stand for all of a node's.
_ALL_ADDRESSES = ("", "0.0.0.0", "::")
_HOLD_GATE = "placer.dev/hold"
#: How the attributes begin that say which pods a NodeResourceTopology counts.
_FINGERPRINT = "nodeTopologyPodsFingerprint"
_DIGITS = re.compile(r"[+-]?[0-9]{1,18}")

#: Fields that hold a name or a list of names, wherever they stand.
_NAMES = frozenset(
    (
        "namespace",
        "uid",
        "nodeName",
        "nominatedNodeName",
        "priorityClassName",
        "schedulerName",
        "claimName",
        "volumeName",
        "queue",
        "parent",
        "podGroupName",
        "podGroup",
        "podGroupReplicaKey",
        "parentCompositePodGroupName",
        "tierName",
        "highestTierName",
        "selector",
        "origin",
        "destination",
        "namespaces",
        "configmapName",
        "configMapName",
    )
)
#: Keys of labels, taints and fields that mean the same in every cluster. Source: kubernetes.io, "Well-Known Labels,
#: Annotations and Taints", and what rules and controllers of Volcano, scheduler-plugins, JobSet, LeaderWorkerSet write.
WELL_KNOWN_KEYS = frozenset(
    (
        *("alpha.jobset.sigs.k8s.io/exclusive-topology", "alpha.jobset.sigs.k8s.io/namespaced-job"),
        *("alpha.jobset.sigs.k8s.io/no-schedule", "alpha.jobset.sigs.k8s.io/node-selector"),
        *("leaderworkerset.sigs.k8s.io/exclusive-topology", "leaderworkerset.sigs.k8s.io/group-index"),
        *("leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology", "leaderworkerset.sigs.k8s.io/subgroup-index"),
        *("jobset.sigs.k8s.io/replicatedjob-name", "jobset.sigs.k8s.io/job-index", "jobset.sigs.k8s.io/job-key"),
        *("metadata.name", "kubernetes.io/metadata.name", "kubernetes.io/arch", "kubernetes.io/os"),
        *("kubernetes.io/hostname", "beta.kubernetes.io/arch", "beta.kubernetes.io/os"),
        *("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type", "node.kubernetes.io/windows-build"),
        *("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "topology.kubernetes.io/region"),
        *("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"),
        *("failure-domain.beta.kubernetes.io/zone", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"),
        *("node.kubernetes.io/unschedulable", "node.kubernetes.io/memory-pressure"),
        *("node.kubernetes.io/disk-pressure", "node.kubernetes.io/pid-pressure"),
        *("node.kubernetes.io/network-unavailable", "node.kubernetes.io/out-of-service"),
        *("node.cloudprovider.kubernetes.io/uninitialized", "node.cloudprovider.kubernetes.io/shutdown"),
        *("apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name", "pod-template-hash"),
        *("controller-revision-hash", "batch.kubernetes.io/controller-uid"),
        *("batch.kubernetes.io/job-completion-index", "batch.kubernetes.io/job-name", "controller-uid", "job-name"),
        *("jobset.sigs.k8s.io/jobset-name", "leaderworkerset.sigs.k8s.io/name", "scheduling.k8s.io/group-name"),
        *("scheduling.x-k8s.io/pod-group", "scheduling.sigs.k8s.io/pod-group", "appgroup.diktyo.x-k8s.io"),
        *("appgroup.diktyo.x-k8s.io.workload", "scheduling.volcano.sh/group-name", "scheduling.volcano.sh/queue-name"),
        *("volcano.sh/job-name", "volcano.sh/job-namespace", "volcano.sh/job-retry-count", "volcano.sh/job-version"),
        *("volcano.sh/partition-id", "volcano.sh/preemptable", "volcano.sh/queue-name", "volcano.sh/task-index"),
        *("volcano.sh/task-spec", "volcano.sh/template-uid", "placer.dev/cooling-down", "placer.dev/disrupt"),
        *(NAMESPACES, "placer.dev/pool", "training.kubeflow.org/replica-type", "ray.io/group"),
        "leaderworkerset.sigs.k8s.io/worker-index",
        *kept_labels(),
    )
)
#: Resources that mean the same in every cluster, beside huge pages.
WELL_KNOWN_RESOURCES = frozenset(
    (
        *("cpu", "memory", "pods", "ephemeral-storage", "storage"),
        *("nvidia.com/gpu", "amd.com/gpu", "network.aware.com/bandwidth"),
        *SHARES,  # a share that a request of the same name states is none that is refused
    )
)
#: Domain of the resources that others become; of GPUs it ends so.
_DOMAIN = "example.com"
#: (API group, kind) of owners that are no user's own: of groups with these endings, or without a dot.
_OWNER_GROUPS = (".k8s.io", ".volcano.sh", "kubeflow.org", "ray.io", "x-k8s.io")
#: Fields with an object of labels.
_LABELS = frozenset(("labels", "matchLabels", "nodeSelector"))
#: Fields that hold the key of a label or a taint, or a list of them.
_KEYS = frozenset(("key", "topologyKey", "topologyKeys", "matchLabelKeys", "mismatchLabelKeys"))
#: Fields with an object of amounts by resource, wherever they stand.
_AMOUNTS = frozenset(
    (
        *("allocatable", "capacity", "requests", "limits", "overhead", "allocatedResources", "minResources"),
        *("capability", "deserved", "resource", "resourceWeights"),
    )
)
#: Fields whose objects hold lists of names of node groups.
_NODE_GROUPS = frozenset(("nodeGroupAffinity", "nodeGroupAntiAffinity"))
#: Fields whose objects have a ``value`` that is like a label's.
_VALUED = frozenset(("taints", "tolerations"))
#: Names of NUMA zones as every kubelet's are.
_ZONE = re.compile("node-[0-9]+")
#: Attributes of a NodeResourceTopology that are read.
_ATTRIBUTES = frozenset(("topologyManagerPolicy", "topologyManagerScope"))
#: Annotations that hold a name, or several with commas; any other is left out, but for those of which only the presence
#: or a number counts.
_NAMING = frozenset(
    (
        "scheduling.k8s.io/group-name",
        "scheduling.volcano.sh/group-name",
        "scheduling.volcano.sh/queue-name",
        "volcano.sh/task-spec",
        NAMESPACES,
        REJECTED_BY,
    )
)
_STAYING = frozenset(("kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth", UPDATED))
_PRESENT = frozenset(("kubernetes.io/config.mirror",))
#: Annotations and labels that are marks of other systems, and what their values hold.
_NOTES = {each.name: each.value for each in MARKS if each.place is Place.ANNOTATION}
_FIXED_LABELS = frozenset(each.name for each in MARKS if each.place is Place.LABEL and each.value is Holds.WORD)
_NUMBER = re.compile(r"[+-]?[0-9.]{1,18}")
#: Words that marks may have; another one is a name to us.
_MARK_WORDS = frozenset(
    (
        *("true", "false", "Strict", "NonStrict", "once-satisfied", "waiting-and-running", "only-waiting"),
        *("MustGather", "PreferGather", "preemptible", "non-preemptible"),
        *("none", "best-effort", "restricted", "single-numa-node"),
    )
)
#: What is read of JSON in marks.
_JSON_FIELDS = frozenset(("name", "minMember", "gatherStrategy", "strategy"))


def anonymized(snapshot: Snapshot) -> Snapshot:
    """Replace every name in a snapshot; the result has uids of its own and no ConfigMaps.

    Raises
    ------
    BadInstance
        Zones or measured costs need an instance, and the snapshot is none.
    """
    decoded = (msgspec.json.decode(item, type=Document) for item in snapshot.items)
    documents = [each for each in decoded if each["kind"] != "ConfigMap"]
    _resolve_patterns(documents)
    if any(map(_needs_instance, documents)):
        objects = snapshot.objects()
        instance = make_instance(objects, scheduler_name=snapshot.scheduler_name, cluster=True, gates=snapshot.gates)
        _catch_up(documents, instance)
        _state_measured(documents, instance, objects.config_maps)
    texts: set[str] = {snapshot.scheduler_name}

    def note(text: str) -> str:
        texts.add(text)
        return text

    for document in documents:
        _rename(document, note)
    names = _new_names(texts)
    changed = [_rename(document, names.__getitem__) for document in documents]
    return replace(
        snapshot,
        scheduler_name=names[snapshot.scheduler_name],
        items=tuple(map(msgspec.json.encode, changed)),
        counts={resource: count for resource, count in snapshot.counts.items() if resource != "configmaps"},
    )


# ------------------------------------------------------------------------------------------------------- the new names


def _new_names(texts: Iterable[str]) -> dict[str, str]:
    """A new text for each: the same order, digits to digits."""
    found = {text: text for text in (*_MEANT, ANY_SCHEDULER, "")}
    numbers = sorted((text for text in texts if _DIGITS.fullmatch(text)), key=lambda text: (int(text), text))
    first = 10 ** len(str(len(numbers)))  # all as long as each other, so that they sort as text too
    found |= {text: str(first + place) for place, text in enumerate(numbers)}
    words = sorted(text for text in texts if text not in found)
    width = len(str(len(words)))
    for place, text in enumerate(words):
        start = _STARTS[sum(meant < text for meant in _MEANT)]
        found[text] = f"{start}{place:0{width}d}"
    return found


# ------------------------------------------------------------------------------------------------- where names stand


def _rename(document: Document, name: Rename) -> Document:
    if document["kind"] == "Policy":
        return _policy(document, name)
    renamed: Document = _value(document, name, "")
    return renamed


def _value(value: Any, name: Rename, above: str) -> Any:
    if isinstance(value, list):
        return [_value(each, name, above) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: _field(key, part, name, above, value) for key, part in value.items()}


def _field(key: str, value: Any, name: Rename, above: str, beside: Mapping[str, Any]) -> Any:
    """The value of one field; ``beside`` is the object that holds it, ``above`` the field of that object."""
    if isinstance(value, dict):
        return _object(key, value, name)
    if key in _KEYS:
        return _names(value, lambda text: _key(text, name))
    if isinstance(value, str):
        return _text(key, value, name, above, beside)
    if key == "topologyPolicies":
        return _names(value, lambda text: text if is_known_setting(text) else name(text))
    return _names(value, name) if _holds_names(key, value, above, beside) else _value(value, name, key)


def _object(key: str, value: Document, name: Rename) -> Document:
    """The value of a field that is an object; a HyperNode's ``selector`` is one, an AppGroup's is a name."""
    if key in _LABELS:
        return {_key(label, name): _label(label, text, name) for label, text in value.items()}
    if key in _AMOUNTS:
        return {_resource(resource, name): amount for resource, amount in value.items()}
    if key == "minTaskMember":
        return {name(role): count for role, count in value.items()}
    if key == "annotations":
        return dict(_annotations(value, name))
    renamed: Document = _value(value, name, key)
    return renamed


def _text(key: str, text: str, name: Rename, above: str, beside: Mapping[str, Any]) -> str:
    if _is_fixed(key, text, above, beside):
        return text
    if key == "name" and above == "resources":
        return _resource(text, name)
    named = _is_a_users_word(key, text, above, beside) or _holds_names(key, text, above, beside)
    return name(text) if named else text


def _is_a_users_word(key: str, text: str, above: str, beside: Mapping[str, Any]) -> bool:
    if key in ("kind", "apiVersion") and above in ("ownerReferences", "workload"):
        return not _is_no_users(beside)
    return key in ("type", "topologySortingAlgorithm") and above in ("zones", "spec") and text not in _WORDS


#: What is known of zones' types, and orders of workloads.
_WORDS = frozenset(("Node", "node", "KahnSort", "AlternateKahn", "ReverseKahn", "TarjanSort"))


def _key(key: str, name: Rename) -> str:
    return key if key in WELL_KNOWN_KEYS else name(key)


def _resource(resource: str, name: Rename) -> str:
    if resource in WELL_KNOWN_RESOURCES or resource.startswith("hugepages-"):
        return resource
    if is_gpu(resource):
        return f"{name(resource)}.{_DOMAIN}/gpu"
    return f"{_DOMAIN}/{name(resource)}" if "/" in resource else name(resource)


def _is_no_users(owner: Mapping[str, Any]) -> bool:
    group = str(owner.get("apiVersion") or "").rpartition("/")[0]
    return "." not in group or group.endswith(_OWNER_GROUPS)


def _is_fixed(key: str, text: str, above: str, beside: Mapping[str, Any]) -> bool:
    if key == "name":
        means = _MEANING_BELOW.get(above)
        return means is not None and means(text)
    if key == "value" and above == "attributes":
        return is_known_setting(text) and beside.get("name") in _ATTRIBUTES
    return key == "hostIP" and text in _ALL_ADDRESSES


#: Field to whether a name below it means something: of a NUMA zone, an attribute, a gate, a kernel parameter, of all
#: objects of a kind.
_MEANING_BELOW: Mapping[str, Callable[[str], bool]] = {
    "zones": lambda text: _ZONE.fullmatch(text) is not None,
    "costs": lambda text: _ZONE.fullmatch(text) is not None,
    "attributes": _ATTRIBUTES.__contains__,
    "schedulingGates": (_HOLD_GATE, *KUEUE_GATES).__contains__,
    "metadata": "*".__eq__,
    "sysctls": lambda text: text.replace("/", ".") in SAFE_SYSCTLS,
}


def _holds_names(key: str, value: Any, above: str, beside: Mapping[str, Any]) -> bool:
    if key in ("name", "hostIP"):
        return isinstance(value, str)
    if key == "values":
        return "operator" in beside
    in_value = key == "value" and (above in _VALUED or above == "attributes")
    return key in _NAMES or above in _NODE_GROUPS or in_value


def _names(value: Any, name: Rename) -> Any:
    if isinstance(value, list):
        return [_names(each, name) for each in value]
    return name(value) if isinstance(value, str) else value


def _label(label: str, text: Any, name: Rename) -> Any:
    if isinstance(text, str) and is_protection(label, text):
        return text
    return _word(text, name) if label in _FIXED_LABELS else _names(text, name)


def _annotations(value: Mapping[str, str], name: Rename) -> Iterator[tuple[str, str]]:
    for key, text in value.items():
        if key in _NAMING:
            yield key, ",".join(name(each.strip()) for each in text.split(","))
        elif key in DOMAIN_ANNOTATIONS:
            yield key, _key(text, name)
        elif key in (*_STAYING, TEXT_BYTES) or is_protection(key, text):
            yield key, text
        elif key in _NOTES:
            yield key, _mark(_NOTES[key], text, name)
        elif key in _PRESENT:
            yield key, ""
        elif key in (UNREADABLE, LEFT_OUT):
            yield key, "the value found is withheld"


def _mark(holds: Holds, text: str, name: Rename) -> str:
    if holds is Holds.JSON:
        try:
            return msgspec.json.encode(_within(msgspec.json.decode(text.encode()), "", name)).decode()
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            return "this was not JSON"
    return name(text) if holds is Holds.NAME else _key(text, name) if holds is Holds.KEY else _word(text, name)


def _within(value: Any, key: str, name: Rename) -> Any:
    if isinstance(value, list):
        return [_within(each, key, name) for each in value]
    if isinstance(value, dict):
        return {field: _within(each, field, name) for field, each in value.items() if field in _JSON_FIELDS}
    if not isinstance(value, str):
        return value
    if key == "strategy":
        return _word(value, name)
    return name(value) if key else "/".join(map(name, value.split("/")))


def _word(text: Any, name: Rename) -> Any:
    if not isinstance(text, str) or text in _MARK_WORDS or _NUMBER.fullmatch(text):
        return text
    return name(text)


def _policy(document: Document, name: Rename) -> Document:
    spec = dict(document.get("spec") or {})
    if network := dict(spec.get("network") or {}):
        if isinstance(network.get("topology"), str):
            network["topology"] = "/".join(map(name, network["topology"].split("/")))
        network |= {"weights": _names(network["weights"], name)} if "weights" in network else {}
        spec["network"] = network
    for key in ("disruption", "topologyKeys", "resourceWeights"):
        if key in spec:
            spec[key] = _field(key, spec[key], name, "spec", spec)
    return {**document, "metadata": _value(document["metadata"], name, "metadata"), "spec": spec}


# ---------------------------------------------------------------------------------------- what is worked out from names


def _resolve_patterns(documents: Sequence[Document]) -> None:
    nodes = tuple(sorted(each["metadata"]["name"] for each in _of_kind(documents, "Node")))
    specs = [each["spec"] for each in _of_kind(documents, "HyperNode")]
    patterns = set(filter(None, (_pattern(member) for spec in specs for member in spec["members"])))
    found = names_found([each for each in patterns if pattern_error(each) is None], nodes)
    for spec in specs:
        spec["members"] = [new for member in spec["members"] for new in _members(member, found)]


def _of_kind(documents: Iterable[Document], kind: str) -> list[Document]:
    return [each for each in documents if each["kind"] == kind]


def _pattern(member: Mapping[str, Any]) -> str | None:
    regex = member["selector"].get("regexMatch")
    return regex["pattern"] if regex else None


def _members(member: Document, found: Mapping[str, list[str]]) -> Iterator[Document]:
    """Nodes by name for a pattern; a pattern that finds none, or is invalid, becomes another such one."""
    pattern = _pattern(member)
    if pattern is None:
        yield member
        return
    nodes = found.get(pattern, []) if member["type"] == "Node" else []
    if nodes:
        yield from ({"type": "Node", "selector": {"exactMatch": {"name": node}}} for node in nodes)
    else:
        yield {**member, "selector": {"regexMatch": {"pattern": "^$" if pattern_error(pattern) is None else "("}}}


def _needs_instance(document: Document) -> bool:
    if document["kind"] == "NodeResourceTopology":
        return True
    network = (document.get("spec") or {}).get("network") if document["kind"] == "Policy" else None
    return isinstance(network, dict) and network.get("weights") == NETPERF_COSTS


def _state_measured(
    documents: Iterable[Document], instance: Instance, config_maps: Iterable[ConfigMapManifest]
) -> None:
    network = instance.network
    if network is None or instance.policy.network_weights != NETPERF_COSTS:
        return
    by_name = {Key(each.namespace, each.name): each for each in config_maps}
    for document in _of_kind(documents, "NetworkTopology"):
        key = Key(document["metadata"].get("namespace") or "default", document["metadata"]["name"])
        if key == network.topology:
            spec = document.get("spec") or {}
            named = spec.pop("configmapName", None) or spec.pop("configMapName", None)
            measured = by_name.get(Key(key.namespace, named or ""))
            epoch = datetime.fromtimestamp(0, UTC)
            update = network_topology_update(
                document, nodes=instance.nodes, config_map=measured, allocated={}, now=epoch
            )
            document["spec"] = {**spec, "weights": update.weights}


def _catch_up(documents: Iterable[Document], instance: Instance) -> None:
    for document in _of_kind(documents, "NodeResourceTopology"):
        metadata, attributes = document["metadata"], document.get("attributes")
        metadata["annotations"] = {**(metadata.get("annotations") or {})}
        metadata["annotations"].pop(UPDATED, None)
        if attributes:
            document["attributes"] = [each for each in attributes if not each["name"].startswith(_FINGERPRINT)]
        node = instance.nodes.get(metadata["name"])
        if node is not None and node.numa is not None:
            _state_available(document, {zone.name: zone.available for zone in node.numa.zones})


def _state_available(document: Document, available: Mapping[str, Resources]) -> None:
    for zone in document.get("zones") or ():
        if zone["name"] in available:
            amounts = available[zone["name"]]
            for resource in zone.get("resources") or ():
                resource["available"] = format_amount(resource["name"], amounts[resource["name"]])
