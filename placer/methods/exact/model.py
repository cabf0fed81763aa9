"""The exact model: variables, rules and values of one instance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from placer.dense import Dense, Solution
from placer.methods.events import TooLarge
from placer.methods.exact.aggregation import make_bundles, make_node_sets
from placer.methods.exact.calls import CallPairs
from placer.methods.exact.constraints import ExactConstraints, Implied
from placer.methods.exact.objective import ExactObjective
from placer.methods.exact.variables import ExactVariables, Linear, count_sizes, decode, encode, solver_form
from placer.methods.exact.zones import Zones, count_choices
from placer.placement import MAXIMISED

__all__ = ["MOST_VARIABLES", "ExactModel", "Must"]

#: A model with more counts and homes than this is not built: it would need gigabytes, and no solver gets anywhere with
#: it.
MOST_VARIABLES = 400_000

#: Seconds to build a model, per count and home: measured 0.1 to 0.25 ms on a busy machine.
BUILD_SECONDS = 0.0002


#: Objectives stay below this, far from the solver's 2^63.
SAFE = 2**60


@dataclass(frozen=True)
class Must:
    """What pods of a whole that are held fast ask of a part of it.

    Parameters
    ----------
    groups, sub_groups
        Those that must stay ready.
    surplus
        With ``networkCost: majority``: workload and area to how many more callees may be too far from pods that run
        there than near enough, where it is not what running callees alone say.
    """

    groups: frozenset[int] = frozenset()
    sub_groups: frozenset[int] = frozenset()
    surplus: Mapping[tuple[int, int], int] = field(default_factory=dict)


#: Nothing is held fast.
NOTHING = Must()


class ExactModel:
    """One CP-SAT model for all values; values reached are kept by rows that are added one after another.

    Parameters
    ----------
    dense
        The instance.
    must
        Of a neighbourhood: what is beyond it.
    seconds
        How long building may take; a model that would take longer counts as too large.
    level
        The highest of ``Dense.levels`` that it can aim at or keep; None: all. Only those from ``networkCost`` on tell
        nodes of an area apart.

    Raises
    ------
    TooLarge
        Nothing was built.
    """

    def __init__(
        self, dense: Dense, must: Must = NOTHING, seconds: float = math.inf, *, level: int | None = None
    ) -> None:
        self.dense, self.apart = dense, self.tells_apart(dense, level)
        bundles, places = make_bundles(dense), make_node_sets(dense, apart=self.apart)
        sizes = count_sizes(dense, bundles, places)
        size = sum(int(np.count_nonzero(row)) for row in sizes)
        size += sum(len(bundle.homes) for bundle in (*bundles.gangs, *bundles.parts))
        size += count_choices(dense, bundles, places, sizes)
        most = min(MOST_VARIABLES, seconds / BUILD_SECONDS)
        if size > most:
            raise TooLarge(f"{size:,} variables, at most {int(most):,}")
        self.variables = ExactVariables(dense, bundles, places)
        self.calls = None if dense.network is None else CallPairs(self.variables, dense.network, tight=self.apart)
        if self.calls is not None and size + self.calls.count > most:
            raise TooLarge(f"{size + self.calls.count:,} variables, at most {int(most):,}")
        self.zones = None if dense.numa is None else Zones(self.variables, dense.numa)
        ExactConstraints(self.variables, self.calls, must.surplus, self.zones).add()
        self.implied = Implied(self.variables)
        self.implied.rooms()
        self.implied.homes()
        self.objective = ExactObjective(self.variables, self.calls)
        self.proto = self.variables.model
        self._require(must)

    @staticmethod
    def tells_apart(dense: Dense, level: int | None) -> bool:
        """Whether a model for a level must tell nodes of an area apart."""
        levels = dense.levels if level is None else dense.levels[: level + 1]
        return dense.network is not None and ("networkCost", None) in levels

    def _require(self, must: Must) -> None:
        for bundle, active in zip(self.variables.all, self.variables.active, strict=True):
            ready = must.groups if bundle.policy < 0 else must.sub_groups
            if active is not None and not ready.isdisjoint(bundle.members):
                self.proto.add(active == bundle.many)

    def aim(self, level: int, aside: Linear | None = None) -> Linear:
        """Make a level the objective, and return its expression.

        With ``aside``, something not negative to be made large, the level still comes first.
        """
        value = self.objective.level(level)
        maximised = self.dense.levels[level][0] in MAXIMISED
        row = Linear([*value.variables], [*value.coefficients], value.constant)
        factor = 1 if aside is None else 1 + self.most(aside)
        if aside is not None and factor * max(1, self.most(row)) < SAFE:
            row = Linear(row.variables, [factor * each for each in row.coefficients])
            for variable, coefficient in zip(aside.variables, aside.coefficients, strict=True):
                row.add(coefficient if maximised else -coefficient, variable)
        self.proto.proto.clear_objective()
        if maximised:
            self.proto.maximize(solver_form(row) + row.constant)
        else:
            self.proto.minimize(solver_form(row) + row.constant)
        return value

    def most(self, row: Linear) -> int:
        """A number that no value of a row with positive coefficients exceeds; the counts of an item share its pods."""
        counts = enumerate(self.variables.counts)
        owner = {variable.index: item for item, by_place in counts for variable in by_place.values()}
        best: dict[int, int] = {}
        others = 0
        for variable, coefficient in zip(row.variables, row.coefficients, strict=True):
            item = owner.get(variable.index)
            if item is None:
                others += coefficient * list(self.proto.proto.variables[variable.index].domain)[-1]
            else:
                best[item] = max(best.get(item, 0), coefficient)
        return others + sum(self.variables.bundles.items[item].total * most for item, most in best.items())

    def keep(self, level: int, reached: int) -> None:
        """From now on a level is at least as good as ``reached``."""
        value = self.objective.level(level)
        if self.dense.levels[level][0] in MAXIMISED:
            self.proto.add(solver_form(value) >= reached - value.constant)
        else:
            self.proto.add(solver_form(value) <= reached - value.constant)

    def fill(self) -> None:
        """From now on everything is placed; to be said only where what is kept implies it."""
        self.implied.full()

    def hint(self, solution: Solution) -> list[int]:
        """Hint every variable with a solution that keeps all rules; return the values."""
        self.admitted(solution)  # from now on the order that it gives is known, where the hint deals pods out to zones
        values = encode(self.variables, solution)
        self.proto.proto.clear_solution_hint()
        hint = self.proto.proto.solution_hint
        hint.vars.extend(range(len(values)))
        hint.values.extend(values)
        return values

    def admitted(self, solution: Solution) -> Solution | None:
        """A solution of the model in an order in which kubelets admit it (C10); None where there is none."""
        return solution if self.dense.numa is None else self.dense.numa.ordered(solution)

    def exclude(self, solution: Solution) -> bool:
        """Exclude what no order admits in a solution (C10); False: there is nothing to exclude, the solution stands."""
        return self.zones is not None and self.zones.exclude(solution)

    @property
    def unsure(self) -> bool:
        """Whether more may have been excluded than C10 asks for, so that bounds do not count."""
        return self.zones is not None and self.zones.unsure

    def read(self, values: Sequence[int]) -> Solution:
        """Solution that values of the variables mean."""
        found = decode(self.variables, values)
        return found if self.zones is None else self.zones.arranged(found, values)
