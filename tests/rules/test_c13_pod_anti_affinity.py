"""C13: no two pods, one of them new, of which one's required anti-affinity matches the other, in one domain."""

import pytest

from placer.problem import PodState
from placer.problem.neighbours import Neighbours
from tests.judge import broken, messages
from tests.world import World, apart, both

WEB, DB = {"app": "web"}, {"app": "db"}


def _world(asks: Neighbours) -> World:
    """Racks a = n1 n2 and b = n3, n4 in none. Pods p, q and r of web ask, d and e of db do not."""
    world = World()
    for name, rack in (("n1", "a"), ("n2", "a"), ("n3", "b")):
        world.node(name, labels={"rack": rack, "host": name})
    world.node("n4")
    for name in ("p", "q", "r"):
        world.pod(name, labels=WEB, asks=asks)
    for name in ("d", "e"):
        world.pod(name, labels=DB)
    return world


def _c13(domain: str, pod: str, amount: int) -> list[tuple[str, tuple[str, ...], int]]:
    return [("C13", (f"Domain {domain}", f"Pod default/{pod}"), amount)]


@pytest.mark.parametrize(
    ("text", "amount"),
    [("p@n1", 0), ("p@n1 q@n3", 0), ("p@n1 q@n2", 1), ("p@n1 q@n1 r@n2", 3), ("p@n4 q@n4", 0), ("p@n1 d@n1", 0)],
)
def test_pods_that_keep_their_like_off(text: str, amount: int) -> None:
    assert broken(_world(apart("rack", app="web")), text) == (_c13("rack=a", "p", amount) if amount else [])


@pytest.mark.parametrize(
    ("text", "amount"),
    [("p@n1 q@n2", 0), ("p@n1 d@n3", 0), ("d@n2 p@n1", 1), ("p@n1 d@n2 e@n2", 2), ("p@n1 q@n1 d@n2 e@n1", 4)],
)
def test_pods_that_keep_others_off(text: str, amount: int) -> None:
    assert broken(_world(apart("rack", app="db")), text) == (_c13("rack=a", "p", amount) if amount else [])


def test_all_pairs_of_pods_of_which_some_are_meant_and_some_ask() -> None:
    """p asks and is meant; d is meant; s only asks: p with d, p with s, and s with d."""
    world = _world(apart("rack", kind="x"))
    world.pod("s", labels=DB, asks=apart("rack", app="web"))
    world.pod("t", labels=WEB, asks=apart("rack", app="web"))
    assert broken(world, "s@n1 t@n1 p@n1") == _c13("rack=a", "s", 3)


@pytest.mark.parametrize("state", [PodState.BOUND, PodState.TERMINATING])
def test_pods_that_are_there_keep_off_and_are_kept_off(state: PodState) -> None:
    world = _world(apart("rack", app="web"))
    world.pod("old", None, labels=WEB, state=state, node="n3")
    assert broken(world, "p@n3") == _c13("rack=b", "p", 1)
    there = _world(both())
    there.pod("old", None, labels=DB, asks=apart("rack", app="web"), state=state, node="n3")
    assert broken(there, "p@n3 q@n1") == _c13("rack=b", "old", 1)


def test_nominated_pods_and_other_namespaces_do_not_matter() -> None:
    world = _world(apart("rack", "other", app="web"))
    world.pod("old", None, labels=WEB, asks=apart("rack", app="web"), state=PodState.NOMINATED, node="n3")
    assert broken(world, "p@n3 q@n3") == []


def test_what_bound_pods_break_by_themselves_is_no_violation() -> None:
    world = _world(both())
    for name in ("x", "y"):
        world.running(name, "n3", labels=DB, asks=apart("rack", app="db"))
    assert broken(world, "p@n3") == []
    assert broken(world, "d@n3") == _c13("rack=b", "x", 2)


def test_each_key_is_a_rule_of_its_own() -> None:
    world = _world(both(apart("rack", app="web"), apart("host", app="web")))
    assert broken(world, "p@n1 q@n2") == _c13("rack=a", "p", 1)
    assert [rule[1][0] for rule in broken(world, "p@n1 q@n1")] == ["Domain rack=a", "Domain host=n1"]


def test_the_sentence_names_domain_and_pods() -> None:
    assert messages(_world(apart("rack", app="web")), "p@n1 q@n2") == [
        "Domain rack=a: required pod anti-affinity of Pod default/p and 1 other keeps off Pod default/p and 1 other: "
        "1 pair too many"
    ]
