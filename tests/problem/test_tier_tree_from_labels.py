"""The tree from node labels (Policy topologyKeys)."""

from __future__ import annotations

from placer.problem import TopologyTree
from tests.support import Document, hyper_node, instance_of, node, pod, pod_group, policy

KEYS = ["switch", "rack", "idc"]


def labelled(name: str, **labels: str) -> Document:
    return node(name, labels)


def tree(*nodes: Document) -> TopologyTree:
    return instance_of(policy(topologyKeys=KEYS), *nodes).topology


def test_a_domain_is_its_path_of_labels() -> None:
    found = tree(
        labelled("n1", switch="s", rack="r", idc="a"),
        labelled("n2", switch="s", rack="r", idc="b"),
        labelled("n3", switch="t", rack="r", idc="a"),
    )
    assert [(name, each.tier, each.tier_name, each.parent) for name, each in found.hyper_nodes.items()] == [
        ("a", 3, "idc", None),
        ("a/r", 2, "rack", "a"),
        ("a/r/s", 1, "switch", "a/r"),
        ("a/r/t", 1, "switch", "a/r"),
        ("b", 3, "idc", None),
        ("b/r", 2, "rack", "b"),
        ("b/r/s", 1, "switch", "b/r"),
    ]
    assert found.hyper_nodes["a/r"].children == ("a/r/s", "a/r/t")
    assert found.hyper_nodes["a/r/s"].nodes == ("n1",)
    assert found.root_tier == 4


def test_a_node_skips_the_levels_that_it_has_no_label_for() -> None:
    found = tree(
        labelled("lowest", rack="r", idc="a"),
        labelled("middle", switch="s", idc="a"),
        labelled("highest", switch="s", rack="r"),
        labelled("empty", switch="", rack="", idc="a"),
        labelled("none"),
        labelled("all", switch="s", rack="r", idc="a"),
    )
    assert found.path("lowest") == ("a/r", "a")
    assert found.path("middle") == ("a//s", "a")
    assert found.path("highest") == ("/r/s", "/r")
    assert found.path("empty") == ("a",)
    assert found.path("none") == ()
    assert found.path("all") == ("a/r/s", "a/r", "a")


def test_hyper_nodes_come_before_labels() -> None:
    instance = instance_of(policy(topologyKeys=KEYS), labelled("n1", rack="r"), hyper_node("h", 1, nodes=("n1",)))
    assert list(instance.topology.hyper_nodes) == ["h"]


def test_a_tier_name_is_a_key() -> None:
    limit = {"mode": "hard", "highestTierName": "rack"}
    instance = instance_of(
        policy(topologyKeys=KEYS),
        labelled("n1", rack="r"),
        pod_group("g", minMember=1, networkTopology=limit),
        pod("p", group="g"),
    )
    (group,) = instance.groups.values()
    assert group.topology is not None
    assert group.topology.limit == 2
    assert {each.object for each in instance.findings} == {f"Node label {key}" for key in KEYS if key != "rack"}


def test_keys_that_no_node_has_leave_only_the_root_and_that_is_a_finding() -> None:
    limit = {"mode": "hard", "highestTierAllowed": 1}
    instance = instance_of(
        policy(topologyKeys=KEYS), node("n1"), pod_group("g", networkTopology=limit), pod("p", group="g")
    )
    assert instance.topology.root_tier == 4
    finding, *unknown = instance.findings
    assert [each.object for each in unknown] == [f"Node label {key}" for key in sorted(KEYS)]
    assert (finding.code, finding.object) == ("NoHyperNodes", "PodGroup default/g")
    assert "tier 4" in finding.message
