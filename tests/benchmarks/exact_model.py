"""Size and strength of the exact model, as in models/exact.md.

    python -m tests.benchmarks.exact_model INSTANCE...

Per instance: pods and nodes, what a variable per pod and node would come to, variables and rows of the model when all
values have been asked for, and per value the bound of its LP relaxation beside the best value found. Each value's LP
keeps what the answer has on the values before it, as the search does; where the answer is not proved, its values are
put in brackets.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ortools.linear_solver import pywraplp

import placer
from placer.arrays import Dense
from placer.arrays.dense_builder import make_dense
from placer.problem.placement import MAXIMISED
from placer.problem.result import Result
from placer.search.exact.method import ExactModel, safe_bound

#: Rows of CP-SAT that are open at one end have an end beyond this.
NO_END = 2**62


@dataclass(frozen=True)
class Size:
    """How large a model is."""

    variables: int
    booleans: int
    rows: int
    terms: int


def size_of(model: ExactModel) -> Size:
    """Count what has been made so far; the objective apart."""
    proto = model.proto.proto
    booleans = sum(list(variable.domain) == [0, 1] for variable in proto.variables)
    terms = sum(len(each.linear.vars) if each.has_linear() else 2 for each in proto.constraints)
    return Size(len(proto.variables), booleans, len(proto.constraints), terms)


def relaxation(model: ExactModel) -> float:
    """Optimum of the linear relaxation of the model for its objective; every constraint of it is linear or an
    implication.
    """
    solver = pywraplp.Solver.CreateSolver("GLOP")
    proto = model.proto.proto
    columns = [solver.NumVar(*_ends(each.domain), "") for each in proto.variables]
    for each in proto.constraints:
        if each.has_linear():
            row = solver.Constraint(*_ends(each.linear.domain))
            for index, coefficient in zip(each.linear.vars, each.linear.coeffs, strict=True):
                row.SetCoefficient(columns[index], row.GetCoefficient(columns[index]) + coefficient)
        else:
            (condition,), (then,) = each.enforcement_literal, each.bool_and.literals
            solver.Add(columns[condition] <= columns[then])
    aim = proto.objective
    goal = sum(c * columns[index] for index, c in zip(aim.vars, aim.coeffs, strict=True)) + aim.offset
    solver.Minimize(goal)
    status = solver.Solve()
    assert status == pywraplp.Solver.OPTIMAL, status
    value: float = solver.Objective().Value()
    return -value if aim.scaling_factor < 0 else value


def _ends(domain: Iterable[int]) -> list[float]:
    """Least and largest number of a domain; an end of the integers stands for none."""
    least, *_, most = domain
    return [float(end) if abs(end) < NO_END else math.copysign(math.inf, end) for end in (least, most)]


def bounds(dense: Dense, values: list[int], model: ExactModel, full: bool) -> Iterator[float]:
    """LP bound of each value among the placements that have ``values`` before it.

    ``full`` says that these place every pod; then the rows that follow from it are added after O1, as in the search.
    """
    filled = False
    for criterion, (name, _) in enumerate(dense.criteria):
        if criterion:
            model.keep(criterion - 1, values[criterion - 1])
        if full and not filled and name not in MAXIMISED:
            model.fill()
            filled = True
        value = model.aim(criterion)
        yield relaxation(model) if value.variables else float(value.constant)


def report(path: str, seconds: float) -> None:
    """Print the rows of one instance."""
    instance = placer.read(path)
    result: Result = placer.solve(instance, method="auto", time_limit=seconds, seed=0)
    dense = make_dense(instance)
    begin = time.perf_counter()
    model = ExactModel(dense)
    small = size_of(model)
    for criterion in range(len(dense.criteria)):
        model.criterion(criterion)
    built = time.perf_counter() - begin
    full = size_of(model)
    pods = sum(each.size for each in dense.classes)
    numbers = (len(dense.nodes), pods, pods * len(dense.nodes), small.variables, full.variables, full.booleans)
    cells = [Path(path).name, *(f"{number:,}" for number in (*numbers, full.rows, full.terms)), f"{built:.2f} s"]
    print(f"| {' | '.join(cells)} |")
    values = [judged.value.value for judged in result.objective]
    everything = result.placement is not None and len(result.placement.bindings) == len(instance.pending)
    for judged, raw in zip(result.objective, bounds(dense, values, model, everything), strict=True):
        name, value = judged.value.name, judged.value.value
        bound = safe_bound(raw, name in MAXIMISED)
        found = f"{value:,}" if judged.met else f"({value:,})"
        print(f"    {name}: found {found}, LP {bound:,}, gap {abs(bound - value) / max(1, value):.2%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instances", nargs="+")
    parser.add_argument("--seconds", type=float, default=20.0, help="time limit of the search for the values")
    asked = parser.parse_args()
    for path in asked.instances:
        report(path, asked.seconds)


if __name__ == "__main__":
    main()
