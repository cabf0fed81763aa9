"""Family ``numa``: nodes of several NUMA zones, filled with Guaranteed pods in an order that the kubelet admits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from placer.base.quantity import CPU, Resources
from placer.lab.generate.objects import (
    GPU,
    Document,
    Generated,
    by_name,
    created,
    most_pods,
    names_by_chance,
    node_object,
    plant_pod,
    pod_object,
    requests,
)
from placer.lab.generate.options import FamilyOptions, listed, option, whole
from placer.lab.generate.random_source import RandomSource
from placer.problem import Key
from placer.problem.numa import NumaContainer, NumaDemand, NumaNode, NumaZone, Qos, Stage, TopologyManager

__all__ = ["NumaOptions", "numa"]

#: MiB.
MEMORY_PER_CORE = 4096
#: MiB: memory is dealt out in such pieces.
PIECE = 64
#: Distance of a zone to itself and to another, as firmware tells them.
NEAR, FAR = 10, 21


@dataclass(frozen=True, kw_only=True)
class NumaOptions(FamilyOptions):
    """Options of ``numa``."""

    nodes: int = option(16, "number of nodes", 1, 100_000)
    zones: tuple[int, ...] = option((2, 4, 8), "NUMA zones a node may have", 1, 8)
    cores: int = option(24, "cores per zone, each with 4 GiB of memory", 1, 512)
    gpus: int = option(2, "GPUs per zone", 0, 64)
    pod_cores: tuple[int, ...] = option((2, 3, 4, 6, 8, 12), "cores a container may ask for", 1, 512)
    fill: float = option(0.95, "how full every zone is at least, of cores and of memory", 0.01)
    uneven: float = option(0.3, "how far the memory of a pod strays from its share of cores", 0, 0.9)
    pod_scope: float = option(0.5, "share of nodes whose kubelet aligns pods as a whole, not container by container")
    restricted: float = option(0.0, "share of nodes with policy restricted; the others have single-numa-node")
    wide: float = option(0.5, "share of restricted nodes with a pod that fills two zones")
    pairs: float = option(0.3, "share of pods with two containers")
    in_order: float = option(0.5, "share of nodes whose pods are admitted in the order of their creation")
    running: float = option(0.0, "share of each node's pods that run already, those bound first")

    def check(self) -> None:
        """Check that zones can be filled."""
        self.demand(bool(self.zones), "zones", "an empty list", "at least one number")
        self.demand(bool(self.pod_cores), "pod_cores", "an empty list", "at least one size")
        low = least(self.fill, self.cores)
        fits = any(whole(self.cores, self.pod_cores)[low:])
        self.demand(fits, "pod_cores", listed(self.pod_cores), f"sizes that sum to {low} to {self.cores} cores, a zone")


def numa(options: NumaOptions) -> Generated:
    """Make nodes with NUMA zones, and a queue that is known to fit.

    Nearly all cores and memory of every zone and all of its GPUs are planted. The planted placement lists all pending
    pods, node by node in an order in which the kubelet admits them.
    """
    mix = options
    kinds, source = RandomSource(mix.seed, "nodes"), RandomSource(mix.seed, "pods")
    filled = [_fill(_kind(mix, kinds), mix, source) for _ in range(mix.nodes)]
    documents, planted = _documents(filled, mix, RandomSource(mix.seed, "objects"))
    pods = [pod for _, there in filled for pod in there]
    zones = sum(kind.zones for kind, _ in filled)
    summary = {
        "nodes": mix.nodes,
        "zones": zones,
        "cores": zones * mix.cores,
        "coresPlanted": sum(part.cores for pod in pods for part in pod),
        "gpus": zones * mix.gpus,
        "pods": len(pods),
        "podsOfTwoContainers": sum(len(pod) > 1 for pod in pods),
        "podsRunning": len(pods) - len(planted),
        "podsPlanted": len(planted),
    }
    return Generated(documents, planted, summary)


@dataclass(frozen=True, slots=True)
class NodeShape:
    """A node's hardware and its kubelet: equal zones with so many cores and GPUs each."""

    zones: int
    cores: int
    gpus: int
    policy: str
    scope: str

    def numa(self) -> NumaNode:
        room = Resources({CPU: self.cores * 1000, "memory": self.cores * MEMORY_PER_CORE << 20, GPU: self.gpus})
        names = frozenset({CPU, "memory", *((GPU,) if self.gpus else ())})
        zones = (NumaZone(number, f"node-{number}", room, room, room, names) for number in range(self.zones))
        return NumaNode(self.policy, self.scope, tuple(zones))


def _kind(mix: NumaOptions, source: RandomSource) -> NodeShape:
    policy = "restricted" if source.chance(mix.restricted) else "single-numa-node"
    scope = "pod" if source.chance(mix.pod_scope) else "container"
    return NodeShape(source.pick(mix.zones), mix.cores, mix.gpus, policy, scope)


@dataclass(frozen=True, slots=True)
class ZonePart:
    """A container in the making: the zones it was cut from, cores, MiB and GPUs."""

    zones: tuple[int, ...]
    cores: int
    memory: int
    gpus: int


#: A pod is one container or two.
FilledPod = tuple[ZonePart, ...]


#: A node and its pods, in an order in which its kubelet admits them.
FilledNode = tuple[NodeShape, Sequence[FilledPod]]


def _left(kind: NodeShape, pods: Sequence[FilledPod]) -> list[Resources]:
    manager = TopologyManager(kind.numa())
    if _first_refused(manager, pods) is not None:
        raise AssertionError("the order was tried")
    return [zone.available for zone in manager.after().zones]


def _first_refused(manager: TopologyManager, pods: Iterable[FilledPod]) -> int | None:
    for index, parts in enumerate(pods):
        amounts = [Resources({CPU: p.cores * 1000, "memory": p.memory << 20, GPU: p.gpus}) for p in parts]
        containers = (NumaContainer(f"c{number}", Stage.APP, each) for number, each in enumerate(amounts))
        if manager.admit(NumaDemand(Qos.GUARANTEED, tuple(containers))).refusal:
            return index
    return None


def least(share: float, amount: int) -> int:
    """The share counts in thousandths; at least 1."""
    return max(1, -(-round(share * 1000) * amount // 1000))


def _fill(kind: NodeShape, mix: NumaOptions, source: RandomSource) -> FilledNode:
    """Single containers can always be bound in the order of their zones: each finds room in its own zone or below. Pods
    of two containers may stand in each other's way; one that does is taken apart.
    """
    wide = kind.policy == "restricted" and kind.zones > 1 and source.chance(mix.wide)
    both = ZonePart((0, 1), 2 * kind.cores, 2 * kind.cores * MEMORY_PER_CORE, 2 * kind.gpus)
    parts = [both] if wide else []
    for zone in range(2 if wide else 0, kind.zones):
        parts += _cut(kind, zone, mix, source)
    return kind, _in_order(kind, _paired(parts, kind.scope, mix.pairs, source))


def _in_order(kind: NodeShape, pods: list[FilledPod]) -> list[FilledPod]:
    while True:
        pods.sort(key=lambda pod: max(part.zones for part in pod))
        refused = _first_refused(TopologyManager(kind.numa()), pods)
        if refused is None:
            return pods
        torn = next(index for index in reversed(range(refused + 1)) if len(pods[index]) > 1)
        pods += [(part,) for part in pods.pop(torn)]


def _cut(kind: NodeShape, zone: int, mix: NumaOptions, source: RandomSource) -> list[ZonePart]:
    reach = whole(kind.cores, mix.pod_cores)
    total = source.pick([total for total in range(least(mix.fill, kind.cores), kind.cores + 1) if reach[total]])
    cores = source.summands(total, mix.pod_cores, reach)
    memory = _memory(kind, cores, mix, source)
    gpus = [0] * len(cores)
    for _ in range(kind.gpus):
        gpus[source.below(len(gpus))] += 1
    return [ZonePart((zone,), *amounts) for amounts in zip(cores, memory, gpus, strict=True)]


def _memory(kind: NodeShape, cores: Sequence[int], mix: NumaOptions, source: RandomSource) -> list[int]:
    room = kind.cores * MEMORY_PER_CORE // PIECE
    target = max(least(mix.fill, room), int(source.between(mix.fill, 1) * room))
    weights = [each * source.between(1 - mix.uneven, 1 + mix.uneven) for each in cores]
    pieces = [max(1, int(target * weight / sum(weights))) for weight in weights]
    pieces[0] += target - sum(pieces)
    return [PIECE * each for each in pieces]


def _paired(parts: Sequence[ZonePart], scope: str, share: float, source: RandomSource) -> list[FilledPod]:
    left, pods = source.shuffled(parts), list[FilledPod]()
    while left:
        first = left.pop()
        fitting = [index for index, part in enumerate(left) if scope == "container" or part.zones == first.zones]
        if fitting and source.chance(share):
            second = left.pop(source.pick(fitting))
            pods.append((first, second) if first.zones <= second.zones else (second, first))
        else:
            pods.append((first,))
    return pods


def _documents(
    filled: Sequence[FilledNode], mix: NumaOptions, source: RandomSource
) -> tuple[list[Document], dict[Key, str]]:
    names = names_by_chance("node", len(filled), source)
    count = sum(len(there) for _, there in filled)
    pod_names = iter(names_by_chance("pod", count, source))
    ages = iter(source.shuffled(range(count)))
    nodes: list[Document] = []
    zones: list[Document] = []
    pods: list[Document] = []
    planted: dict[Key, str] = {}
    for name, (kind, there) in zip(names, filled, strict=True):
        runs = int(mix.running * len(there))
        nodes.append(_node(name, kind, len(there)))
        zones.append(_topology(name, kind, _left(kind, there[:runs])))
        seconds = [next(ages) for _ in there]
        if source.chance(mix.in_order):
            seconds.sort()
        for number, (parts, second) in enumerate(zip(there, seconds, strict=True)):
            rooms = [requests(part.gpus, part.cores * 1000, part.memory) for part in parts]
            containers = [(f"c{index}", room) for index, room in enumerate(rooms)]
            pod = pod_object(next(pod_names), "job", containers, creationTimestamp=created(second))
            pods.append(plant_pod(pod, name, number < runs, planted))
    return [*by_name(nodes), *by_name(zones), *by_name(pods)], planted


def _node(name: str, kind: NodeShape, pods: int) -> Document:
    cores = kind.zones * kind.cores
    room = requests(kind.zones * kind.gpus, cores * 1000, cores * MEMORY_PER_CORE)
    return node_object(name, {}, room | {"pods": most_pods(pods)})


def _topology(name: str, kind: NodeShape, rooms: Sequence[Resources]) -> Document:
    total = requests(kind.gpus, kind.cores * 1000, kind.cores * MEMORY_PER_CORE)
    zones = [f"node-{number}" for number in range(kind.zones)]
    left = [requests(0, room[CPU], room["memory"] >> 20) | {GPU: str(room[GPU])} for room in rooms]
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": name},
        "attributes": [
            {"name": "topologyManagerPolicy", "value": kind.policy},
            {"name": "topologyManagerScope", "value": kind.scope},
        ],
        "zones": [
            {
                "name": zone,
                "type": "Node",
                "costs": [{"name": other, "value": NEAR if other == zone else FAR} for other in zones],
                "resources": [
                    {"name": resource, "capacity": amount, "allocatable": amount, "available": free[resource]}
                    for resource, amount in total.items()
                ],
            }
            for zone, free in zip(zones, left, strict=True)
        ],
    }
