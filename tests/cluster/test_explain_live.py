"""``placer explain``, ``placer audit`` and ``kubectl placer why`` against a real API server."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from placer.cli import main
from tests.cluster.api import Api
from tests.cluster.kubelets import Kubelets
from tests.cluster.server import ControlPlane
from tests.cluster.things import live_pod
from tests.support import hyper_node, listing, node, pod_group, queue

Ask = Callable[..., tuple[int, str]]


@pytest.fixture
def ask(control_plane: ControlPlane, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Call a command for the cluster; its exit code and what it prints."""

    def work(command: str, *words: str) -> tuple[int, str]:
        code = main([command, "--kubeconfig", str(control_plane.kubeconfig()), "--context", "admin", *words])
        return code, capsys.readouterr().out

    return work


@pytest.fixture
def busy(cluster: Api, install: Callable[[str], None]) -> Api:
    """Two racks of two nodes with 8 cpu: a pod runs on n1, n4 is cordoned, gangs of two schedulers wait."""
    install("volcano")
    kubelets = Kubelets(cluster)
    kubelets.add(*(node(name) for name in ("n1", "n2", "n3", "n4")))
    cluster.create(
        hyper_node("rack-1", 1, nodes=("n1", "n2")),
        hyper_node("rack-2", 1, nodes=("n3", "n4")),
        hyper_node("spine", 2, children=("rack-1", "rack-2")),
        queue("default"),
        live_pod("runs", cpu=4),
        pod_group("train", minMember=2, networkTopology={"mode": "hard", "highestTierAllowed": 1}),
        *(live_pod(f"train-{number}", group="train", cpu=8) for number in range(2)),
        pod_group("eval", minMember=1),
        live_pod("eval-0", group="eval", scheduler="volcano", cpu=2),
    )
    cluster.bind("default", "runs", "n1")
    cluster.patch("/api/v1/nodes/n4", {"spec": {"unschedulable": True}})
    kubelets.step()
    return cluster


def test_pods_of_any_scheduler_are_explained(busy: Api, ask: Ask) -> None:
    """Rack 1 has one node of 8 free cpu, rack 2 one that is not cordoned."""
    code, told = ask("explain", "--json")
    assert code == 0
    entries = {entry["group"]["name"]: entry for entry in listing(told)}
    assert set(entries) == {"train", "eval"}
    assert {cause["code"] for cause in entries["train"]["causes"]} <= {"TopologyTooNarrow", "NoEligibleNode"}
    messages = [change["message"] for change in entries["train"]["changes"]]
    assert "uncordon Node n4" in messages
    assert "wait until Pod default/runs ends (1 pod)" in messages or "allow tier 2 in place of tier 1" in messages
    elsewhere = entries["eval"]["scheduler"]
    assert (elsewhere["name"], elsewhere["placer"]["admitted"], elsewhere["policy"]) == ("volcano", True, "volcano")


def test_a_change_that_is_told_helps_the_cluster(busy: Api, ask: Ask) -> None:
    """What is pasted behind the same call is so, and so is the cluster once it is done there."""
    _, told = ask("explain", "--group", "default/train")
    (at,) = [number for number, line in enumerate(told.splitlines()) if "uncordon Node n4" in line]
    words = shlex.split(told.splitlines()[at + 1])
    assert "train" not in groups_that_wait(ask("explain", "--json", *words)[1])
    busy.patch("/api/v1/nodes/n4", {"spec": {"unschedulable": False}})
    assert "train" not in groups_that_wait(ask("explain", "--json")[1])


def groups_that_wait(told: str) -> list[str]:
    return [entry["group"]["name"] for entry in listing(told) if entry["causes"]]


def test_a_job_that_is_not_submitted_beside_what_runs(busy: Api, ask: Ask, tmp_path: Path) -> None:
    job: dict[str, Any] = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "new", "namespace": "default"},
        "spec": {
            "minAvailable": 2,
            "tasks": [{"name": "w", "replicas": 2, "template": {"spec": live_pod("x", cpu=8)["spec"]}}],
        },
    }
    path = tmp_path / "job.json"
    path.write_text(json.dumps(job))
    code, told = ask("explain", "--job", str(path), "--json")
    assert (code, [(entry["group"]["name"], entry["answer"]) for entry in listing(told)]) == (0, [("new", "now")])
    assert len(busy.items("/api/v1/namespaces/default/pods")) == 4


def test_what_runs_is_audited(busy: Api, ask: Ask) -> None:
    code, told = ask("audit", "--json")
    assert code == 0
    (entry,) = listing(told)
    assert (entry["group"]["name"], entry["rules"], entry["score"]) == ("runs", "MATCH", 1)
    busy.create(
        pod_group("split", minMember=2, networkTopology={"mode": "hard", "highestTierAllowed": 1}),
        *(live_pod(f"split-{number}", group="split", cpu=1) for number in range(2)),
    )
    busy.bind("default", "split-0", "n2")
    busy.bind("default", "split-1", "n3")
    code, told = ask("audit", "--json")
    entries = {entry["group"]["name"]: entry for entry in listing(told)}
    assert code == 1
    assert entries["split"]["rules"] == "VIOLATION"
    assert "C7" in entries["split"]["violations"][0]


def test_as_a_plug_in_of_kubectl(busy: Api, control_plane: ControlPlane, tmp_path: Path) -> None:
    plug_in = tmp_path / "kubectl-placer"
    plug_in.write_text(f"#!{sys.executable}\nfrom placer.cli import plugin\nraise SystemExit(plugin())\n")
    plug_in.chmod(0o755)
    found = subprocess.run(
        [control_plane.programs / "kubectl", "placer", "why", "default/train"],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "KUBECONFIG": str(control_plane.kubeconfig()),
        },
    )
    assert (found.returncode, found.stderr) == (0, "")
    assert "PodGroup default/train waits." in found.stdout
    assert "uncordon Node n4" in found.stdout


@pytest.mark.parametrize("command", ["explain", "audit"])
def test_a_context_that_is_not_there(
    command: str, control_plane: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--kubeconfig", str(control_plane.kubeconfig()), "--context", "none"]) == 2
    assert "none" in capsys.readouterr().err
