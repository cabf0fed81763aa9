"""Other names, the same decision."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import placer
from placer.kube.marks import kept_annotations
from placer.passes.cluster.reading.anonymize import WELL_KNOWN_KEYS, WELL_KNOWN_RESOURCES, anonymized
from placer.passes.cluster.reading.snapshot import Snapshot
from placer.problem import Instance, PodState
from placer.problem.instance_builder import make_instance
from tests.cluster.snapshots import documents_in, snapshot_of
from tests.cluster.test_any_object import odd
from tests.cluster.test_field_filter import SOME
from tests.cluster.things import live_pod, numa_topology
from tests.examples import every
from tests.netdocs import REGION, ZONE, network_topology
from tests.support import Document, hyper_node, node, pod, pod_group, policy, queue

#: Words that any cluster has, and so tell nothing.
COMMON = {"default", "default-scheduler", "nt-default", "linux", "windows", "placer", "UserDefined", ""}


def instance_of(snapshot: Snapshot) -> Instance:
    return make_instance(snapshot.objects(), scheduler_name=snapshot.scheduler_name, cluster=True)


def ours(document: dict[str, Any]) -> dict[str, Any]:
    """A pod for placer, as pods of a cluster that placer serves are."""
    if document["kind"] == "Pod":
        document["spec"]["schedulerName"] = "placer"
    return document


def renamed(before: Snapshot, after: Snapshot) -> dict[str, str]:
    """New name of each object to the old one."""
    pairs = zip(map(json.loads, before.items), map(json.loads, after.items), strict=True)
    found: dict[str, str] = {}
    for old, new in pairs:
        assert found.setdefault(new["metadata"]["name"], old["metadata"]["name"]) == old["metadata"]["name"]
        namespaces = [each["metadata"].get("namespace") for each in (new, old)]
        if None not in namespaces:
            found[namespaces[0]] = namespaces[1]
    return found


def decision(instance: Instance, names: Mapping[str, str]) -> list[tuple[str, str, str, tuple[str, ...]]]:
    """Bindings of the greedy in plan order, under the names before."""
    result = placer.solve(instance, method="greedy")
    assert result.placement is not None
    return [
        (names[each.pod.namespace], names[each.pod.name], names[each.node], each.numa_zones)
        for each in result.placement.bindings
    ]


def values(instance: Instance) -> list[tuple[str, int, int | None]]:
    """Values of the greedy with their bounds."""
    found = placer.solve(instance, method="greedy").objective
    return [(each.value.name, each.value.value, each.bound.value if each.bound else None) for each in found]


def without_workloads(path: str) -> list[dict[str, Any]]:
    kinds = ("Deployment", "StatefulSet", "Job", "ConfigMap", "Service", "ServiceAccount")
    documents = (each for each in documents_in(path) if each["kind"] not in kinds)
    return [ours({**each, "metadata": {"namespace": "default", **each["metadata"]}}) for each in documents]


@pytest.mark.parametrize("path", SOME, ids=lambda path: Path(path).name)
def test_the_decision_is_the_same(path: str) -> None:
    """Every shipped instance that is small: bindings, their order, zones, values and reasons."""
    before = snapshot_of(without_workloads(path))
    after = anonymized(before)
    one, other = instance_of(before), instance_of(after)
    names = renamed(before, after)
    same = {name: name for name in names.values()}
    assert decision(other, names) == decision(one, same)
    assert values(one) == values(other)
    assert [each.code for each in one.findings] == [each.code for each in other.findings]


def test_measured_costs_that_decide_are_stated() -> None:
    key = "netperf.p90.latency.milliseconds.origin.acme1.destination.acme2"
    metadata = {"name": "netperf", "namespace": "default"}
    documents = [
        *(node(name, {REGION: "acme", ZONE: f"acme-{name}"}) for name in ("acme1", "acme2")),
        network_topology(),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {key: "42"}},
        policy(network={"weights": "NetperfCosts"}),
    ]
    before, after = (instance_of(each).network for each in (snapshot_of(documents), anonymized(snapshot_of(documents))))
    assert before is not None
    assert after is not None
    assert sorted(before.costs.values()) == sorted(after.costs.values()) == [42, 42]


def test_patterns_become_the_nodes_that_they_find() -> None:
    members = [
        {"type": "Node", "selector": {"regexMatch": {"pattern": "^rack1-"}}},
        {"type": "Node", "selector": {"regexMatch": {"pattern": "^nobody$"}}},
        {"type": "Node", "selector": {"regexMatch": {"pattern": "("}}},
    ]
    leaf = {**hyper_node("leaf", 1), "spec": {"tier": 1, "members": members}}
    before = snapshot_of([*(node(f"rack{number // 2}-n{number}") for number in range(4)), leaf])
    after = anonymized(before)
    names = renamed(before, after)
    one, other = instance_of(before), instance_of(after)
    found = {names[each] for each in other.topology.hyper_nodes[min(other.topology.hyper_nodes)].nodes}
    assert found == {"rack1-n2", "rack1-n3"}
    assert [each.code for each in one.findings] == [each.code for each in other.findings]


def test_zones_say_what_is_left_now() -> None:
    """The pod was bound after the exporter wrote, so it is in no `available`; without names that must be in it."""
    bound = live_pod(
        "bound", node="n1", cpu=3, memory="1Gi", guaranteed=True, status={"startTime": "2026-01-01T00:00:09Z"}
    )
    topology: dict[str, Any] = {**numa_topology("n1", *({"cpu": "4", "memory": "8Gi"},) * 2)}
    topology["metadata"] = {"name": "n1", "managedFields": [{"time": "2026-01-01T00:00:05Z"}]}
    topology["attributes"] = [*topology["attributes"], {"name": "nodeTopologyPodsFingerprint", "value": "pfp0v001ff"}]
    before = snapshot_of([node("n1"), topology, bound])
    after = anonymized(before)
    one, other = instance_of(before), instance_of(after)
    (node_before,), (node_after,) = one.nodes.values(), other.nodes.values()
    assert node_before.numa == node_after.numa
    assert node_after.numa is not None
    assert [zone.available["cpu"] for zone in node_after.numa.zones] == [1000, 4000]
    assert "Fingerprint" not in after.items[1].decode()
    assert "placer.dev/updated" not in after.items[1].decode()


def test_affinities_that_compare_numbers_still_do() -> None:
    term = {"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["9"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    documents = [
        node("old", labels={"gen": "9"}),
        node("new", labels={"gen": "10"}),
        live_pod("p", cpu=1, spec={"containers": [{"name": "c", "image": "i"}], "affinity": affinity}),
    ]
    before = snapshot_of(documents)
    after = anonymized(before)
    assert decision(instance_of(after), renamed(before, after)) == [("default", "p", "new", ())]


def test_the_hold_gate_is_kept() -> None:
    held = pod("held", cpu=1, spec={"schedulerName": "placer", "schedulingGates": [{"name": "placer.dev/hold"}]})
    after = anonymized(snapshot_of([node("n1"), held]))
    built = make_instance(after.objects(), scheduler_name="placer", cluster=True, gates=True)
    assert [each.state for each in built.pods.values()] == [PodState.PENDING]


# ------------------------------------------------------------------------------------ keys, and a word in every field

PLANTED = "hunter2"
#: Fields that an API server fills in itself or lets only words of its own stand in.
SERVERS = frozenset(
    (
        *("apiVersion", "kind", "phase", "operator", "effect", "mode", "status", "type", "protocol", "restartPolicy"),
        *("startTime", "creationTimestamp", "deletionTimestamp", "lastTransitionTime", "time", "resourceVersion"),
        *("whenUnsatisfiable", "nodeTaintsPolicy", "nodeAffinityPolicy", "accessModes", "reason", "locality", "levels"),
    )
)


def planted(value: Any, key: str = "") -> Any:
    """A value with the word in every text, and in the key of every label, taint and resource, that a user chooses."""
    if isinstance(value, dict):
        return {
            f"{name}-{PLANTED}" if key in MAPS and not keeps(name) else name: part
            if name in SERVERS
            else planted(part, name)
            for name, part in value.items()
        }
    if isinstance(value, list):
        return [planted(each, key) for each in value]
    if not isinstance(value, str) or re.fullmatch(r"[+-]?[0-9.]+([eE][0-9]+)?[a-zA-Z%]{0,2}", value):
        return value
    kept = keeps(value) if key in ("key", "topologyKey", "topologyKeys", "matchLabelKeys", "name") else value in COMMON
    return value if kept or re.fullmatch("node-[0-9]+", value) else f"{value}-{PLANTED}"


MAPS = ("labels", "matchLabels", "nodeSelector", "allocatable", "capacity", "requests", "limits", "capability")


def keeps(text: str) -> bool:
    """Whether a key means something that would be lost with another word in it."""
    return text in WELL_KNOWN_KEYS | WELL_KNOWN_RESOURCES | COMMON or text.startswith("topologyManager")


@pytest.mark.parametrize("path", every(4, SOME), ids=lambda path: Path(path).name)
def test_a_word_that_is_planted_everywhere_is_left_nowhere(path: str) -> None:
    """In every text and key of every object; what is decided is the same as with it."""
    documents = [planted(each) for each in without_workloads(path)]
    for document in documents:
        if document["kind"] == "Pod":
            document["spec"]["schedulerName"] = "placer"
    before = snapshot_of(documents)
    assert any(PLANTED.encode() in item for item in before.items)
    after = anonymized(before)
    left = [item for item in after.items if PLANTED.encode() in item]
    assert not left
    assert values(instance_of(before)) == values(instance_of(after))


def test_of_one_of_every_kind_no_name_is_left() -> None:
    documents = [ours(planted(each)) for each in odd() if each["kind"] != "DaemonSet"]
    before = snapshot_of(documents)
    after = anonymized(before)
    assert PLANTED.encode() not in b"".join(after.items)
    kinds = [json.loads(item)["kind"] for item in after.items]
    assert ("ConfigMap" in kinds, len(kinds)) == (False, len(documents) - 1)
    assert [each.code for each in instance_of(after).findings] == [each.code for each in instance_of(before).findings]


def test_what_was_wrong_with_an_object_is_not_told() -> None:
    """It quotes what a user wrote."""
    odd = {**pod("a", cpu=1), "spec": {"containers": {"hunter2": 7}, "schedulerName": "placer"}}
    taken = snapshot_of([node("n1"), odd])
    assert any(b"placer.dev/unreadable" in item for item in taken.items)
    (kept,) = anonymized(taken).of_kind("Pod")
    found = json.loads(kept)["metadata"]["annotations"]
    assert found == {"placer.dev/unreadable": "the value found is withheld"}


def test_keys_are_names_too() -> None:
    """Of resources, labels, NUMA zones, subgroups, a queue, a Policy and an owner; whole objects are tried above."""
    key, card, gpu = f"acme.example/{PLANTED}", f"acme.example/{PLANTED}-card", f"{PLANTED}.example/gpu"
    first = node("n1", labels={key: "a", f"node-role.kubernetes.io/{PLANTED}": ""})
    first["status"]["allocatable"] = {"cpu": "4", "memory": "8Gi", "pods": "9", card: "4", gpu: "4"}
    topology = numa_topology("n1", {"cpu": "4", card: "4"})
    topology["attributes"].append({"name": PLANTED, "value": PLANTED})
    owner = {"apiVersion": f"{PLANTED}.example/v1", "kind": f"Train{PLANTED}", "name": "x", "uid": "u"}
    spread = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway", "matchLabelKeys": [key]}
    spec = {"nodeSelector": {key: "a"}, "topologySpreadConstraints": [spread]}
    amounts = {"cpu": 1, "memory": "1Gi", card: 1, gpu: 1}
    owned = {"ownerReferences": [{**owner, "controller": True}]}
    part = {"name": "s", "subGroupSize": 1, "labelSelector": {"matchLabels": {key: "b"}}, "matchLabelKeys": [key]}
    documents = [
        *(first, topology, queue("q", {card: 4}), policy(topologyKeys=[key], resourceWeights={card: 2, gpu: 1})),
        live_pod("p", group="g", guaranteed=True, labels={key: "b"}, metadata=owned, spec=spec, **amounts),
        pod_group("g", minMember=1, queue="q", minResources={card: "1"}, subGroupPolicy=[part]),
    ]
    before = snapshot_of(documents)
    after = anonymized(before)
    assert PLANTED.encode() not in b"".join(after.items)
    assert decision(instance_of(after), renamed(before, after)) == [("default", "p", "n1", ("node-0",))]
    assert values(instance_of(before)) == values(instance_of(after))
    (found,) = instance_of(after).nodes.values()
    assert sorted(each.endswith("/gpu") for each in found.allocatable if "/" in each) == [False, True]


def test_keys_that_mean_something_to_a_rule_are_well_known() -> None:
    """Every key that stands in the code of what reads objects, but for annotations, conditions and API versions."""
    written = re.compile(r'"((?:[a-z0-9-]+\.)+[a-z]+/[A-Za-z0-9._-]+)"')
    root = Path(placer.__file__).parent
    files = [
        *(path for name in ("problem", "kube") for path in (root / name).rglob("*.py")),
        root / "topology/controllers.py",
    ]
    texts = [path.read_text() for path in files]
    found = {key for text in texts for key in written.findall(text)}
    found = {key for key in found if not re.search(r"/v[0-9]\w*$", key)}
    others = {
        "placer.dev/Consistent",
        *("placer.dev/enforce", "placer.dev/snapshot", "placer.dev/text-bytes", "placer.dev/unreadable"),
        *("kubectl.kubernetes.io/last-applied-configuration", "kubernetes.io/config.mirror"),
        *("kubernetes.io/egress-bandwidth", "kubernetes.io/ingress-bandwidth", "placer.dev/hold", "placer.dev/updated"),
        "placer.dev/left-out",
        "placer.dev/rejected-by",
        *("topology.node.k8s.io/fingerprint", "volcano.sh/numa-topology-policy", "volcano.sh/cooldown-time"),
        *("volcano.sh/jdb-max-unavailable", "volcano.sh/jdb-min-available", "volcano.sh/revocable-zone"),
        *("kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"),  # gates
        *("jobset.sigs.k8s.io/jobset-controller", "kubernetes.io/job-controller"),  # controllers
    }
    assert len(found) > 20
    assert found - others - kept_annotations() - WELL_KNOWN_KEYS - WELL_KNOWN_RESOURCES == set()


def test_gangs_of_kubernetes_are_named_otherwise_too() -> None:
    """What a pod says of its group, and what groups say of each other."""
    reference = {"name": PLANTED, "podGroup": PLANTED, "podGroupReplicaKey": PLANTED}
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": PLANTED, "namespace": PLANTED},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 1}},
            "schedulingConstraints": {"topology": [{"key": f"{PLANTED}.example/rack"}]},
            "priorityClassName": PLANTED,
            "parentCompositePodGroupName": PLANTED,
        },
    }
    members = [
        live_pod("a", namespace=PLANTED, spec={"schedulingGroup": {"podGroupName": PLANTED}}, cpu=1),
        live_pod("b", namespace=PLANTED, spec={"workloadRef": reference}, cpu=1),
    ]
    after = anonymized(snapshot_of([node("n1"), group, *members]))
    assert PLANTED.encode() not in b"".join(after.items)


def test_marks_of_nodes_decide_the_same_under_other_names() -> None:
    """Pod sets of Kueue, node groups of a queue, and a NUMA policy."""
    notes = {"kueue.x-k8s.io/podset-required-topology": f"{PLANTED}/rack", "kueue.x-k8s.io/podset-group-name": PLANTED}
    labels = {"jobset.sigs.k8s.io/jobset-name": PLANTED, "jobset.sigs.k8s.io/replicatedjob-name": "w"}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    asking = queue(PLANTED)
    asking["spec"]["affinity"] = {
        "nodeGroupAffinity": {required: [PLANTED, "x"]},
        "nodeGroupAntiAffinity": {required: ["x"]},
    }
    in_queue = {"scheduling.volcano.sh/queue-name": PLANTED}
    numa = {"volcano.sh/numa-topology-policy": "single-numa-node"}
    marked = {f"{PLANTED}/rack": "r", "volcano.sh/nodegroup-name": PLANTED}
    documents = [
        *(node("n1", marked), node("n2", {"volcano.sh/nodegroup-name": "x"}), numa_topology("n2", {"cpu": "4"})),
        asking,
        *(live_pod(name, labels=labels, annotations=notes, cpu=1) for name in ("a", "b")),
        live_pod("c", annotations=in_queue, cpu=1),
        live_pod("d", annotations=numa, cpu=1),
        live_pod("e", annotations={"gpu-fraction": "0.5"}, cpu=1),
    ]
    before, after = snapshot_of(documents), anonymized(snapshot_of(documents))
    assert PLANTED.encode() not in b"".join(after.items)
    found = [_marks(instance_of(each)) for each in (before, after)]
    assert found[0] == found[1]
    assert found[0] == [([0, 1], 1, False), ([0, 1], 1, False), ([0], 0, False), ([1], 0, False), ([0, 1], 0, True)]


def _marks(instance: Instance) -> list[tuple[list[int], int, bool]]:
    """Per pod the numbers of the nodes that it may use, how many of its units they carry the label of, and whether it
    is refused.
    """
    nodes, found = [instance.nodes[name] for name in sorted(instance.nodes)], []
    for _, each in sorted(instance.pods.items()):
        may = [at for at, place in enumerate(nodes) if each.constraints.admits(place)]
        carried = sum(unit.topology_key in nodes[0].labels for unit in each.neighbours.units)
        found.append((may, carried, bool(each.unsupported)))
    return found


def test_what_protects_pods_is_kept_and_protects_as_before() -> None:
    """Marks of pods, groups and classes, and a queue that is not reclaimable, under other names."""
    marks = [
        *({"annotations": {key: "false"}} for key in ("volcano.sh/preemptable", "karpenter.sh/do-not-disrupt")),
        {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}},
        {"annotations": {"karpenter.sh/do-not-disrupt": "true"}},
        {"annotations": {"yunikorn.apache.org/allow-preemption": "false"}},
        {"labels": {"volcano.sh/preemptable": "false"}},
        {"labels": {"volcano.sh/preemptable": "true"}},
        {"labels": {"kai.scheduler/preemptibility": "non-preemptible"}},
        {"labels": {"quota.scheduling.koordinator.sh/preemptible": "false"}},
        {"annotations": {"scheduling.k8s.io/group-name": "g"}},
        {},
    ]
    owner = {
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}]
    }
    spec = {"priorityClassName": "driver"}
    pods = [
        live_pod(f"p{number:02d}", node="n1", spec={} if mark else spec, metadata={**owner, **mark})
        for number, mark in enumerate(marks)
    ]
    driver: Document = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "driver", "annotations": {"yunikorn.apache.org/allow-preemption": "false"}},
        "value": 5,
    }
    group, kept = pod_group("g", minMember=1, queue="q"), queue("q", {"cpu": 99})
    group["metadata"]["labels"] = {"volcano.sh/preemptable": "false"}
    kept["spec"]["reclaimable"] = False
    before = snapshot_of([node("n1", cpu=64), driver, kept, group, *pods])
    after = instance_of(anonymized(before))
    expected = [True, False, True, True, True, True, False, True, True, True, True]
    for instance in (instance_of(before), after):
        assert [bool(each.protecting_mark) for each in instance.pods.values()] == expected
        assert [each.reclaimable for each in instance.queues.values()] == [False]
    assert b"driver" not in b"".join(anonymized(before).items)


def test_the_label_of_exclusive_topology_is_named_as_on_the_nodes() -> None:
    labels = {"leaderworkerset.sigs.k8s.io/name": PLANTED, "leaderworkerset.sigs.k8s.io/group-index": "0"}
    notes = {"leaderworkerset.sigs.k8s.io/exclusive-topology": f"{PLANTED}/rack"}
    member = live_pod("a", labels=labels, annotations=notes, cpu=1)
    after = anonymized(snapshot_of([node("n1", {f"{PLANTED}/rack": "r"}), member]))
    assert PLANTED.encode() not in b"".join(after.items)
    instance = make_instance(after.objects())
    (pod,) = instance.pods.values()
    (unit,) = pod.neighbours.units
    assert all(unit.topology_key in each.labels for each in instance.nodes.values())
    assert unit.exclusive
