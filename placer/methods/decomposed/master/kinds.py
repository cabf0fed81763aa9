"""What the master sees of an instance: one measure of room, groups that are equal by it, and the tree by levels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import gcd

import numpy as np
import numpy.typing as npt

from placer.dense import Dense

__all__ = ["Ground", "Kind", "Part", "Unit", "make_ground"]

IntArray = npt.NDArray[np.int64]

#: Leaves hold at most so many pieces: a flow through a leaf has as many nodes.
MOST_PIECES = 512

#: Pods of one size each: pairs of pieces per pod, number of pods.
Sizes = tuple[tuple[int, int], ...]


@dataclass(frozen=True, order=True)
class Part:
    """Equal subgroups, or the group itself: what the tree asks about it.

    Parameters
    ----------
    limit
        Highest tier of its smallest common domain.
    wanted
        Whether it counts in O2.
    pods, volume
        How many there are, and how many pieces they take.
    sizes
        Pieces per pod to number of pods, ascending.
    """

    limit: int
    wanted: bool
    pods: int
    volume: int
    sizes: Sizes


@dataclass(frozen=True)
class Kind:
    """Groups that are equal by the measure.

    Parameters
    ----------
    whole
        All pods of a group.
    parts
        Its subgroups, and how many of each there are.
    loose
        Its pods in no subgroup.
    members
        Group indices.
    """

    whole: Part
    parts: tuple[tuple[Part, int], ...]
    loose: Sizes
    members: tuple[int, ...]


@dataclass(frozen=True)
class Unit:
    """Equal domains above the leaves, under the same domain; counted together as long as none has a name.

    Parameters
    ----------
    blocks
        The domains.
    leaves
        Room of a leaf to the number of such leaves in all blocks together.
    room
        Of one block.
    """

    blocks: tuple[int, ...]
    leaves: tuple[tuple[int, int], ...]
    room: int


@dataclass(frozen=True)
class Ground:
    """The tree and the groups in pieces of one resource.

    Parameters
    ----------
    dense
        The instance.
    resource, piece
        What is counted, and how much of it a piece is.
    kinds
        Groups that lie somewhere as a whole.
    filler
        Pods of which the tree asks nothing that is counted here: they only take room.
    standing
        Lowest ``locality`` and ``span`` of scopes that are not in ``kinds``: those with running pods.
    leaf_tier
        Tier of every leaf.
    blocks
        Domains right above leaves.
    uppers
        Domains above those, smaller ones first; of two that hold the same nodes only the lower one.
    room
        int64, shape (domains,): pieces.
    """

    dense: Dense
    resource: int
    piece: int
    kinds: tuple[Kind, ...]
    filler: Sizes
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
        tree, found = self.dense.domains, defaultdict(list)
        for leaf in np.unique(self.dense.leaf):
            found[int(tree.parent[leaf])].append(int(leaf))
        return dict(found)

    def subs_of(self, kind: int) -> dict[int, list[list[int]]]:
        """Group of a kind to its subgroups, per part of the kind."""
        sorter, one = _Sorter(self.dense, self.resource, self.piece), self.kinds[kind]
        found = {}
        for group in one.members:
            by_part: dict[Part, list[int]] = {part: [] for part, _ in one.parts}
            for sub in self.dense.groups[group].sub_groups:
                by_part[sorter.part(self.dense.sub_groups[sub].scope)].append(sub)
            found[group] = list(by_part.values())
        return found

    def inside(self, inner: int, outer: int) -> bool:
        """Whether a domain holds all nodes of another."""
        tree = self.dense.domains
        return bool(tree.begin[outer] <= tree.begin[inner] and tree.end[inner] <= tree.end[outer])

    def units(self) -> list[Unit]:
        """Equal blocks under one domain together."""
        alike: dict[tuple[object, ...], list[int]] = defaultdict(list)
        for block in self.blocks:
            rooms = tuple(sorted(int(self.room[leaf]) for leaf in self.leaves[block]))
            alike[(int(self.dense.domains.parent[block]), rooms)].append(block)
        return [self.unit(blocks) for blocks in alike.values()]

    def unit(self, blocks: Iterable[int]) -> Unit:
        """Make a unit of blocks that are equal."""
        chosen = tuple(blocks)
        rooms = Counter(int(self.room[leaf]) for block in chosen for leaf in self.leaves[block])
        return Unit(chosen, tuple(sorted(rooms.items())), int(self.room[chosen[0]]))

    def fewest(self, volume: int, domain: int) -> int:
        """Fewest leaves of a domain that hold so many pieces: the largest first."""
        tree, left, count = self.dense.domains, volume, 0
        inside = [leaf for each in self.leaves.values() for leaf in each if self.inside(leaf, domain)]
        assert tree.tier[domain] > self.leaf_tier
        for leaf in sorted(inside, key=lambda each: -int(self.room[each])):
            if left <= 0:
                break
            left, count = left - int(self.room[leaf]), count + 1
        return count

    def bins(self, kind: int, domain: int) -> int:
        """Leaves of a domain that the subgroups of a group touch at least, if each lies in one of them.

        Of subgroups of more than 1 / (n + 1) of a leaf, no leaf holds more than n.
        """
        room = max(
            int(self.room[leaf]) for leaves in self.leaves.values() for leaf in leaves if self.inside(leaf, domain)
        )
        found, parts = 0, self.kinds[kind].parts
        for fitting in {room // part.volume for part, _ in parts if 0 < part.volume <= room}:
            large = sum(count for part, count in parts if part.volume <= room < part.volume * (fitting + 1))
            found = max(found, -(-large // fitting))
        return found


def make_ground(dense: Dense) -> Ground | None:
    """See the instance through the measure that is asked for most; None where the tree is not even enough.

    All leaves must have one tier, nodes must be in leaves only, and the domains right above leaves must have one tier.
    """
    shape = _levels(dense)
    measure = _measure(dense)
    if shape is None or measure is None:
        return None
    blocks, uppers = shape
    resource, piece = measure
    sums = np.concatenate(([0], np.cumsum(dense.free[:, resource] // piece)))
    tree = dense.domains
    return _Sorter(dense, resource, piece).ground(
        int(tree.tier[dense.leaf[0]]), blocks, uppers, sums[tree.end] - sums[tree.begin]
    )


def _levels(dense: Dense) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Blocks and the domains above them, or None."""
    tree = dense.domains
    leaves = np.unique(dense.leaf)
    if not len(leaves) or tree.root in leaves or len(set(tree.tier[leaves].tolist())) > 1:
        return None
    blocks = np.unique(tree.parent[leaves])
    if np.isin(blocks, leaves).any() or len(set(tree.tier[blocks].tolist())) > 1:
        return None
    filled = np.flatnonzero(tree.end > tree.begin)
    others = [int(each) for each in filled if each not in leaves and each not in blocks]
    if any(np.isin(int(tree.parent[leaf]), leaves) for leaf in leaves):
        return None
    uppers: dict[tuple[int, int], int] = {}
    known = {(int(tree.begin[each]), int(tree.end[each])) for each in blocks}
    for each in sorted(others, key=lambda one: int(tree.tier[one])):
        span = (int(tree.begin[each]), int(tree.end[each]))
        if span not in known:
            uppers.setdefault(span, each)
    return tuple(blocks.tolist()), tuple(sorted(uppers.values(), key=lambda one: int(tree.tier[one])))


def _measure(dense: Dense) -> tuple[int, int] | None:
    """Choose the resource that is asked for most in proportion to its room, in pieces that are small enough."""
    sizes = np.array([one.size for one in dense.classes], dtype=np.int64)
    tree, best = dense.domains, None
    leaves = np.unique(dense.leaf)
    for resource in range(len(dense.resources)):
        asked = dense.requests[:, resource]
        for piece in _pieces(asked[asked > 0].tolist()):
            room = dense.free[:, resource] // piece
            sums = np.concatenate(([0], np.cumsum(room)))
            if not room.any() or int((sums[tree.end[leaves]] - sums[tree.begin[leaves]]).max()) > MOST_PIECES:
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


class _Sorter:
    """Sorts groups into kinds and filler."""

    def __init__(self, dense: Dense, resource: int, piece: int) -> None:
        self.dense, self.resource, self.piece = dense, resource, piece
        self.requests = (dense.requests[:, resource] // piece).tolist()
        self.top = int(dense.domains.tier.max())

    def ground(self, leaf_tier: int, blocks: tuple[int, ...], uppers: tuple[int, ...], room: IntArray) -> Ground:
        alike: dict[tuple[Part, tuple[tuple[Part, int], ...], Sizes], list[int]] = defaultdict(list)
        filler: Counter[int] = Counter()
        locality = span = 0
        for number, group in enumerate(self.dense.groups):
            scopes = [group.scope, *(self.dense.sub_groups[sub].scope for sub in group.sub_groups)]
            whole = self.part(group.scope)
            if any(self.dense.scopes[scope].bound for scope in scopes):
                for scope in scopes:
                    locality, span = locality + self._least(scope), span + self._leaves(scope)
                filler.update(dict(whole.sizes))
            elif all(self._free(scope) for scope in scopes):
                filler.update(dict(whole.sizes))
            else:
                parts = Counter(self.part(scope) for scope in scopes[1:])
                loose = [index for index in group.classes if self.dense.classes[index].sub_group < 0]
                alike[whole, tuple(sorted(parts.items())), self._sizes(loose)].append(number)
        kinds = tuple(Kind(*key, members=tuple(members)) for key, members in alike.items())
        tree = self.dense.domains
        return Ground(
            self.dense,
            self.resource,
            self.piece,
            kinds,
            tuple(sorted(filler.items())),
            (locality + self.dense.constant_locality, span + self.dense.constant_span),
            leaf_tier,
            blocks,
            tuple(each for each in uppers if tree.end[each] > tree.begin[each]),
            room,
        )

    def _free(self, scope: int) -> bool:
        one = self.dense.scopes[scope]
        return not one.wanted and one.limit is None

    def _sizes(self, classes: Iterable[int]) -> Sizes:
        found: Counter[int] = Counter()
        for index in classes:
            found[self.requests[index]] += self.dense.classes[index].size
        return tuple(sorted(found.items()))

    def part(self, scope: int) -> Part:
        """What the tree asks about a scope."""
        one = self.dense.scopes[scope]
        sizes = self._sizes(one.classes)
        limit = self.top if one.limit is None else one.limit
        pods, volume = sum(count for _, count in sizes), sum(size * count for size, count in sizes)
        return Part(limit, one.wanted, pods, volume, sizes)

    def _least(self, scope: int) -> int:
        """Pods times the tier that they have in any case: that of what runs, the lowest one else."""
        one, tree = self.dense.scopes[scope], self.dense.domains
        if not one.wanted:
            return 0
        anchor = self.dense.anchor(scope)
        lowest = int(tree.tier[np.unique(self.dense.leaf)].min()) if anchor is None else int(tree.tier[anchor])
        return lowest * (len(one.bound) + sum(self.dense.classes[index].size for index in one.classes))

    def _leaves(self, scope: int) -> int:
        """Leaves that are touched in any case."""
        one = self.dense.scopes[scope]
        if not one.wanted:
            return 0
        touched = len({int(self.dense.leaf_unit[node]) for node in one.bound if node >= 0})
        return max(touched, int(bool(one.classes))) + one.lost_leaves
