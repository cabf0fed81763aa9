"""Pods of workloads that call each other, counted by area and by node, and pairs of them (C8, C9, O3).

The number of pairs is a product of two counts; one is a sum of *steps*, whether there are at least 1, 2, 3 ..., so
every product is one of a 0/1 variable and a count, which is linear.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product

import numpy as np
from ortools.sat.python.cp_model import IntVar

from placer.arrays import Call, DenseNetwork
from placer.arrays.solution import BoolArray, IntArray
from placer.search.exact.count_model import Linear, reaches, solver_form, value_at
from placer.search.exact.variables import ExactVariables

#: Pair of areas, that of the pod of ``Tie.one`` first, to variables whose sum is the number of pairs.
Pairs = dict[tuple[int, int], list[IntVar]]


@dataclass(frozen=True)
class Tie:
    """Two workloads of which one calls the other, or each the other; or one that calls itself.

    ``one`` is not above ``other``. ``able`` is bool, shape (areas, areas): where a pair may be (C8); ``cost`` is int64,
    of the same shape: cost of a pair on two nodes (O3). The pod of ``one`` is first.
    """

    one: int
    other: int
    calls: tuple[Call, ...]
    able: BoolArray
    cost: IntArray


def surplus_of(network: DenseNetwork, pods: IntArray, calls: Iterable[Call], area: int) -> int:
    """How many more callees are too far from a caller than near enough (C8, ``majority``).

    ``pods`` is int64, shape (workloads, areas); ``calls`` are all of the caller's. It is not among its own callees.
    """
    signs = ((call, 1 - 2 * network.near(call.limit)[area]) for call in calls)
    return sum(int(sign @ pods[call.destination]) + (call.destination == call.origin) for call, sign in signs)


class CallPairs:
    """Variables and rows of workloads that call each other, per workload.

    ``tight``: all pairs are counted exactly (O3), else only those that C9 needs, and from above. ``most``, ``bound``
    and ``leaving`` are int64, shape (workloads, areas): most new pods, and those that are there before.
    """

    def __init__(self, variables: ExactVariables, network: DenseNetwork, *, tight: bool) -> None:
        self.variables, self.network, self.tight = variables, network, tight
        self.dense, self.model = variables.dense, variables.model
        count = len(network.workloads)
        self.size = [0] * count
        self.most: IntArray = np.zeros((count, len(network.cost)), dtype=np.int64)
        self.bound, self.leaving = np.zeros_like(self.most), np.zeros_like(self.most)
        self.bound_on: list[dict[int, int]] = [defaultdict(int) for _ in range(count)]
        self.in_area: list[dict[int, list[IntVar]]] = [defaultdict(list) for _ in range(count)]
        self.at_place: list[dict[int, list[IntVar]]] = [defaultdict(list) for _ in range(count)]
        self.most_at: list[dict[int, int]] = [defaultdict(int) for _ in range(count)]
        self.area = [int(network.area[place.nodes[0]]) for place in variables.places]
        self._count_new()
        self._count_before()
        self._here: dict[tuple[int, int], IntVar] = {}
        self._steps: dict[tuple[int, int], list[IntVar]] = {}
        self._steps_at: dict[tuple[int, int], list[IntVar]] = {}
        self._pairs: dict[tuple[int, int], Pairs] = {}

    def _count_new(self) -> None:
        for index, item in enumerate(self.variables.bundles.items):
            owner = self.dense.workload_of.get(item.classes[0])
            if owner is None:
                continue
            self.size[owner] += item.total
            here: IntArray = np.zeros(len(self.network.cost), dtype=np.int64)
            for place, variable in self.variables.counts[index].items():
                most = int(self.variables.sizes[index][place])
                self.in_area[owner][self.area[place]].append(variable)
                self.at_place[owner][place].append(variable)
                self.most_at[owner][place] += most
                here[self.area[place]] += most
            self.most[owner] += np.minimum(here, item.total)

    def _count_before(self) -> None:
        for number, workload in enumerate(self.network.workloads):
            for node, area, pods in workload.bound:
                self.bound[number, area] += pods
                if node >= 0:
                    self.bound_on[number][node] += pods
            for _, area, pods in workload.leaving:
                self.leaving[number, area] += pods

    @property
    def count(self) -> int:
        """About how many variables calls need, and rows that keep two workloads out of areas too far apart."""
        total, most = 0, np.where(self.closed, 0, self.most)
        for tie in self.ties:
            total += int(np.outer(most[tie.one] > 0, most[tie.other] > 0)[~tie.able].sum())
            one, other, able = self._stepped(tie)
            total += int(np.outer(most[one], most[other] > 0)[able].sum())
            at = self.most_at[other] if self.tight else {}
            total += sum(min(pods, at.get(place, 0)) for place, pods in self.most_at[one].items())
        return total

    @cached_property
    def ties(self) -> tuple[Tie, ...]:
        """Pairs of workloads between which there are calls, and of which one has pods that wait."""
        between: dict[tuple[int, int], list[Call]] = defaultdict(list)
        for call in self.network.calls:
            if self.size[call.origin] or self.size[call.destination]:
                between[min(call.origin, call.destination), max(call.origin, call.destination)].append(call)
        return tuple(self._tie(*ends, tuple(calls)) for ends, calls in between.items())

    def _tie(self, one: int, other: int, calls: tuple[Call, ...]) -> Tie:
        able, cost = np.ones_like(self.network.cost, dtype=bool), np.zeros_like(self.network.cost)
        for call in calls:
            near = np.ones_like(able) if self.network.majority else self.network.near(call.limit)
            turned = call.origin != one
            able &= near.T if turned else near
            cost += self.network.cost.T if turned else self.network.cost
        return Tie(one, other, calls, able & able.T if one == other else able, cost)

    @cached_property
    def closed(self) -> BoolArray:
        """Whether a running pod is too far for new pods of a workload (C8): bool, (workloads, areas)."""
        found: BoolArray = np.zeros(self.most.shape, dtype=bool)
        for tie in self.ties:
            found[tie.one] |= ~tie.able[:, self.bound[tie.other] > 0].all(axis=1)
            found[tie.other] |= ~tie.able[self.bound[tie.one] > 0].all(axis=0)
        return found & (self.most > 0)

    def areas(self, workload: int) -> list[int]:
        """Areas where new pods of a workload may be."""
        return [int(area) for area in np.flatnonzero((self.most[workload] > 0) & ~self.closed[workload])]

    # Counts as 0/1 variables

    def here(self, workload: int, area: int) -> IntVar:
        """Whether new pods of a workload are in an area: y <= most x."""
        key = workload, area
        if key not in self._here:
            counts, most = self.in_area[workload][area], int(self.most[key])
            if most == 1 and len(counts) == 1:
                self._here[key] = counts[0]
            else:
                self._here[key] = literal = self._at_least(counts, 1)
                self.model.add(solver_form(Linear().add(1, *counts).add(-most, literal)) <= 0)
        return self._here[key]

    def steps(self, workload: int, area: int) -> list[IntVar]:
        """Whether at least 1, 2, 3 ... new pods of a workload are in an area: y = sum of s."""
        key = workload, area
        if key not in self._steps:
            counts, most = self.in_area[workload][area], int(self.most[key])
            self._steps[key] = self._stairs(counts, most, self.here(*key))
        return self._steps[key]

    def steps_at(self, workload: int, place: int) -> list[IntVar]:
        """The same for a place."""
        key = workload, place
        if key not in self._steps_at:
            counts, most = self.at_place[workload][place], self.most_at[workload][place]
            first = counts[0] if most == 1 and len(counts) == 1 else self._at_least(counts, 1)
            self._steps_at[key] = self._stairs(counts, most, first)
        return self._steps_at[key]

    def _stairs(self, counts: Sequence[IntVar], most: int, first: IntVar) -> list[IntVar]:
        found = [first, *(self._at_least(counts, number) for number in range(2, most + 1))]
        for higher, lower in zip(found[1:], found[:-1], strict=True):
            self.model.add_implication(higher, lower)
        if most > 1 or len(counts) > 1:
            self.model.add(solver_form(Linear().add(1, *counts).add(-1, *found)) == 0)
        return found

    def _at_least(self, counts: Sequence[IntVar], number: int) -> IntVar:
        row = Linear().add(1, *counts)
        return self.variables.integer(1, partial(reaches, row, number))

    # Pairs

    def pairs(self, tie: Tie) -> Pairs:
        """Pairs of new pods of a tie by areas; without ``tight`` only those that use a limited link."""
        key = tie.one, tie.other
        if key not in self._pairs:
            one, other, able = self._stepped(tie)
            found: Pairs = defaultdict(list)
            for area, to, pairs in (self._all if self.tight else self._least)(one, other, able):
                found[(area, to) if one == tie.one else (to, area)].append(pairs)
            self._pairs[key] = found
        return self._pairs[key]

    def _stepped(self, tie: Tie) -> tuple[int, int, BoolArray]:
        able = tie.able if self.tight else tie.able & self._limited(tie)
        if self.most[tie.one].sum() > self.most[tie.other].sum():
            return tie.other, tie.one, able.T
        return tie.one, tie.other, able

    def _limited(self, tie: Tie) -> BoolArray:
        limited, found = self.network.link >= 0, np.zeros_like(tie.able)
        for call in tie.calls:
            if call.bandwidth:
                found |= limited if call.origin == tie.one else limited.T
        return found

    def _least(self, one: int, other: int, able: BoolArray) -> Iterator[tuple[int, int, IntVar]]:
        for area in self.areas(one):
            for to in self.areas(other):
                counts, most = self.in_area[other][to], int(self.most[other, to])
                for step in self.steps(one, area) if able[area, to] else ():
                    pairs = self._product(step, counts, most)
                    self.model.add(solver_form(Linear().add(1, pairs).add(-1, *counts).add(-most, step)) >= -most)
                    yield area, to, pairs

    def _all(self, one: int, other: int, able: BoolArray) -> Iterator[tuple[int, int, IntVar]]:
        """A step is paired with all pods of the other workload, so over all areas, and with those that keep waiting,
        the sum of t is size s, which makes each t exact. A count is paired with all pods of the one: sum of t = size y.
        """
        columns: dict[int, list[IntVar]] = {to: [] for to in self.areas(other)}
        for area in self.areas(one):
            for step in self.steps(one, area):
                row = Linear().add(-self.size[other], step)
                for to, column in columns.items():
                    if able[area, to]:
                        pairs = self._bounded(step, self.in_area[other][to], int(self.most[other, to]))
                        row.add(1, pairs)
                        column.append(pairs)
                        yield area, to, pairs
                self.model.add(solver_form(row.add(1, self._missed([step], 1, other))) == 0)
        for to, column in columns.items():
            counts = self.in_area[other][to]
            row = Linear().add(1, *column).add(-self.size[one], *counts)
            row.add(1, self._missed(counts, int(self.most[other, to]), one))
            self.model.add(solver_form(row) == 0)

    def _missed(self, counts: Sequence[IntVar], most: int, workload: int) -> IntVar:
        size, some, placed = self.size[workload], Linear().add(1, *counts), Linear()
        for area in self.areas(workload):
            placed.add(1, *self.in_area[workload][area])
        waiting = Linear(constant=size).plus(-1, placed)
        missed = self.variables.integer(most * size, lambda values: value_at(some, values) * value_at(waiting, values))
        self.model.add(solver_form(Linear().add(1, missed).add(most, *placed.variables)) <= most * size)
        return missed

    def _product(self, step: IntVar, counts: Sequence[IntVar], most: int) -> IntVar:
        row = Linear().add(1, *counts)
        return self.variables.integer(most, lambda values: values[step.index] * value_at(row, values))

    def _bounded(self, step: IntVar, counts: Sequence[IntVar], most: int) -> IntVar:
        pairs = self._product(step, counts, most)
        self.model.add(solver_form(Linear().add(1, pairs).add(-1, *counts)) <= 0)
        self.model.add(solver_form(Linear().add(1, pairs).add(-most, step)) <= 0)
        return pairs

    def together(self, tie: Tie) -> dict[int, list[IntVar]]:
        """Place to variables whose sum is at most the number of pairs of new pods of a tie on that node."""
        found: dict[int, list[IntVar]] = {}
        for place in self.at_place[tie.one]:
            if place in self.at_place[tie.other] and not self.closed[[tie.one, tie.other], self.area[place]].any():
                one, other = sorted((tie.one, tie.other), key=lambda workload: self.most_at[workload][place])
                counts, most = self.at_place[other][place], self.most_at[other][place]
                found[place] = [self._bounded(step, counts, most) for step in self.steps_at(one, place)]
        return found

    # The rules

    def network_cost(self, surplus: Mapping[tuple[int, int], int]) -> None:
        """C8: no caller and callee where the cost between is above the limit; none too far from a running pod."""
        if self.network.majority:
            self._majority(surplus)
            return
        for workload, area in np.argwhere(self.closed):
            self.model.add(solver_form(Linear().add(1, *self.in_area[workload][area])) == 0)
        for tie in self.ties:
            for one, other in product(self.areas(tie.one), self.areas(tie.other)):
                if not tie.able[one, other]:
                    both = self.here(tie.one, one), self.here(tie.other, other)
                    self.model.add_at_most_one(both)

    def _majority(self, surplus: Mapping[tuple[int, int], int]) -> None:
        mine: dict[int, list[Call]] = defaultdict(list)
        for call in self.network.calls:
            mine[call.origin].append(call)
        for origin, area in product(mine, range(len(self.network.cost))):
            if not self.bound[origin, area] and not self.most[origin, area]:
                continue
            row, before = Linear(), surplus_of(self.network, self.bound, mine[origin], area)
            for call in mine[origin]:
                near = self.network.near(call.limit)[area]
                for other, counts in self.in_area[call.destination].items():
                    row.add(-1 if near[other] else 1, *counts)
            if self.bound[origin, area]:
                self.model.add(solver_form(row) <= surplus.get((origin, area), max(0, before)) - before)
            if self.most[origin, area]:
                self.model.add(solver_form(row) <= -before).only_enforce_if(self.here(origin, area))

    def bandwidth(self) -> None:
        """C9: per limited link, bandwidth times pairs in sum is at most its room."""
        if not self.network.room:
            return
        rows = [Linear() for _ in self.network.room]
        for tie in self.ties:
            for call in tie.calls:
                if call.bandwidth:
                    self._demand(rows, tie, call)
        for row, room in zip(rows, self.network.room, strict=True):
            each = math.gcd(*row.coefficients)
            if each:
                row.coefficients = [coefficient // each for coefficient in row.coefficients]
                self.variables.at_most(row, room // each)

    def _demand(self, rows: Sequence[Linear], tie: Tie, call: Call) -> None:
        link, before = self.network.link, self.bound + self.leaving
        for ends, pairs in self.pairs(tie).items():
            one, other = ends if call.origin == tie.one else ends[::-1]
            if link[one, other] >= 0:
                rows[link[one, other]].add(call.bandwidth, *pairs)
        for new, old, links in ((call.origin, call.destination, link), (call.destination, call.origin, link.T)):
            for there in np.flatnonzero(before[old]).tolist():
                for area, counts in self.in_area[new].items():
                    if links[area, there] >= 0:
                        rows[links[area, there]].add(call.bandwidth * int(before[old, there]), *counts)
