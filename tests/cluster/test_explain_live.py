"""``placer explain``, ``placer audit`` and ``kubectl placer why`` against a real API server."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

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
