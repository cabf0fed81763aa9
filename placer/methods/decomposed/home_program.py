"""Where groups have their homes, decided while pods are only counted: ``locality`` of a cluster in which all is placed.

What ``locality`` asks of a placement is which domain is the home of each group and subgroup, not which of its pods are
on which node. So pods of one shape are counted together, whoever's they are: each home asks for room for its pods of a
shape, each place holds so many of them, and they can be dealt out if in every domain are at least as many as the homes
in it ask for (domains are nested, so this is enough). The model has a column per home, and per shape and place, where
that of :mod:`placer.methods.exact` has one per group and place; steps on it see a third of the cluster at once.

*Coarse*, it counts the room of a leaf in pieces, all nodes of the leaf at once: what it proves holds, and it is proved
much sooner; what it finds may have no placement.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from ortools.sat.python.cp_model import CpModel, IntVar

from placer.dense import Dense, Solution
from placer.dense.model import IntArray
from placer.methods.exact.node_sets import NodeSet, Request, make_node_sets
from placer.methods.exact.variables import Bundle, ExactVariables, Linear, decode, make_bundles, solver_form

__all__ = ["HomeProgram", "tells_all"]

#: A resource with more distinct sizes than this is counted in its own units only.
MOST_SIZES = 10


def tells_all(dense: Dense) -> bool:
    """Whether pods of one shape can take each other's place: nothing but room, eligibility and the tree counts."""
    alone = dense.network is None and dense.numa is None and dense.neighbours is None
    return alone and not any(one.host_ports for one in dense.classes)


@dataclass(frozen=True)
class _PodShape:
    """Pods that ask for the same and may go to the same nodes.

    Parameters
    ----------
    request, mask
        What they ask for; row of ``Dense.masks``.
    fits
        int64, shape (nodes,): how many of them each node holds by itself.
    total
        How many there are.
    """

    request: Request
    mask: int
    fits: IntArray
    total: int


@dataclass(frozen=True)
class _Leaf:
    """All nodes of a leaf, for the coarse model."""

    nodes: tuple[int, ...]
    leaf: int


class HomeProgram:
    """The model of one instance; all of its pods are placed.

    Parameters
    ----------
    dense
        The instance; :func:`tells_all` must say so.
    coarse
        Whether the room of leaves is counted instead of that of nodes.

    Attributes
    ----------
    model
        Minimises ``locality``.
    homes
        Per bundle of :func:`~placer.methods.exact.variables.make_bundles`, gangs first: home to how many members have
        it.
    counts
        Shape and place to how many pods of the shape are there.
    leaf_of
        Index of a variable to the leaf that it is about; those about no single leaf are absent.
    possible
        Whether every group has a home that could hold it.
    """

    def __init__(self, dense: Dense, *, coarse: bool = False) -> None:
        self.dense, self.coarse, self.model = dense, coarse, CpModel()
        self.bundles = make_bundles(dense)
        self.all: tuple[Bundle, ...] = (*self.bundles.gangs, *self.bundles.parts)
        self.leaves = [int(leaf) for leaf in np.unique(dense.leaf)]
        self.places: Sequence[NodeSet | _Leaf] = self._leaf_places() if coarse else make_node_sets(dense)
        self.leaf_of: dict[int, int] = {}
        self.shapes, self.shape_of = self._shapes()
        self.counts = self._counts()
        self.fillings: dict[int, list[IntVar]] = {}
        self._capacity()
        self.possible = True
        self.homes = [self._homes(bundle) for bundle in self.all]
        self._nested()
        self._dealt_out()
        self.value = self._locality()
        self.model.minimize(solver_form(self.value) + self.value.constant)

    # Places

    def _leaf_places(self) -> list[_Leaf]:
        return [_Leaf(tuple(np.flatnonzero(self.dense.leaf == leaf).tolist()), leaf) for leaf in self.leaves]

    def _shapes(self) -> tuple[list[_PodShape], list[int]]:
        """The shapes, and that of each item."""
        numbers: dict[tuple[Request, int], int] = {}
        keys = []
        for item in self.bundles.items:
            first = self.dense.classes[item.classes[0]]
            keys.append((tuple(map(int, first.request)), first.mask))
            numbers.setdefault(keys[-1], len(numbers))
        total = Counter[int]()
        fits: dict[int, IntArray] = {}
        for item, key in zip(self.bundles.items, keys, strict=True):
            total[numbers[key]] += item.total
            fits[numbers[key]] = item.fits
        shapes = [_PodShape(*key, fits[number], total[number]) for key, number in numbers.items()]
        return shapes, [numbers[key] for key in keys]

    def _integer(self, most: int, leaf: int | None = None) -> IntVar:
        variable = self.model.new_bool_var("") if most == 1 else self.model.new_int_var(0, most, "")
        if leaf is not None:
            self.leaf_of[variable.index] = leaf
        return variable

    def _counts(self) -> dict[tuple[int, int], IntVar]:
        found = {}
        for number, shape in enumerate(self.shapes):
            for place, where in enumerate(self.places):
                most = min(shape.total, int(shape.fits[list(where.nodes)].sum()))
                if most:
                    found[number, place] = self._integer(most, where.leaf)
        return found

    # C2

    def _capacity(self) -> None:
        at: dict[int, list[tuple[int, IntVar]]] = defaultdict(list)
        for (shape, place), variable in self.counts.items():
            at[place].append((shape, variable))
        for place, there in at.items():
            where = self.places[place]
            if isinstance(where, _Leaf):
                self._room_of_leaf(where, there)
            elif where.fillings:
                self._room_by_filling(place, where, there)
            elif where.resource is not None:
                free = self.dense.free[list(where.nodes), where.resource]
                for size in where.sizes:
                    self._in_pieces(there, where.resource, size, int((free // size).sum()))
            else:
                for resource, room in enumerate(self.dense.free[where.nodes[0]].tolist()):
                    self._in_pieces(there, resource, 1, room)

    def _in_pieces(self, there: Sequence[tuple[int, IntVar]], resource: int, size: int, room: int) -> None:
        """Sum over shapes of floor(request / size) times their count is at most the room in such pieces."""
        row = Linear()
        for shape, variable in there:
            pieces = self.shapes[shape].request[resource] // size
            if pieces:
                row.add(pieces, variable)
        if row.variables:
            self.model.add(solver_form(row) <= room)

    def _room_by_filling(self, place: int, where: NodeSet, there: Sequence[tuple[int, IntVar]]) -> None:
        filled = self.fillings[place] = [self._integer(len(where.nodes), where.leaf) for _ in where.fillings]
        self.model.add(solver_form(Linear().add(1, *filled)) <= len(where.nodes))
        for position, request in enumerate(where.requests):
            row = Linear().add(1, *(variable for shape, variable in there if self.shapes[shape].request == request))
            for filling, variable in zip(where.fillings, filled, strict=True):
                row.add(-filling[position], variable)
            self.model.add(solver_form(row) <= 0)

    def _room_of_leaf(self, where: _Leaf, there: Sequence[tuple[int, IntVar]]) -> None:
        """In pieces of every size, of all nodes, and of those alone on which pods of a selector may be."""
        nodes = np.array(where.nodes)
        masks = self.dense.masks[:, nodes]
        present = sorted({self.shapes[shape].mask for shape, _ in there})
        every = masks[present].any(axis=0)
        for allowed in {row.tobytes(): row for row in (every, *masks[present])}.values():
            inside = [(shape, count) for shape, count in there if not (masks[self.shapes[shape].mask] & ~allowed).any()]
            for resource in range(len(self.dense.resources)):
                free = self.dense.free[nodes[allowed], resource]
                for size in self._sizes(inside, resource):
                    self._in_pieces(inside, resource, size, int((free // size).sum()))

    def _sizes(self, there: Sequence[tuple[int, IntVar]], resource: int) -> list[int]:
        sizes = {self.shapes[shape].request[resource] for shape, _ in there} - {0}
        return sorted({1, *sizes}) if len(sizes) <= MOST_SIZES else [1]

    # C7

    @cached_property
    def _paths(self) -> list[tuple[int, ...]]:
        """Per domain itself and all that hold it, the virtual root last."""
        parent = self.dense.domains.parent.tolist()

        def path(domain: int) -> tuple[int, ...]:
            return (domain, *(path(parent[domain]) if parent[domain] >= 0 else ()))

        return [path(domain) for domain in range(len(parent))]

    @cached_property
    def _lowest(self) -> list[int]:
        """Per domain the lowest one that has the same nodes."""
        tree, found = self.dense.domains, dict[tuple[int, int], int]()
        spans = [(int(begin), int(end)) for begin, end in zip(tree.begin, tree.end, strict=True)]
        for domain in np.argsort(tree.tier, kind="stable").tolist():
            found.setdefault(spans[domain], domain)
        return [found[span] for span in spans]

    def _homes(self, bundle: Bundle) -> dict[int, IntVar]:
        """Each member has one home, the lowest of those that hold the same nodes; none where nothing asks for one."""
        if not bundle.homes and self.dense.limit_domains(bundle.scope) is None:
            return {}
        bound = self.dense.scopes[bundle.scope].bound
        able = dict.fromkeys(bundle.homes if bound else (self._lowest[home] for home in bundle.homes))
        domains = [home for home in able if self._holds_all(home, bundle)]
        if not domains:
            self.possible = False
            return {}
        homes = {home: self._integer(bundle.many, home if home in self.leaves else None) for home in domains}
        self.model.add(solver_form(Linear().add(1, *homes.values())) == bundle.many)
        return homes

    def _holds_all(self, home: int, bundle: Bundle) -> bool:
        """Whether a domain has room for all pods of a member, in pieces of every size."""
        shapes = [self.shapes[self.shape_of[item]] for item in bundle.items]
        pods = [self.bundles.items[item].total // bundle.many for item in bundle.items]
        return all(
            sum(many * (shape.request[resource] // size) for shape, many in zip(shapes, pods, strict=True))
            <= room[home]
            for (resource, size), room in self._rooms.items()
        )

    @cached_property
    def _rooms(self) -> dict[tuple[int, int], list[int]]:
        """Resource and size to the room of each domain in such pieces."""
        found = {}
        for resource, free in enumerate(self.dense.free.T):
            sizes = {shape.request[resource] for shape in self.shapes} - {0}
            for size in {1, *sizes} if len(sizes) <= MOST_SIZES else {1}:
                found[resource, size] = [int(room) for room in self.dense.domains.sums(free // size)]
        return found

    def _nested(self) -> None:
        """Where the home of a group lies in a domain, so do those of its subgroups."""
        for bundle, homes in zip(self.all, self.homes, strict=True):
            above = self.homes[bundle.gang]
            if bundle.policy < 0 or not homes or not above:
                continue
            inner = self._inside(homes)
            for domain, variables in self._inside(above).items():
                row = Linear().add(bundle.many, *variables).add(-1, *inner.get(domain, ()))
                self.model.add(solver_form(row) <= 0)

    def _inside(self, homes: dict[int, IntVar]) -> dict[int, list[IntVar]]:
        """Domain to the homes in it."""
        found: dict[int, list[IntVar]] = defaultdict(list)
        for home, variable in homes.items():
            for domain in self._paths[home]:
                found[domain].append(variable)
        return found

    @cached_property
    def owners(self) -> list[int]:
        """Per item the innermost bundle that says where its pods are."""
        found = [0] * len(self.bundles.items)
        for index, bundle in enumerate(self.all):
            for item in bundle.items:
                found[item] = index if self.homes[index] or bundle.policy < 0 else bundle.gang
        return found

    def _dealt_out(self) -> None:
        """In each domain are at least as many pods of each shape as the homes in it ask for, and all in all as many."""
        asked: dict[tuple[int, int], Linear] = defaultdict(Linear)
        held: dict[tuple[int, int], Linear] = defaultdict(Linear)
        for item, owner in enumerate(self.owners):
            bundle, shape = self.all[owner], self.shape_of[item]
            each = self.bundles.items[item].total // bundle.many
            for home, members in self.homes[owner].items():
                for domain in self._paths[home]:
                    asked[shape, domain].add(each, members)
        for (shape, place), count in self.counts.items():
            for domain in self._paths[self.places[place].leaf]:
                held[shape, domain].add(1, count)
        for number, one in enumerate(self.shapes):
            self.model.add(solver_form(held[number, self.dense.domains.root]) == one.total)
        for key, row in asked.items():
            if key[1] != self.dense.domains.root:
                self.model.add(solver_form(Linear().plus(1, row).plus(-1, held[key])) <= 0)

    def _locality(self) -> Linear:
        """Sum over scopes of pods, running ones included, times the tier of their home."""
        total = Linear(constant=self.dense.constant_locality)
        for bundle, homes in zip(self.all, self.homes, strict=True):
            scope = self.dense.scopes[bundle.scope]
            if scope.wanted:
                pods = sum(self.bundles.items[item].total for item in bundle.items) // bundle.many + len(scope.bound)
                for home, members in homes.items():
                    total.add(pods * int(self.dense.domains.tier[home]), members)
        return total

    # From a solution and back

    def encoded(self, solution: Solution) -> dict[int, int]:
        """Value of every count and home, by index, for a solution that places everything."""
        place_of = {node: place for place, where in enumerate(self.places) for node in where.nodes}
        item_of = {index: item for item, each in enumerate(self.bundles.items) for index in each.classes}
        found = dict.fromkeys((variable.index for variable in self.counts.values()), 0)
        nodes: dict[int, list[int]] = defaultdict(list)
        for (index, node), count in solution.items():
            found[self.counts[self.shape_of[item_of[index]], place_of[node]].index] += count
            nodes[index].append(node)
        for bundle, homes in zip(self.all, self.homes, strict=True):
            if homes:
                found |= self._at_home(bundle, homes, nodes)
        return found

    def _at_home(self, bundle: Bundle, homes: dict[int, IntVar], nodes: dict[int, list[int]]) -> dict[int, int]:
        """How many members of a bundle have each home, by index; ``nodes`` has those of each class."""
        found = dict.fromkeys((variable.index for variable in homes.values()), 0)
        of = self.dense.groups if bundle.policy < 0 else self.dense.sub_groups
        for member in bundle.members:
            there = [node for index in of[member].classes for node in nodes[index]]
            home = self.dense.common([*self.dense.scopes[bundle.scope].bound, *there])
            assert home is not None
            found[homes[next(domain for domain in self._paths[home] if domain in homes)].index] += 1
        return found

    def read(self, values: Sequence[int]) -> Solution:
        """The placement that values of all variables mean: pods are dealt out to homes, the narrowest first."""
        assert not self.coarse
        left = {key: values[variable.index] for key, variable in self.counts.items() if values[variable.index]}
        found: dict[int, Counter[int]] = defaultdict(Counter)
        asked = sorted(self._asked(values), key=lambda each: -len(self._paths[each[0]]))
        for home, item, pods in asked:
            for place in self._taken(left, self.shape_of[item], home, pods):
                found[item][place] += 1
        return self._decoded(found, values)

    def _asked(self, values: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        """Home, item, and how many of its pods are to be there."""
        for item, owner in enumerate(self.owners):
            bundle, total = self.all[owner], self.bundles.items[item].total
            if not self.homes[owner]:
                yield self.dense.domains.root, item, total
            for home, members in self.homes[owner].items():
                if values[members.index]:
                    yield home, item, total // bundle.many * values[members.index]

    def _taken(self, left: dict[tuple[int, int], int], shape: int, home: int, pods: int) -> Iterator[int]:
        """Take pods of a shape that are left in a domain; yields the place of each."""
        for place, where in enumerate(self.places):
            if home in self._paths[where.leaf]:
                taken = min(pods, left.get((shape, place), 0))
                if taken:
                    left[shape, place] -= taken
                    pods -= taken
                    yield from (place for _ in range(taken))

    def _decoded(self, found: dict[int, Counter[int]], values: Sequence[int]) -> Solution:
        variables = self._named
        named = [0] * variables.size
        for item, by_place in found.items():
            for place, count in by_place.items():
                named[variables.counts[item][place].index] = count
        for place, filled in self.fillings.items():
            for here, there in zip(filled, variables.fillings[place], strict=True):
                named[there.index] = values[here.index]
        return decode(variables, named)

    @cached_property
    def _named(self) -> ExactVariables:
        """Variables of the exact model, for the way from places to nodes."""
        places = [where for where in self.places if isinstance(where, NodeSet)]
        return ExactVariables(self.dense, self.bundles, tuple(places))
