"""Size and strength of the MILP, as in models/milp.md.

    python -m tests.benchmarks.milp_model [--seconds N] [--solver NAME] INSTANCE...

Per instance: nodes, pods, variables, rows and terms of the program once all values have been asked for, seconds to
build it; what the search finds and proves in the time, from the greedy's answer; and per value the LP relaxation among
placements that equal that answer on the values before, beside the value (in brackets where it is not proved).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import placer
from placer.arrays import Dense, Solution, score_solution
from placer.arrays.dense_builder import make_dense
from placer.base.deadline import Deadline
from placer.bounds import NamedBound
from placer.search.events import Event, Improved, SearchOptions, TooLarge
from placer.search.exact.integer_form import columns_of
from placer.search.greedy.multi_start import greedy
from placer.search.milp.method import MilpModel, search
from placer.search.milp.solvers import ask, make_solver


def size(dense: Dense) -> str:
    """Variables and rows of the whole program."""
    begin = time.monotonic()
    model = MilpModel(dense)
    few = len(model.program.variables)
    for criterion in range(len(dense.criteria)):
        model.aim(criterion)
    took = time.monotonic() - begin
    rows = model.program.problem.constraints()
    terms = sum(len(row) for row in rows)
    return (
        f"{few:,} variables for O1, {len(model.program.variables):,} in all; "
        f"{len(rows):,} rows, {terms:,} terms, built in {took:.2f} s"
    )


def found(dense: Dense, options: SearchOptions) -> tuple[str, Solution | None, set[int]]:
    """How the search ends, the best it finds, and the criteria it proves."""
    events: list[Event] = []
    begin = time.monotonic()
    ended = search(dense, options, events.append)
    solutions = [event.solution for event in events if isinstance(event, Improved)]
    proved = {event.criterion for event in events if isinstance(event, NamedBound) and event.criterion is not None}
    return f"{ended} after {time.monotonic() - begin:.1f} s", solutions[-1] if solutions else None, proved


def relaxations(dense: Dense, solution: Solution, proved: set[int], solver: str) -> None:
    """Print every value beside its LP bound."""
    model, values = MilpModel(dense), score_solution(dense, solution)
    for criterion, (name, priority) in enumerate(dense.criteria):
        value = model.aim(criterion)
        if value.variables:
            model.start_from(None)
            lp = make_solver(solver, seconds=60)
            lp.mip = False
            ask(lp, model.program.problem)
            point = [variable.varValue or 0.0 for variable in model.program.variables]
            bound = columns_of(value).at(point.__getitem__)
        else:
            bound = float(value.constant)
        shown = f"{values[criterion]:,}" if criterion in proved else f"({values[criterion]:,})"
        gap = abs(bound - values[criterion]) / max(1, values[criterion])
        print(f"    {name}{'' if priority is None else f' {priority}'}: {shown}, LP {bound:,.1f}, gap {gap:.1%}")
        model.exact.keep(criterion, values[criterion])


def main() -> None:
    """Measure the instances that are named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("instance", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--solver", default="HiGHS")
    options = parser.parse_args()
    for path in options.instance:
        instance = placer.read(path)
        dense = make_dense(instance)
        print(f"{path.name}: {len(instance.nodes)} nodes, {len(instance.pending)} pods")
        try:
            print(f"    {size(dense)}")
        except TooLarge as error:
            print(f"    too large: {error}")
            continue
        asked = SearchOptions(Deadline.within(options.seconds), workers=2, hint=greedy(dense), solver=options.solver)
        ended, solution, proved = found(dense, asked)
        print(f"    {options.solver}: {ended}")
        if solution is not None:
            relaxations(dense, solution, proved, options.solver)


if __name__ == "__main__":
    main()
