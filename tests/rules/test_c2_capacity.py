"""C2: per node and resource, requests of all its pods are at most allocatable; host ports do not clash."""

import pytest

from placer.problem import PodState
from tests.judge import broken, messages
from tests.world import World, port


def test_kept_to_the_last_piece() -> None:
    world = World()
    world.node("n1", 4, cpu=3000)
    world.pod("a", gpu=1, cpu=1000)
    world.pod("b", gpu=3, cpu=2000)
    assert broken(world, "a@n1 b@n1") == []


def test_each_resource_is_broken_by_its_own_amount() -> None:
    """5 of 4 GPUs; 3500m of 3000m cpu."""
    world = World()
    world.node("n1", 4, cpu=3000)
    world.pod("a", gpu=2, cpu=1500)
    world.pod("b", gpu=3, cpu=2000)
    assert broken(world, "a@n1 b@n1") == [("C2", ("Node n1",), 500), ("C2", ("Node n1",), 1)]
    assert messages(world, "a@n1 b@n1") == [
        "Node n1: cpu 3500m requested (0 before, 3500m new) of 3: 500m too much",
        "Node n1: nvidia.com/gpu 5 requested (0 before, 5 new) of 4: 1 too much",
    ]


def test_a_node_holds_no_more_pods_than_it_says() -> None:
    world = World()
    world.node("n1", 4, pods=2)
    world.running("r", "n1", gpu=0)
    world.pod("a", gpu=0)
    world.pod("b", gpu=0)
    assert broken(world, "a@n1") == []
    assert broken(world, "a@n1 b@n1") == [("C2", ("Node n1",), 1)]


def test_a_resource_that_the_node_does_not_have() -> None:
    world = World()
    world.node("n1", 0)
    world.pod("a", gpu=3)
    assert broken(world, "a@n1") == [("C2", ("Node n1",), 3)]


@pytest.mark.parametrize("state", [PodState.BOUND, PodState.TERMINATING, PodState.NOMINATED])
def test_whoever_holds_room_holds_it(state: PodState) -> None:
    """3 of 4 GPUs are held: 1 fits, 2 are one too many."""
    world = World()
    world.node("n1", 4)
    world.pod("held", gpu=3, state=state, node="n1")
    world.pod("a", gpu=1)
    world.pod("b", gpu=2)
    assert broken(world, "a@n1") == []
    assert broken(world, "b@n1") == [("C2", ("Node n1",), 1)]


def test_what_bound_pods_break_is_theirs_until_a_new_pod_asks_for_the_same() -> None:
    """6 of 4 GPUs are taken: a pod that asks for cpu alone adds nothing to that, one that asks for a GPU does."""
    world = World()
    world.node("n1", 4, cpu=1000)
    world.running("r", "n1", gpu=6)
    world.pod("a", gpu=0, cpu=1000)
    world.pod("b", gpu=1)
    assert broken(world, "") == []
    assert broken(world, "a@n1") == []
    assert broken(world, "b@n1") == [("C2", ("Node n1",), 3)]


@pytest.mark.parametrize(
    ("mine", "clashes"),
    [
        (port(80), True),
        (port(80, ip="10.0.0.1"), True),
        (port(80, ip="10.0.0.2"), False),
        (port(81), False),
        (port(80, protocol="UDP"), False),
    ],
)
def test_host_ports(mine: object, clashes: bool) -> None:
    """The pod that runs has 10.0.0.1:80/TCP; 0.0.0.0 is every address."""
    world = World()
    world.nodes("n1 n2")
    world.running("r", "n1", ports=[port(80, ip="10.0.0.1")])
    world.pod("a", ports=[mine])  # type: ignore[list-item]
    expected = [("C2", ("Node n1", "Pod default/a", "Pod default/r"), 1)] if clashes else []
    assert broken(world, "a@n1") == expected
    assert broken(world, "a@n2") == []


def test_host_ports_of_new_pods_clash_pair_by_pair() -> None:
    """Three pods with one port: three pairs; pods that clash before are no matter of ours."""
    world = World()
    world.nodes("n1 n2")
    for name in "abc":
        world.pod(name, ports=[port(80)])
    world.running("r", "n2", ports=[port(80)])
    world.running("s", "n2", ports=[port(80)])
    assert [amount for _, _, amount in broken(world, "a@n1 b@n1 c@n1")] == [1, 1, 1]
    assert broken(world, "a@n1") == []


def test_a_terminating_and_a_nominated_pod_keep_their_ports() -> None:
    world = World()
    world.nodes("n1 n2 n3")
    world.pod("t", state=PodState.TERMINATING, node="n1", ports=[port(80)])
    world.pod("o", state=PodState.NOMINATED, node="n2", ports=[port(80)])
    world.pod("a", ports=[port(80)])
    assert [len(broken(world, f"a@{node}")) for node in ("n1", "n2", "n3")] == [1, 1, 0]
