"""HyperNodes from labels of nodes: the tree, the names, what is told."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from placer.base.errors import BadInstance, UsageError
from placer.base.quantity import Resources
from placer.cli import main
from placer.problem import HyperNode, Node
from placer.topology.discovery import discover_labels, hyper_nodes
from placer.topology.discovery.labels import read_keys
from tests.examples import examples
from tests.support import Document, instance_of, node, pod_group

Capture = pytest.CaptureFixture[str]
KEYS = ("switch", "rack", "row")


def nodes_of(labels: Mapping[str, Mapping[str, str]]) -> dict[str, Node]:
    return {name: Node(name, Resources(), each) for name, each in labels.items()}


def at(switch: str = "", rack: str = "", row: str = "") -> dict[str, str]:
    return {key: value for key, value in zip(KEYS, (switch, rack, row), strict=True) if value}


def found(labels: Mapping[str, Mapping[str, str]]) -> tuple[dict[str, Document], list[str]]:
    """HyperNodes by name, and every finding as text."""
    discovery = discover_labels(KEYS, nodes_of(labels))
    documents, named = hyper_nodes(discovery)
    return {each["metadata"]["name"]: each for each in documents}, [str(each) for each in (*discovery.findings, *named)]


def members(document: Document) -> list[tuple[str, str]]:
    return [(each["type"], each["selector"]["exactMatch"]["name"]) for each in document["spec"]["members"]]


TWO_ROWS = {
    "n1": at("s1", "r1", "a"),
    "n2": at("s1", "r1", "a"),
    "n3": at("s2", "r1", "a"),
    "n10": at("s3", "r1", "b"),
}


def test_manifests_are_those_of_volcanos_discovery_with_names_that_stay() -> None:
    documents, _ = found(TWO_ROWS)
    assert list(documents) == ["a.r1.s1", "a.r1.s2", "b.r1.s3", "a.r1", "b.r1", "a", "b"]
    assert documents["a.r1.s1"] == {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {
            "name": "a.r1.s1",
            "labels": {"volcano.sh/network-topology-source": "placer", "switch": "s1"},
            "annotations": {"placer.dev/domain": "a/r1/s1"},
        },
        "spec": {
            "tier": 1,
            "tierName": "switch",
            "members": [
                {"type": "Node", "selector": {"exactMatch": {"name": "n1"}}},
                {"type": "Node", "selector": {"exactMatch": {"name": "n2"}}},
            ],
        },
    }
    assert members(documents["a.r1"]) == [("HyperNode", "a.r1.s1"), ("HyperNode", "a.r1.s2")]
    assert documents["a"]["spec"]["tier"] == 3
    assert documents["a"]["metadata"]["labels"]["row"] == "a"


def test_one_rack_name_in_two_rows_is_two_racks_and_told() -> None:
    _, findings = found(TWO_ROWS)
    assert findings == [
        "LabelInTwoDomains label rack=r1 names 2 domains, one for each of row=a: Node n1 and 2 others; row=b: Node n10"
    ]


def test_labels_that_contradict_each_other_are_told_all_at_once() -> None:
    labels = {"n1": at("s1", "r1", "a"), "n2": at("s1", "r2", "a"), "n3": at("s2", "r3", "a"), "n4": at("s2", "", "a")}
    _, findings = found(labels)
    assert [each for each in findings if each.startswith("LabelInTwoDomains")] == [
        "LabelInTwoDomains label switch=s1 names 2 domains, one for each of rack=r1, row=a: Node n1; "
        "rack=r2, row=a: Node n2",
        "LabelInTwoDomains label switch=s2 names 2 domains, one for each of no rack, row=a: Node n4; "
        "rack=r3, row=a: Node n3",
    ]


def test_a_node_belongs_to_the_nearest_domain_whose_label_it_has() -> None:
    documents, findings = found({"n1": at("s1", "r1", "a"), "n2": at("", "r1", "a"), "n3": at("", "", "a"), "n4": {}})
    assert members(documents["a.r1"]) == [("HyperNode", "a.r1.s1"), ("Node", "n2")]
    assert members(documents["a"]) == [("HyperNode", "a.r1"), ("Node", "n3")]
    assert findings == [
        "NodeWithoutLabel Node n2 and 1 other, 2 of 4 nodes, with no label switch: that tier is skipped",
        "NodeWithoutLabel Node n3, 1 of 4 nodes, with no label rack: that tier is skipped",
        "NodeWithoutLabel Node n4, 1 of 4 nodes, with none of the labels switch, rack, row: no domain",
    ]


def test_labels_that_no_node_has_are_faults_all_at_once() -> None:
    with pytest.raises(BadInstance) as caught:
        discover_labels(("switch", "rak", "row"), nodes_of({"n1": {"switch": "s", "rack": "r", "row": ""}}), "file")
    assert [str(each) for each in caught.value.faults] == [
        "file: label rak: found no Node with a value of it, expected at least one; found like it: rack",
        "file: label row: found no Node with a value of it, expected at least one",
    ]


@pytest.mark.parametrize("text", ["", "a,,b", "a,b,a", f"a,{'x' * 254}"])
def test_keys_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--labels: found"):
        read_keys(text)
    assert read_keys(" a, b.example/c") == ("a", "b.example/c")


def test_names_that_come_to_one_are_told_apart_and_told() -> None:
    documents, findings = found({"n1": at(row="Row_1"), "n2": at(row="row-1"), "n3": at("s"), "n4": at("", "r")})
    (other,) = documents.keys() - {"row-1", "s", "r"}
    assert re.fullmatch(r"row-1-[0-9a-f]{8}", other)
    assert members(documents["row-1"]) == [("Node", "n2")]
    told = f"DomainNamesCollide HyperNode row-1: 2 domains come to row-1: Row_1 is {other}, row-1 is row-1"
    assert findings[-1] == told
    longer, _ = found({"n1": at("s" * 63, "r" * 63, "a")})
    assert [len(name) for name in longer] == [63, 63, 1], "Volcano's admission takes no longer name of a member"


VALUES = st.sampled_from(["", "a", "A", "b", "a.b", "a-b", "a_b", "A-b", "x" * 63, "X" * 63, "0", "a--b", "a..b"])
LABELS = st.dictionaries(
    st.from_regex("n[0-9]{1,2}", fullmatch=True), st.builds(at, VALUES, VALUES, VALUES), min_size=1
)


@examples(200)
@given(LABELS)
def test_any_labels_make_a_sound_tree_of_valid_names(labels: dict[str, dict[str, str]]) -> None:
    """The tree that is read of the manifests is that which a Policy's topologyKeys make; the order leaves no trace."""
    known = [key for key in KEYS if any(key in each for each in labels.values())]
    if not known:
        return
    discovery = discover_labels(known, nodes_of(labels))
    documents, _ = hyper_nodes(discovery)
    names = [each["metadata"]["name"] for each in documents]
    part = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    assert all(re.fullmatch(rf"{part}(\.{part})*", name) and len(name) <= 63 for name in names)
    assert len(set(names)) == len(names)
    again, _ = hyper_nodes(discover_labels(known, nodes_of(dict(reversed(labels.items())))))
    assert again == documents
    instance = instance_of(*(node(name, each) for name, each in labels.items()), *documents)
    assert instance.findings == ()
    title = {each["metadata"]["name"]: each["metadata"]["annotations"]["placer.dev/domain"] for each in documents}
    read = {
        title[name]: HyperNode(
            name=title[name],
            tier=each.tier,
            tier_name=each.tier_name,
            parent=each.parent and title[each.parent],
            children=tuple(sorted(title[child] for child in each.children)),
            nodes=each.nodes,
        )
        for name, each in instance.topology.hyper_nodes.items()
    }
    assert read == dict(discovery.tree.hyper_nodes)


# -------------------------------------------------------------------------------------------------------- command line


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "nodes.json"
    nodes = [node(name, labels) for name, labels in TWO_ROWS.items()]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes, pod_group("g")]}))
    return path


def test_what_is_printed_is_read_again_without_findings(cluster: Path, tmp_path: Path, capsys: Capture) -> None:
    made = tmp_path / "hyper-nodes.yaml"
    words = ["topology", "discover", str(cluster), "--labels", ",".join(KEYS)]
    assert main([*words, "-o", str(made)]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("placer: LabelInTwoDomains label rack=r1 names 2 domains")
    assert main(words) == 0
    assert capsys.readouterr().out == made.read_text()
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["items"] == list(yaml.safe_load_all(made.read_text()))
    assert main(["topology", "show", str(cluster), str(made), "--strict", "--json"]) == 0
    shown: Any = json.loads(capsys.readouterr().out)
    assert [(each["name"], each["nodes"]) for each in shown["domains"][:3]] == [("a", 3), ("a.r1", 3), ("a.r1.s1", 2)]


def test_findings_are_errors_with_strict(cluster: Path, capsys: Capture) -> None:
    assert main(["topology", "discover", str(cluster), "--labels", ",".join(KEYS), "--strict"]) == 3
    printed = capsys.readouterr()
    assert "LabelInTwoDomains" in printed.err
    assert not printed.out
    assert main(["topology", "discover", str(cluster), "--labels", "switch,rakc"]) == 3
    assert "found like it: rack" in capsys.readouterr().err
