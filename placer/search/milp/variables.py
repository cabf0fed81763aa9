"""Decision variables of the MILP: how many pods of each class go to each node, and variables that follow from that.

Rows can be checked without a float, and their numbers are small: a variable that is off by 1e-6 times a coefficient of
10^9 is off by a thousand. So every row is divided by its common divisor, and one whose coefficients are still large is
written digit by digit. With K = :data:`BASE`, a = K A + r, b = K B + c, 0 <= r, c < K::

    sum a x <= b   is the same as   sum A x + q <= B  and  sum r x <= K q + c   for some integer q >= 0
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import TypeAlias

import numpy as np
import pulp

from placer.arrays import Dense, Solution
from placer.arrays.model import IntArray, ready
from placer.base.linear import LinearExpression
from placer.search.events import TooLarge

__all__ = ["BASE", "LARGEST", "CountBounds", "Linear", "MilpVariables", "PulpProgram", "Values", "Variable", "reaches"]

#: What PuLP calls LpVariable; it brings no types.
Variable: TypeAlias = pulp.LpVariable

#: A linear expression over variables of a program.
Linear: TypeAlias = LinearExpression[pulp.LpVariable]

#: An integer for each variable of a program.
Values: TypeAlias = dict[Variable, int]

#: What a variable is where others have their values.
Meaning: TypeAlias = Callable[[Values], int]

#: Coefficients of a row stay below this: times the 1e-6 that solvers call integral, it is less than a unit.
BASE = 2**16

#: Sums beyond this are refused: doubles hold integers exactly up to 2^53, and sums of them are formed.
LARGEST = 2**50


class PulpProgram:
    """Rows and variables of one integer program; every variable is at least 0."""

    def __init__(self) -> None:
        self.problem = pulp.LpProblem("placer", pulp.LpMinimize)
        self.variables: list[Variable] = []
        self._meanings: list[tuple[Variable, Meaning]] = []
        self._carries = self._rows = 0

    def integer(self, name: str, most: int, meaning: Meaning | None = None) -> Variable:
        """Make an integer variable of 0 .. ``most``; ``meaning`` gives its value where it follows from those before."""
        return self._variable(name, most, pulp.LpInteger, meaning)

    def real(self, name: str, most: int, meaning: Meaning | None = None) -> Variable:
        """Make a variable that is an integer by itself wherever the integer ones are."""
        return self._variable(name, most, pulp.LpContinuous, meaning)

    def _variable(self, name: str, most: int, kind: str, meaning: Meaning | None) -> Variable:
        variable = self.problem.add_variable(name, 0, most, kind)
        self.variables.append(variable)
        if meaning is not None:
            self._meanings.append((variable, meaning))
        return variable

    def at_most(self, rule: str, row: Linear, most: int) -> None:
        """Row <= ``most``, unless that is always so; TooLarge where its sum could be beyond :data:`LARGEST`."""
        terms = {variable: coefficient for variable, coefficient in row.merged().items() if coefficient}
        most -= row.constant
        if max(_most(terms), -_least(terms), abs(most)) > LARGEST:
            raise TooLarge(f"{rule}: a sum of more than 2^{LARGEST.bit_length() - 1}")
        if _most(terms) <= most:
            return
        common = math.gcd(*terms.values()) if terms else 1
        self._split(rule, {variable: coefficient // common for variable, coefficient in terms.items()}, most // common)

    def at_least(self, rule: str, row: Linear, least: int) -> None:
        """Row >= ``least``."""
        self.at_most(rule, Linear().plus(-1, row), -least)

    def equal(self, rule: str, row: Linear, value: int) -> None:
        """Row = ``value``; only for rows with small coefficients."""
        self._add(rule, row.merged(), pulp.LpConstraintEQ, value - row.constant)

    def _split(self, rule: str, terms: dict[Variable, int], most: int) -> None:
        while any(abs(coefficient) >= BASE for coefficient in terms.values()):
            low = {variable: coefficient % BASE for variable, coefficient in terms.items() if coefficient % BASE}
            terms = {variable: coefficient // BASE for variable, coefficient in terms.items() if coefficient // BASE}
            most, rest = divmod(most, BASE)
            highest = -(-max(0, _most(low) - rest) // BASE)
            if highest:
                carry = self.integer(f"q_{self._carries}", highest, partial(_carried, low, rest))
                self._carries += 1
                self._add(f"{rule}_digit", {**low, carry: -BASE}, pulp.LpConstraintLE, rest)
                terms[carry] = 1
        self._add(rule, terms, pulp.LpConstraintLE, most)

    def _add(self, rule: str, terms: dict[Variable, int], sense: int, value: int) -> None:
        self._rows += 1
        expression = pulp.LpAffineExpression(list(terms.items()))
        self.problem += pulp.LpConstraint(expression, sense, f"{rule}_{self._rows}", value)

    def minimise(self, row: Linear, sign: int) -> None:
        """Make ``sign`` times the row the objective, without its constant; TooLarge where it could be beyond
        :data:`LARGEST`.
        """
        merged = row.merged()
        if max(_most(merged), -_least(merged)) > LARGEST:
            raise TooLarge(f"objective: a sum of more than 2^{LARGEST.bit_length() - 1}")
        common = math.gcd(*merged.values()) or 1
        terms = [(variable, sign * coefficient // common) for variable, coefficient in merged.items() if coefficient]
        self.problem.setObjective(pulp.LpAffineExpression(terms))

    def derive(self, values: Values) -> Values:
        """Set the variables that follow from the others, the carries among them."""
        for variable, meaning in self._meanings:
            values[variable] = meaning(values)
        return values

    def broken(self, values: Values) -> str | None:
        """Name of the first row or variable that does not hold, in exact arithmetic; None where all do."""
        for variable in self.variables:
            if not 0 <= values[variable] <= variable.upBound:
                return str(variable.name)
        for row in self.problem.constraints():
            excess = sum(coefficient * values[variable] for variable, coefficient in row.items()) + int(row.constant)
            # sense is -1 for <=, 0 for =, 1 for >=
            if excess != 0 and (row.sense == 0 or (excess > 0) == (row.sense < 0)):
                return str(row.name)
        return None

    def start_from(self, values: Values | None) -> None:
        """Give the solver a point to start from, or none."""
        for variable in self.variables:
            variable.varValue = None if values is None else values[variable]


def _carried(low: Mapping[Variable, int], rest: int, values: Values) -> int:
    """The least q >= 0 with sum ``low`` <= BASE q + ``rest``."""
    excess = sum(digit * values[variable] for variable, digit in low.items()) - rest
    return max(0, -(-excess // BASE))


def reaches(row: Linear, least: int, values: Values) -> int:
    """Whether a row is at least ``least``, as 1 or 0."""
    return int(row.at(values.__getitem__) >= least)


def _most(terms: Mapping[Variable, int]) -> int:
    return sum(coefficient * int(variable.upBound) for variable, coefficient in terms.items() if coefficient > 0)


def _least(terms: Mapping[Variable, int]) -> int:
    return sum(coefficient * int(variable.upBound) for variable, coefficient in terms.items() if coefficient < 0)


class CountBounds:
    """Where pods of a class can be at all: upper bounds of counts, before there is a variable.

    ``fits`` is int64, shape (nodes,), per class: by eligibility (C3) and a limit of their scopes (C7). ``homes`` has
    per scope the domains that may be the smallest with all its pods; None where nothing looks at it.
    """

    def __init__(self, dense: Dense) -> None:
        self.dense = dense
        self._watched = any(name in ("locality", "span") for name, _ in dense.criteria)
        domains = [self._domains(scope) for scope in range(len(dense.scopes))]
        self.fits = self._fits(domains)
        self._rooms = [dense.domains.sums(row) for row in self.fits]
        self.homes = [self._able(scope, found) for scope, found in enumerate(domains)]

    @property
    def size(self) -> int:
        """How many counts and homes there are at the most."""
        scopes = zip(self.dense.scopes, self.homes, strict=True)
        homes = sum(len(found or ()) * (1 + len(scope.classes)) for scope, found in scopes)
        return homes + sum(int(np.count_nonzero(row)) for row in self.fits)

    def room(self, index: int, domain: int) -> int:
        """Most pods of a class in a domain, each node looked at by itself: the big M of all rows about domains."""
        return min(self.dense.classes[index].size, int(self._rooms[index][domain]))

    def _domains(self, number: int) -> list[int] | None:
        scope, tree = self.dense.scopes[number], self.dense.domains
        if scope.limit is None and not (scope.wanted and self._watched):
            return None
        able = np.ones(len(tree.tier), dtype=bool) if scope.limit is None else tree.tier <= scope.limit
        for node in set(scope.bound):
            there = np.arange(len(tree.tier)) == tree.root
            if node >= 0:
                there |= (tree.begin <= node) & (node < tree.end)
            able = able & there
        return [int(domain) for domain in np.flatnonzero(able)]

    def _fits(self, domains: list[list[int] | None]) -> list[IntArray]:
        fits = [self.dense.fits(index) for index in range(len(self.dense.classes))]
        for scope, found in enumerate(domains):
            if found is not None:
                outside = np.ones(len(self.dense.nodes), dtype=bool)
                for domain in found:
                    outside[self.dense.domains.begin[domain] : self.dense.domains.end[domain]] = False
                for index in self.dense.scopes[scope].classes:
                    fits[index] = np.where(outside, 0, fits[index])
        return fits

    def _able(self, scope: int, domains: list[int] | None) -> list[int] | None:
        """Domains where pods run are kept even if no new pod fits: one of them may be the home."""
        asked = self.dense.scopes[scope]
        if domains is None or asked.bound:
            return domains
        return [domain for domain in domains if any(self.room(index, domain) for index in asked.classes)]


class MilpVariables:
    """The decisions of the program: x, a, b, z and w of ``models/milp.md``.

    ``active`` and ``enough`` are None where nothing has to be ready, ``homes`` where nothing looks at a scope.
    """

    def __init__(self, bounds: CountBounds) -> None:
        self.bounds, self.dense, self.program = bounds, bounds.dense, PulpProgram()
        self.count = [self._counts(index, row) for index, row in enumerate(bounds.fits)]
        self.active = [self._active(index) for index in range(len(self.dense.groups))]
        self.enough = [
            self.program.integer(f"b_{index}", 1) if sub.short else None
            for index, sub in enumerate(self.dense.sub_groups)
        ]
        self.homes = [
            None if found is None else {each: self.program.integer(f"z_{scope}_{each}", 1) for each in found}
            for scope, found in enumerate(bounds.homes)
        ]
        self.inside: dict[tuple[int, int, int], Variable] = {}
        self._make_inside()

    # Making them

    def _counts(self, index: int, fits: IntArray) -> dict[int, Variable]:
        return {int(node): self.program.integer(f"x_{index}_{node}", int(fits[node])) for node in np.flatnonzero(fits)}

    def _active(self, index: int) -> Variable | None:
        group = self.dense.groups[index]
        gated = group.short or group.short_by_role or group.short_by_policy
        return self.program.integer(f"a_{index}", 1) if gated else None

    def _make_inside(self) -> None:
        for scope, homes in enumerate(self.homes):
            for index, domain in product(self.dense.scopes[scope].classes, homes or ()):
                most = self.bounds.room(index, domain)
                if most:
                    name = f"w_{scope}_{index}_{domain}"
                    self.inside[scope, index, domain] = self.program.real(name, most)

    # What the rules and the values ask again and again

    def placed(self, index: int) -> list[Variable]:
        """Counts of a class on all nodes."""
        return list(self.count[index].values())

    def within(self, index: int, domain: int) -> list[Variable]:
        """Counts of a class on the nodes of a domain."""
        begin, end = int(self.dense.domains.begin[domain]), int(self.dense.domains.end[domain])
        return [variable for node, variable in self.count[index].items() if begin <= node < end]

    def on_nodes(self) -> dict[int, list[tuple[int, Variable]]]:
        """Node to pairs of a class and its count there; nodes that take nothing absent."""
        found: dict[int, list[tuple[int, Variable]]] = defaultdict(list)
        for index, counts in enumerate(self.count):
            for node, variable in counts.items():
                found[node].append((index, variable))
        return found

    # Between solutions and values

    def read(self, tolerance: float) -> Solution | None:
        """Solution of the counts as the solver left them; None where one is no integer within the tolerance.

        A variable in no row that is left keeps its start, or is 0.
        """
        solution = Solution()
        for index, counts in enumerate(self.count):
            for node, variable in counts.items():
                value = variable.varValue or 0.0
                if abs(value - round(value)) > tolerance:
                    return None
                if round(value):
                    solution[index, node] = round(value)
        return solution

    def values(self, solution: Solution) -> Values | None:
        """Value of every variable made here for a solution; None where it cannot be expressed here."""
        values = dict.fromkeys(self.program.variables, 0)
        totals: dict[int, int] = defaultdict(int)
        for (index, node), count in solution.items():
            if node not in self.count[index]:
                return None
            values[self.count[index][node]] = count
            totals[index] += count
        self._set_gates(values, totals)
        scopes = (number for number, homes in enumerate(self.homes) if homes is not None)
        return values if all(self._set_home(values, solution, totals, number) for number in scopes) else None

    def _set_gates(self, values: Values, totals: Mapping[int, int]) -> None:
        for group, variable in enumerate(self.active):
            if variable is not None:
                values[variable] = int(ready(self.dense, group, totals))
        for sub, variable in zip(self.dense.sub_groups, self.enough, strict=True):
            if variable is not None:
                values[variable] = int(sum(totals[index] for index in sub.classes) >= sub.short)

    def _set_home(self, values: Values, solution: Solution, totals: Mapping[int, int], number: int) -> bool:
        scope, homes = self.dense.scopes[number], self.homes[number] or {}
        nodes = {node for index, node in solution if index in scope.classes}
        home = self.dense.common((*scope.bound, *nodes))
        if home not in homes:  # a scope without new pods needs none
            return not nodes
        values[homes[home]] = 1
        for index in scope.classes:
            if totals[index]:
                values[self.inside[number, index, home]] = totals[index]
        return True
