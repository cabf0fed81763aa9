"""Options that several commands have, in those of them where it is easy to forget one: each decides something."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import placer
import placer.passes.cluster
from placer.cli import main
from placer.passes.cluster import Snapshot
from placer.passes.cluster.reading.gang_record import RecordedGangs
from tests.support import node, pod
from tests.test_network_costs import ZONE, topology, weights

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def network() -> list[dict[str, Any]]:
    links = weights("UserDefined", (ZONE, "z1", "z2", 7))
    nodes = [
        node(name, labels={"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": zone})
        for name, zone in (("a", "z1"), ("b", "z2"))
    ]
    return [*nodes, topology(links)]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make a cluster of objects, and note which one is asked for."""
    asked: list[tuple[str | None, str | None]] = []

    def connect(kubeconfig: str | None = None, context: str | None = None) -> None:
        asked.append((kubeconfig, context))

    def holding(*objects: dict[str, Any]) -> list[tuple[str | None, str | None]]:
        items = tuple(json.dumps(each).encode() for each in objects)
        taken = Snapshot(scheduler_name="placer", items=items, versions={}, counts={"nodes": 2})
        monkeypatch.setattr(placer.passes.cluster, "take", lambda *_, **__: taken)
        monkeypatch.setattr(placer.passes.cluster.Client, "connect", connect)
        monkeypatch.setattr("placer.cli.snapshotting.take", lambda *_: taken)
        monkeypatch.setattr("placer.cli.snapshotting.failed_pods", lambda *_: [])
        monkeypatch.setattr("placer.cli.snapshotting.read_record", lambda *_: RecordedGangs())
        return asked

    return holding


def test_topology_costs_of_a_cluster_are_those_of_its_objects(
    network: list[dict[str, Any]], cluster: Any, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "network.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": network}))
    assert main(["topology", "costs", str(path), "--json"]) == 0
    of_files = capsys.readouterr().out
    assert '"z2": 7' in of_files
    asked = cluster(*network)
    assert main(["topology", "costs", "--kubeconfig", "here", "--context", "that", "--json"]) == 0
    assert capsys.readouterr().out == of_files
    assert main(["topology", "costs"]) == 0
    assert asked == [("here", "that"), (None, None)]
    capsys.readouterr()
    assert main(["topology", "costs", str(path), "--context", "that"]) == 2
    assert "found INSTANCE with them" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["costs.json", "costs.yaml.gz", "-"])
def test_topology_costs_are_written(network: list[dict[str, Any]], name: str, tmp_path: Path, capsys: Capture) -> None:
    path, target = tmp_path / "network.json", name if name == "-" else str(tmp_path / name)
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": network}))
    assert main(["topology", "costs", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert main(["topology", "costs", str(path), "-o", target]) == 0
    out = capsys.readouterr().out
    if name == "-":
        assert json.loads(out) == told
    else:
        assert out.startswith("NetworkTopology default/nt-default")
        import gzip

        data = Path(target).read_bytes()
        assert yaml.safe_load(gzip.decompress(data) if name.endswith(".gz") else data) == told
    assert main(["topology", "costs", str(path), "-o", str(tmp_path / "costs.txt")]) == 2


def test_a_snapshot_with_findings_is_refused_under_strict(cluster: Any, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "now.json"
    cluster(node("a"), pod("stray", node="gone", cpu=1))
    assert main(["snapshot", "-o", str(target), "--strict"]) == 3
    assert "UnknownReference" in capsys.readouterr().err
    assert not target.exists()
    assert main(["snapshot", "-o", str(target)]) == 0
    cluster(node("a"))
    assert main(["snapshot", "-o", str(target), "--strict"]) == 0


def test_a_snapshot_on_a_full_disk(cluster: Any, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "now.json"
    target.symlink_to("/dev/full")
    cluster(node("a"))
    assert main(["snapshot", "-o", str(target)]) == 2
    assert capsys.readouterr().err.startswith(f"placer: {target}: cannot be written: ")


def test_expand_makes_the_pods_of_one_scheduler(tmp_path: Path, capsys: Capture) -> None:
    """A Deployment's are the default scheduler's, a Volcano Job's are Volcano's, and with them goes its PodGroup."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}}
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train", "uid": "1"},
        "spec": {
            "schedulerName": "volcano",
            "minAvailable": 1,
            "tasks": [{"name": "w", "replicas": 1, "template": template}],
        },
    }
    path = tmp_path / "work.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [web, job]}))

    def made(*options: str) -> list[str]:
        assert main(["expand", str(path), "--json", *options]) == 0
        return sorted(
            each["kind"] + " " + each["metadata"]["name"] for each in json.loads(capsys.readouterr().out)["items"]
        )

    everything = made()
    assert len(everything) == 3
    assert made("--scheduler-name", "*") == everything
    assert made("--scheduler-name", "default-scheduler") == ["Pod web-0"]
    assert made("--scheduler-name", "volcano") == [each for each in everything if each != "Pod web-0"]
    assert main(["expand", str(path), "-o", str(tmp_path / "made.txt")]) == 2


@pytest.mark.parametrize(
    "first", ["placer.problem.reading", "placer.answers.explain", "placer.lab.comparing", "placer.cli.program"]
)
def test_names_of_the_package_are_functions_whatever_was_imported_first(first: str) -> None:
    program = f"import {first}, placer; print(*map(callable, (getattr(placer, name) for name in placer.__all__)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split().count("True") == len(placer.__all__) - 1, "all but __version__"


def test_importing_the_package_imports_nothing_else_of_it() -> None:
    """Until the command line heeds interrupts one of them would be a traceback."""
    program = (
        "import sys, placer.cli; print(sorted(name for name in sys.modules if name.startswith('placer')), dir(placer))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("['placer', 'placer.base', 'placer.base.version', 'placer.cli'] [")
    assert "'solve'" in done.stdout
