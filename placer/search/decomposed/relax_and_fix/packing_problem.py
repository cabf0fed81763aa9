"""The things that relax and fix packs: items, which one leaf must hold, and loose pods, which may be anywhere.

A gang or subgroup that a limit keeps in a larger domain has a *home*. Example: a gang without a limit of two subgroups,
each of three pods of two GPUs that have to share a leaf, and a server that may be anywhere, is two items of equal
content and one loose pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from operator import le
from typing import NamedTuple, TypeAlias

import numpy as np

from placer.arrays import Dense, DenseGroup, DenseSubGroup, Solution, placed_by_class
from placer.base.grouping import grouped
from placer.search.exact.node_sets import Request, maximal_fillings

#: How many pods of each shape there are: pairs of shape and count, ascending.
Content: TypeAlias = tuple[tuple[int, int], ...]

#: What one node may hold, beside which nothing more fits: a :data:`Content`.
Filling: TypeAlias = Content

#: The scope of what has no home.
ANYWHERE = -1


#: In the place of domains: one leaf, whichever.
LEAF = (-1,)


class ItemKind(NamedTuple):
    """Items that are interchangeable: by content, and by the owner of their home.

    ``scope`` is an index into ``Dense.scopes``, or :data:`ANYWHERE`.
    """

    scope: int
    content: Content


@dataclass(frozen=True)
class HomedPods:
    """Pods of a gang that have one home, or none.

    One of ``homes`` must hold all of it; none: it may be anywhere. ``scope`` is the owner of the home, or
    :data:`ANYWHERE`. Items have the classes of their pods; ``loose`` is shape to pods.
    """

    scope: int
    homes: tuple[int, ...]
    items: tuple[tuple[ItemKind, tuple[int, ...]], ...]
    loose: Mapping[int, int]
    loose_classes: tuple[int, ...]


@dataclass(frozen=True)
class PackedGang:
    """A group that is packed whole or not at all; required where it is of a higher priority, and placed."""

    group: int
    parts: tuple[HomedPods, ...]
    required: bool

    @cached_property
    def items(self) -> tuple[tuple[ItemKind, tuple[int, ...]], ...]:
        """Items of all parts."""
        return tuple(item for part in self.parts for item in part.items)

    @cached_property
    def homed(self) -> tuple[HomedPods, ...]:
        """Parts that have a home."""
        return tuple(part for part in self.parts if part.homes)

    @cached_property
    def loose(self) -> Counter[int]:
        """Shape to how many loose pods."""
        return sum((Counter(part.loose) for part in self.parts), Counter())

    @cached_property
    def demand(self) -> Counter[int]:
        """Shape to how many pods, items and loose ones."""
        total = Counter(self.loose)
        for kind, _ in self.items:
            for shape, count in kind.content:
                total[shape] += count
        return total


@dataclass(frozen=True)
class PackingProblem:
    """Gangs to be packed, and the nodes with the room that others leave; those on which no shape fits are absent.

    ``shapes`` are requests with a row of ``Dense.masks``; ``volume`` is per shape its share of the scarcest resource.
    """

    dense: Dense
    gangs: tuple[PackedGang, ...]
    held: Solution
    shapes: tuple[tuple[Request, int], ...]
    shape_of: Mapping[int, int]
    room: Mapping[int, Request]
    volume: tuple[int, ...]

    @cached_property
    def leaves(self) -> dict[int, tuple[int, ...]]:
        """Leaf domain to its nodes with room, in tree order; nodes in no HyperNode are in none."""
        found, root = grouped(sorted(self.room), self.dense.leaf.tolist().__getitem__), self.dense.domains.root
        return {leaf: tuple(nodes) for leaf, nodes in found.items() if leaf != root}

    @cached_property
    def homed(self) -> dict[int, tuple[HomedPods, PackedGang]]:
        """Scope to the part that has a home, and its gang."""
        return {part.scope: (part, gang) for gang in self.gangs for part in gang.homed}

    @cached_property
    def _open(self) -> dict[int, tuple[int, ...]]:
        masks = np.array([mask for _, mask in self.shapes])
        return {node: tuple(np.flatnonzero(self.dense.masks[masks, node]).tolist()) for node in self.room}

    def fillings(self, node: int, room: Request) -> tuple[Filling, ...] | None:
        """Fillings of a node with so much room left; None where there are too many ways to list."""
        return _fillings(room, tuple((shape, self.shapes[shape][0]) for shape in self._open[node]))

    @cached_property
    def worth(self) -> tuple[int, ...]:
        """Per shape the worth of fixing a pod of an item: its volume, and more the fewer loose pods are like it."""
        tied, total = Counter[int](), Counter[int]()
        for gang in self.gangs:
            total.update(gang.demand)
            tied.update({shape: count - gang.loose.get(shape, 0) for shape, count in gang.demand.items()})
        most = max(self.volume)
        return tuple(volume + most * tied[shape] // max(1, total[shape]) for shape, volume in enumerate(self.volume))

    def worth_of(self, kind: ItemKind) -> int:
        """Worth of fixing an item: a large one more than small ones together, since it fits in few leaves."""
        worth = self._pods_worth(kind)
        return worth + worth * worth // self._largest_worth

    def _pods_worth(self, kind: ItemKind) -> int:
        return sum(self.worth[shape] * count for shape, count in kind.content)

    @cached_property
    def _largest_worth(self) -> int:
        return max((self._pods_worth(kind) for gang in self.gangs for kind, _ in gang.items), default=1)


@lru_cache(maxsize=2048)
def _fillings(room: Request, open_to: tuple[tuple[int, Request], ...]) -> tuple[Filling, ...] | None:
    fitting = sorted(
        filter(lambda each: all(map(le, each[1], room)), open_to), key=lambda each: tuple(-amount for amount in each[1])
    )
    if not fitting:
        return ((),)
    found = maximal_fillings(room, tuple(request for _, request in fitting), 512)
    return tuple(sorted(_content_of(each, fitting) for each in found)) or None


def _content_of(counts: Iterable[int], shapes: Iterable[tuple[int, Request]]) -> Content:
    return tuple(sorted((shape, count) for (shape, _), count in zip(shapes, counts, strict=True) if count))


def make_packing_problem(
    dense: Dense, solution: Solution, priority: int, stays: Iterable[int]
) -> PackingProblem | None:
    """Free every gang of a priority, and those of higher ones that are placed, as far as they can be packed.

    None where pods are of too many shapes, or nothing that waits can be packed. ``stays`` are held.
    """
    reader = _PackingReader(dense, solution)
    gangs = reader.gangs(priority)
    waiting = any(not reader.is_whole(gang.group) for gang in gangs)
    if not waiting or len(reader.shapes) > 48:
        return None
    kept = {number for number, group in enumerate(dense.groups) if group.priority >= priority} | set(stays)
    kept -= {gang.group for gang in gangs}
    held = solution.only(lambda index, _: dense.classes[index].group in kept)
    shapes = tuple(reader.shapes)
    volume = _volumes(dense, gangs, shapes)
    return PackingProblem(dense, tuple(gangs), held, shapes, reader.shape_of, _room(dense, held, shapes), volume)


def _room(dense: Dense, held: Solution, shapes: tuple[tuple[Request, int], ...]) -> dict[int, Request]:
    free = dense.free_beside(held)
    fits = np.zeros(len(dense.nodes), dtype=bool)
    for request, mask in shapes:
        fits |= dense.masks[mask] & (free >= np.array(request)).all(axis=1)
    return {int(node): tuple(free[node].tolist()) for node in np.flatnonzero(fits)}


def _volumes(dense: Dense, gangs: Iterable[PackedGang], shapes: tuple[tuple[Request, int], ...]) -> tuple[int, ...]:
    asked = np.zeros(len(dense.resources), dtype=np.int64)
    for gang in gangs:
        for shape, count in gang.demand.items():
            asked += count * np.array(shapes[shape][0])
    there = np.maximum(1, dense.free[dense.masks.any(axis=0)].sum(axis=0))
    scarcest = int(np.argmax(asked / there))
    amounts = [request[scarcest] for request, _ in shapes]
    least = max(1, max(amounts) // 64)
    return tuple(1 + amount // least for amount in amounts)


class _PackingReader:
    def __init__(self, dense: Dense, solution: Solution) -> None:
        self._dense = dense
        self._placed = placed_by_class(solution)
        self.shapes: dict[tuple[Request, int], int] = {}
        self.shape_of: dict[int, int] = {}
        tree, root = dense.domains, dense.domains.root
        open_to_any = dense.masks.any(axis=0)
        leaves = set(dense.leaf[open_to_any].tolist())
        # Nodes in no HyperNode are under the root alone, and so no limit lets pods there.
        self._outside = root in leaves
        self._childless = set(range(len(tree.names))) - set(tree.parent.tolist())
        # All leaves, where nodes are in leaves alone; else no domain counts as one.
        leaves.discard(root)
        self._leaves = leaves if leaves <= self._childless else set[int]()

    def gangs(self, priority: int) -> list[PackedGang]:
        found = []
        for number, group in enumerate(self._dense.groups):
            if group.priority > priority and self.is_whole(number):
                found.append(self._gang(number, required=True))
            elif group.priority == priority and (
                self.is_whole(number) or not any(self._placed[index] for index in group.classes)
            ):
                found.append(self._gang(number, required=False))
        return [gang for gang in found if gang is not None]

    def is_whole(self, number: int) -> bool:
        dense = self._dense
        return all(self._placed[index] == dense.classes[index].size for index in dense.groups[number].classes)

    def _gang(self, number: int, *, required: bool) -> PackedGang | None:
        """None where pods of it may be left or run, or more than room and the tree ties them."""
        group = self._dense.groups[number]
        needs_all = group.need_weight == self._dense.weight_of(group.classes)
        if not needs_all or not all(map(self._plain, group.classes)) or self._runs(group):
            return None
        homes = self._homes(group.scope)
        if homes == LEAF and any(map(self._is_narrower(group), self._sub_groups(group))):
            return None
        if homes == LEAF:
            return PackedGang(number, (self._part(ANYWHERE, None, [group.classes], ()),), required)
        parts = self._parts(group, homes)
        return None if parts is None or homes == () else PackedGang(number, tuple(parts), required)

    def _is_narrower(self, group: DenseGroup) -> Callable[[DenseSubGroup], bool]:
        scopes = self._dense.scopes
        limit = scopes[group.scope].limit

        def narrower(sub: DenseSubGroup) -> bool:
            inner = scopes[sub.scope].limit
            return inner is not None and limit is not None and inner < limit and self._homes(sub.scope) != LEAF

        return narrower

    def _runs(self, group: DenseGroup) -> bool:
        scopes = [group.scope, *(sub.scope for sub in self._sub_groups(group))]
        return any(self._dense.scopes[scope].bound or self._dense.scopes[scope].lost_leaves for scope in scopes)

    def _parts(self, group: DenseGroup, homes: tuple[int, ...] | None) -> list[HomedPods] | None:
        """None where a home would be within a home, or nowhere."""
        limits = {sub: self._homes(sub.scope) for sub in self._sub_groups(group)}
        items = [sub.classes for sub, inner in limits.items() if inner == LEAF]
        homed = [sub for sub, inner in limits.items() if inner not in (None, LEAF)]
        if homed and (homes is not None or () in limits.values()):
            return None
        parts = [self._part(sub.scope, limits[sub], [], sub.classes) for sub in homed]
        return [*parts, self._rest(group, homes, items, parts)]

    def _rest(
        self,
        group: DenseGroup,
        homes: tuple[int, ...] | None,
        items: Sequence[tuple[int, ...]],
        parts: Sequence[HomedPods],
    ) -> HomedPods:
        inside = {*chain(*items, *(part.loose_classes for part in parts))}
        loose = tuple(index for index in group.classes if index not in inside)
        return self._part(group.scope if homes else ANYWHERE, homes, items, loose)

    def _sub_groups(self, group: DenseGroup) -> list[DenseSubGroup]:
        return [self._dense.sub_groups[sub] for sub in group.sub_groups]

    def _part(
        self, scope: int, homes: tuple[int, ...] | None, items: Iterable[tuple[int, ...]], loose: tuple[int, ...]
    ) -> HomedPods:
        """An item of one pod is a loose one where all nodes are in leaves."""
        mine: list[tuple[ItemKind, tuple[int, ...]]] = []
        for classes in items:
            content = self._content(classes)
            if self._outside or sum(count for _, count in content) > 1:
                mine.append((ItemKind(scope, content), classes))
            else:
                loose += classes
        return HomedPods(scope, homes or (), tuple(mine), dict(self._content(loose)), loose)

    def _homes(self, scope: int) -> tuple[int, ...] | None:
        """Domains of which one must hold a scope; :data:`LEAF` for any leaf; None where it has no limit."""
        domains = self._dense.limit_domains(scope)
        if domains is None or not self._leaves:
            return domains
        return LEAF if self._leaves <= set(domains) <= self._childless else domains

    def _plain(self, index: int) -> bool:
        one = self._dense.classes[index]
        return not one.tied and index not in self._dense.workload_of and bool(one.request.any())

    def _content(self, classes: Iterable[int]) -> Content:
        counts = Counter[int]()
        for index in classes:
            one = self._dense.classes[index]
            shape = self.shapes.setdefault((tuple(one.request.tolist()), one.mask), len(self.shapes))
            self.shape_of[index] = shape
            counts[shape] += one.size
        return tuple(sorted(counts.items()))
