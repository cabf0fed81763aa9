"""Groups that no rule about placing can tell apart, and the least that one of them takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from placer.bounds.shapes import IntArray
from placer.dense import Dense, DenseGroup

__all__ = ["Block", "Kind", "Place", "cheapest", "make_kinds", "place_of"]

#: Where a scope may be: None for anywhere, else its tier limit and the smallest domain that holds its running pods
#: (-1: none runs).
Place = tuple[int, int] | None


@dataclass(frozen=True)
class Block:
    """The pods of one subgroup, or those of a group that are in none.

    Parameters
    ----------
    policy
        Index of the policy that takes them; -1: none.
    short
        New pods it needs before it may have any; 0: it needs none.
    place
        Where all its pods must be together.
    shapes, roles, rows
        Per class: its shape, its role ("" where the group asks for none), the queue rows it counts against.
    sizes
        Per class: how many pods there are, or can be placed.
    """

    policy: int
    short: int
    place: Place
    shapes: tuple[int, ...]
    roles: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Kind:
    """Equal groups.

    Parameters
    ----------
    priority, need_weight, short, short_by_role, short_by_policy
        As in :class:`placer.dense.DenseGroup`.
    place
        Where all pods of a group must be together.
    blocks
        Of each group.
    members
        Per group the indices of its classes, in the order in which the blocks name them.
    """

    priority: int
    need_weight: int
    short: int
    short_by_role: tuple[tuple[str, int], ...]
    short_by_policy: tuple[tuple[int, int], ...]
    place: Place
    blocks: tuple[Block, ...]
    members: tuple[tuple[int, ...], ...]

    @property
    def shapes(self) -> list[int]:
        """Shape per class, block after block."""
        return [shape for block in self.blocks for shape in block.shapes]

    @property
    def rows(self) -> list[tuple[int, ...]]:
        """Queue rows per class, block after block."""
        return [rows for block in self.blocks for rows in block.rows]

    @property
    def sizes(self) -> list[int]:
        """Pods per class, block after block."""
        return [size for block in self.blocks for size in block.sizes]

    @property
    def ready(self) -> bool:
        """Whether a group needs no new pod."""
        return not (self.short or self.short_by_role or self.short_by_policy)

    def resized(self, sizes: Sequence[int]) -> Kind:
        """The same with other numbers of pods per class."""
        if list(sizes) == self.sizes:
            return self
        blocks, begin = [], 0
        for block in self.blocks:
            end = begin + len(block.sizes)
            blocks.append(replace(block, sizes=tuple(sizes[begin:end])))
            begin = end
        return replace(self, blocks=tuple(blocks))

    def least(self, costs: IntArray) -> IntArray:
        """Least that a group costs which is ready.

        Parameters
        ----------
        costs
            int64, shape (classes, measures), at least 0: what one pod of each class costs, block after block.

        Returns
        -------
        int64, shape (measures,); what holds for each demand of C5 and C6 by itself, the largest of them.
        """
        sizes = np.array(self.sizes, dtype=np.int64)
        found = cheapest(costs, sizes, self.short)
        if self.short_by_role:
            roles = np.array([role for block in self.blocks for role in block.roles])
            by_role = [cheapest(costs[roles == role], sizes[roles == role], n) for role, n in self.short_by_role]
            found = np.maximum(found, np.sum(by_role, axis=0))
        if self.short_by_policy:
            found = np.maximum(found, self._least_by_policy(costs))
        return found

    def _least_by_policy(self, costs: IntArray) -> IntArray:
        """The cheapest subgroups of each policy, each with its cheapest pods."""
        of_policy: dict[int, list[IntArray]] = defaultdict(list)
        begin = 0
        for block in self.blocks:
            end = begin + len(block.sizes)
            if block.short and sum(block.sizes) >= block.short:
                of_policy[block.policy].append(cheapest(costs[begin:end], np.array(block.sizes), block.short))
            begin = end
        found = np.zeros(costs.shape[1], dtype=np.int64)
        for policy, count in self.short_by_policy:
            if of_policy[policy]:
                found += np.sort(np.array(of_policy[policy]), axis=0)[:count].sum(axis=0)
        return found


def cheapest(costs: IntArray, sizes: IntArray, count: int) -> IntArray:
    """Cost of the cheapest pods.

    Parameters
    ----------
    costs
        int64, shape (classes, measures).
    sizes
        int64, shape (classes,): pods per class.
    count
        How many pods; of fewer there are, all.

    Returns
    -------
    int64, shape (measures,).
    """
    if len(costs) == 1:
        one: IntArray = costs[0] * min(count, int(sizes[0]))
        return one
    order = np.argsort(costs, axis=0, kind="stable")
    many = sizes[order]
    taken = np.clip(count - (np.cumsum(many, axis=0) - many), 0, many)
    total: IntArray = (np.take_along_axis(costs, order, axis=0) * taken).sum(axis=0)
    return total


def make_kinds(dense: Dense, of_class: IntArray) -> tuple[Kind, ...]:
    """Find equal groups.

    Parameters
    ----------
    dense
        The instance.
    of_class
        int64, shape (classes,): shape of each class.
    """
    rows: dict[int, list[int]] = defaultdict(list)
    for number, row in enumerate(dense.queue_rows):
        for index in row.classes:
            rows[index].append(number)
    alike: dict[Kind, list[tuple[int, ...]]] = defaultdict(list)
    for group in dense.groups:
        kind, members = _kind(dense, group, of_class, {index: tuple(rows[index]) for index in group.classes})
        alike[kind].append(members)
    return tuple(replace(kind, members=tuple(members)) for kind, members in alike.items())


def _kind(
    dense: Dense, group: DenseGroup, of_class: IntArray, rows: dict[int, tuple[int, ...]]
) -> tuple[Kind, tuple[int, ...]]:
    """The group without its name, and its classes in the order of the blocks."""
    asked = {role for role, _ in group.short_by_role}

    def block(policy: int, short: int, place: Place, classes: Iterable[int]) -> tuple[Block, tuple[int, ...]]:
        def key(index: int) -> tuple[int, str, tuple[int, ...], int]:
            one = dense.classes[index]
            return int(of_class[index]), one.role if one.role in asked else "", rows[index], one.size

        order = tuple(sorted(classes, key=lambda index: (key(index), index)))
        shapes, roles, queue_rows, sizes = zip(*map(key, order), strict=True)
        return Block(policy, short, place, shapes, roles, queue_rows, sizes), order

    blocks = [
        block(sub.policy, sub.short, place_of(dense, sub.scope), sub.classes)
        for sub in map(dense.sub_groups.__getitem__, group.sub_groups)
    ]
    loose = [index for index in group.classes if dense.classes[index].sub_group < 0]
    if loose:
        blocks.append(block(-1, 0, None, loose))
    blocks.sort(key=lambda pair: repr(pair[0]))
    kind = Kind(
        group.priority,
        group.need_weight,
        group.short,
        group.short_by_role,
        group.short_by_policy,
        place_of(dense, group.scope),
        tuple(found for found, _ in blocks),
        (),
    )
    return kind, tuple(index for _, order in blocks for index in order)


def place_of(dense: Dense, scope: int) -> Place:
    """Where the pods of a scope must be together."""
    limit = dense.scopes[scope].limit
    if limit is None:
        return None
    anchor = dense.anchor(scope)
    return limit, -1 if anchor is None else anchor
