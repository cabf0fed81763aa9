"""``placer topology show``: what is used and free in each domain, as JSON and as a tree of bars."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from placer.cli import main
from placer.problem.domains import domains_of, natural
from tests.netdocs import costs, network_topology, weights
from tests.support import Document, hyper_node, instance_of, node, pod, policy

Capture = pytest.CaptureFixture[str]

#: Two leaves of two nodes below a spine, and a node in no domain; pods on a1, b1 and the node outside.
CLUSTER = [
    node("a1", gpu=8),
    node("a2", gpu=8),
    node("b1", gpu=8),
    {**node("b2", gpu=8), "spec": {"unschedulable": True}},
    node("lone"),
    hyper_node("leaf-10", 1, nodes=("a1", "a2"), tier_name="leaf"),
    hyper_node("leaf-2", 1, nodes=("b1", "b2"), tier_name="leaf"),
    hyper_node("spine", 2, children=("leaf-10", "leaf-2")),
    pod("runs", node="a1", cpu="1500m", gpu=4),
    pod("goes", node="b1", gpu=2, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
    pod("other", node="lone", cpu=2),
    pod("waits", gpu=8),
]


@pytest.fixture
def written(tmp_path: Path) -> Any:
    """Write objects as one file, and say where."""

    def write(*documents: Document) -> str:
        path = tmp_path / "instance.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)}))
        return str(path)

    return write


def shown(capsys: Capture, *words: str) -> list[str]:
    assert main(["topology", "show", *words]) == 0
    return capsys.readouterr().out.splitlines()


def test_what_is_used_and_free_in_each_domain(written: Any, capsys: Capture) -> None:
    """Terminating pods hold their room, pending ones none; the cordoned node b2 has nothing free."""
    assert main(["topology", "show", written(*CLUSTER), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document.keys() == {"apiVersion", "kind", "domains", "findings"}
    assert document["domains"][0] == {
        "name": "spine",
        "tier": 2,
        "tierName": None,
        "parent": None,
        "nodes": 4,
        "used": {"cpu": "1500m", "memory": "0", "nvidia.com/gpu": "6", "pods": "2"},
        "free": {"cpu": "22500m", "memory": "96Gi", "nvidia.com/gpu": "18", "pods": "328"},
    }
    rest = [(each["name"], each["tierName"], each["parent"], each["nodes"]) for each in document["domains"][1:]]
    assert rest == [("leaf-2", "leaf", "spine", 2), ("leaf-10", "leaf", "spine", 2)]
    leaf = document["domains"][1]
    assert (leaf["used"]["nvidia.com/gpu"], leaf["free"]["nvidia.com/gpu"]) == ("2", "6")
    assert document["findings"] == []


def test_the_whole_and_what_is_in_no_domain() -> None:
    report = domains_of(instance_of(*CLUSTER))
    assert (report.whole.tier, report.whole.nodes, report.whole.room.used["cpu"]) == (3, 5, 3500)
    assert (report.outside.nodes, report.outside.room.used["cpu"], report.outside.room.free["cpu"]) == (1, 2000, 6000)
    assert report.whole.room.closed == {"cpu": 8000, "memory": 32 * 2**30, "nvidia.com/gpu": 8, "pods": 110} | {
        name: 0 for name in report.whole.room.closed if name not in ("cpu", "memory", "nvidia.com/gpu", "pods")
    }


def test_an_over_full_node_takes_no_room_from_another() -> None:
    """8 cpu and 9 asked for on n1: nothing is free there, and all 8 of n2 are."""
    objects = [node("n1"), node("n2"), hyper_node("leaf", 1, nodes=("n1", "n2")), pod("big", node="n1", cpu=9)]
    (leaf,) = domains_of(instance_of(*objects)).domains
    assert (leaf.room.used["cpu"], leaf.room.free["cpu"]) == (9000, 8000)


def test_the_tree_as_text(written: Any, capsys: Capture) -> None:
    lines = shown(capsys, written(*CLUSTER))
    assert lines[0] == "domain            tier  nodes  used  free  nvidia.com/gpu"
    assert lines[1].startswith("cluster              3      5     6    18  ")
    assert [line[:16].rstrip() for line in lines[1:6]] == [
        "cluster",
        "  spine",
        "    leaf-2",
        "    leaf-10",
        "  (in no domain)",
    ]
    assert max(cell_len(line) for line in lines[1:6]) == 80
    bars = [line[43:] for line in lines[1:6]]
    assert (bars[3].count("█"), bars[3].count("░"), bars[3].count("▒")) == (9, 28, 0)  # 4 and 12 of 16
    assert (bars[2].count("█"), bars[2].count("░"), bars[2].count("▒")) == (5, 14, 18)  # 2, 6 and 8 of 16
    assert not bars[4].strip(), "no GPU there"
    assert lines[7] == "nvidia.com/gpu: █ used, ░ free, ▒ left on nodes that take no pods (cordoned, not"
    assert "tiers: 1 leaf" in lines


def test_another_resource(written: Any, capsys: Capture) -> None:
    path = written(*CLUSTER)
    lines = shown(capsys, path, "--resource", "memory")
    assert lines[1].split()[:5] == ["cluster", "3", "5", "0", "128Gi"]
    assert shown(capsys, path, "--resource", "cpu")[1].split()[3:5] == ["3.5", "28.5"]
    assert main(["topology", "show", path, "--resource", "gpus"]) == 2
    assert "found 'gpus', expected one of cpu, memory, nvidia.com/gpu, pods" in capsys.readouterr().err


def test_without_gpus_the_bars_are_about_what_most_of_is_used(written: Any, capsys: Capture) -> None:
    objects = [node("n1"), hyper_node("leaf", 1, nodes=("n1",))]
    assert shown(capsys, written(*objects))[0].endswith("  cpu")
    assert shown(capsys, written(*objects, pod("p", node="n1", cpu=1, memory="16Gi")))[0].endswith("  memory")


def test_one_domain_and_some_levels(written: Any, capsys: Capture) -> None:
    path = written(*CLUSTER)
    assert [line.split()[0] for line in shown(capsys, path, "--domain", "leaf-2")[1:2]] == ["leaf-2"]
    lines = shown(capsys, path, "--depth", "1")
    assert [line.split()[0] for line in lines[1:3]] == ["cluster", "spine"]
    assert "2 domains more are below these: --depth N or --domain NAME shows them" not in lines, "it was asked for"
    assert main(["topology", "show", path, "--domain", "spine", "--depth", "1", "--json"]) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)["domains"]] == ["spine"]
    assert main(["topology", "show", path, "--domain", "leaf-3"]) == 2
    assert "found 'leaf-3', expected the name of a domain; did you mean leaf-2?" in capsys.readouterr().err
    assert main(["topology", "show", path, "--depth", "0"]) == 2
    assert "--depth: found 0" in capsys.readouterr().err


def test_of_many_domains_the_upper_levels_are_shown(written: Any, capsys: Capture) -> None:
    """70 leaves below 7 spines: the spines, and how many there are more."""
    nodes = [node(f"n{number}", {"leaf": f"l{number}", "spine": f"s{number // 10}"}) for number in range(70)]
    path = written(*nodes, policy(topologyKeys=["leaf", "spine"]))
    lines = shown(capsys, path)
    assert [line.split()[0] for line in lines[1:9]] == ["cluster", *(f"s{number}" for number in range(7))]
    assert "70 domains more are below these: --depth N or --domain NAME shows them" in lines
    assert "tiers: 2 spine" in lines
    assert len(shown(capsys, path, "--depth", "2")) > 77
    assert main(["topology", "show", path, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["domains"]) == 77


@pytest.mark.parametrize("columns", [30, 40, 60, 80, 200])
def test_lines_fit_the_terminal_and_numbers_are_whole(
    columns: int, written: Any, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    long = "a-domain-whose-name-is-longer-than-any-terminal-of-reasonable-width-is-wide-in-the-end-7"
    objects = [node("n1"), node("n2"), hyper_node(long, 1, nodes=("n1", "n2")), pod("p", node="n1", cpu=3)]
    lines = shown(capsys, written(*objects))
    width = max(37, min(columns, 80))  # what numbers and the least of a name take is never cut
    assert all(cell_len(line) <= width for line in lines)
    assert cell_len(lines[2]) == width
    assert lines[2].split()[1:5] == ["1", "2", "3", "13"]
    assert "…" in lines[2]
    assert lines[2].split("…")[1].split()[0].endswith("7"), "the end, where names differ, is kept"


def test_a_terminal_of_ascii(written: Any) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    words = [sys.executable, "-m", "placer", "topology", "show", written(*CLUSTER)]
    done = subprocess.run(words, capture_output=True, env=environment, check=True)
    lines = done.stdout.decode("ascii").splitlines()
    assert lines[3].endswith(f"{'#' * 5}{'-' * 14}{'x' * 18}")
    assert len(lines[3]) == 80


def test_escape_sequences_do_not_reach_the_terminal(written: Any, capsys: Capture) -> None:
    evil = "\x1b]0;owned\x07\x1b[31m"
    nodes = [node("n1", {"rack": f"r{evil}"})]
    lines = shown(capsys, written(*nodes, policy(topologyKeys=["rack"])))
    named = shown(capsys, written(node("n1"), hyper_node("h", 1, nodes=("n1",), tier_name=f"t{evil}")))
    for line in (*lines, *named):
        assert line.isprintable(), line
    assert any("r\\x1b]0;owned" in line for line in lines)


def test_findings_of_the_tree_come_first(written: Any, capsys: Capture) -> None:
    objects = [*CLUSTER, hyper_node("other", 1, nodes=("a1", "gone")), pod("p", spec={"priorityClassName": "none"})]
    path = written(*objects)
    assert main(["topology", "show", path, "--json"]) == 0
    codes = [each["code"] for each in json.loads(capsys.readouterr().out)["findings"]]
    assert codes == ["HyperNodeMember", "HyperNodeOverlap", "UnknownReference"]
    assert any("HyperNodeOverlap" in line for line in shown(capsys, path))
    assert main(["topology", "show", path, "--strict"]) == 3


def test_no_domains(written: Any, capsys: Capture) -> None:
    lines = shown(capsys, written(node("n1")))
    told = "no domains: there is no sound HyperNode, and no Policy names topologyKeys that a node carries"
    assert " ".join(lines[-2:]) == told
    assert main(["topology", "show", written(node("n1")), "--json"]) == 0
    head = {"apiVersion": "placer.dev/v1alpha1", "kind": "TopologyReport"}
    assert json.loads(capsys.readouterr().out) == {**head, "domains": [], "findings": []}


def test_networks_are_named_with_the_command_for_their_costs(written: Any, capsys: Capture) -> None:
    path = written(node("n1"), network_topology(weights(region=costs(("a", "b", 1)))))
    lines = shown(capsys, path)
    assert any(line.startswith("NetworkTopology default/nt-default: ") for line in lines)
    assert f"  placer topology costs {path}" in lines


def test_it_is_written(written: Any, tmp_path: Path, capsys: Capture) -> None:
    path, target = written(*CLUSTER), tmp_path / "tree.json"
    assert main(["topology", "show", path, "-o", str(target)]) == 0
    assert capsys.readouterr().out.startswith("domain")
    assert main(["topology", "show", path, "-o", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(target.read_text())
    assert main(["topology", "show", path, "-o", str(tmp_path / "tree.txt")]) == 2


def test_numbers_in_names_count_by_their_size() -> None:
    names = ["leaf-10", "leaf-2", "leaf", "10", "2a", "leaf-02", "leaf-2-b"]
    assert sorted(names, key=natural) == ["2a", "10", "leaf", "leaf-02", "leaf-2", "leaf-2-b", "leaf-10"]
