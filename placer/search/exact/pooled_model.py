"""Homes of groups with pods of one shape pooled: the model for the values after ``placed``, all pods being placed.

Pods can be dealt out if every domain has at least as many as the homes in it ask for: domains are nested, so this is
enough. ``span`` also needs the pods per leaf of the few groups that may be in several.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from ortools.sat.python.cp_model import IntVar

from placer.arrays import Dense, Solution
from placer.arrays.solution import IntArray
from placer.search.events import TooLarge
from placer.search.exact.count_model import (
    CountModel,
    Linear,
    PodCount,
    ValuedModel,
    fewest_rooms,
    set_hint,
    solver_form,
)
from placer.search.exact.node_sets import Request, make_node_sets
from placer.search.exact.pooled_bundles import PooledBundles, pool_bundles
from placer.search.exact.variables import Bundle, Bundles, ExactVariables, Reach, make_bundles


@dataclass(frozen=True)
class PodShape:
    """Pods that ask for the same and may go to the same nodes; ``fits`` is int64, most of them per node by itself."""

    request: Request
    mask: int
    daemon: bool
    fits: IntArray
    total: int


class PooledModel(CountModel, ValuedModel):
    """The model of one instance; the search asks it as it asks the exact one. :meth:`knows` must hold.

    Of calls it knows none but those between pods that run: ``networkCost`` is then a constant. ``counts`` has the pods
    per shape and place, ``homes`` per bundle the members by home, ``at``, after :meth:`count_by_unit`, the pods per
    item and unit of ``span``. ``leaf_of`` is index of a variable to its leaf, if it has one. TooLarge where it would
    have more than ``most`` columns.
    """

    #: No model of it tells nodes of an area apart: there are no calls.
    apart = False
    #: No order excludes anything that it allows (C10, C12).
    unsure = False

    def __init__(self, dense: Dense, most: float = math.inf) -> None:
        super().__init__(dense, make_node_sets(dense))
        self.proto = self.model
        self.bundles, self.shapes, self.shape_of = self._pooled(make_bundles(dense))
        self.all: tuple[Bundle, ...] = (*self.bundles.gangs, *self.bundles.parts)
        self.leaves = [int(leaf) for leaf in np.unique(dense.leaf)]
        homes = sum(len(bundle.homes) for bundle in self.all)
        several = sum(len(bundle.items) for bundle in self.all if bundle.reach is Reach.TREE)
        self.columns = len(self.shapes) * len(self.places) + homes + several * len(self.leaves)
        if self.columns > most:
            raise TooLarge(f"{self.columns:,} columns, at most {int(most):,}")
        self.leaf_of: dict[int, int] = {}
        self.at: dict[tuple[int, int], IntVar] = {}
        self.counts = self._counts()
        for place in self.there:
            where = self.places[place]
            self.fillings[place] = [self.at_leaf(where.leaf, len(where.nodes)) for _ in where.fillings]
        self.capacity()
        self.homes = [self._homes(bundle) for bundle in self.all]
        self._nested()
        self._dealt_out()
        self.makers = {
            "locality": lambda _: self._locality(),
            "span": lambda _: self._span(),
            "networkCost": lambda _: Linear(constant=self.dense.constant_network),
            "packedHyperNodes": lambda _: self.packed_hyper_nodes(),
            "packedNodes": lambda _: self.packed_nodes(),
        }

    @staticmethod
    def knows(dense: Dense) -> bool:
        """Whether it is exact for an instance: only room, eligibility and the tree tell pods apart, and leaves are
        below other domains.
        """
        alone = dense.network is None and dense.numa is None and dense.neighbours is None
        flat = not (dense.domains.parent == dense.domains.root).any()
        return alone and not flat and not any(one.host_ports for one in dense.classes)

    def _pooled(self, bundles: Bundles) -> tuple[PooledBundles, list[PodShape], list[int]]:
        numbers: dict[tuple[Request, int, bool], int] = {}
        total = Counter[int]()
        fits: dict[int, IntArray] = {}
        shape_of = []
        for item in bundles.items:
            first = self.dense.classes[item.classes[0]]
            key = (tuple(map(int, first.request)), first.mask, first.daemon)
            shape_of.append(numbers.setdefault(key, len(numbers)))
            total[shape_of[-1]] += item.total
            fits[shape_of[-1]] = item.fits
        pooled = pool_bundles(bundles, shape_of)
        shapes = [PodShape(*key, fits[number], total[number]) for key, number in numbers.items()]
        return pooled, shapes, [shape_of[items[0]] for items in pooled.items_of]

    def at_leaf(self, leaf: int, most: int, value: Callable[[list[int]], int] | None = None) -> IntVar:
        """Make a variable about a leaf, as :meth:`integer` does."""
        variable = self.integer(most, value)
        self.leaf_of[variable.index] = leaf
        return variable

    def _counts(self) -> dict[tuple[int, int], IntVar]:
        found = {}
        for number, shape in enumerate(self.shapes):
            for place, where in enumerate(self.places):
                most = min(shape.total, int(shape.fits[list(where.nodes)].sum()))
                if most:
                    found[number, place] = self.at_leaf(where.leaf, most)
                    self.there[place].append(PodCount(shape.request, most, found[number, place], shape.daemon))
        return found

    # C7

    @cached_property
    def _lowest(self) -> list[int]:
        tree, found = self.dense.domains, dict[tuple[int, int], int]()
        spans = [(int(begin), int(end)) for begin, end in zip(tree.begin, tree.end, strict=True)]
        for domain in np.argsort(tree.tier, kind="stable").tolist():
            found.setdefault(spans[domain], domain)
        return [found[span] for span in spans]

    def _homes(self, bundle: Bundle) -> dict[int, IntVar]:
        if not bundle.homes and self.dense.limit_domains(bundle.scope) is None:
            return {}
        domains = self._able_homes(bundle)
        if not domains:
            self.model.add_bool_or([])  # there is no such placement
            return {}
        homes = {home: self.integer(bundle.many) for home in domains}
        self.leaf_of |= {homes[home].index: home for home in domains if home in self.leaves}
        self.model.add(solver_form(Linear().add(1, *homes.values())) == bundle.many)
        return homes

    def _able_homes(self, bundle: Bundle) -> list[int]:
        bound = self.dense.scopes[bundle.scope].bound
        homes = dict.fromkeys(bundle.homes if bound else (self._lowest[home] for home in bundle.homes))
        return [home for home in homes if self._holds_all(home, bundle)]

    def _holds_all(self, home: int, bundle: Bundle) -> bool:
        shapes = [self.shapes[self.shape_of[item]] for item in bundle.items]
        pods = [self.bundles.items[item].total // bundle.many for item in bundle.items]
        return all(
            sum(many * (shape.request[resource] // size) for shape, many in zip(shapes, pods, strict=True))
            <= room[home]
            for (resource, size), room in self._rooms.items()
        )

    @cached_property
    def _rooms(self) -> dict[tuple[int, int], list[int]]:
        found = {}
        for resource, free in enumerate(self.dense.free.T):
            sizes = {shape.request[resource] for shape in self.shapes} - {0}
            for size in {1, *sizes} if len(sizes) <= 10 else {1}:
                found[resource, size] = [int(room) for room in self.dense.domains.sums(free // size)]
        return found

    def _nested(self) -> None:
        for bundle, homes in zip(self.all, self.homes, strict=True):
            above = self.homes[bundle.gang]
            if bundle.policy < 0 or not homes or not above:
                continue
            inner = self._inside(homes)
            for domain, variables in self._inside(above).items():
                row = Linear().add(bundle.many, *variables).add(-1, *inner.get(domain, ()))
                self.model.add(solver_form(row) <= 0)

    def _inside(self, homes: dict[int, IntVar]) -> dict[int, list[IntVar]]:
        found: dict[int, list[IntVar]] = defaultdict(list)
        for home, variable in homes.items():
            for domain in self.paths[home]:
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
        asked: dict[tuple[int, int], Linear] = defaultdict(Linear)
        held: dict[tuple[int, int], Linear] = defaultdict(Linear)
        for item, owner in enumerate(self.owners):
            bundle, shape = self.all[owner], self.shape_of[item]
            each = self.bundles.items[item].total // bundle.many
            for home, members in self.homes[owner].items():
                for domain in self.paths[home]:
                    asked[shape, domain].add(each, members)
        for (shape, place), count in self.counts.items():
            for domain in self.paths[self.places[place].leaf]:
                held[shape, domain].add(1, count)
        for number, one in enumerate(self.shapes):
            self.model.add(solver_form(held[number, self.dense.domains.root]) == one.total)
        for key, row in asked.items():
            if key[1] != self.dense.domains.root:
                self.model.add(solver_form(Linear().plus(1, row).plus(-1, held[key])) <= 0)

    # Values

    def _locality(self) -> Linear:
        total = Linear(constant=self.dense.constant_locality)
        for bundle, homes in zip(self.all, self.homes, strict=True):
            scope = self.dense.scopes[bundle.scope]
            if scope.wanted:
                pods = sum(self.bundles.items[item].total for item in bundle.items) // bundle.many + len(scope.bound)
                for home, members in homes.items():
                    total.add(pods * int(self.dense.domains.tier[home]), members)
        return total

    def _span(self) -> Linear:
        total = Linear(constant=self.dense.constant_span)
        self.count_by_unit()
        for index, bundle in enumerate(self.all):
            if self.dense.scopes[bundle.scope].wanted and self.homes[index]:
                if bundle.reach is Reach.LEAF:
                    total.add(1, *self.homes[index].values())
                else:
                    self._touch(total, index, bundle)
        return total

    def _touch(self, total: Linear, index: int, bundle: Bundle) -> None:
        touched = self.touch(total, self.dense.scopes[bundle.scope], self._counts_at(bundle))
        homes = self.homes[index]
        for unit, variable in touched.items():
            above = (homes[domain] for domain in self.paths[self.leaf_of_unit(unit)] if domain in homes)
            self.at_most(Linear().add(1, variable).add(-1, *above))
        if not self.dense.scopes[bundle.scope].bound:
            self.cover(touched, homes, lambda units: self.fewest(bundle, units))

    def _counts_at(self, bundle: Bundle) -> Iterator[tuple[int, Sequence[IntVar], int]]:
        owners = dict.fromkeys(self.owners[item] for item in bundle.items)
        for unit, places in self.units.items():
            leaf = self.leaf_of_unit(unit)
            for owner in owners:
                if self.all[owner].reach is Reach.LEAF and leaf in self.homes[owner]:
                    yield unit, [self.homes[owner][leaf]], self.all[owner].many
            for item in bundle.items:
                if (there := self.at.get((item, unit))) is not None:
                    yield unit, [there], self.room_at(self.shape_of[item], places)

    def count_by_unit(self) -> None:
        """Count pods that may be in several leaves in each of them, too; to be called once.

        Then pods can be dealt out if every leaf has as many of each shape as are counted there.
        """
        asked: dict[tuple[int, int], Linear] = defaultdict(Linear)
        for item, owner in enumerate(self.owners):
            if self.all[owner].reach is Reach.TREE and self.homes[owner]:
                for unit, variable in self._at_units(item, owner).items():
                    asked[self.shape_of[item], unit].add(1, variable)
            elif self.homes[owner]:
                self._ask_in_leaves(item, owner, asked)
        for (shape, unit), row in asked.items():
            held = (self.counts[shape, place] for place in self.units[unit] if (shape, place) in self.counts)
            self.model.add(solver_form(Linear().plus(1, row).add(-1, *held)) <= 0)

    def _at_units(self, item: int, owner: int) -> dict[int, IntVar]:
        found, homes, total = {}, self.homes[owner], self.bundles.items[item].total
        for unit, places in self.units.items():
            above = [homes[domain] for domain in self.paths[self.leaf_of_unit(unit)] if domain in homes]
            most = min(total, self.room_at(self.shape_of[item], places))
            if most and above:
                found[unit] = self.at[item, unit] = self.at_leaf(self.leaf_of_unit(unit), most)
                self.model.add(solver_form(Linear().add(1, found[unit]).add(-most, *above)) <= 0)
        self.model.add(solver_form(Linear().add(1, *found.values())) == total)
        return found

    def _ask_in_leaves(self, item: int, owner: int, asked: dict[tuple[int, int], Linear]) -> None:
        each = self.bundles.items[item].total // self.all[owner].many
        for unit in self.units:
            if (leaf := self.leaf_of_unit(unit)) in self.homes[owner]:
                asked[self.shape_of[item], unit].add(each, self.homes[owner][leaf])

    def room_at(self, shape: int, places: Iterable[int]) -> int:
        """How many pods of a shape some places hold by themselves."""
        return sum(int(self.shapes[shape].fits[node]) for place in places for node in self.places[place].nodes)

    def fewest(self, bundle: Bundle, units: Iterable[int]) -> int:
        """Fewest of some units that hold all pods of a member, in pieces of every size: the roomiest first."""
        leaves, most = [self.leaf_of_unit(unit) for unit in units], 0
        for (resource, size), room in self._rooms.items():
            asked = sum(
                self.bundles.items[item].total * (self.shapes[self.shape_of[item]].request[resource] // size)
                for item in bundle.items
            )
            most = max(most, fewest_rooms((room[leaf] for leaf in leaves), asked))
        return most

    # As the exact model

    def fill(self) -> None:
        """From now on everything is placed: it always is."""

    def hint(self, solution: Solution) -> None:
        """Hint every variable with a solution that places everything."""
        set_hint(self.proto, self.encode(solution))

    def admitted(self, solution: Solution) -> Solution:
        """The solution: without NUMA zones and neighbours every order admits it (C10, C12)."""
        return solution

    def exclude(self, solution: Solution) -> bool:  # noqa: ARG002  # the exact model looks at it
        """Nothing is to be excluded: every order is admitted."""
        return False

    # From a solution and back

    def encode(self, solution: Solution) -> list[int]:
        """Value of every variable for a solution that places everything."""
        found = [0] * len(self.model.proto.variables)
        for variable, count in self._counted(solution):
            found[variable.index] += count
        nodes: dict[int, list[int]] = defaultdict(list)
        for index, node in solution:
            nodes[index].append(node)
        for bundle, homes in zip(self.all, self.homes, strict=True):
            for index in self._at_home(bundle, homes, nodes) if homes else ():
                found[index] += 1
        return self.complete(solution, found)

    def _counted(self, solution: Solution) -> Iterator[tuple[IntVar, int]]:
        item_of = {index: item for item, each in enumerate(self.bundles.items) for index in each.classes}
        for (index, node), count in solution.items():
            item, place = item_of[index], self.place_of[node]
            yield self.counts[self.shape_of[item], place], count
            if self.at and (there := self.at.get((item, self.places[place].unit))) is not None:
                yield there, count

    def _at_home(self, bundle: Bundle, homes: dict[int, IntVar], nodes: dict[int, list[int]]) -> Iterator[int]:
        for classes in self.bundles.classes(bundle):
            there = [node for index in classes for node in nodes[index]]
            yield homes[self.home([*self.dense.scopes[bundle.scope].bound, *there], homes)].index

    def read(self, values: Sequence[int]) -> Solution:
        """The placement of values of all variables: pods are dealt out to homes, the narrowest first."""
        left = {key: values[variable.index] for key, variable in self.counts.items() if values[variable.index]}
        found: dict[int, Counter[int]] = defaultdict(Counter)
        for places, item, pods in sorted(self._asked(values), key=lambda each: len(each[0])):
            for place in _taken(left, self.shape_of[item], places, pods):
                found[item][place] += 1
        return self._decoded(found, values)

    def _asked(self, values: Sequence[int]) -> Iterator[tuple[Sequence[int], int, int]]:
        """Places of two triples are nested or disjoint."""
        for item, owner in enumerate(self.owners):
            bundle, total = self.all[owner], self.bundles.items[item].total
            if not self.homes[owner]:
                yield range(len(self.places)), item, total
            elif self.at and bundle.reach is Reach.TREE:
                for unit, places in self.units.items():
                    if (there := self.at.get((item, unit))) is not None and values[there.index]:
                        yield places, item, values[there.index]
            else:
                for home, members in self.homes[owner].items():
                    if values[members.index]:
                        yield self._places_in[home], item, total // bundle.many * values[members.index]

    @cached_property
    def _places_in(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for place, where in enumerate(self.places):
            for domain in self.paths[where.leaf]:
                found[domain].append(place)
        return found

    def _decoded(self, found: dict[int, Counter[int]], values: Sequence[int]) -> Solution:
        variables = self._named
        named = [0] * variables.size
        for item, by_place in self.bundles.shared_out(found).items():
            for place, count in by_place.items():
                named[variables.counts[item][place].index] = count
        for place, filled in self.fillings.items():
            for here, there in zip(filled, variables.fillings[place], strict=True):
                named[there.index] = values[here.index]
        return variables.decode(named)

    @cached_property
    def _named(self) -> ExactVariables:
        return ExactVariables(self.dense, self.bundles.apart, tuple(self.places))


def _taken(left: dict[tuple[int, int], int], shape: int, places: Iterable[int], pods: int) -> Iterator[int]:
    for place in places:
        taken = min(pods, left.get((shape, place), 0))
        if taken:
            left[shape, place] -= taken
            pods -= taken
            yield from (place for _ in range(taken))
