"""C14: after the placement no domain has more than maxSkew pods more than the one with fewest."""

from dataclasses import replace

import pytest

from placer.problem import Constraints, PodState, Toleration
from placer.problem.neighbours import Neighbours
from tests.judge import broken, messages
from tests.world import World, both, spread

WEB = {"app": "web"}


def _world(asks: Neighbours) -> World:
    """Zones a = n1 n2, b = n3 and c = n4, n5 in none. Pods p, q, r and s of web ask, x and y of web do not."""
    world = World()
    for name, zone in (("n1", "a"), ("n2", "a"), ("n3", "b"), ("n4", "c")):
        world.node(name, labels={"zone": zone, "host": name, "disk": "ssd" if zone != "c" else "hdd"})
    world.node("n5")
    for name in ("p", "q", "r", "s"):
        world.pod(name, labels=WEB, asks=asks)
    for name in ("x", "y"):
        world.pod(name, labels=WEB)
    return world


def _c14(domain: str, pod: str, amount: int) -> list[tuple[str, tuple[str, ...], int]]:
    return [("C14", (f"Domain {domain}", f"Pod default/{pod}"), amount)]


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("p@n1", 0),
        ("p@n1 q@n2", 1),
        ("p@n1 q@n2 r@n3", 1),
        ("p@n1 q@n2 r@n3 s@n4", 0),
        ("p@n1 q@n2 r@n2", 2),
        ("p@n1 x@n1", 1),
        ("x@n1 y@n1", 0),
        ("p@n3 x@n1 y@n1", 0),
    ],
)
def test_the_skew_of_domains_with_a_pod_that_asks(text: str, amount: int) -> None:
    assert broken(_world(spread("zone", app="web")), text) == (_c14("zone=a", "p", amount) if amount else [])


def test_what_is_wrong_for_a_moment_may_be_right_in_the_end() -> None:
    assert broken(_world(spread("zone", app="web")), "p@n1 q@n2 r@n3 s@n4") == []


@pytest.mark.parametrize(("skew", "amount"), [(1, 2), (2, 1), (3, 0)])
def test_max_skew(skew: int, amount: int) -> None:
    found = broken(_world(spread("zone", skew, app="web")), "p@n1 q@n2 r@n2")
    assert found == (_c14("zone=a", "p", amount) if amount else [])


def test_a_node_without_the_key() -> None:
    assert broken(_world(spread("zone", app="web")), "p@n5") == [("C14", ("Pod default/p", "Node n5"), 1)]


@pytest.mark.parametrize(("least", "amount"), [(3, 0), (4, 1)])
def test_fewer_domains_than_wanted(least: int, amount: int) -> None:
    """Two pods in each zone: the fewest is 2, or 0 where four zones are wanted."""
    world = _world(spread("zone", 1, least, app="web"))
    for node in ("n2", "n3", "n4"):
        world.running(f"old-{node}", node, labels=WEB)
    world.running("more", "n3", labels=WEB)
    world.running("more2", "n4", labels=WEB)
    assert broken(world, "p@n1") == (_c14("zone=a", "p", amount) if amount else [])


@pytest.mark.parametrize(("state", "amount"), [(PodState.BOUND, 1), (PodState.TERMINATING, 0), (PodState.NOMINATED, 0)])
def test_who_is_counted(state: PodState, amount: int) -> None:
    world = _world(spread("zone", app="web"))
    world.pod("old", None, labels=WEB, state=state, node="n2")
    assert broken(world, "p@n1") == (_c14("zone=a", "p", amount) if amount else [])


def test_selectors() -> None:
    """An empty selector counts nothing; a pod that its own does not match counts only those that do."""
    assert broken(_world(spread("zone")), "p@n1 q@n1 r@n1 s@n1") == []
    world = _world(spread("zone", app="db"))
    assert broken(world, "p@n1 q@n1") == []
    world.running("one", "n1", labels={"app": "db"})
    assert broken(world, "p@n1") == []
    world.running("two", "n1", labels={"app": "db"})
    assert broken(world, "p@n1") == _c14("zone=a", "p", 1)


def test_nodes_that_lack_the_key_of_another_constraint_do_not_count() -> None:
    """Zone c has no node with both keys, so its pods and its emptiness do not matter."""
    world = _world(both(spread("zone", app="web"), spread("host", 9, app="web")))
    world.node_list["n4"] = replace(world.node_list["n4"], labels={"zone": "c"})
    world.running("old", "n3", labels=WEB)
    assert broken(world, "p@n1 q@n2") == []
    assert [found[1][1] for found in broken(world, "p@n4")] == ["Node n4"]


def test_node_policies() -> None:
    """Zone c is empty; it counts unless the constraint looks at what the pod asks of nodes."""
    asks = spread("zone", app="web")
    world = _world(asks)
    for node in ("n1", "n3"):
        world.running(f"old-{node}", node, labels=WEB)
    assert broken(world, "p@n1") == _c14("zone=a", "p", 1)
    ssd = Constraints(tolerations=(Toleration(operator="Exists"),), selector=(("disk", "ssd"),))
    honoured = Neighbours(spread=tuple(replace(limit, counted=ssd) for limit in asks.spread))
    world.pod("t", labels=WEB, asks=honoured)
    assert broken(world, "t@n1") == []


def test_taints_count_only_where_they_are_honoured() -> None:
    world = World()
    for name, zone in (("n1", "a"), ("n2", "b")):
        world.node(name, labels={"zone": zone}, taints=["gpu"] if zone == "b" else [])
    world.running("old", "n1", labels=WEB)
    asks = spread("zone", app="web")
    honoured = Neighbours(spread=tuple(replace(limit, counted=Constraints()) for limit in asks.spread))
    world.pod("p", labels=WEB, asks=asks)
    world.pod("q", labels=WEB, asks=honoured)
    assert broken(world, "p@n1") == _c14("zone=a", "p", 1)
    assert broken(world, "q@n1") == []


def test_the_sentence_says_the_counts() -> None:
    assert messages(_world(spread("zone", app="web")), "p@n1 q@n2") == [
        "Domain zone=a has 2 pods that the spread of Pod default/p and 1 other counts, 2 more than the fewest, 0; "
        "maxSkew is 1"
    ]
