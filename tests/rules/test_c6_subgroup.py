"""C6: a subgroup ends with at least subGroupSize placed pods, or gets none of its pending ones."""

import pytest

from placer.problem import PodState, SubGroupPolicy
from tests.judge import broken, messages
from tests.world import World

SUBJECTS = ("PodGroup default/train", "SubGroup default/train/task-x")


def _world() -> World:
    """Subgroup x of 3 or more pods (4 exist), and one pod that no policy takes."""
    world = World()
    world.nodes("n1 n2")
    gang = world.gang("train", 0, policies=[SubGroupPolicy("task", 3)])
    world.pods_of("x1 x2 x3 x4", gang, part="x")
    world.pods_of("free", gang)
    return world


@pytest.mark.parametrize("text", ["", "free@n1", "x1@n1 x2@n1 x3@n2", "x1@n1 x2@n1 x3@n1 x4@n2 free@n1"])
def test_kept(text: str) -> None:
    assert broken(_world(), text) == []


@pytest.mark.parametrize(("text", "missing"), [("x1@n1", 2), ("x1@n1 x4@n2", 1), ("x1@n1 x2@n1 free@n1", 1)])
def test_missing_pods_are_the_amount(text: str, missing: int) -> None:
    assert broken(_world(), text) == [("C6", SUBJECTS, missing)]


def test_the_sentence_counts() -> None:
    assert messages(_world(), "x1@n1 x2@n2") == [
        "SubGroup default/train/task-x: 2 of subGroupSize 3 placed (0 before, 2 new)"
    ]


@pytest.mark.parametrize(("state", "missing"), [(PodState.BOUND, 0), (PodState.TERMINATING, 1)])
def test_running_pods_count_and_terminating_ones_do_not(state: PodState, missing: int) -> None:
    """One pod of x is there already: two new ones make 3, or with a terminating one 2."""
    world = World()
    world.nodes("n1")
    gang = world.gang("train", 0, policies=[SubGroupPolicy("task", 3)])
    world.pods_of("x1 x2", gang, part="x")
    world.pod("x0", gang, part="x", state=state, node="n1")
    assert broken(world, "x1@n1 x2@n1") == ([("C6", SUBJECTS, missing)] if missing else [])


def test_succeeded_pods_count() -> None:
    world = World()
    world.nodes("n1")
    gang = world.gang("train", 0, policies=[SubGroupPolicy("task", 3)])
    world.pods_of("x1", gang, part="x")
    world.finished(gang, part="x")
    assert broken(world, "x1@n1") == [("C6", SUBJECTS, 1)]
    world.finished(gang, part="x")
    assert broken(world, "x1@n1") == []


def test_one_that_is_short_on_its_own_is_no_violation() -> None:
    world = World()
    world.nodes("n1")
    gang = world.gang("train", 0, policies=[SubGroupPolicy("task", 3)])
    world.running("x0", "n1", gang, part="x")
    world.pods_of("free", gang)
    assert broken(world, "free@n1") == []


def test_each_subgroup_is_judged_alone() -> None:
    """3 pods of 4, but no set of two: both subgroups are one short."""
    world = World()
    world.nodes("n1")
    gang = world.gang("train", 2, policies=[SubGroupPolicy("task", 2)])
    world.pods_of("x1 x2", gang, part="x")
    world.pods_of("y1 y2", gang, part="y")
    other = (SUBJECTS[0], "SubGroup default/train/task-y")
    assert broken(world, "x1@n1 y2@n1") == [("C6", SUBJECTS, 1), ("C6", other, 1)]
