"""C1: a pending pod gets at most one node; a bound pod keeps its node."""

import pytest

from placer.problem import PodState
from tests.judge import broken, messages
from tests.world import World


def world() -> World:
    made = World()
    made.nodes("n1 n2")
    made.pod("a")
    made.pod("b")
    made.running("r", "n1")
    made.pod("t", state=PodState.TERMINATING, node="n1")
    made.pod("other", state=PodState.NOMINATED, node="n1")
    return made


@pytest.mark.parametrize("text", ["", "a@n1", "a@n2 b@n2", "b@n2 a@n1"])
def test_kept(text: str) -> None:
    assert broken(world(), text) == []


def test_bound_twice_costs_one_per_further_binding() -> None:
    once_more = ("C1", ("Pod default/a", "Node n2"), 1)
    assert broken(world(), "a@n1 b@n2 a@n2 a@n2") == [once_more, once_more]
    assert messages(world(), "a@n1 a@n2") == ["Pod default/a is bound to Node n2 after node n1"]


def test_twice_on_one_node_is_twice() -> None:
    assert broken(world(), "a@n1 a@n1") == [("C1", ("Pod default/a", "Node n1"), 1)]


@pytest.mark.parametrize(("pod", "state"), [("r", "bound"), ("t", "terminating"), ("other", "nominated")])
@pytest.mark.parametrize("node", ["n1", "n2"])
def test_only_pending_pods_are_placed(pod: str, state: str, node: str) -> None:
    assert broken(world(), f"{pod}@{node}") == [("C1", (f"Pod default/{pod}", f"Node {node}"), 1)]
    assert f"is {state} on node n1" in messages(world(), f"{pod}@{node}")[0]


def test_a_pod_that_is_not_there() -> None:
    assert broken(world(), "ghost@n1") == [("C1", ("Pod default/ghost", "Node n1"), 1)]


def test_what_cannot_be_carried_out_takes_no_room() -> None:
    """n1 has 4 GPUs: r, t and other hold one each, a takes the last. A second r and a ghost take none."""
    assert [rule for rule, _, _ in broken(world(), "r@n1 ghost@n1 a@n1")] == ["C1", "C1"]
    assert [rule for rule, _, _ in broken(world(), "r@n1 ghost@n1 a@n1 b@n1")] == ["C1", "C1", "C2"]
