"""The integer program of a step: a few leaves exactly, and everything else as one pool (``models/decomposed.md``).

Nodes of the *pool* that may be filled alike are counted together, and the pods of items that are not fixed yet count as
loose. So a step sees whether all pods have room while it fixes the items of a few leaves.

Source of the method, *relax and fix*: Pochet and Wolsey, "Production Planning by Mixed Integer Programming" (2006),
section 3.6; there the variables that are not fixed yet are continuous, here they are counts of a smaller program.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from ortools.sat.python import cp_model
from ortools.sat.python.cp_model import IntVar, LinearExpr

from placer.base.grouping import grouped
from placer.search.decomposed.relax_and_fix.packing_problem import (
    ANYWHERE,
    Content,
    Filling,
    HomedPods,
    ItemKind,
    PackedGang,
)
from placer.search.decomposed.relax_and_fix.packing_state import PackingState
from placer.search.exact.count_model import Linear, limited_solver, solver_form

#: Shape to a sum of its pods.
Rows: TypeAlias = defaultdict[int, Linear]


def _add(rows: Rows, content: Iterable[tuple[int, int]], column: IntVar | None) -> None:
    for shape, count in content:
        if column is None:
            rows[shape].constant += count
        else:
            rows[shape].add(count, column)


class PackingProgram:
    """One program: of some leaves, or of none with everything in the pool.

    ``optional``: gangs that are not required may be left out. ``blamed``: how often items of a content were left
    before.
    """

    def __init__(
        self,
        state: PackingState,
        gangs: Sequence[PackedGang],
        leaves: Sequence[int] = (),
        *,
        optional: bool = False,
        blamed: Mapping[Content, int] | None = None,
    ) -> None:
        self._blamed = blamed or {}
        self.state, self.gangs, self.leaves = state, gangs, tuple(leaves)
        self.model = cp_model.CpModel()
        self._problem, self._within = state.problem, state.problem.dense.domains.within
        self._left = self._items_left()
        self._homes = {part.scope: self._open_homes(part) for gang in gangs for part in gang.homed}
        self._home = self._home_choices(optional)
        self._region = self._regions()
        self._filled: dict[tuple[int, int], list[tuple[Filling, IntVar]]] = {}
        self._in_region: dict[int, Rows] = defaultdict(lambda: defaultdict(Linear))
        self._in_leaf: dict[int, Rows] = {leaf: defaultdict(Linear) for leaf in leaves}
        self.items: dict[tuple[int, ItemKind], IntVar] = {}
        self._pool()
        for leaf in leaves:
            self._leaf(leaf)
        self._no_more_than_left()
        self._optional = optional
        self._packed = self._choices(optional)
        self._rows()

    def _items_left(self) -> Counter[ItemKind]:
        fixed = Counter(item.kind for items in self.state.fixed.values() for item in items)
        mine = Counter(kind for gang in self.gangs for kind, _ in gang.items)
        return mine - fixed

    def _open_homes(self, part: HomedPods) -> tuple[int, ...]:
        home = self.state.home.get(part.scope)
        return part.homes if home is None else (home,)

    def _home_choices(self, optional: bool) -> dict[tuple[int, int], IntVar]:
        found = {}
        for scope, homes in self._homes.items():
            if len(homes) > 1 or (optional and not self._problem.homed[scope][1].required):
                found.update({(scope, home): self.model.new_bool_var("") for home in homes})
        return found

    def _regions(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        tree = self._problem.dense.domains
        wanted = {home for homes in self._homes.values() for home in homes}
        region = np.full(len(self._problem.dense.nodes), tree.root, dtype=np.int64)
        for domain in sorted(wanted, key=lambda domain: int(tree.begin[domain] - tree.end[domain])):
            region[tree.begin[domain] : tree.end[domain]] = domain
        return region

    def _pool(self) -> None:
        apart = {node for leaf in self.leaves for node in self._problem.leaves[leaf]}
        nodes = grouped((node for node in self.state.kind_of if node not in apart), self._region.tolist().__getitem__)
        for region in sorted(nodes):
            self._fill(region, nodes[region], self._in_region[region])

    def _fill(self, where: int, nodes: Iterable[int], rows: Rows) -> None:
        """``where`` is a region, or a leaf by its negative number."""
        for kind, many in sorted(self.state.count(nodes).items()):
            fillings = self.state.fillings[kind]
            if fillings == ((),):
                continue
            columns = [(filling, self.model.new_int_var(0, many, "")) for filling in fillings]
            self.model.add(LinearExpr.sum([column for _, column in columns]) == many)
            for filling, column in columns:
                _add(rows, filling, column)
            self._filled[where, kind] = columns

    def _leaf(self, leaf: int) -> None:
        nodes = self._problem.leaves[leaf]
        room: Rows = defaultdict(Linear)
        self._fill(~leaf, nodes, room)
        most = Counter[int]()
        for number, many in self.state.count(nodes).items():
            for shape, count in self._most(number).items():
                most[shape] += many * count
        held = self._items(leaf, most)
        for shape, count in most.items():
            spare = self.model.new_int_var(0, count, "")
            self._in_leaf[leaf][shape].add(1, spare)
            self._at_most(held[shape], room[shape].add(-1, spare))

    def _items(self, leaf: int, most: Mapping[int, int]) -> Rows:
        held: Rows = defaultdict(Linear)
        for kind, left in self._left.items():
            many = min([left, *(most.get(shape, 0) // count for shape, count in kind.content)])
            if many and self._may_be(kind, leaf):
                self.items[leaf, kind] = column = self.model.new_int_var(0, many, "")
                _add(held, kind.content, column)
                self._at_home(kind.scope, leaf, column, many)
        return held

    def _no_more_than_left(self) -> None:
        for kind, mine in grouped(self.items, lambda each: each[1]).items():
            self.model.add(LinearExpr.sum([self.items[each] for each in mine]) <= self._left[kind])

    def _most(self, kind: int) -> Counter[int]:
        most = Counter[int]()
        for filling in self.state.fillings[kind]:
            most |= Counter(dict(filling))
        return most

    def _may_be(self, kind: ItemKind, leaf: int) -> bool:
        return kind.scope == ANYWHERE or any(self._within(leaf, home) for home in self._homes[kind.scope])

    def _at_home(self, scope: int, leaf: int, column: IntVar, many: int) -> None:
        for home in self._homes.get(scope, ()):
            if (scope, home) in self._home and self._within(leaf, home):
                self.model.add(column <= many * self._home[scope, home])

    def _choices(self, optional: bool) -> dict[int, tuple[IntVar, tuple[PackedGang, ...]]]:
        found: dict[int, tuple[IntVar, tuple[PackedGang, ...]]] = {}
        bundles: dict[object, list[PackedGang]] = defaultdict(list)
        groups = self._problem.dense.groups
        for gang in self.gangs:
            if not optional or gang.required:
                for homes in self._home_columns(gang):
                    self.model.add_exactly_one(homes)
                continue
            alone = gang.group if gang.homed else ANYWHERE
            key = alone, tuple(sorted(gang.demand.items())), groups[gang.group].need_weight, self._in_queues(gang)
            bundles[key].append(gang)
        for number, bundle in enumerate(bundles.values()):
            packed = self.model.new_int_var(0, len(bundle), "")
            found[number] = packed, tuple(bundle)
            for homes in self._home_columns(bundle[0]):
                self.model.add(LinearExpr.sum(homes) == packed)
        if optional:
            self._queue_rows(found)
        return found

    def _home_columns(self, gang: PackedGang) -> list[list[IntVar]]:
        found = ([self._home.get((part.scope, home)) for home in part.homes] for part in gang.homed)
        columns = ([column for column in each if column is not None] for each in found)
        return [each for each in columns if each]

    def _in_queues(self, gang: PackedGang) -> tuple[int, ...]:
        dense = self._problem.dense
        return tuple(dense.queued((index, dense.classes[index].size) for index in dense.groups[gang.group].classes))

    def _queue_rows(self, found: Mapping[int, tuple[IntVar, tuple[PackedGang, ...]]]) -> None:
        dense = self._problem.dense
        held = dense.queued((index, count) for (index, _), count in self._problem.held.items())
        required = [self._in_queues(gang) for gang in self.gangs if gang.required]
        for number, row in enumerate(dense.queue_rows):
            taken = held[number] + sum(each[number] for each in required)
            columns = [packed for packed, _ in found.values()]
            amounts = [self._in_queues(bundle[0])[number] for _, bundle in found.values()]
            if any(amounts):
                self.model.add(LinearExpr.weighted_sum(columns, amounts) <= row.room - taken)

    def _rows(self) -> None:
        demand = self._demand()
        terms = [*self._in_region.values(), *self._in_leaf.values(), self._held()]
        for shape in range(len(self._problem.shapes)):
            self._at_most(demand[shape], *(each[shape] for each in terms))
        for domain in sorted({home for homes in self._homes.values() for home in homes}):
            self._home_rows(domain)

    def _at_most(self, row: Linear, *room: Linear) -> None:
        self.model.add(LinearExpr.sum([solver_form(each) for each in room]) >= solver_form(row) + row.constant)

    def _demand(self) -> Rows:
        demand: Rows = defaultdict(Linear)
        for packed, bundle in self._packed.values():
            _add(demand, bundle[0].demand.items(), packed)
        for gang in self._certain():
            _add(demand, (gang.demand if self._optional else gang.loose).items(), None)
        for kind, left in () if self._optional else self._left.items():
            _add(demand, ((shape, left * count) for shape, count in kind.content), None)
        return demand

    def _certain(self) -> list[PackedGang]:
        optional = {gang.group for _, bundle in self._packed.values() for gang in bundle}
        return [gang for gang in self.gangs if gang.group not in optional]

    def _held(self, domain: int | None = None) -> Rows:
        held: Rows = defaultdict(Linear)
        for (leaf, kind), column in self.items.items():
            if domain is None or (kind.scope != ANYWHERE and self._within(leaf, domain)):
                _add(held, kind.content, column)
        return held

    def _home_rows(self, domain: int) -> None:
        demand: Rows = defaultdict(Linear)
        beside: Rows = defaultdict(Linear)
        most = Counter[int]()
        for scope, home in self._homes_within(domain):
            part = self._problem.homed[scope][0]
            most.update(part.loose)
            _add(demand, self._asked(part).items(), self._home.get((scope, home)))
            _add(beside, part.loose.items(), self._home.get((scope, home)))
        room = [terms for region, terms in self._in_region.items() if self._within(region, domain)]
        leaves = [terms for leaf, terms in self._in_leaf.items() if self._within(leaf, domain)]
        if leaves:
            room += [self._held(domain), self._here(leaves, beside, most)]
        for shape in range(len(self._problem.shapes)):
            self._at_most(demand[shape], *(each[shape] for each in room))

    def _homes_within(self, domain: int) -> Iterator[tuple[int, int]]:
        for scope, homes in self._homes.items():
            for home in homes:
                if self._within(home, domain):
                    yield scope, home

    def _here(self, leaves: Sequence[Rows], beside: Rows, most: Mapping[int, int]) -> Rows:
        """Pods in leaves of the step that need their domain and are not fixed in it: loose ones, not items left."""
        found: Rows = defaultdict(Linear)
        for shape, count in most.items():
            here = self.model.new_int_var(0, count, "")
            self.model.add(here <= LinearExpr.sum([solver_form(each[shape]) for each in leaves]))
            self.model.add(here <= solver_form(beside[shape]) + beside[shape].constant)
            found[shape].add(1, here)
        return found

    def _asked(self, part: HomedPods) -> Counter[int]:
        asked = Counter(part.loose)
        for kind in dict.fromkeys(kind for kind, _ in part.items):
            asked.update({shape: self._left[kind] * count for shape, count in kind.content})
        return asked

    def solve(
        self, seconds: float, work: float, seed: int, hint: Mapping[int, Counter[ItemKind]] | None = None
    ) -> bool:
        """Look for the most items in the leaves of the step, or the weightiest gangs; say whether there is a solution.

        ``hint`` is leaf to its former items.
        """
        for (leaf, kind), column in self.items.items():
            if hint is not None:
                self.model.add_hint(column, min(hint[leaf][kind], self._left[kind]))
        if self._packed:
            groups = self._problem.dense.groups
            weights = [groups[bundle[0].group].need_weight for _, bundle in self._packed.values()]
            columns = [packed for packed, _ in self._packed.values()]
        else:
            columns = list(self.items.values())
            weights = [self._worth(kind) for _, kind in self.items]
        if columns:
            self.model.maximize(LinearExpr.weighted_sum(columns, weights))
        self._solver = limited_solver(
            work=work,
            seconds=seconds,
            random_seed=seed,
            linearization_level=2,
            # Thousands of equal small programs: looking for more than their rows costs more than it brings (measured).
            cp_model_probing_level=0,
            symmetry_level=0,
            relative_gap_limit=0.0 if self._packed else 0.1 if hint is None else 0.01,
        )
        return self._solver.solve(self.model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)

    def _worth(self, kind: ItemKind) -> int:
        factor = 1
        if kind.scope != ANYWHERE:
            factor = 5 if self._problem.homed[kind.scope][1].required else 3
        return factor * (1 + self._blamed.get(kind.content, 0)) * self._problem.worth_of(kind)

    @property
    def spent(self) -> float:
        """Deterministic time of the solver."""
        return float(self._solver.response_proto.deterministic_time)

    def holds(self, kind: ItemKind) -> bool:
        """Whether a leaf of the step holds an item of a kind."""
        return any(self._solver.value(column) for (_, each), column in self.items.items() if each == kind)

    def chosen(self) -> list[PackedGang]:
        """Gangs that are packed, older ones of a bundle first."""
        found = self._certain()
        for packed, bundle in self._packed.values():
            found += bundle[: self._solver.value(packed)]
        return sorted(found, key=lambda gang: gang.group)

    def homes(self) -> dict[int, int]:
        """Scope to its home, of all parts that have one."""
        found = {scope: homes[0] for scope, homes in self._homes.items() if (scope, homes[0]) not in self._home}
        found.update({scope: home for (scope, home), column in self._home.items() if self._solver.value(column)})
        return found

    def fix(self) -> None:
        """Fix the items in the leaves of the step in the state."""
        for leaf in self.leaves:
            many = {kind: self._solver.value(column) for (at, kind), column in self.items.items() if at == leaf}
            items = [kind for kind, count in many.items() for _ in range(count)]
            self.state.fix(leaf, items, list(self._nodes_filled(~leaf, self._problem.leaves[leaf])))

    def filled(self) -> Iterator[tuple[int, Filling]]:
        """Filling of each node of the pool, in tree order within a region and kind."""
        nodes = grouped(self.state.kind_of, self._region.tolist().__getitem__)
        for region in sorted(nodes):
            yield from self._nodes_filled(region, nodes[region])

    def _nodes_filled(self, where: int, nodes: Iterable[int]) -> Iterator[tuple[int, Filling]]:
        for kind, waiting in grouped(sorted(nodes, reverse=True), self.state.kind_of.__getitem__).items():
            for filling, column in self._filled.get((where, kind), ()):
                for _ in range(self._solver.value(column)):
                    yield waiting.pop(), filling
