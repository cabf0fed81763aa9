"""The tree from node labels (Policy topologyKeys)."""

from __future__ import annotations

from placer.problem import TopologyTree
from tests.support import Document, instance_of, node, pod, pod_group, policy

KEYS = ["switch", "rack", "idc"]


def labelled(name: str, **labels: str) -> Document:
    return node(name, labels)


def tree(*nodes: Document) -> TopologyTree:
    return instance_of(policy(topologyKeys=KEYS), *nodes).topology


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
