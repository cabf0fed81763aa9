"""Solve a tiny instance within this process, and say all that was claimed about it."""

from __future__ import annotations

from dataclasses import dataclass

from placer.bounds import NamedBound, bounds_for, named_bounds
from placer.dense import make_dense, score_solution
from placer.instance import Instance
from placer.methods.events import Event, Improved, SearchOptions
from placer.placement import Placement, Score
from placer.score import score
from placer.solve import solve
from placer.verify import verify


@dataclass(frozen=True)
class Solved:
    """The answer, its values, every bound that was claimed on the way, and whether all of it was called proved."""

    placement: Placement
    score: Score
    bounds: tuple[NamedBound, ...] = ()
    proved: bool = False


def solve_tiny(instance: Instance, method: str) -> Solved:
    """Solve, verify, score.

    ``exact`` starts from nothing and runs here, a hundred times faster than a process of its own, so that nothing but
    its own model leads it to the optimum; ``greedy`` alike. Any other method goes the way that users go.
    """
    if method in ("greedy", "exact"):
        placement, bounds, proved = _here(instance, method)
    else:
        result = solve(instance, method=method, workers=1, time_limit=60)
        assert result.placement is not None
        placement, bounds, proved = result.placement, (), all(judged.met for judged in result.objective)
    violations = verify(instance, placement)
    assert violations == [], [violation.message for violation in violations]
    return Solved(placement, score(instance, placement), bounds, proved)


def _here(instance: Instance, method: str) -> tuple[Placement, tuple[NamedBound, ...], bool]:
    """Run a method of the package without its process."""
    dense = make_dense(instance)
    if method == "greedy":
        from placer.methods.greedy import greedy

        solution = greedy(dense, seed=0)
        bounds = (*named_bounds(dense), *bounds_for(dense, score_solution(dense, solution)))
        return dense.placement(solution), bounds, False
    from placer.methods.exact import search

    events: list[Event] = []
    proved = search(dense, SearchOptions(workers=1), events.append) == "proved"
    solution = [event.solution for event in events if isinstance(event, Improved)][-1]
    return dense.placement(solution), tuple(event for event in events if isinstance(event, NamedBound)), proved
