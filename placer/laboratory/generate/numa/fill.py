"""A node of several zones, cut into pods that its kubelet admits one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from placer.instance.numa import NumaContainer, NumaDemand, NumaNode, NumaZone, Qos, Stage, TopologyManager
from placer.laboratory.generate.objects import GPU
from placer.laboratory.generate.options import whole
from placer.laboratory.generate.random_source import RandomSource
from placer.quantity import CPU, Resources

__all__ = ["MEMORY_PER_CORE", "FilledNode", "NodeShape", "Shares", "ZonePart", "demand_of", "fill", "least"]

#: MiB.
MEMORY_PER_CORE = 4096
#: MiB: memory is dealt out in such pieces.
PIECE = 64


@dataclass(frozen=True, slots=True)
class NodeShape:
    """A node's hardware and its kubelet: equal zones with so many cores and GPUs each."""

    zones: int
    cores: int
    gpus: int
    policy: str
    scope: str

    def numa(self) -> NumaNode:
        """The node as its kubelet sees it, empty."""
        room = Resources({CPU: self.cores * 1000, "memory": self.cores * MEMORY_PER_CORE << 20, GPU: self.gpus})
        names = frozenset({CPU, "memory", *((GPU,) if self.gpus else ())})
        zones = (NumaZone(number, f"node-{number}", room, room, room, names) for number in range(self.zones))
        return NumaNode(self.policy, self.scope, tuple(zones))


@dataclass(frozen=True, slots=True)
class ZonePart:
    """A container in the making: the zones it was cut from, cores, MiB and GPUs."""

    zones: tuple[int, ...]
    cores: int
    memory: int
    gpus: int

    @property
    def requests(self) -> Resources:
        """Milli-cpu, bytes, GPUs."""
        return Resources({CPU: self.cores * 1000, "memory": self.memory << 20, GPU: self.gpus})


#: A pod is one container or two.
FilledPod = tuple[ZonePart, ...]


@dataclass(frozen=True, slots=True)
class FilledNode:
    """A node and its pods, in an order in which its kubelet admits them."""

    kind: NodeShape
    pods: tuple[FilledPod, ...]

    def after(self, count: int) -> list[Resources]:
        """What each zone has left once the first ``count`` pods are there."""
        manager = TopologyManager(self.kind.numa())
        for pod in self.pods[:count]:
            if manager.admit(demand_of(pod)).refusal:
                raise AssertionError("the order was tried")
        return [zone.available for zone in manager.after().zones]


@dataclass(frozen=True, slots=True)
class Shares:
    """How zones are cut.

    Parameters
    ----------
    sizes
        Cores a container may ask for.
    fill
        How full every zone is at least, of cores and of memory, above 0 to 1.
    uneven
        How far the memory of a part strays from its share of the cores, below 1.
    wide
        Share of restricted nodes with a pod that fills two zones.
    pairs
        Share of pods with two containers.
    """

    sizes: tuple[int, ...]
    fill: float
    uneven: float
    wide: float
    pairs: float


def demand_of(pod: FilledPod) -> NumaDemand:
    """What a pod asks of zones: Guaranteed, one container after the other."""
    containers = (NumaContainer(f"c{number}", Stage.APP, part.requests) for number, part in enumerate(pod))
    return NumaDemand(Qos.GUARANTEED, tuple(containers))


def least(share: float, amount: int) -> int:
    """The least whole number, at least 1, that is such a share (in thousandths) of an amount or more."""
    return max(1, -(-round(share * 1000) * amount // 1000))


def fill(kind: NodeShape, shares: Shares, source: RandomSource) -> FilledNode:
    """Cut every zone of a node into parts, make pods of them, and find an order that the kubelet admits.

    Single containers can always be bound in the order of their zones: each finds room in its own zone or below. Pods of
    two containers may stand in each other's way; one that does is taken apart.
    """
    wide = kind.policy == "restricted" and kind.zones > 1 and source.chance(shares.wide)
    parts = [_whole(kind, (0, 1))] if wide else []
    for zone in range(2 if wide else 0, kind.zones):
        parts += _cut(kind, zone, shares, source)
    pods = _paired(parts, kind.scope, shares.pairs, source)
    while True:
        pods.sort(key=lambda pod: max(part.zones for part in pod))
        refused = _first_refused(TopologyManager(kind.numa()), pods)
        if refused is None:
            return FilledNode(kind, tuple(pods))
        torn = next(index for index in reversed(range(refused + 1)) if len(pods[index]) > 1)
        pods += [(part,) for part in pods.pop(torn)]


def _whole(kind: NodeShape, zones: tuple[int, ...]) -> ZonePart:
    """All of some zones."""
    count = len(zones)
    return ZonePart(zones, count * kind.cores, count * kind.cores * MEMORY_PER_CORE, count * kind.gpus)


def _cut(kind: NodeShape, zone: int, shares: Shares, source: RandomSource) -> list[ZonePart]:
    """Parts that together take nearly all of a zone's cores and memory, and all of its GPUs."""
    reach = whole(kind.cores, shares.sizes)
    left = source.pick([total for total in range(least(shares.fill, kind.cores), kind.cores + 1) if reach[total]])
    cores: list[int] = []
    while left:
        cores.append(source.pick([size for size in shares.sizes if size <= left and reach[left - size]]))
        left -= cores[-1]
    memory = _memory(kind, cores, shares, source)
    gpus = [0] * len(cores)
    for _ in range(kind.gpus):
        gpus[source.below(len(gpus))] += 1
    return [ZonePart((zone,), *amounts) for amounts in zip(cores, memory, gpus, strict=True)]


def _memory(kind: NodeShape, cores: Sequence[int], shares: Shares, source: RandomSource) -> list[int]:
    """Memory of the parts of a zone, in whole pieces, each at least one; the last pieces go to the first part."""
    room = kind.cores * MEMORY_PER_CORE // PIECE
    target = max(least(shares.fill, room), int(source.between(shares.fill, 1) * room))
    weights = [each * source.between(1 - shares.uneven, 1 + shares.uneven) for each in cores]
    pieces = [max(1, int(target * weight / sum(weights))) for weight in weights]
    pieces[0] += target - sum(pieces)
    return [PIECE * each for each in pieces]


def _paired(parts: Sequence[ZonePart], scope: str, share: float, source: RandomSource) -> list[FilledPod]:
    """Pods of one part or two; with scope pod both are of one zone, else of any two, the lower one first."""
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


def _first_refused(manager: TopologyManager, pods: Sequence[FilledPod]) -> int | None:
    refusals = (index for index, pod in enumerate(pods) if manager.admit(demand_of(pod)).refusal)
    return next(refusals, None)
