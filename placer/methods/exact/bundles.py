"""Groups, subgroups and classes that nothing can tell apart, counted together.

A *bundle* is a set of interchangeable groups (many pods that are gangs of one, gangs of one shape) or of
interchangeable subgroups of one group. Each of its members is placed entirely or not at all; a bundle of one member
may also be elastic. An *item* is the class of equal pods at one position of each member. The model counts placed
members and placed pods, and never says which.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import numpy.typing as npt

from placer.dense import Dense
from placer.methods.exact.places import raw_fits

__all__ = ["Bundle", "Bundles", "Item", "Reach", "make_bundles"]

IntArray = npt.NDArray[np.int64]


class Reach(Enum):
    """How the tree sees a bundle."""

    FREE = "free"  #: no limit, and no value looks at where it is
    LEAF = "leaf"  #: each member lies in one leaf: members are counted per leaf
    TREE = "tree"  #: one member, whose smallest common domain matters


@dataclass(frozen=True)
class Item:
    """Equal pods of a bundle.

    Parameters
    ----------
    classes
        The class in each member of the bundle, in the order of its members.
    size
        Pods per member.
    fits
        int64, shape (nodes,): how many of them each node holds by itself.
    """

    classes: tuple[int, ...]
    size: int
    fits: IntArray

    @property
    def total(self) -> int:
        """Pods of all members."""
        return self.size * len(self.classes)


@dataclass(frozen=True)
class Bundle:
    """Interchangeable groups, or interchangeable subgroups of one group.

    Parameters
    ----------
    members
        Indices of groups or of subgroups, those to be placed first first.
    items
        Indices of items; of a group, those of its subgroups included.
    whole
        Whether a member is placed entirely or not at all.
    least
        New pods that a member needs before it may have any (its ``short``).
    scope
        Scope of the first member.
    reach
        See :class:`Reach`.
    homes
        Domains of which one must hold all pods of a member, as far as they matter; empty with FREE.
    gang
        Index of the bundle of groups that it is or belongs to.
    policy
        Policy of the subgroups; -1 for groups.
    """

    members: tuple[int, ...]
    items: tuple[int, ...]
    whole: bool
    least: int
    scope: int
    reach: Reach
    homes: tuple[int, ...]
    gang: int
    policy: int = -1

    @property
    def many(self) -> int:
        """How many members it has."""
        return len(self.members)


@dataclass(frozen=True)
class Bundles:
    """The whole instance in bundles: ``gangs`` of groups, ``parts`` of subgroups, the ``items`` of both."""

    gangs: tuple[Bundle, ...]
    parts: tuple[Bundle, ...]
    items: tuple[Item, ...]


def make_bundles(dense: Dense) -> Bundles:
    """Find what is interchangeable.

    Groups are, that have no subgroups and agree in priority, need, limits and classes; subgroups of one group, that
    agree in policy, limits and classes. Only what is placed entirely or not at all and is FREE or LEAF is counted
    together.
    """
    return _Builder(dense).build()


class _Builder:
    def __init__(self, dense: Dense) -> None:
        self.dense = dense
        self.watched = any(name in ("locality", "span") for name, _ in dense.levels)
        tree = dense.domains
        self.flat = np.isin(np.arange(len(tree.parent)), tree.parent, invert=True)
        self.items: list[Item] = []
        self.gangs: list[Bundle] = []
        self.parts: list[Bundle] = []
        self._fits: dict[tuple[object, ...], IntArray] = {}

    def build(self) -> Bundles:
        alike: dict[tuple[object, ...], list[int]] = defaultdict(list)
        for index in range(len(self.dense.groups)):
            alike[self._group_key(index)].append(index)
        for members in alike.values():
            self._add_gang(members)
        return Bundles(tuple(self.gangs), tuple(self.parts), tuple(self.items))

    def _group_key(self, index: int) -> tuple[object, ...]:
        group = self.dense.groups[index]
        scope = self.dense.scopes[group.scope]
        whole = self._whole(group.classes, group.short)
        if group.sub_groups or not whole or scope.bound or self._reach(group.scope, whole) is Reach.TREE:
            return ("alone", index)
        return (group.priority, group.need_weight, *self._scope_key(group.scope), self._signature(group.classes))

    def _sub_group_key(self, index: int) -> tuple[object, ...]:
        sub = self.dense.sub_groups[index]
        whole = self._whole(sub.classes, sub.short)
        if not whole or self.dense.scopes[sub.scope].bound or self._reach(sub.scope, whole) is Reach.TREE:
            return ("alone", index)
        return (sub.policy, *self._scope_key(sub.scope), self._signature(sub.classes))

    def _whole(self, classes: Iterable[int], short: int) -> bool:
        return short == sum(self.dense.classes[index].size for index in classes)

    def _scope_key(self, scope: int) -> tuple[object, ...]:
        return (self.dense.scopes[scope].limit, self.dense.scopes[scope].wanted)

    def _signature(self, classes: Iterable[int]) -> tuple[object, ...]:
        return tuple(sorted((self._class_key(index) for index in classes), key=repr))

    def _class_key(self, index: int) -> tuple[object, ...]:
        one = self.dense.classes[index]
        what = (one.weight, one.daemon, one.queue or "")
        return (one.size, one.role, *one.shape, *what, self.dense.workload_of.get(index, -1))

    def _reach(self, scope: int, whole: bool) -> Reach:
        asked = self.dense.scopes[scope]
        if asked.limit is None and not (asked.wanted and self.watched):
            return Reach.FREE
        homes = self.dense.limit_domains(scope)
        if homes is not None and whole and not asked.bound and all(self.flat[home] for home in homes):
            return Reach.LEAF
        return Reach.TREE

    def _add_gang(self, members: Sequence[int]) -> None:
        groups = [self.dense.groups[member] for member in members]
        first, gang = groups[0], len(self.gangs)
        begin = len(self.items)
        loose = [[index for index in group.classes if self.dense.classes[index].sub_group < 0] for group in groups]
        self._add_items(loose)
        by_key: dict[tuple[object, ...], list[int]] = defaultdict(list)
        for sub in first.sub_groups:
            by_key[self._sub_group_key(sub)].append(sub)
        for subs in by_key.values():
            self._add_part(gang, subs)
        items = tuple(range(begin, len(self.items)))
        bundle = self._bundle(members, items, self._whole(first.classes, first.short), first.scope)
        self.gangs.append(replace(bundle, gang=gang, least=first.short))

    def _add_part(self, gang: int, members: Sequence[int]) -> None:
        subs = [self.dense.sub_groups[member] for member in members]
        items = self._add_items([sub.classes for sub in subs])
        bundle = self._bundle(members, items, self._whole(subs[0].classes, subs[0].short), subs[0].scope)
        self.parts.append(replace(bundle, gang=gang, least=subs[0].short, policy=subs[0].policy))

    def _add_items(self, classes: Sequence[Sequence[int]]) -> tuple[int, ...]:
        """Add the items of members whose classes are ``classes``; alike ones stand at the same position."""
        ordered = [sorted(each, key=lambda index: (repr(self._class_key(index)), index)) for each in classes]
        begin = len(self.items)
        for row in zip(*ordered, strict=True):
            self.items.append(Item(row, self.dense.classes[row[0]].size, self._room(row[0])))
        return tuple(range(begin, len(self.items)))

    def _room(self, index: int) -> IntArray:
        key = self.dense.classes[index].shape
        if key not in self._fits:
            self._fits[key] = raw_fits(self.dense, index)
        return self._fits[key]

    def _bundle(self, members: Sequence[int], items: tuple[int, ...], whole: bool, scope: int) -> Bundle:
        reach = self._reach(scope, whole)
        homes = self._homes(scope, reach, whole, items, len(members))
        return Bundle(tuple(members), items, whole, 0, scope, reach, homes, -1)

    def _homes(self, scope: int, reach: Reach, whole: bool, items: tuple[int, ...], many: int) -> tuple[int, ...]:
        """Domains that may be the smallest one that a member's pods are counted in."""
        tops = self.dense.limit_domains(scope)
        if reach is Reach.FREE or tops == ():
            return ()
        needs = {item: self.items[item].total // many if whole else 0 for item in items}
        asked, tree = self.dense.scopes[scope], self.dense.domains
        if reach is Reach.LEAF or not (asked.wanted and self.watched):
            return self._able(tops or (), needs)
        begin, end = tree.begin, tree.end
        inside = np.ones(len(begin), dtype=bool) if tops is None else np.zeros(len(begin), dtype=bool)
        for top in tops or ():
            inside |= (begin >= begin[top]) & (end <= end[top]) & (tree.tier <= tree.tier[top])
        anchor = self.dense.anchor(scope)
        if anchor is not None:
            above = (begin <= begin[anchor]) & (end >= end[anchor]) & (tree.tier >= tree.tier[anchor])
            inside = (inside & above) | (np.arange(len(begin)) == anchor)
            return tuple(int(domain) for domain in np.flatnonzero(inside))
        return self._able([int(domain) for domain in np.flatnonzero(inside)], needs)

    def _able(self, domains: Iterable[int], needs: dict[int, int]) -> tuple[int, ...]:
        """Those of the domains that could hold so many of each item alone, and any pod at all."""
        begin, end = self.dense.domains.begin, self.dense.domains.end
        held = [(np.concatenate(([0], np.cumsum(self.items[item].fits))), need) for item, need in needs.items()]
        able = []
        for domain in domains:
            room = [(int(sums[end[domain]] - sums[begin[domain]]), need) for sums, need in held]
            if all(count >= need for count, need in room) and any(count for count, _ in room):
                able.append(domain)
        return tuple(able)
