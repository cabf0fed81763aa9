"""How long ``placer snapshot`` takes beside curl getting the same pages, and how much memory.

    python -m tests.benchmarks.snapshot [NODES PODS]

Starts an API server of its own, fills it (5,000 nodes of 6 KB, 55,000 pods of 5 KB, nine of ten bound), and measures in
turns: the sum of the seconds that curl says of each page of 500 nodes or pods; a whole ``placer snapshot`` in a process
of its own, starting Python included, and its peak memory. At the end it reads the file back.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import placer
from tests.cluster.api import Api
from tests.cluster.binaries import programs
from tests.cluster.server import ControlPlane

TURNS = 5
PAGE = 500


def node(number: int) -> dict[str, Any]:
    images = [
        {"names": [f"registry.example.com/team/service-{number}-{each}@sha256:{'a' * 64}"], "sizeBytes": 10**8}
        for each in range(40)
    ]
    amounts = {"cpu": "128", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8", "ephemeral-storage": "2Ti"}
    labels = {"kubernetes.io/hostname": f"node-{number:05d}", "topology.kubernetes.io/zone": f"zone-{number % 9}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number:05d}", "labels": labels},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "x" * 60}],
            "images": images,
        },
    }


def pod(number: int, nodes: int) -> dict[str, Any]:
    env = [{"name": f"SETTING_{each}", "value": f"value-{number}-{each}-" + "x" * 60} for each in range(16)]
    bound = {} if number % 10 == 0 else {"nodeName": f"node-{number % nodes:05d}"}
    container = {
        "name": "main",
        "image": f"registry.example.com/team/service:{number % 50}",
        "command": ["/bin/service", "--config", "/etc/service/config.yaml"],
        "env": env,
        "resources": {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/service"}],
    }
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"rs-{number % 500}", "uid": f"u-{number % 500}"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number:06d}",
            "namespace": "default",
            "labels": {"app": f"app-{number % 500}", "pod-template-hash": "5d69f8c7b4"},
            "annotations": {"scheduling.k8s.io/group-name": f"group-{number // 100}", "example.com/note": "y" * 200},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {
            "schedulerName": "placer",
            "containers": [container],
            "volumes": [{"name": "config", "configMap": {"name": "config"}}],
            **bound,
        },
    }


def fill(api: Api, nodes: int, pods: int) -> None:
    began = time.monotonic()
    api.create(*map(node, range(nodes)))
    for start in range(0, pods, 5000):
        api.create(*(pod(number, nodes) for number in range(start, min(start + 5000, pods))))
    print(f"filled in {time.monotonic() - began:.0f} s", flush=True)


def by_curl(server: ControlPlane, folder: Path) -> float:
    """Seconds that curl says it took for all pages."""
    return sum(second for path in ("nodes", "pods") for second in _pages(server, path, folder / "page"))


def _pages(server: ControlPlane, path: str, target: Path) -> Iterator[float]:
    token = ""
    while True:
        url = f"{server.url}/api/v1/{path}?limit={PAGE}&continue={token}"
        command = ["curl", "-sS", "--fail", "--cacert", str(server.certificate), "-o", str(target)]
        command += ["-H", f"Authorization: Bearer {server.token}", "-w", "%{time_total}", url]
        yield float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        token = json.loads(target.read_bytes())["metadata"].get("continue", "")
        if not token:
            return


def by_placer(server: ControlPlane, target: Path, *flags: str) -> tuple[float, float]:
    """Seconds and peak MiB of a whole process."""
    command = [sys.executable, "-m", "placer.cli", "snapshot", "--kubeconfig", str(server.kubeconfig())]
    began = time.monotonic()
    process = subprocess.Popen([*command, "-o", str(target), *flags], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"placer snapshot ended with {process.returncode}")
    return time.monotonic() - began, usage.ru_maxrss / 1024


def main(nodes: int = 5_000, pods: int = 55_000) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = ControlPlane(programs(), folder / "server")
        server.folder.mkdir()
        target = folder / "snapshot.json.gz"
        try:
            server.start()
            fill(Api(server.url, server.certificate, server.token), nodes, pods)
            curl, ours = [], []
            for _ in range(TURNS):
                curl.append(by_curl(server, folder))
                ours.append(by_placer(server, target))
                print(f"curl {curl[-1]:.2f} s, placer {ours[-1][0]:.2f} s, {ours[-1][1]:.0f} MiB", flush=True)
            hidden = by_placer(server, folder / "hidden.json.gz", "--anonymize")
        finally:
            server.stop()
        seconds = statistics.median(each for each, _ in ours)
        print(
            f"median: {seconds / statistics.median(curl):.2f} x curl; anonymous {hidden[0]:.1f} s, {hidden[1]:.0f} MiB"
        )
        began = time.monotonic()
        instance = placer.read(target)
        size = target.stat().st_size / 2**20
        print(f"{size:.1f} MiB, read in {time.monotonic() - began:.1f} s: {len(instance.pending):,} pending pods")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
