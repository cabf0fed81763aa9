"""What pods ask of others in domains of a label that no node has: every method finds what trying everything does."""

from __future__ import annotations

from functools import cache

import pytest

from placer.answers.solving import solve
from placer.problem import Instance
from placer.problem.neighbours import Neighbours
from placer.problem.placement import Score
from placer.rules.scoring import score
from tests.examples import every
from tests.oracle import best
from tests.world import World, apart, near, spread, unit

KINDS = ("near", "apart", "spread", "unit", "exclusive")


def asked(kind: str, name: str) -> Neighbours:
    """What the pods of one of two jobs ask."""
    match kind:
        case "near":
            return near("none", app="x")
        case "apart":
            return apart("none", app="x")
        case "spread":
            return spread("none", app="x")
    return unit(f"Job default/{name}", "none", exclusive=kind == "exclusive")


@cache
def world(kind: str) -> tuple[Instance, Score]:
    """Two jobs of two pods each and a gang, with room for two of the three; and the score of the best placement."""
    made = World()
    made.nodes("n0 n1", 4)
    for name in "ab":
        for number in range(2):
            made.pod(f"{name}{number}", gpu=3, labels={"app": "x"}, asks=asked(kind, name))
    made.pods_of("g0 g1", made.gang("gang", least=2), gpu=2)
    instance = made.instance()
    return instance, best(instance)[0]


@pytest.mark.parametrize("kind", every(3, KINDS))
@pytest.mark.parametrize("method", ["greedy", "exact", "milp", "decomposed"])
def test_a_label_that_no_node_has_ends_no_search(method: str, kind: str) -> None:
    instance, most = world(kind)
    result = solve(instance, method=method, time_limit=None, workers=1)
    assert result.placement is not None
    found = score(instance, result.placement)
    assert found[0] == most[0]
    assert method == "greedy" or found == most
