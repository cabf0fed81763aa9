"""Pods of workloads that call each other: how many are where, and how many pairs they make (C8, C9, O3).

Pairs are a product of k callers and C callees, at most M. The k are steps, u[1] >= u[2] >= ... with the sum k::

    pairs >= l C - M (l - u[1] - ... - u[l])            for every l >= 1; exact where l = k
    pairs <= l C + M (u[l + 1] + u[l + 2] + ...)        on one node, for every l >= 0
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from placer.arrays import Call, Dense, DenseNetwork
from placer.arrays.model import IntArray
from placer.arrays.symmetry import grouped
from placer.search.milp.variables import Linear, MilpVariables, Values, reaches

__all__ = ["Amount", "AreaGroup", "Flows", "WorkloadPods", "groups_of", "size_of_flows"]


class AreaGroup(NamedTuple):
    """Areas that look alike from one area: calls from there cost the same and take the same link, or none (-1).

    The area itself is alone in its group (``own``).
    """

    own: bool
    cost: int
    link: int
    areas: frozenset[int]


def groups_of(network: DenseNetwork, area: int) -> list[AreaGroup]:
    """All areas as they look from one of them."""
    alike = list(zip(network.cost[area].tolist(), network.link[area].tolist(), strict=True))
    found = grouped(range(len(alike)), lambda other: (other == area, *alike[other]))
    return [AreaGroup(*seen, frozenset(areas)) for seen, areas in found.items()]


def size_of_flows(dense: Dense, fits: Sequence[IntArray]) -> int:
    """Most variables of the network, where so many pods of each class fit on each node."""
    network = dense.network
    if network is None:
        return 0
    groups = np.array([len(groups_of(network, area)) for area in range(len(network.cost))])
    most = [sum((fits[index] for index in each.classes), np.zeros_like(network.area)) for each in network.workloads]
    areas = [np.unique(network.area[row > 0]) for row in most]
    counts = (
        1 + len(area) * (1 + sum(dense.classes[index].size for index in each.classes)) + row.sum()
        for each, area, row in zip(network.workloads, areas, most, strict=True)
    )
    pairs = (
        groups[areas[call.origin]].sum() + np.count_nonzero(np.minimum(most[call.origin], most[call.destination]))
        for call in network.calls
    )
    return int(sum(counts) + sum(pairs))


@dataclass(frozen=True)
class Amount:
    """New pods of a workload in some place: name of the place, number, and most."""

    name: str
    row: Linear
    most: int


@dataclass(frozen=True)
class WorkloadPods:
    """Pods of one workload: new ones by area and by node, running ones likewise.

    ``held`` is by area: running ones and those that are being deleted. Absent: none.
    """

    everyone: Amount
    new: dict[int, Amount]
    on: dict[int, Amount]
    bound: Counter[int]
    bound_on: Counter[int]
    held: Counter[int]

    def inside(self, areas: Set[int]) -> Amount:
        """New pods in any of the areas; those in most areas are all but those in the others."""
        here, others = self.new.keys() & areas, self.new.keys() - areas
        most = min(self.everyone.most, sum(self.new[area].most for area in here))
        if len(here) <= len(others) + 1:
            return Amount("", Linear().plus(1, *(self.new[area].row for area in sorted(here))), most)
        rest = (self.new[area].row for area in sorted(others))
        return Amount("", Linear().plus(1, self.everyone.row).plus(-1, *rest), most)

    def before(self, areas: Set[int], *, leaving: bool) -> int:
        """Pods that have a node in the areas already, with or without those that are being deleted."""
        there = self.held if leaving else self.bound
        return sum(pods for area, pods in there.items() if area in areas)


class Flows:
    """Counts and pairs; made when a rule or value asks for them.

    ``groups`` has per area all areas as they look from there. New pods of w in area a are a variable, c[w, a], real,
    and so are all new ones, c[w].
    """

    def __init__(self, variables: MilpVariables, network: DenseNetwork) -> None:
        self.dense, self.network, self.program, self._count = (
            variables.dense,
            network,
            variables.program,
            variables.count,
        )
        self._steps: dict[str, list[Linear]] = {}
        self._products: dict[tuple[int, int, int, int], Linear] = {}
        self._products_on: dict[tuple[int, int, int], Linear] = {}
        self.groups = [groups_of(network, area) for area in range(len(network.cost))]
        self.staff = [self._staff(number) for number in range(len(network.workloads))]

    # Who is where

    def _staff(self, number: int) -> WorkloadPods:
        workload = self.network.workloads[number]
        bound, held, bound_on = Counter[int](), Counter[int](), Counter[int]()
        for node, area, pods in workload.bound:
            bound[area] += pods
            if node >= 0:
                bound_on[node] += pods
        for _, area, pods in (*workload.bound, *workload.leaving):
            held[area] += pods
        new = {
            area: self._named(f"c_{number}_{area}", amount)
            for area, amount in self._amounts(number, self.network.area).items()
        }
        most = sum(self.dense.classes[index].size for index in workload.classes)
        most = min(most, sum(amount.most for amount in new.values()))
        everyone = Amount("", Linear().plus(1, *(amount.row for amount in new.values())), most)
        on = self._amounts(number, np.arange(len(self.network.area)))
        return WorkloadPods(self._named(f"c_{number}", everyone), new, on, bound, bound_on, held)

    def _amounts(self, number: int, place_of: IntArray) -> dict[int, Amount]:
        rows: dict[int, Linear] = defaultdict(Linear)
        most = Counter[int]()
        for index in self.network.workloads[number].classes:
            here = Counter[int]()
            for node, variable in self._count[index].items():
                rows[int(place_of[node])].add(1, variable)
                here[int(place_of[node])] += int(variable.upBound)
            for place, pods in here.items():
                most[place] += min(pods, self.dense.classes[index].size)
        return {place: Amount(f"x_{number}_{place}", row, most[place]) for place, row in rows.items()}

    def _named(self, name: str, amount: Amount) -> Amount:
        if not amount.most:
            return amount
        row = Linear().add(1, self.program.real(name, amount.most, partial(_product, [amount.row])))
        self.program.equal("count", Linear().plus(1, row).plus(-1, amount.row), 0)
        return Amount(name, row, amount.most)

    def steps(self, amount: Amount) -> list[Linear]:
        """u[k], 0 or 1, for k = 1, 2, ...: whether the amount is at least k."""
        if amount.most == 1:
            return [amount.row]
        if amount.name not in self._steps:
            steps = [
                self.program.integer(f"u_{amount.name}_{least}", 1, partial(reaches, amount.row, least))
                for least in range(1, amount.most + 1)
            ]
            for step, after in pairwise(steps):
                self.program.at_most("steps", Linear().add(1, after).add(-1, step), 0)
            self.program.equal("steps", Linear().add(1, *steps).plus(-1, amount.row), 0)
            self._steps[amount.name] = [Linear().add(1, step) for step in steps]
        return self._steps[amount.name]

    # Pairs

    def apart(self, call: Call, group: AreaGroup) -> bool:
        """Whether C8 allows no pair with a new pod that is so far apart."""
        return not self.network.majority and not group.own and group.cost > call.limit

    def pairs(self, call: Call, area: int, group: AreaGroup, *, leaving: bool) -> Linear:
        """Pairs of callers in an area and callees in a group of areas, those included that are there before.

        Parameters
        ----------
        leaving
            Whether pods that are being deleted count too.
        """
        callers, callees = self.staff[call.origin], self.staff[call.destination]
        calling = callers.before({area}, leaving=leaving)
        called = callees.before(group.areas, leaving=leaving)
        row = Linear(constant=calling * called).plus(calling, callees.inside(group.areas).row)
        if area in callers.new:
            row.plus(called, callers.new[area].row)
            if not self.apart(call, group):
                row.plus(1, self._product(call, area, group))
        return row

    def _product(self, call: Call, area: int, group: AreaGroup) -> Linear:
        """y[w, w', a, B], real: new pods of w in a times new pods of w' in the areas B, or more."""
        callers, callees = self.staff[call.origin].new[area], self.staff[call.destination].inside(group.areas)
        if not callees.most:
            return Linear()
        key = call.origin, call.destination, area, min(group.areas)
        if key not in self._products:
            product = self._products[key] = self._times("y", key, callers, callees)
            for count in range(1, callers.most + 1):
                row = Linear(constant=count * callees.most).plus(1, product).plus(-count, callees.row)
                self.program.at_least("pairs", row.plus(-callees.most, *self.steps(callers)[:count]), 0)
        return self._products[key]

    def together(self, call: Call, node: int) -> Linear:
        """Placed pairs that are on one node."""
        callers, callees = self.staff[call.origin], self.staff[call.destination]
        row = Linear(constant=callers.bound_on[node] * callees.bound_on[node])
        if node in callees.on:
            row.plus(callers.bound_on[node], callees.on[node].row)
        if node in callers.on:
            row.plus(callees.bound_on[node], callers.on[node].row)
        return row.plus(1, self._product_on(call, node))

    def _product_on(self, call: Call, node: int) -> Linear:
        """s[w, w', n], real: new pods of w on n times new pods of w' there, or fewer."""
        callers, callees = (self.staff[end].on.get(node) for end in (call.origin, call.destination))
        if callers is None or callees is None:
            return Linear()
        key = call.origin, call.destination, node
        if key not in self._products_on:
            product = self._products_on[key] = self._times("s", key, callers, callees)
            for count in range(callers.most + 1):
                row = Linear().plus(1, product).plus(-count, callees.row)
                self.program.at_most("together", row.plus(-callees.most, *self.steps(callers)[count:]), 0)
        return self._products_on[key]

    def _times(self, letter: str, indices: tuple[int, ...], callers: Amount, callees: Amount) -> Linear:
        name, meaning = "_".join((letter, *map(str, indices))), partial(_product, [callers.row, callees.row])
        return Linear().add(1, self.program.real(name, callers.most * callees.most, meaning))


def _product(rows: Sequence[Linear], values: Values) -> int:
    return math.prod(row.at(values.__getitem__) for row in rows)
