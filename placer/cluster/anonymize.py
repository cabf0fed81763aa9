"""A snapshot without anybody's names: same decision, other words.

Every name, label value, role and reference is replaced, one text always by the same other one, so references still
meet. The new ones sort as the old ones did, since equal choices are decided by name; texts of digits stay numbers of
the same order, since affinities compare them (Gt, Lt). What is worked out from names is worked out before: the
nodes that a HyperNode's pattern finds, and the pods that a NodeResourceTopology's fingerprint counts.

What stays: keys of labels, annotations, taints and resources; kinds, units, amounts, times, numbers of NUMA zones; the
few names that mean something to a rule. ConfigMaps are left out: what was measured stands in the lists of costs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from placer.cluster.snapshot import Snapshot
from placer.controllers import network_topology_update
from placer.instance import Key
from placer.instance.build import build
from placer.instance.network_topologies import NETPERF_COSTS
from placer.instance.numa.node_resource_topology import UPDATED
from placer.instance.problem import ANY_SCHEDULER, Instance
from placer.instance.tier_tree import names_found, pattern_error
from placer.kube.core import ConfigMapManifest
from placer.quantity import format_amount

__all__ = ["anonymized"]

Document = dict[str, Any]
Rename = Callable[[str], str]

#: Names that mean something wherever they stand, in the order of the alphabet: the queue of those that name none, the
#: NetworkTopology and the list of it that are used where nobody chooses, operating systems. A text stays between the
#: two that it is between.
_MEANT = ("UserDefined", "default", "default-scheduler", "linux", "nt-default", "placer", "windows")
#: How texts begin that sort after none of these, after the first, the second ...
_STARTS = ("0x", "a", "default-", "e", "m", "o", "s", "x")
#: Addresses that stand for all of a node's.
_ALL_ADDRESSES = ("", "0.0.0.0", "::")
_HOLD_GATE = "placer.dev/hold"
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
#: Fields with an object of labels: their values are replaced, their keys stay.
_LABELS = frozenset(("labels", "matchLabels", "nodeSelector"))
#: Fields whose objects have a ``value`` that is like a label's.
_VALUED = frozenset(("taints", "tolerations"))
#: Below these, ``name`` is a word of Kubernetes and not anybody's.
_WORDS = frozenset(("resources", "attributes", "zones", "costs"))
#: Annotations that hold a name; any other is left out, but for those of which only the presence or a number counts.
_NAMING = frozenset(
    (
        "scheduling.k8s.io/group-name",
        "scheduling.volcano.sh/group-name",
        "scheduling.volcano.sh/queue-name",
        "volcano.sh/task-spec",
    )
)
_STAYING = frozenset(("kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth", UPDATED))
_PRESENT = frozenset(("kubernetes.io/config.mirror",))


def anonymized(snapshot: Snapshot) -> Snapshot:
    """Replace every name in a snapshot.

    Parameters
    ----------
    snapshot
        Of a cluster.

    Returns
    -------
    Snapshot
        Of the same length, for the same decision; without ConfigMaps, uids of its own.

    Raises
    ------
    BadInstance
        What nodes have left in their zones, or what was measured, is to be worked out, and the snapshot is no
        instance.
    """
    documents = [msgspec.json.decode(item, type=Document) for item in snapshot.items]
    documents = [each for each in documents if each["kind"] != "ConfigMap"]
    _resolve_patterns(documents)
    if any(each["kind"] == "NodeResourceTopology" or _chooses_measured(each) for each in documents):
        objects = snapshot.objects()
        instance = build(objects, scheduler_name=snapshot.scheduler_name, cluster=True)
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
    """What each text becomes: the same order, digits to digits."""
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
    """The object with other names."""
    if document["kind"] == "Policy":
        return _policy(document, name)
    renamed: Document = _value(document, name, "")
    return renamed


def _value(value: Any, name: Rename, above: str) -> Any:
    """A value below the field ``above``, or below a list that is."""
    if isinstance(value, list):
        return [_value(each, name, above) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: _field(key, part, name, above, value) for key, part in value.items()}


def _field(key: str, value: Any, name: Rename, above: str, beside: Mapping[str, Any]) -> Any:
    """The value of one field; ``beside`` is the object that it stands in, ``above`` the field that this one is in."""
    if key in _LABELS or key == "minTaskMember":
        return _mapped(key, value, name)
    if key == "annotations":
        return dict(_annotations(value or {}, name))
    if key == "name" and isinstance(value, str):
        stays = above in _WORDS or (above == "schedulingGates" and value == _HOLD_GATE)
        return value if stays else name(value)
    if key == "hostIP" and isinstance(value, str):
        return value if value in _ALL_ADDRESSES else name(value)
    if isinstance(value, dict):  # a HyperNode's selector is an object, an AppGroup's a name
        return _value(value, name, key)
    if key in _NAMES or (key == "values" and "operator" in beside) or (key == "value" and above in _VALUED):
        return _names(value, name)
    return _value(value, name, key)


def _names(value: Any, name: Rename) -> Any:
    if isinstance(value, list):
        return [_names(each, name) for each in value]
    return name(value) if isinstance(value, str) else value


def _mapped(key: str, value: Any, name: Rename) -> Any:
    """Labels have their values replaced; of ``minTaskMember`` the keys are names, of roles."""
    if not isinstance(value, dict):
        return value
    if key == "minTaskMember":
        return {name(role): count for role, count in value.items()}
    return {label: _names(text, name) for label, text in value.items()}


def _annotations(value: Mapping[str, str], name: Rename) -> Iterator[tuple[str, str]]:
    for key, text in value.items():
        if key in _NAMING:
            yield key, name(text)
        elif key in _STAYING:
            yield key, text
        elif key in _PRESENT:
            yield key, ""


def _policy(document: Document, name: Rename) -> Document:
    """A Policy: its own name and those of the NetworkTopology and list that it chooses."""
    spec = dict(document.get("spec") or {})
    if network := dict(spec.get("network") or {}):
        if isinstance(network.get("topology"), str):
            network["topology"] = "/".join(map(name, network["topology"].split("/")))
        network |= {"weights": _names(network["weights"], name)} if "weights" in network else {}
        spec["network"] = network
    if "disruption" in spec:
        spec["disruption"] = _value(spec["disruption"], name, "disruption")
    return {**document, "metadata": _value(document["metadata"], name, "metadata"), "spec": spec}


# ---------------------------------------------------------------------------------------- what is worked out from names


def _resolve_patterns(documents: Sequence[Document]) -> None:
    """Name the nodes that a HyperNode's pattern finds in its place."""
    nodes = tuple(sorted(each["metadata"]["name"] for each in documents if each["kind"] == "Node"))
    hyper_nodes = [each for each in documents if each["kind"] == "HyperNode"]
    patterns = {pattern for each in hyper_nodes for member in each["spec"]["members"] if (pattern := _pattern(member))}
    found = names_found([each for each in patterns if pattern_error(each) is None], nodes)
    for each in hyper_nodes:
        members = each["spec"]["members"]
        each["spec"]["members"] = [new for member in members for new in _members(member, found)]


def _pattern(member: Mapping[str, Any]) -> str | None:
    regex = member["selector"].get("regexMatch")
    return regex["pattern"] if regex else None


def _members(member: Document, found: Mapping[str, list[str]]) -> Iterator[Document]:
    """Nodes by name in place of a pattern; a pattern that finds none, or is none, becomes another such one."""
    pattern = _pattern(member)
    if pattern is None:
        yield member
        return
    nodes = found.get(pattern, []) if member["type"] == "Node" else []
    if nodes:
        yield from ({"type": "Node", "selector": {"exactMatch": {"name": node}}} for node in nodes)
    else:
        yield {**member, "selector": {"regexMatch": {"pattern": "^$" if pattern_error(pattern) is None else "("}}}


def _chooses_measured(document: Document) -> bool:
    network = (document.get("spec") or {}).get("network") if document["kind"] == "Policy" else None
    return isinstance(network, dict) and network.get("weights") == NETPERF_COSTS


def _state_measured(
    documents: Iterable[Document], instance: Instance, config_maps: Iterable[ConfigMapManifest]
) -> None:
    """State the costs that measurements come to in the NetworkTopology that decides, where they are what decides."""
    network = instance.network
    if network is None or instance.policy.network_weights != NETPERF_COSTS:
        return
    by_name = {Key(each.namespace, each.name): each for each in config_maps}
    for document in documents:
        key = Key(document["metadata"].get("namespace") or "default", document["metadata"]["name"])
        if document["kind"] == "NetworkTopology" and key == network.topology:
            spec = document.get("spec") or {}
            named = spec.pop("configmapName", None) or spec.pop("configMapName", None)
            measured = by_name.get(Key(key.namespace, named or ""))
            epoch = datetime.fromtimestamp(0, UTC)
            update = network_topology_update(
                document, nodes=instance.nodes, config_map=measured, allocated={}, now=epoch
            )
            document["spec"] = {**spec, "weights": update.weights}


def _catch_up(documents: Iterable[Document], instance: Instance) -> None:
    """State what zones have available now, and nothing about which pods were counted."""
    for document in documents:
        if document["kind"] == "NodeResourceTopology":
            _catch_up_one(document, instance)


def _catch_up_one(document: Document, instance: Instance) -> None:
    node = instance.nodes.get(document["metadata"]["name"])
    notes = document["metadata"].get("annotations") or {}
    document["metadata"]["annotations"] = {key: text for key, text in notes.items() if key != UPDATED}
    attributes = document.get("attributes") or ()
    document["attributes"] = [each for each in attributes if not each["name"].startswith("nodeTopologyPodsFingerprint")]
    zones = {zone.name: zone for zone in node.numa.zones} if node is not None and node.numa is not None else {}
    for zone in document.get("zones") or ():
        if zone["name"] in zones:
            for resource in zone.get("resources") or ():
                available = zones[zone["name"]].available
                resource["available"] = format_amount(resource["name"], available[resource["name"]])
