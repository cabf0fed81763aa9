"""Decision variables of the exact model: bundles, items, and the way to solutions and back (``models/exact.md``)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import islice

import numpy as np
from ortools.sat.python.cp_model import IntVar

from placer.arrays import Dense, DenseGroup, DenseSubGroup, PodClass, Solution
from placer.arrays.model import ready
from placer.arrays.solution import BoolArray, IntArray
from placer.arrays.symmetry import GroupSignatures
from placer.base.grouping import grouped
from placer.search.exact.count_model import CountModel, Linear, PodCount, reaches, solver_form
from placer.search.exact.node_sets import NodeSet, Request, raw_fits


class Reach(Enum):
    """How the tree sees a bundle."""

    FREE = "free"  #: no limit, and no value looks at where it is
    LEAF = "leaf"  #: each member lies in one leaf: members are counted per leaf
    TREE = "tree"  #: one member, whose smallest common domain matters


@dataclass(frozen=True)
class Item:
    """Equal pods of a bundle, ``size`` per member; ``fits`` is int64, most of them per node by itself."""

    classes: tuple[int, ...]
    size: int
    fits: IntArray

    @property
    def total(self) -> int:
        """Pods of all members."""
        return self.size * len(self.classes)


@dataclass(frozen=True)
class Bundle:
    """Interchangeable groups, or interchangeable subgroups of one group (``policy`` at least 0), first ones placed
    first.

    ``items`` of a group include those of its subgroups. ``whole``: a member is placed entirely or not at all.
    ``least``: new pods that a member needs before it may have any. One of ``homes`` must hold all pods of a member;
    empty with FREE. ``gang`` is the bundle of groups that it is or belongs to.
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
    """Find the interchangeable groups, and subgroups of one group.

    Only groups without subgroups are bundled, and only members that are placed entirely or not at all, and FREE or
    LEAF.
    """
    return _BundleBuilder(dense).build()


class _BundleBuilder:
    def __init__(self, dense: Dense) -> None:
        self.dense = dense
        self.watched = any(name in ("locality", "span") for name, _ in dense.criteria)
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
        whole = self._whole(one.classes, one.short)
        return whole and not self.dense.scopes[one.scope].bound and self._reach(one.scope, whole) is not Reach.TREE

    def _whole(self, classes: Iterable[int], short: int) -> bool:
        return short == sum(self.dense.classes[index].size for index in classes)

    def _scope_key(self, scope: int) -> Hashable:
        return (self.dense.scopes[scope].limit, self.dense.scopes[scope].wanted)

    def _class_key(self, index: int) -> str:
        """All as text: numbers, words and None cannot be compared otherwise."""
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

    def _within(self, tops: tuple[int, ...] | None) -> BoolArray:
        tree = self.dense.domains
        if tops is None:
            return np.ones(len(tree.begin), dtype=bool)
        found = np.zeros(len(tree.begin), dtype=bool)
        for top in tops:
            found |= (tree.begin >= tree.begin[top]) & (tree.end <= tree.end[top]) & (tree.tier <= tree.tier[top])
        return found

    def _able(self, domains: Iterable[int], needs: dict[int, int]) -> tuple[int, ...]:
        held = [(self.dense.domains.sums(self.items[item].fits), need) for item, need in needs.items()]
        able = []
        for domain in domains:
            room = [(int(sums[domain]), need) for sums, need in held]
            if all(count >= need for count, need in room) and any(count for count, _ in room):
                able.append(domain)
        return tuple(able)


class ExactVariables(CountModel):
    """The decisions of the model.

    ``counts`` has per item the pods by place, ``homes`` per bundle the members by domain. ``active``, per bundle,
    counts placed members, or says whether an elastic one may have pods; None where nothing has to be ready.
    """

    def __init__(self, dense: Dense, bundles: Bundles, places: tuple[NodeSet, ...]) -> None:
        super().__init__(dense, places)
        self.bundles = bundles
        #: Variables, sign and least: whether their sum reaches it.
        self._known: dict[tuple[object, ...], IntVar] = {}
        self.all: tuple[Bundle, ...] = (*bundles.gangs, *bundles.parts)
        #: Request of a pod of each item, per resource.
        self.requests = [tuple(map(int, dense.classes[item.classes[0]].request)) for item in bundles.items]
        #: Most pods of each item at each place.
        self.sizes = count_sizes(dense, bundles, places)
        self.counts = [self._counts(item, row) for item, row in enumerate(self.sizes)]
        self.active = [self._active(bundle) for bundle in self.all]
        self.homes = [{domain: self.integer(bundle.many) for domain in bundle.homes} for bundle in self.all]
        for place, where in enumerate(places):
            self.fillings[place] = [self.integer(len(where.nodes)) for _ in where.fillings]

    def _counts(self, item: int, sizes: IntArray) -> dict[int, IntVar]:
        found, first = {}, self.first(item)
        for place in np.flatnonzero(sizes).tolist():
            most = int(sizes[place])
            found[place] = self.integer(most)
            count = PodCount(self.requests[item], most, found[place], first.daemon, first.host_ports)
            self.there[place].append(count)
        return found

    def exclude(self, rows: Iterable[tuple[Linear, int]]) -> None:
        """At least one of some sums of counts has another value than it is given with."""
        differs = []
        for row, value in rows:
            if value < row.constant + sum(list(each.proto.domain)[-1] for each in row.variables):
                differs.append(self._beyond(row, value + 1))
            if value > row.constant:
                differs.append(self._beyond(Linear().plus(-1, row), 1 - value))
        self.model.add_bool_or(differs)

    def _beyond(self, row: Linear, least: int) -> IntVar:
        key = tuple(each.index for each in row.variables), *row.coefficients[:1], least
        if key not in self._known:
            literal = self._known[key] = self.integer(1, partial(reaches, row, least))
            self.model.add(solver_form(row) >= least - row.constant).only_enforce_if(literal)
        return self._known[key]

    def _active(self, bundle: Bundle) -> IntVar | None:
        gated = bundle.least > 0
        if bundle.policy < 0:
            group = self.dense.groups[bundle.members[0]]
            gated = gated or bool(group.short_by_role) or bool(group.short_by_policy)
        return self.integer(bundle.many) if gated else None

    # What the rules and the values ask again and again

    def first(self, item: int) -> PodClass:
        """One of the classes of an item, which are equal."""
        return self.dense.classes[self.bundles.items[item].classes[0]]

    def placed(self, item: int) -> list[IntVar]:
        """Counts of an item over all places."""
        return list(self.counts[item].values())

    def by_leaf(self, item: int) -> dict[int, list[IntVar]]:
        """Leaf domain to the counts of an item there."""
        return self._by(item, lambda place: (place.leaf,))

    def by_unit(self, item: int) -> dict[int, list[IntVar]]:
        """Unit of ``span`` to the counts of an item there."""
        return self._by(item, lambda place: (place.unit,))

    def by_domain(self, item: int) -> dict[int, list[IntVar]]:
        """Domain to the counts of an item in it; only domains that have any."""
        return self._by(item, lambda place: self.paths[place.leaf])

    def _by(self, item: int, where: Callable[[NodeSet], Iterable[int]]) -> dict[int, list[IntVar]]:
        found: dict[int, list[IntVar]] = defaultdict(list)
        for place, variable in self.counts[item].items():
            for each in where(self.places[place]):
                found[each].append(variable)
        return found

    # From a solution and back

    def encode(self, solution: Solution) -> list[int]:
        """Value of every variable for a solution that keeps all rules: a complete hint."""
        found, nodes = [0] * self.size, defaultdict[int, list[int]](list)
        for (index, node), count in solution.items():
            nodes[index] += [node] * count
        for item, by_place in enumerate(self.counts):
            for index in self.bundles.items[item].classes:
                for node in nodes[index]:
                    found[by_place[self.place_of[node]].index] += 1
        totals = {index: len(there) for index, there in nodes.items()}
        for number, bundle in enumerate(self.all):
            self._encode_bundle(number, bundle, nodes, totals, found)
        return self.complete(solution, found)

    def _encode_bundle(
        self, number: int, bundle: Bundle, nodes: Mapping[int, list[int]], totals: Mapping[int, int], found: list[int]
    ) -> None:
        active, homes, bound = self.active[number], self.homes[number], self.dense.scopes[bundle.scope].bound
        for member in bundle.members:
            classes = (self.dense.groups if bundle.policy < 0 else self.dense.sub_groups)[member].classes
            if active is not None and self._ready(bundle, member, classes, totals):
                found[active.index] += 1
            there = [node for each in classes for node in nodes.get(each, ())]
            if homes and (there or bound):
                found[homes[self.home([*bound, *there], homes)].index] += 1

    def _ready(self, bundle: Bundle, member: int, classes: Iterable[int], totals: Mapping[int, int]) -> bool:
        if bundle.policy < 0:
            return ready(self.dense, member, totals)
        return sum(totals.get(index, 0) for index in classes) >= bundle.least

    def decode(self, values: Sequence[int]) -> Solution:
        """Solution of some values of the variables: pods of places put on nodes, pods of bundles given to members."""
        nodes, found = self._nodes(values), Solution()
        owned = {item for part in self.bundles.parts for item in part.items}
        for bundle in self.all:
            for item in bundle.items:
                if bundle.policy >= 0 or item not in owned:
                    self._share_out(bundle, item, nodes[item], found)
        return found

    def _nodes(self, values: Sequence[int]) -> dict[int, list[int]]:
        at: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for item, counts in enumerate(self.counts):
            for place, variable in counts.items():
                count = values[variable.index]
                if count:
                    at[place].append((item, count))
        nodes: dict[int, list[int]] = defaultdict(list)
        for place, there in at.items():
            filled = [values[variable.index] for variable in self.fillings[place]]
            for item, node in self._filled_nodes(place, there, filled) if filled else self._packed_nodes(place, there):
                nodes[item].append(node)
        for each in nodes.values():
            each.sort()
        return nodes

    def _filled_nodes(
        self, index: int, counts: Iterable[tuple[int, int]], filled: Iterable[int]
    ) -> Iterator[tuple[int, int]]:
        place, waiting = self.places[index], defaultdict[Request, list[int]](list)
        for item, count in counts:
            waiting[self.requests[item]] += [item] * count
        nodes = iter(place.nodes)
        for filling, many in zip(place.fillings, filled, strict=True):
            for node in islice(nodes, many):
                for request, most in zip(place.requests, filling, strict=True):
                    there = waiting[request]
                    yield from ((there.pop(), node) for _ in range(min(most, len(there))))

    def _packed_nodes(self, index: int, counts: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        place = self.places[index]
        if place.resource is None:
            yield from ((item, place.nodes[0]) for item, count in counts for _ in range(count))
            return
        resource = place.resource
        room = {node: int(self.dense.free[node, resource]) for node in place.nodes}
        for item, count in sorted(counts, key=lambda pair: (-self.requests[pair[0]][resource], pair[0])):
            size = self.requests[item][resource]
            for _ in range(count):
                node = min((node for node, left in room.items() if left >= size), key=lambda node: (room[node], node))
                room[node] -= size
                yield item, node

    def _share_out(self, bundle: Bundle, item: int, nodes: list[int], found: Solution) -> None:
        each = self.bundles.items[item]
        if bundle.reach is Reach.LEAF:
            nodes = sorted(nodes, key=lambda node: (int(self.dense.leaf[node]), node))
        for number, node in enumerate(nodes):
            index = each.classes[number // each.size]
            found[index, node] = found.get((index, node), 0) + 1


def count_sizes(dense: Dense, bundles: Bundles, places: tuple[NodeSet, ...]) -> list[IntArray]:
    """Most pods of each item at each place, by eligibility (C3), room, and reach: one row per item."""
    allowed = [np.ones(len(dense.nodes), dtype=bool) for _ in bundles.items]
    for bundle in (*bundles.gangs, *bundles.parts):
        if bundle.reach is not Reach.FREE:
            inside = _inside(dense, bundle)
            for item in bundle.items:
                allowed[item] = allowed[item] & inside
    nodes = np.array([node for place in places for node in place.nodes], dtype=np.int64)
    begins = np.cumsum([0, *(len(place.nodes) for place in places)])[:-1]
    return [_sizes(item, mask, nodes, begins) for item, mask in zip(bundles.items, allowed, strict=True)]


def _sizes(item: Item, allowed: BoolArray, nodes: IntArray, begins: IntArray) -> IntArray:
    if not len(begins):
        return np.zeros(0, dtype=np.int64)
    fits = np.where(allowed, np.minimum(item.fits, item.total), 0)[nodes]
    return np.minimum(np.add.reduceat(fits, begins), item.total)


def _inside(dense: Dense, bundle: Bundle) -> BoolArray:
    mask = np.zeros(len(dense.nodes), dtype=bool)
    for home in bundle.homes:
        mask[dense.domains.begin[home] : dense.domains.end[home]] = True
    return mask
