"""Runs in several orders, the best one kept."""

from __future__ import annotations

import time

from placer.dense import Dense, Solution, score_solution
from placer.methods.greedy.complete import complete
from placer.methods.greedy.layout import Layout
from placer.methods.greedy.orders import ORDERS, Measures, Order
from placer.methods.greedy.run import run
from placer.placement import MAXIMISED

__all__ = ["greedy"]


def greedy(dense: Dense, seed: int = 0, deadline: float | None = None) -> Solution:
    """Place gangs one after the other, in several orders, and keep the best answer.

    Parameters
    ----------
    dense
        The instance.
    seed
        Part of every method's call; the greedy draws nothing.
    deadline
        ``time.monotonic()`` after which no further order is begun; the first one always ends. Without it the same
        instance gives the same answer on every machine.

    Returns
    -------
    Solution
        Keeps all rules; never worse than placing nothing; maximal while ``placed`` is the policy's first level.
    """
    del seed
    layout = Layout(dense)
    measures = Measures(layout)
    best: tuple[tuple[int, ...], Solution] = (_rank(dense, {}), {})
    for order in ORDERS:
        state, _ = run(layout, _sequence(measures, order), order.style)
        solution = state.solution()
        best = max(best, (_rank(dense, solution), solution), key=lambda found: found[0])
        if deadline is not None and time.monotonic() > deadline:
            break
    return complete(dense, best[1])


def _sequence(measures: Measures, order: Order) -> list[int]:
    groups = measures.dense.groups
    return sorted(range(len(groups)), key=lambda group: (-groups[group].priority, *order.key(measures, group), group))


def _rank(dense: Dense, solution: Solution) -> tuple[int, ...]:
    """The values, more being better on every one."""
    values = score_solution(dense, solution)
    return tuple(value if name in MAXIMISED else -value for (name, _), value in zip(dense.levels, values, strict=True))
