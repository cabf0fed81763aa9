"""C15: no two units that are exclusive in one key have pods in one domain of it."""

import pytest

from placer.instance import PodState
from tests.judge import broken, messages
from tests.world import World, both, unit


def _world() -> World:
    """Racks a = n1 n2 and b = n3, n4 in none. Units j, k and l of two pods each are exclusive in racks; m is in one."""
    world = World()
    for name, rack in (("n1", "a"), ("n2", "a"), ("n3", "b")):
        world.node(name, labels={"rack": rack, "host": name})
    world.node("n4")
    for name in "jkl":
        for number in "12":
            world.pod(f"{name}{number}", asks=unit(f"Job default/{name}", "rack", exclusive=True))
    world.pod("m1", asks=unit("PodGroup default/m", "rack"))
    return world


def _c15(domain: str, units: str, amount: int) -> list[tuple[str, tuple[str, ...], int]]:
    names = tuple(f"Job default/{name}" for name in units)
    return [("C15", (f"Domain {domain}", *names), amount)]


@pytest.mark.parametrize(
    ("text", "units", "amount"),
    [
        ("j1@n1 j2@n2", "", 0),
        ("j1@n1 k1@n3", "", 0),
        ("j1@n1 m1@n2", "", 0),
        ("j1@n1 k1@n2", "jk", 1),
        ("j1@n1 j2@n2 k1@n1 k2@n2", "jk", 1),
        ("j1@n1 k1@n2 l1@n1", "jkl", 3),
    ],
)
def test_pairs_of_units_in_one_domain(text: str, units: str, amount: int) -> None:
    assert broken(_world(), text) == (_c15("rack=a", units, amount) if amount else [])


def test_running_units_keep_their_domain() -> None:
    world = _world()
    world.running("old", "n3", asks=unit("Job default/o", "rack", exclusive=True))
    assert broken(world, "j1@n3") == _c15("rack=b", "jo", 1)
    assert broken(world, "j1@n1") == broken(world, "m1@n3") == []


def test_units_that_run_in_one_domain_are_no_violation_until_one_grows_there() -> None:
    world = _world()
    for name in "jk":
        world.running(f"old-{name}", "n3", asks=unit(f"Job default/{name}", "rack", exclusive=True))
    assert broken(world, "m1@n3") == []
    assert broken(world, "j1@n3") == _c15("rack=b", "jk", 1)
    assert broken(world, "j1@n3 l1@n3") == _c15("rack=b", "jkl", 3)


@pytest.mark.parametrize("state", [PodState.TERMINATING, PodState.NOMINATED])
def test_terminating_and_nominated_pods_hold_no_domain(state: PodState) -> None:
    world = _world()
    world.pod("old", state=state, node="n3", asks=unit("Job default/o", "rack", exclusive=True))
    assert broken(world, "j1@n3") == []


def test_each_key_is_a_rule_of_its_own() -> None:
    """Exclusive in another key, and not at all."""
    world = _world()
    world.pod("h", asks=unit("Job default/h", "host", exclusive=True))
    world.pod("i", asks=both(unit("Job default/i", "rack"), unit("Job default/i", "host", exclusive=True)))
    assert broken(world, "j1@n1 h@n1") == []
    assert broken(world, "h@n1 i@n1 j1@n1") == [("C15", ("Domain host=n1", "Job default/h", "Job default/i"), 1)]


def test_nodes_without_the_label_are_in_no_domain() -> None:
    """Both pods stand where no unit of racks may be (C7), and in nobody's domain."""
    assert [each[0] for each in broken(_world(), "j1@n4 k1@n4")] == ["C7", "C7"]


def test_the_sentence_names_the_domain_and_the_units() -> None:
    assert messages(_world(), "j1@n1 k1@n2") == [
        "Domain rack=a holds pods of Job default/j and of Job default/k, each of which asks for a domain of rack of "
        "its own: 1 pair too many"
    ]
