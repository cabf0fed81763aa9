"""Solve a tiny instance within this process, and say all that was claimed about it."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace

from placer.answers.solving import SEARCH, solve
from placer.arrays import score_solution
from placer.arrays.dense_builder import make_dense
from placer.bounds import NamedBound, bounds_for, named_bounds
from placer.problem import Group, GroupKey, Instance, Key, PodState, SubGroup
from placer.problem.placement import Placement, Score
from placer.rules import verify
from placer.rules.scoring import score
from placer.search.events import Event, Improved, SearchOptions
from placer.search.numa.binding_order import aligned

#: The searches themselves, before any test puts another one in their place.
SEARCHES = dict(SEARCH)


@dataclass(frozen=True)
class Solved:
    """The answer, its values, every bound that was claimed on the way, and whether all of it was called proved."""

    placement: Placement
    score: Score
    bounds: tuple[NamedBound, ...] = ()
    proved: bool = False


def solve_tiny(instance: Instance, method: str, solver: str = "HiGHS") -> Solved:
    """Solve, verify, score.

    ``exact`` and ``milp`` start from nothing and run here, a hundred times faster than a process of their own, so that
    nothing but their own model leads them to the optimum; ``greedy`` alike. Any other method goes the way that users
    go. ``solver`` is the one that ``milp`` asks.
    """
    if method in ("greedy", *SEARCHES):
        placement, bounds, proved = _here(instance, method, solver)
    else:
        result = solve(instance, method=method, workers=1, time_limit=600)
        assert result.placement is not None
        placement, bounds, proved = result.placement, (), all(judged.met for judged in result.objective)
    violations = verify(instance, placement)
    assert violations == [], [violation.message for violation in violations]
    return Solved(placement, score(instance, placement), bounds, proved)


def _here(instance: Instance, method: str, solver: str) -> tuple[Placement, tuple[NamedBound, ...], bool]:
    """Run a method of the package without its process."""
    dense = make_dense(instance)
    if method == "greedy":
        from placer.search.greedy.multi_start import greedy

        solution = greedy(dense)
        bounds = (*named_bounds(dense), *bounds_for(dense, score_solution(dense, solution)))
        return aligned(instance, dense.placement(solution)), bounds, False
    module, _, function = SEARCHES[method].partition(":")
    search = getattr(importlib.import_module(module), function)
    events: list[Event] = []
    proved = search(dense, SearchOptions(workers=1, solver=solver), events.append) == "proved"
    solutions = [event.solution for event in events if isinstance(event, Improved)]
    assert solutions, f"{method} found nothing"
    return (
        aligned(instance, dense.placement(solutions[-1])),
        tuple(event for event in events if isinstance(event, NamedBound)),
        proved,
    )


def carried_out(instance: Instance, placement: Placement, keep: GroupKey | None = None) -> Instance:
    """What runs once the placement is carried out; of the pods left all are still there, or those of one group."""
    pods = {}
    for key, pod in instance.pods.items():
        node = placement.node_of.get(key)
        if node is not None:
            pods[key] = replace(pod, state=PodState.BOUND, node=node)
        elif pod.state is not PodState.PENDING or keep in (None, pod.group):
            pods[key] = pod

    def cut(part: Group | SubGroup) -> dict[str, tuple[Key, ...]]:
        new = [key for key in part.pending if key in placement.node_of]
        left = [key for key in part.pending if key in pods and key not in placement.node_of]
        return {"bound": tuple(sorted([*part.bound, *new])), "pending": tuple(left)}

    groups = {
        key: replace(group, sub_groups=tuple(replace(part, **cut(part)) for part in group.sub_groups), **cut(group))
        for key, group in instance.groups.items()
    }
    return replace(instance, pods=pods, groups=groups)
