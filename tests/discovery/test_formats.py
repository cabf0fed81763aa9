"""Files of any format, the nodes that hosts are, and ``topology discover --from``."""

from __future__ import annotations

import gzip
import json
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
import yaml

from placer.base.errors import BadInstance
from placer.cli import main
from placer.topology.discovery import discover_file
from placer.topology.discovery.formats import NodeNames
from tests.discovery.fabrics import three_tiers
from tests.discovery.test_slurm import BLOCKS, TREE, YAML
from tests.support import node

Capture = pytest.CaptureFixture[str]

#: As topograph's graph engine writes it.
GRAPH: dict[str, Any] = {
    "instances": [
        {
            "id": f"I{leaf}{host}",
            "type": "H100",
            "network_layers": [f"leaf-{leaf}", f"spine-{leaf // 2}", "core"],
            "attributes": {"nvlink": f"nvl-{leaf}"},
        }
        for leaf in range(4)
        for host in range(2)
    ]
}
CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "slurm-topology"},
    "data": {"topology.conf": TREE},
}

FORMATS = {
    "fabric.txt": three_tiers(pods=2, leaves=2, hosts=2, spines=2, cores=1, rails=2),
    "tree.conf": TREE,
    "blocks.conf": BLOCKS + "BlockSizes=30,60\n",
    "topology.yaml": yaml.safe_dump(YAML),
    "graph.json": json.dumps(GRAPH),
    "config-map.yaml": yaml.safe_dump(CONFIG_MAP),
    "config-map.json": json.dumps(CONFIG_MAP),
}


def names(path: Path, **options: Any) -> list[str]:
    return list(discover_file(str(path), **options).tree.hyper_nodes)


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def work(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return work


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_made_of_any_format_is_read_again_without_findings(name: str, write: Any, capsys: Capture) -> None:
    path, made = write(name, FORMATS[name]), write("made.yaml", "")
    assert main(["topology", "discover", "--from", str(path), "-o", str(made), "--strict"]) == 0
    documents = list(yaml.safe_load_all(made.read_text()))
    hosts = {
        each["selector"]["exactMatch"]["name"]
        for document in documents
        for each in document["spec"]["members"]
        if each["type"] == "Node"
    }
    nodes = write(
        "nodes.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": [node(each) for each in hosts]})
    )
    capsys.readouterr()
    assert main(["topology", "show", str(nodes), str(made), "--strict", "--json"]) == 0
    domains = json.loads(capsys.readouterr().out)["domains"]
    assert len(domains) == len(documents) > 2
    assert sum(each["nodes"] for each in domains if each["parent"] is None) == len(hosts)
    placement = write("placement.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": []}))
    assert main(["verify", str(nodes), str(made), str(placement), "--strict"]) == 0
    assert main(["topology", "discover", "--from", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.partition("VALID")[2].partition("\n")[2])["items"] == documents


def test_packed_files_and_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    packed = tmp_path / "conf.yaml.gz"
    packed.write_bytes(gzip.compress(TREE.encode()))
    assert names(packed) == ["s0", "s1", "s2", "s3"]
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(TREE.encode())))
    assert main(["topology", "discover", "--from", "-", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["items"]) == 4


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "nothing"),
        ("hello", "a str"),
        ("{}", "a dict"),
        ("[]", "a list"),
        ("a: [", "did not find expected node content"),
        ('{"a": ', "Expecting value"),
        ("kind: ConfigMap\ndata: {x: y}\n", "a dict"),
        ('{"instances": []}', "none"),
        ("- 1\n", "list"),
    ],
)
def test_what_is_of_no_format(text: str, found: str, write: Any, capsys: Capture) -> None:
    path = write("file.txt", text)
    assert main(["topology", "discover", "--from", str(path)]) == 3
    told = capsys.readouterr().err
    assert found in told
    assert str(path) in told


def test_topology_where_there_is_no_choice(write: Any, capsys: Capture) -> None:
    path = write("graph.json", json.dumps(GRAPH))
    assert main(["topology", "discover", "--from", str(path), "--topology", "x"]) == 2
    assert main(["topology", "discover", "--labels", "rack", "--topology", "x"]) == 2
    assert main(["topology", "discover", "--labels", "rack", "--from", str(path)]) == 2
    assert main(["topology", "discover"]) == 2
    assert "--labels --from" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--dry-run"], "--dry-run: found no --apply with it"),
        (["--prune", "--force-conflicts"], "--prune, --force-conflicts: found no --apply with it"),
        (["--apply", "nodes.json"], "--apply: found INSTANCE with it"),
        (["--apply", "-o", "-"], "-o - --apply: found two documents for standard output"),
        (["--topology", "x"], "--topology: found 'x' with --labels"),
    ],
)
def test_flags_that_make_no_sense_together(words: list[str], told: str, capsys: Capture) -> None:
    assert main(["topology", "discover", "--labels", "rack", *words]) == 2
    assert told in capsys.readouterr().err


# --------------------------------------------------------------------------------------------------------------- graph


def test_accelerated_domains_are_the_first_tier(write: Any) -> None:
    found = discover_file(str(write("graph.json", json.dumps(GRAPH))))
    tiers = {name: each.tier for name, each in found.tree.hyper_nodes.items()}
    assert tiers == {f"nvlink/nvl-{n}": 1 for n in range(4)} | {f"leaf-{n}": 2 for n in range(4)} | {
        "spine-0": 3,
        "spine-1": 3,
        "core": 4,
    }
    wide = json.loads(json.dumps(GRAPH))
    for each in wide["instances"]:
        each["attributes"]["nvlink"] = "one"
    other = discover_file(str(write("graph.json", json.dumps(wide))))
    assert other.notes == ("1 accelerated domains, such as one, lie below several switches: all of them are left out",)
    assert max(each.tier for each in other.tree.hyper_nodes.values()) == 3


def test_faults_of_a_graph(write: Any) -> None:
    bad = {"instances": [{"id": 1}, {"id": "a", "network_layers": "leaf"}, "x"]}
    with pytest.raises(BadInstance) as caught:
        discover_file(str(write("graph.json", json.dumps(bad))))
    assert [each.field for each in caught.value.faults] == ["instances[0]", "instances[1]", "instances[2]"]
    moved = {"instances": [{"id": "a", "network_layers": ["l", "s1"]}, {"id": "b", "network_layers": ["l", "s2"]}]}
    moved["instances"].append({"id": "c", "network_layers": ["k", "s1"]})
    with pytest.raises(BadInstance, match="switch l: found it on 2 switches: s1"):
        discover_file(str(write("graph.json", json.dumps(moved))))


# --------------------------------------------------------------------------------------------------------------- hosts


def test_which_node_a_host_is() -> None:
    unknown = NodeNames(None)
    assert [unknown.node(each) for each in ("Gpu-01", "a.b", "a_b", "-a", "x" * 254)] == [
        "gpu-01",
        "a.b",
        None,
        None,
        None,
    ]
    known = NodeNames(["a.example", "b", "c.one", "c.two", "d.x"])
    hosts = ("A", "a.example", "a.other", "b.example", "B", "c", "c.one", "e")
    assert [known.node(each) for each in hosts] == ["a.example", "a.example", None, "b", "b", None, "c.one", None]


def test_hosts_that_are_no_nodes_are_left_out_and_told(write: Any, capsys: Capture) -> None:
    """Of dev0 to dev17 the first seven are nodes: switch s2 has none, and goes."""
    path = write("tree.conf", TREE)
    nodes = [node(f"dev{number}.example") for number in range(7)] + [node("cpu-1")]
    cluster = write("nodes.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}))
    assert main(["topology", "discover", str(cluster), "--from", str(path), "--json"]) == 0
    printed = capsys.readouterr()
    made = {each["metadata"]["name"]: each for each in json.loads(printed.out)["items"]}
    assert list(made) == ["s0", "s1", "s3"]
    assert made["s1"]["spec"]["members"] == [{"type": "Node", "selector": {"exactMatch": {"name": "dev6.example"}}}]
    assert printed.err.splitlines() == [
        f"placer: HostUnknown host dev10 and 10 others of {path} are no nodes, and left out",
        f"placer: NodeNotInFabric Node cpu-1: no host of {path}, so in no domain",
    ]
    assert main(["topology", "discover", str(cluster), "--from", str(path), "--strict"]) == 3
    other = write("others.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": [node("x")]}))
    assert main(["topology", "discover", str(other), "--from", str(path)]) == 3
    assert "host dev0 and 17 others, none of them a node" in capsys.readouterr().err


def test_one_node_as_two_hosts_is_refused(write: Any) -> None:
    path = write("tree.conf", "SwitchName=a Nodes=n1\nSwitchName=b Nodes=N1\n")
    with pytest.raises(BadInstance, match="Node n1: found it as hosts on a, b, expected one switch"):
        discover_file(str(path))


def test_hostile_names_make_valid_objects(write: Any, capsys: Capture) -> None:
    evil = "\x1b[31m<script>"
    graph = {"instances": [{"id": "a", "network_layers": [f"leaf{evil}"]}, {"id": f"b{evil}", "network_layers": ["k"]}]}
    path = write("graph.json", json.dumps(graph))
    assert main(["topology", "discover", "--from", str(path)]) == 0
    printed = capsys.readouterr()
    assert "\x1b" not in printed.out + printed.err
    (made,) = yaml.safe_load_all(printed.out)
    assert made["metadata"]["name"] == "leaf-31m-script"
    assert made["metadata"]["annotations"]["placer.dev/domain"] == f"leaf{evil}"
