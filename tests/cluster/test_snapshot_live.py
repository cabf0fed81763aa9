"""``placer snapshot`` against a real API server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import placer
from placer.cli import main
from placer.passes.cluster import Client, take
from placer.problem.instance_builder import make_instance
from tests.cluster.api import Api
from tests.cluster.kubelets import Kubelets
from tests.cluster.server import ControlPlane
from tests.cluster.things import live_pod, numa_topology
from tests.support import hyper_node, node, pod_group, queue

Snap = Callable[..., Path]


@pytest.fixture
def snap(control_plane: ControlPlane, tmp_path: Path) -> Snap:
    """Take a snapshot on the command line; the file that it wrote."""

    def work(*flags: str, name: str = "snapshot.json.gz") -> Path:
        path = tmp_path / name
        assert main(["snapshot", "--kubeconfig", str(control_plane.kubeconfig()), "-o", str(path), *flags]) == 0
        return path

    return work


@pytest.fixture
def client(control_plane: ControlPlane) -> Client:
    return Client.connect(str(control_plane.kubeconfig()))


def bindings(path: Path) -> list[tuple[str, str]]:
    result = placer.solve(placer.read(path), method="greedy")
    assert result.placement is not None
    return [(str(each.pod), each.node) for each in result.placement.bindings]


def test_a_cluster_without_the_kinds_of_others(undefined: Api, client: Client) -> None:
    undefined.create(node("n1"), live_pod("p", cpu=1))
    snapshot = take(client)
    assert not [name for name in snapshot.counts if "volcano" in name or "diktyo" in name or "topology" in name]
    instance = make_instance(snapshot.objects(), scheduler_name="placer", cluster=True)
    assert [str(each.key) for each in instance.pending] == ["default/p"]


@pytest.fixture
def busy(cluster: Api, install: Callable[[str], None]) -> Api:
    """Two leaves of two nodes; a gang with a tier limit, a queue, a pod that runs, one of kube-scheduler."""
    for whose in ("volcano", "scheduler-plugins", "noderesourcetopology"):
        install(whose)
    kubelets = Kubelets(cluster)
    zones = ({"cpu": "4", "memory": "16Gi"},) * 2
    names = ["n1", "n2", "n3", "n4"]
    kubelets.add(*map(node, names), topologies=[numa_topology(name, *zones, policy="none") for name in names])
    cluster.create(
        hyper_node("leaf-1", 1, nodes=("n1", "n2")),
        hyper_node("leaf-2", 1, nodes=("n3", "n4")),
        hyper_node("spine", 2, children=("leaf-1", "leaf-2")),
        queue("default"),
        pod_group("train", minMember=3, networkTopology={"mode": "hard", "highestTierAllowed": 1}),
        *(live_pod(f"train-{number}", group="train", cpu=5) for number in range(2)),
        live_pod("train-2", group="train", cpu=2),
        live_pod("runs", cpu=4),
        live_pod("other", scheduler="default-scheduler", cpu=1),
    )
    cluster.bind("default", "runs", "n1")
    kubelets.step()
    return cluster


def test_a_snapshot_is_solved(busy: Api, snap: Snap) -> None:
    """n1 has 4 of 8 cpu left, so leaf-1 has room for one pod of 5 and leaf-2 for both; 2 more fit there on either."""
    found = dict(bindings(snap("--scheduler-name", "placer")))
    assert set(found) == {"default/train-0", "default/train-1", "default/train-2"}
    assert {found["default/train-0"], found["default/train-1"]} == {"n3", "n4"}
    assert found["default/train-2"] in {"n3", "n4"}


def test_commands_without_files_read_the_cluster_and_write_nothing(
    busy: Api, control_plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pods of all schedulers are in what they say."""
    pods = "/api/v1/namespaces/default/pods"
    before = {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in busy.items(pods)}
    page = tmp_path / "report.html"
    commands = {
        ("queue",): "default    train ",
        ("queue", "-o", "name"): "pod/default/other",
        ("solve", "--method", "greedy"): "default/other  1 pod",
        ("compare", "--policies", "greedy,kube-default"): "kube-default",
        ("report", "-o", str(page)): "",
    }
    for words, said in commands.items():
        assert main([*words, "--kubeconfig", str(control_plane.kubeconfig())]) == 0
        assert said in capsys.readouterr().out
    assert "other" in page.read_text(encoding="utf-8")
    assert {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in busy.items(pods)} == before


def test_standard_output_is_the_list_and_nothing_else(
    busy: Api, control_plane: ControlPlane, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["snapshot", "--kubeconfig", str(control_plane.kubeconfig())]) == 0
    listed = json.loads(capsysbinary.readouterr().out)
    assert listed["kind"] == "List"
    assert listed["metadata"]["annotations"]["placer.dev/snapshot"] == "*"


def test_resource_versions_are_those_of_the_server(busy: Api, client: Client) -> None:
    snapshot = take(client)
    documents = [json.loads(item) for item in snapshot.items]
    for path, resource in (("/api/v1/pods", "pods"), ("/api/v1/nodes", "nodes")):
        listed = busy.get(path)
        assert snapshot.versions[resource] == listed["metadata"]["resourceVersion"]
        kind = resource.rstrip("s").capitalize()
        found = {
            each["metadata"]["name"]: (each["metadata"]["uid"], each["metadata"]["resourceVersion"])
            for each in documents
            if each["kind"] == kind
        }
        assert found == {
            each["metadata"]["name"]: (each["metadata"]["uid"], each["metadata"]["resourceVersion"])
            for each in listed["items"]
        }


def test_the_summary_counts(busy: Api, control_plane: ControlPlane, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "s.json"
    flags = ["--kubeconfig", str(control_plane.kubeconfig()), "-o", str(path)]
    assert main(["snapshot", *flags, "--json", "--scheduler-name", "volcano"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schedulerName"] == "volcano"
    assert (told["objects"]["nodes"], told["objects"]["pods"]) == (4, 5)
    assert told["objects"]["hypernodes.topology.volcano.sh"] == 3
    assert main(["snapshot", *flags]) == 0
    assert capsys.readouterr().out.startswith(f"{path}: nodes 4, noderesourcetopologies.topology.node.k8s.io 4, ")


def test_a_file_that_cannot_be_written_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    assert main(["snapshot", "--kubeconfig", "/nowhere", "-o", str(tmp_path / "s.txt")]) == 2
