"""What the exact model counts together: sets of nodes in the place of nodes, and bundles of equal groups.

**Node sets.** Where one resource decides and the sizes asked of it divide one another (1, 2, 4, 8 GPUs), pods fit on a
set of nodes exactly if, for each size ``s``, all pods of at least ``s`` fit into the room counted in pieces of ``s``::

    sum over pods of size >= s of size  <=  sum over nodes of floor(room / s) * s

(Put the largest first: what they leave of a node is a multiple of the next size.) The nodes of such a set need no
names, and the symmetry between them is gone. Everywhere else a set is a single node. The model calls a set a *place*.

**Bundles.** A *bundle* is a set of interchangeable groups (many pods that are gangs of one, gangs of one shape) or of
interchangeable subgroups of one group. Each of its members is placed entirely or not at all; a bundle of one member
may also be elastic. An *item* is the class of equal pods at one position of each member. The model counts placed
members and placed pods, and never says which.

Source: solver-notes on bounds for vector bin packing, "per-size counting".
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from placer.dense import Dense, DenseGroup, DenseSubGroup
from placer.symmetry import GroupSignatures, equally_eligible, grouped, partition

__all__ = ["Bundle", "Bundles", "Item", "NodeSet", "Reach", "make_bundles", "make_node_sets", "raw_fits"]


IntArray = npt.NDArray[np.int64]

#: How many pods that ask for nothing a node holds: more than there are.
UNLIMITED = 2**31


@dataclass(frozen=True)
class NodeSet:
    """A node, or nodes of one leaf that are counted together.

    Parameters
    ----------
    nodes
        Their indices, ascending.
    leaf
        Their leaf domain, the virtual root for nodes in no HyperNode.
    unit
        What ``span`` counts them as.
    used
        Whether they were not empty before (O4).
    resource
        The resource that decides, by which packing is exact; None for a single node where every resource counts.
    sizes
        Distinct amounts asked of it, ascending, each a divisor of the next; empty where ``resource`` is None.
    """

    nodes: tuple[int, ...]
    leaf: int
    unit: int
    used: bool
    resource: int | None = None
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class _CountableResource:
    """A resource by which packing may be counted, and how much of each other one a unit of it takes along at most."""

    resource: int
    sizes: tuple[int, ...]
    along: tuple[Fraction, ...]

    def decides(self, room: Sequence[int]) -> bool:
        """Whether on a node with this room no other resource can run short first."""
        step = self.sizes[0]
        most = room[self.resource] // step * step
        return all(most * share <= other for share, other in zip(self.along, room, strict=True))


def raw_fits(dense: Dense, index: int) -> IntArray:
    """How many pods like those of a class each node holds: :meth:`Dense.fits` not cut at the size of the class."""
    pod_class = dense.classes[index]
    fits = dense.fits(index)
    asked = np.flatnonzero(pod_class.request)
    if pod_class.host_ports:
        return fits
    room: IntArray = np.full(len(dense.nodes), UNLIMITED, dtype=np.int64)
    if len(asked):
        room = (dense.free[:, asked] // pod_class.request[asked]).min(axis=1)
    if dense.numa is not None:
        room = np.minimum(room, dense.numa.most(index))
    return np.where(fits > 0, room, 0)


def make_node_sets(dense: Dense, *, apart: bool = False) -> tuple[NodeSet, ...]:
    """Divide the nodes on which anything fits into sets, in tree order.

    Nodes of a set are eligible for the same pods, of the same leaf and network area, all used or all empty before; the
    empty ones hold equally many pods of each size, so that the least number of them that a set of pods needs can be
    counted too.

    Parameters
    ----------
    dense
        The instance.
    apart
        Whether nodes that two pods of a call could share are sets of their own: pairs on one node count in O3.
    """
    eligible, area = equally_eligible(dense).of, dense.area
    countable = _CountableNodes(dense, eligible, apart=apart)
    unit = dense.leaf_unit if any(scope.wanted for scope in dense.scopes) else dense.leaf

    def signature(node: int) -> tuple[object, ...]:
        by = countable.by(node)
        if by is None:
            return ("alone", node)
        used = bool(dense.node_used[node])
        profile = () if used else tuple((dense.free[node, by.resource] // np.array(by.sizes)).tolist())
        return (int(unit[node]), int(area[node]), int(eligible[node]), used, by.resource, profile)

    members = grouped(_where_anything_fits(dense), signature).values()
    places = [_node_set(dense, tuple(nodes), countable.by(nodes[0])) for nodes in members]
    return tuple(sorted(places, key=lambda place: place.nodes[0]))


class _CountableNodes:
    """By which resource the packing of a node is counted, if by any."""

    def __init__(self, dense: Dense, eligible: IntArray, *, apart: bool) -> None:
        self._dense, self._eligible = dense, eligible
        self._single = _meeting(dense) if apart else np.zeros(len(dense.nodes), dtype=bool)
        if dense.numa is not None:
            self._single |= dense.numa.kind >= 0
        self._resources: dict[int, list[_CountableResource]] = {}
        self._decided: dict[tuple[int, ...], _CountableResource | None] = {}

    def by(self, node: int) -> _CountableResource | None:
        """The first resource that decides on a node; None where it must stay a node of its own."""
        if self._single[node]:
            return None
        eligible, room = int(self._eligible[node]), tuple(self._dense.free[node].tolist())
        if eligible not in self._resources:
            self._resources[eligible] = _countable_resources(self._dense, self._eligible == eligible)
        if (eligible, *room) not in self._decided:
            found = (each for each in self._resources[eligible] if each.decides(room))
            self._decided[eligible, *room] = next(found, None)
        return self._decided[eligible, *room]


def _meeting(dense: Dense) -> npt.NDArray[np.bool_]:
    """Nodes on which both ends of a call may be, one of them new: bool, shape (nodes,)."""
    found = np.zeros(len(dense.nodes), dtype=bool)
    if dense.network is not None:
        new, before = np.zeros((2, len(dense.network.workloads), len(dense.nodes)), dtype=bool)
        for number, workload in enumerate(dense.network.workloads):
            masks = sorted({dense.classes[index].mask for index in workload.classes})
            new[number] = dense.masks[masks].any(axis=0)
            before[number, [node for node, _, _ in workload.bound if node >= 0]] = True
        for call in dense.network.calls:
            one, other = call.origin, call.destination
            found |= (new[one] & (new[other] | before[other])) | (before[one] & new[other])
    return found


def _node_set(dense: Dense, nodes: tuple[int, ...], counting: _CountableResource | None) -> NodeSet:
    first = nodes[0]
    leaf, unit, used = int(dense.leaf[first]), int(dense.leaf_unit[first]), bool(dense.node_used[first])
    if counting is None:
        return NodeSet(nodes, leaf, unit, used)
    return NodeSet(nodes, leaf, unit, used, counting.resource, counting.sizes)


def _where_anything_fits(dense: Dense) -> list[int]:
    fits = np.zeros(len(dense.nodes), dtype=bool)
    for index in partition(each.shape for each in dense.classes).first.tolist():
        fits |= dense.fits(index) > 0
    return [int(node) for node in np.flatnonzero(fits)]


def _countable_resources(dense: Dense, nodes: npt.NDArray[np.bool_]) -> list[_CountableResource]:
    """Resources by which pods that fit on some of the nodes can be counted; none where host ports take part."""
    requests, found = _requests_on(dense, nodes), []
    for resource in range(len(dense.resources)):
        sizes = sorted({request[resource] for request in requests})
        if sizes and sizes[0] > 0 and all(b % a == 0 for a, b in pairwise(sizes)):
            by_unit = ([Fraction(amount, request[resource]) for amount in request] for request in requests)
            found.append(_CountableResource(resource, tuple(sizes), tuple(map(max, zip(*by_unit, strict=True)))))
    return found


def _requests_on(dense: Dense, nodes: npt.NDArray[np.bool_]) -> set[tuple[int, ...]]:
    """Requests of the pods that fit on some of the nodes, equally eligible all; none where one has host ports."""
    first, found = int(np.argmax(nodes)), set[tuple[int, ...]]()
    for index, one in enumerate(dense.classes):
        request = tuple(one.request.tolist())
        known = request in found and not one.host_ports
        if not known and dense.masks[one.mask, first] and (dense.fits(index)[nodes] > 0).any():
            if one.host_ports:
                return set()
            found.add(request)
    return found


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
    return _BundleBuilder(dense).build()


class _BundleBuilder:
    def __init__(self, dense: Dense) -> None:
        self.dense = dense
        self.watched = any(name in ("locality", "span") for name, _ in dense.levels)
        tree = dense.domains
        self.flat = np.isin(np.arange(len(tree.parent)), tree.parent, invert=True)
        self.signatures = GroupSignatures(dense, self._class_key, self._scope_key)
        self.items: list[Item] = []
        self.gangs: list[Bundle] = []
        self.parts: list[Bundle] = []
        self._fits: dict[tuple[object, ...], IntArray] = {}

    def build(self) -> Bundles:
        for members in grouped(range(len(self.dense.groups)), self._group_key).values():
            self._add_gang(members)
        return Bundles(tuple(self.gangs), tuple(self.parts), tuple(self.items))

    def _group_key(self, index: int) -> Hashable:
        group = self.dense.groups[index]
        alike = not group.sub_groups and self._interchangeable(group)
        return self.signatures.of_group(index)[0] if alike else index

    def _sub_group_key(self, index: int) -> Hashable:
        alike = self._interchangeable(self.dense.sub_groups[index])
        return self.signatures.of_sub_group(index) if alike else index

    def _interchangeable(self, one: DenseGroup | DenseSubGroup) -> bool:
        """Whether it can be counted with others: placed entirely or not at all, and in one leaf or anywhere."""
        whole = self._whole(one.classes, one.short)
        return whole and not self.dense.scopes[one.scope].bound and self._reach(one.scope, whole) is not Reach.TREE

    def _whole(self, classes: Iterable[int], short: int) -> bool:
        return short == sum(self.dense.classes[index].size for index in classes)

    def _scope_key(self, scope: int) -> Hashable:
        return (self.dense.scopes[scope].limit, self.dense.scopes[scope].wanted)

    def _class_key(self, index: int) -> str:
        """All that tells a class apart, written down: numbers, words and nothing cannot be compared otherwise."""
        one = self.dense.classes[index]
        what = (one.weight, one.daemon, one.queue or "")
        return repr((one.size, one.role, *one.shape, *what, self.dense.workload_of.get(index, -1)))

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
        for subs in grouped(first.sub_groups, self._sub_group_key).values():
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
        ordered = map(self.signatures.ordered, classes)
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
        if reach is Reach.LEAF or not (self.dense.scopes[scope].wanted and self.watched):
            return self._able(tops or (), needs)
        inside, anchor = self._within(tops), self.dense.anchor(scope)
        if anchor is None:
            return self._able(np.flatnonzero(inside).tolist(), needs)
        tree = self.dense.domains
        above = (tree.begin <= tree.begin[anchor]) & (tree.end >= tree.end[anchor]) & (tree.tier >= tree.tier[anchor])
        inside &= above
        inside[anchor] = True
        return tuple(np.flatnonzero(inside).tolist())

    def _within(self, tops: tuple[int, ...] | None) -> npt.NDArray[np.bool_]:
        """Whether each domain is one of those given or below one; None: all are."""
        tree = self.dense.domains
        if tops is None:
            return np.ones(len(tree.begin), dtype=bool)
        found = np.zeros(len(tree.begin), dtype=bool)
        for top in tops:
            found |= (tree.begin >= tree.begin[top]) & (tree.end <= tree.end[top]) & (tree.tier <= tree.tier[top])
        return found

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
