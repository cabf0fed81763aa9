"""AppGroups by area: the zone of each, decided for many at once, and its nodes there.

Steps of a few pods fail where calls between zones are dear: an AppGroup on the move lies in two zones and costs more.
Small programs are asked instead: *splits* part an AppGroup over nodes (:mod:`placer.bounds.splits`), *assignment* gives
it an area by the room of areas in sum, *packing* gives each part a node (``area_program``).
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from ortools.sat.python import cp_model

from placer.arrays import Dense, DenseNetwork, Solution
from placer.arrays.solution import IntArray
from placer.base.deadline import Budget
from placer.base.grouping import grouped
from placer.bounds.splits import AppGroupSplits
from placer.search.decomposed.area_program import AreaProgram
from placer.search.decomposed.destroy import draw_one, groups_of_apps
from placer.search.decomposed.incumbent_state import IncumbentState
from placer.search.exact.count_model import limited_solver

#: A program of more columns is not made.
MOST_COLUMNS = 5_000


class AreaAssignment:
    """Assignments of AppGroups to areas, one after another, of those that are pending as a whole and go to any node."""

    def __init__(self, dense: Dense, network: DenseNetwork, chance: random.Random) -> None:
        self.dense, self.network, self.random = dense, network, chance
        self.classes = _free_apps(dense, network)
        self.nodes = {int(area): np.flatnonzero(network.area == area) for area in np.unique(network.area)}
        self.splits = AppGroupSplits(dense, network)
        self.attempts, self.budget = 0, Budget()

    def proposed(self, solution: Solution, budget: Budget) -> Solution | None:
        """Assign the AppGroups of some areas again, and pack these areas: first of all areas, then of some.

        Returns a solution that keeps all rules, better or worse, or None.
        """
        self.budget, before = budget, self.splits.spent
        state = IncumbentState(self.dense, solution)
        # Where splits take too long, AppGroups that were not looked at stay where they are.
        soon = budget.deadline.part(0.5)
        here = {app: self._areas_of(state, app) for app in soon.each(self.classes) if self.splits.of(app) is not None}
        areas = self._chosen(state, here)
        apps = [app for app in sorted(here) if here[app] and here[app] <= set(areas)]
        taken, free = self._taken_out(state, apps)
        put = self._placed_anew(free, apps, areas)
        budget.spend(self.splits.spent - before)
        if put is None:
            return None
        state.change(taken, put)
        return state.solution

    def _areas_of(self, state: IncumbentState, app: int) -> set[int]:
        """None where a pod of the AppGroup waits."""
        if any(state.left(index) for index in self.classes[app]):
            return set()
        nodes = (node for index in self.classes[app] for node in state.where[index])
        return {int(self.network.area[node]) for node in nodes}

    def _chosen(self, state: IncumbentState, here: Mapping[int, set[int]]) -> list[int]:
        self.attempts += 1
        if self.attempts == 1:
            return sorted(self.nodes)
        assert state.communication is not None
        least = int(self.network.cost.min())
        costs = [(app, state.communication.costs[app]) for app in here if here[app]]
        app = draw_one(self.random, ((app, cost - least * self.splits.least(app)) for app, cost in costs))
        if app is None:
            return []
        others = sorted(self.nodes.keys() - here[app])
        many = min(len(others), self.random.randint(1, 3))
        return sorted(here[app].union(self.random.sample(others, many)))

    def _taken_out(self, state: IncumbentState, apps: Iterable[int]) -> tuple[Solution, IntArray]:
        mine = (index for app in apps for index in self.classes[app])
        taken = Solution({(index, node): count for index in mine for node, count in state.where[index].items()})
        free = state.free.copy()
        for (index, node), count in taken.items():
            free[node] += self.dense.classes[index].request * count
        return taken, free

    def _placed_anew(self, free: IntArray, apps: Sequence[int], areas: Sequence[int]) -> Solution | None:
        if not apps:
            return None
        found = self._by_program(free, apps, areas, 0 if self.attempts == 1 else self.random.randrange(3))
        if found is not None or len(areas) == 1:
            return found
        home = self._assigned(free, apps, areas)
        put, failed = Solution(), [] if home else list(areas)
        for area, mine in sorted(grouped(home, home.__getitem__).items()):
            found = self._packed(free, mine, area)
            if found is None:
                failed.append(area)
            else:
                put.update(found)
        return self._mended(free, home, failed, put) if failed else put

    def _packed(self, free: IntArray, apps: Sequence[int], area: int) -> Solution | None:
        tries = (self._by_program(free, apps, [area], extra) for extra in range(3))
        return None if self.budget.deadline.over else next((each for each in tries if each is not None), None)

    def _mended(self, free: IntArray, home: Mapping[int, int], failed: Sequence[int], put: Solution) -> Solution | None:
        others = sorted(set(home.values()).difference(failed))
        areas = sorted({*failed, *self.random.sample(others, min(2, len(others)))})
        apps = [app for app, area in home.items() if area in areas]
        found = self._by_program(free, apps, areas, 0) if apps else None
        if found is None:
            return None
        again = {index for app in apps for index in self.classes[app]}
        return Solution({**put.only(lambda index, _: index not in again), **found})

    def _by_program(self, free: IntArray, apps: Sequence[int], areas: Sequence[int], extra: int) -> Solution | None:
        """``extra``: calls that an AppGroup may cut beyond the least, for the parts that the program has."""
        splits = [(app, found) for app in apps if (found := self.splits.of(app)) is not None]
        parts = [(self.splits.graph(app), each.parts_within(extra)) for app, each in splits]
        columns = len(areas) * sum(len(each) for _, each in parts)
        if columns > MOST_COLUMNS:
            return None
        self.budget.spend(3e-4 * columns)
        nodes = {area: self.nodes[area] for area in areas}
        return AreaProgram(self.dense, self.network, free, nodes, parts).solved(0.2 * self.budget.seconds)

    def _assigned(self, free: IntArray, apps: Sequence[int], areas: Sequence[int]) -> dict[int, int]:
        graphs = map(self.splits.graph, apps)
        demand = np.array([graph.counts @ graph.requests for graph in graphs])
        room = np.array([free[self.nodes[area]].sum(axis=0) for area in areas])
        full = float((demand.sum(axis=0) / np.maximum(1, room.sum(axis=0))).max())
        # Nearly evenly full if that is found soon.
        for share, work in ((min(1.0, full + 0.03), 0.1), (1.0, 0.5)):
            home = self._assigned_within(demand, (room * share).astype(np.int64), work)
            if home:
                return {app: areas[area] for app, area in zip(apps, home, strict=True)}
        return {}

    def _assigned_within(self, demand: IntArray, room: IntArray, work: float) -> list[int]:
        model = cp_model.CpModel()
        lies = [[model.new_bool_var("") for _ in room] for _ in demand]
        for row in lies:
            model.add_exactly_one(row)
        for most, column in zip(room.tolist(), zip(*lies, strict=True), strict=True):
            for amount, asked in zip(most, demand.T.tolist(), strict=True):
                if any(asked):
                    model.add(cp_model.LinearExpr.weighted_sum(column, asked) <= amount)
        every = list(itertools.chain.from_iterable(lies))
        model.minimize(cp_model.LinearExpr.weighted_sum(every, [self.random.randrange(100) for _ in every]))
        solver = limited_solver(work=work, random_seed=self.random.randrange(2**31))
        found = solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        self.budget.spend(float(solver.response_proto.deterministic_time))
        return [list(map(solver.value, row)).index(1) for row in lies] if found else []


def _free_apps(dense: Dense, network: DenseNetwork) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for each in network.workloads:
        found[each.app].extend(each.classes)
    held = {each.app for each in network.workloads if each.bound or each.leaving}
    held |= {app for app, groups in groups_of_apps(dense).items() if any(_limited(dense, group) for group in groups)}
    return {app: classes for app, classes in found.items() if app not in held}


def _limited(dense: Dense, group: int) -> bool:
    gang = dense.groups[group]
    scopes = [gang.scope, *(dense.sub_groups[sub].scope for sub in gang.sub_groups)]
    bounded = any(dense.scopes[scope].limit is not None for scope in scopes)
    return bounded or any(dense.classes[index].tied for index in gang.classes)
