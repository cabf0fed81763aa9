"""What every model that counts pods at places has: rows, room and ports (C2), the tree, and values as a search asks."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeAlias

from ortools.sat.python.cp_model import CpModel, CpSolver, IntVar, LinearExpr

from placer.arrays import Dense, DenseScope, Solution
from placer.base.linear import LinearExpression
from placer.problem import HostPort
from placer.problem.placement import MAXIMISED
from placer.search.exact.node_sets import NodeSet, Request, first_fillings, newly_filled

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


@dataclass(frozen=True)
class PodCount:
    """Number of equal pods at a place, at most ``most``, which is at least 1."""

    request: Request
    most: int
    variable: IntVar
    daemon: bool
    host_ports: tuple[HostPort, ...] = ()


class CountModel:
    """A CP-SAT model of pods at places.

    ``there`` has the counts per place, ``fillings`` the nodes per listed way to fill one. ``derived`` variables have
    values by those before them.
    """

    def __init__(self, dense: Dense, places: Sequence[NodeSet]) -> None:
        self.dense, self.places, self.model = dense, places, CpModel()
        self.derived: list[tuple[IntVar, Callable[[list[int]], int]]] = []
        self.place_of = {node: place for place, where in enumerate(places) for node in where.nodes}
        self.there: dict[int, list[PodCount]] = defaultdict(list)
        self.fillings: dict[int, list[IntVar]] = {}
        self._opened: dict[int, IntVar] = {}
        self._filled: dict[int, IntVar] = {}

    def integer(self, most: int, value: Callable[[list[int]], int] | None = None) -> IntVar:
        """Make a variable of 0 .. ``most``, at least 1; ``value`` is its value where those before decide it."""
        variable = self.model.new_bool_var("") if most == 1 else self.model.new_int_var(0, most, "")
        if value is not None:
            self.derived.append((variable, value))
        return variable

    def at_most(self, row: Linear, most: int = 0) -> None:
        """Row <= ``most``."""
        if row.variables:
            self.model.add(solver_form(row) <= most - row.constant)

    @property
    def size(self) -> int:
        """Number of variables made so far."""
        return len(self.model.proto.variables)

    # The tree

    def home(self, nodes: Iterable[int], homes: Mapping[int, IntVar]) -> int:
        """The smallest of some homes that holds all nodes."""
        common = self.dense.common(nodes)
        assert common is not None
        return next(domain for domain in self.paths[common] if domain in homes)

    @cached_property
    def paths(self) -> list[tuple[int, ...]]:
        """Per domain itself and all that hold it, the virtual root last."""
        parent = self.dense.domains.parent.tolist()

        def path(domain: int) -> tuple[int, ...]:
            return (domain, *(path(parent[domain]) if parent[domain] >= 0 else ()))

        return [path(domain) for domain in range(len(parent))]

    @cached_property
    def units(self) -> dict[int, list[int]]:
        """Unit of ``span`` to its places."""
        found: dict[int, list[int]] = defaultdict(list)
        for place, where in enumerate(self.places):
            found[where.unit].append(place)
        return found

    def leaf_of_unit(self, unit: int) -> int:
        """Leaf domain of a unit."""
        return self.places[self.units[unit][0]].leaf

    def by_inner(self, units: Iterable[int]) -> dict[int, list[int]]:
        """Domain to those of some units that are in it."""
        found: dict[int, list[int]] = defaultdict(list)
        for unit in units:
            for domain in self.paths[self.leaf_of_unit(unit)]:
                found[domain].append(unit)
        return found

    # O2

    def at_leaf(self, leaf: int, most: int, value: Callable[[list[int]], int] | None = None) -> IntVar:  # noqa: ARG002  # a model of leaves notes it
        """Make a variable about a leaf, as :meth:`integer` does."""
        return self.integer(most, value)

    def touch(
        self, total: Linear, scope: DenseScope, there: Iterable[tuple[int, Sequence[IntVar], int]]
    ) -> dict[int, IntVar]:
        """Add the leaves that a scope touches to a total; return each unit of ``span`` to whether it does.

        ``there``: unit, counts of new pods in it, and the most that they sum to.
        """
        before = {int(self.dense.span_leaf[node]) for node in scope.bound if node >= 0}
        total.constant += len(before) + scope.lost_leaves
        touched: dict[int, IntVar] = {}
        pods: dict[int, Linear] = defaultdict(Linear)
        for unit, counts, most in there:
            if unit not in before:
                if unit not in touched:
                    touched[unit] = self.at_leaf(self.leaf_of_unit(unit), 1, partial(reaches, pods[unit], 1))
                pods[unit].add(1, *counts)
                self.at_most(Linear().add(1, *counts).add(-most, touched[unit]))
        total.add(1, *touched.values())
        return touched

    def cover(
        self, touched: Mapping[int, IntVar], homes: Mapping[int, IntVar], fewest: Callable[[list[int]], int]
    ) -> None:
        """A home is touched in as many units as its pods need: the ``fewest`` of those in it."""
        inside = self.by_inner(touched)
        for domain, chosen in homes.items():
            row = Linear().add(1, *(touched[unit] for unit in inside[domain])).add(-fewest(inside[domain]), chosen)
            self.model.add(solver_form(row) >= 0)

    # C2

    def capacity(self) -> None:
        """C2: room per resource, by size where nodes are counted, by filling where fillings are listed; host ports."""
        for place, counts in self.there.items():
            where = self.places[place]
            if where.fillings:
                self._room_by_filling(place, where)
            elif where.resource is not None:
                free = self.dense.free[list(where.nodes), where.resource]
                for size in where.sizes:
                    self._in_pieces(counts, where.resource, size, int((free // size).sum()))
            else:
                for resource, room in enumerate(self.dense.free[where.nodes[0]].tolist()):
                    self._in_pieces(counts, resource, 1, room)
                self._ports(counts)

    def _in_pieces(self, counts: Iterable[PodCount], resource: int, size: int, room: int) -> None:
        row = Linear()
        for one in counts:
            row.add(one.request[resource] // size, one.variable)
        self.at_most(row, room)

    def _room_by_filling(self, place: int, where: NodeSet) -> None:
        filled = self.fillings[place]
        self.at_most(Linear().add(1, *filled), len(where.nodes))
        for position, request in enumerate(where.requests):
            row = Linear().add(1, *(one.variable for one in self.there[place] if one.request == request))
            for filling, variable in zip(where.fillings, filled, strict=True):
                row.add(-filling[position], variable)
            self.at_most(row)

    def _ports(self, counts: Iterable[PodCount]) -> None:
        holders: dict[tuple[str, int], dict[str, list[IntVar]]] = defaultdict(lambda: defaultdict(list))
        for one in counts:
            for port in set(one.host_ports):
                holders[port.protocol, port.port][port.ip].append(one.variable)
        for by_address in holders.values():
            everywhere = by_address.pop("0.0.0.0", [])
            for variables in by_address.values() or [[]]:
                clique = [*everywhere, *variables]
                if len(clique) > 1:
                    self.at_most(Linear().add(1, *clique), 1)

    # O4: its variables are made when a value is asked for

    def packed_hyper_nodes(self) -> Linear:
        """O4: sum over empty domains of o[d]: nodes are filled only in opened leaves, o[parent] >= o[d]."""
        tree = self.dense.domains
        for place, filled in self._filled_places().items():
            where = self.places[place]
            if not tree.used[where.leaf] and where.leaf != tree.root:
                self.at_most(Linear().add(1, filled).add(-len(where.nodes), self._open(where.leaf)))
        return Linear().add(1, *self._opened.values())

    def packed_nodes(self) -> Linear:
        """O4: sum over empty places of u[p], how many of its nodes are filled; DaemonSets leave one empty."""
        return Linear().add(1, *self._filled_places().values())

    def _open(self, domain: int) -> IntVar:
        tree = self.dense.domains
        if domain not in self._opened:
            opened = self._opened[domain] = self.model.new_bool_var("")
            parent = int(tree.parent[domain])
            if parent != tree.root and not tree.used[parent]:
                self.at_most(Linear().add(1, opened).add(-1, self._open(parent)))
        return self._opened[domain]

    def _filled_places(self) -> dict[int, IntVar]:
        """A single node has room only if it is filled. On a counted place, per size s: sum over i with size(i) >= s of
        size(i) y[i, p] <= u[p] times the room of one node in pieces of s (its nodes hold equally many of each size).
        """
        if not self._filled:
            for place, counts in self.there.items():
                waiting = [one for one in counts if not one.daemon]
                if waiting and not self.places[place].used:
                    self._filled[place] = self.model.new_int_var(0, len(self.places[place].nodes), "")
                    self._fill(place, waiting)
        return self._filled

    def _fill(self, place: int, counts: Sequence[PodCount]) -> None:
        where, filled = self.places[place], self._filled[place]
        free = self.dense.free[where.nodes[0]].tolist()
        if where.fillings:
            self.at_most(Linear().add(-1, filled).add(1, *self.fillings[place]))
        elif where.resource is None:
            for resource, amount in enumerate(free):
                self._fill_pieces(filled, amount, counts, resource, 1)
            for one in counts:
                self.at_most(Linear().add(-one.most, filled).add(1, one.variable))
        for size in where.sizes:
            resource = where.resource or 0
            self._fill_pieces(filled, free[resource] // size, counts, resource, size)

    def _fill_pieces(self, filled: IntVar, room: int, counts: Iterable[PodCount], resource: int, size: int) -> None:
        row = Linear().add(-room, filled)
        for one in counts:
            row.add(one.request[resource] // size, one.variable)
        self.model.add(solver_form(row) <= 0)

    # From a solution

    def complete(self, solution: Solution, found: list[int]) -> list[int]:
        """Set the values, by index, of fillings and opened places, and of variables that follow from others."""
        for (place, number), nodes in first_fillings(self.dense, self.places, self.place_of, solution).items():
            found[self.fillings[place][number].index] = nodes
        for place, filled in newly_filled(self.dense, self.place_of, solution).items():
            if place in self._filled:
                found[self._filled[place].index] = len(filled)
                for domain in self._opened.keys() & self.paths[self.places[place].leaf]:
                    found[self._opened[domain].index] = 1
        for variable, value in self.derived:
            found[variable.index] = value(found)
        return found


class ValuedModel:
    """A model, ``proto``, with the values of ``Dense.criteria`` as expressions.

    ``makers``: name of a value to what makes its expression for a priority. Other values are always kept.
    """

    dense: Dense
    proto: CpModel
    makers: dict[str, Callable[[int | None], Linear]]

    @cached_property
    def _made(self) -> dict[int, Linear]:
        return {}

    def criterion(self, index: int) -> Linear:
        """Return the expression of ``Dense.criteria[index]``."""
        if index not in self._made:
            name, priority = self.dense.criteria[index]
            self._made[index] = self.makers[name](priority)
        return self._made[index]

    def maximised(self, criterion: int) -> bool:
        """Whether more of a criterion is better."""
        return self.dense.criteria[criterion][0] in MAXIMISED

    def aim(self, criterion: int, row: Linear | None = None) -> Linear:
        """Make a criterion, or ``row`` in its place, the objective; return the expression of the criterion."""
        value = self.criterion(criterion)
        row = value if row is None else row
        self.proto.proto.clear_objective()
        (self.proto.maximize if self.maximised(criterion) else self.proto.minimize)(solver_form(row) + row.constant)
        return value

    def keep(self, criterion: int, reached: int) -> None:
        """From now on a criterion is at least as good as ``reached``."""
        if self.dense.criteria[criterion][0] in self.makers:
            self._bound(criterion, reached, above=self.maximised(criterion))

    def limit(self, criterion: int, bound: int) -> None:
        """From now on a criterion is not better than a bound that is proved."""
        self._bound(criterion, bound, above=not self.maximised(criterion))

    def _bound(self, criterion: int, bound: int, *, above: bool) -> None:
        value = self.criterion(criterion)
        row = solver_form(value)
        self.proto.add(row >= bound - value.constant if above else row <= bound - value.constant)
