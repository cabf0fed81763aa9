"""HyperNode objects to the tree: members, tiers, and each way to be broken with its finding (C7, "broken tree")."""

from __future__ import annotations

from typing import Any

import pytest
import re2

from placer.problem import Instance
from placer.problem.tier_tree import names_found
from tests.support import Document, hyper_node, instance_of, node

NODES = tuple(node(f"n{number}", {"rack": f"r{number // 2}"}) for number in range(6))


def tree(*hyper_nodes: Document, nodes: tuple[Document, ...] = NODES) -> Instance:
    return instance_of(*nodes, *hyper_nodes)


def of(name: str, tier: int, *members: tuple[str, dict[str, Any]]) -> Document:
    """A HyperNode with members of any selector."""
    return hyper_node(name, tier) | {
        "spec": {"tier": tier, "members": [{"type": kind, "selector": selector} for kind, selector in members]}
    }


def exact(name: str) -> dict[str, Any]:
    return {"exactMatch": {"name": name}}


def regex(pattern: str) -> dict[str, Any]:
    return {"regexMatch": {"pattern": pattern}}


def label(**labels: str) -> dict[str, Any]:
    return {"labelMatch": {"matchLabels": labels}}


def codes(instance: Instance) -> list[tuple[str, str]]:
    return [(finding.code, finding.object) for finding in instance.findings]


def test_without_hyper_nodes_the_root_has_tier_1() -> None:
    assert tree().topology.root_tier == 1


def test_a_pattern_is_found_anywhere_in_the_name() -> None:
    nodes = (node("n1"), node("n10"), node("an1"), node("n2"))
    topology = tree(of("a", 1, ("Node", regex("n1"))), of("b", 1, ("Node", regex("^n2$"))), nodes=nodes).topology
    assert topology.hyper_nodes["a"].nodes == ("an1", "n1", "n10")
    assert topology.hyper_nodes["b"].nodes == ("n2",)


def test_labels_select_nodes() -> None:
    expressions = {"labelMatch": {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1", "r2"]}]}}
    topology = tree(of("a", 1, ("Node", label(rack="r0"))), of("b", 1, ("Node", expressions))).topology
    assert topology.hyper_nodes["a"].nodes == ("n0", "n1")
    assert topology.hyper_nodes["b"].nodes == ("n2", "n3", "n4", "n5")


def test_several_members_are_a_union_and_may_be_nodes_and_hyper_nodes() -> None:
    instance = tree(
        of("a", 1, ("Node", label(rack="r0")), ("Node", exact("n2")), ("Node", regex("[01]$"))),
        of("b", 2, ("HyperNode", exact("a")), ("Node", exact("n5"))),
    )
    assert instance.findings == ()
    assert instance.topology.hyper_nodes["a"].nodes == ("n0", "n1", "n2")
    assert instance.topology.hyper_nodes["b"].nodes == ("n5",)
    assert instance.topology.path("n5") == ("b",)


MEMBERS = {
    "an absent node": (("Node", exact("n9")), "its member Node n9 is not in the instance"),
    "an absent HyperNode": (("HyperNode", exact("x")), "its member HyperNode x is not in the instance"),
    "HyperNodes by pattern": (
        ("HyperNode", regex("b")),
        "members of type HyperNode are taken by exactMatch only, and regexMatch adds none",
    ),
    "HyperNodes by label": (
        ("HyperNode", label(rack="r0")),
        "members of type HyperNode are taken by exactMatch only, and labelMatch adds none",
    ),
    "no regular expression": (
        ("Node", regex("n(1")),
        "its pattern 'n(1' is no regular expression of RE2: missing ): n(1",
    ),
    "a pattern without a node": (("Node", regex("^m")), "its pattern '^m' takes no node"),
    "a label without a node": (("Node", label(rack="R0")), "its labelMatch rack=R0 takes no node"),
    "labels without a node": (
        ("Node", {"labelMatch": {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["a", "b"]}]}}),
        "its labelMatch rack In a, b takes no node",
    ),
    "an empty label selector": (("Node", label()), "an empty labelMatch selects no node"),
}


@pytest.mark.parametrize("case", MEMBERS)
def test_members_that_add_nothing(case: str) -> None:
    member, message = MEMBERS[case]
    instance = tree(of("a", 2, member, ("Node", exact("n0"))), hyper_node("b", 1, nodes=("n1",)))
    (finding,) = instance.findings
    assert (finding.code, finding.object) == ("HyperNodeMember", "HyperNode a")
    assert finding.message == f"HyperNode a: {message}"
    # The HyperNode itself stays, with what it has besides.
    assert instance.topology.hyper_nodes["a"].nodes == ("n0",)
    assert instance.topology.hyper_nodes["a"].children == ()


def test_a_cycle_is_left_out_with_all_above_it_and_what_is_below_stays() -> None:
    instance = tree(
        hyper_node("leaf", 1, nodes=("n0",)),
        hyper_node("x", 2, children=("y", "leaf")),
        hyper_node("y", 3, children=("x",)),
        hyper_node("top", 5, children=("y", "beside")),
        hyper_node("beside", 1, nodes=("n1",)),
        hyper_node("self", 7, children=("self",)),
    )
    assert codes(instance) == [
        ("HyperNodeCycle", "HyperNode self"),
        ("HyperNodeCycle", "HyperNode x"),
        ("HyperNodeTwoParents", "HyperNode y"),
    ]
    assert instance.findings[1].message == "HyperNodes x, y contain each other in a cycle"
    assert list(instance.topology.hyper_nodes) == ["beside", "leaf"]
    assert instance.topology.hyper_nodes["leaf"].parent is None
    # Those left out count for the tier of the root.
    assert instance.topology.root_tier == 8


def test_two_parents() -> None:
    instance = tree(
        hyper_node("leaf", 1, nodes=("n0",)),
        hyper_node("other", 1, nodes=("n1",)),
        hyper_node("p", 2, children=("leaf", "other")),
        hyper_node("q", 2, children=("leaf",)),
        hyper_node("r", 3, children=("q",)),
        hyper_node("far", 2, nodes=("n5",)),
    )
    assert codes(instance) == [("HyperNodeTwoParents", "HyperNode leaf")]
    assert instance.findings[0].message == "HyperNode leaf is a member of 2 parents: HyperNodes p, q"
    assert list(instance.topology.hyper_nodes) == ["far", "other"]
    assert instance.topology.root_tier == 4


def test_a_node_in_two_leaves() -> None:
    instance = tree(
        hyper_node("a", 1, nodes=("n0", "n1", "n2")),
        hyper_node("b", 1, nodes=("n1", "n2", "n3")),
        hyper_node("c", 1, nodes=("n4",)),
        hyper_node("top", 2, children=("a", "c")),
    )
    assert codes(instance) == [("HyperNodeOverlap", "HyperNode a")]
    message = "HyperNodes a, b share Node n1 and 1 more, but do not lie one above the other"
    assert instance.findings[0].message == message
    assert list(instance.topology.hyper_nodes) == ["c"]


def test_an_ancestor_may_list_the_nodes_below_it() -> None:
    instance = tree(hyper_node("a", 1, nodes=("n0",)), hyper_node("top", 2, nodes=("n0", "n1"), children=("a",)))
    assert instance.findings == ()
    assert instance.topology.path("n0") == ("a", "top")
    assert instance.topology.path("n1") == ("top",)


@pytest.mark.parametrize("tier", [1, 0])
def test_a_tier_that_is_not_above_the_childs(tier: int) -> None:
    instance = tree(
        hyper_node("a", 1, nodes=("n0",)),
        hyper_node("p", tier, children=("a",)),
        hyper_node("top", 4, children=("p", "b")),
        hyper_node("b", 1, nodes=("n1",)),
    )
    assert codes(instance) == [("HyperNodeTierOrder", "HyperNode p")]
    message = f"HyperNode p has tier {tier}, which is not above that of its members a (tier 1)"
    assert instance.findings[0].message == message
    assert list(instance.topology.hyper_nodes) == ["a", "b"]


def test_patterns_that_do_not_fit_into_one_automaton_are_matched_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"node-{number}" for number in range(40)]
    wanted = ["node-1", "^node-1$", "-[0-4]$", "x", ""]
    together = names_found(wanted, names)

    def too_large(_: object) -> None:
        raise re2.error("failed to compile Set")

    monkeypatch.setattr(re2.Set, "Compile", too_large)
    assert names_found(wanted, names) == together
    assert together["^node-1$"] == ["node-1"]
    assert len(together["node-1"]) == 11
    assert together["x"] == []
    assert together[""] == names
