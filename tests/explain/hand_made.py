"""Cases made by hand: who waits, the causes that are right, and a change that must be among those told.

Each is small enough to be tried by hand, and for :mod:`tests.oracle` to try everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.support import Document, hyper_node, node, pod, pod_group, policy, queue

__all__ = ["CASES", "ZONE", "HandMade"]


@dataclass(frozen=True, eq=False)
class HandMade:
    """One case.

    Parameters
    ----------
    name
        What it is about.
    documents
        The cluster and what waits.
    causes
        Codes of the smallest set.
    told
        What messages of changes must say, each some message.
    others
        Codes of further sets that must be told.
    group
        Who waits.
    """

    name: str
    documents: tuple[Document, ...]
    causes: frozenset[str]
    told: tuple[str, ...] = ()
    others: tuple[frozenset[str], ...] = ()
    group: str = "default/g"


def case(name: str, *documents: Any, causes: str, change: str = "", others: str = "", group: str = "g") -> HandMade:
    """``causes`` and ``others`` as words; sets in ``others`` are parted by commas, changes told by semicolons."""
    flat: list[Document] = []
    for each in documents:
        flat += each if isinstance(each, list) else [each]
    sets = tuple(frozenset(words.split()) for words in others.split(",") if words.strip())
    return HandMade(
        name,
        tuple(flat),
        frozenset(causes.split()),
        tuple(change.split("; ") if change else ()),
        sets,
        f"default/{group}",
    )


def nodes(count: int, prefix: str = "n", labels: Mapping[str, str] | None = None, **amounts: object) -> list[Document]:
    return [node(f"{prefix}{number}", labels, **amounts) for number in range(count)]


def gang(count: int, name: str = "g", least: int | None = None, **requests: Any) -> list[Document]:
    """A PodGroup and its pods; what is no request is of the group."""
    spec = {key: requests.pop(key) for key in ("queue", "networkTopology", "priorityClassName") if key in requests}
    members = [pod(f"{name}-{number}", group=name, **requests) for number in range(count)]
    return [pod_group(name, minMember=count if least is None else least, **spec), *members]


def cordoned(name: str, labels: Mapping[str, str] | None = None, **amounts: object) -> Document:
    return {**node(name, labels, **amounts), "spec": {"unschedulable": True}}


def tainted(name: str, *keys: str, **amounts: object) -> Document:
    taints = [{"key": key, "value": "yes", "effect": "NoSchedule"} for key in keys or ("gpu",)]
    return {**node(name, **amounts), "spec": {"taints": taints}}


def unready(name: str, **amounts: object) -> Document:
    made = dict(node(name, **amounts))
    made["status"] = {**made["status"], "conditions": [{"type": "Ready", "status": "False"}]}
    return made


def running(name: str, on: str, group: str | None = None, **requests: object) -> Document:
    return pod(name, node=on, group=group, **requests)


def running_gang(name: str, *on: str, **requests: object) -> list[Document]:
    return [
        pod_group(name, minMember=len(on)),
        *(running(f"{name}-{at}", each, name, **requests) for at, each in enumerate(on)),
    ]


HARD = {"mode": "hard", "highestTierAllowed": 1}
SELECT = {"nodeSelector": {"pool": "gpu"}}


def racks(*sizes: int, **amounts: object) -> list[Document]:
    """Racks of so many nodes: r0-0, r0-1 ... in HyperNode r0 and so on, all of them in s."""
    made: list[Document] = []
    for rack, size in enumerate(sizes):
        names = tuple(f"r{rack}-{number}" for number in range(size))
        made += [node(name, **amounts) for name in names]
        made.append(hyper_node(f"r{rack}", 1, nodes=names, tier_name="rack"))
    made.append(hyper_node("s", 2, children=tuple(f"r{rack}" for rack in range(len(sizes)))))
    return made


def _eligibility() -> Iterator[HandMade]:
    yield case("cordoned", cordoned("a", gpu=8), gang(1, gpu=8), causes="NoEligibleNode", change="uncordon Node a")
    yield case(
        "one of two cordoned",
        cordoned("a", gpu=1),
        node("b", gpu=1),
        gang(2, gpu=1),
        causes="InsufficientResources",
        others="NoEligibleNode",
        change="uncordon Node a",
    )
    yield case(
        "tainted",
        tainted("a", gpu=8),
        gang(1, gpu=8),
        causes="NoEligibleNode",
        change="take the taint gpu:NoSchedule from Node a; tolerate the taint gpu:NoSchedule in its pods",
    )
    yield case(
        "cordoned and tainted",
        {**tainted("a", gpu=8), "spec": {**tainted("a")["spec"], "unschedulable": True}},
        gang(1, gpu=8),
        causes="NoEligibleNode",
        change="uncordon Node a, and take the taint gpu:NoSchedule from Node a",
    )
    yield case(
        "one cordoned, one tainted, and one both and without the label",
        [cordoned("a", {"pool": "gpu"}, gpu=8), tainted("b", gpu=8)],
        {**tainted("c", gpu=8), "spec": {**tainted("c")["spec"], "unschedulable": True}},
        gang(2, gpu=8, spec=SELECT),
        causes="NoEligibleNode",
        change="uncordon Node a, and take the taint gpu:NoSchedule from Node b, and label Node b pool=gpu",
    )
    yield case(
        "selector of some",
        node("a", {"pool": "gpu"}, gpu=1),
        node("b", gpu=1),
        gang(2, gpu=1, spec=SELECT),
        causes="InsufficientResources",
        others="NoEligibleNode",
        change="label Node b pool=gpu",
    )
    yield case(
        "a label that is true",
        node("a", gpu=1),
        gang(1, gpu=1, spec={"nodeSelector": {"fast": "true"}}),
        causes="NoEligibleNode",
        change="label Node a fast=true",
    )
    yield case(
        "not ready",
        unready("a", gpu=8),
        gang(1, gpu=8),
        causes="NoEligibleNode",
        change="add 1 node like a, ready and open to pods",
    )
    yield case(
        "not ready, and says so by a taint",
        {**unready("a", gpu=8), "spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}},
        gang(1, gpu=8),
        causes="NoEligibleNode",
        change="add 1 node like a, ready and open to pods",
    )
    yield case(
        "cordoned and too small", cordoned("a", gpu=4), gang(1, gpu=8), causes="NoEligibleNode InsufficientResources"
    )
    yield case(
        "cordoned and full",
        cordoned("a", gpu=8),
        running("x", "a", gpu=8),
        gang(1, gpu=8),
        causes="NoEligibleNode InsufficientResources",
        change="add 1 node like a, ready and open to pods",
    )


def _resources() -> Iterator[HandMade]:
    yield case("too large for any node", node("a", gpu=4), gang(1, gpu=8), causes="InsufficientResources")
    yield case(
        "full by a pod",
        node("a", gpu=8),
        running("x", "a", gpu=8),
        gang(1, gpu=8),
        causes="InsufficientResources",
        change="wait until Pod default/x ends",
    )
    yield case(
        "full by a gang",
        nodes(2, gpu=8),
        running_gang("x", "n0", "n1", gpu=8),
        gang(2, gpu=8),
        causes="InsufficientResources",
        change="wait until PodGroup default/x ends (2 pods)",
    )
    yield case(
        "too few nodes", nodes(2, gpu=8), gang(3, gpu=8), causes="InsufficientResources", change="add 1 node like"
    )
    yield case(
        "two too few",
        nodes(2, gpu=8),
        gang(4, gpu=8),
        causes="InsufficientResources",
        change="add 2 nodes like; start with 2 members in place of 4",
    )
    yield case("memory", node("a", memory="4Gi"), gang(1, memory="8Gi"), causes="InsufficientResources")
    yield case(
        "cpu in all", nodes(2, cpu=4), gang(3, cpu=4), causes="InsufficientResources", change="start with 2 members"
    )
    yield case(
        "pods per node", node("a", pods=1), gang(2, cpu=1), causes="InsufficientResources", change="add 1 node like a"
    )
    yield case("in pieces", nodes(2, gpu=6), gang(3, gpu=4), causes="InsufficientResources", change="add 1 node like")
    yield case(
        "host port",
        node("a"),
        running_port("x", "a"),
        port_gang(1),
        causes="InsufficientResources",
        change="wait until Pod default/x ends",
    )
    yield case(
        "host ports of its own", node("a"), port_gang(2), causes="InsufficientResources", change="add 1 node like a"
    )
    yield case("extended resource", node("a"), gang(1, **{"example.com/fpga": 1}), causes="InsufficientResources")
    yield case(
        "the smaller gang is enough",
        nodes(3, gpu=8),
        running_gang("x", "n0", "n1", gpu=8),
        running("y", "n2", gpu=8),
        gang(1, gpu=8),
        causes="InsufficientResources",
        change="wait until Pod default/y ends",
    )


def port_spec() -> dict[str, Any]:
    return {"containers": [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}]}


def running_port(name: str, on: str) -> Document:
    return pod(name, node=on, spec=port_spec())


def port_gang(count: int) -> list[Document]:
    return [pod_group("g", minMember=count), *(pod(f"g-{at}", group="g", spec=port_spec()) for at in range(count))]


def _topology() -> Iterator[HandMade]:
    yield case(
        "one rack too small",
        racks(1, 1, gpu=8),
        gang(2, gpu=8, networkTopology=HARD),
        causes="TopologyTooNarrow",
        others="InsufficientResources",
        change="allow tier 2 in place of tier 1; add 1 node like r",
    )
    yield case(
        "a smaller gang in the rack",
        racks(2, 1, gpu=8),
        gang(3, gpu=8, networkTopology=HARD),
        causes="TopologyTooNarrow",
        change="start with 2 members in place of 3",
    )
    yield case(
        "held in the rack",
        racks(2, 1, gpu=8),
        running("x", "r0-1", gpu=8),
        gang(2, gpu=8, networkTopology=HARD),
        causes="TopologyTooNarrow",
        others="InsufficientResources",
        change="wait until Pod default/x ends",
    )
    yield case(
        "runs in another rack",
        racks(1, 1, gpu=8),
        [
            pod_group("g", minMember=2, networkTopology=HARD),
            running("g-0", "r0-0", "g", gpu=8),
            pod("g-1", group="g", gpu=8),
        ],
        causes="TopologyTooNarrow",
        others="InsufficientResources",
        change="allow tier 2",
    )
    yield case(
        "unknown tier name",
        racks(2, gpu=8),
        gang(2, gpu=8, networkTopology={"mode": "hard", "highestTierName": "row"}),
        causes="TopologyTooNarrow",
        change="allow tier 1 in place of tierName row",
    )
    yield case(
        "nodes outside",
        nodes(2, gpu=8),
        hyper_node("r", 1, nodes=("n0",)),
        gang(2, gpu=8, networkTopology=HARD),
        causes="TopologyTooNarrow",
        change="allow tier 2 in place of tier 1 (tier 2 is the whole cluster)",
    )
    yield case(
        "a subgroup's rack",
        racks(1, 1, gpu=8),
        sub_grouped(2, 1),
        causes="TopologyTooNarrow",
        others="InsufficientResources",
        change="allow tier 2",
    )


def sub_grouped(size: int, tier: int) -> list[Document]:
    """One subgroup of so many pods within a tier."""
    sub = {
        "name": "w",
        "subGroupSize": size,
        "minSubGroups": 1,
        "labelSelector": {"matchLabels": {"role": "w"}},
        "matchLabelKeys": ["part"],
        "networkTopology": {"mode": "hard", "highestTierAllowed": tier},
    }
    labels = {"role": "w", "part": "0"}
    pods = [pod(f"g-{at}", group="g", labels=labels, gpu=8) for at in range(size)]
    return [pod_group("g", minMember=size, subGroupPolicy=[sub]), *pods]


def _gangs() -> Iterator[HandMade]:
    yield case(
        "one member is missing",
        nodes(3, gpu=8),
        gang(2, least=3, gpu=8),
        causes="GangIncomplete",
        change="start with 2 members in place of 3",
    )
    yield case(
        "missing, and no room",
        node("a", gpu=8),
        gang(2, least=3, gpu=8),
        causes="GangIncomplete InsufficientResources",
        change="start with 2 members in place of 3, and add 1 node like a",
    )
    yield case(
        "missing, and one rack",
        racks(1, 1, gpu=8),
        gang(2, least=3, gpu=8, networkTopology=HARD),
        causes="GangIncomplete TopologyTooNarrow",
        change="start with 2 members in place of 3, and allow tier 2 in place of tier 1",
    )
    limited = sub_grouped(2, 1)
    limited[0]["spec"]["networkTopology"] = HARD
    yield case(
        "the racks of a group and of its subgroup",
        racks(1, 1, gpu=8),
        limited,
        causes="TopologyTooNarrow",
        change="allow tier 2 in place of tier 1, and allow tier 2 in place of tier 1 for each of subgroups w",
        others="InsufficientResources",
    )
    yield case("a subgroup is too small", racks(2, gpu=8), [*sub_grouped(2, 1)[:2]], causes="GangIncomplete")
    yield case(
        "no PodGroup",
        node("a", gpu=8),
        pod("g-0", group="g", gpu=8),
        causes="InvalidGroup",
        change="create PodGroup default/g",
    )
    yield case(
        "two limits",
        racks(2, gpu=8),
        gang(2, gpu=8, networkTopology={"mode": "hard", "highestTierAllowed": 1, "highestTierName": "rack"}),
        causes="InvalidGroup",
        change="leave out highestTierName (rack) next to highestTierAllowed (1); leave out highestTierAllowed (1)",
    )
    yield case(
        "claims of devices",
        node("a", gpu=8),
        pod("p", spec={"resourceClaims": [{"name": "c", "resourceClaimName": "x"}]}, cpu=1),
        causes="Unsupported",
        change="do without spec.resourceClaims",
        group="p",
    )


CAP4 = {"nvidia.com/gpu": 4}


def _queues() -> Iterator[HandMade]:
    yield case(
        "capability",
        nodes(2, gpu=8),
        queue("q", {"nvidia.com/gpu": 8}),
        gang(2, gpu=8, queue="q"),
        causes="QueueCapability",
        change="raise nvidia.com/gpu in the capability of Queue q by 8",
    )
    yield case(
        "capability taken",
        nodes(2, gpu=8),
        queue("q", {"nvidia.com/gpu": 8}),
        [pod_group("x", minMember=1, queue="q"), running("x-0", "n0", "x", gpu=8)],
        gang(1, gpu=8, queue="q"),
        causes="QueueCapability",
        change="raise nvidia.com/gpu in the capability of Queue q by 8; wait until PodGroup default/x ends (1 pod)",
    )
    yield case(
        "closed",
        node("a", gpu=8),
        {**queue("q"), "status": {"state": "Closed"}},
        gang(1, gpu=8, queue="q"),
        causes="QueueClosed",
        change="open Queue q",
    )
    yield case(
        "the parent's capability",
        node("a", gpu=8),
        queue("root", CAP4),
        queue("q", None, "root"),
        gang(1, gpu=8, queue="q"),
        causes="QueueCapability",
        change="capability of Queue root by 4",
    )
    yield case(
        "capability and one rack",
        racks(1, 1, gpu=8),
        queue("q", {"nvidia.com/gpu": 8}),
        gang(2, gpu=8, queue="q", networkTopology=HARD),
        causes="QueueCapability TopologyTooNarrow",
        change="raise nvidia.com/gpu in the capability of Queue q by 8, and allow tier 2",
        others="QueueCapability InsufficientResources",
    )
    yield case(
        "closed and too small",
        node("a", gpu=8),
        {**queue("q", CAP4), "status": {"state": "Closed"}},
        gang(1, gpu=8, queue="q"),
        causes="QueueClosed QueueCapability",
        change="open Queue q and raise nvidia.com/gpu in the capability of Queue q by 4",
    )
    yield case(
        "closed above, and room below",
        node("a", gpu=8),
        {**queue("root"), "status": {"state": "Closed"}},
        queue("q", {"nvidia.com/gpu": 8}, "root"),
        gang(1, gpu=8, queue="q"),
        causes="QueueClosed",
        change="open Queue root",
    )
    yield case(
        "four causes",
        racks(1, 1, gpu=4),
        [cordoned("z", gpu=4)],
        queue("q", CAP4),
        gang(3, least=4, gpu=4, queue="q", networkTopology=HARD),
        causes="GangIncomplete QueueCapability InsufficientResources",
    )
    yield case(
        "fewer members fit the queue",
        nodes(3, gpu=8),
        queue("q", {"nvidia.com/gpu": 16}),
        gang(3, gpu=8, queue="q"),
        causes="QueueCapability",
        change="start with 2 members in place of 3",
    )


HIGH = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}


def whose(name: str, namespaces: str) -> Document:
    made = queue(name)
    return {**made, "metadata": {**made["metadata"], "annotations": {"placer.dev/namespaces": namespaces}}}


def rivals() -> list[Document]:
    return [HIGH, *gang(1, name="rival", gpu=8, priorityClassName="high")]


def _large_and_picky() -> Iterator[HandMade]:
    yield case(
        "larger than any node",
        nodes(2, gpu=4, cpu=8),
        pod("p", gpu=6, cpu=2),
        causes="InsufficientResources",
        change="let its pods request nvidia.com/gpu 4 in place of 6",
        group="p",
    )
    yield case(
        "held by a pod that is being deleted",
        node("a", gpu=8),
        pod("x", node="a", gpu=8, metadata={"deletionTimestamp": "2026-08-20T10:00:00Z"}),
        gang(1, gpu=8),
        causes="InsufficientResources",
        change="wait for the end of Pod default/x, which is being deleted already; add 1 node like a",
    )
    yield case(
        "affinity that no node meets",
        node("a", {"gpu": "a100"}, gpu=1),
        gang(1, gpu=1, spec=required_of_nodes({"key": "gpu", "operator": "In", "values": ["h100", "h200"]})),
        causes="NoEligibleNode",
        change="label Node a gpu=h100; let its pods be on nodes with gpu=a100, too",
    )
    yield case(
        "affinity of several fields that no node meets",
        nodes(1, "a", {"gpu": "a100", "old": "yes"}, gpu=1),
        gang(
            1,
            gpu=1,
            spec=required_of_nodes(
                {"key": "generation", "operator": "Gt", "values": ["4"]},
                {"key": "old", "operator": "DoesNotExist"},
                {"key": "gpu", "operator": "Exists"},
            ),
        ),
        causes="NoEligibleNode",
        change="label Node a0 generation=5 and without old; "
        "let its pods not require old DoesNotExist of nodes and not require generation Gt 4 of nodes",
    )
    yield case(
        "affinity to a node by its name",
        node("a", gpu=1),
        gang(1, gpu=1, spec=required_of_nodes({"key": "kubernetes.io/hostname", "operator": "In", "values": ["gone"]})),
        causes="NoEligibleNode",
        change="let its pods",
    )
    yield case(
        "cordoned and without a GPU",
        cordoned("a", cpu=8),
        gang(1, gpu=8),
        causes="NoEligibleNode InsufficientResources",
    )


def required_of_nodes(*expressions: Mapping[str, object]) -> dict[str, Any]:
    """A spec with one term of required node affinity."""
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def _outcompeted() -> Iterator[HandMade]:
    yield case(
        "outcompeted",
        node("a", gpu=8),
        rivals(),
        gang(1, gpu=8),
        causes="Outcompeted",
        change="raise the priority to 101; add 1 node like a",
    )
    yield case(
        "outcompeted, its class says more than its pods",
        node("a", gpu=8),
        rivals(),
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "top"}, "value": 900},
        gang(1, gpu=8, priorityClassName="top", spec={"priority": 0}),
        causes="Outcompeted",
        change="raise the priority to 101",
    )
    yield case(
        "outcompeted in the queue",
        nodes(2, gpu=8),
        queue("q", {"nvidia.com/gpu": 8}),
        HIGH,
        gang(1, name="rival", gpu=8, queue="q", priorityClassName="high"),
        gang(1, gpu=8, queue="q"),
        causes="Outcompeted",
        change="raise nvidia.com/gpu in the capability of Queue q by 8",
    )
    yield case(
        "the queue of others",
        node("a", gpu=8),
        whose("q", "ml"),
        gang(1, gpu=8, queue="q"),
        causes="QueueClosed",
        change="name default in the annotation placer.dev/namespaces of Queue q",
    )
    yield case(
        "a lone pod outcompeted",
        node("a", gpu=8),
        rivals(),
        pod("p", gpu=8),
        causes="Outcompeted",
        change="raise the priority to 101",
        group="p",
    )
    yield case(
        "fewer members beside others",
        nodes(3, gpu=8),
        rivals(),
        gang(3, gpu=8),
        causes="Outcompeted",
        change="start with 2 members in place of 3",
    )


def _calls() -> Iterator[HandMade]:
    far = [*zoned("a", "r1", "z1"), *zoned("b", "r1", "z2")]
    costs = network({("z1", "z2"): 10, ("z2", "z1"): 10})
    yield case(
        "too far from what it calls",
        far,
        costs,
        app(5),
        running_of("db", "b", cpu=8),
        web(cpu=4),
        causes="NetworkCost",
        others="InsufficientResources",
        change="let maxNetworkCost of web -> db be 10",
        group="web",
    )
    thin = network({("z1", "z2"): 1, ("z2", "z1"): 1}, capacity=100)
    yield case(
        "a thin link",
        far,
        thin,
        app(5, bandwidth=200),
        running_of("db", "b", cpu=8),
        web(cpu=4),
        causes="Bandwidth",
        others="InsufficientResources",
        change="let minBandwidth of web -> db be 100",
        group="web",
    )
    yield case(
        "far over a thin link",
        far,
        network({("z1", "z2"): 10, ("z2", "z1"): 10}, capacity=100),
        app(5, bandwidth=200),
        running_of("db", "b", cpu=8),
        web(cpu=4),
        causes="InsufficientResources",
        others="NetworkCost Bandwidth",
        change="add 1 node like b; wait until Pod default/db ends (1 pod), though they call each other",
        group="web",
    )
    yield case(
        "costs off by policy, but no room",
        far,
        costs,
        app(5),
        policy(rules={"C8": "off"}),
        running_of("db", "b", cpu=8),
        running("x", "a", cpu=8),
        web(cpu=4),
        causes="InsufficientResources",
        change="wait until Pod default/x ends",
        group="web",
    )


def zoned(name: str, region: str, zone: str) -> list[Document]:
    return [node(name, {"topology.kubernetes.io/region": region, "topology.kubernetes.io/zone": zone}, cpu=8)]


def network(costs: Mapping[tuple[str, str], int], capacity: int | None = None) -> Document:
    origins: dict[str, list[dict[str, Any]]] = {}
    for (origin, destination), cost in costs.items():
        entry: dict[str, Any] = {"destination": destination, "networkCost": cost}
        if capacity is not None:
            entry["bandwidthCapacity"] = capacity
        origins.setdefault(origin, []).append(entry)
    listed = [{"origin": origin, "costList": entries} for origin, entries in origins.items()]
    weights = {
        "name": "UserDefined",
        "topologyList": [{"topologyKey": "topology.kubernetes.io/zone", "originList": listed}],
    }
    return {
        "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
        "kind": "NetworkTopology",
        "metadata": {"name": "nt-default", "namespace": "default"},
        "spec": {"weights": [weights], "configmapName": "none"},
    }


def app(cost: int, bandwidth: int | None = None) -> Document:
    def workload(name: str) -> dict[str, str]:
        return {"kind": "Deployment", "name": name, "selector": name, "apiVersion": "apps/v1", "namespace": "default"}

    calls: dict[str, Any] = {"workload": workload("db"), "maxNetworkCost": cost}
    if bandwidth is not None:
        calls["minBandwidth"] = bandwidth
    return {
        "apiVersion": "appgroup.diktyo.x-k8s.io/v1alpha1",
        "kind": "AppGroup",
        "metadata": {"name": "shop", "namespace": "default"},
        "spec": {
            "numMembers": 2,
            "topologySortingAlgorithm": "KahnSort",
            "workloads": [{"workload": workload("web"), "dependencies": [calls]}, {"workload": workload("db")}],
        },
    }


def _labels(workload: str) -> dict[str, str]:
    return {"appgroup.diktyo.x-k8s.io": "shop", "appgroup.diktyo.x-k8s.io.workload": workload}


def running_of(workload: str, on: str, **requests: object) -> Document:
    return pod(workload, node=on, labels=_labels(workload), **requests)


def web(**requests: object) -> Document:
    return pod("web", labels=_labels("web"), **requests)


def _zones() -> Iterator[HandMade]:
    yield case(
        "no zone is large enough",
        numa_node("a", 4, 4),
        guaranteed(6),
        causes="NumaAlignment",
        change="let its pods request cpu 4 in place of 6",
        group="p",
    )
    yield case(
        "a zone is taken",
        numa_node("a", 4, 8, available=(4, 2)),
        running("x", "a", cpu=1),
        guaranteed(6),
        causes="NumaAlignment",
        change="add 1 node like a",
        group="p",
    )
    yield case(
        "zones, and no room",
        numa_node("a", 4, 4),
        running("x", "a", cpu=4),
        guaranteed(6),
        causes="InsufficientResources NumaAlignment",
        group="p",
    )


def numa_node(
    name: str, *zones: int, available: tuple[int, ...] = (), spec: Mapping[str, Any] | None = None
) -> list[Document]:
    """A node whose kubelet aligns pods to one zone."""
    made = [
        {
            "name": f"node-{at}",
            "type": "Node",
            "resources": [{"name": "cpu", "capacity": str(cpu), "allocatable": str(cpu), "available": str(free)}],
        }
        for at, (cpu, free) in enumerate(zip(zones, available or zones, strict=True))
    ]
    resource = {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": name},
        "attributes": [
            {"name": "topologyManagerPolicy", "value": "single-numa-node"},
            {"name": "topologyManagerScope", "value": "container"},
        ],
        "zones": made,
    }
    return [{**node(name, cpu=sum(zones)), **({"spec": spec} if spec else {})}, resource]


def guaranteed(cpu: int) -> Document:
    amounts = {"cpu": str(cpu), "memory": "1Gi"}
    return pod("p", spec={"containers": [{"name": "main", "resources": {"requests": amounts, "limits": amounts}}]})


ZONE = "topology.kubernetes.io/zone"
DB = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": ZONE}
OWN = {"labelSelector": {"matchLabels": {"app": "g"}}}


def in_zone(name: str, zone: str | None, **amounts: object) -> Document:
    return node(name, {ZONE: zone} if zone else None, **amounts)


def near_or_apart(kind: str, term: Mapping[str, Any]) -> dict[str, Any]:
    """A spec with a required term of podAffinity or podAntiAffinity."""
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def spread(over: str = ZONE, skew: int = 1, **more: object) -> dict[str, Any]:
    limit = {"maxSkew": skew, "topologyKey": over, "whenUnsatisfiable": "DoNotSchedule", **OWN, **more}
    return {"topologySpreadConstraints": [limit]}


def _near() -> Iterator[HandMade]:
    near = near_or_apart("podAffinity", DB)
    db: dict[str, Any] = {"labels": {"app": "db"}, "cpu": 1}
    two = [in_zone("a", "z1", gpu=1), in_zone("b", "z2", gpu=1)]
    yield case(
        "nobody to be near to",
        two,
        gang(1, gpu=1, spec=near),
        causes="PodAffinity",
        change=f"do not require its pods to be near others by {ZONE}",
    )
    yield case(
        "near a cordoned node",
        cordoned("a", {ZONE: "z1"}, gpu=1),
        two[1],
        running("db", "a", **db),
        gang(1, gpu=1, spec=near),
        causes="PodAffinity",
        others="NoEligibleNode",
        change="uncordon Node a",
    )
    yield case(
        "near, and held",
        two,
        running("db", "a", **db),
        running("x", "a", gpu=1),
        gang(1, gpu=1, spec=near),
        causes="PodAffinity",
        others="InsufficientResources",
        change="wait until Pod default/x ends",
    )
    yield case(
        "near, on a node without the label",
        two[0],
        in_zone("b", None, gpu=2),
        running("db", "a", **db),
        gang(2, gpu=1, spec=near),
        causes="PodAffinity",
        others="InsufficientResources",
        change=f"label Node b {ZONE}=z1, if that is where it is; near others by {ZONE} (its pods must be made again)",
    )


def _apart() -> Iterator[HandMade]:
    def apart(over: str) -> dict[str, Any]:
        return {"spec": near_or_apart("podAntiAffinity", OWN | {"topologyKey": over}), "labels": {"app": "g"}}

    hosts = [node(name, {"kubernetes.io/hostname": name}, gpu=8) for name in ("a", "b")]
    alone_on_a_node = apart("kubernetes.io/hostname")
    yield case(
        "one on each node",
        hosts,
        gang(3, gpu=1, **alone_on_a_node),
        causes="PodAntiAffinity",
        change="add 1 node like a; start with 2 members in place of 3",
    )
    yield case(
        "kept off by one that runs",
        in_zone("a", "z1", gpu=8),
        running("x", "a", labels={"app": "g"}, gpu=1),
        gang(1, gpu=1, **apart(ZONE)),
        causes="PodAntiAffinity",
        change="wait until Pod default/x ends",
    )
    yield case(
        "one in each zone",
        in_zone("a", "z1", gpu=8),
        in_zone("b", "z1", gpu=8),
        gang(2, gpu=1, **apart(ZONE)),
        causes="PodAntiAffinity",
        change=f"do not require its pods to be apart from others by {ZONE}",
    )


def _spread() -> Iterator[HandMade]:
    labels = {"app": "g"}
    yield case(
        "too many in one zone",
        in_zone("a", "z1", gpu=8),
        in_zone("b", "z2", gpu=1),
        gang(4, gpu=1, labels=labels, spec=spread()),
        causes="TopologySpread",
        others="InsufficientResources",
        change="let maxSkew be 2; add 1 node like b",
    )
    yield case(
        "the other zone is held",
        in_zone("a", "z1", gpu=8),
        in_zone("b", "z2", gpu=1),
        running("x", "b", gpu=1),
        gang(2, gpu=1, labels=labels, spec=spread()),
        causes="TopologySpread",
        others="InsufficientResources",
        change="wait until Pod default/x ends",
    )
    yield case(
        "no node has the label",
        in_zone("a", None, gpu=8),
        gang(2, gpu=1, labels=labels, spec=spread(skew=2)),
        causes="TopologySpread",
        change=f"label Node a {ZONE}=zone-new",
    )
    yield case(
        "a zone too few",
        in_zone("a", "z1", gpu=1),
        in_zone("b", None, gpu=8),
        gang(2, gpu=1, labels=labels, spec=spread(minDomains=2)),
        causes="TopologySpread",
        change=f"label Node b {ZONE}=zone-new",
    )


RACK = "rack"
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"


def in_rack(name: str, rack: str | None, **amounts: object) -> Document:
    return node(name, {RACK: rack} if rack else None, **amounts)


def exclusive(job_set: str, index: int = 0) -> dict[str, Any]:
    """What the pods of one child Job of a JobSet say that has each of its Jobs in a rack of its own."""
    labels = {"jobset-name": job_set, "replicatedjob-name": "w", "job-index": str(index)}
    return {
        "labels": {f"jobset.sigs.k8s.io/{key}": value for key, value in labels.items()},
        "annotations": {EXCLUSIVE: RACK},
    }


def exclusive_replica(workers_set: str) -> dict[str, Any]:
    """Labels of a pod of a replica of a LeaderWorkerSet that is exclusive in racks."""
    lws = "leaderworkerset.sigs.k8s.io"
    return {
        "labels": {f"{lws}/name": workers_set, f"{lws}/group-index": "0"},
        "annotations": {f"{lws}/exclusive-topology": RACK},
    }


def _exclusive() -> Iterator[HandMade]:
    mine, old, alone = exclusive("g"), exclusive("x"), "do not ask for a domain of rack of its own"
    my_replica, old_replica = exclusive_replica("g"), exclusive_replica("x")
    yield case(
        "another Job holds the only rack",
        in_rack("a", "r1", gpu=8),
        running_gang("x", "a", gpu=1, **old),
        gang(1, gpu=1, **mine),
        causes="Exclusive",
        change="wait until PodGroup default/x ends (1 pod)",  # an exclusive Job keeps off other Jobs, plain ones too
    )
    yield case(
        "another replica holds the only rack",
        in_rack("a", "r1", gpu=8),
        running_gang("x", "a", gpu=1, **old_replica),
        gang(1, gpu=1, **my_replica),
        causes="Exclusive",
        change=f"wait until PodGroup default/x ends (1 pod); {alone}",
    )
    yield case(
        "a node more in no rack yet",
        in_rack("a", "r1", gpu=8),
        in_rack("b", None, gpu=8),
        running_gang("x", "a", gpu=1, **old),
        gang(2, gpu=1, **mine),
        causes="Exclusive",
        others="TopologyTooNarrow",
        change="label Node b rack=rack-new; wait until PodGroup default/x ends (1 pod)",
    )
    yield case(
        "the rack that nobody holds is too small",
        [in_rack(name, "r1", gpu=8) for name in ("a", "b")],
        in_rack("c", "r2", gpu=8),
        running_gang("x", "a", cpu=1, **old),
        gang(2, gpu=8, **mine),
        causes="Exclusive",
        others="InsufficientResources",
        change="add 1 node like c; wait until PodGroup default/x ends (1 pod)",
    )
    yield case(
        "two Jobs of a gang, and one rack",
        [in_rack(name, "r1", gpu=8) for name in ("a", "b")],
        in_rack("c", None, gpu=8),
        pod_group("g", minMember=2),
        [pod(f"g-{at}", group="g", gpu=8, **exclusive("g", at)) for at in range(2)],
        causes="Exclusive",
        others="TopologyTooNarrow",
        change="label Node c rack=rack-new; start with 1 member in place of 2",
    )
    yield case(
        "held, and no room",
        in_rack("a", "r1", gpu=8),
        running("x", "a", gpu=8, **old),
        gang(1, gpu=8, **mine),
        causes="InsufficientResources Exclusive",
        change="wait until Pod default/x ends",
    )


def upstream_gang(
    count: int, least: int | None = None, *, more: tuple[Document, ...] = (), **requests: Any
) -> list[Document]:
    """A gang of Kubernetes that asks for one rack by its label, and its pods; ``more`` run already."""
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": count if least is None else least}},
            "schedulingConstraints": {"topology": [{"key": RACK}]},
        },
    }
    return [group, *more, *(upstream_member(at, **requests) for at in range(count - len(more)))]


def upstream_member(at: int, **requests: Any) -> Document:
    return pod(f"g-{at}", spec={"schedulingGroup": {"podGroupName": "g"}}, **requests)


def _labelled() -> Iterator[HandMade]:
    two, free = [in_rack("a", "r1", gpu=8), in_rack("b", "r2", gpu=8)], "do not ask for one domain of rack"
    yield case(
        "one rack by label is too small",
        two,
        upstream_gang(2, gpu=8),
        causes="TopologyTooNarrow",
        others="InsufficientResources",
        change=f"{free}; add 1 node like a; start with 1 member in place of 2",
    )
    yield case(
        "held in the rack by label",
        two,
        in_rack("c", "r2", gpu=8),
        running("x", "c", gpu=8),
        upstream_gang(2, gpu=8),
        causes="TopologyTooNarrow",
        others="InsufficientResources",
        change="wait until Pod default/x ends",
    )
    yield case(
        "a node without the rack's label",
        in_rack("a", "r1", gpu=8),
        in_rack("b", None, gpu=8),
        upstream_gang(2, gpu=8),
        causes="TopologyTooNarrow",
        others="InsufficientResources",
        change="label Node b rack=r1",
    )
    yield case(
        "no node has the rack's label",
        nodes(2, gpu=8),
        upstream_gang(2, gpu=8),
        causes="TopologyTooNarrow",
        change=f"label Nodes n0 and n1 rack=rack-new; {free}",
    )
    yield case(
        "runs in a full rack by label",
        two,
        upstream_gang(2, more=(upstream_member(1, node="a", gpu=8),), gpu=8),
        causes="TopologyTooNarrow",
        others="InsufficientResources",
        change="add 1 node like a",
    )


CASES = (
    *_eligibility(),
    *_resources(),
    *_topology(),
    *_gangs(),
    *_queues(),
    *_large_and_picky(),
    *_outcompeted(),
    *_calls(),
    *_zones(),
    *_near(),
    *_apart(),
    *_spread(),
    *_exclusive(),
    *_labelled(),
)
