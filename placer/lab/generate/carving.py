"""A Clos fabric, cut into gangs while full, so that the gangs are known to fit.

Every node is cut into *slots* (a pod each). Leaves may first be cut wholly into subgroups (``tight``): the hardest
queues, since a leaf is full only if its subgroups meet again. Gangs of the wider tiers claim slots, largest first, each
inside one domain of its tier; gangs of tier 1 share the rest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise
from operator import attrgetter
from typing import NamedTuple

from placer.lab.generate.options import GangMix, whole
from placer.lab.generate.random_source import RandomSource

__all__ = [
    "NODE_TYPES",
    "TIER_NAMES",
    "CarvedGang",
    "Fabric",
    "FreeSlots",
    "GangPart",
    "Slot",
    "build_fabric",
    "carve",
    "carve_slots",
    "cut_nodes",
    "weigh",
]


@dataclass(frozen=True)
class GangPart:
    """Equal pods of a gang.

    Parameters
    ----------
    grade, node_type
        Of their slots (:class:`Slot`); the kind of node that they select, None: any.
    blocks
        Node numbers, a tuple per subgroup, or one tuple without subgroups (``sub_size`` 0).
    sub_tier
        Tier limit of each subgroup, below that of the gang; 0: none.
    cpu, memory
        Milli-cores and MiB of a pod, which :func:`weigh` sets.
    """

    role: str
    gpus: int
    grade: int
    node_type: int | None
    blocks: tuple[tuple[int, ...], ...]
    sub_size: int = 0
    sub_tier: int = 0
    cpu: int = 0
    memory: int = 0

    @property
    def nodes(self) -> tuple[int, ...]:
        """Node of each pod."""
        return tuple(node for block in self.blocks for node in block)


@dataclass(frozen=True)
class CarvedGang:
    """A gang: its parts all lie in one domain of ``tier``."""

    tier: int
    parts: tuple[GangPart, ...]

    @property
    def pods(self) -> int:
        """Number of pods."""
        return sum(len(part.nodes) for part in self.parts)

    @property
    def gpus(self) -> int:
        """Number of GPUs."""
        return sum(len(part.nodes) * part.gpus for part in self.parts)


def span(mix: GangMix, fabric: Fabric, tier: int, gpus: int) -> tuple[int, int]:
    """Of the core 0.54 of the domain below, because Volcano's greedy was timed on such queues."""
    if mix.gang_pods:
        return mix.gang_pods[0], mix.gang_pods[1]
    per_node = mix.gpus / gpus
    if tier == 1:
        least, most = fabric.widths[0] / 4, float(fabric.widths[0])
    elif tier < fabric.tiers:
        least, most = fabric.widths[tier - 2] + 1, 0.95 * fabric.widths[tier - 1]
    else:
        least, most = fabric.widths[0] + 1, 0.54 * fabric.widths[tier - 2]
    high = max(1, round(min(most, fabric.nodes / 2) * per_node))
    return min(high, max(1, round(least * per_node))), high


class Slot(NamedTuple):
    """GPUs of a slot, kind of its node, and the grade of its pod.

    Grade 1 is rich in CPU and poor in memory, -1 the reverse, 0 neither. Both grades come in pairs of equal size on one
    node, so that together they ask for no more than their GPUs' share.
    """

    gpus: int
    node_type: int
    grade: int = 0


@dataclass
class FreeSlots:
    """Free slots by leaf and kind, counted for every domain of every tier."""

    fabric: Fabric
    source: RandomSource
    leaves: list[dict[Slot, list[int]]] = field(init=False)
    counts: list[list[Counter[Slot]]] = field(init=False)

    def __post_init__(self) -> None:
        self.leaves = [{} for _ in range(self.fabric.domains(1))]
        self.counts = [[Counter() for _ in range(self.fabric.domains(t + 1))] for t in range(self.fabric.tiers)]

    def add(self, node: int, kind: Slot) -> None:
        """Add a free slot."""
        self.leaves[self.fabric.domain(1, node)].setdefault(kind, []).append(node)
        for tier, counts in enumerate(self.counts, start=1):
            counts[self.fabric.domain(tier, node)][kind] += 1

    def free(self, tier: int, domain: int, kinds: Iterable[Slot]) -> int:
        """Count the free slots of some kinds in a domain."""
        counts = self.counts[tier - 1][domain]
        return sum(counts[kind] for kind in kinds)

    def take(self, tier: int, domain: int, kinds: Sequence[Slot], pods: int) -> tuple[int, ...]:
        """Take up to ``pods`` slots out of a domain, leaf by leaf, so that few leaves are left in pieces."""
        taken: list[int] = []
        for leaf in self.source.shuffled(self.fabric.below(tier, domain, 1)):
            for kind in kinds:
                slots = self.leaves[leaf].get(kind, [])
                count = min(pods - len(taken), len(slots))
                if count:
                    taken += slots[-count:]
                    del slots[-count:]
                    self._uncount(leaf, kind, count)
            if len(taken) == pods:
                break
        return tuple(taken)

    def _uncount(self, leaf: int, kind: Slot, count: int) -> None:
        node = self.fabric.members(1, leaf)[0]
        for tier, counts in enumerate(self.counts, start=1):
            counts[self.fabric.domain(tier, node)][kind] -= count


def cut_nodes(fabric: Fabric, mix: GangMix, source: RandomSource, fill: float) -> FreeSlots:
    """Cut nodes into slots: sizes drawn one after another, each such that the rest of the node can still be filled."""
    slots = FreeSlots(fabric, source)
    reach = whole(mix.gpus, mix.pod_sizes)
    count = max(1, round(fill * fabric.nodes))
    for node in source.shuffled(range(fabric.nodes))[:count]:
        for size, grade in _graded(source.summands(fabric.left(mix.gpus, node), mix.pod_sizes, reach), mix.uneven > 0):
            slots.add(node, Slot(size, fabric.types[node], grade))
    return slots


def _graded(sizes: Sequence[int], uneven: bool) -> Iterator[tuple[int, int]]:
    """Pair equal sizes of one node, a rich pod with a poor one; a single one keeps grade 0."""
    for size, count in sorted(Counter(sizes).items()):
        pairs = count // 2 if uneven else 0
        yield from [(size, 1), (size, -1)] * pairs
        yield from [(size, 0)] * (count - 2 * pairs)


#: Kind of slot and size of subgroups, to the nodes of each that is in no gang yet.
_Pool = dict[tuple[Slot, int], list[tuple[int, ...]]]


def tight_gangs(slots: FreeSlots, mix: GangMix) -> list[CarvedGang]:
    pool = _cut_leaves(slots, mix)
    gangs: list[CarvedGang] = []
    while pool:
        tier = slots.source.weighted(range(2, slots.fabric.tiers + 1), _tier_weights(mix))
        domain = _drawn_domain(slots, pool, tier)
        gangs.append(CarvedGang(tier, (_tight_part(slots, mix, pool, (tier, domain), "worker"),)))
        if slots.source.chance(mix.roles) and _waiting_subgroups(slots, pool, tier, domain):
            second = _tight_part(slots, mix, pool, (tier, domain), "driver")
            gangs[-1] = CarvedGang(tier, (*gangs[-1].parts, second))
    return gangs


def _tier_weights(mix: GangMix) -> list[float]:
    """Where only tier 1 has a share, the highest one takes all."""
    above = list(mix.shares[1:])
    return above if sum(above) else [0.0] * (len(above) - 1) + [1.0]


def _cut_leaves(slots: FreeSlots, mix: GangMix) -> _Pool:
    pool: _Pool = defaultdict(list)
    for leaf in range(slots.fabric.domains(1)):
        if slots.source.chance(mix.tight):
            for kind, count in sorted(slots.counts[0][leaf].items()):
                for size in _subgroup_sizes(count, mix.subgroup_sizes, slots.source):
                    pool[kind, size].append(slots.take(1, leaf, (kind,), size))
    return pool


def _subgroup_sizes(count: int, sizes: tuple[int, ...], source: RandomSource) -> list[int]:
    reach = whole(count, sizes)
    return source.summands(max(total for total in range(count + 1) if reach[total]), sizes, reach)


def _drawn_domain(slots: FreeSlots, pool: _Pool, tier: int) -> int:
    shapes = sorted(pool)
    shape = slots.source.weighted(shapes, [len(pool[shape]) for shape in shapes])
    return slots.fabric.domain(tier, slots.source.pick(pool[shape])[0])


def _waiting_subgroups(slots: FreeSlots, pool: _Pool, tier: int, domain: int) -> _Pool:
    found = {
        shape: [block for block in blocks if slots.fabric.domain(tier, block[0]) == domain]
        for shape, blocks in pool.items()
    }
    return {shape: blocks for shape, blocks in sorted(found.items()) if blocks}


def _tight_part(slots: FreeSlots, mix: GangMix, pool: _Pool, home: tuple[int, int], role: str) -> GangPart:
    tier, domain = home
    near = _waiting_subgroups(slots, pool, tier, domain)
    weights = [len(blocks) * size * kind.gpus for (kind, size), blocks in near.items()]
    shape = slots.source.weighted(list(near), weights)
    kind, size = shape
    low, high = span(mix, slots.fabric, tier, kind.gpus)
    number = max(1, int(slots.source.log_between(low, high + 0.999)) // size)
    blocks = slots.source.shuffled(near[shape])[:number]
    for block in blocks:  # equal ones may wait on one node, so each is taken once
        pool[shape].remove(block)
    if not pool[shape]:
        del pool[shape]
    selects = mix.node_types > 1 and slots.source.chance(mix.selectors)
    return GangPart(
        role=role,
        gpus=kind.gpus,
        grade=kind.grade,
        node_type=kind.node_type if selects else None,
        blocks=tuple(blocks),
        sub_size=size,
        sub_tier=1,
    )


def carve(fabric: Fabric, mix: GangMix, source: RandomSource, fill: float = 1.0) -> list[CarvedGang]:
    """Cut a share of the nodes, above 0 to 1, into gangs whose pods have no CPU and memory yet; every GPU is in one
    pod.
    """
    return carve_slots(cut_nodes(fabric, mix, source, fill), mix)


def carve_slots(slots: FreeSlots, mix: GangMix) -> list[CarvedGang]:
    """Put all free slots together to gangs, in the order they were cut."""
    gangs = [*(tight_gangs(slots, mix) if mix.tight else ()), *_wide_gangs(slots, mix)]
    for tier in range(1, slots.fabric.tiers + 1):
        for domain in slots.source.shuffled(range(slots.fabric.domains(tier))):
            gangs += _share_out(slots, mix, tier, domain)
    return gangs


def _draw_kinds(slots: FreeSlots, mix: GangMix, counts: Counter[Slot], gpus: int | None = None) -> tuple[Slot, ...]:
    kinds = sorted(kind for kind, count in counts.items() if count and gpus in (None, kind.gpus))
    chosen = slots.source.weighted(kinds, [counts[kind] * kind.gpus for kind in kinds])
    if mix.node_types > 1 and slots.source.chance(mix.selectors):
        return (chosen,)
    return tuple(kind for kind in kinds if (kind.gpus, kind.grade) == (chosen.gpus, chosen.grade))


def _wide_gangs(slots: FreeSlots, mix: GangMix) -> list[CarvedGang]:
    fabric, source = slots.fabric, slots.source
    free = slots.counts[-1][0]
    total = sum(count * kind.gpus for kind, count in free.items())
    wanted: list[tuple[int, int, tuple[Slot, ...]]] = []
    for tier in range(2, fabric.tiers + 1):
        room = mix.shares[tier - 1] * total
        while room > 0:
            kinds = _draw_kinds(slots, mix, free)
            low, high = span(mix, fabric, tier, kinds[0].gpus)
            pods = int(source.log_between(low, high + 0.999))
            room -= pods * kinds[0].gpus
            if room >= 0 or source.chance(0.5):  # on average the share is met
                wanted.append((pods, tier, kinds))
    wanted.sort(key=lambda demand: (-demand[0] * demand[2][0].gpus, demand[1]))
    claimed = [_claim(slots, mix, tier, kinds, pods) for pods, tier, kinds in wanted]
    return [gang for gang in claimed if gang is not None]


def _claim(slots: FreeSlots, mix: GangMix, tier: int, kinds: tuple[Slot, ...], pods: int) -> CarvedGang | None:
    fits = [(slots.free(tier, domain, kinds), domain) for domain in range(slots.fabric.domains(tier))]
    good = [domain for count, domain in fits if count >= pods]
    count, domain = max(fits) if not good else (pods, slots.source.pick(good))
    low, _ = span(mix, slots.fabric, tier, kinds[0].gpus)
    return _gang(slots, mix, tier, domain, kinds, count) if count >= low else None


def _gang(slots: FreeSlots, mix: GangMix, tier: int, domain: int, kinds: tuple[Slot, ...], pods: int) -> CarvedGang:
    first = _subgrouped(slots, mix, tier, domain, kinds, pods) if slots.source.chance(mix.subgroups) else None
    if first is None:
        first = _part("worker", kinds, mix, (slots.take(tier, domain, kinds, pods),))
    gang = CarvedGang(tier, (first,))
    counts = slots.counts[tier - 1][domain]
    if slots.source.chance(mix.roles) and counts.total():
        other = _draw_kinds(slots, mix, counts)
        most = min(slots.free(tier, domain, other), max(1, len(first.nodes) // 4))
        nodes = slots.take(tier, domain, other, 1 + slots.source.below(most))
        gang = replace(gang, parts=(first, _part("driver", other, mix, (nodes,))))
    return gang


def _part(role: str, kinds: tuple[Slot, ...], mix: GangMix, blocks: tuple[tuple[int, ...], ...]) -> GangPart:
    first = kinds[0]
    grade = first.grade if all(kind.grade == first.grade for kind in kinds) else 0
    return GangPart(
        role, first.gpus, grade, first.node_type if mix.node_types > 1 and len(kinds) == 1 else None, blocks
    )


def _subgrouped(
    slots: FreeSlots, mix: GangMix, tier: int, domain: int, kinds: tuple[Slot, ...], pods: int
) -> GangPart | None:
    size = slots.source.pick(mix.subgroup_sizes)
    for sub_tier in range(1, tier + 1):
        blocks = _blocks(slots, tier, domain, kinds, (pods // size, size, sub_tier))
        if blocks:
            part = _part("worker", kinds, mix, blocks)
            return replace(part, sub_size=size, sub_tier=sub_tier if sub_tier < tier else 0)
    return None


def _blocks(
    slots: FreeSlots, tier: int, domain: int, kinds: tuple[Slot, ...], shape: tuple[int, int, int]
) -> tuple[tuple[int, ...], ...]:
    number, size, sub_tier = shape
    blocks: list[tuple[int, ...]] = []
    for inner in slots.source.shuffled(slots.fabric.below(tier, domain, sub_tier)):
        while len(blocks) < number and slots.free(sub_tier, inner, kinds) >= size:
            blocks.append(slots.take(sub_tier, inner, kinds, size))
    return tuple(blocks)


def _share_out(slots: FreeSlots, mix: GangMix, tier: int, domain: int) -> list[CarvedGang]:
    """Below the highest tier fewer slots than the least gang may be left."""
    gangs: list[CarvedGang] = []
    counts = slots.counts[tier - 1][domain]
    for gpus in sorted({kind.gpus for kind in counts}, reverse=True):
        low, high = span(mix, slots.fabric, 1, gpus)
        floor = 1 if tier == slots.fabric.tiers else max(2, low)
        while slots.free(tier, domain, alike := [kind for kind in counts if kind.gpus == gpus]) >= floor:
            kinds = _draw_kinds(slots, mix, counts, gpus)
            if slots.free(tier, domain, kinds) < floor:  # of these too few, of all together enough
                kinds = tuple(sorted(kind for kind in alike if counts[kind]))
            pods = _size(slots.free(tier, domain, kinds), (low, high), floor, slots.source)
            gangs.append(_gang(slots, mix, tier, domain, kinds, pods))
    return gangs


#: Names of the tiers, lowest first, by their number.
TIER_NAMES = {3: ("leaf", "spine", "core"), 4: ("leaf", "spine", "pod", "core")}


def _size(free: int, span: tuple[int, int], floor: int, source: RandomSource) -> int:
    low, high = span
    pods = int(source.log_between(low, high + 0.999))
    return free if free - pods < floor and free <= high else min(pods, free)


@dataclass(frozen=True, slots=True)
class NodeType:
    name: str
    cpu: int
    memory: int


NODE_TYPES = (
    NodeType("balanced", 16_000, 128 * 1024),
    NodeType("cpu-rich", 24_000, 192 * 1024),
    NodeType("memory-rich", 12_000, 256 * 1024),
)


@dataclass(frozen=True)
class Fabric:
    """Nodes by number, in an order in which every domain is a range of them.

    Parameters
    ----------
    starts
        First nodes of each domain, by tier, lowest first. A domain starts where one of every lower tier does.
    types
        Indices into :data:`NODE_TYPES`.
    held
        GPUs of each node that pods hold already, with their CPU and memory; empty: none.
    """

    starts: tuple[tuple[int, ...], ...]
    types: tuple[int, ...]
    held: tuple[int, ...] = ()

    def left(self, gpus: int, node: int) -> int:
        """Free GPUs of a node that has ``gpus``."""
        return gpus - self.held[node] if self.held else gpus

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.types)

    @property
    def tiers(self) -> int:
        """Number of tiers."""
        return len(self.starts)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Nodes of the largest domain of each tier, lowest first."""
        return tuple(max(end - start for start, end in pairwise((*starts, self.nodes))) for starts in self.starts)

    def domains(self, tier: int) -> int:
        """Count the domains of a tier."""
        return len(self.starts[tier - 1])

    def domain(self, tier: int, node: int) -> int:
        """Return the domain of a node on a tier."""
        return bisect_right(self.starts[tier - 1], node) - 1

    def members(self, tier: int, domain: int) -> range:
        """Return the nodes of a domain."""
        starts = self.starts[tier - 1]
        return range(starts[domain], starts[domain + 1] if domain + 1 < len(starts) else self.nodes)

    def below(self, tier: int, domain: int, lower: int) -> range:
        """Return the domains of tier ``lower`` that lie in a domain of ``tier``."""
        nodes = self.members(tier, domain)
        return range(self.domain(lower, nodes[0]), self.domain(lower, nodes[-1]) + 1)


def build_fabric(nodes: int, mix: GangMix, source: RandomSource) -> Fabric:
    """Lay out ``nodes`` nodes in domains of equal size, the last ones smaller; kinds of nodes are mixed within every
    leaf.
    """
    widths = [mix.leaf_size, mix.leaf_size * mix.leaves_per_spine]
    if mix.spines_per_pod:
        widths.append(widths[-1] * mix.spines_per_pod)
    starts = [tuple(range(0, nodes, width)) for width in widths]
    return Fabric((*starts, (0,)), tuple(source.below(mix.node_types) for _ in range(nodes)))


#: Requests are multiples of a tenth of a core and of 64 MiB, as people write them.
GRAIN = {"cpu": 100, "memory": 64}


def weigh(gangs: Sequence[CarvedGang], fabric: Fabric, mix: GangMix, source: RandomSource) -> list[CarvedGang]:
    """Give the pods of gangs that were cut from one cluster CPU and memory that their nodes hold."""
    cpu, memory = (iter(_Loads(gangs, fabric, mix, source, resource).amounts()) for resource in ("cpu", "memory"))
    return [
        replace(gang, parts=tuple(replace(part, cpu=next(cpu), memory=next(memory)) for part in gang.parts))
        for gang in gangs
    ]


class _Loads:
    """One resource over all parts: each part asks its GPUs' share times a factor.

    Factors are drawn around 1. Those above 1 shrink until every node holds its pods. Then they grow again, part by
    part, into the room that poorer neighbours leave, so that on many nodes the resource is as scarce as GPUs.
    """

    def __init__(
        self, gangs: Sequence[CarvedGang], fabric: Fabric, mix: GangMix, source: RandomSource, resource: str
    ) -> None:
        rates = list(map(attrgetter(resource), NODE_TYPES))
        self.parts = list(chain.from_iterable(gang.parts for gang in gangs))
        self.counts = [Counter(part.nodes) for part in self.parts]
        grades = [part.grade if resource == "cpu" else -part.grade for part in self.parts]
        # The factor of a graded part is on its own side of 1.
        self.drawn = [source.between(1 - mix.uneven * (each <= 0), 1 + mix.uneven * (each >= 0)) for each in grades]
        self.factors = list(self.drawn)
        #: The GPUs' share of a pod, on the poorest kind of node that its part was cut from.
        poorest = [min(rates[fabric.types[node]] for node in counts) for counts in self.counts]
        self.shares = [part.gpus * rate for part, rate in zip(self.parts, poorest, strict=True)]
        self.rooms = [float(fabric.left(mix.gpus, node) * rates[kind]) for node, kind in enumerate(fabric.types)]
        self.grain = GRAIN[resource]

    def amounts(self) -> list[int]:
        if any(factor != 1 for factor in self.factors):
            self._shrink()
            self._grow()
        scaled = zip(self.shares, self.factors, strict=True)
        return [int(share * factor) // self.grain * self.grain for share, factor in scaled]

    def _shrink(self) -> None:
        on_node: dict[int, dict[int, int]] = defaultdict(dict)
        for index, counts in enumerate(self.counts):
            for node, count in counts.items():
                on_node[node][index] = count
        for node in sorted(on_node):
            shares = {index: self.shares[index] * count for index, count in on_node[node].items()}
            base = sum(share * min(1.0, self.factors[index]) for index, share in shares.items())
            excess = sum(share * max(0.0, self.factors[index] - 1) for index, share in shares.items())
            if base + excess > self.rooms[node]:
                scale = (self.rooms[node] - base) / excess
                for index in shares:
                    self.factors[index] = min(self.factors[index], 1 + max(0.0, self.factors[index] - 1) * scale)

    def _grow(self) -> None:
        left = list(self.rooms)
        for index, counts in enumerate(self.counts):
            for node, count in counts.items():
                left[node] -= self.shares[index] * self.factors[index] * count
        for index, wanted in enumerate(self.drawn):
            counts = self.counts[index]
            step = min(left[node] / (self.shares[index] * count) for node, count in counts.items())
            step = max(0.0, min(step, wanted - self.factors[index]))
            self.factors[index] += step
            for node, count in counts.items():
                left[node] -= self.shares[index] * step * count
