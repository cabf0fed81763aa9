"""How long a gang waits for a loop of passes, from the moment at which its last pod is there to its last binding.

    python -m tests.benchmarks.loop [NODES RUNNING GANGS]

Starts an API server of its own with 1,000 nodes and 10,000 running pods, unless told otherwise, and ``placer run
--every 60s`` in a process of its own. One after another gangs of 16 pods are made; prints the seconds of each, their
median and the slowest, and the peak of the memory of the process.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial

from tests.benchmarks.bind import started
from tests.cluster.api import Api
from tests.cluster.passes import gang, leaves
from tests.cluster.things import live_pod
from tests.waiting import wait_until

PODS = 16


def main(nodes: int = 1_000, running: int = 10_000, gangs: int = 20) -> None:
    with started() as (server, api):
        racks = list(leaves(nodes // 20, 20, cpu=32))
        api.create(*racks)
        names = [each["metadata"]["name"] for each in racks if each["kind"] == "Node"]
        api.create(*(live_pod(f"runs-{i}", node=names[i % len(names)], cpu=1) for i in range(running)))
        with tempfile.TemporaryFile("w+") as told:
            flags = ["--kubeconfig", str(server.kubeconfig()), "--every", "60s", "--settle", "0"]
            process = subprocess.Popen([sys.executable, "-m", "placer", "run", *flags], stdout=told)
            wait_until(lambda: os.fstat(told.fileno()).st_size > 0, "the first pass")
            found = [_one(api, f"train-{number}") for number in range(gangs)]
            process.terminate()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            told.seek(0)
            passes = [json.loads(line) for line in told]
        print(f"seconds: {' '.join(f'{each:.2f}' for each in found)}")
        print(f"median {statistics.median(found):.2f} s, slowest {max(found):.2f} s; {len(passes)} passes")
        for step in ("snapshot", "solve", "bind", "tell"):
            print(f"  {step}: {statistics.median(each['seconds'].get(step, 0.0) for each in passes):.2f} s")
        print(f"peak {usage.ru_maxrss / 1024:.0f} MiB, ended with {process.returncode}")


def _one(api: Api, name: str) -> float:
    """Make a gang; seconds until the last of its pods has a node."""
    api.create(*gang(name, PODS))
    began = time.monotonic()
    until_bound(api, *(f"/api/v1/namespaces/default/pods/{name}-{number}" for number in range(PODS)))
    return time.monotonic() - began


def until_bound(api: Api, *paths: str) -> None:
    """Wait until each of some pods has a node."""
    for path in paths:
        wait_until(partial(_is_bound, api, path), path)


def _is_bound(api: Api, path: str) -> bool:
    return "nodeName" in api.get(path)["spec"]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
