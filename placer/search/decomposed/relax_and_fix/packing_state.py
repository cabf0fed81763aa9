"""The state so far: fixed items in leaves, and the room that they leave of their nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass

from placer.base.grouping import slots_of
from placer.search.decomposed.relax_and_fix.packing_problem import (
    ANYWHERE,
    Filling,
    ItemKind,
    PackedGang,
    PackingProblem,
)
from placer.search.events import TooLarge
from placer.search.exact.node_sets import Request


@dataclass(frozen=True)
class FixedItem:
    """An item that has its place: ``places`` are its pods as (node, shape, count)."""

    kind: ItemKind
    places: tuple[tuple[int, int, int], ...]


class PackingState:
    """Fixed items per leaf, those that are left, and how nodes may still be filled; TooLarge where there are too many
    ways.

    ``fillings`` has per kind of nodes the possible contents of one of them; ``home`` is for parts with a fixed item.
    """

    def __init__(self, problem: PackingProblem, gangs: Iterable[PackedGang]) -> None:
        self.problem, self.gangs = problem, tuple(gangs)
        self.left = Counter(kind for gang in self.gangs for kind, _ in gang.items)
        self.fixed: dict[int, tuple[FixedItem, ...]] = {}
        self.home: dict[int, int] = {}
        self.fillings: list[tuple[Filling, ...]] = []
        self._numbers: dict[tuple[Filling, ...], int] = {}
        self._room: dict[int, Request] = dict(problem.room)
        self.kind_of = {node: self._kind(node) for node in problem.room}

    def _kind(self, node: int) -> int:
        found = self.problem.fillings(node, self._room[node])
        if found is None:
            raise TooLarge("relax and fix: too many fillings of a node")
        if found not in self._numbers:
            self._numbers[found] = len(self.fillings)
            self.fillings.append(found)
        return self._numbers[found]

    def count(self, nodes: Iterable[int]) -> Counter[int]:
        """Kind to how many of some nodes are of it."""
        return Counter(self.kind_of[node] for node in nodes)

    def fix(self, leaf: int, items: Sequence[ItemKind], filled: Iterable[tuple[int, Filling]]) -> None:
        """Fix items in a leaf; ``filled`` has each of its nodes once, with a filling of its kind."""
        wanted = Counter[int]()
        for kind in items:
            for shape, count in kind.content:
                wanted[shape] += count
        slots = slots_of(self._dealt(filled, wanted))
        found = list(self.fixed.get(leaf, ()))
        for kind in items:
            places = Counter((slots[shape].pop(), shape) for shape, count in kind.content for _ in range(count))
            found.append(FixedItem(kind, tuple((node, shape, count) for (node, shape), count in places.items())))
            self.left[kind] -= 1
            if kind.scope != ANYWHERE:
                self.home[kind.scope] = self._home_of(kind.scope, leaf)
            self._take(found[-1], 1)
        self.fixed[leaf] = tuple(found)

    def _home_of(self, scope: int, leaf: int) -> int:
        part, _ = self.problem.homed[scope]
        return next(home for home in part.homes if self.problem.dense.domains.within(leaf, home))

    def _dealt(self, filled: Iterable[tuple[int, Filling]], wanted: Counter[int]) -> Iterator[tuple[int, int, int]]:
        """To as few nodes as possible: room next to the items is left open."""
        volume, nodes = self.problem.volume, dict(filled)
        wanted = +wanted

        def taken(node: int) -> int:
            return sum(min(count, wanted[shape]) * volume[shape] for shape, count in nodes[node])

        while wanted:
            node = max(nodes, key=taken)
            for shape, count in nodes.pop(node):
                if some := min(count, wanted[shape]):
                    yield node, shape, some
                    wanted[shape] -= some
            wanted = +wanted

    def _take(self, item: FixedItem, sign: int) -> None:
        for node, shape, count in item.places:
            request = self.problem.shapes[shape][0]
            room = zip(self._room[node], request, strict=True)
            self._room[node] = tuple(left - sign * count * amount for left, amount in room)
            self.kind_of[node] = self._kind(node)

    def free(self, leaves: Iterable[int]) -> dict[int, Counter[ItemKind]]:
        """Free the items in some leaves; return leaf to its items."""
        had = {}
        for leaf in leaves:
            items = self.fixed.pop(leaf, ())
            for item in items:
                self.left[item.kind] += 1
                self._take(item, -1)
            had[leaf] = Counter(item.kind for item in items)
        self._forget_homes()
        return had

    def free_part(self, scope: int) -> None:
        """Free all items of a part that has a home."""
        for leaf, items in list(self.fixed.items()):
            mine = [item for item in items if item.kind.scope == scope]
            for item in mine:
                self.left[item.kind] += 1
                self._take(item, -1)
            if mine:
                self.fixed[leaf] = tuple(item for item in items if item.kind.scope != scope)
        self._forget_homes()

    def _forget_homes(self) -> None:
        still = {item.kind.scope for items in self.fixed.values() for item in items}
        self.home = {scope: home for scope, home in self.home.items() if scope in still}

    def copy(self) -> PackingState:
        """An independent copy."""
        other = copy(self)
        other.left, other.fixed, other.home = Counter(self.left), dict(self.fixed), dict(self.home)
        other._room, other.kind_of = dict(self._room), dict(self.kind_of)
        return other

    def whole_gangs(self) -> list[tuple[PackedGang, list[FixedItem]]]:
        """Gangs of which every item is fixed, those that weigh most first, each with its items."""
        there: dict[ItemKind, list[FixedItem]] = defaultdict(list)
        for leaf in sorted(self.fixed):
            for item in self.fixed[leaf]:
                there[item.kind].append(item)
        weight = self.problem.dense.groups
        found = []
        for gang in sorted(self.gangs, key=lambda gang: (not gang.required, -weight[gang.group].need_weight)):
            asked = Counter(kind for kind, _ in gang.items)
            if all(len(there[kind]) >= count for kind, count in asked.items()):
                found.append((gang, [there[kind].pop() for kind, _ in gang.items]))
        return found

    @property
    def unfixed(self) -> int:
        """Worth of what is left."""
        return sum(many * self.problem.worth_of(kind) for kind, many in self.left.items())
