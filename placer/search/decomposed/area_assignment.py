"""AppGroups by area: the zone of each, decided for many at once, and its nodes there.

Steps of a few pods fail where calls between zones are dear: an AppGroup on the move lies in two zones and costs more.
Three small programs are asked instead: *splits* part an AppGroup over nodes (:mod:`placer.bounds.splits`), *assignment*
gives it an area by the room of areas in sum, *packing* gives each part a node (``area_program``).
"""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

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

#: (class, pods), by class.
Part = tuple[tuple[int, int], ...]


class Split(NamedTuple):
    """An AppGroup in parts, each for one node: (class, pods). ``cut`` calls are between pods of different parts."""

    cut: int
    parts: tuple[Part, ...]


class AreaAssignment:
    """Assignments of AppGroups to areas, one after another, of those that are pending as a whole and go to any node."""

    def __init__(self, dense: Dense, network: DenseNetwork, chance: random.Random) -> None:
        self.dense, self.network, self.random = dense, network, chance
        self.classes = _free_apps(dense, network)
        self.nodes = {int(area): np.flatnonzero(network.area == area) for area in np.unique(network.area)}
        self.splits = AppGroupSplits(dense, network)
        self.known: dict[tuple[int, tuple[int, ...]], tuple[Split, ...]] = {}
        self.attempts, self.budget = 0, Budget()

    def proposed(self, solution: Solution, budget: Budget, seed: int) -> Solution | None:
        """Assign the AppGroups of some areas again, and pack these areas: first of all areas, then of some.

        Returns a solution that keeps all rules, better or worse, or None.
        """
        self.budget, before = budget, self.splits.spent
        state = IncumbentState(self.dense, solution)
        # Where splits take too long, AppGroups that were not looked at stay where they are.
        soon = budget.deadline.part(0.5)
        here = {app: self._areas_of(state, app) for app in soon.each(self.classes) if self._small(app)}
        areas = self._chosen(state, here)
        apps = [app for app in sorted(here) if here[app] and here[app] <= set(areas)]
        taken, free = self._taken_out(state, apps)
        put = self._placed_anew(free, apps, areas, seed)
        budget.spend(self.splits.spent - before)
        if put is None:
            return None
        state.change(taken, put)
        return state.solution

    def _small(self, app: int) -> bool:
        # Of AppGroups with more pods, and too many parts to list, splits take too long.
        return self.splits.of(app) is not None or int(self.splits.graph(app).counts.sum()) <= 40

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

    def _placed_anew(self, free: IntArray, apps: Sequence[int], areas: Sequence[int], seed: int) -> Solution | None:
        if not apps:
            return None
        extra = 0 if self.attempts == 1 else self.random.randrange(3)
        found = self._by_program(free, apps, areas, extra)
        if found is not None or len(areas) == 1:
            return found
        home = self._assigned(free, apps, areas)
        put, failed = Solution(), [] if home else list(areas)
        for area, mine in sorted(grouped(home, home.__getitem__).items()):
            found = None if self.budget.deadline.over else self._packed(free, area, mine, seed)
            if found is None:
                failed.append(area)
            else:
                put.update(found)
        return self._mended(free, home, failed, put) if failed else put

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
        found = {app: self.splits.of(app) for app in apps}
        parts = {app: each.parts_within(extra) for app, each in found.items() if each is not None}
        columns = len(areas) * sum(map(len, parts.values()))
        if len(parts) < len(apps) or columns > MOST_COLUMNS:
            return None
        nodes = {area: self.nodes[area] for area in areas}
        chosen = [(self.splits.graph(app), parts[app]) for app in apps]
        self.budget.spend(3e-4 * columns)
        return AreaProgram(self.dense, self.network, free, nodes, chosen).solved(0.2 * self.budget.seconds)

    def _assigned(self, free: IntArray, apps: Sequence[int], areas: Sequence[int]) -> dict[int, int]:
        demand = np.array([self.demand(app) for app in apps])
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
            _at_most(model, column, demand, most)
        every = list(itertools.chain.from_iterable(lies))
        model.minimize(cp_model.LinearExpr.weighted_sum(every, [self.random.randrange(100) for _ in every]))
        solver = self._solved(model, work, self.random.randrange(2**31))
        return [] if solver is None else [[solver.value(each) for each in row].index(1) for row in lies]

    def demand(self, app: int) -> IntArray:
        """Requests of all pods of an AppGroup: int64, shape (resources,)."""
        classes = [self.dense.classes[index] for index in self.classes[app]]
        found: IntArray = np.sum([one.request * one.size for one in classes], axis=0)
        return found

    def _solved(self, model: cp_model.CpModel, work: float, seed: int) -> cp_model.CpSolver | None:
        solver = limited_solver(work=work, random_seed=seed)
        status = solver.solve(model)
        self.budget.spend(float(solver.response_proto.deterministic_time))
        return solver if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None

    # An area

    def _packed(self, free: IntArray, area: int, apps: Sequence[int], seed: int) -> Solution | None:
        for extra in range(3):
            found = self._by_program(free, apps, [area], extra)
            if found is not None:
                return found
        nodes = self.nodes[area].tolist()
        if len(nodes) * len(apps) > 200:
            return None
        widest = tuple(free[nodes].max(axis=0).tolist())
        packing = _Packing(self.dense, free, nodes)
        for app in apps:
            packing.add_app(self.ways(app, widest, seed))
        packing.finish()
        solver = self._solved(packing.model, 0.4, seed)
        return None if solver is None else packing.read(solver)

    # Splits

    def ways(self, app: int, widest: tuple[int, ...], seed: int) -> tuple[Split, ...]:
        """Cheap ways to part an AppGroup over nodes with so much room, as uneven as possible and nearly even."""
        if (app, widest) not in self.known:
            asked = self.demand(app).tolist()
            least = max(1, *(-(-amount // max(1, room)) for amount, room in zip(asked, widest, strict=True)))
            most = min(least + 2, sum(self.dense.classes[index].size for index in self.classes[app]))
            ways = [(parts, even) for parts in range(least, most + 1) for even in (False, True)]
            found = (self.split(app, widest, parts, seed, even=even) for parts, even in ways)
            self.known[app, widest] = tuple(dict.fromkeys(each for each in found if each is not None))
        return self.known[app, widest]

    def split(self, app: int, widest: Sequence[int], parts: int, seed: int, *, even: bool = False) -> Split | None:
        """Part an AppGroup over equal nodes with the fewest calls between two of them; ``even``: no part far above the
        mean.
        """
        pods = list(self.dense.each_pod(self.classes[app]))
        request = self.dense.requests[pods]
        mean = np.minimum(widest, -(-request.sum(axis=0) // parts) + request.max(axis=0) - 1)
        model = cp_model.CpModel()
        there = _parts(model, request, (mean if even else np.array(widest)).tolist(), parts)
        pairs = list(self._calling(pods))
        together = []
        for one, other in pairs:
            for here, its in zip(there[one], there[other], strict=True):
                both = model.new_bool_var("")
                model.add_implication(both, here)
                model.add_implication(both, its)
                together.append(both)
        model.maximize(cp_model.LinearExpr.sum(together))
        solver = self._solved(model, 0.05, seed)
        if solver is None:
            return None
        members: dict[int, Counter[int]] = defaultdict(Counter)
        for row, index in zip(there, pods, strict=True):
            members[[solver.value(each) for each in row].index(1)][index] += 1
        split = tuple(sorted(tuple(sorted(part.items())) for part in members.values()))
        return Split(len(pairs) - round(solver.objective_value), split)

    def _calling(self, pods: Sequence[int]) -> Iterable[tuple[int, int]]:
        at = grouped(range(len(pods)), lambda position: self.dense.workload_of[pods[position]])
        for call in self.network.calls:
            yield from ((one, other) for one in at.get(call.origin, ()) for other in at.get(call.destination, ()))


class _Packing:
    def __init__(self, dense: Dense, free: IntArray, nodes: Sequence[int]) -> None:
        self.dense, self.free, self.nodes = dense, free, nodes
        self.model = cp_model.CpModel()
        self.cuts: list[tuple[cp_model.IntVar, int]] = []
        self.places: list[tuple[cp_model.IntVar, int, Part]] = []

    def add_app(self, splits: Sequence[Split]) -> None:
        chosen = [self.model.new_bool_var("") for _ in splits]
        self.model.add_exactly_one(chosen)
        for split, is_chosen in zip(splits, chosen, strict=True):
            self.cuts.append((is_chosen, split.cut))
            for part in split.parts:
                at = {node: self.model.new_bool_var("") for node in self.nodes if self._may_be(part, node)}
                self.model.add(cp_model.LinearExpr.sum(list(at.values())) == is_chosen)
                self.places += [(each, node, part) for node, each in at.items()]

    def _may_be(self, part: Part, node: int) -> bool:
        eligible = all(self.dense.masks[self.dense.classes[index].mask, node] for index, _ in part)
        return eligible and bool((self.free[node] >= self._request(part)).all())

    def _request(self, part: Part) -> IntArray:
        found: IntArray = np.sum([self.dense.classes[index].request * count for index, count in part], axis=0)
        return found

    def finish(self) -> None:
        on_node = grouped(self.places, lambda place: place[1])
        for node, places in on_node.items():
            asked = np.array([self._request(part) for _, _, part in places])
            _at_most(self.model, [each for each, _, _ in places], asked, self.free[node].tolist())
        self.model.minimize(
            cp_model.LinearExpr.weighted_sum([each for each, _ in self.cuts], [cut for _, cut in self.cuts])
        )

    def read(self, solver: cp_model.CpSolver) -> Solution:
        found: Counter[tuple[int, int]] = Counter()
        for each, node, part in self.places:
            if solver.value(each):
                found.update({(index, node): count for index, count in part})
        return Solution(found)


def _parts(model: cp_model.CpModel, request: IntArray, room: list[int], parts: int) -> list[list[cp_model.IntVar]]:
    there = [[model.new_bool_var("") for _ in range(parts)] for _ in request]
    for number, row in enumerate(there):
        model.add_exactly_one(row[: number + 1])
        for each in row[number + 1 :]:
            model.add(each == 0)
    for column in zip(*there, strict=True):
        _at_most(model, column, request, room)
    return there


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
    classes = (dense.classes[index] for index in gang.classes)
    bounded = any(dense.scopes[scope].limit is not None for scope in scopes)
    return bounded or any(each.tied for each in classes)


def _at_most(model: cp_model.CpModel, variables: Sequence[cp_model.IntVar], asked: IntArray, room: list[int]) -> None:
    for resource, most in enumerate(room):
        if asked[:, resource].any():
            amounts = asked[:, resource].tolist()
            model.add(cp_model.LinearExpr.weighted_sum(list(variables), amounts) <= most)
