"""C5: a group that is not ready after the placement gets none of its pending pods."""

import pytest

from placer.problem import PodState, SubGroupPolicy
from tests.judge import broken, messages
from tests.world import World

GANG = ("PodGroup default/train",)


def test_kept_whole_or_not_at_all() -> None:
    world = World()
    world.nodes("n1")
    world.pods_of("a b c", world.gang("train", 3))
    assert broken(world, "") == []
    assert broken(world, "a@n1 b@n1 c@n1") == []


@pytest.mark.parametrize(("text", "missing"), [("a@n1", 2), ("a@n1 b@n1", 1)])
def test_missing_pods_are_the_amount(text: str, missing: int) -> None:
    world = World()
    world.nodes("n1")
    world.pods_of("a b c d", world.gang("train", 3))
    assert broken(world, text) == [("C5", GANG, missing)]


def test_the_sentence_counts() -> None:
    world = World()
    world.nodes("n1")
    gang = world.gang("train", 4)
    world.pods_of("a b", gang)
    world.running("r", "n1", gang)
    assert messages(world, "a@n1 b@n1") == [
        "PodGroup default/train gets 2 pods but is not ready: 3 of minMember 4 placed (1 before, 2 new)"
    ]


def test_without_a_minimum_every_pod_is_optional() -> None:
    world = World()
    world.nodes("n1")
    world.pods_of("a b", world.gang("train", 0))
    assert broken(world, "b@n1") == []


def test_running_and_succeeded_members_count_and_terminating_ones_do_not() -> None:
    """Of 3, one runs and one has succeeded: one new pod completes the gang. Were it terminating: one short."""
    for state, amount in ((PodState.BOUND, None), (PodState.TERMINATING, 1)):
        world = World()
        world.nodes("n1")
        gang = world.gang("train", 3)
        world.finished(gang)
        world.pods_of("a", gang)
        world.pod("r", gang, state=state, node="n1")
        assert broken(world, "a@n1") == ([] if amount is None else [("C5", GANG, amount)])


def test_a_gang_that_is_short_on_its_own_is_no_violation() -> None:
    world = World()
    world.nodes("n1")
    gang = world.gang("train", 3)
    world.pods_of("a b", gang)
    world.running("r", "n1", gang)
    assert broken(world, "") == []


def test_each_role_has_its_minimum() -> None:
    """1 master and 2 workers: three workers are enough pods but lack a master."""
    world = World()
    world.nodes("n1")
    gang = world.gang("train", 3, roles={"master": 1, "worker": 2})
    world.pod("m", gang, role="master")
    for name in ("w1", "w2", "w3"):
        world.pod(name, gang, role="worker")
    assert broken(world, "m@n1 w1@n1 w3@n1") == []
    assert broken(world, "w1@n1 w2@n1 w3@n1") == [("C5", GANG, 1)]
    assert messages(world, "w1@n1 w2@n1 w3@n1") == [
        "PodGroup default/train gets 3 pods but is not ready: 0 of minTaskMember 1 placed in role master"
    ]


def test_every_condition_is_a_violation_of_its_own() -> None:
    """One master of minMember 4 with 2 masters and 2 workers: 3 pods, 1 master and 2 workers are missing."""
    world = World()
    world.nodes("n1")
    gang = world.gang("train", 4, roles={"master": 2, "worker": 2})
    for name, role in (("m1", "master"), ("m2", "master"), ("w1", "worker"), ("w2", "worker")):
        world.pod(name, gang, role=role)
    assert broken(world, "m1@n1") == [("C5", GANG, 3), ("C5", GANG, 1), ("C5", GANG, 2)]


def _parted(least: int = 0, ready: int = 2) -> World:
    """Subgroups x and y of two pods each, of which ``ready`` must be ready, and a pod that no policy takes."""
    world = World()
    world.nodes("n1")
    gang = world.gang("train", least, policies=[SubGroupPolicy("task", 2, ready)])
    world.pods_of("x1 x2", gang, part="x")
    world.pods_of("y1 y2", gang, part="y")
    world.pods_of("free", gang)
    return world


def test_enough_subgroups_are_ready() -> None:
    assert broken(_parted(), "x1@n1 x2@n1 y1@n1 y2@n1") == []
    assert broken(_parted(ready=1), "y1@n1 y2@n1") == []


def test_missing_subgroups_cost_the_pods_that_would_make_them_ready() -> None:
    """Nothing of x and y: 4 pods. All of x: 2 more. Half of y too: 1 more, and y itself breaks C6."""
    assert broken(_parted(), "free@n1") == [("C5", GANG, 4)]
    assert broken(_parted(), "x1@n1 x2@n1") == [("C5", GANG, 2)]
    assert broken(_parted(), "x1@n1 x2@n1 y1@n1")[0] == ("C5", GANG, 1)
    assert messages(_parted(), "x1@n1 x2@n1") == [
        "PodGroup default/train gets 2 pods but is not ready: 1 of minSubGroups 2 ready in policy task"
    ]


def test_a_subgroup_that_has_no_pods_costs_its_whole_size() -> None:
    """Three are asked for and two exist: with both ready, a third of 2 pods is missing."""
    assert broken(_parted(ready=3), "x1@n1 x2@n1 y1@n1 y2@n1") == [("C5", GANG, 2)]


def test_subgroups_beyond_all_bounds_are_counted_and_not_listed() -> None:
    """As many as the field can hold: a list of them would take 16 GiB."""
    most = 2**31 - 1
    assert broken(_parted(ready=most), "x1@n1 x2@n1 y1@n1")[0] == ("C5", GANG, 2 * (most - 2) + 1)


def test_each_policy_asks_for_its_own_subgroups() -> None:
    world = World()
    world.nodes("n1")
    gang = world.gang("train", 0, policies=[SubGroupPolicy("one", 1, 1), SubGroupPolicy("two", 2, 1)])
    world.pod("a", gang, part="x", policy=0)
    world.pod("b", gang, part="x", policy=1)
    world.pod("c", gang, part="x", policy=1)
    assert broken(world, "a@n1 b@n1 c@n1") == []
    assert broken(world, "a@n1") == [("C5", GANG, 2)]
    assert broken(world, "b@n1 c@n1") == [("C5", GANG, 1)]


def test_an_invalid_group_waits_with_its_reason() -> None:
    world = World()
    world.nodes("n1")
    world.pods_of("a b", world.gang("train", 5, invalid="both tier limits are set"))
    assert broken(world, "") == []
    assert broken(world, "a@n1 b@n1") == [("C5", GANG, 2)]
    assert messages(world, "a@n1") == ["PodGroup default/train gets 1 pod but must wait: both tier limits are set"]
