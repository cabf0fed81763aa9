"""Symmetry: which pods, groups, nodes and areas are interchangeable.

Equal things are counted: where 40 gangs are equal, a model of a solver has one integer in the place of 40 binaries, so
that no search refutes the same placement under 40! names. Each equivalence is used where it is the coarsest that loses
nothing; others are ``PodClass`` and its ``shape`` (:mod:`placer.arrays`), bundles
(:mod:`placer.search.exact.variables`) and measures of room (:mod:`placer.search.decomposed.master.measured`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from placer.base.grouping import grouped

if TYPE_CHECKING:
    from placer.arrays import Dense
    from placer.arrays.solution import IntArray


class Partition(NamedTuple):
    """Things divided into classes of equal ones, all int64.

    ``of``: shape (things,): number of the class of each. ``first``: shape (classes,): the first thing of each class.
    ``size``: shape (classes,).
    """

    of: IntArray
    first: IntArray
    size: IntArray


def partition(signatures: Iterable[Hashable]) -> Partition:
    """Divide things by their signatures; classes are numbered as they come.

    Examples
    --------
    >>> [each.tolist() for each in partition("abca")]
    [[0, 1, 2, 0], [0, 1, 2], [2, 1, 1]]
    """
    classes = grouped(enumerate(signatures), lambda pair: pair[1]).values()
    of = np.zeros(sum(map(len, classes)), dtype=np.int64)
    for number, members in enumerate(classes):
        of[[index for index, _ in members]] = number
    first = np.array([members[0][0] for members in classes], dtype=np.int64)
    return Partition(of, first, np.array([len(members) for members in classes], dtype=np.int64))


def partition_rows(rows: npt.NDArray[Any]) -> Partition:
    """Divide the rows of a matrix, shape (things, columns), by their bytes."""
    if not rows.shape[1]:
        return partition([()] * len(rows))
    whole = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).reshape(-1)
    _, first, of, size = np.unique(whole, return_index=True, return_inverse=True, return_counts=True)
    return Partition(of.reshape(-1).astype(np.int64), first.astype(np.int64), size.astype(np.int64))


def counting_shapes(dense: Dense) -> Partition:
    """Divide the classes of pods by request, weight, eligibility and host ports; C10 is left out."""
    return partition((one.request.tobytes(), one.weight, one.mask, one.host_ports) for one in dense.classes)


def equal_nodes(dense: Dense) -> Partition:
    """Divide the nodes by free room, eligibility and the host ports that are taken."""
    ports = {taken: number for number, taken in enumerate(dict.fromkeys(dense.ports.values()), 1)}
    held = np.array([ports.get(dense.ports.get(node, ()), 0) for node in range(len(dense.nodes))], dtype=np.int64)
    room = np.ascontiguousarray(dense.free).view(np.uint8).reshape(len(dense.nodes), 8 * len(dense.resources))
    return partition_rows(
        np.concatenate((room, np.packbits(dense.masks, axis=0).T, held[:, None].view(np.uint8)), axis=1)
    )


def equally_eligible(dense: Dense) -> Partition:
    """Divide the nodes by the pods that may be there (C3)."""
    return partition_rows(dense.masks.T)


@dataclass(frozen=True)
class SubGroupSignature:
    """A subgroup, or the pods of a group that are in none (``policy`` -1), as seen in a view; ``classes`` ascend."""

    policy: int
    short: int
    scope: Any
    classes: tuple[Any, ...]


@dataclass(frozen=True)
class GroupSignature:
    """A group as seen in a view; the first five as in :class:`placer.arrays.DenseGroup`."""

    priority: int
    need_weight: int
    short: int
    short_by_role: tuple[tuple[str, int], ...]
    short_by_policy: tuple[tuple[int, int], ...]
    scope: Any
    sub_groups: tuple[SubGroupSignature, ...]


class GroupSignatures:
    """Groups and subgroups without their names, in one view of classes and scopes: in bounds a class is its counting
    shape, in the exact model all that tells classes apart.

    ``of_class``: index of a class to the view of it, its size included; can be compared.
    """

    def __init__(self, dense: Dense, of_class: Callable[[int], Any], of_scope: Callable[[int], Hashable]) -> None:
        self._dense, self._of_class, self._of_scope = dense, of_class, of_scope

    def ordered(self, classes: Iterable[int]) -> tuple[int, ...]:
        """Classes in the order of a signature, so that equal ones of equal subgroups are at one position."""
        return tuple(sorted(classes, key=lambda index: (self._of_class(index), index)))

    def of_sub_group(self, index: int) -> SubGroupSignature:
        """Signature of a subgroup."""
        one = self._dense.sub_groups[index]
        return self._signature(one.policy, one.short, self._of_scope(one.scope), self.ordered(one.classes))

    def of_group(self, index: int) -> tuple[GroupSignature, tuple[int, ...]]:
        """Signature of a group, and its classes in the order of the signature."""
        group = self._dense.groups[index]
        found = [
            (self.of_sub_group(sub), self.ordered(self._dense.sub_groups[sub].classes)) for sub in group.sub_groups
        ]
        loose = self.ordered(each for each in group.classes if self._dense.classes[each].sub_group < 0)
        if loose:
            found.append((self._signature(-1, 0, None, loose), loose))
        found.sort(key=lambda pair: repr(pair[0]))
        signature = GroupSignature(
            group.priority,
            group.need_weight,
            group.short,
            group.short_by_role,
            group.short_by_policy,
            self._of_scope(group.scope),
            tuple(sub for sub, _ in found),
        )
        return signature, tuple(each for _, classes in found for each in classes)

    def _signature(self, policy: int, short: int, scope: Hashable, classes: Iterable[int]) -> SubGroupSignature:
        return SubGroupSignature(policy, short, scope, tuple(map(self._of_class, classes)))
