"""Destroy operators: the nodes that are freed next, and the waiting groups that take part.

All draw at random by the possible gain, and operators whose repairs gained something are drawn more often (Ropke and
Pisinger, "An Adaptive Large Neighborhood Search Heuristic for the Pickup and Delivery Problem with Time Windows",
2006).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from placer.arrays import Dense, DenseNetwork, DenseScope
from placer.arrays.solution import BoolArray, FloatArray, IntArray
from placer.bounds import CallCosts
from placer.problem.placement import MAXIMISED
from placer.search.decomposed.incumbent_state import IncumbentState

#: Leaves with more nodes than this are freed in pieces; smaller ones where nodes are divided into NUMA zones.
CELL = 16
#: Weight of a node where nothing is to gain, against 1 where most is.
ANYWHERE = 0.02

#: A destroy operator: about how many nodes, which may be freed, the groups that wait -> the nodes that are freed.
Operator = Callable[[int, BoolArray, list[int]], IntArray]


class Neighbourhood(NamedTuple):
    """Nodes that are freed, ascending, and the groups that take part; ``fixed`` groups do not, also on the nodes.

    ``operator`` is its number; ``chains``: ejection chains repair it instead of a model.
    """

    operator: int
    nodes: IntArray
    pending: list[int]
    fixed: frozenset[int]
    chains: bool = False


def bins_of(dense: Dense) -> int:
    """Bins of a node: one, or its NUMA zones on average where kubelets refuse pods (C10)."""
    if dense.numa is None:
        return 1
    bins = np.maximum(dense.numa.zones, 1)
    return max(1, round(int(bins.sum()) / max(1, len(bins))))


def _cells_of(dense: Dense) -> IntArray:
    most = max(1, CELL // bins_of(dense) ** 2)
    number = np.zeros(len(dense.nodes), dtype=np.int64)
    last, count, inside = None, -1, 0
    for node, leaf in enumerate(dense.leaf.tolist()):
        if leaf != last or inside == most:
            last, count, inside = leaf, count + 1, 0
        number[node] = count
        inside += 1
    return number


def _least_of(dense: Dense, scope: DenseScope) -> tuple[int, int]:
    tree, lowest, fewest = dense.domains, int(dense.domains.tier.min()), 1
    leaves = np.unique(dense.span_leaf, return_inverse=True)[1].reshape(-1)
    for index in scope.classes:
        fits, size = dense.fits(index), dense.classes[index].size
        able = tree.sums(fits) >= size
        lowest = max(lowest, int(tree.tier[able].min())) if able.any() else int(tree.tier[tree.root])
        rooms = np.sort(np.bincount(leaves, weights=fits))[::-1].cumsum()
        fewest = max(fewest, min(int(np.searchsorted(rooms, size)) + 1, len(rooms)))
    return lowest, fewest


def groups_of_apps(dense: Dense) -> dict[int, frozenset[int]]:
    """AppGroup to the groups that have pods in it; empty without a network."""
    found: dict[int, set[int]] = {}
    for workload in dense.network.workloads if dense.network is not None else ():
        found.setdefault(workload.app, set()).update(dense.classes[index].group for index in workload.classes)
    return {app: frozenset(groups) for app, groups in found.items()}


def tied_groups(dense: Dense) -> dict[int, frozenset[int]]:
    """Group to the groups whose pods ask something of its own, or the other way round."""
    found: dict[int, frozenset[int]] = {}
    for classes in dense.neighbours.components if dense.neighbours is not None else ():
        groups = frozenset(dense.classes[index].group for index in classes)
        found.update({group: found.get(group, frozenset()) | groups for group in groups})
    return found


def draw(numbers: np.random.Generator, weights: FloatArray, allowed: BoolArray, size: int) -> IntArray:
    """Draw nodes by weight, each once: the largest of u^(1/w) first."""
    keys = np.where(allowed, numbers.random(len(weights)) ** (1 / weights), -1.0)
    size = min(size, int(allowed.sum()))
    return np.argpartition(-keys, size - 1)[:size].astype(np.int64) if size > 0 else np.zeros(0, dtype=np.int64)


def draw_one(chance: random.Random, excess: Iterable[tuple[int, int]]) -> int | None:
    """Draw one of some numbers by the weight beside each; None where no weight is above 0."""
    best, key = None, -1.0
    for number, weight in excess:
        drawn = chance.random() ** (1 / weight) if weight > 0 else -1.0
        if drawn > key:
            best, key = number, drawn
    return best


def without(allowed: BoolArray, *nodes: IntArray) -> BoolArray:
    """The nodes that may be freed, without some."""
    rest = allowed.copy()
    for each in nodes:
        rest[each] = False
    return rest


class _AppGroupNodes:
    """Nodes around an AppGroup: one that waits, or one whose calls cost more than they must."""

    def __init__(self, dense: Dense, network: DenseNetwork, chance: random.Random) -> None:
        self.dense, self.network, self.random = dense, network, chance
        self.numbers = np.random.default_rng(chance.getrandbits(32))
        self.groups = groups_of_apps(dense)
        self.workloads: dict[int, list[int]] = {}
        for number, workload in enumerate(network.workloads):
            self.workloads.setdefault(workload.app, []).append(number)

    @cached_property
    def _least_costs(self) -> dict[int, int]:
        return CallCosts(self.dense, self.network, [one.size for one in self.dense.classes]).by_app

    def around_waiting(
        self,
        incumbent: IncumbentState,
        size: int,
        allowed: BoolArray,
        room: FloatArray,
        groups: Collection[int],
        least: IntArray,
    ) -> tuple[IntArray, list[int]] | None:
        """Nodes for some AppGroups of which groups wait, and these groups; None where none waits.

        ``room`` is float, above 0, per node; ``least`` int64, shape (groups, resources). ``size`` is about the most
        nodes.
        """
        wait = set(groups)
        apps = [app for app, mine in self.groups.items() if not wait.isdisjoint(mine)]
        if not apps:
            return None
        chosen = self.random.sample(apps, min(8, len(apps)))
        asked = [least[sorted(wait.intersection(self.groups[app]))].sum(axis=0) for app in chosen]
        spare = incumbent.free[allowed].sum(axis=0) / max(1, int(allowed.sum()))
        fewest = int(np.max(2.0 * sum(asked) / np.maximum(spare, 1e-9), initial=1.0)) + 1
        nodes = self._around(chosen[0], incumbent, min(size, fewest), allowed, room)
        left = incumbent.free[nodes].sum(axis=0)
        focus: set[int] = set()
        for app, each in zip(chosen, asked, strict=True):
            left = left - each
            if not focus or (left >= 0).all():
                focus |= wait.intersection(self.groups[app])
        return nodes, sorted(focus)

    def around_dear(
        self, incumbent: IncumbentState, size: int, allowed: BoolArray, room: FloatArray, locked: Collection[int]
    ) -> tuple[int, IntArray] | None:
        """An AppGroup drawn by the excess cost of its calls, its nodes and others; None where no cost is in excess."""
        assert incumbent.communication is not None
        others = frozenset(locked)
        costs = incumbent.communication.costs.items()
        excess = (
            (app, cost - self._least_costs.get(app, 0)) for app, cost in costs if others.isdisjoint(self.groups[app])
        )
        best = draw_one(self.random, excess)
        return None if best is None else (best, self._around(best, incumbent, size, allowed, room))

    def _around(self, app: int, incumbent: IncumbentState, size: int, allowed: BoolArray, room: FloatArray) -> IntArray:
        nodes = {node for workload in self.workloads[app] for node in incumbent.pods_of(workload)}
        mine = np.array(sorted(node for node in nodes if allowed[node]), dtype=np.int64)
        if len(mine) > size * 3 // 4:
            mine = self.numbers.permutation(mine)[: size * 3 // 4]
        rest = without(allowed, mine)
        near = rest & (self.network.area == self._area(app, incumbent, rest, room))
        first = draw(self.numbers, room, near, (size - len(mine)) * 3 // 4)
        return np.concatenate(
            (mine, first, draw(self.numbers, room, without(rest, first), size - len(mine) - len(first)))
        )

    def _area(self, app: int, incumbent: IncumbentState, allowed: BoolArray, room: FloatArray) -> int:
        assert incumbent.communication is not None
        pods: FloatArray = np.zeros(len(self.network.cost))
        for workload in self.workloads[app]:
            for area, count in incumbent.communication.placed[workload].items():
                pods[area] += count
        if not pods.any() or self.random.random() < 0.5:
            pods = np.bincount(self.network.area[allowed], room[allowed], len(pods)).astype(np.float64)
        return int(np.argmax(pods * self.numbers.random(len(pods))))


class DestroyOperators:
    """The destroy operators for one value, each with its record of gains.

    Parameters
    ----------
    incumbent
        It may change between two choices.
    """

    def __init__(self, incumbent: IncumbentState, criterion: int, chance: random.Random) -> None:
        self.incumbent, self.criterion, self.random = incumbent, criterion, chance
        self.dense: Dense = incumbent.dense
        self.numbers = np.random.default_rng(chance.getrandbits(32))
        self.name, self.priority = self.dense.criteria[criterion]
        self.cell = _cells_of(self.dense)
        self.apps = None if self.dense.network is None else _AppGroupNodes(self.dense, self.dense.network, chance)
        # What an operator says, or is told, beside nodes: see `choose`.
        self.focus: list[int] = []
        self.fixed: frozenset[int] = frozenset()
        self.locked: Collection[int] = ()
        self.operators = self._operators()
        self.tried = [1.0] * len(self.operators)
        self.gained = [1.0] * len(self.operators)

    def _operators(self) -> list[Operator]:
        if self.name in MAXIMISED:
            calling = [] if self.apps is None else [self._around_waiting_apps]
            chained = [] if self.dense.numa is None else [self._for_chains]
            asking = [] if self.dense.neighbours is None else [self._around_those_asked_for]
            return [
                *chained,
                *calling,
                *asking,
                self._in_a_domain,
                self._stranded_anywhere,
                self._leaves,
                self._fitting_elsewhere,
            ]
        if self.name in ("locality", "span"):
            return [self._around_a_scope, self._leaves]
        if self.name == "networkCost" and self.apps is not None:
            return [self._around_a_dear_app, self._a_dear_app_alone if len(self.apps.groups) > 1 else self._leaves]
        return [self._hardly_used, self._leaves]

    def choose(self, sizes: Sequence[int], blocked: BoolArray, locked: Collection[int]) -> Neighbourhood:
        """Choose nodes and groups that wait.

        ``sizes`` is about how many nodes each operator frees; ``blocked`` nodes and ``locked`` groups take no part.
        """
        weights = [gained / tried for gained, tried in zip(self.gained, self.tried, strict=True)]
        weights = [0.1 * max(weights) + each for each in weights]
        operator = self.random.choices(range(len(self.operators)), weights=weights)[0]
        chains = self.operators[operator] == self._for_chains
        waiting = self._waiting(locked)
        self.focus, self.fixed, self.locked = [], frozenset(), locked
        nodes = self.operators[operator](sizes[operator], ~blocked, waiting)
        nodes = np.sort(nodes[~blocked[nodes]])
        waiting = [group for group in waiting if group not in self.fixed]
        pending = self.focus or self._drawn(waiting, nodes, chains=chains)
        return Neighbourhood(operator, nodes, pending, self.fixed, chains)

    def reward(self, operator: int, gain: bool) -> None:
        """Remember whether an operator has led to a gain; old results count less."""
        self.tried[operator] = 0.95 * self.tried[operator] + 1
        self.gained[operator] = 0.95 * self.gained[operator] + gain

    # Groups that wait

    def _waiting(self, locked: Collection[int]) -> list[int]:
        return [
            number
            for number, group in enumerate(self.dense.groups)
            if self.priority in (None, group.priority)
            and number not in locked
            and any(map(self.incumbent.left, group.classes))
        ]

    def _drawn(self, waiting: list[int], nodes: IntArray, *, chains: bool) -> list[int]:
        room = self._room(nodes)
        drawn = self.random.sample(waiting, len(waiting))
        fitting = [group for group in drawn if (self._needs[group] <= room).all()]
        # The others take the place of pods that are there: those that are worth most for what they ask for.
        others = sorted(set(drawn) - set(fitting), key=lambda group: -self._worth[group] * self.random.random())
        size = 12 if self.dense.numa is None else 256 if chains else 36
        most = max(size // 4, size // 2 if len(others) > len(fitting) else 0)
        return sorted([*fitting, *others[:most]][:size] if len(fitting) < size else fitting[:size])

    def _room(self, nodes: IntArray) -> IntArray:
        room: IntArray = self.incumbent.free[nodes].sum(axis=0)
        for (index, _), count in self.incumbent.there(nodes.tolist()).items():
            one = self.dense.classes[index]
            if self.dense.groups[one.group].priority < (self.priority or 0):
                room = room + one.request * count
        return room

    @cached_property
    def _worth(self) -> FloatArray:
        """float64, shape (groups,): weight of each group's pods per share of the scarcest resource."""
        dense = self.dense
        sizes = np.array([one.size for one in dense.classes])
        whole = np.maximum(dense.free.sum(axis=0), 1)
        if not len(whole):
            return np.ones(len(dense.groups))
        scarce = int(np.argmax(sizes @ dense.requests / whole))
        weight, asked = np.zeros(len(dense.groups)), np.zeros(len(dense.groups))
        for one in dense.classes:
            weight[one.group] += one.weight * one.size
            asked[one.group] += int(one.request[scarce]) * one.size / whole[scarce]
        return weight / np.maximum(asked, 1e-9)

    @cached_property
    def _needs(self) -> IntArray:
        """int64, shape (groups, resources): the least that a group needs before it gets anything, counted class by
        class.
        """
        rows = np.zeros((len(self.dense.groups), len(self.dense.resources)), dtype=np.int64)
        for number, group in enumerate(self.dense.groups):
            requests = self.dense.requests[list(group.classes)]
            sizes = [self.dense.classes[index].size for index in group.classes]
            pods = np.repeat(requests, sizes, axis=0)
            if group.short:
                rows[number] = np.sort(pods, axis=0)[: group.short].sum(axis=0)
        return rows

    # Where pods wait: room that is stranded

    def _stranded(self) -> FloatArray:
        free, whole = self.incumbent.free, np.maximum(self.dense.free.sum(axis=0), 1)
        if not free.shape[1]:
            return np.ones(len(free))
        room = free[:, int(np.argmin(free.sum(axis=0) / whole))].astype(np.float64)
        return ANYWHERE + room / max(1.0, float(room.max(initial=0.0)))

    def _stranded_anywhere(self, size: int, allowed: BoolArray, _: list[int]) -> IntArray:
        return draw(self.numbers, self._stranded(), allowed, size)

    def _fitting_elsewhere(self, size: int, allowed: BoolArray, _: list[int]) -> IntArray:
        stranded = self._stranded()
        first = draw(self.numbers, stranded, allowed, size // 2)
        room = self.incumbent.free[first]
        holds = np.full(len(stranded), ANYWHERE)
        for index, there in self.incumbent.where.items():
            request = self.dense.classes[index].request
            if there and (request <= room).all(axis=1).any():
                for node, count in there.items():
                    holds[node] += count
        return np.concatenate((first, draw(self.numbers, holds, without(allowed, first), size - len(first))))

    def _for_chains(self, _: int, allowed: BoolArray, __: list[int]) -> IntArray:
        """Ejection chains look at many more nodes than a solver could; now and then only at half of them."""
        most = min(128, len(allowed))
        return draw(self.numbers, self._stranded(), allowed, self.random.choice((most, -(-most // 2))))

    def _in_a_domain(self, size: int, allowed: BoolArray, waiting: list[int]) -> IntArray:
        weights = self._stranded()
        inside = self._inside(self._home(waiting, weights))
        first = draw(self.numbers, weights, allowed & inside, 3 * size // 4)
        return np.concatenate((first, draw(self.numbers, weights, without(allowed, first), size - len(first))))

    def _inside(self, domain: int) -> BoolArray:
        inside: BoolArray = np.zeros(len(self.dense.nodes), dtype=bool)
        inside[self.dense.domains.begin[domain] : self.dense.domains.end[domain]] = True
        return inside

    def _home(self, waiting: list[int], weights: FloatArray) -> int:
        tree = self.dense.domains
        tops = self._limits(self.random.choice(waiting)) if waiting else None
        if tops and self.random.random() < 0.8:
            room = tree.sums(weights)[list(tops)]
            return tops[int(np.argmax(room * self.numbers.random(len(tops))))]
        node = self.random.choices(range(len(weights)), weights=weights.tolist())[0]
        return self._above(int(self.dense.leaf[node]))

    def _limits(self, group: int) -> tuple[int, ...] | None:
        begin, end = self.dense.domains.begin, self.dense.domains.end
        classes = self.dense.groups[group].classes
        index = self.random.choice([each for each in classes if self.incumbent.left(each)] or list(classes))
        for scope in reversed(self.dense.scopes_of(index)):
            tops = self.dense.limit_domains(scope)
            if tops:
                nodes = self.incumbent.nodes_of(self.dense.scopes[scope].classes)
                return tuple(top for top in tops if begin[top] <= nodes[0] < end[top]) if nodes else tops
        return None

    def _above(self, domain: int) -> int:
        parent = int(self.dense.domains.parent[domain])
        return domain if parent < 0 else parent

    def _around_those_asked_for(self, size: int, allowed: BoolArray, waiting: list[int]) -> IntArray:
        classes = [index for group in waiting for index in self.dense.groups[group].classes]
        rooms, room = self.incumbent.neighbours, self._stranded()
        found = (rooms.beside_others(index) for index in filter(self.incumbent.left, classes) if rooms is not None)
        beside = [nodes for nodes in found if nodes is not None and nodes.any()]
        if not beside:
            return self._in_a_domain(size, allowed, waiting)
        inside = allowed & self.random.choice(beside)
        near = self._cells(self._weights_of_cells(room), inside, size // 2)
        return np.concatenate((near, draw(self.numbers, room, without(allowed, near), size - len(near))))

    # Where pods call each other

    def _around_waiting_apps(self, size: int, allowed: BoolArray, waiting: list[int]) -> IntArray:
        assert self.apps is not None
        found = self.apps.around_waiting(self.incumbent, size, allowed, self._stranded(), waiting, self._needs)
        if found is None:
            return self._stranded_anywhere(size, allowed, waiting)
        nodes, self.focus = found
        return nodes

    def _around_a_dear_app(self, size: int, allowed: BoolArray, waiting: list[int]) -> IntArray:
        assert self.apps is not None
        found = self.apps.around_dear(self.incumbent, size, allowed, self._stranded(), self.locked)
        return self._leaves(size, allowed, waiting) if found is None else found[1]

    def _a_dear_app_alone(self, size: int, allowed: BoolArray, waiting: list[int]) -> IntArray:
        assert self.apps is not None
        found = self.apps.around_dear(self.incumbent, size, allowed, self._stranded(), self.locked)
        if found is None:
            return self._leaves(size, allowed, waiting)
        app, nodes = found
        self.fixed = frozenset(range(len(self.dense.groups))).difference(self.apps.groups[app])
        return nodes

    # Leaf by leaf, for whatever value

    def _leaves(self, size: int, allowed: BoolArray, waiting: list[int]) -> IntArray:
        stranded = self._stranded()
        domain = self._home(waiting, stranded) if waiting else self._around(allowed)
        weights = self._weights_of_cells(stranded) ** 2
        near = self._cells(weights, allowed & self._inside(domain), size // 2)
        return np.concatenate((near, self._cells(weights, without(allowed, near), size - len(near))))

    def _around(self, allowed: BoolArray) -> int:
        node = int(self.random.choice(np.flatnonzero(allowed).tolist())) if allowed.any() else 0
        return self._above(int(self.dense.leaf[node]))

    def _weights_of_cells(self, weights: FloatArray) -> FloatArray:
        found: FloatArray = np.maximum(ANYWHERE, np.bincount(self.cell, weights=weights) / np.bincount(self.cell))
        return found

    def _cells(self, weights: FloatArray, allowed: BoolArray, size: int) -> IntArray:
        open_cells = np.unique(self.cell[allowed])
        if not len(open_cells) or size <= 0:
            return np.zeros(0, dtype=np.int64)
        keys = self.numbers.random(len(open_cells)) ** (1 / weights[open_cells])
        order = open_cells[np.argsort(-keys)]
        count = np.cumsum(np.bincount(self.cell[allowed], minlength=len(weights))[order])
        chosen = order[: int(np.searchsorted(count, size)) + 1]
        nodes = np.flatnonzero(allowed & np.isin(self.cell, chosen)).astype(np.int64)
        return nodes if len(nodes) <= 2 * size else self.numbers.permutation(nodes)[:size]

    # Where pods are apart

    def _around_a_scope(self, size: int, allowed: BoolArray, _: list[int]) -> IntArray:
        scope = draw_one(self.random, self._wide_scopes())
        if scope is None:
            return self._leaves(size, allowed, [])
        nodes = sorted(set(self.incumbent.nodes_of(self.dense.scopes[scope].classes)))
        mine: IntArray = np.array(nodes, dtype=np.int64)
        inside = self._inside(self._target(scope, mine))
        even = np.ones(int(self.cell.max()) + 1)
        here = self._cells(even, allowed & np.isin(self.cell, self.cell[mine]), size // 2)
        there = self._cells(even, without(allowed, here) & inside, size - len(here))
        rest = without(allowed, here, there)
        return np.concatenate((here, there, self._cells(even, rest, size - len(here) - len(there))))

    def _target(self, scope: int, mine: IntArray) -> int:
        tree = self.dense.domains
        common = self.dense.common(mine.tolist())
        home = tree.root if common is None else common
        lowest = self._narrowest[scope][0]
        if self.name == "span" or lowest >= int(tree.tier[home]):
            return home
        tier = self.random.choice(sorted({int(t) for t in tree.tier if lowest <= t < int(tree.tier[home])}))
        able = self._domains(scope, tier)
        near = able[(tree.begin[able] >= tree.begin[home]) & (tree.end[able] <= tree.end[home])]
        able = near if len(near) and self.random.random() < 0.5 else able
        return int(self.random.choice(able.tolist())) if len(able) else home

    def _domains(self, scope: int, tier: int) -> IntArray:
        tree = self.dense.domains
        able: IntArray = np.flatnonzero((tree.tier == tier) & (tree.end > tree.begin))
        tops = self.dense.limit_domains(scope)
        if tops is None:
            return able
        within = [(tree.begin[able] >= tree.begin[top]) & (tree.end[able] <= tree.end[top]) for top in tops]
        return able[np.any(within, axis=0)] if within else able[:0]

    def _wide_scopes(self) -> Iterable[tuple[int, int]]:
        dense = self.dense
        for number, (lowest, fewest) in self._narrowest.items():
            classes = dense.scopes[number].classes
            nodes = set(self.incumbent.nodes_of(classes))
            if len(nodes) < 2:
                continue
            if self.name == "locality":
                common = dense.common(nodes)
                pods = sum(self.incumbent.placed[each] for each in classes)
                yield number, 0 if common is None else (int(dense.domains.tier[common]) - lowest) * pods
            else:
                yield number, len({int(dense.span_leaf[node]) for node in nodes}) - fewest

    @cached_property
    def _narrowest(self) -> dict[int, tuple[int, int]]:
        """Per scope that counts in O2: the lowest tier and the fewest leaves that all its new pods need alone."""
        return {number: _least_of(self.dense, scope) for number, scope in enumerate(self.dense.scopes) if scope.wanted}

    # What is hardly used

    def _hardly_used(self, size: int, allowed: BoolArray, _: list[int]) -> IntArray:
        busy = (self.incumbent.used & ~self.dense.node_used).astype(np.int64)
        tree = self.dense.domains
        opened = tree.sums(busy)
        able = np.flatnonzero((opened > 0) & ~tree.used & (np.arange(len(opened)) != tree.root))
        if self.name == "packedNodes" or not len(able):
            return self._leaves(size, allowed, [])
        keys = self.numbers.random(len(able)) ** opened[able]
        inside = self._inside(int(able[int(np.argmax(keys))]))
        first = np.flatnonzero(inside & allowed & (busy > 0)).astype(np.int64)[:size]
        cells = np.isin(self.cell, np.unique(self.cell[allowed & self.incumbent.used]))
        weights = self._weights_of_cells(self._stranded())
        return np.concatenate((first, self._cells(weights, allowed & cells & ~inside, size - len(first))))
