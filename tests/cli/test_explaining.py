"""`placer explain` as users type it."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from placer import cli
from placer.cli import main
from tests.explain.hand_made import CASES
from tests.support import Document, hyper_node, listing, node, pod, pod_group, queue

Capture = pytest.CaptureFixture[str]

JOB: Document = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "train", "namespace": "ml"},
    "spec": {
        "minAvailable": 2,
        "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
        "tasks": [
            {
                "name": "w",
                "replicas": 2,
                "template": {
                    "spec": {"containers": [{"name": "m", "resources": {"requests": {"nvidia.com/gpu": "8"}}}]}
                },
            }
        ],
    },
}


def written(path: Path, documents: list[Any]) -> str:
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    return str(path)


def made(tmp_path: Path, name: str) -> str:
    return written(tmp_path / "cluster.json", list(next(case.documents for case in CASES if case.name == name)))


def racks(*sizes: int) -> list[Document]:
    names = [[f"r{rack}-{number}" for number in range(size)] for rack, size in enumerate(sizes)]
    found = [node(name, gpu=8) for rack in names for name in rack]
    return [*found, *(hyper_node(f"r{at}", 1, nodes=tuple(rack)) for at, rack in enumerate(names))]


def test_json_is_as_the_page_says(tmp_path: Path, capsys: Capture) -> None:
    assert main(["explain", made(tmp_path, "cordoned"), "--json"]) == 0
    (entry,) = listing(capsys.readouterr().out)
    keys = ["group", "causes", "otherCauses", "admitted", "pods", "equal", "changes", "gated"]
    assert list(entry) == keys
    assert (entry["admitted"], entry["pods"], entry["equal"]) == (False, 1, [])
    assert entry["group"] == {"kind": "PodGroup", "namespace": "default", "name": "g"}
    (cause,) = entry["causes"]
    assert (list(cause), cause["code"], cause["rules"]) == (["code", "rules", "message"], "NoEligibleNode", ["C3"])
    change = entry["changes"][0]
    assert list(change) == ["message", "with", "without", "admitted", "loses"]
    assert change["with"][0]["spec"]["unschedulable"] is False


@pytest.mark.parametrize("name", ["cordoned", "one rack too small", "capability", "full by a gang", "tainted"])
def test_what_is_printed_can_be_pasted(name: str, tmp_path: Path, capsys: Capture) -> None:
    path = made(tmp_path, name)
    assert main(["explain", path, "--group", "default/g", "--changes", str(tmp_path / "changes")]) == 0
    lines = capsys.readouterr().out.splitlines()
    options = [shlex.split(line) for line in lines if line.strip().startswith("--")]
    assert options
    for words in options:
        assert main(["solve", path, "--method", "greedy", "--json", *words]) == 0
        groups = listing(capsys.readouterr().out)["groups"]
        assert [group["admitted"] for group in groups if group["name"] == "g"] == [True]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cordoned and without a GPU", "with one more: resolve one of the causes first, then explain again with it"),
        ("extended resource", "No change that was tried admits it, alone or with one more.\n"),
        ("missing, and one rack", "Alternatively, it would be enough to resolve all of:\n"),
    ],
)
def test_what_is_said_where_one_change_is_not_enough(name: str, said: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["explain", made(tmp_path, name)]) == 0
    assert said in capsys.readouterr().out


def test_a_gang_that_is_larger_than_its_tier_never_fits(tmp_path: Path, capsys: Capture) -> None:
    nodes = [node(f"n{at}", gpu=8) for at in range(3)]
    running = [pod(f"r{at}", gpu=1, node=f"n{at}") for at in range(3)]
    near = pod_group("g", minMember=3, networkTopology={"mode": "hard", "highestTierAllowed": 1})
    gang = [near, *(pod(f"g-{at}", gpu=8, group="g") for at in range(3))]
    path = written(tmp_path / "c.json", [*nodes, hyper_node("r", 1, nodes=("n0", "n1")), *running, *gang])
    assert main(["explain", path, "--group", "g", "--time-limit", "600"]) == 0
    said = (
        r"  It never fits, not even on the empty cluster: needs 3 pods .* in one HyperNode of tier <= 1; the roomiest"
    )
    assert re.search(said, capsys.readouterr().out)
    for command in ("queue", "solve"):
        assert main([command, path, "--time-limit", "600"]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert "never fits its tier" in text
        assert f"`placer explain --group default/g {path}` says which change would admit it" in text


def test_a_pod_that_never_fits_has_its_reason_once(tmp_path: Path, capsys: Capture) -> None:
    path = written(
        tmp_path / "c.json", [node("a", cpu=4), node("b", cpu=8), pod("r", node="b", cpu=8), pod("p", cpu=9)]
    )
    assert main(["explain", path, "--group", "p"]) == 0
    text = capsys.readouterr().out
    assert "  It never fits, not even on the empty cluster.\n" in text
    assert text.count("0/2 nodes have room for a pod of cpu 9") == 1


def test_no_change_is_said_to_be_tried_where_there_was_no_time(tmp_path: Path, capsys: Capture) -> None:
    assert main(["explain", made(tmp_path, "extended resource"), "--group", "g", "--time-limit", "1e-9"]) == 0
    assert "  No change was tried in time.\n" in capsys.readouterr().out


def test_equal_pods_are_told_once_and_get_one_answer(tmp_path: Path, capsys: Capture) -> None:
    """Whatever their indices, which nothing looks at; one that another priority tells apart stands alone."""
    pods = [pod(f"p-{at}", gpu=8, labels={"index": str(at)}) for at in range(4)]
    urgent = pod("z", gpu=8, spec={"priority": 10})
    path = written(tmp_path / "c.json", [node("a", gpu=8), *pods, urgent, node("b", gpu=8)])
    assert main(["explain", path]) == 0
    text = capsys.readouterr().out
    assert "Pod default/p-1 waits, and so do 2 equal ones: default/p-2 and default/p-3.\n" in text
    assert "Each of these alone admits one of them (" in text
    assert text.count("Outcompeted") == 1
    assert main(["explain", path, "--json"]) == 0
    entries = listing(capsys.readouterr().out)
    assert [(each["group"]["name"], [one["name"] for one in each["equal"]]) for each in entries] == [
        ("p-1", ["p-2", "p-3"]),
        ("p-2", ["p-1", "p-3"]),
        ("p-3", ["p-1", "p-2"]),
    ]
    assert all(each["changes"] == entries[0]["changes"] for each in entries)
    assert any("add 1 node like" in change["message"] for change in entries[0]["changes"])
    assert main(["explain", path, "--group", "p-3"]) == 0
    assert "Pod default/p-3 waits, and so do 2 equal ones: default/p-1 and default/p-2.\n" in capsys.readouterr().out


def test_optional_pods_of_a_group_that_is_admitted_are_told(tmp_path: Path, capsys: Capture) -> None:
    members = [pod(f"g-{at}", group="g", gpu=4) for at in range(3)]
    path = written(tmp_path / "c.json", [node("a", gpu=8), pod_group("g", minMember=1), *members])
    for words in ([], ["--group", "default/g"]):
        assert main(["explain", path, *words]) == 0
        text = capsys.readouterr().out
        assert "PodGroup default/g is admitted; 1 optional pod of it waits.\n  Because of this:\n" in text
        assert text.startswith("NAMESPACE" if not words else "PodGroup")
        assert "InsufficientResources (C2): ready; with 1 pod more: needs room for 3 pods of nvidia.com/gpu 4" in text
    assert main(["explain", path, "--json"]) == 0
    (entry,) = listing(capsys.readouterr().out)
    assert (entry["admitted"], entry["pods"]) == (True, 1)
    assert [cause["code"] for cause in entry["causes"]] == ["InsufficientResources"]
    assert [change["message"] for change in entry["changes"]] == ["add 1 node like a"]


def test_changes_for_optional_pods_let_one_more_in(tmp_path: Path, capsys: Capture) -> None:
    members = [pod(f"g-{at}", group="g", cpu=4) for at in range(4)]
    closed = {**node("m"), "spec": {"unschedulable": True}}
    objects = [node("n"), closed, queue("q", {"cpu": 8}), pod_group("g", minMember=1, queue="q"), *members]
    path = written(tmp_path / "c.json", objects)
    assert main(["explain", path]) == 0
    text = capsys.readouterr().out
    assert "1. uncordon Node m, and raise cpu in the capability of Queue q by 4\n" in text
    wider = ["--set", "queue/q:spec.capability.cpu=16"]
    assert main(["explain", path, *wider]) == 0
    text = capsys.readouterr().out
    assert "Each of these alone gives one more of them a node (" in text
    assert "1. uncordon Node m\n" in text
    assert main(["explain", path, *wider, "--set", "node/m:spec.unschedulable=false"]) == 0
    assert "No group waits." in capsys.readouterr().out


def test_no_change_is_told_for_optional_pods_that_required_ones_of_others_outdo(
    tmp_path: Path, capsys: Capture
) -> None:
    members = [pod(f"g-{at}", group="g", cpu=4) for at in range(2)]
    others = [pod(f"x-{at}", cpu=4) for at in range(3)]
    path = written(tmp_path / "c.json", [node("n"), pod_group("g", minMember=1), *members, *others])
    assert main(["explain", path, "--group", "g", "--json"]) == 0
    (entry,) = listing(capsys.readouterr().out)
    assert (entry["admitted"], entry["pods"]) == (True, 1)
    told = [(change["message"], [lost["name"] for lost in change["loses"]]) for change in entry["changes"]]
    assert told == [("raise the priority to 1 (its pods must be made again)", ["x-0"])]


def test_a_pod_stands_for_its_group_and_what_does_not_wait_says_so(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path / "c.json", [node("a", gpu=8), pod_group("g", minMember=1), pod("g-0", group="g", gpu=8)])
    for words in (["--group", "g-0"], ["g-0"]):
        assert main(["explain", path, *words]) == 0
        assert "does not wait for room" in capsys.readouterr().out
    assert main(["explain", path, "--json"]) == 0
    assert listing(capsys.readouterr().out) == []
    assert main(["explain", path, "--group", "none"]) == 2
    assert "no group, and no pod that waits, has that name; expected one of default/g; work without pods needs its" in (
        capsys.readouterr().err
    )


def gated(name: str, *gates: str, **rest: Any) -> Document:
    return pod(name, gpu=8, spec={"schedulingGates": [{"name": each} for each in gates]}, **rest)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--group", "p"], "found 1 pod that no scheduler may place: scheduling gates example.com/a and example.com/b"),
        (
            ["--group", "g"],
            "found 2 pods that no scheduler may place: scheduling gate example.com/quota, expected pods",
        ),
        (["--group", "j"], "found 1 pod that no scheduler may place: scheduling gate kueue.x-k8s.io/topology"),
        (["--group", "g-1"], "found 1 pod that no scheduler may place: scheduling gate example.com/quota"),
        (["--job", "JOB"], "found 1 pod that no scheduler may place: scheduling gate example.com/quota, expected Pods"),
        (["--group", "q"], "no group, and no pod that waits, has that name"),
    ],
)
def test_scheduling_gates_are_named(words: list[str], said: str, tmp_path: Path, capsys: Capture) -> None:
    members = [gated(f"g-{at}", "example.com/quota", group="g") for at in range(2)]
    members.append(gated("j-0", "kueue.x-k8s.io/topology", metadata={"labels": {"job-name": "j"}}))
    single = gated("p", "example.com/b", "example.com/a")
    ends = {**gated("q", "example.com/a"), "status": {"phase": "Failed"}}
    path = written(tmp_path / "c.json", [node("a", gpu=8), pod_group("g", minMember=2), *members, single, ends])
    job = written(tmp_path / "job.json", [gated("new", "example.com/quota")])
    assert main(["explain", path, *(job if word == "JOB" else word for word in words)]) == 2
    assert said in capsys.readouterr().err


def test_gated_pods_of_a_gang_that_waits_are_told(tmp_path: Path, capsys: Capture) -> None:
    members = [pod("g-0", group="g", gpu=8), gated("g-1", "example.com/quota", group="g")]
    path = written(tmp_path / "c.json", [node("a", gpu=8), pod_group("g", minMember=2), *members])
    assert main(["explain", path]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["default", "g", "0", "-", "1", "8", "-", "pods", "of", "it", "are", "missing"]
    assert lines[3:5] == [
        "PodGroup default/g waits. It has 1 pending pod, and needs 2.",
        "  It has 1 pod that no scheduler may place: scheduling gate example.com/quota.",
    ]
    assert main(["explain", path, "--json"]) == 0
    (entry,) = listing(capsys.readouterr().out)
    assert [cause["code"] for cause in entry["causes"]] == ["GangIncomplete"]
    assert entry["gated"] == [{"namespace": "default", "name": "g-1", "gates": ["example.com/quota"]}]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["why", "ml/train", "--json"], ["explain", "--group", "ml/train", "--json"]),
        (["why", "--json"], ["explain", "--json"]),
        (["why", "-n", "ml", "train"], ["explain", "-n", "ml", "--group", "train"]),
        (["why", "--json", "-f", "x.yaml", "train"], ["explain", "--json", "-f", "x.yaml", "--group", "train"]),
        (["why", "-n", "ml", "--group", "train", "x.yaml"], ["explain", "-n", "ml", "--group", "train", "x.yaml"]),
        (["audit", "x"], ["audit", "x"]),
    ],
)
def test_as_a_plug_in_of_kubectl(words: list[str], meant: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(cli, "main", lambda: asked.append(sys.argv[1:]) or 0)
    monkeypatch.setattr(sys, "argv", ["kubectl-placer", *words])
    assert cli.plugin() == 0
    assert asked == [meant]


@pytest.mark.parametrize(
    ("cluster", "answer", "code"),
    [
        (racks(2, 1), "now", 0),
        ([*racks(2, 1), pod("x", node="r0-0", gpu=8)], "change", 5),
        (racks(1, 1), "never", 5),
    ],
)
def test_a_job_that_is_not_submitted(
    cluster: list[Document], answer: str, code: int, tmp_path: Path, capsys: Capture
) -> None:
    path, job = written(tmp_path / "c.json", cluster), written(tmp_path / "job.json", [JOB])
    assert main(["explain", path, "--job", job, "--json"]) == code
    (entry,) = listing(capsys.readouterr().out)
    assert (entry["group"]["name"], entry["answer"]) == ("train", answer)
    assert len(entry["decidedBy"]) == 2
    assert (entry["causes"] == []) == (answer == "now")
    if answer == "now":
        assert (entry["tier"], entry["hyperNode"]) == (1, "r0")
    if answer == "change":
        assert ["pod/default/x"] in [each["without"] for each in entry["changes"]]
    assert main(["explain", path, "--job", job]) == code
    assert {"now": "fits now in r0 (tier 1)", "change": "does not fit now", "never": "never fits"}[
        answer
    ] in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "lines", "said"),
    [
        ([], 2, "fits now on the nodes there are"),
        (["--how-many"], 1, "1 fits, and no more"),
    ],
)
def test_what_holds_for_several_pods_of_a_job_is_said_once(
    words: list[str], lines: int, said: str, tmp_path: Path, capsys: Capture
) -> None:
    """One of four nodes is free; eleven pods wait for others, and differ by name alone."""
    cluster = [*(node(f"n{at}", cpu=8) for at in range(4)), *(pod(f"r{at}", node=f"n{at}", cpu=8) for at in range(3))]
    job = [pod(f"web-{at}", cpu=8) for at in range(12)]
    path, asked = written(tmp_path / "c.json", cluster), written(tmp_path / "job.json", job)
    assert main(["explain", path, "--job", asked, *words]) in (0, 5)
    text = capsys.readouterr().out
    first = [line for line in text.splitlines() if line.startswith("Pod default/web-")]
    assert len(first) == lines
    assert said in first[0]
    rest = 12 - lines
    assert f"  The same holds for {rest} more: default/web-" in text
    assert ("  12 pods of the job are single pods, each counted by itself" in text) is ("--how-many" in words)
    assert main(["explain", path, "--job", asked, *words, "--json"]) in (0, 5)
    assert len(json.loads(capsys.readouterr().out)["items"]) == 12


def test_others_that_wait_are_left_out_of_a_job(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path / "c.json", [*racks(2), pod("p", gpu=8), pod("q", gpu=8)])
    assert main(["explain", path, "--job", written(tmp_path / "job.json", [JOB]), "--json"]) == 0
    assert [entry["group"]["name"] for entry in listing(capsys.readouterr().out)] == ["train"]


def test_a_pod_that_runs_stands_for_its_group(tmp_path: Path, capsys: Capture) -> None:
    named = [pod_group("done.v1", minMember=1), pod("done.v1-0", group="done.v1", node="r0-0")]
    path = written(tmp_path / "c.json", [*racks(1), *named])
    assert main(["explain", path, "--group", "done.v1-0"]) == 0
    assert "PodGroup default/done.v1 does not wait" in capsys.readouterr().out


def test_a_job_of_several_groups_is_asked_about_in_turn(tmp_path: Path, capsys: Capture) -> None:
    """Each fits alone and only one of them fits; what is told of the second holds beside the first."""
    groups = [
        each for name in ("a", "b") for each in (pod_group(name, minMember=1), pod(f"{name}-0", group=name, gpu=5))
    ]
    path, job = written(tmp_path / "c.json", racks(1)), written(tmp_path / "job.json", groups)
    assert main(["explain", path, "--job", job, "--json"]) == 5
    first, second = listing(capsys.readouterr().out)
    assert (first["answer"], second["answer"]) == ("now", "change")
    assert [cause["code"] for cause in second["causes"]] == ["InsufficientResources"]
    messages = [change["message"] for change in second["changes"]]
    assert "add 1 node like r0-0 in r0" in messages
    assert main(["explain", path, "--job", job]) == 5
    assert "b does not fit now with default/a of the same job" in capsys.readouterr().out


@pytest.mark.parametrize("job", [[node("z", gpu=1)], [pod("p", gpu=1)], [pod("q", node="r0-0")], []])
def test_a_job_without_new_pods_is_refused(job: list[Document], tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path / "c.json", [*racks(1), pod("p", gpu=1)])
    assert main(["explain", path, "--job", written(tmp_path / "job.json", job)]) == 2
    assert "--job: found no new pod that would wait" in capsys.readouterr().err


def test_how_many_copies_fit_and_with_a_node_of_each_rack_lost(tmp_path: Path, capsys: Capture) -> None:
    path, job = written(tmp_path / "c.json", racks(5, 4, 1)), written(tmp_path / "job.json", [JOB])
    assert main(["explain", path, "--job", job, "--how-many", "--spare", "1@1", "--json"]) == 0
    (entry,) = listing(capsys.readouterr().out)
    assert (entry["copies"], entry["bound"], entry["provedBy"]) == (4, 4, "counting")
    assert entry["spare"] == {"nodes": 1, "tier": 1, "copies": 3, "bound": 3, "provedBy": "counting"}


@pytest.mark.parametrize(
    ("asked", "copies"),
    [
        ({"gpu": 3}, 6),
        ({"gpu": 1, "port": 80}, 3),
        ({"gpu": 2, "apart": True}, 3),
    ],
)
def test_a_node_has_room_for_more_copies_than_the_job_has_pods(
    asked: dict[str, Any], copies: int, tmp_path: Path, capsys: Capture
) -> None:
    """Worked out by hand: three nodes of 8 GPUs."""
    port, apart = asked.get("port"), asked.get("apart")
    term = {"topologyKey": "hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
    extra = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    job = pod("p", labels={"app": "x"}, spec=extra if apart else {}, gpu=asked["gpu"])
    if port is not None:
        job["spec"]["containers"][0]["ports"] = [{"containerPort": port, "hostPort": port}]
    nodes = [node(name, {"hostname": name}, gpu=8) for name in "abc"]
    path = written(tmp_path / "c.json", nodes)
    words = ["explain", path, "--job", written(tmp_path / "job.json", [job]), "--how-many", "--json"]
    assert main(words) == 0
    (entry,) = listing(capsys.readouterr().out)
    assert (entry["copies"], entry["bound"]) == (copies, copies)


def test_spares_are_the_nodes_with_room_for_most_copies(tmp_path: Path, capsys: Capture) -> None:
    """Of four GPUs and eight, the node with eight counts as lost, though one copy fits as well on either."""
    nodes = [node("a", gpu=4), node("b", gpu=8), hyper_node("r0", 1, nodes=("a", "b"))]
    path, job = written(tmp_path / "c.json", nodes), written(tmp_path / "job.json", [pod("p", gpu=1)])
    assert main(["explain", path, "--job", job, "--how-many", "--spare", "1@1", "--json"]) == 0
    (entry,) = listing(capsys.readouterr().out)
    assert (entry["copies"], entry["spare"]["copies"]) == (12, 4)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--how-many"], "--how-many: expected --group or --job"),
        (["--group", "p", "--spare", "1@1"], "--spare: expected --how-many"),
        (["--group", "p", "--how-many", "--spare", "x"], "expected K@TIER"),
        (["--group", "p", "--how-many", "--spare", "1@9"], "found no one tier 9, expected one of 1"),
        (["--group", "p", "--how-many", "--spare", "0@1"], "expected K@TIER with K from 1 on"),
        (["--group", "p", "--how-many", "--spare", "\u0663@1"], "expected K@TIER"),
        (
            ["--group", "done", "--how-many"],
            "PodGroup default/done has 1 running pod, expected a group that waits whole",
        ),
        (["--group", "any", "--how-many"], "PodGroup default/any needs no pod to be admitted"),
        (["--group", "default/runs"], "found a pod on Node r0-0, expected one that waits"),
        (["--group", "nowhere/p"], "no group, and no pod that waits, has that name"),
        (["--time-limit", "-1", "--spare", "1@1"], "with it; time limit: found -1.0, expected seconds, at least 0"),
        (["--context", "c"], "found INSTANCE with them"),
    ],
)
def test_what_makes_no_sense_is_refused(words: list[str], said: str, tmp_path: Path, capsys: Capture) -> None:
    done = [pod_group("done", minMember=1), pod("done-0", group="done", node="r0-0")]
    others = [*done, pod("runs", node="r0-0"), pod_group("any", minMember=0), pod("any-0", group="any")]
    path = written(tmp_path / "c.json", [*racks(1), pod("p", gpu=8), *others])
    assert main(["explain", path, *words]) == 2
    assert said in capsys.readouterr().err


def test_what_gates_hold_back_is_not_called_nothing(tmp_path: Path, capsys: Capture) -> None:
    gated = pod("p", spec={"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]})
    assert main(["explain", written(tmp_path / "c.json", [node("a"), gated])]) == 0
    assert capsys.readouterr().out == (
        "Nothing waits that may be placed yet.\n"
        "  1 pod with the gate kueue.x-k8s.io/admission (default/p): no scheduler places it yet.\n"
    )
