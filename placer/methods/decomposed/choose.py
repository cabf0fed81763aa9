"""Which nodes a step frees: where room is stranded, where a scope is wider than it need be, what is hardly used.

Every way is drawn by chance, weighted by how much there is to gain; ways that have led to something are drawn more
often.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection

import numpy as np
import numpy.typing as npt

from placer.dense import Dense
from placer.methods.decomposed.standing import Standing
from placer.placement import MAXIMISED

__all__ = ["Chooser"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

#: Leaves with more nodes than this are looked at in pieces.
CELL = 16
#: Groups that wait and take part in a step.
WAITING = 12
#: Weight of a node where nothing is to gain, against 1 where most is.
ANYWHERE = 0.02

#: A way to choose: how many nodes, which may be chosen, the groups that wait.
Way = Callable[[int, BoolArray, list[int]], IntArray]


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

    def __init__(self, standing: Standing, level: int, chance: random.Random) -> None:
        self.standing, self.level, self.random = standing, level, chance
        self.dense: Dense = standing.dense
        self.numbers = np.random.default_rng(chance.getrandbits(32))
        self.name, self.priority = self.dense.levels[level]
        self.cell = _cells(self.dense)
        self.ways = self._ways()
        self.tried = [1.0] * len(self.ways)
        self.gained = [1.0] * len(self.ways)
        self.lowest: dict[int, int] = {}

    def _ways(self) -> list[Way]:
        if self.name in MAXIMISED:
            return [self._in_a_domain, self._stranded_anywhere, self._leaves]
        if self.name in ("locality", "span"):
            return [self._around_a_scope, self._leaves]
        return [self._hardly_used, self._leaves]

    def choose(self, size: int, barred: BoolArray, still: Collection[int]) -> tuple[int, IntArray, list[int]]:
        """Choose nodes and groups that wait.

        Parameters
        ----------
        size
            About how many nodes.
        barred
            bool, shape (nodes,): nodes that may not be chosen.
        still
            Groups that may not take part.

        Returns
        -------
        The number of the way, node indices ascending, groups.
        """
        weights = [gained / tried for gained, tried in zip(self.gained, self.tried, strict=True)]
        way = self.random.choices(range(len(self.ways)), weights=[0.1 * max(weights) + each for each in weights])[0]
        waiting = self._waiting(still)
        nodes = self.ways[way](size, ~barred, waiting)
        return way, np.sort(nodes[~barred[nodes]]), waiting

    def learn(self, way: int, gain: bool) -> None:
        """Remember whether a way has led to something; what was long ago counts less."""
        self.tried[way] = 0.95 * self.tried[way] + 1
        self.gained[way] = 0.95 * self.gained[way] + gain

    def _waiting(self, still: Collection[int]) -> list[int]:
        """Groups of which something waits: of the priority that the value is about, else any."""
        placed, dense = self.standing.placed, self.dense
        found = [
            number
            for number, group in enumerate(dense.groups)
            if self.priority in (None, group.priority)
            and number not in still
            and any(placed[index] < dense.classes[index].size for index in group.classes)
        ]
        return sorted(self.random.sample(found, min(WAITING, len(found))))

    # Where pods wait: room that is stranded

    def _stranded(self) -> FloatArray:
        """Weight of each node: how much of the scarcest resource is left on it."""
        free, whole = self.standing.free, np.maximum(self.dense.free.sum(axis=0), 1)
        if not free.shape[1]:
            return np.ones(len(free))
        room = free[:, int(np.argmin(free.sum(axis=0) / whole))].astype(np.float64)
        return ANYWHERE + room / max(1.0, float(room.max(initial=0.0)))

    def _draw(self, weights: FloatArray, allowed: BoolArray, size: int) -> IntArray:
        """Weighted draw without repetition: the largest of u^(1/w) first."""
        keys = np.where(allowed, self.numbers.random(len(weights)) ** (1 / weights), -1.0)
        size = min(size, int(allowed.sum()))
        return np.argpartition(-keys, size - 1)[:size].astype(np.int64) if size else np.zeros(0, dtype=np.int64)

    def _stranded_anywhere(self, size: int, allowed: BoolArray, _: list[int]) -> IntArray:
        """Nodes with room, wherever they are."""
        return self._draw(self._stranded(), allowed, size)

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
        if tops and self.random.random() < 0.7:
            sums = np.concatenate(([0.0], np.cumsum(weights)))
            room = sums[tree.end[list(tops)]] - sums[tree.begin[list(tops)]]
            best = tops[int(np.argmax(room * self.numbers.random(len(tops))))]
        else:
            node = self.random.choices(range(len(weights)), weights=weights.tolist())[0]
            best = self._above(int(self.dense.leaf[node]))
        return slice(int(tree.begin[best]), int(tree.end[best]))

    def _limits(self, group: int) -> tuple[int, ...] | None:
        """Domains of which one must hold a group, or one of its subgroups."""
        gang = self.dense.groups[group]
        scopes = [gang.scope, *(self.dense.sub_groups[sub].scope for sub in gang.sub_groups)]
        return next((tops for scope in scopes if (tops := self.dense.limit_domains(scope))), None)

    def _above(self, domain: int) -> int:
        parent = int(self.dense.domains.parent[domain])
        return domain if parent < 0 else parent

    # Leaf by leaf, for whatever value

    def _leaves(self, size: int, allowed: BoolArray, waiting: list[int]) -> IntArray:
        """Whole leaves, half of them where one group that waits could live, the others anywhere."""
        tree = self.dense.domains
        stranded = self._stranded()
        where = self._home(waiting, stranded) if waiting else self._around(allowed)
        inside = np.zeros(len(allowed), dtype=bool)
        inside[where] = True
        weights = np.maximum(ANYWHERE, np.bincount(self.cell, weights=stranded) / np.bincount(self.cell)) ** 2
        near = self._cells(weights, allowed & inside, size // 2)
        rest = allowed.copy()
        rest[near] = False
        del tree
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
        """A scope that is wider than it need be: where it is, and a domain that could hold more of it."""
        scope = self._wide_scope()
        if scope is None:
            return self._leaves(size, allowed, [])
        tree, dense = self.dense.domains, self.dense
        mine = np.array(sorted({node for each in dense.scopes[scope].classes for node in self.standing.at[each]}))
        home = dense.common(mine.tolist()) if len(mine) else None
        domain = tree.root if home is None else home
        inside = np.zeros(len(allowed), dtype=bool)
        inside[tree.begin[domain] : tree.end[domain]] = True
        if self.name == "locality" and domain != tree.root and self.random.random() < 0.5:
            inside[:] = True  # it may fit together somewhere else altogether
        weights = np.full(int(self.cell.max()) + 1, 0.2)
        weights[self.cell[mine]] = 1.0
        found = self._cells(weights, allowed & np.isin(self.cell, self.cell[mine]), size // 2)
        target = self._target(scope, domain, inside & allowed)
        rest = allowed & inside
        rest[found] = False
        target = target[: max(0, size - len(found))] if self.name == "span" else target
        found = np.union1d(found, target)
        rest[found] = False
        return np.concatenate((found, self._cells(np.ones_like(weights), rest, size - len(found))))

    def _target(self, scope: int, home: int, inside: BoolArray) -> IntArray:
        """Nodes of a domain below its home, or beside it, in which the scope could lie together."""
        tree = self.dense.domains
        below = tree.tier < (tree.tier[home] if self.name == "locality" else tree.tier[home] + 1)
        width = tree.end - tree.begin
        pods = sum(self.standing.placed[each] for each in self.dense.scopes[scope].classes)
        able = np.flatnonzero(below & (width > 0) & inside[np.minimum(tree.begin, len(inside) - 1)])
        if not len(able) or not pods:
            return np.zeros(0, dtype=np.int64)
        lowest = able[tree.tier[able] == tree.tier[able].max()]
        domain = int(self.random.choice(lowest.tolist()))
        return np.arange(tree.begin[domain], tree.end[domain], dtype=np.int64)

    def _wide_scope(self) -> int | None:
        """A scope that adds more to the value than it would alone on its leaves; None where there is none."""
        dense, best, key = self.dense, None, -1.0
        tree = dense.domains
        lowest = int(tree.tier.min())
        for number, scope in enumerate(dense.scopes):
            if not scope.wanted:
                continue
            nodes = {node for each in scope.classes for node in self.standing.at.get(each, ())}
            if len(nodes) < 2:
                continue
            if self.name == "locality":
                common = dense.common(nodes)
                excess = 0.0 if common is None else float(tree.tier[common] - lowest) * len(nodes)
            else:
                excess = float(len({int(dense.leaf_unit[node]) for node in nodes}) - 1)
            drawn = self.random.random() ** (1 / excess) if excess > 0 else -1.0
            if drawn > key:
                best, key = number, drawn
        return best if key >= 0 else None

    # What is hardly used

    def _hardly_used(self, size: int, allowed: BoolArray, _: list[int]) -> IntArray:
        """A domain that was empty before and holds little, and others with room for what it holds."""
        busy = ((self.standing.busy > 0) & ~self.dense.node_used).astype(np.int64)
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
        others = allowed & ((self.standing.busy > 0) | self.dense.node_used)
        cells = np.isin(self.cell, np.unique(self.cell[others]))
        rest = allowed & cells & ~inside
        stranded = self._stranded()
        weights = np.maximum(ANYWHERE, np.bincount(self.cell, weights=stranded) / np.bincount(self.cell))
        return np.concatenate((first, self._cells(weights, rest, size - len(first))))


def _cells(dense: Dense) -> IntArray:
    """Number of the leaf, or of the piece of a large one, that each node is in."""
    number = np.zeros(len(dense.nodes), dtype=np.int64)
    last, count, inside = None, -1, 0
    for node, leaf in enumerate(dense.leaf.tolist()):
        if leaf != last or inside == CELL:
            last, count, inside = leaf, count + 1, 0
        number[node] = count
        inside += 1
    return number
