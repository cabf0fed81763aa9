"""``placer queue``: what waits, a line per group, the next step with its price; who costs what."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from placer.answers.explain import prices
from placer.answers.making_room import preempt
from placer.answers.summary.preempting import preempt_lines
from placer.answers.summary.queue import _WORDS, age_words, lone_jobs, queue_items
from placer.base.codes import REASONS
from placer.base.words import NamedThing, NameList, Sentence
from placer.cli import main
from placer.problem import Finding
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement
from placer.problem.result import Reason, Verdict
from tests.problem.test_unread_kinds import TEMPLATE, custom
from tests.support import Document, hyper_node, instance_of, node, pod, pod_group, queue
from tests.test_schemas import shipped

Capture = pytest.CaptureFixture[str]

NOTEBOOK = {
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "nb", "uid": "u", "controller": True}]
}


def at(document: Document, when: str) -> Document:
    return {**document, "metadata": {**document["metadata"], "creationTimestamp": when}}


def notebook(name: str, on: str) -> Document:
    """A pod that runs, may be moved, and leaves no node with eight GPUs."""
    found = pod(name, namespace="ml", gpu=1, node=on, spec={"priority": 0})
    return {**found, "metadata": {**found["metadata"], **NOTEBOOK}, "status": {"phase": "Running"}}


def written(folder: Path, *documents: Document) -> str:
    path = folder / "c.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    return str(path)


@pytest.fixture
def busy(tmp_path: Path) -> str:
    """A gang of eight GPUs waits for two notebooks that lie apart; older and younger ones are around it."""
    train = [
        pod_group("train", "ml", minMember=1),
        pod("train-0", namespace="ml", group="train", gpu=8, spec={"priority": 1000}),
    ]
    return written(
        tmp_path,
        *(node(name, cpu=16, gpu=8) for name in ("n1", "n2")),
        *(notebook(f"nb-{number}", f"n{number}") for number in (1, 2)),
        at(train[0], "2026-01-02T00:00:00Z"),
        train[1],
        at(pod("young", namespace="web", cpu=1, spec={"schedulerName": "volcano"}), "2026-01-03T00:00:00Z"),
        at(pod("old", namespace="web", cpu=1), "2026-01-01T00:00:00Z"),
    )


def asked(capsys: Capture, *words: str) -> Any:
    assert main(["queue", *words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, shipped(document["kind"].lower()))
    assert document["apiVersion"] == "placer.dev/v1alpha1"
    return document


def test_groups_stand_by_priority_and_age_with_the_price_of_the_next_step(
    busy: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prices, "PRICING", 600.0)  # however busy the machine is
    limit = ["--time-limit", "1200"]
    found = asked(capsys, busy, *limit)
    assert found["kind"] == "QueueList"
    assert [each["name"] for each in found["items"]] == ["train", "old", "young"]
    first = found["items"][0]
    assert (first["priority"], first["pods"], first["gpus"], first["admitted"]) == (1000, 1, 8, False)
    assert first["creationTimestamp"] == "2026-01-02T00:00:00Z"
    assert re.fullmatch(r"\d+h\d+m\d+s", first["age"])
    assert first["reason"]["code"] == "InsufficientResources"
    assert first["next"]["command"] == f"placer preempt --for ml/train {busy}"
    assert first["next"]["message"].startswith("would ")
    assert first["next"]["evicted"] + first["next"]["moved"] == 1
    assert [each["reason"] for each in found["items"][1:]] == [None, None]
    assert main(["queue", busy, "-n", "ml", *limit]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["NAMESPACE", "NAME", "PRIORITY", "QUEUE", "PODS", "GPUS", "AGE", "REASON"]
    assert re.match(r"ml +train +1000 +- +1 +8 +\w+ +too little room is free", lines[1])
    assert f"  `placer preempt --for ml/train {busy}` would " in "\n".join(lines)
    assert "Looked at pending pods of every scheduler (2 for default-scheduler, 1 for volcano)." in lines[-1]
    assert not [line for line in lines if line.startswith("web")]


def test_a_price_that_there_is_no_time_for_is_not_known(busy: str, capsys: Capture) -> None:
    found = asked(capsys, busy, "--time-limit", "0.001")
    steps = [each["next"] for each in found["items"] if "next" in each]
    assert steps
    assert not [step for step in steps if "moved" in step or "evicted" in step]


def test_equal_reasons_share_a_line_with_a_count(tmp_path: Path, capsys: Capture) -> None:
    high = [pod(f"high-{at}", cpu=4, spec={"priority": 1000}) for at in range(2)]
    low = [pod(f"low-{at}", cpu=4, spec={"priority": 100}) for at in range(5)]
    path = written(tmp_path, node("n", cpu=8), *high, *low)
    assert main(["queue", path]) == 0
    text = capsys.readouterr().out
    assert re.search(
        r"^default +low-0 \+4 +100 +- +5 +- +5 single pods of priority 100: the room went to higher priorities",
        text,
        re.M,
    )
    assert text.count("low-") == 2  # in its line, and in the next step
    assert "+N: so many more groups like it (-o wide lists each)" in text
    assert main(["queue", path, "--wide"]) == 0
    assert len(re.findall(r"^default +low-", capsys.readouterr().out, re.MULTILINE)) == 5
    for command in ("solve", "explain"):
        assert main([command, path]) == 0
        assert "5 single pods of priority 100: the room went to higher priorities" in capsys.readouterr().out


def test_few_single_pods_of_one_workload_share_a_line(tmp_path: Path, capsys: Capture) -> None:
    gang = [pod_group("a", minMember=1), pod("a-0", group="a", cpu=9)]
    path = written(tmp_path, node("n", cpu=4), *gang, *(pod(f"web-{number}", cpu=9) for number in range(2)))
    for words, names in (([], ["web-0 +1", "a"]), (["-o", "wide"], ["web-0", "web-1", "a"])):
        assert main(["queue", path, *words]) == 0
        rows = re.findall(r"^default +(.+?)  +0 .*larger than any node$", capsys.readouterr().out, re.MULTILINE)
        assert rows == names


#: The end that Volcano gives the name of a Job's PodGroup.
UID = "-6f1b2c3d-1111-2222-3333-0123456789ab"


def test_reasons_that_are_not_printed_are_counted(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path, node("n", cpu=4), *(pod(f"p{n}", cpu=9 + n, spec={"priority": n}) for n in range(7)))
    assert main(["solve", path]) == 0
    assert "... and 1 more (-o wide lists the reason of each)" in capsys.readouterr().out
    assert main(["queue", path, "-o", "wide"]) == 0
    assert capsys.readouterr().out.count("InsufficientResources") == 7


def test_a_gang_that_its_tier_never_holds_says_so_in_table_and_reason(tmp_path: Path, capsys: Capture) -> None:
    hard = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    nodes = [node(f"n{at}", cpu=4) for at in range(4)]
    racks = [hyper_node("r0", 1, nodes=("n0", "n1")), hyper_node("r1", 1, nodes=("n2", "n3"))]
    gang = [pod_group("g", minMember=3, **hard), *(pod(f"g-{at}", group="g", cpu=4) for at in range(3))]
    path = written(tmp_path, *nodes, *racks, *gang, pod("runs", node="n0", cpu=4), pod("also", node="n1", cpu=4))
    assert main(["queue", path, "-o", "wide"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "never fits its tier" in out
    assert "needs 3 pods of cpu 4 in one HyperNode of tier <= 1; the largest (r0) has 2 nodes, with room for 1" in out


def test_a_gang_with_its_minimum_runs_and_its_queue_can_be_asked_for(tmp_path: Path, capsys: Capture) -> None:
    gang = [
        pod_group("g", minMember=1, queue="batch"),
        pod("g-0", group="g", node="n", cpu=3),
        pod("g-1", group="g", cpu=3),
    ]
    path = written(tmp_path, node("n", cpu=4), queue("batch"), *gang, pod("lone", cpu=9))
    assert main(["queue", path, "--queue", "batch"]) == 0
    out = capsys.readouterr().out
    assert "runs with 1 pod; the rest: too little room is free" in out
    assert "lone" not in out
    assert main(["explain", path, "--group", "g"]) == 0
    assert "runs with 1 pod (needs 1); 1 optional pod waits" in capsys.readouterr().out
    assert main(["queue", path, "--queue", "batches"]) == 0
    assert "No group of Queue batches waits; found like it: batch." in capsys.readouterr().out


def test_the_podgroup_of_a_volcano_job_is_called_by_the_job(tmp_path: Path, capsys: Capture) -> None:
    gang = [pod_group(f"train{UID}", minMember=1), pod("train-0", group=f"train{UID}", cpu=3)]
    rest = [node("n", cpu=4), pod("runs", node="n", cpu=4), *gang]
    for more in ([], [pod("train", cpu=1)]):
        assert main(["queue", written(tmp_path, *rest, *more)]) == 0
        assert (f"default/train{UID}" in capsys.readouterr().out) is bool(more)


def test_fewer_members_are_asked_for_in_the_job_that_owns_the_podgroup(tmp_path: Path, capsys: Capture) -> None:
    group = pod_group(f"train{UID}", minMember=2)
    group["metadata"]["ownerReferences"] = [{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train"}]
    pods = [pod(f"train-{at}", group=f"train{UID}", cpu=3) for at in range(2)]
    assert main(["explain", written(tmp_path, node("n", cpu=4), group, *pods), "--group", "train"]) == 0
    said = "start with 1 member in place of 2: spec.minAvailable of Volcano Job train, which owns the PodGroup"
    assert said in capsys.readouterr().out


def test_equal_tiers_share_a_row_and_equal_words_say_their_difference(tmp_path: Path, capsys: Capture) -> None:
    tainted = {**node("t", cpu=4), "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
    pods = [pod("a", cpu=1), pod("b", cpu=1, spec={"tolerations": [{"key": "k", "operator": "Exists"}]})]
    path = written(tmp_path, tainted, hyper_node("r", 1, nodes=("t",)), *pods)
    assert main(["audit", path, "--sums"]) == 0
    rows = re.findall(r"^cpu 1 \((.*)\) +(\S+) +(\d+)", capsys.readouterr().out, re.MULTILINE)
    assert rows == [("tolerates no taint", "1-2", "0"), ("tolerates k", "1-2", "4")]


@pytest.mark.parametrize("command", ["queue", "audit", "solve"])
def test_uuids_in_names_are_shortened_but_in_wide_tables(command: str, tmp_path: Path, capsys: Capture) -> None:
    name = "train-6f1b2c3d-1111-2222-3333-0123456789ab"
    there = "n" if command == "audit" else None
    path = written(tmp_path, node("n", cpu=4), pod_group(name, minMember=1), pod("p", group=name, node=there, cpu=1))
    for words, shown in (([], "train-6f1b2c3d...89ab"), (["-o", "wide"], name)):
        assert main([command, path, *words]) == 0
        assert re.search(rf"\b{re.escape(shown)}  ", capsys.readouterr().out)


def test_every_reason_has_a_few_words() -> None:
    assert {*_WORDS} >= {*REASONS}
    assert all(3 <= len(words.split()) <= 6 for words in _WORDS.values())


@pytest.mark.parametrize(
    ("rivals", "words"),
    [
        ([7, 9], "the room went to higher priorities"),
        ([5, 5], "the room went to equal priorities"),
        ([5, 7], "the room went to others"),
        ([1, 7], "the room went to others"),
        ([], "the room went to others"),
    ],
)
def test_who_got_the_room_is_told_by_priority(rivals: list[int], words: str) -> None:
    instance = instance_of(node("n", cpu=1), pod("p", cpu=2, spec={"priority": 5}))
    names = NameList(tuple(NamedThing("a", f"Pod a/{each}", each) for each in rivals), 3, "group")
    (key,) = instance.groups
    reason = Reason("Outcompeted", Sentence.of("the room went to ", names))
    (item,) = queue_items(Outcome(instance, Placement()), {key: reason}, 0.0).values()
    assert item.words == words


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"cpu": 9}, "larger than any node"),
        ({"cpu": 8}, "too little room is free"),
        ({"cpu": 9, "gpu": 1}, "no node offers its resource"),
    ],
)
def test_a_pod_that_no_node_can_hold_says_so(asked: dict[str, int], words: str) -> None:
    instance = instance_of(node("n", cpu=8), pod("p", **asked))
    (key,) = instance.groups
    reason = Reason("InsufficientResources", Sentence.of("no room"))
    (item,) = queue_items(Outcome(instance, Placement()), {key: reason}, 0.0).values()
    assert item.words == words


def test_jobs_whose_pods_start_one_by_one_are_named_with_the_policy_for_gangs() -> None:
    pods = [pod(f"{job}-{at}", cpu=9, metadata={"labels": {"job-name": job}}) for job in "ab" for at in range(2)]
    lone = pod("c-0", cpu=9, metadata={"labels": {"job-name": "c"}})
    instance = instance_of(node("n"), *pods, lone)
    items = queue_items(Outcome(instance, Placement()), {}, 0.0).values()
    (said,) = lone_jobs(instance, items)
    assert said.startswith("Each pod of Job default/a and default/b starts by itself.")
    assert "Policy `gangs: owners`" in said
    assert lone_jobs(replace(instance, policy=replace(instance.policy, gangs_of_owners=True)), items) == []


def test_a_search_that_died_is_no_price_and_no_reason_for_a_longer_limit() -> None:
    instance = instance_of(node("n", cpu=8), pod("p", cpu=9))
    (key,) = instance.groups
    result = replace(preempt(instance, key, time_limit=60.0), verdict=Verdict.FEASIBLE)
    dead = replace(result, findings=(Finding("SolverDied", "preempt", "killed by signal 9"),))
    step = prices.next_step(instance, key, "InsufficientResources", [])
    assert "the search for it died (killed by signal 9)" in prices._with_price(step, dead).message
    assert "The search died: killed by signal 9." in next(preempt_lines(dead))
    assert "Try a longer --time-limit" in next(preempt_lines(result))


@pytest.mark.parametrize(
    ("seconds", "words"), [(119, "119s"), (599, "9m59s"), (7200, "120m"), (28800, "8h"), (172800, "2d"), (1e8, "1157d")]
)
def test_ages_are_written_as_kubectl_does(seconds: float, words: str) -> None:
    assert age_words(seconds) == words


def test_nothing_waits(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path, node("n"), pod("p", cpu=1, node="n"))
    assert main(["queue", path]) == 0
    assert capsys.readouterr().out == "No group waits.\n"
    assert asked(capsys, path)["items"] == []


def test_work_that_is_not_there_is_of_the_namespace_that_is_asked_about(tmp_path: Path, capsys: Capture) -> None:
    spec = {"suspend": True, "template": TEMPLATE}
    gated = pod("g", namespace="a", spec={"schedulingGates": [{"name": "x"}]})
    jobs = [
        custom("batch/v1", "Job", "j", namespace=name, labels={"kueue.x-k8s.io/queue-name": "q"}, spec=spec)
        for name in "ab"
    ]
    assert main(["queue", written(tmp_path, node("n"), gated, *jobs), "-n", "b"]) == 0
    out = capsys.readouterr().out
    said = "  1 suspended Job of Kueue's queue q (b/j): it makes no pods yet.\n"
    assert out.startswith(f"Nothing waits that may be placed yet.\n{said}")
    assert "Left out" not in out


def test_who_costs_what_the_dearest_first(tmp_path: Path, capsys: Capture) -> None:
    cheap = pod("c", namespace="cheap", cpu=1)
    dear = [pod(f"d-{at}", namespace="dear", cpu=1, spec={"nodeSelector": {"a": str(at)}}) for at in range(3)]
    path = written(tmp_path, node("n"), cheap, *dear)
    found = asked(capsys, path, "--cost", "--namespace-budget", "terms=2")
    assert (found["kind"], found["budget"]["terms"]) == ("NamespaceCostList", 2)
    assert [(each["namespace"], each["terms"], each["waiting"]) for each in found["items"]] == [
        ("dear", 3, 1),
        ("cheap", 1, 0),
    ]
    assert main(["queue", path, "--cost", "--namespace-budget", "terms=2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[0] == "NAMESPACE"
    assert "3 of 2" in lines[1]
    assert asked(capsys, path, "--cost")["budget"] is None
    (row,) = asked(capsys, path, "--namespace-budget", "terms=2", "-n", "dear", "--time-limit", "600")["items"][-1:]
    assert row["reason"]["code"] == "NamespaceBudget"


@pytest.mark.parametrize("command", ["solve", "compare", "report", "queue"])
def test_a_cluster_is_read_where_no_instance_is_given(command: str, tmp_path: Path, capsys: Capture) -> None:
    """Not beside files; and what is read is asked for by the kubeconfig's name."""
    target = ["-o", str(tmp_path / "r.html")] if command == "report" else []
    missing = str(tmp_path / "none")
    assert main([command, *target, "--kubeconfig", missing]) == 2
    assert missing in capsys.readouterr().err
    path = written(tmp_path, node("n"))
    assert main([command, path, *target, "--kubeconfig", missing]) == 2
    assert "found INSTANCE with them" in capsys.readouterr().err


@pytest.mark.parametrize("limits", [[node("n")], [node("n", cpu=64), queue("q", {"cpu": 8})]])
def test_a_report_of_a_placement_has_the_words_of_queue(
    limits: list[Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """The file has the message alone, in which the groups that got the room are names."""
    monkeypatch.chdir(tmp_path)
    asks = {"annotations": {"scheduling.volcano.sh/queue-name": "q"}}
    low, high = (pod(name, cpu=8, spec={"priority": at}, **asks) for name, at in (("low", 1), ("high", 9)))
    path = written(tmp_path, *limits, low, high)
    words = {each["name"]: each["words"] for each in asked(capsys, path)["items"]}
    assert words["low"] == "the room went to higher priorities"
    assert main(["solve", path, "-o", "placed.json", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["report", path, "placed.json", "-o", "page.html", "--json"]) == 0
    groups = json.loads(capsys.readouterr().out)["groups"]
    assert dict(zip(groups["name"], groups["words"], strict=True))["low"] == words["low"]


@pytest.mark.parametrize("words", [["queue"], ["explain"], ["explain", "--group", "waits"], ["audit"], ["solve"]])
def test_findings_of_the_input_are_printed_by_all_that_read_it(
    words: list[str], tmp_path: Path, capsys: Capture
) -> None:
    """In whole where the group is asked about or the command lists them, else counted by code."""
    named = pod_group("waits", queue="nowhere")
    path = written(tmp_path, node("n", cpu=4), pod("runs", node="n"), named, pod("waits-0", group="waits", cpu=8))
    assert main([*words, path]) in (0, 1)
    brief = words in (["queue"], ["explain"])
    said = "UnknownReference 1 (-o wide lists them)" if brief else "\n  UnknownReference Queue nowhere, named by"
    assert said in capsys.readouterr().out
    assert main([words[0], path, "-o", "wide"]) in (0, 1)
    assert "\n  UnknownReference Queue nowhere, named by" in capsys.readouterr().out
