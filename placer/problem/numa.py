"""NUMA zones of nodes, and the Topology Manager of a kubelet, for pods that come one after another (C10).

models/numa.md has the mathematics. :mod:`placer.rules` judges by this; methods ask
:mod:`placer.arrays.packed_kubelet`, which is many times faster.

Source: Kubernetes ``pkg/kubelet/cm/topologymanager``, ``cpumanager/policy_static.go`` (whole cores, ``cpusToReuse``)
and ``devicemanager/topology_hints.go`` (``devicesToReuse``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from itertools import accumulate
from typing import Final, NamedTuple, TypeVar

from placer.base.quantity import CPU, Resources, format_amount

#: Policies of the kubelet's Topology Manager, weakest first.
TOPOLOGY_MANAGER_POLICIES = ("none", "best-effort", "restricted", "single-numa-node")
#: Stands for a policy or scope that is written and not known: that kubelet may refuse any pod that it aligns.
UNKNOWN = "unknown"
STRICT = frozenset({"restricted", "single-numa-node", UNKNOWN})
SCOPES = ("container", "pod")
#: ``maxNUMANodes`` of a kubelet by default.
MAX_NUMA_NODES = 8
HUGE_PAGES = "hugepages-"
_NATIVE = frozenset({"cpu", "memory", "ephemeral-storage", "storage", "pods"})


@dataclass(frozen=True, slots=True)
class NumaZone:
    """A NUMA zone of a node; amounts in milli-cpu, bytes, counts.

    ``id``: 0 .. 63. ``capacity``: decides widths of ``restricted``. ``available``: for the next pod. ``lists``:
    resources that it names, also with 0. ``costs``: no rule uses them.
    """

    id: int
    name: str
    capacity: Resources
    available: Resources
    allocatable: Resources
    lists: frozenset[str]
    costs: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class NumaNode:
    """Settings and zones of the kubelet of a node.

    ``policy``: of :data:`TOPOLOGY_MANAGER_POLICIES`, or :data:`UNKNOWN`. ``scope``: of :data:`SCOPES`.
    ``max_numa_nodes``: for a scheduler's score.
    """

    policy: str
    scope: str
    zones: tuple[NumaZone, ...]
    max_numa_nodes: int = field(default=MAX_NUMA_NODES, compare=False)

    @property
    def strict(self) -> bool:
        """Whether C10 applies: this kubelet refuses pods that it cannot align."""
        return self.policy in STRICT

    @property
    def lists(self) -> frozenset[str]:
        """Resources that any zone names; no other is aligned."""
        return frozenset().union(*(zone.lists for zone in self.zones))


class Qos(Enum):
    """Quality of service class of a pod, by Kubernetes' rule."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


class Stage(Enum):
    """When a container runs."""

    INIT = "init container"  #: before the others and alone; ends
    SIDECAR = "sidecar"  #: an init container that stays
    APP = "container"


@dataclass(frozen=True, slots=True)
class NumaContainer:
    """A container as the kubelet aligns it; a request left out is its limit."""

    name: str = field(compare=False)
    stage: Stage
    requests: Resources


@dataclass(frozen=True, slots=True)
class NumaDemand:
    """A pod's demands on the zones of its node.

    ``containers``: in the order of admission. ``overhead``: counts with scope pod. ``pod_level``: requests are the
    pod's, so only devices are aligned.
    """

    qos: Qos
    containers: tuple[NumaContainer, ...]
    overhead: Resources = field(default_factory=Resources)
    pod_level: bool = False

    @property
    def pinned(self) -> bool:
        """Whether its cpu, memory and hugepages are aligned."""
        return self.qos is Qos.GUARANTEED and not self.pod_level


def is_device(resource: str) -> bool:
    """Whether a resource is aligned for pods of every QoS class."""
    return resource not in _NATIVE and not resource.startswith(HUGE_PAGES)


#: No pod gets so much of anything: the kubelet's own amounts have 63 bits, and sums are made of them.
MOST_ALIGNED: Final = 2**62

_Resource = TypeVar("_Resource")


class Alignment(NamedTuple):
    """Amounts that are aligned at once, and ``take``, the part that is taken.

    ``label``: who asks. ``again``: resources of an init container that later ones of the pod get again.
    """

    label: str
    need: Mapping[str, int]
    take: Mapping[str, int]
    again: Collection[str] = ()


class Admission(NamedTuple):
    """``zones`` of all containers together; ``refusal``: empty: admitted."""

    zones: tuple[str, ...]
    refusal: str = ""


class TopologyManager:
    """The Topology Manager of one node, from the amounts that are available before the first pod comes.

    Examples
    --------
    >>> from placer.problem.numa import NumaContainer, NumaZone, Qos
    >>> four, three = Resources({"cpu": 4000}), Resources({"cpu": 3000, "memory": 5})
    >>> zones = [NumaZone(i, f"node-{i}", four, room, four, frozenset(["cpu"])) for i, room in enumerate((three, four))]
    >>> manager = TopologyManager(NumaNode("single-numa-node", "container", tuple(zones)))
    >>> pod = NumaDemand(Qos.GUARANTEED, (NumaContainer("main", Stage.APP, three),))
    >>> manager.admit(pod).zones, manager.admit(pod).zones
    (('node-0',), ('node-1',))
    """

    def __init__(self, node: NumaNode) -> None:
        self.node, self.resources = node, aligned_resources(node)
        self.left = [{name: zone.available[name] for name in self.resources} for zone in node.zones]

    def admit(self, demand: NumaDemand | None) -> Admission:
        """Let a pod come; a refused one takes nothing."""
        before = [dict(room) for room in self.left]
        used: set[int] = set()
        again: Counter[tuple[int, str]] = Counter()  #: zone and resource: what containers that come get again
        for each in alignments_of(demand, self.node.scope, self.resources):
            held = sorted({zone for (zone, name), amount in again.items() if amount > 0 and name in each.need})
            zones = self._zones_for(each.need, held)
            if zones is None:
                refusal = self._refusal(each, held)
                self.left = before
                return Admission((), refusal)
            again |= self._parts({name: each.need[name] for name in each.again}, zones)
            again -= self._take(each.take, zones)
            used.update(zones)
        return Admission(tuple(self.node.zones[zone].name for zone in sorted(used)))

    def force(self, demand: NumaDemand | None) -> None:
        """Take for a pod that runs though it would be refused, in any zone."""
        for each in alignments_of(demand, self.node.scope, self.resources):
            self._take(each.take, range(len(self.left)))

    def after(self) -> NumaNode:
        """The node with the amounts that its zones have left."""
        zones = (
            replace(zone, available=Resources({**zone.available, **room}))
            for zone, room in zip(self.node.zones, self.left, strict=True)
        )
        return replace(self.node, zones=tuple(zones))

    def _zones_for(self, need: Mapping[str, int], held: Sequence[int]) -> Sequence[int] | None:
        widths = {self._width(name, amount) for name, amount in need.items()}
        possible = len(widths) == 1 and max(need.values()) < MOST_ALIGNED
        found = lowest_set(self.left, need, min(widths), held) if possible else None
        if found is None and self.node.policy == "best-effort":
            # Nothing is refused: the fewest zones that have it all, else all zones.
            every = range(len(self.left))
            sets = (lowest_set(self.left, need, width, held) for width in range(1, len(every)))
            return next((zones for zones in sets if zones is not None), every)
        return found

    def _width(self, resource: str, amount: int) -> int:
        if self.node.policy == "single-numa-node":
            return 1
        if self.node.policy == UNKNOWN:
            return 0
        totals = accumulate(sorted((zone.capacity[resource] for zone in self.node.zones), reverse=True))
        return next((width for width, total in enumerate(totals, 1) if total >= amount), 0)

    def _parts(self, amounts: Mapping[str, int], zones: Iterable[int]) -> Counter[tuple[int, str]]:
        parts: Counter[tuple[int, str]] = Counter()
        for name, amount in amounts.items():
            for zone in zones:
                parts[zone, name] = min(amount, self.left[zone][name])
                amount -= parts[zone, name]
        return parts

    def _take(self, take: Mapping[str, int], zones: Iterable[int]) -> Counter[tuple[int, str]]:
        parts = self._parts(take, zones)
        for (zone, name), part in parts.items():
            self.left[zone][name] -= part
        return parts

    def _refusal(self, asking: Alignment, held: Sequence[int]) -> str:
        asked = f"{asking.label} asks for {_amounts(asking.need, asking.need)}"
        if self.node.policy == UNKNOWN:
            return f"{asked}, to be aligned by a policy that is not known"
        widths = {name: self._width(name, amount) for name, amount in asking.need.items()}
        beyond = [name for name, width in widths.items() if width == 0]
        if beyond:
            return f"{asked}, of {', '.join(beyond)} more than all zones have together"
        width, *others = set(widths.values())
        if others:
            said = ", ".join(f"{name} {width}" for name, width in widths.items())
            return f"{asked}, which takes different numbers of zones: {said}"
        names = " and ".join(self.node.zones[zone].name for zone in held)
        again = f" with {names}, which the kubelet reuses from an earlier init container"
        where = "one zone" if width == 1 else f"{width} zones"
        return f"{asked} in {where}{again * bool(held)}: {'; '.join(self._rooms(asking.need))}"

    def _rooms(self, need: Mapping[str, int]) -> Iterator[str]:
        for zone, room in zip(self.node.zones, self.left, strict=True):
            yield f"{zone.name} has {_amounts(room, need)}"


def lowest_set(
    rooms: Sequence[Mapping[_Resource, int]],
    need: Mapping[_Resource, int],
    width: int,
    held: Collection[int] = (),
    below: int | None = None,
) -> tuple[int, ...] | None:
    """The lowest set of ``width`` zones (as bit masks) that has room for ``need``, sorted; None: there is none.

    ``held``: zones that must be in the set. ``below``: only so many zones are looked at.

    Examples
    --------
    >>> zones = [{"cpu": 1}, {"cpu": 2}, {"cpu": 3}, {"cpu": 8}]
    >>> lowest_set(zones, {"cpu": 5}, 2), lowest_set(zones, {"cpu": 5}, 2, [3])
    ((1, 2), (0, 3))
    """
    below = len(rooms) if below is None else below
    if width == 1:
        return _lowest_zone(rooms, need, held or range(below)) if len(held) < 2 else None
    if not _largest_suffice(rooms[:below], need, width):
        return None
    for highest in range(max([width - 1, *held]), below):
        rest = {name: amount - rooms[highest][name] for name, amount in need.items()}
        found = lowest_set(rooms, rest, width - 1, {*held} - {highest}, highest)
        if found is not None:
            return (*found, highest)
    return None


def _lowest_zone(
    rooms: Sequence[Mapping[_Resource, int]], need: Mapping[_Resource, int], zones: Iterable[int]
) -> tuple[int, ...] | None:
    fitting = (zone for zone in zones if all(rooms[zone][name] >= amount for name, amount in need.items()))
    return next(((zone,) for zone in fitting), None)


def _largest_suffice(rooms: Sequence[Mapping[_Resource, int]], need: Mapping[_Resource, int], width: int) -> bool:
    """If the zones with most of each resource, chosen for each alone, do not suffice, no set does."""
    largest_first = {name: sorted((room[name] for room in rooms), reverse=True) for name in need}
    return width > 0 and all(sum(largest_first[name][:width]) >= amount for name, amount in need.items())


# -------------------------------------------------------------------------------------------------- demands of pods


def aligned_resources(node: NumaNode) -> tuple[str, ...]:
    """Resources that a kubelet aligns, sorted: cpu, memory, hugepages and devices that a zone lists."""
    if node.policy == "none":
        return ()
    native = (CPU, "memory")
    return tuple(
        sorted(name for name in node.lists if name in native or name.startswith(HUGE_PAGES) or is_device(name))
    )


def aligns(node: NumaNode, demand: NumaDemand | None) -> bool:
    """Whether a kubelet aligns anything of a pod."""
    return bool(alignments_of(demand, node.scope, aligned_resources(node)))


def alignments_of(demand: NumaDemand | None, scope: str, resources: tuple[str, ...]) -> tuple[Alignment, ...]:
    """Alignments of a pod by a kubelet, in order; with scope pod one, at its worst moment."""
    if demand is None:
        return ()
    return _alignments(demand, tuple([each.name for each in demand.containers]), scope, resources)


@lru_cache(maxsize=10_000)
def _alignments(
    demand: NumaDemand,
    names: tuple[str, ...],
    scope: str,
    resources: tuple[str, ...],
) -> tuple[Alignment, ...]:
    return tuple(_of_pod(demand, resources) if scope == "pod" else _of_containers(demand, names, resources))


def _of_containers(demand: NumaDemand, names: Sequence[str], resources: Sequence[str]) -> Iterator[Alignment]:
    """Names come from outside, since demands are equal whatever their containers are called."""
    for name, each in zip(names, demand.containers, strict=True):
        amounts = _aligned(demand, each.requests, resources)
        if amounts:
            label = f"{each.stage.value} {name}".strip()
            if each.stage is Stage.INIT:
                again = tuple(resource for resource in amounts if resource == CPU or is_device(resource))
                yield Alignment(label, amounts, {}, again)
            else:
                yield Alignment(label, amounts, amounts)


def _of_pod(demand: NumaDemand, resources: Sequence[str]) -> Iterator[Alignment]:
    need: dict[str, int] = {}
    take: dict[str, int] = {}
    for each in demand.containers:
        for name, amount in _aligned(demand, each.requests, resources).items():
            before = take.get(name, 0)
            need[name] = max(need.get(name, 0), before + amount)
            if each.stage is not Stage.INIT:
                take[name] = before + amount
    if need:
        over = demand.overhead
        yield Alignment(
            "the pod",
            {name: need[name] + over[name] for name in sorted(need)},
            {name: take.get(name, 0) + over[name] for name in need},
        )


def _aligned(demand: NumaDemand, requests: Resources, resources: Sequence[str]) -> dict[str, int]:
    return {
        name: requests[name]
        for name in resources
        if requests[name] and (is_device(name) or (demand.pinned and (name != CPU or requests[name] % 1000 == 0)))
    }


def _amounts(amounts: Mapping[str, int], names: Iterable[str]) -> str:
    return ", ".join(f"{name} {format_amount(name, amounts[name])}" for name in names)
