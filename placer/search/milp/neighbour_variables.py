"""Counts by domain of node labels: C12 to C15 and C7 by label of the program.

x[C, d] stands for the sum of x[c, n] over the classes c of a set C and the nodes n of a domain d. Where pods may be the
first of their kind, ``first`` says in which domains, one per key, the first is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from placer.arrays import Counts
from placer.arrays.affinity_orders import Attraction
from placer.arrays.dense_neighbours import DenseNeighbours, Repulsion, SpreadRow
from placer.search.milp.variables import Linear, MilpVariables, Values, Variable, reaches

__all__ = ["NeighbourVariables"]

K = TypeVar("K")

#: Domain to the counts there.
ByDomain = dict[int, list[Variable]]


class NeighbourVariables:
    """Counts by domain, and the rows of the rules about them."""

    def __init__(self, variables: MilpVariables, neighbours: DenseNeighbours) -> None:
        self.variables, self.neighbours, self.program = variables, neighbours, variables.program
        self._made = 0
        self._uses: dict[tuple[int, tuple[int, ...]], dict[int, Variable]] = {}

    def by_domain(self, key: int, classes: Iterable[int]) -> ByDomain:
        """Counts of classes by domain of a key; nodes in none are left out."""
        found: ByDomain = defaultdict(list)
        domain = self.neighbours.domain[key]
        for index in classes:
            for node, variable in self.variables.count[index].items():
                if domain[node] >= 0:
                    found[int(domain[node])].append(variable)
        return found

    def some(self, counts: list[Variable]) -> Variable:
        """Whether any of some counts is above 0: h, 0 or 1, with h <= sum of x <= most h."""
        total = Linear().add(1, *counts)
        made = self._binary(partial(reaches, total, 1))
        self.program.at_most("neighbours", Linear().add(1, made).add(-1, *counts), 0)
        self.program.at_most("neighbours", Linear().add(1, *counts).add(-self.most(counts), made), 0)
        return made

    def use(self, key: int, classes: tuple[int, ...]) -> dict[int, Variable]:
        """Domain to whether a unit has a pod there, 0 or 1: the same variables for C7 by label and C15."""
        if (key, classes) not in self._uses:
            counts = sorted(self.by_domain(key, classes).items())
            self._uses[key, classes] = {domain: self.some(there) for domain, there in counts}
        return self._uses[key, classes]

    def _binary(self, meaning: partial[int]) -> Variable:
        self._made += 1
        return self.program.integer(f"h_{self._made}", 1, meaning)

    @staticmethod
    def most(counts: Iterable[Variable]) -> int:
        """Upper bound of the sum of some counts."""
        return sum(int(each.upBound) for each in counts)

    def firsts(self, row: Attraction) -> dict[tuple[int, ...], Variable]:
        """Domains of each key to whether the first is there, 0 or 1."""
        if not row.open:
            return {}
        where = _Combinations(self, row)
        found = {}
        for at in sorted(where.firsts):
            found[at] = self._binary(partial(where.is_first, at))
            self.program.at_most("pod_affinity", Linear().add(1, found[at]).add(-1, *where.firsts[at]), 0)
        self.program.at_most("pod_affinity", Linear().add(1, *found.values()), 1)
        return found

    def fewest(self, row: SpreadRow, counts: dict[int, Linear]) -> Variable | None:
        """The least count of a domain; None where that is 0 in any case."""
        most = min((each.constant + self.most(each.variables) for each in counts.values()), default=0)
        if row.floor or not most:
            return None
        self._made += 1
        made = self.program.integer(f"m_{self._made}", most, partial(_least, list(counts.values())))
        for each in counts.values():
            self.program.at_most("spread", Linear().add(1, made).plus(-1, each), 0)
        return made

    def counted(self, row: SpreadRow) -> dict[int, Linear]:
        """Domain to its count."""
        found = {domain: Linear(constant=count) for domain, count in row.before.items()}
        domain = self.neighbours.domain[row.key]
        for index in row.matched:
            for node, variable in self.variables.count[index].items():
                if row.counted[node]:
                    found[int(domain[node])].add(1, variable)
        return found

    def exclude(self, solution: Counts) -> None:
        """Exclude how the classes of all attractions are placed in a solution: one count at least is another one."""
        row = Linear()
        for index in sorted({each for row in self.neighbours.attractions for each in (*row.owners, *row.matched)}):
            for node, count in self.variables.count[index].items():
                value, most = solution.get((index, node), 0), int(count.upBound)
                if value < most:
                    more = self._binary(partial(reaches, Linear().add(1, count), value + 1))
                    self.program.at_most("exclude", Linear().add(value + 1, more).add(-1, count), 0)
                    row.add(1, more)
                if value > 0:
                    less = self._binary(partial(reaches, Linear().add(-1, count), 1 - value))
                    self.program.at_most("exclude", Linear().add(most - value + 1, less).add(1, count), most)
                    row.add(1, less)
        self.program.at_least("exclude", row, 1)

    def apart(self, row: Repulsion) -> tuple[ByDomain, ByDomain, ByDomain]:
        """Counts by domain of those that keep each other off, that only keep others off, that are only kept off."""
        mutual = set(row.mutual)
        return (
            self.by_domain(row.key, mutual),
            self.by_domain(row.key, set(row.owners) - mutual),
            self.by_domain(row.key, set(row.matched) - mutual),
        )


class _Combinations:
    def __init__(self, rows: NeighbourVariables, row: Attraction) -> None:
        self.row = row
        self.owners = self._counts(rows, row.owners)
        self.firsts = self._counts(rows, row.firsts)
        self.others = [rows.by_domain(key, row.others) for key in row.keys]

    def _counts(self, rows: NeighbourVariables, classes: Iterable[int]) -> dict[tuple[int, ...], list[Variable]]:
        found: dict[tuple[int, ...], list[Variable]] = defaultdict(list)
        for index in classes:
            for node, variable in rows.variables.count[index].items():
                found[tuple(int(rows.neighbours.domain[key][node]) for key in self.row.keys)].append(variable)
        return {at: counts for at, counts in found.items() if min(at) >= 0}

    def is_first(self, where: tuple[int, ...], values: Values) -> int:
        bare = [self._bare(place, values) for place in range(len(self.row.keys))]
        fitting = [at for at in _there(self.firsts, values) if _covers(at, bare)]
        return int(any(bare) and bool(fitting) and min(fitting) == where)

    def _bare(self, place: int, values: Values) -> set[int]:
        mine = {at[place] for at in _there(self.owners, values)}
        support: list[int] = _there(self.others[place], values)
        return mine - self.row.ground[place] - set(support)


def _there(counts: Mapping[K, list[Variable]], values: Values) -> list[K]:
    return [at for at, variables in counts.items() if any(values[each] for each in variables)]


def _covers(where: tuple[int, ...], bare: Sequence[set[int]]) -> bool:
    return all(domains <= {domain} for domain, domains in zip(where, bare, strict=True))


def _least(counts: list[Linear], values: Values) -> int:
    return min(each.at(values.__getitem__) for each in counts)
