"""The model of pooled pods solved by branch and cut, with HiGHS: it often proves where CP-SAT is slow.

The time to a good placement is chance, so each worker has a tree with a seed of its own, and the first one to prove its
best ends all. Every other tree starts without the known placement. The bound is one of floats, within :data:`SLACK`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

from placer.arrays import Solution
from placer.base.linear import Branched, ColumnSum
from placer.search.events import SolverFault
from placer.search.exact.count_model import Linear
from placer.search.exact.integer_form import IntegerForm, columns_of
from placer.search.exact.pooled_model import PooledModel

#: What is reported as the bound may be so much too high: all values are whole numbers.
SLACK = 1e-4


@dataclass(frozen=True)
class BranchedSolution:
    """The answer of branch and cut; ``work`` is deterministic time, 3,000 iterations of the simplex method a unit."""

    solution: Solution | None
    bound: int | None
    optimal: bool
    work: float


def branch_and_cut(
    model: PooledModel,
    value: Linear,
    known: Iterable[int],
    solution: Solution,
    *,
    seconds: float,
    work: float,
    workers: int,
    seed: int,
) -> BranchedSolution:
    """Minimise ``value``, the objective of a model; SolverFault where the solver says that there is no solution.

    Proved bounds (``known``) are no rows of the program: with such a row trees take several times as long. The start
    places everything. With one worker nothing depends on the clock before the seconds are over.
    """
    program, columns = IntegerForm(model.proto), columns_of(value)
    best = max(known, default=-math.inf)
    start, ended = model.encode(solution), Event()
    # One worker has nothing else by which it ends at the same place each time.
    nodes = max(1, int(50 * work)) if workers == 1 and work < math.inf else 2**31 - 1

    def tree(number: int) -> Branched:
        first = start if number % 2 == 0 else None
        found = program.branched(
            columns, first, seconds, nodes, seed=seed + number, ended=ended, enough=best - columns.constant
        )
        if found.optimal or (found.values is not None and columns.at(found.values.__getitem__) <= best):
            ended.set()
        return found

    several = min(workers, 4)  # more at once are no use
    with ThreadPoolExecutor(several) as threads:
        trees = list(threads.map(tree, range(several)))
    return _best_of(trees, model, columns)


def _best_of(trees: Sequence[Branched], model: PooledModel, columns: ColumnSum) -> BranchedSolution:
    if any(each.infeasible for each in trees):
        raise SolverFault("branch and cut calls a model of pooled pods infeasible that has a solution")
    points = [each.values for each in trees if each.values is not None]
    best = min(points, key=lambda values: columns.at(values.__getitem__), default=None)
    proved = max(each.bound for each in trees)
    return BranchedSolution(
        None if best is None else model.read(best),
        columns.constant + math.ceil(proved - SLACK) if math.isfinite(proved) else None,
        any(each.optimal for each in trees),
        max(each.iterations for each in trees) / 3_000,
    )
