"""C15: exclusive units, and Jobs of JobSets beside an exclusive one, have no pods in one domain."""

import pytest

from placer.problem import PodState
from tests.judge import broken, messages
from tests.world import World, both, of_job, unit


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


# -------------------------------------------------------------------------------------------------- Jobs of JobSets


def _jobs() -> World:
    """Racks a = n1 n2 and b = n3, n4 in none. Job v of a JobSet is exclusive in racks; p and q are of other Jobs."""
    world = _world()
    for number in "12":
        world.pod(f"v{number}", asks=of_job("rack", exclusive=True, name="Job default/v"))
    for name in "pq":
        world.pod(name, asks=of_job("rack"))
    return world


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("v1@n1 v2@n2", 0),
        ("p@n1 q@n1", 0),
        ("v1@n1 p@n3 q@n4", 0),
        ("v1@n1 p@n2", 1),
        ("v1@n1 v2@n2 p@n1 q@n2", 4),
        ("j1@n1 p@n1", 0),  # exclusive, and of no JobSet: what is of none may be there
    ],
)
def test_an_exclusive_job_keeps_off_pods_of_other_jobs_of_job_sets(text: str, amount: int) -> None:
    found = [("C15", ("Domain rack=a", "Pod default/v1"), amount)] if amount else []
    assert broken(_jobs(), text) == found


def test_running_pods_of_either_kind_keep_the_other_off() -> None:
    world = _jobs()
    world.running("old-p", "n1", asks=of_job("rack"))
    world.running("old-v", "n3", asks=of_job("rack", exclusive=True, name="Job default/o"))
    assert [each[0] for each in broken(world, "v1@n2")] == ["C15"]
    assert [each[0] for each in broken(world, "p@n3")] == ["C15"]
    assert broken(world, "p@n2") == []


def test_jobs_that_run_in_one_domain_are_no_violation_until_one_grows_there() -> None:
    world = _jobs()
    world.running("old-p", "n3", asks=of_job("rack"))
    world.running("old-v", "n3", asks=of_job("rack", exclusive=True, name="Job default/o"))
    assert broken(world, "v1@n1") == []
    assert broken(world, "p@n3") == [("C15", ("Domain rack=b", "Pod default/old-v"), 1)]


@pytest.mark.parametrize("state", [PodState.TERMINATING, PodState.NOMINATED])
def test_terminating_and_nominated_pods_keep_no_job_off(state: PodState) -> None:
    world = _jobs()
    world.pod("old", state=state, node="n3", asks=of_job("rack"))
    assert broken(world, "v1@n3") == []


def test_the_sentence_names_pods_of_both() -> None:
    assert messages(_jobs(), "v1@n1 p@n2") == [
        "Domain rack=a holds Pod default/v1 of a JobSet's Job that asks for a domain of rack of its own, and Pod "
        "default/p of other Jobs of JobSets: 1 pair too many"
    ]
