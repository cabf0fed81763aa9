"""C7 by label: all placed pods of a unit are on nodes with one value of a label."""

import pytest

from placer.problem import PodState
from tests.judge import broken, messages
from tests.world import World, both, hard, unit


def _world(asks: object = None) -> World:
    """Racks a = n1 n2 and b = n3, n4 in none; rows over them: x = n1 n3, y = n2. Pods p, q, r and s are one unit."""
    world = World()
    for name, rack, row in (("n1", "a", "x"), ("n2", "a", "y"), ("n3", "b", "x")):
        world.node(name, labels={"rack": rack, "row": row})
    world.node("n4")
    for name in "pqrs":
        world.pod(name, asks=asks or unit("Job default/j", "rack"))
    world.pod("free")
    return world


def _c7(amount: int, name: str = "Job default/j") -> list[tuple[str, tuple[str, ...], int]]:
    return [("C7", (name,), amount)]


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("p@n1", 0),
        ("p@n1 q@n2 r@n1", 0),
        ("p@n1 free@n3", 0),
        ("p@n1 q@n3", 1),
        ("p@n1 q@n2 r@n3", 1),
        ("p@n1 q@n1 r@n3 s@n3", 2),
        ("p@n4", 1),
        ("p@n1 q@n2 r@n3 s@n4", 2),
    ],
)
def test_what_is_outside_the_domain_that_has_most(text: str, amount: int) -> None:
    assert broken(_world(), text) == (_c7(amount) if amount else [])


def test_of_several_keys_each_is_met() -> None:
    world = _world(both(unit("Job default/j", "rack"), unit("Job default/j", "row")))
    assert broken(world, "p@n1 q@n1") == []
    assert broken(world, "p@n1 q@n2") == broken(world, "p@n1 q@n3") == _c7(1)
    assert broken(world, "p@n2 q@n3") == _c7(1) * 2


def test_bound_pods_count() -> None:
    world = _world()
    world.running("old", "n3", asks=unit("Job default/j", "rack"))
    assert broken(world, "p@n3") == []
    assert broken(world, "p@n1") == _c7(1)
    assert broken(world, "") == []


@pytest.mark.parametrize("nodes", ["n1 n3", "n1 n4", "n4", "gone"])
def test_where_bound_pods_are_in_no_one_domain_nothing_new_comes(nodes: str) -> None:
    world = _world()
    for number, node in enumerate(nodes.split()):
        world.running(f"old-{number}", node, asks=unit("Job default/j", "rack"))
    assert broken(world, "") == []
    for node in ("n1", "n2", "n3"):
        assert [each[:2] for each in broken(world, f"p@{node}")] == [("C7", ("Job default/j",))]


@pytest.mark.parametrize("state", [PodState.TERMINATING, PodState.NOMINATED])
def test_terminating_and_nominated_pods_do_not_count(state: PodState) -> None:
    world = _world()
    world.pod("old", state=state, node="n3", asks=unit("Job default/j", "rack"))
    assert broken(world, "p@n1") == []


def test_a_tier_limit_holds_beside_it() -> None:
    """Leaf l1 = n1, l2 = n2 in one rack: the limit is broken where the label is not."""
    world = _world()
    world.hyper("l1", 1, "n1")
    world.hyper("l2", 1, "n2")
    gang = world.gang("g", topology=hard(1))
    for name in "ab":
        world.pod(name, gang, asks=unit("PodGroup default/g", "rack"))
    assert broken(world, "a@n1 b@n2") == _c7(1, "PodGroup default/g")
    assert broken(world, "a@n1 b@n1") == []


def test_the_sentence_names_unit_key_and_domains() -> None:
    world = _world()
    world.running("old", "n3", asks=unit("Job default/j", "rack"))
    assert messages(world, "p@n1 q@n4") == [
        "Job default/j asks for one domain of rack: its 1 bound and 2 new pods are in rack=a and rack=b and nodes "
        "without rack"
    ]
