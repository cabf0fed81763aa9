"""The instance as the master sees it: one measure of room, groups that are equal by it, and the tree by levels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import gcd

import numpy as np

from placer.arrays import Dense
from placer.arrays.solution import IntArray
from placer.base.grouping import grouped
from placer.search.exact.count_model import fewest_rooms

#: Pods of one size each: pairs of pieces per pod, number of pods.
PieceCounts = tuple[tuple[int, int], ...]


@dataclass(frozen=True, order=True)
class MeasuredScope:
    """Demands of equal subgroups, or of the group itself, on the tree; ``sizes``: pieces per pod to number of pods."""

    limit: int
    wanted: bool
    pods: int
    volume: int
    sizes: PieceCounts


@dataclass(frozen=True)
class MeasuredGroups:
    """Groups that are equal by the measure, with the number of subgroups of each kind, and pods in no subgroup."""

    whole: MeasuredScope
    parts: tuple[tuple[MeasuredScope, int], ...]
    loose: PieceCounts
    members: tuple[int, ...]


@dataclass(frozen=True)
class EqualBlocks:
    """Equal domains above the leaves, under the same domain; counted together as long as none has a name.

    ``leaves``: room of a leaf to the number of such leaves; ``room``: that of one block.
    """

    blocks: tuple[int, ...]
    leaves: tuple[tuple[int, int], ...]
    room: int


@dataclass(frozen=True)
class MeasuredInstance:
    """The tree and the groups in pieces of one resource.

    ``blocks`` are domains right above leaves, ``uppers`` those above them, smaller ones first. ``filler`` pods only
    take room. ``standing`` is the lowest ``locality`` and ``span`` of scopes with running pods, which are not in
    ``kinds``.
    """

    dense: Dense
    resource: int
    piece: int
    kinds: tuple[MeasuredGroups, ...]
    filler: PieceCounts
    standing: tuple[int, int]
    leaf_tier: int
    blocks: tuple[int, ...]
    uppers: tuple[int, ...]
    room: IntArray

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Pieces per pod, ascending, each once."""
        found = {size for size, _ in self.filler}
        for kind in self.kinds:
            found |= {size for size, _ in kind.whole.sizes}
        return tuple(sorted(found - {0}))

    @cached_property
    def leaves(self) -> dict[int, list[int]]:
        """Block to its leaves."""
        return grouped(np.unique(self.dense.leaf).tolist(), lambda leaf: int(self.dense.domains.parent[leaf]))

    def subs_of(self, kind: int) -> dict[int, list[list[int]]]:
        """Group of a kind to its subgroups, per part of the kind."""
        sorter, one = _Measurer(self.dense, self.resource, self.piece), self.kinds[kind]
        found = {}
        for group in one.members:
            by_part: dict[MeasuredScope, list[int]] = {part: [] for part, _ in one.parts}
            for sub in self.dense.groups[group].sub_groups:
                by_part[sorter.part(self.dense.sub_groups[sub].scope)].append(sub)
            found[group] = list(by_part.values())
        return found

    def equal_blocks(self) -> list[EqualBlocks]:
        """Equal blocks under one domain together."""

        def signature(block: int) -> tuple[int, tuple[int, ...]]:
            return int(self.dense.domains.parent[block]), tuple(
                sorted(int(self.room[leaf]) for leaf in self.leaves[block])
            )

        return [self.unit(blocks) for blocks in grouped(self.blocks, signature).values()]

    def unit(self, blocks: Iterable[int]) -> EqualBlocks:
        """Make a unit of blocks that are equal."""
        chosen = tuple(blocks)
        rooms = Counter(int(self.room[leaf]) for block in chosen for leaf in self.leaves[block])
        return EqualBlocks(chosen, tuple(sorted(rooms.items())), int(self.room[chosen[0]]))

    def fewest(self, volume: int, domain: int) -> int:
        """Fewest leaves of a domain that hold so many pieces: the largest first."""
        assert self.dense.domains.tier[domain] > self.leaf_tier
        return fewest_rooms(self._rooms_in(domain), volume)

    def _rooms_in(self, domain: int) -> list[int]:
        leaves, within = chain.from_iterable(self.leaves.values()), self.dense.domains.within
        return [int(self.room[leaf]) for leaf in leaves if within(leaf, domain)]

    def bins(self, kind: int, domain: int) -> int:
        """Least number of leaves for the subgroups of a group, if each lies in one of them.

        Of subgroups of more than 1 / (n + 1) of a leaf, no leaf holds more than n.
        """
        room = max(self._rooms_in(domain))
        found, parts = 0, self.kinds[kind].parts
        for fitting in {room // part.volume for part, _ in parts if 0 < part.volume <= room}:
            large = sum(count for part, count in parts if part.volume <= room < part.volume * (fitting + 1))
            found = max(found, -(-large // fitting))
        return found


def measure_instance(dense: Dense) -> MeasuredInstance | None:
    """Measure by the resource that is asked for most; None where the tree is not even enough.

    All leaves must have one tier, nodes must be in leaves only, and the domains right above leaves must have one tier.
    """
    shape = _levels(dense)
    measure = _measure(dense)
    if shape is None or measure is None:
        return None
    blocks, uppers = shape
    resource, piece = measure
    tree = dense.domains
    return _Measurer(dense, resource, piece).instance(
        int(tree.tier[dense.leaf[0]]), blocks, uppers, tree.sums(dense.free[:, resource] // piece)
    )


def _levels(dense: Dense) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    tree, leaves = dense.domains, np.unique(dense.leaf)
    if not len(leaves) or tree.root in leaves or len(np.unique(tree.tier[leaves])) > 1:
        return None
    blocks = np.unique(tree.parent[leaves])
    if np.isin(blocks, leaves).any() or len(np.unique(tree.tier[blocks])) > 1:
        return None
    lower = {*leaves.tolist(), *blocks.tolist()}
    filled = np.flatnonzero(tree.end > tree.begin)
    above = [each for each in filled[np.argsort(tree.tier[filled], kind="stable")].tolist() if each not in lower]
    by_span = grouped([*blocks.tolist(), *above], lambda each: (int(tree.begin[each]), int(tree.end[each])))
    return tuple(blocks.tolist()), tuple(lowest for lowest, *_ in by_span.values() if lowest not in lower)


def _measure(dense: Dense) -> tuple[int, int] | None:
    sizes = np.array([one.size for one in dense.classes], dtype=np.int64)
    tree, best = dense.domains, None
    leaves = np.unique(dense.leaf)
    for resource in range(len(dense.resources)):
        asked = dense.requests[:, resource]
        for piece in _pieces(asked[asked > 0].tolist()):
            room = dense.free[:, resource] // piece
            if not room.any() or int(tree.sums(room)[leaves].max()) > 512:  # a flow through a leaf has as many nodes
                continue
            share = float((asked // piece * sizes).sum()) / float(room.sum())
            key = (round(share, 6), piece)
            if best is None or key > best[0]:
                best = key, (resource, piece)
    return None if best is None else best[1]


def _pieces(asked: list[int]) -> Iterator[int]:
    if asked:
        yield gcd(*asked)
        yield from sorted(set(asked))[:8]


class _Measurer:
    def __init__(self, dense: Dense, resource: int, piece: int) -> None:
        self.dense, self.resource, self.piece = dense, resource, piece
        self.requests = (dense.requests[:, resource] // piece).tolist()
        self.top = int(dense.domains.tier.max())

    def instance(
        self, leaf_tier: int, blocks: tuple[int, ...], uppers: tuple[int, ...], room: IntArray
    ) -> MeasuredInstance:
        dense, filler, located = self.dense, Counter[int](), []
        locality, span = dense.constant_locality, dense.constant_span
        for number, group in enumerate(dense.groups):
            scopes = self._scopes(number)
            if any(dense.scopes[scope].bound for scope in scopes):
                locality += sum(map(self._least, scopes))
                span += sum(map(self._leaves, scopes))
            elif not all(map(self._free, scopes)):
                located.append(number)
                continue
            filler.update(dict(self._sizes(group.classes)))
        kinds = tuple(
            MeasuredGroups(*key, members=tuple(members)) for key, members in grouped(located, self._key).items()
        )
        tops = tuple(each for each in uppers if dense.domains.end[each] > dense.domains.begin[each])
        counted = tuple(sorted(filler.items()))
        return MeasuredInstance(
            dense, self.resource, self.piece, kinds, counted, (locality, span), leaf_tier, blocks, tops, room
        )

    def _scopes(self, number: int) -> list[int]:
        group = self.dense.groups[number]
        return [group.scope, *(self.dense.sub_groups[sub].scope for sub in group.sub_groups)]

    def _key(self, number: int) -> tuple[MeasuredScope, tuple[tuple[MeasuredScope, int], ...], PieceCounts]:
        whole, *parts = map(self.part, self._scopes(number))
        loose = [index for index in self.dense.groups[number].classes if self.dense.classes[index].sub_group < 0]
        return whole, tuple(sorted(Counter(parts).items())), self._sizes(loose)

    def _free(self, scope: int) -> bool:
        one = self.dense.scopes[scope]
        return not one.wanted and one.limit is None

    def _sizes(self, classes: Iterable[int]) -> PieceCounts:
        found: Counter[int] = Counter()
        for index in classes:
            found[self.requests[index]] += self.dense.classes[index].size
        return tuple(sorted(found.items()))

    def part(self, scope: int) -> MeasuredScope:
        one = self.dense.scopes[scope]
        sizes = self._sizes(one.classes)
        limit = self.top if one.limit is None else one.limit
        pods, volume = sum(count for _, count in sizes), sum(size * count for size, count in sizes)
        return MeasuredScope(limit, one.wanted, pods, volume, sizes)

    def _least(self, scope: int) -> int:
        one, tree = self.dense.scopes[scope], self.dense.domains
        if not one.wanted:
            return 0
        anchor = self.dense.anchor(scope)
        lowest = int(tree.tier[np.unique(self.dense.leaf)].min()) if anchor is None else int(tree.tier[anchor])
        return lowest * (len(one.bound) + sum(self.dense.classes[index].size for index in one.classes))

    def _leaves(self, scope: int) -> int:
        one = self.dense.scopes[scope]
        if not one.wanted:
            return 0
        touched = len({int(self.dense.span_leaf[node]) for node in one.bound if node >= 0})
        return max(touched, int(bool(one.classes))) + one.lost_leaves
