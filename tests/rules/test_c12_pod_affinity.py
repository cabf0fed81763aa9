"""C12: a new pod is near pods that match all terms of its required pod affinity, there before it in plan order."""

import pytest

from placer.problem import PodState
from placer.problem.neighbours import NO_NEIGHBOURS, Neighbours
from tests.judge import broken, messages
from tests.world import World, both, near

WEB, DB = {"app": "web"}, {"app": "db"}


def _world(asks: Neighbours, **labels: str) -> World:
    """Racks a = n1 n2 and b = n3 n4, n5 in none; n1 and n3 are in row x, n2 and n4 in row y. Only db asks nothing."""
    world = World()
    for name, rack, row in (("n1", "a", "x"), ("n2", "a", "y"), ("n3", "b", "x"), ("n4", "b", "y")):
        world.node(name, labels={"rack": rack, "row": row})
    world.node("n5")
    for name in ("p", "q"):
        world.pod(name, labels=labels or WEB, asks=asks)
    world.pod("db", labels=DB)
    return world


def _c12(*places: str) -> list[tuple[str, tuple[str, ...], int]]:
    pairs = (place.split("@") for place in places)
    return [("C12", (f"Pod default/{pod}", f"Node {node}"), 1) for pod, node in pairs]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("db@n1 p@n1", ""),
        ("db@n1 p@n2 q@n1", ""),
        ("db@n1 p@n3", "p@n3"),
        ("p@n1 db@n1", "p@n1"),
        ("p@n1 q@n1", "p@n1 q@n1"),
        ("db@n5 p@n5", "p@n5"),
        ("db@n5 p@n1", "p@n1"),
        ("p@n3 db@n1 q@n2", "p@n3"),
    ],
)
def test_pods_of_another_workload(text: str, wrong: str) -> None:
    assert broken(_world(near("rack", app="db")), text) == _c12(*wrong.split())


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("p@n1", ""),
        ("p@n1 q@n2", ""),
        ("p@n1 q@n3", "q@n3"),
        ("p@n5", "p@n5"),
    ],
)
def test_pods_that_match_themselves(text: str, wrong: str) -> None:
    assert broken(_world(near("rack", app="web")), text) == _c12(*wrong.split())


def test_only_the_first_may_be_where_nothing_matches() -> None:
    world = _world(near("rack", app="web"))
    world.running("old", "n4", labels=WEB)
    assert broken(world, "p@n1") == _c12("p@n1")
    assert broken(world, "p@n3 q@n4") == []


def test_a_match_on_a_node_without_the_key_does_not_stop_the_first() -> None:
    world = _world(near("rack", app="web"))
    world.running("old", "n5", labels=WEB)
    assert broken(world, "p@n1") == []


def test_pods_that_ask_for_nothing_count_in_their_turn() -> None:
    world = _world(near("rack", app="web"))
    world.pod("plain", labels=WEB)
    assert broken(world, "p@n1 plain@n3 q@n4") == []
    assert broken(world, "plain@n3 p@n1 q@n4") == _c12("p@n1")


def test_one_pod_must_match_all_terms_and_every_key_counts() -> None:
    asks = both(near("rack", app="db"), near("row", tier="back"))
    world = _world(asks)
    world.running("half", "n1", labels=DB)
    world.running("other", "n1", labels={"tier": "back"})
    assert broken(world, "p@n1") == _c12("p@n1")
    world.running("whole", "n4", labels={"app": "db", "tier": "back"})
    assert broken(world, "p@n4") == []
    assert broken(world, "p@n3") == _c12("p@n3")  # rack b, but row x
    world.running("far", "n1", labels={"app": "db", "tier": "back"})
    assert broken(world, "p@n3") == []  # rack b by one pod, row x by another


@pytest.mark.parametrize("state", [PodState.TERMINATING, PodState.NOMINATED])
def test_who_attracts_nobody(state: PodState) -> None:
    world = _world(near("rack", app="web"))
    world.pod("old", None, labels=WEB, state=state, node="n4")
    assert broken(world, "p@n1") == []
    assert broken(world, "p@n1 q@n4") == _c12("q@n4")


def test_namespaces() -> None:
    world = _world(near("rack", "other", app="web"))
    world.running("old", "n1", labels=WEB)
    assert broken(world, "p@n1") == _c12("p@n1")  # neither the pod itself nor the old one is in the namespace


def test_bound_pods_are_not_judged() -> None:
    world = _world(NO_NEIGHBOURS)
    world.running("old", "n4", labels=WEB, asks=near("rack", app="db"))
    assert broken(world, "p@n1") == []


def test_the_sentence_says_what_is_missing() -> None:
    world = _world(near("rack", app="db"))
    assert messages(world, "p@n1 q@n5") == [
        "Pod default/p may not be on Node n1: no pod that is there before it in rack=a matches all terms of its pod "
        "affinity, and it does not match them itself",
        "Pod default/q may not be on Node n5: its pod affinity is over rack, which the node has no label of",
    ]
