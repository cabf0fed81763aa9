"""Pods in the NUMA zones of nodes whose kubelets refuse pods that they cannot align (C10).

Pods that are the same to the kubelet of a node are of one kind there. A node is stated in one of two exact ways:

* by zone, where all pods that may come are for one zone and keep all they need: some order works if and only if they
  can be dealt out to the zones (see :func:`~placer.arrays.admission_orders.is_plain`);
* by crowd elsewhere: every number of pods of each kind that the kubelet admits in some order is listed.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from placer.arrays import Dense, Solution
from placer.arrays.admission_orders import is_plain
from placer.arrays.model import IntArray
from placer.arrays.numa import DenseNuma
from placer.arrays.packed_kubelet import PackedKubelet, State, Units
from placer.search.events import TooLarge
from placer.search.milp.variables import Linear, MilpVariables, Values, Variable

__all__ = ["MOST_CROWDS", "ByCrowd", "ByZone", "Plan", "PodKind", "ZoneRows", "plans_of", "size_of_plans"]

#: More crowds than this are not looked at: each is a search for an order. Equal nodes are looked at once.
MOST_CROWDS = 20_000

#: Kinds of a node, by number, and how many pods of each; others do not come.
Crowd = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class PodKind:
    """Pods that are the same to the kubelet of a node; ``most`` of them can come at all."""

    units: Units
    classes: tuple[int, ...]
    most: int


@dataclass(frozen=True)
class ByZone:
    """A node where pods are counted by zone; ``rooms`` is per zone its room of each resource."""

    kinds: tuple[PodKind, ...]
    rooms: tuple[tuple[int, ...], ...]

    def fitting(self, kind: int, zone: int) -> int:
        """How many pods of a kind fit into a zone."""
        (unit,) = self.kinds[kind].units
        return min(self.kinds[kind].most, *(self.rooms[zone][resource] // need for resource, need, _ in unit.amounts))


@dataclass(frozen=True)
class ByCrowd:
    """A node where crowds are listed: those that are admitted in some order, but for the empty one."""

    kinds: tuple[PodKind, ...]
    crowds: tuple[Crowd, ...]


#: How a node is stated.
Plan = ByZone | ByCrowd


def plans_of(dense: Dense, fits: Sequence[IntArray]) -> dict[int, Plan]:
    """How each node is stated whose kubelet has a say; others are absent.

    TooLarge for more than :data:`MOST_CROWDS` crowds, or one whose orders are too many to tell whether any works.
    """
    plans: dict[int, Plan] = {}
    if dense.numa is None:
        return plans
    listed, budget = dict[object, tuple[Crowd, ...]](), iter(range(MOST_CROWDS))
    for node in np.flatnonzero(dense.numa.kind >= 0).tolist():
        kinds = _kinds(dense, dense.numa, node, fits)
        start = dense.numa.start[node]
        if kinds and all(is_plain(kind.units) for kind in kinds):
            plans[node] = ByZone(kinds, tuple(map(tuple, dense.numa.kubelet(node).amounts(start))))
        elif kinds:
            key = int(dense.numa.kind[node]), start, tuple((kind.units, kind.most) for kind in kinds)
            if key not in listed:
                listed[key] = _admitted(dense.numa, node, kinds, budget)
            plans[node] = ByCrowd(kinds, listed[key])
    return plans


def size_of_plans(plans: dict[int, Plan]) -> int:
    """Most variables of the plans."""
    return sum(
        len(plan.crowds) if isinstance(plan, ByCrowd) else len(plan.kinds) * len(plan.rooms) for plan in plans.values()
    )


def _kinds(dense: Dense, numa: DenseNuma, node: int, fits: Sequence[IntArray]) -> tuple[PodKind, ...]:
    found: dict[Units, list[int]] = defaultdict(list)
    for index in range(len(dense.classes)):
        if fits[index][node] and numa.of(index, node):
            found[numa.of(index, node)].append(index)
    return tuple(
        PodKind(units, tuple(classes), sum(int(fits[index][node]) for index in classes))
        for units, classes in sorted(found.items())
    )


def _admitted(numa: DenseNuma, node: int, kinds: Sequence[PodKind], budget: Iterator[int]) -> tuple[Crowd, ...]:
    found = []
    for crowd in _possible(numa.kubelet(node), numa.start[node], kinds):
        if next(budget, None) is None:
            raise TooLarge(f"numa: more than {MOST_CROWDS:,} crowds of pods")
        pods = [kinds[kind].units for kind, count in crowd for _ in range(count)]
        if numa.order(node, pods) is not None:
            found.append(crowd)
        elif not numa.refuses(node, pods):
            raise TooLarge(f"numa: too many orders of {len(pods)} pods on a node")
    return tuple(found)


def _possible(kubelet: PackedKubelet, start: State, kinds: Sequence[PodKind]) -> Iterator[Crowd]:
    takes = [_taken(kind.units, len(kubelet.resources)) for kind in kinds]
    room = [sum(amounts) for amounts in zip(*kubelet.amounts(start), strict=True)]
    waiting: deque[tuple[Crowd, list[int]]] = deque([((), room)])
    while waiting:
        crowd, room = waiting.popleft()
        for kind in range(crowd[-1][0] + 1 if crowd else 0, len(kinds)):
            left = room
            for count in range(1, kinds[kind].most + 1):
                left = [amount - take for amount, take in zip(left, takes[kind], strict=True)]
                if min(left) < 0:
                    break
                yield (*crowd, (kind, count))
                waiting.append(((*crowd, (kind, count)), left))


def _taken(units: Units, resources: int) -> list[int]:
    found = [0] * resources
    for unit in units:
        for resource, _, take in unit.amounts:
            found[resource] += take
    return found


class ZoneRows:
    """Counts by zone, and crowds: e[n, k, z] and p[n, j] of ``models/milp.md``."""

    def __init__(self, variables: MilpVariables, plans: dict[int, Plan]) -> None:
        self.dense, self.plans, self.count = variables.dense, plans, variables.count
        program = variables.program
        self.inside: dict[tuple[int, int, int], Variable] = {}
        self.chosen: dict[int, list[Variable]] = {}
        for node, plan in plans.items():
            if isinstance(plan, ByCrowd):
                self.chosen[node] = [program.integer(f"p_{node}_{number}", 1) for number in range(len(plan.crowds))]
                continue
            for kind in range(len(plan.kinds)):
                for zone in range(len(plan.rooms)):
                    most = plan.fitting(kind, zone)
                    if most:
                        self.inside[node, kind, zone] = program.integer(f"e_{node}_{kind}_{zone}", most)

    def of_kind(self, node: int, kind: PodKind) -> Linear:
        """All pods of a kind on a node."""
        return Linear().add(1, *(self.count[index][node] for index in kind.classes))

    def fill(self, values: Values, solution: Solution) -> None:
        """Set the variables made here; where no order is found that the kubelet admits, all stay 0."""
        by_node: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for index, node, count in solution.in_order():
            by_node[node].append((index, count))
        for node in by_node.keys() & self.plans.keys():
            plan = self.plans[node]
            if isinstance(plan, ByZone):
                for (kind, zone), count in self._dealt(node, plan, by_node[node]).items():
                    values[self.inside[node, kind, zone]] = count
                continue
            placed = (self.of_kind(node, kind).at(values.__getitem__) for kind in plan.kinds)
            crowd = tuple((kind, count) for kind, count in enumerate(placed) if count)
            if crowd in plan.crowds:
                values[self.chosen[node][plan.crowds.index(crowd)]] = 1

    def _dealt(self, node: int, plan: ByZone, counts: Sequence[tuple[int, int]]) -> Counter[tuple[int, int]]:
        numa, found = self.dense.numa, Counter[tuple[int, int]]()
        assert numa is not None
        kubelet, state, pods = numa.kubelet(node), numa.start[node], numa.pods(node, counts)
        number = {kind.units: index for index, kind in enumerate(plan.kinds)}
        for position in numa.order(node, pods) or ():
            answer = kubelet.admit(state, pods[position])
            assert answer is not None
            state, zones = answer
            found[number[pods[position]], zones.bit_length() - 1] += 1
        return found
