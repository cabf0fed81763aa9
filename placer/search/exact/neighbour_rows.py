"""C12 to C15 and C7 by label of the exact model: rows over the domains of node labels (``models/exact.md``).

C12 leaves the order open: a pod may need one that needs it. A solution without an order is excluded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from ortools.sat.python.cp_model import IntVar

from placer.arrays import Solution
from placer.arrays.affinity_orders import Attraction
from placer.arrays.dense_neighbours import DenseNeighbours, Repulsion, SpreadRow
from placer.arrays.units import Exclusion
from placer.search.exact.count_model import Linear, reaches, solver_form, value_at
from placer.search.exact.variables import ExactVariables

#: Domain to the counts there.
ByDomain = Mapping[int, list[IntVar]]


class NeighbourRows:
    """Adds the rules to a model, and excludes counts without an order.

    ``unsure`` says whether more may have been excluded than the rules ask for.
    """

    def __init__(self, variables: ExactVariables, neighbours: DenseNeighbours) -> None:
        self.variables, self.neighbours, self.model = variables, neighbours, variables.model
        self.dense = variables.dense
        self.unsure = False
        self._uses: dict[tuple[int, tuple[int, ...]], dict[int, IntVar]] = {}
        self._items: dict[int, list[int]] = defaultdict(list)
        for item, each in enumerate(variables.bundles.items):
            self._items[each.classes[0]].append(item)

    def add(self) -> None:
        """Add C12 to C15."""
        for attraction in self.neighbours.attractions:
            self.pod_affinity(attraction)
        for repulsion in self.neighbours.repulsions:
            self.pod_anti_affinity(repulsion)
        for spread in self.neighbours.spreads:
            self.spread(spread)
        for exclusion in self.neighbours.exclusions:
            self.exclusive(exclusion)

    def _counts(self, classes: Iterable[int]) -> list[tuple[int, IntVar]]:
        found = []
        for index in classes:
            for item in self._items.get(index, ()):
                for place, variable in self.variables.counts[item].items():
                    found.append((self.variables.places[place].nodes[0], variable))
        return found

    def _by_domain(self, key: int, classes: Iterable[int]) -> ByDomain:
        found: dict[int, list[IntVar]] = defaultdict(list)
        domain = self.neighbours.domain[key]
        for node, variable in self._counts(classes):
            if domain[node] >= 0:
                found[int(domain[node])].append(variable)
        return found

    @staticmethod
    def _most(variables: Iterable[IntVar]) -> int:
        return sum(list(variable.proto.domain)[-1] for variable in variables)

    def _some(self, counts: list[IntVar]) -> IntVar:
        """Whether any of some counts is above 0."""
        there = Linear().add(1, *counts)
        some = self.variables.integer(1, partial(reaches, there, 1))
        self.variables.at_most(Linear().plus(1, there).add(-self._most(counts), some), 0)
        return some

    def pod_affinity(self, row: Attraction) -> None:
        """C12: owners are where others of those that match are, or where the first is."""
        firsts = self._firsts(row)
        for place, key in enumerate(row.keys):
            owners, others = self._by_domain(key, row.owners), self._by_domain(key, row.others)
            held = {combination[place] for combination in row.held}
            for domain in sorted({*owners, *held} - row.ground[place]):
                support = Linear()
                if others.get(domain):
                    made = self.variables.integer(1, partial(reaches, Linear().add(1, *others[domain]), 1))
                    self.variables.at_most(Linear().add(1, made).add(-1, *others[domain]), 0)
                    support.add(1, made)
                support.add(1, *(first for at, first in firsts.items() if at[place] == domain))
                if owners.get(domain):
                    mine = owners[domain]
                    self.model.add(solver_form(Linear().add(1, *mine).plus(-self._most(mine), support)) <= 0)
                if domain in held:
                    self.model.add(solver_form(support) >= 1)

    def _firsts(self, row: Attraction) -> dict[tuple[int, ...], IntVar]:
        at = self._by_combination(row, row.firsts)
        held = row.held_firsts if row.open else frozenset()
        chosen = _First(self, row, at)
        found = {}
        for where in sorted({*at, *held}):
            first = self.variables.integer(1, partial(chosen.at, where))
            if where not in held:
                self.variables.at_most(Linear().add(1, first).add(-1, *at[where]), 0)
            found[where] = first
        if len(found) > 1:
            self.model.add_at_most_one(found.values())
        return found

    def _by_combination(self, row: Attraction, classes: Iterable[int]) -> dict[tuple[int, ...], list[IntVar]]:
        found: dict[tuple[int, ...], list[IntVar]] = defaultdict(list)
        for node, variable in self._counts(classes):
            found[tuple(int(self.neighbours.domain[key][node]) for key in row.keys)].append(variable)
        return {where: counts for where, counts in found.items() if min(where) >= 0}

    def pod_anti_affinity(self, row: Repulsion) -> None:
        """C13: of those that mean each other one pod in a domain, and none where another keeps it off."""
        both = self._by_domain(row.key, row.mutual)
        owning = self._by_domain(row.key, set(row.owners) - set(row.mutual))
        meant = self._by_domain(row.key, set(row.matched) - set(row.mutual))
        for domain in sorted({*both, *owning, *meant}):
            mutual, owners, others = (each.get(domain, []) for each in (both, owning, meant))
            barred = Linear().add(1, *mutual)
            if owners:
                barred.add(1, self._some(owners))
            if len(barred.variables) > 1 or any(list(each.proto.domain)[-1] > 1 for each in mutual):
                self.variables.at_most(barred, 1)
            if others and barred.variables:
                most = self._most(others)
                self.variables.at_most(Linear().add(1, *others).plus(most, barred), most)

    def spread(self, row: SpreadRow) -> None:
        """C14: where an owner is, there are at most ``skew`` more than in the domain with fewest."""
        if len(row.before) == 1 and not row.floor:
            return
        owners, counted = self._by_domain(row.key, row.owners), self._counted(row)
        fewest = self._fewest(row, counted)
        owned = {*row.matched} <= {*row.owners}
        for domain in sorted({*owners, *row.held} & row.before.keys()):
            excess = Linear(constant=row.before[domain]).add(1, *counted.get(domain, ()))
            if fewest is not None:
                excess.add(-1, fewest)
            if domain in row.held or (owned and row.before[domain] <= row.skew):
                # Without an owner nothing comes to what was there, and that is not too many.
                self.variables.at_most(excess, row.skew)
                continue
            some = self._some(owners[domain])
            if excess.variables:
                self.model.add(solver_form(excess) <= row.skew - excess.constant).only_enforce_if(some)
            elif excess.constant > row.skew:
                self.model.add(some == 0)

    def _counted(self, row: SpreadRow) -> ByDomain:
        found: dict[int, list[IntVar]] = defaultdict(list)
        domain = self.neighbours.domain[row.key]
        for node, variable in self._counts(row.matched):
            if row.counted[node]:
                found[int(domain[node])].append(variable)
        return found

    def _fewest(self, row: SpreadRow, counted: ByDomain) -> IntVar | None:
        every = [Linear(constant=row.before[domain]).add(1, *counts) for domain, counts in counted.items()]
        most = 0 if row.floor else self._most_everywhere(row, counted)
        if not most:
            return None
        fewest = self.variables.integer(most, lambda values: min([most, *(value_at(each, values) for each in every)]))
        for each in every:
            if each.constant < most:
                self.variables.at_most(Linear([fewest], [1]).plus(-1, each), 0)
        return fewest

    def _most_everywhere(self, row: SpreadRow, counted: ByDomain) -> int:
        settled = min((count for domain, count in row.before.items() if domain not in counted), default=None)
        if settled == 0:
            return 0
        tops = [row.before[domain] + self._most(counts) for domain, counts in counted.items()]
        return min([*tops, *([] if settled is None else [settled])], default=0)

    def tier_limit(self) -> None:
        """C7 by label: a unit has pods in one domain at most."""
        for row in self.neighbours.confinements:
            self.model.add_at_most_one(self._use(row.key, row.classes).values())

    def exclusive(self, row: Exclusion) -> None:
        """C15: a domain has pods of one unit at most."""
        by_domain: dict[int, list[IntVar]] = defaultdict(list)
        for unit in row.units:
            for domain, used in self._use(row.key, unit).items():
                by_domain[domain].append(used)
        for units in by_domain.values():
            self.model.add_at_most_one(units)

    def _use(self, key: int, classes: tuple[int, ...]) -> dict[int, IntVar]:
        if (key, classes) not in self._uses:
            there = sorted(self._by_domain(key, classes).items())
            self._uses[key, classes] = {domain: self._some(counts) for domain, counts in there}
        return self._uses[key, classes]

    # Orders

    def exclude(self, solution: Solution, values: Sequence[int]) -> None:
        """Exclude how the classes of all attractions are placed in a solution; ``values`` are those of the model."""
        self.unsure |= self.neighbours.order(list(solution)) is not None
        classes = {index for row in self.neighbours.attractions for index in (*row.owners, *row.matched)}
        counts = (variable for _, variable in self._counts(sorted(classes)))
        self.variables.exclude((Linear([each], [1]), values[each.index]) for each in counts)


class _First:
    def __init__(self, rows: NeighbourRows, row: Attraction, firsts: Mapping[tuple[int, ...], list[IntVar]]) -> None:
        self._row, self._firsts = row, firsts
        self._owners = rows._by_combination(row, row.owners)
        self._others = [rows._by_domain(key, row.others) for key in row.keys]

    def at(self, where: tuple[int, ...], values: list[int]) -> int:
        return int(self.of(values) == where)

    def of(self, values: list[int]) -> tuple[int, ...] | None:
        here = {*_there(self._owners, values), *self._row.held}
        bare = [self._bare(here, place, values) for place in range(len(self._row.keys))]
        if not any(bare):
            return None
        able = sorted({*_there(self._firsts, values), *self._row.held_firsts})
        return next((where for where in able if _covers(where, bare)), None)

    def _bare(self, owners: set[tuple[int, ...]], place: int, values: list[int]) -> set[int]:
        support = set(_there(self._others[place], values))
        return {where[place] for where in owners} - self._row.ground[place] - support


K = TypeVar("K")


def _there(counts: Mapping[K, list[IntVar]], values: list[int]) -> list[K]:
    return [where for where, variables in counts.items() if any(values[each.index] for each in variables)]


def _covers(where: tuple[int, ...], bare: Sequence[set[int]]) -> bool:
    return all(domains <= {domain} for domain, domains in zip(where, bare, strict=True))
