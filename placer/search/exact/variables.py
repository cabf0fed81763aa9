"""Decision variables of the exact model: bundles, items, and the way to solutions and back (``models/exact.md``)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from ortools.sat.python.cp_model import CpModel, CpSolver, IntVar, LinearExpr

from placer.arrays import Dense, DenseGroup, DenseSubGroup, PodClass, Solution
from placer.arrays.model import BoolArray, IntArray, ready
from placer.arrays.symmetry import GroupSignatures, grouped
from placer.base.linear import LinearExpression
from placer.search.exact.node_sets import NodeSet, Request, first_fillings, raw_fits

if TYPE_CHECKING:
    from placer.search.exact.packing import PackingValues

__all__ = [
    "Bundle",
    "Bundles",
    "ExactVariables",
    "Item",
    "Linear",
    "Reach",
    "count_sizes",
    "decode",
    "encode",
    "fewest_rooms",
    "limited_solver",
    "make_bundles",
    "reaches",
    "set_hint",
    "solver_form",
    "value_at",
]


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


#: A linear expression over variables of CP-SAT.
Linear: TypeAlias = LinearExpression[IntVar]


def solver_form(expression: Linear) -> LinearExpr:
    """Return the variable part of an expression as CP-SAT takes it: made in one call, which is the fast way."""
    return LinearExpr.weighted_sum(expression.variables, expression.coefficients)


def set_hint(model: CpModel, values: Sequence[int]) -> None:
    """Hint every variable of a model, by index."""
    model.proto.clear_solution_hint()
    model.proto.solution_hint.vars.extend(range(len(values)))
    model.proto.solution_hint.values.extend(values)


def fewest_rooms(rooms: Iterable[int], amount: int) -> int:
    """How many of some rooms hold so much, the largest first."""
    left, count = amount, 0
    for room in sorted(rooms, reverse=True):
        if left <= 0:
            break
        left, count = left - room, count + 1
    return count


def limited_solver(*, work: float = math.inf, seconds: float = math.inf, **settings: float) -> CpSolver:
    """Make a solver within limits; ``settings`` are its parameters, among them one thread unless they say otherwise."""
    solver = CpSolver()
    for name, setting in {"num_workers": 1, **settings}.items():
        setattr(solver.parameters, name, setting)
    if work < math.inf:
        solver.parameters.max_deterministic_time = max(1e-6, work)
    if seconds < math.inf:
        solver.parameters.max_time_in_seconds = max(0.01, seconds)
    return solver


def reaches(row: Linear, least: int, values: list[int]) -> int:
    """Whether a row is at least ``least`` where each variable has the value at its index, as 1 or 0."""
    return int(value_at(row, values) >= least)


def value_at(expression: Linear, values: list[int]) -> int:
    """Return the value of an expression where each variable has the value at its index."""
    return expression.at(lambda variable: values[variable.index])


class ExactVariables:
    """The decisions of the model.

    ``counts`` has per item the pods by place, ``homes`` per bundle the members by domain, ``fillings`` per place the
    nodes filled in each listed way. ``active``, per bundle, counts placed members, or says whether an elastic one may
    have pods; None where nothing has to be ready. ``derived`` variables have values by those before them.
    """

    def __init__(self, dense: Dense, bundles: Bundles, places: tuple[NodeSet, ...]) -> None:
        self.dense, self.bundles, self.places = dense, bundles, places
        self.model = CpModel()
        self.derived: list[tuple[IntVar, Callable[[list[int]], int]]] = []
        self._paths: dict[int, tuple[int, ...]] = {}
        #: Variables, sign and least: whether their sum reaches it.
        self._known: dict[tuple[object, ...], IntVar] = {}
        self.all: tuple[Bundle, ...] = (*bundles.gangs, *bundles.parts)
        #: Request of a pod of each item, per resource.
        self.requests = [tuple(map(int, dense.classes[item.classes[0]].request)) for item in bundles.items]
        #: Most pods of each item at each place.
        self.sizes = count_sizes(dense, bundles, places)
        self.unit_nodes: dict[int, list[int]] = defaultdict(list)
        self.unit_leaf: dict[int, int] = {}
        for place in places:
            self.unit_nodes[place.unit].extend(place.nodes)
            self.unit_leaf[place.unit] = place.leaf
        self.counts = [
            {int(place): self.integer(int(row[place])) for place in np.flatnonzero(row)} for row in self.sizes
        ]
        self.active = [self._active(bundle) for bundle in self.all]
        self.homes = [{domain: self.integer(bundle.many) for domain in bundle.homes} for bundle in self.all]
        self.fillings = [[self.integer(len(place.nodes)) for _ in place.fillings] for place in places]
        self.packing: PackingValues | None = None

    def integer(self, most: int, value: Callable[[list[int]], int] | None = None) -> IntVar:
        """Make a variable of 0 .. ``most``, at least 1; ``value`` is its value where those before decide it."""
        variable = self.model.new_bool_var("") if most == 1 else self.model.new_int_var(0, most, "")
        if value is not None:
            self.derived.append((variable, value))
        return variable

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
        found: dict[int, list[IntVar]] = defaultdict(list)
        for place, variable in self.counts[item].items():
            found[self.places[place].leaf].append(variable)
        return found

    def by_unit(self, item: int) -> dict[int, list[IntVar]]:
        """Unit of ``span`` to the counts of an item there."""
        found: dict[int, list[IntVar]] = defaultdict(list)
        for place, variable in self.counts[item].items():
            found[self.places[place].unit].append(variable)
        return found

    def by_domain(self, item: int) -> dict[int, list[IntVar]]:
        """Domain to the counts of an item in it; only domains that have any."""
        found: dict[int, list[IntVar]] = defaultdict(list)
        for leaf, counts in self.by_leaf(item).items():
            for domain in self.path(leaf):
                found[domain].extend(counts)
        return found

    def path(self, domain: int) -> tuple[int, ...]:
        """A domain and all that hold it, the virtual root last."""
        if domain not in self._paths:
            parent = int(self.dense.domains.parent[domain])
            self._paths[domain] = (domain, *(self.path(parent) if parent >= 0 else ()))
        return self._paths[domain]

    @property
    def size(self) -> int:
        """Number of variables made so far."""
        return len(self.model.proto.variables)


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


def encode(variables: ExactVariables, solution: Solution) -> list[int]:
    """Value of every variable of the model for a solution that keeps all rules: a complete hint."""
    return _Encoder(variables, solution).values()


def decode(variables: ExactVariables, values: Sequence[int]) -> Solution:
    """Solution of some values of the variables: pods of places put on nodes, pods of bundles given to members."""
    return _Decoder(variables, values).solution()


class _Encoder:
    def __init__(self, variables: ExactVariables, solution: Solution) -> None:
        self.variables, self.dense, self.solution = variables, variables.dense, solution
        self.found = [0] * variables.size
        self.place_of = {node: place for place, where in enumerate(variables.places) for node in where.nodes}
        self.counts: dict[int, dict[int, int]] = defaultdict(dict)
        for (index, node), count in solution.items():
            self.counts[index][node] = self.counts[index].get(node, 0) + count
        self.totals = {index: sum(at.values()) for index, at in self.counts.items()}

    def values(self) -> list[int]:
        for item, by_place in enumerate(self.variables.counts):
            for index in self.variables.bundles.items[item].classes:
                for node, count in self.counts.get(index, {}).items():
                    self._add(by_place[self.place_of[node]], count)
        for index, bundle in enumerate(self.variables.all):
            self._bundle(index, bundle)
        self._fillings()
        if self.variables.packing is not None:
            self.variables.packing.encode(self.place_of, self.solution, self.found)
        for variable, value in self.variables.derived:
            self.found[variable.index] = value(self.found)
        return self.found

    def _add(self, variable: IntVar, amount: int) -> None:
        self.found[variable.index] += amount

    def _bundle(self, index: int, bundle: Bundle) -> None:
        active, homes = self.variables.active[index], self.variables.homes[index]
        for member in bundle.members:
            owners = self.dense.groups if bundle.policy < 0 else self.dense.sub_groups
            classes = owners[member].classes
            nodes = [node for each in classes for node in self.counts.get(each, ())]
            if active is not None and self._active(bundle, member, classes):
                self._add(active, 1)
            if homes and (nodes or self.dense.scopes[bundle.scope].bound):
                self._home(index, bundle, nodes)

    def _active(self, bundle: Bundle, member: int, classes: Iterable[int]) -> bool:
        if bundle.policy < 0:
            return ready(self.dense, member, self.totals)
        return sum(self.totals.get(index, 0) for index in classes) >= bundle.least

    def _home(self, index: int, bundle: Bundle, nodes: list[int]) -> None:
        common = self.dense.common([*self.dense.scopes[bundle.scope].bound, *nodes])
        assert common is not None
        homes = self.variables.homes[index]
        self._add(homes[next(domain for domain in self.variables.path(common) if domain in homes)], 1)

    def _fillings(self) -> None:
        filled = first_fillings(self.dense, self.variables.places, self.place_of, self.solution)
        for (place, number), nodes in filled.items():
            self._add(self.variables.fillings[place][number], nodes)


class _Decoder:
    def __init__(self, variables: ExactVariables, values: Sequence[int]) -> None:
        self.variables, self.dense, self.values = variables, variables.dense, values
        self.items = variables.bundles.items

    def solution(self) -> Solution:
        nodes = self._nodes()
        found = Solution()
        owned = {item for part in self.variables.bundles.parts for item in part.items}
        for bundle in self.variables.all:
            items = [item for item in bundle.items if bundle.policy >= 0 or item not in owned]
            for index, node in self._shared_out(bundle, {item: nodes[item] for item in items}):
                found[index, node] = found.get((index, node), 0) + 1
        return found

    def _nodes(self) -> dict[int, list[int]]:
        at: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for item, counts in enumerate(self.variables.counts):
            for place, variable in counts.items():
                count = self.values[variable.index]
                if count:
                    at[place].append((item, count))
        nodes: dict[int, list[int]] = defaultdict(list)
        for place, counts_there in at.items():
            packed = self._filled if self.variables.fillings[place] else self._packed
            for item, node in packed(place, counts_there):
                nodes[item].append(node)
        for each in nodes.values():
            each.sort()
        return nodes

    def _filled(self, index: int, counts: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        place, waiting = self.variables.places[index], defaultdict[Request, list[int]](list)
        for item, count in counts:
            waiting[self.variables.requests[item]] += [item] * count
        nodes = iter(place.nodes)
        for filling, variable in zip(place.fillings, self.variables.fillings[index], strict=True):
            for node in islice(nodes, self.values[variable.index]):
                for request, most in zip(place.requests, filling, strict=True):
                    there = waiting[request]
                    yield from ((there.pop(), node) for _ in range(min(most, len(there))))

    def _packed(self, index: int, counts: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        place = self.variables.places[index]
        if place.resource is None:
            yield from ((item, place.nodes[0]) for item, count in counts for _ in range(count))
            return
        resource = place.resource
        room = {node: int(self.dense.free[node, resource]) for node in place.nodes}
        for item, count in sorted(counts, key=lambda pair: (-self.variables.requests[pair[0]][resource], pair[0])):
            size = self.variables.requests[item][resource]
            for _ in range(count):
                node = min((node for node, left in room.items() if left >= size), key=lambda node: (room[node], node))
                room[node] -= size
                yield item, node

    def _shared_out(self, bundle: Bundle, nodes: dict[int, list[int]]) -> Iterator[tuple[int, int]]:
        for item, where in nodes.items():
            each = self.items[item]
            ordered = where if bundle.reach is not Reach.LEAF else sorted(where, key=self._leaf_then_node)
            yield from ((each.classes[number // each.size], node) for number, node in enumerate(ordered))

    def _leaf_then_node(self, node: int) -> tuple[int, int]:
        return int(self.dense.leaf[node]), node
