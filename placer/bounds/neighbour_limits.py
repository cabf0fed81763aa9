"""Most pods that neighbours let in (C12, C13, C14), whatever else is placed, counted row by row.

No more pods that all repel each other are placed than there are domains with room for one. Spread pods are, in each
domain, at most ``maxSkew`` more than the least that any domain can end with. Pods that let in only each other (C12) are
in one domain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays.dense_neighbours import ANY_NUMBER
from placer.base.grouping import grouped

if TYPE_CHECKING:
    from placer.arrays import Dense, DenseScope
    from placer.arrays.affinity_orders import Attraction
    from placer.arrays.dense_neighbours import DenseNeighbours, Repulsion, SpreadRow
    from placer.arrays.solution import BoolArray, IntArray


@dataclass(frozen=True)
class NeighbourLimit:
    """At most ``most`` pods of all ``classes`` (ascending) together.

    ``hosts``: bool, shape (nodes,): nodes that take one of them; None: nodes may take more.
    """

    classes: tuple[int, ...]
    most: int
    hosts: BoolArray | None = None


class NeighbourLimits:
    """Limits by the rows; ``room``: class to the pods that each node holds alone, int64, shape (nodes,)."""

    def __init__(self, dense: Dense, room: Callable[[int], IntArray]) -> None:
        self.dense, self._room = dense, room
        #: Those that may bind, the one with most pods too many first.
        self.limits: tuple[NeighbourLimit, ...] = tuple(sorted(self._limits(), key=self._spare))

    def _spare(self, limit: NeighbourLimit) -> int:
        return limit.most - sum(self.dense.classes[index].size for index in limit.classes)

    def _limits(self) -> Iterator[NeighbourLimit]:
        rows = self.dense.neighbours
        if rows is None:
            return
        for repulsion in rows.repulsions:
            if len(repulsion.mutual) > 1 or any(self.dense.classes[index].size > 1 for index in repulsion.mutual):
                yield from self._one_each(rows, repulsion)
        for spread in rows.spreads:
            yield from self._spread(rows, spread)
        for attraction in rows.attractions:
            yield from self._together(rows, attraction)

    def _together(self, rows: DenseNeighbours, row: Attraction) -> Iterator[NeighbourLimit]:
        """C12: where no other pod lets owners in, all of them are in the domain of the first one."""
        if row.others or any(row.ground) or row.held or row.lasting:
            return
        least, most = self.dense.requests[list(row.owners)].min(axis=0), []
        asked = np.flatnonzero(least)
        each = (self.dense.free[:, asked] // least[asked]).min(axis=1, initial=ANY_NUMBER)
        rooms = np.minimum(self._rooms(rows, row.owners), np.maximum(0, each))
        for domain in (rows.domain[key] for key in row.keys):
            there = domain >= 0
            most.append(int(np.bincount(domain[there], weights=rooms[there], minlength=1).max()))
        limit = NeighbourLimit(row.owners, min(most))
        if self._spare(limit) < 0:
            yield limit

    def _one_each(self, rows: DenseNeighbours, row: Repulsion) -> Iterator[NeighbourLimit]:
        where, domain = self._rooms(rows, row.mutual) > 0, rows.domain[row.key]
        if (domain[where] >= 0).all():
            hosts = where if rows.single[row.key] else None
            yield NeighbourLimit(row.mutual, len(np.unique(domain[where])), hosts)

    def _spread(self, rows: DenseNeighbours, row: SpreadRow) -> Iterator[NeighbourLimit]:
        mine = tuple(sorted({*row.owners} & {*row.matched}))
        if not mine or not row.before:
            return
        counting, before = list(row.before), np.array(list(row.before.values()), dtype=np.int64)
        fewest = 0 if row.floor else int((before + self._by_domain(rows, row, row.matched)[counting]).min())
        room = self._rooms(rows, mine)
        inside = np.minimum(self._by_domain(rows, row, mine)[counting], np.maximum(0, row.skew + fewest - before))
        limit = NeighbourLimit(mine, int(inside.sum()) + int(room[~row.counted].sum()))
        if self._spare(limit) < 0:
            yield limit

    def _by_domain(self, rows: DenseNeighbours, row: SpreadRow, classes: Iterable[int]) -> IntArray:
        domain = rows.domain[row.key]
        where = row.counted & (domain >= 0)
        sums = np.bincount(domain[where], weights=self._rooms(rows, classes)[where], minlength=rows.sizes[row.key])
        return sums.astype(np.int64)

    def _rooms(self, rows: DenseNeighbours, classes: Iterable[int]) -> IntArray:
        found: IntArray = np.zeros(len(self.dense.nodes), dtype=np.int64)
        for same in grouped(classes, lambda index: self.dense.classes[index].shape).values():
            closed = rows.closed(self.dense.classes[same[0]].neighbours)
            room = self._room(same[0]) if closed is None else np.where(closed, 0, self._room(same[0]))
            found += np.minimum(room, sum(self.dense.classes[index].size for index in same))
        return found

    @cached_property
    def most(self) -> Mapping[int, int]:
        """Class to the most pods of it; absent: no limit."""
        found: dict[int, int] = {}
        for limit in self.limits:
            found.update({index: min(limit.most, found.get(index, limit.most)) for index in limit.classes})
        return found

    @cached_property
    def shut_out(self) -> frozenset[int]:
        """Groups that neighbours keep from being ready."""
        return frozenset(
            number
            for limit in self.limits
            for number, pods in self._per_group(limit).items()
            if self.dense.groups[number].short > 0 and self._needed(number, pods) > self._most_in(limit, number)
        )

    def _per_group(self, limit: NeighbourLimit) -> dict[int, int]:
        found: dict[int, int] = defaultdict(int)
        for index in limit.classes:
            found[self.dense.classes[index].group] += self.dense.classes[index].size
        return found

    def _needed(self, number: int, pods: int) -> int:
        group = self.dense.groups[number]
        return group.short - sum(self.dense.classes[index].size for index in group.classes) + pods

    def _most_in(self, limit: NeighbourLimit, number: int) -> int:
        tops = self.dense.limit_domains(self.dense.groups[number].scope) if limit.hosts is not None else None
        if tops is None or limit.hosts is None:
            return limit.most
        hosts = self.dense.domains.sums(limit.hosts.astype(np.int64))
        return max((int(hosts[top]) for top in tops), default=0)

    def lost(self, sizes: IntArray, priority: int | None) -> int:
        """Least weight of pods of a priority (None: of all) that are left out, of ``sizes``."""
        classes, total, seen = self.dense.classes, 0, set[int]()
        for limit in self.limits:
            mine = [
                index
                for index in limit.classes
                if index not in seen and priority in (None, self.dense.groups[classes[index].group].priority)
            ]
            over = int(sizes[mine].sum()) - limit.most
            if over > 0:
                seen.update(mine)
                for index in sorted(mine, key=lambda index: classes[index].weight):
                    total += classes[index].weight * min(over, int(sizes[index]))
                    over -= min(over, int(sizes[index]))
        return total

    def lost_needs(self, groups: Iterable[tuple[int, ...]]) -> int:
        """Least need weight left out of groups, each given by its classes."""
        left, total = {self.dense.classes[each[0]].group for each in groups if each}, 0
        for limit in self.limits:
            needed = {
                number: least
                for number, pods in self._per_group(limit).items()
                if number in left and (least := self._needed(number, pods)) > 0
            }
            over = sum(needed.values()) - limit.most
            if over > 0:
                left -= needed.keys()
                total += _cheapest_out(over, [(self.dense.groups[each].need_weight, n) for each, n in needed.items()])
        return total

    def apart(self, scope: DenseScope | None, sizes: IntArray) -> Iterator[tuple[int, IntArray]]:
        """Pods of a scope (None: of all) that each need a host of their own: how many, and int64, shape (nodes,): 1 for
        room.
        """
        inside = None if scope is None else frozenset(scope.classes)
        for limit in self.limits if inside is None else self._of_classes(inside):
            if limit.hosts is not None:
                mine = [
                    index
                    for index in limit.classes
                    if not self.dense.classes[index].daemon and (inside is None or index in inside)
                ]
                yield int(sizes[mine].sum()), limit.hosts.astype(np.int64)

    def spread_out(self, sizes: IntArray) -> Iterator[tuple[int, IntArray]]:
        """Pods that are spread over nodes that all count: how many, and int64, shape (nodes,): the most on a node.

        Either some node ends without any, so that each has ``maxSkew`` at most, or all of them have one.
        """
        rows, owners = self.dense.neighbours, defaultdict[tuple[int, tuple[int, ...], int, int], set[int]](set)
        for row in rows.spreads if rows is not None else ():
            if rows is not None and rows.single[row.key] and row.counted.all() and not any(row.before.values()):
                owners[row.key, row.matched, row.skew, len(row.before)] |= {*row.owners} & {*row.matched}
        for (_, matched, skew, domains), mine in owners.items():
            if not any(self.dense.classes[index].daemon for index in matched):
                asked = min(int(sizes[list(mine)].sum()), skew * domains)
                yield asked, np.full(len(self.dense.nodes), skew, dtype=np.int64)

    def _of_classes(self, classes: Iterable[int]) -> Iterable[NeighbourLimit]:
        return {id(limit): limit for index in classes for limit in self._limits_of.get(index, ())}.values()

    @cached_property
    def _limits_of(self) -> Mapping[int, list[NeighbourLimit]]:
        found: dict[int, list[NeighbourLimit]] = defaultdict(list)
        for limit in self.limits:
            for index in limit.classes:
                found[index].append(limit)
        return found


def _cheapest_out(over: int, items: Iterable[tuple[int, int]]) -> int:
    total = 0
    for weight, pods in sorted(items, key=lambda item: item[0] / item[1]):
        if over <= pods:
            return total - (-weight * over // pods)
        total, over = total + weight, over - pods
    return total
