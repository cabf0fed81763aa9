"""What neighbourhoods gain when several are under way at once: the same work shared out to more workers.

A machine of two cores cannot show what four would do by the clock; deterministic work can. Neighbourhoods on the first
value start from the greedy's answer and get the same work in all; with ``workers`` of them under way at once each
worker has its part of it. They begin together and come back together, as from equal workers: a step knows nothing of
those beside it. One line of JSON per instance and number of workers:

``value``
    Of the first value after that work, over its bound where one is counted.
``perWorker``
    Deterministic time of the worker that had most.
``sent``
    KiB that went to workers and came back, per step.

    python -m tests.benchmarks.under_way QUEUE.json.gz --work 4 --workers 1 2 4
"""

from __future__ import annotations

import argparse
import json
import pickle
import random
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from placer.arrays import Dense, Solution
from placer.arrays.dense_builder import make_dense
from placer.base.deadline import Budget
from placer.bounds import named_bounds
from placer.problem.reading import read
from placer.search.decomposed.large_neighbourhood import LargeNeighbourhoodSearch, WorkerPool
from placer.search.decomposed.repairing import RepairResult, RepairTask
from placer.search.greedy.multi_start import greedy


class Equals(WorkerPool):
    """So many equal workers: a repair is carried out when it begins, and heard of when all have one."""

    def __init__(self, workers: int) -> None:
        super().__init__("inline", workers)
        self.spent = [0.0] * workers
        self.sent = self.steps = 0

    def submit(self, task: RepairTask) -> Future[RepairResult]:
        """Carry out a repair on the worker that has had least."""
        future = super().submit(task)
        found = future.result()
        self.sent += len(pickle.dumps(task)) + len(pickle.dumps(found))
        self.steps += 1
        self.spent[self.spent.index(min(self.spent))] += found.work
        return future


def measured(dense: Dense, start: Solution, workers: int, work: float, seed: int) -> dict[str, Any]:
    """The line of one search."""
    pool = Equals(workers)
    steps = LargeNeighbourhoodSearch(dense, 0, start, seed, random.Random(seed), pool)
    steps.run(Budget(most=work), lambda _: False)
    bounds = [bound.bound for bound in named_bounds(dense) if bound.criterion == 0]
    return {
        "workers": workers,
        "work": round(sum(pool.spent), 2),
        "perWorker": round(max(pool.spent), 2),
        "steps": pool.steps,
        "value": round(steps.incumbent.values[0] / min(bounds), 5) if bounds else steps.incumbent.values[0],
        "sent": round(pool.sent / 1024 / max(1, pool.steps), 1),
    }


def main() -> None:
    """Measure what was asked for, one line of JSON each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("instances", nargs="+", type=Path)
    parser.add_argument("--work", type=float, default=4.0, help="deterministic time of all steps")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    options = parser.parse_args()
    for path in options.instances:
        dense = make_dense(read(path))
        start = greedy(dense)
        for seed in options.seeds:
            for workers in options.workers:
                line = measured(dense, start, workers, options.work, seed)
                print(json.dumps({"instance": path.name, "seed": seed, **line}), flush=True)


if __name__ == "__main__":
    main()
