"""C3: what a node is keeps pods off it."""

from dataclasses import replace

import pytest

from placer.problem import Constraints, Key, Requirement, Taint, Term, Toleration
from placer.rules import verify
from tests.judge import broken, messages, placement
from tests.world import World


def test_kept() -> None:
    world = World()
    world.node("n1", labels={"disk": "ssd"}, taints=["gpu"])
    world.pod("a", selector={"disk": "ssd"}, tolerates=["gpu"], not_on=["n2"])
    assert broken(world, "a@n1") == []


@pytest.mark.parametrize(
    ("node", "pod", "reason"),
    [
        ({"ready": False}, {}, "node is not Ready"),
        ({"unschedulable": True}, {}, "node is unschedulable"),
        ({"taints": ["gpu"]}, {}, "untolerated taint gpu:NoSchedule"),
        ({}, {"selector": {"disk": "ssd"}}, "node selector disk=ssd"),
        ({"labels": {"disk": "hdd"}}, {"selector": {"disk": "ssd"}}, "node selector disk=ssd"),
        ({}, {"not_on": ["n1"]}, "required node affinity"),
    ],
)
def test_each_reason_costs_one(node: dict[str, object], pod: dict[str, object], reason: str) -> None:
    world = World()
    world.node("n1", **node)  # type: ignore[arg-type]
    world.pod("a", **pod)  # type: ignore[arg-type]
    assert broken(world, "a@n1") == [("C3", ("Pod default/a", "Node n1"), 1)]
    assert messages(world, "a@n1") == [f"Pod default/a may not be on Node n1: {reason}"]


def test_two_pods_cost_two_whatever_the_reasons() -> None:
    world = World()
    world.node("n1", taints=["gpu"], ready=False)
    world.pod("a")
    world.pod("b")
    assert [found[0] for found in broken(world, "a@n1 b@n1")] == ["C3", "C3"]


def test_a_node_that_is_not_there() -> None:
    world = World()
    world.nodes("n1")
    world.pod("a")
    assert broken(world, "a@n9") == [("C3", ("Pod default/a", "Node n9"), 1)]
    assert messages(world, "a@n9") == ["Pod default/a may not be on Node n9: node is not in the instance"]


def test_a_pod_that_tolerates_it_may_be_on_a_cordoned_node() -> None:
    world = World()
    world.node("n1", unschedulable=True)
    world.pod("a", tolerates=["node.kubernetes.io/unschedulable"])
    assert broken(world, "a@n1") == []


def test_bound_pods_stay_where_they_are() -> None:
    world = World()
    world.node("n1", taints=["gpu"], ready=False)
    world.running("r", "n1")
    assert broken(world, "") == []


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration("gpu", "Equal", "a100", "NoSchedule"), True),
        (Toleration("gpu", "Equal", "a100"), True),
        (Toleration("gpu", "Equal", "h100"), False),
        (Toleration("gpu", "Equal", "a100", "NoExecute"), False),
        (Toleration("gpu", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("", "Equal", "a100"), False),
        (Toleration("tpu", "Exists"), False),
    ],
)
def test_tolerations(toleration: Toleration, tolerated: bool) -> None:
    world = World()
    world.nodes("n1")
    world.node_list["n1"] = replace(world.node_list["n1"], taints=(Taint("gpu", "a100", "NoSchedule"),))
    key = world.pod("a")
    world.pods[key] = replace(world.pods[key], constraints=Constraints(tolerations=(toleration,)))
    assert (broken(world, "a@n1") == []) is tolerated


@pytest.mark.parametrize(
    ("operator", "values", "holds"),
    [
        ("In", ("7", "8"), True),
        ("In", ("8",), False),
        ("NotIn", ("8",), True),
        ("NotIn", ("7",), False),
        ("Exists", (), True),
        ("DoesNotExist", (), False),
        ("Gt", ("6",), True),
        ("Gt", ("7",), False),
        ("Lt", ("8",), True),
        ("Lt", ("7",), False),
        ("Gt", ("much",), False),
    ],
)
def test_affinity_operators(operator: str, values: tuple[str, ...], holds: bool) -> None:
    """The node's label ``row`` is 7."""
    world = World()
    world.node("n1", labels={"row": "7"})
    key = Key("default", "a")
    world.pod("a")
    terms = (Term(expressions=(Requirement("row", operator, values),)),)
    world.pods[key] = replace(world.pods[key], constraints=Constraints(required=(terms,)))
    assert (verify(world.instance(), placement("a@n1")) == []) is holds
