"""How many bindings a second ``placer run`` makes of one gang, beside a bare loop that sends the same requests.

    python -m tests.benchmarks.bind [PODS NODES]

Starts an API server of its own. In turns: 5,000 pods of one gang are made and bound by a whole ``placer run`` in a
process of its own (its seconds from the first binding until all of them have come back as events, as it says itself);
then 5,000 pods are made and bound by 16 threads that do nothing but send the bindings and read the answers.
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
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import urllib3

from tests.cluster.api import Api
from tests.cluster.binaries import programs, resource_definitions
from tests.cluster.passes import gang
from tests.cluster.server import ControlPlane
from tests.support import node

TURNS = 5
THREADS = 16


def by_placer(server: ControlPlane, pods: int) -> tuple[float, float, float]:
    """Seconds of the bindings, those of the whole process, and its peak MiB."""
    command = [sys.executable, "-m", "placer.cli", "run", "--kubeconfig", str(server.kubeconfig()), "--settle", "0"]
    began = time.monotonic()
    with tempfile.TemporaryFile() as told:
        process = subprocess.Popen(command, stdout=told)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        told.seek(0)
        summary = json.loads(told.read())
    if process.returncode or summary["bound"] != pods:
        raise SystemExit(f"placer run ended with {process.returncode}: {summary}")
    return summary["seconds"]["bind"], time.monotonic() - began, usage.ru_maxrss / 1024


def by_loop(server: ControlPlane, made: list[dict[str, Any]], nodes: int) -> float:
    """Seconds of the same requests without anything around them."""
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    pool = urllib3.PoolManager(maxsize=THREADS, ca_certs=str(server.certificate), retries=False)

    def bind(number: int) -> None:
        metadata = made[number]["metadata"]
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": metadata["name"], "namespace": "default", "uid": metadata["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": f"n{number % nodes:04d}"},
        }
        url = f"{server.url}/api/v1/namespaces/default/pods/{metadata['name']}/binding"
        answer = pool.request("POST", url, body=json.dumps(body).encode(), headers=headers)
        if answer.status != 201:
            raise SystemExit(f"{metadata['name']}: {answer.status}")

    began = time.monotonic()
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(bind, range(len(made))))
    return time.monotonic() - began


@contextmanager
def started() -> Iterator[tuple[ControlPlane, Api]]:
    """An API server that knows Volcano's kinds and has the namespace of our Lease."""
    with tempfile.TemporaryDirectory() as name:
        server = ControlPlane(programs(), Path(name) / "server")
        server.folder.mkdir()
        try:
            server.start()
            api = Api(server.url, server.certificate, server.token)
            api.install(resource_definitions("volcano"))
            api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "placer"}})
            yield server, api
        finally:
            server.stop()


def main(pods: int = 5_000, nodes: int = 500) -> None:
    with started() as (server, api):
        api.create(*(node(f"n{number:04d}", cpu=64) for number in range(nodes)))
        ours, bare = [], []
        for turn in range(TURNS):
            api.create(*gang(f"train-{turn}", pods))
            seconds, whole, memory = by_placer(server, pods)
            ours.append(pods / seconds)
            _clear(api)
            made = api.create(*gang(f"bare-{turn}", pods))
            bare.append(pods / by_loop(server, made[1:], nodes))
            _clear(api)
            print(
                f"placer {ours[-1]:.0f} a second (whole pass {whole:.1f} s, {memory:.0f} MiB), "
                f"bare loop {bare[-1]:.0f} a second: {ours[-1] / bare[-1]:.0%}",
                flush=True,
            )
    print(f"median: {statistics.median(map(float.__truediv__, ours, bare)):.0%} of the bare loop")


def _clear(api: Api) -> None:
    names = [each["metadata"]["name"] for each in api.items("/api/v1/pods")]
    api.each(api.delete, [f"/api/v1/namespaces/default/pods/{name}" for name in names])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
