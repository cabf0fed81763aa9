"""Which nodes a step frees: where room is stranded, where a scope is wider than it need be, what is hardly used.

Every way is drawn by chance, weighted by how much there is to gain; ways that have led to something are drawn more
often.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from placer.dense import Dense
from placer.methods.decomposed.choose_apps import Apps, draw
from placer.methods.decomposed.incumbent_state import IncumbentState
from placer.methods.decomposed.leaves import cells_of, least_of
from placer.methods.decomposed.waiting import Waiting
from placer.placement import MAXIMISED

__all__ = ["Choice", "Chooser"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

#: Nodes of a walk from zone to zone at most.
WALK = 128
#: Weight of a node where nothing is to gain, against 1 where most is.
ANYWHERE = 0.02

#: A way to choose: how many nodes, which may be chosen, the groups that wait.
Way = Callable[[int, BoolArray, list[int]], IntArray]


class Choice(NamedTuple):
    """What a step frees, and who takes part.

    Parameters
    ----------
    way
        Number of the way it was chosen in.
    nodes
        Indices, ascending.
    pending
        Groups that wait and take part.
    held
        Groups that are left as they are, also on the nodes.
    walk
        Whether pods are exchanged between zones, one or two at a time.
    """

    way: int
    nodes: IntArray
    pending: list[int]
    held: frozenset[int]
    walk: bool = False


class Chooser:
    """Chooses neighbourhoods for one value.

    Parameters
    ----------
    standing
        The solution at hand; it may change between two choices.
    level
        The value that is to get better.
    chance
        Source of all chance.
    """

    def __init__(self, standing: IncumbentState, level: int, chance: random.Random) -> None:
        self.standing, self.level, self.random = standing, level, chance
        self.dense: Dense = standing.dense
        self.numbers = np.random.default_rng(chance.getrandbits(32))
        self.name, self.priority = self.dense.levels[level]
        self.waiting = Waiting(self.dense, self.priority, chance)
        self.cell = cells_of(self.dense)
        self.apps = None if self.dense.network is None else Apps(self.dense, self.dense.network, chance)
        self.focus: list[int] = []
        self.held: frozenset[int] = frozenset()
        self.still: Collection[int] = ()
        self.alone = 0
        self.ways = self._ways()
        self.tried = [1.0] * len(self.ways)
        self.gained = [1.0] * len(self.ways)

    def _ways(self) -> list[Way]:
        if self.name in MAXIMISED:
            calling = [] if self.apps is None else [self._around_waiting_apps]
            walking = [] if self.dense.numa is None else [self._for_a_walk]
            return [*walking, *calling, self._in_a_domain, self._stranded_anywhere, self._leaves]
        if self.name in ("locality", "span"):
            return [self._around_a_scope, self._leaves]
        if self.name == "networkCost" and self.apps is not None:
            return [self._around_a_dear_app, self._a_dear_app_alone if len(self.apps.groups) > 1 else self._leaves]
        return [self._hardly_used, self._leaves]

    def choose(self, size: int, alone: int, barred: BoolArray, still: Collection[int]) -> Choice:
        """Choose nodes and groups that wait.

        Parameters
        ----------
        size, alone
            About how many nodes, where all pods on them take part and where only one AppGroup's do.
        barred
            bool, shape (nodes,): nodes that may not be chosen.
        still
            Groups that may not take part.
        """
        weights = [gained / tried for gained, tried in zip(self.gained, self.tried, strict=True)]
        way = self.random.choices(range(len(self.ways)), weights=[0.1 * max(weights) + each for each in weights])[0]
        walk = self.ways[way] == self._for_a_walk
        waiting = self.waiting.groups(self.standing, still)
        self.focus, self.held, self.still, self.alone = [], frozenset(), still, alone
        nodes = self.ways[way](size, ~barred, waiting)
        nodes = np.sort(nodes[~barred[nodes]])
        waiting = [group for group in waiting if group not in self.held]
        pending = self.focus or self.waiting.drawn(self.standing, waiting, nodes, walk)
        return Choice(way, nodes, pending, self.held, walk)

    def learn(self, way: int, gain: bool) -> None:
        """Remember whether a way has led to something; what was long ago counts less."""
        self.tried[way] = 0.95 * self.tried[way] + 1
        self.gained[way] = 0.95 * self.gained[way] + gain

    # Where pods wait: room that is stranded

    def _stranded(self) -> FloatArray:
        """Weight of each node: how much of the scarcest resource is left on it."""
        free, whole = self.standing.free, np.maximum(self.dense.free.sum(axis=0), 1)
        if not free.shape[1]:
            return np.ones(len(free))
        room = free[:, int(np.argmin(free.sum(axis=0) / whole))].astype(np.float64)
        return ANYWHERE + room / max(1.0, float(room.max(initial=0.0)))

    def _draw(self, weights: FloatArray, allowed: BoolArray, size: int) -> IntArray:
        return draw(self.numbers, weights, allowed, size)

    def _stranded_anywhere(self, size: int, allowed: BoolArray, _: list[int]) -> IntArray:
        """Nodes with room, wherever they are."""
        return self._draw(self._stranded(), allowed, size)

    def _for_a_walk(self, _: int, allowed: BoolArray, __: list[int]) -> IntArray:
        """Nodes with room wherever they are, many more than a solver could look at; now and then only half of them."""
        most = min(WALK, len(allowed))
        return self._draw(self._stranded(), allowed, self.random.choice((most, -(-most // 2))))

    def _in_a_domain(self, size: int, allowed: BoolArray, waiting: list[int]) -> IntArray:
        """Most nodes in one domain where a group that waits could be, the others anywhere."""
        weights = self._stranded()
        inside = np.zeros(len(weights), dtype=bool)
        inside[self._home(waiting, weights)] = True
        first = self._draw(weights, allowed & inside, 3 * size // 4)
        others = allowed.copy()
        others[first] = False
        return np.concatenate((first, self._draw(weights, others, size - len(first))))

    def _home(self, waiting: list[int], weights: FloatArray) -> slice:
        """A domain that a group that waits is limited to, one with much room; else one around a node with room."""
        tree = self.dense.domains
        tops = self._limits(self.random.choice(waiting)) if waiting else None
        if tops and self.random.random() < 0.8:
            sums = np.concatenate(([0.0], np.cumsum(weights)))
            room = sums[tree.end[list(tops)]] - sums[tree.begin[list(tops)]]
            best = tops[int(np.argmax(room * self.numbers.random(len(tops))))]
        else:
            node = self.random.choices(range(len(weights)), weights=weights.tolist())[0]
            best = self._above(int(self.dense.leaf[node]))
        return slice(int(tree.begin[best]), int(tree.end[best]))

    def _limits(self, group: int) -> tuple[int, ...] | None:
        """Domains of which one must hold pods that wait: of those that have company already, only where that is."""
        gang = self.dense.groups[group]
        waiting = [i for i in gang.classes if self.standing.placed[i] < self.dense.classes[i].size]
        index = self.random.choice(waiting or list(gang.classes))
        sub = self.dense.classes[index].sub_group
        scopes = [gang.scope] if sub < 0 else [self.dense.sub_groups[sub].scope, gang.scope]
        for scope in scopes:
            tops = self.dense.limit_domains(scope)
            if tops:
                node = next(
                    (node for each in self.dense.scopes[scope].classes for node in self.standing.where[each]), None
                )
                return tops if node is None else tuple(top for top in tops if self._holds(top, node))
        return None

    def _holds(self, domain: int, node: int) -> bool:
        return bool(self.dense.domains.begin[domain] <= node < self.dense.domains.end[domain])

    def _above(self, domain: int) -> int:
        parent = int(self.dense.domains.parent[domain])
        return domain if parent < 0 else parent

    # Where pods call each other

    def _around_waiting_apps(self, size: int, allowed: BoolArray, waiting: list[int]) -> IntArray:
        """Nodes where AppGroups that wait could be; all that waits of them comes along."""
        assert self.apps is not None
        found = self.apps.around_waiting(self.standing, size, allowed, self._stranded(), waiting, self.waiting.least)
        if found is None:
            return self._stranded_anywhere(size, allowed, waiting)
        nodes, self.focus = found
        return nodes

    def _around_a_dear_app(self, size: int, allowed: BoolArray, waiting: list[int]) -> IntArray:
        """An AppGroup whose calls cost more than they would have to, and nodes where they could cost less."""
        assert self.apps is not None
        found = self.apps.around_dear(self.standing, size, allowed, self._stranded(), self.still)
        return self._leaves(size, allowed, waiting) if found is None else found[1]

    def _a_dear_app_alone(self, size: int, allowed: BoolArray, waiting: list[int]) -> IntArray:
        """The same, with all that is not in the AppGroup held: few pods, on more nodes."""
        assert self.apps is not None
        found = self.apps.around_dear(self.standing, self.alone, allowed, self._stranded(), self.still)
        if found is None:
            return self._leaves(size, allowed, waiting)
        app, nodes = found
        self.held = frozenset(range(len(self.dense.groups))).difference(self.apps.groups[app])
        return nodes

    # Leaf by leaf, for whatever value

    def _leaves(self, size: int, allowed: BoolArray, waiting: list[int]) -> IntArray:
        """Whole leaves, half of them where one group that waits could live, the others anywhere."""
        stranded = self._stranded()
        where = self._home(waiting, stranded) if waiting else self._around(allowed)
        inside = np.zeros(len(allowed), dtype=bool)
        inside[where] = True
        weights = np.maximum(ANYWHERE, np.bincount(self.cell, weights=stranded) / np.bincount(self.cell)) ** 2
        near = self._cells(weights, allowed & inside, size // 2)
        rest = allowed.copy()
        rest[near] = False
        return np.concatenate((near, self._cells(weights, rest, size - len(near))))

    def _around(self, allowed: BoolArray) -> slice:
        tree = self.dense.domains
        node = int(self.random.choice(np.flatnonzero(allowed).tolist())) if allowed.any() else 0
        best = self._above(int(self.dense.leaf[node]))
        return slice(int(tree.begin[best]), int(tree.end[best]))

    def _cells(self, weights: FloatArray, allowed: BoolArray, size: int) -> IntArray:
        """Leaves, or pieces of large ones, by weighted draw until there are so many nodes."""
        open_cells = np.unique(self.cell[allowed])
        if not len(open_cells) or size <= 0:
            return np.zeros(0, dtype=np.int64)
        keys = self.numbers.random(len(open_cells)) ** (1 / weights[open_cells])
        order = open_cells[np.argsort(-keys)]
        count = np.cumsum(np.bincount(self.cell[allowed], minlength=len(weights))[order])
        chosen = order[: int(np.searchsorted(count, size)) + 1]
        return np.flatnonzero(allowed & np.isin(self.cell, chosen)).astype(np.int64)

    # Where pods are apart

    def _around_a_scope(self, size: int, allowed: BoolArray, _: list[int]) -> IntArray:
        """A scope that is wider than it need be: the leaves it is on, and a domain that could hold all of it."""
        scope = self._wide_scope()
        if scope is None:
            return self._leaves(size, allowed, [])
        tree = self.dense.domains
        mine = np.array(sorted(set(self.standing.nodes_of(self.dense.scopes[scope].classes))))
        domain = self._target(scope, mine)
        inside = np.zeros(len(allowed), dtype=bool)
        inside[tree.begin[domain] : tree.end[domain]] = True
        even = np.ones(int(self.cell.max()) + 1)
        here = self._cells(even, allowed & np.isin(self.cell, self.cell[mine]), size // 2)
        rest = allowed.copy()
        rest[here] = False
        there = self._cells(even, rest & inside, size - len(here))
        rest[there] = False
        return np.concatenate((here, there, self._cells(even, rest, size - len(here) - len(there))))

    def _target(self, scope: int, mine: IntArray) -> int:
        """The domain that a scope could lie in better: for ``locality`` one lower, for ``span`` the one it is in."""
        tree, dense = self.dense.domains, self.dense
        home = dense.common(mine.tolist())
        home = tree.root if home is None else home
        lowest = self.least[scope][0]
        if self.name == "span" or lowest >= int(tree.tier[home]):
            return home
        tier = self.random.choice(sorted({int(t) for t in tree.tier if lowest <= t < int(tree.tier[home])}))
        able = np.flatnonzero((tree.tier == tier) & (tree.end > tree.begin))
        tops = dense.limit_domains(scope)
        if tops is not None:
            within = [(tree.begin[able] >= tree.begin[top]) & (tree.end[able] <= tree.end[top]) for top in tops]
            able = able[np.any(within, axis=0)] if within else able[:0]
        near = able[(tree.begin[able] >= tree.begin[home]) & (tree.end[able] <= tree.end[home])]
        able = near if len(near) and self.random.random() < 0.5 else able
        return int(self.random.choice(able.tolist())) if len(able) else home

    def _wide_scope(self) -> int | None:
        """A scope drawn by how much it adds to the value beyond what it would alone; None where none does."""
        dense, best, key = self.dense, None, -1.0
        for number, (lowest, fewest) in self.least.items():
            nodes = {node for each in dense.scopes[number].classes for node in self.standing.where.get(each, ())}
            if len(nodes) < 2:
                continue
            if self.name == "locality":
                common = dense.common(nodes)
                pods = sum(self.standing.placed[each] for each in dense.scopes[number].classes)
                excess = 0 if common is None else (int(dense.domains.tier[common]) - lowest) * pods
            else:
                excess = len({int(dense.leaf_unit[node]) for node in nodes}) - fewest
            drawn = self.random.random() ** (1 / excess) if excess > 0 else -1.0
            if drawn > key:
                best, key = number, drawn
        return best

    @cached_property
    def least(self) -> dict[int, tuple[int, int]]:
        """Per scope that counts in O2: the lowest tier and the fewest leaves that all its new pods need alone."""
        return {number: least_of(self.dense, scope) for number, scope in enumerate(self.dense.scopes) if scope.wanted}

    # What is hardly used

    def _hardly_used(self, size: int, allowed: BoolArray, _: list[int]) -> IntArray:
        """A domain that was empty before and holds little, and others with room for what it holds."""
        busy = (self.standing.used & ~self.dense.node_used).astype(np.int64)
        sums = np.concatenate(([0], np.cumsum(busy)))
        tree = self.dense.domains
        opened = sums[tree.end] - sums[tree.begin]
        able = np.flatnonzero((opened > 0) & ~tree.used & (np.arange(len(opened)) != tree.root))
        if self.name == "packedNodes" or not len(able):
            return self._leaves(size, allowed, [])
        keys = self.numbers.random(len(able)) ** opened[able]
        domain = int(able[int(np.argmax(keys))])
        inside = np.zeros(len(allowed), dtype=bool)
        inside[tree.begin[domain] : tree.end[domain]] = True
        first = np.flatnonzero(inside & allowed & (busy > 0)).astype(np.int64)[:size]
        others = allowed & self.standing.used
        cells = np.isin(self.cell, np.unique(self.cell[others]))
        rest = allowed & cells & ~inside
        stranded = self._stranded()
        weights = np.maximum(ANYWHERE, np.bincount(self.cell, weights=stranded) / np.bincount(self.cell))
        return np.concatenate((first, self._cells(weights, rest, size - len(first))))
