"""The answer by name where the time is over before anything was decided."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from placer.answers.solving import solve
from placer.answers.summary.verdict import stopped
from placer.arrays import dense_builder
from placer.base.deadline import NEVER, Deadline, OutOfTime, wall
from placer.problem import Instance, Pod
from placer.problem.result import Result, Termination, Verdict
from placer.rules import verify
from placer.search.answer_by_name import _FirstFit, first_fit
from placer.search.greedy import multi_start
from tests.examples import every, seed_blocks
from tests.hostile import HOSTILE
from tests.support import instance_of, node, pod, pod_group, queue
from tests.tiny import Tiny, crowded, crowded_network, tiny, tiny_network
from tests.tiny_neighbours import tiny_neighbours
from tests.tiny_numa import tiny_numa

WORLDS: list[Callable[[int], Tiny]] = [tiny, tiny_network, crowded, crowded_network, tiny_neighbours, tiny_numa]


def nodes_of(result: Result) -> dict[str, str]:
    assert result.placement is not None
    return {str(key): name for key, name in result.placement.node_of.items()}


def endless(*_: Any, **__: Any) -> Any:
    """Work that looks at no deadline."""
    for _ in itertools.count():
        pass


@pytest.fixture
def without_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense_builder, "make_dense", endless)


@pytest.mark.parametrize("world", WORLDS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("seeds", seed_blocks(300, 60))
def test_it_keeps_every_rule(world: Callable[[int], Tiny], seeds: range) -> None:
    placed = 0
    for seed in seeds:
        instance = world(seed).instance
        placement = first_fit(instance, NEVER)
        assert verify(instance, placement) == []
        placed += len(placement.bindings)
    assert placed


def gang_and_singles() -> Instance:
    """A gang of three of which two fit, one of two, and a pod each of two namespaces that share the rest."""
    return instance_of(
        node("n0", cpu=4),
        queue("small", {"cpu": 2}),
        pod_group("three", minMember=3),
        *(pod(f"three-{index}", group="three", cpu=2) for index in range(3)),
        pod_group("two", minMember=2, queue="small"),
        *(pod(f"two-{index}", group="two", cpu=1) for index in range(2)),
        *(pod(f"lone-{index}", namespace=f"n{index}", cpu=1) for index in range(2)),
    )


def test_gangs_are_whole_and_queues_keep_their_limits() -> None:
    placement = first_fit(gang_and_singles(), NEVER)
    assert sorted(str(key) for key in placement.node_of) == ["default/two-0", "default/two-1", "n0/lone-0", "n1/lone-1"]


def test_namespaces_take_turns() -> None:
    crowd = [pod(f"a-{index}", namespace="crowd", cpu=1) for index in range(10)]
    instance = instance_of(node("n0", cpu=3), *crowd, pod("b", namespace="quiet", cpu=1))
    placed = first_fit(instance, NEVER).node_of
    assert len(placed) == 3
    assert "quiet/b" in map(str, placed)


@pytest.mark.parametrize("kind", every(4, HOSTILE))
def test_a_namespace_whose_pods_cost_most_comes_last(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others' last pod is looked at after as many nodes for the hostile one, and those of its next pod."""
    looks: list[str] = []
    has_room = _FirstFit._has_room

    def counted(fit: _FirstFit, pod: Pod, name: str) -> bool:
        looks.append(pod.namespace)
        return has_room(fit, pod, name)

    monkeypatch.setattr(_FirstFit, "_has_room", counted)
    nodes = [node(f"n{number}", cpu=8) for number in range(20)]
    placed = first_fit(instance_of(*HOSTILE[kind](60), *nodes, *(pod(f"b{n}", cpu=1) for n in range(10))), NEVER)
    assert sum(key.namespace == "default" for key in placed.node_of) == 10
    mine = [number for number, namespace in enumerate(looks) if namespace == "default"]
    assert mine[-1] <= 2 * len(mine) + len(nodes)


def test_nothing_is_placed_when_there_is_no_time() -> None:
    assert first_fit(gang_and_singles(), Deadline(at=0.0)).bindings == ()


def test_a_pod_goes_where_no_running_pod_keeps_it_off() -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}}
    spec = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    runs = pod("runs", node="n0", spec=spec, cpu=1)
    instance = instance_of(node("n0"), node("n1"), runs, pod("new", labels={"app": "a"}, cpu=1))
    assert list(first_fit(instance, NEVER).node_of.values()) == ["n1"]


@pytest.mark.parametrize("method", ["auto", "greedy", "decomposed"])
@pytest.mark.usefixtures("without_arrays")
def test_arrays_without_end_do_not_keep_an_answer(method: str) -> None:
    result = solve(gang_and_singles(), method=method, time_limit=0.01)
    assert (result.method, result.termination, result.verdict) == ("first-fit", Termination.TIME, Verdict.FEASIBLE)
    assert len(nodes_of(result)) == 4
    assert {str(key): reason.code for key, reason in result.reasons.items()} == {"PodGroup default/three": "NotDecided"}


@pytest.mark.usefixtures("without_arrays")
def test_a_method_that_shows_only_its_own_answers_has_none() -> None:
    result = solve(gang_and_singles(), method="exact", time_limit=0.01)
    assert (result.placement, result.termination, result.verdict) == (None, Termination.TIME, Verdict.UNKNOWN)


def test_the_answer_in_hand_counts_where_the_greedy_has_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    greedy = multi_start.greedy

    def without_end(*arguments: Any) -> Any:
        greedy(*arguments)
        endless()

    monkeypatch.setattr(multi_start, "greedy", without_end)
    for bounds in ("named_bounds", "bounds_for"):  # else that answer is proved, and the limit does not matter
        monkeypatch.setattr(f"placer.bounds.{bounds}", lambda *_: ())
    result = solve(gang_and_singles(), time_limit=2.0)  # enough for four pods, however busy the machine is
    assert (result.method, result.termination) == ("greedy", Termination.TIME)
    assert len(nodes_of(result)) == 4


def test_reasons_without_end_are_not_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placer.answers.reasons.reasons", endless)
    result = solve(gang_and_singles(), method="greedy", time_limit=0.01)
    assert {reason.code for reason in result.reasons.values()} == {"NotDecided"}


def test_a_wall_ends_work_and_then_nothing_else() -> None:
    with pytest.raises(OutOfTime), wall(Deadline.within(0.01)):
        endless()
    begun = False
    with pytest.raises(OutOfTime), wall(Deadline(at=0.0)):
        begun = True
    assert not begun
    with wall(Deadline.within(0.01)):
        pass
    with wall(NEVER):
        pass
    assert sum(range(1_000_000)) > 0


@pytest.mark.usefixtures("without_arrays")
def test_reasons_that_the_objects_show_need_no_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placer.answers.reasons.explanation.SHORT", 60.0)
    picky = pod("picky", cpu=1, spec={"nodeSelector": {"a": "b"}})
    limited = pod("limited", cpu=9, annotations={"scheduling.volcano.sh/queue-name": "small"})
    others = [pod("large", cpu=9), picky, limited, pod_group("gang", minMember=2), pod("gang-0", group="gang", cpu=1)]
    result = solve(instance_of(node("n0", cpu=4), queue("small", {"cpu": 2}), *others), time_limit=0.01)
    assert {key.name: reason.code for key, reason in result.reasons.items()} == {
        "large": "InsufficientResources",
        "picky": "NoEligibleNode",
        "limited": "NotDecided",
        "gang": "GangIncomplete",
    }
    assert stopped(result).startswith(
        "stopped at the 0.01 s limit; no time was left for a search, and pods were placed"
    )
