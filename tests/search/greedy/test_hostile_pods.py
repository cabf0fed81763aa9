"""The pods of a hostile namespace do not keep those of others from their places, nor a proof from the answer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from placer.answers.solving import solve
from placer.arrays import Solution, score_solution
from placer.arrays.dense_builder import make_dense
from placer.base.deadline import NEVER
from placer.problem import Instance
from placer.problem.result import Termination
from placer.search.greedy.multi_start import _GreedySearch, greedy
from tests.examples import every
from tests.hostile import EVIL, HOSTILE
from tests.support import Document, instance_of, node, pod


def honest(nodes: int, sizes: Sequence[int]) -> list[Document]:
    """Nodes of 16 cpu and 20 pods, and a pod for every third of them in two namespaces."""
    pods = (
        pod(f"h{number}", namespace=f"good-{number % 2}", cpu=sizes[number % len(sizes)])
        for number in range(nodes // 3)
    )
    return [*(node(f"n{number}", cpu=16, pods=20) for number in range(nodes)), *pods]


def test_small_pods_find_room_next_to_large_ones() -> None:
    """Two large pods on a node leave no cpu there, and the third has places for six small ones of ten."""
    large = [pod(f"large-{number}", cpu=2) for number in range(4)]
    small = [pod(f"small-{number}", cpu="1m") for number in range(10)]
    dense = make_dense(instance_of(*(node(f"n{number}", cpu=4, pods=6) for number in range(5)), *large, *small))
    assert score_solution(dense, greedy(dense))[-1] == 3


# Pods of broad_affinity fill a node together. Their number is proved; on how few nodes the others are is not.
@pytest.mark.parametrize("kind", every(4, [kind for kind in HOSTILE if kind != "broad_affinity"]))
def test_what_is_proved_without_it_is_proved_next_to_it(kind: str) -> None:
    """No search runs to the limit because of pods that ask for next to nothing."""
    others = honest(60, (1, 2, 3, 5))
    for pods in ([], HOSTILE[kind](50)):
        instance = instance_of(*others, *pods)
        result = solve(instance, method="greedy", time_limit=None)
        assert result.termination is Termination.PROVED
        assert result.placement is not None
        assert sum(key.namespace != EVIL for key in result.placement.node_of) == 20


@pytest.mark.parametrize("kind", every(4, HOSTILE))
def test_the_first_answer_places_all_others(kind: str) -> None:
    """They come in the first run, and twice as many hostile pods are at most three times the work."""
    others, work = honest(30, (2,)), []
    for size in (40, 80):
        instance = instance_of(*others, *HOSTILE[kind](size))
        assert len(first_answer(instance)[1]) == 10
        work.append(first_answer(instance)[0])
    assert work[1] <= 3 * work[0]


def first_answer(instance: Instance) -> tuple[int, list[str]]:
    """Work of the first run, and the pods of others that it places."""
    found: list[tuple[int, Solution]] = []
    dense = make_dense(instance)
    search = _GreedySearch(dense, lambda solution: found.append((search.work, solution)), NEVER, NEVER)
    search.orders()
    placed = dense.placement(found[0][1]).node_of
    return search.last, [str(key) for key in placed if key.namespace != EVIL]
