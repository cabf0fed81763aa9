"""`placer defrag` as users type it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from placer.cli import main
from tests.cli.test_preempting import Capture, member, written
from tests.support import Document, hyper_node, listing, node, pod, pod_group, policy

#: A gang on both nodes of a rack.
RACK = "{} x 2 x nvidia.com/gpu=8 @ {}"


def racks(count: int, *, spare: int) -> list[Document]:
    """Racks of two nodes with a gang of one pod each, and ``spare`` nodes that are free, in no rack."""
    found: list[Document] = [node(f"s{number}", gpu=8) for number in range(spare)]
    for rack in range(count):
        names = [f"n{rack}{number}" for number in range(2)]
        found += [node(name, {"rack": f"r{rack}"}, gpu=8) for name in names]
        found.append(hyper_node(f"rack{rack}", 1, nodes=tuple(names)))
        found += [pod_group(f"eval{rack}", minMember=1), member(f"eval{rack}", 0, names[0], 900)]
    return found


def job(name: str = "job", **more: Any) -> Document:
    """A Volcano Job of two pods that fill a rack."""
    container = {"name": "main", "resources": {"requests": {"nvidia.com/gpu": "8"}}}
    task = {"name": "worker", "replicas": 2, "template": {"spec": {"containers": [container]}}}
    near = {"mode": "hard", "highestTierAllowed": 1}
    spec = {"minAvailable": 2, "schedulerName": "default-scheduler", "networkTopology": near, "tasks": [task]}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": spec} | more


def test_text_names_what_is_moved_what_has_room_and_the_proof(tmp_path: Path, capsys: Capture) -> None:
    cluster = written(tmp_path, racks(1, spare=1))
    assert main(["defrag", cluster, "--want", RACK.format(1, 1), "--quiet"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Move 1 gang:",
        "  default/eval0, 1 pod, priority 900, since 2026-11-23 07:40 UTC, from n00 to s0",
        "-> wanted/gang-1 has room: all 2 pods in rack0",
        "Proved by the least of any domain: no other choice moves less work: weight, then units.",
        "In 2 steps:",
        "  1. 1 pod goes, 1 pod moved",
        "  2. 2 pods bound",
    ]


def test_without_a_tier_the_gang_may_be_anywhere(tmp_path: Path, capsys: Capture) -> None:
    cluster = written(tmp_path, [each for each in racks(1, spare=2) if each["kind"] != "HyperNode"])
    assert main(["defrag", cluster, "--want", "1 x 2 x nvidia.com/gpu=8", "--quiet"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["-> wanted/gang-1 has room: all 2 pods on 2 nodes"]


def test_what_is_wanted_is_in_a_namespace_of_its_own(tmp_path: Path, capsys: Capture) -> None:
    mine = [pod(f"mine-{number}", node="s0", namespace=space) for number, space in enumerate(("wanted", "wanted-0"))]
    cluster = written(tmp_path, [*racks(1, spare=1), *mine])
    assert main(["defrag", cluster, "--want", RACK.format(1, 1), "--quiet"]) == 0
    assert "-> wanted-1/gang-1 has room: all 2 pods in rack0" in capsys.readouterr().out


@pytest.mark.parametrize("tier", ["1", "rack"])
def test_the_plan_is_a_placement_that_verify_and_report_take(tier: str, tmp_path: Path, capsys: Capture) -> None:
    cluster, plan = written(tmp_path, racks(1, spare=1)), str(tmp_path / "plan.json")
    assert main(["defrag", cluster, "--want", RACK.format(1, tier), "--quiet", "--json", "-o", plan]) == 0
    document = listing(capsys.readouterr().out)
    assert document == json.loads(Path(plan).read_text())
    assert {(each["pod"], each["node"]) for each in document["bindings"]} == {("gang-1-0", "n00"), ("gang-1-1", "n01")}
    assert [(move["pod"], move["from"], move["to"]) for move in document["moves"]] == [("eval0-0", "n00", "s0")]
    assert document["evictions"] == []
    assert [each["kind"] for each in document["wanted"]] == ["PodGroup", "Pod", "Pod"]
    assert document["wanted"][1]["spec"]["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    assert main(["verify", cluster, plan, "--json"]) == 0
    judged = listing(capsys.readouterr().out)
    assert "wanted" not in judged["notRead"]["notJudged"]
    assert {each["name"]: each["value"] for each in judged["objective"]}["movedUnits"] == 1
    assert main(["report", cluster, plan, "-o", str(tmp_path / "page.html"), "--json", "--quiet"]) == 0
    assert "PlacementOfOtherInput" not in capsys.readouterr().out


def test_a_plan_that_evicts_for_what_is_wanted_breaks_d3(tmp_path: Path, capsys: Capture) -> None:
    cluster, plan = written(tmp_path, racks(1, spare=1)), tmp_path / "plan.json"
    main(["defrag", cluster, "--want", RACK.format(1, 1), "--quiet", "-o", str(plan)])
    document = json.loads(plan.read_text())
    document["evictions"] = [{"namespace": "default", "pod": "eval0-0"}]
    document["moves"], document["steps"][0]["bind"] = [], []
    plan.write_text(json.dumps(document))
    capsys.readouterr()
    assert main(["verify", cluster, str(plan), "--json"]) == 1
    (broken,) = listing(capsys.readouterr().out)["violations"]
    assert broken["rule"] == "D3"


def test_a_job_in_a_file_is_what_its_controller_would_make(tmp_path: Path, capsys: Capture) -> None:
    cluster, wanted = written(tmp_path, racks(1, spare=1)), tmp_path / "job.json"
    wanted.write_text(json.dumps(job()))
    assert main(["defrag", cluster, "--want", str(wanted), "--quiet", "--json"]) == 0
    document = listing(capsys.readouterr().out)
    assert [each["kind"] for each in document["wanted"]] == ["Job"]
    assert len(document["bindings"]) == 2
    assert len(document["moves"]) == 1


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        ([node("new", cpu=64)], "found Node new, expected a job"),
        ([policy(disruption={"move": "none"})], "found Policy default, expected a job"),
        (
            [pod("there", node="n00", cpu=1), pod("new", cpu=1)],
            "found Pod default/there on Node n00, expected pods that wait for one",
        ),
    ],
)
def test_what_says_what_the_cluster_is_cannot_be_wanted(
    odd: list[Document], message: str, tmp_path: Path, capsys: Capture
) -> None:
    cluster, wanted = written(tmp_path, racks(1, spare=1)), tmp_path / "odd.json"
    wanted.write_text("\n".join(map(json.dumps, odd)))
    assert main(["defrag", cluster, "--want", str(wanted), "--quiet"]) == 2
    assert message in capsys.readouterr().err


def test_a_frontier_prices_each_more_until_one_is_not_to_be_had(tmp_path: Path, capsys: Capture) -> None:
    cluster = written(tmp_path, racks(3, spare=2))
    assert main(["defrag", cluster, "--want", RACK.format(4, 1), "--frontier", "--quiet"]) == 5
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["wanted", "pods", "moved", "units", "moved", "proved"],
        ["1", "1", "1", "yes"],
        ["2", "2", "2", "yes"],
        ["3", "-", "-", "no:", "not", "to", "be", "had"],
    ]
    assert main(["defrag", cluster, "--want", RACK.format(2, 1), "--frontier", "--quiet", "--json"]) == 0
    points = listing(capsys.readouterr().out)
    assert [(each["wanted"], each["room"], each["pods"], each["verdict"]) for each in points] == [
        (1, 1, 1, "OPTIMAL"),
        (2, 2, 2, "OPTIMAL"),
    ]
    assert all(each["movedUnits"]["value"] == each["movedUnits"]["bound"] for each in points)
    for number, each in enumerate(points):
        plan = tmp_path / f"plan{number}.json"
        plan.write_text(json.dumps(each["placement"]))
        assert main(["verify", cluster, str(plan), "--quiet"]) == 0


def test_no_more_moves_than_may_be_made(tmp_path: Path, capsys: Capture) -> None:
    cluster = written(tmp_path, racks(3, spare=2))
    assert main(["defrag", cluster, "--want", RACK.format(2, 1), "--max-moves", "1", "--quiet"]) == 5
    out = capsys.readouterr().out
    assert out.startswith("Room for 1 of 2; no more can be had (proved). Moving makes no room for more.")
    assert "wanted/gang-2 has no room: " in out


@pytest.mark.parametrize("words", [["--free-domains", "1@1"], ["--want", "1 x 1 x nvidia.com/gpu=8 @ 1"]])
def test_pods_that_may_not_move_are_named_where_they_stand_in_the_way(
    words: list[str], tmp_path: Path, capsys: Capture
) -> None:
    notebooks = [pod(f"notebook-{at}", gpu=1, node="n") for at in (1, 2)]
    documents = [node("n", gpu=8), hyper_node("r", 1, nodes=("n",)), *notebooks]
    assert main(["defrag", written(tmp_path, documents), *words, "--quiet"]) == 5
    said = "default/notebook-1 and default/notebook-2 keep their nodes, each since no controller would make it again."
    assert said in capsys.readouterr().out.splitlines()


def test_nothing_is_moved_where_there_is_room(tmp_path: Path, capsys: Capture) -> None:
    assert main(["defrag", written(tmp_path, racks(1, spare=1)), "--want", "1 x 1 x cpu=0 @ rack", "--quiet"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Nothing is moved: 1 of 1 can be had as it is.",
        "-> wanted/gang-1 has room: 1 pod on n00",
    ]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--want", "4 x 8 x gpu @ 1"], "--want '4 x 8 x gpu @ 1': expected 'N x PODS x RESOURCES [@ TIER]', such as"),
        (["--want", "2x2"], "--want '2x2': expected 'N x PODS x RESOURCES [@ TIER]', such as"),
        (
            ["--want", "2 gangs"],
            "--want '2 gangs': found no such file, expected one, or 'N x PODS x RESOURCES [@ TIER]'",
        ),
        (["--want", "1 x 1 x cpu=many @ 1"], "cpu: found many, expected a quantity, such as 8 or 500m"),
        (["--want", "1 x 1 x cpu=-1 @ 1"], "cpu: found -1, expected a quantity"),
        (["--want", "1000 x 1000 x cpu=1 @ 1"], "found 1,000,000 pods, expected at most 100,000"),
        (["--want", "1 x 1 x cpu=1 @ row"], "--want: found no tier or label row, expected one of 1 or a label key"),
        (["--want", RACK.format(1, 1), "--max-moves", "-1"], "max moves: found -1, expected at least 0"),
        (["--free-domains", "0@1"], "--free-domains 0@1: expected K@TIER with K from 1 on, such as 2@1 or 2@rack"),
        (["--free-domains", "1@9"], "--free-domains 1@9: found no one tier 9, expected one of 1"),
        (["--free-domains", "1@1", "--want", "x"], "--want: not allowed with argument --free-domains"),
        ([], "one of the arguments --want --free-domains is required"),
    ],
)
def test_what_cannot_be_asked(words: list[str], complaint: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["defrag", written(tmp_path, racks(1, spare=1)), "--quiet", *words]) == 2
    assert complaint in capsys.readouterr().err


def test_a_file_must_hold_pods_that_are_not_there_yet(tmp_path: Path, capsys: Capture) -> None:
    cluster, wanted = written(tmp_path, racks(1, spare=1)), tmp_path / "job.json"
    wanted.write_text(json.dumps(pod("there", node="n01", gpu=1)))
    assert main(["defrag", cluster, "--want", str(wanted), "--quiet"]) == 2
    assert "found no new pod that would wait, expected Pods that are not there yet" in capsys.readouterr().err
    assert main(["defrag", cluster, "--want", str(tmp_path / "no.json"), "--quiet"]) == 3


def test_domains_are_emptied_by_a_plan_that_verify_and_report_take(tmp_path: Path, capsys: Capture) -> None:
    cluster, plan = written(tmp_path, racks(2, spare=1)), str(tmp_path / "plan.json")
    assert main(["defrag", cluster, "--free-domains", "1@1", "--quiet", "-o", plan]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Move 1 gang:"
    assert lines[2:] == [
        "-> rack0 is empty",
        "Proved by the least of any domain: no other choice moves less work: weight, then units.",
    ]
    document = json.loads(Path(plan).read_text())
    assert document["freed"] == ["rack0"]
    assert document["bindings"] == []
    assert main(["verify", cluster, plan, "--json"]) == 0
    assert "freed" not in listing(capsys.readouterr().out)["notRead"]["notJudged"]
    assert main(["report", cluster, plan, "-o", str(tmp_path / "page.html"), "--quiet"]) == 0
    document["freed"] = ["rack1"]
    Path(plan).write_text(json.dumps(document))
    assert main(["verify", cluster, plan, "--quiet"]) == 1
    assert "D4 HyperNode rack1 is to be empty, and 2 pods would be there" in capsys.readouterr().out


def test_a_frontier_of_empty_domains(tmp_path: Path, capsys: Capture) -> None:
    cluster = written(tmp_path, racks(3, spare=1))
    assert main(["defrag", cluster, "--free-domains", "3@1", "--frontier", "--quiet"]) == 5
    assert [line.split()[:4] for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["1", "1", "1", "yes"],
        ["2", "2", "2", "yes"],
        ["3", "-", "-", "no:"],
    ]
