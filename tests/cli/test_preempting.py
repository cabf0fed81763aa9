"""`placer preempt` and `placer repair` as users type them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from placer.cli import main
from tests.support import Document, hyper_node, node, pod, pod_group

Capture = pytest.CaptureFixture[str]

OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "controller": True}


def member(gang: str, number: int, where: str | None, priority: int) -> Document:
    metadata: dict[str, Any] = {
        "annotations": {"scheduling.k8s.io/group-name": gang},
        "ownerReferences": [OWNER],
        "creationTimestamp": "2026-11-23T07:40:00Z",
    }
    return pod(f"{gang}-{number}", node=where, spec={"priority": priority}, metadata=metadata, gpu=8)


def full(racks: int, *, spare: int = 0) -> list[Document]:
    """Racks of two nodes, each with a gang of two, the last with a gang of one pod; ``train`` needs a whole rack."""
    found: list[Document] = [node(f"s{number}", gpu=8) for number in range(spare)]
    for rack in range(racks):
        names = [f"n{rack}{number}" for number in range(2)]
        used = names if rack < racks - 1 else names[:1]
        found += [node(name, gpu=8) for name in names]
        found.append(hyper_node(f"rack{rack}", 1, nodes=tuple(names)))
        found.append(pod_group(f"eval{rack}", minMember=len(used)))
        found += [member(f"eval{rack}", number, name, 0) for number, name in enumerate(used)]
    found.append(pod_group("train", minMember=2, networkTopology={"mode": "hard", "highestTierAllowed": 1}))
    return [*found, *(member("train", number, None, 10) for number in range(2))]


def written(tmp_path: Path, documents: list[Document]) -> str:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    return str(path)


def test_text_names_the_gang_that_goes_what_it_makes_room_for_and_the_proof(tmp_path: Path, capsys: Capture) -> None:
    assert main(["preempt", written(tmp_path, full(3)), "--quiet"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[:3] == [
        "Evict 1 gang:",
        "  default/eval2, 1 pod, priority 0, since 2026-11-23 07:40 UTC, from n20",
        "-> default/train is admitted: all 2 pods in rack2",
    ]
    assert "no other choice evicts less" in out


def test_a_plan_says_that_other_schedulers_choose_nodes_themselves(tmp_path: Path, capsys: Capture) -> None:
    for name, said in (("volcano", True), ("placer", False)):
        documents = [
            {**each, "spec": {**each["spec"], "schedulerName": name}} if each["kind"] == "Pod" else each
            for each in full(2)
        ]
        assert main(["preempt", written(tmp_path, documents), "--quiet"]) == 0
        assert ("Scheduler volcano chooses nodes of its pods itself: " in capsys.readouterr().out) is said


def test_what_has_room_elsewhere_is_moved_in_a_step_of_its_own(tmp_path: Path, capsys: Capture) -> None:
    assert main(["preempt", written(tmp_path, full(2, spare=1)), "--for", "default/train", "--quiet"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[:2] == ["Move 1 gang:", "  default/eval1, 1 pod, priority 0, since 2026-11-23 07:40 UTC, from n10 to s0"]
    assert out[-3:] == ["In 2 steps:", "  1. 1 pod goes, 1 pod moved", "  2. 2 pods bound"]


def test_the_plan_is_a_placement_that_verify_takes(tmp_path: Path, capsys: Capture) -> None:
    cluster, plan = written(tmp_path, full(2)), str(tmp_path / "plan.json")
    assert main(["preempt", cluster, "--quiet", "-o", plan, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads(Path(plan).read_text())
    assert document["verdict"] == "OPTIMAL"
    assert document["evictions"] == [
        {"namespace": "default", "pod": "eval1-0", "node": "n10", "unit": "PodGroup/default/eval1", "priority": 0}
    ]
    assert document["moves"] == []
    assert document["steps"][0]["go"] == ["default/eval1-0"]
    (evicted,) = [each for each in document["objective"] if each["name"] == "evictedUnits"]
    assert (evicted["value"], evicted["bound"]) == (1, 1)
    (train,) = document["groups"]
    assert train["admitted"]
    assert main(["verify", cluster, plan, "--json"]) == 0


def test_a_group_that_nothing_makes_room_for_ends_with_5(tmp_path: Path, capsys: Capture) -> None:
    huge = [pod_group("huge", minMember=9), *(member("huge", number, None, 20) for number in range(9))]
    assert main(["preempt", written(tmp_path, [*full(2), *huge]), "--for", "default/huge", "--quiet", "--json"]) == 5
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "INFEASIBLE"
    assert "evictions" not in document
    assert document["groups"][0]["reason"]["code"] == "InsufficientResources"


def test_nothing_goes_where_there_is_room(tmp_path: Path, capsys: Capture) -> None:
    alone = [each for each in full(2) if not each["metadata"]["name"].startswith("eval1")]
    assert main(["preempt", written(tmp_path, alone), "--quiet"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "Nothing has to go."


@pytest.mark.parametrize(("rival", "said"), [(5, "priority 5"), (9, "priority 9"), (1, "")])
def test_waiting_groups_that_want_the_same_room_are_named(
    rival: int, said: str, tmp_path: Path, capsys: Capture
) -> None:
    """Whoever of two equal groups is asked about, the other one is left out and says so; a less urgent one is not."""
    waiting = [pod("a", gpu=8, spec={"priority": 5}), pod("b", gpu=8, spec={"priority": rival})]
    path = written(tmp_path, [node("n", gpu=8), *waiting])
    assert main(["preempt", path, "--for", "a", "--quiet"]) == 0
    first, gained, *left = capsys.readouterr().out.splitlines()
    assert (first, gained) == ("Nothing has to go.", "-> default/a is admitted: 1 pod on n")
    asked = "Left out: 1 waiting group at least as urgent that would take this room: default/b"
    assert left == ([f"{asked} ({said}). `placer solve` decides who gets it."] if said else [])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ["--for", "default/trian"],
            "--for default/trian: found no such group that waits; found like it: default/train",
        ),
        (["--time-limit", "-1"], "time limit: found -1.0, expected seconds, at least 0"),
        (["--workers", "0", "--seed", "-1"], "workers: found 0, expected at least 1; seed: found -1, expected 0 to"),
    ],
)
def test_what_cannot_be_asked(words: list[str], complaint: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["preempt", written(tmp_path, full(1)), "--quiet", *words]) == 2
    assert complaint in capsys.readouterr().err


def test_a_pod_of_a_gang_that_remains_is_a_member_and_no_single_pod(tmp_path: Path, capsys: Capture) -> None:
    nodes = [node(name, gpu=8) for name in ("n", "m")]
    running = [member("eval", 0, "n", 0), member("eval", 1, "m", 0)]
    path = written(tmp_path, [*nodes, pod_group("eval", minMember=1), *running, pod("a", gpu=8, spec={"priority": 5})])
    assert main(["preempt", path, "--quiet"]) == 0
    assert capsys.readouterr().out.startswith("Evict 1 gang member:\n")


def test_a_workload_stands_for_all_its_pods(tmp_path: Path, capsys: Capture) -> None:
    pods = [pod(f"sim-{at}", gpu=8, metadata={"labels": {"job-name": "sim"}}) for at in range(2)]
    path = written(tmp_path, [*(node(name, gpu=8) for name in ("n", "m")), *pods, pod("b", gpu=8)])
    assert main(["preempt", path, "--for", "sim", "--quiet"]) == 0
    out = capsys.readouterr().out
    assert re.findall(r"-> default/(sim-\d) is admitted", out) == ["sim-0", "sim-1"]
    assert "1 waiting group at least as urgent that would take this room: default/b" in out
    assert main(["preempt", path, "--for", "sim-1", "--for", "b", "--quiet"]) == 0
    assert re.findall(r"-> default/(\S+) is admitted", capsys.readouterr().out) == ["b", "sim-1"]


def test_that_nothing_helps_is_proved_without_a_search_where_a_resource_lacks(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placer.search.process.run_apart", None)
    running = {**pod("a", gpu=8, node="n"), "status": {"phase": "Running"}}  # equally urgent
    assert main(["preempt", written(tmp_path, [node("n", gpu=8), running, pod("b", gpu=8)]), "--quiet"]) == 5
    assert capsys.readouterr().out.startswith("Cannot be had, which is proved: 0 of 1 group admitted.")


# --------------------------------------------------------------------------------------------------------- repair


def broken_rack(*, spare: int = 1, ready: str = "Unknown") -> list[Document]:
    """A gang of two in a rack, one node of which is lost, and one of one pod beside it; ``spare`` nodes elsewhere."""
    found: list[Document] = [node(name, gpu=8) for name in ("lost", "n1", "n2")]
    found[0]["status"]["conditions"] = [{"type": "Ready", "status": ready}]
    found += [node(f"s{number}", gpu=8) for number in range(spare)]
    found.append(hyper_node("rack", 1, nodes=("lost", "n1", "n2")))
    found.append(pod_group("train", minMember=2, networkTopology={"mode": "hard", "highestTierAllowed": 1}))
    found.append(pod_group("eval", minMember=1))
    return [*found, member("train", 0, "lost", 0), member("train", 1, "n1", 0), member("eval", 0, "n2", 9)]


def test_what_was_lost_where_it_goes_and_what_is_moved_for_it(tmp_path: Path, capsys: Capture) -> None:
    assert main(["repair", written(tmp_path, broken_rack()), "--quiet"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines() == [
        "1 node lost, lost: 1 pod of 1 gang ran there.",
        "Move 1 gang:",
        "  default/eval, 1 pod, priority 9, since 2026-11-23 07:40 UTC, from n2 to s0",
        "-> default/train: 1 lost pod on n2 in rack, 2 of 2 pods run",
        "Proved by the least of any domain: no other choice moves less work: weight, then units.",
        "In 2 steps:",
        "  1. 1 pod goes, 1 pod moved",
        "  2. 1 pod bound",
    ]


def test_the_repair_of_a_node_that_is_named_is_a_placement_that_verify_takes(tmp_path: Path, capsys: Capture) -> None:
    cluster, plan = written(tmp_path, broken_rack(ready="True")), str(tmp_path / "plan.json")
    assert main(["repair", cluster, "--lost", "lost", "--quiet", "--json", "-o", plan]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads(Path(plan).read_text())
    assert document["lost"] == ["lost"]
    assert document["bindings"] == [{"namespace": "default", "pod": "train-0", "node": "n2"}]
    assert [(move["pod"], move["from"], move["to"]) for move in document["moves"]] == [("eval-0", "n2", "s0")]
    assert document["evictions"] == []
    assert document["verdict"] == "OPTIMAL"
    assert main(["verify", cluster, plan, "--json"]) == 0
    judged = json.loads(capsys.readouterr().out)
    assert judged["valid"]
    assert "lost" not in judged["notRead"]["notJudged"]
    values = {each["name"]: each["value"] for each in judged["objective"]}
    assert values["movedUnits"] == 1
    assert main(["report", cluster, plan, "-o", str(tmp_path / "page.html"), "--quiet"]) == 0


def test_bindings_of_pods_on_a_node_that_is_not_ready_are_a_repair(tmp_path: Path) -> None:
    bound = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "train-0"}, "target": {"name": "n2"}}
    free = [each for each in broken_rack() if not each["metadata"]["name"].startswith("eval")]
    (tmp_path / "bindings.json").write_text(json.dumps(bound))
    assert main(["verify", written(tmp_path, free), str(tmp_path / "bindings.json"), "--quiet"]) == 0
    assert main(["verify", written(tmp_path, broken_rack()), str(tmp_path / "bindings.json"), "--quiet"]) == 1


def test_pods_of_a_lost_gang_that_waited_and_are_bound_too_are_counted(tmp_path: Path, capsys: Capture) -> None:
    gang = [pod_group("train", minMember=1), member("train", 0, "lost", 0), pod("train-2", gpu=8, group="train")]
    assert main(["repair", written(tmp_path, [*broken_rack(spare=0)[:4], *gang]), "--quiet"]) == 0
    assert re.sub(r"on n\d", "on N", capsys.readouterr().out).splitlines()[1:4] == [
        "Nothing else is disturbed.",
        "-> default/train: 1 lost pod on N, 2 of 2 pods run",
        "-> default/train: 1 more pod that waited, on N",
    ]


def test_a_group_that_runs_is_not_asked_for(tmp_path: Path, capsys: Capture) -> None:
    assert main(["preempt", written(tmp_path, broken_rack()), "--for", "eval", "--quiet"]) == 2
    assert "--for eval: found no such group that waits; it runs" in capsys.readouterr().err


def test_what_cannot_be_repaired_ends_with_5_and_says_why(tmp_path: Path, capsys: Capture) -> None:
    alone = pod("alone", node="lost", gpu=8)
    assert main(["repair", written(tmp_path, [*broken_rack(spare=0), alone]), "--quiet"]) == 5
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "Cannot be had, which is proved: 0 of 2 lost pods placed again. Moving makes no room for more.",
        "1 node lost, lost: 2 pods of 1 gang and 1 single pod ran there.",
        "Nothing else is disturbed.",
    ]
    assert any(line.startswith("default/train has no node for 1 lost pod: ") for line in lines)
    assert "No controller makes these pods again: default/alone" in lines


def test_nothing_is_lost_where_every_node_is_ready(tmp_path: Path, capsys: Capture) -> None:
    cluster = written(tmp_path, broken_rack(ready="True"))
    assert main(["repair", cluster, "--quiet"]) == 0
    assert capsys.readouterr().out.startswith("Every node is Ready: nothing is lost.")
    assert main(["repair", cluster, "--lost", "n1,losd", "--quiet"]) == 2
    assert "--lost: found losd, expected names of nodes; found like it: lost" in capsys.readouterr().err
