"""How long single small pods wait for a loop of passes while one tenant's queue is hard.

    python -m tests.benchmarks.lane [--pods 20] [--time-limit 5] [--no-gang] [--nowhere 3000] [--sources FOLDER]

Starts an API server of its own, and ``placer run --every 60s`` in a process of its own. A tenant's gang needs a perfect
packing of all cpu, which a search neither finds nor refutes; with ``--nowhere`` so many pods that fit nowhere wait
beside it, and are made anew again and again. One after another small pods of another tenant come, which ask for memory
alone. Prints the seconds of each from its making to its binding, their median and the slowest, and how long the steps
of the passes took. ``--sources`` runs another version: a folder with ``placer``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.bind import started
from tests.benchmarks.loop import until_bound
from tests.cluster.api import Api
from tests.cluster.things import live_pod
from tests.support import Document, node, pod_group
from tests.waiting import wait_until

NODES, CPU, EACH = 20, 100_000, 3
EVIL, GOOD = "evil", "good"


def hard(seed: int) -> Iterator[Document]:
    """A gang that fills all nodes exactly, if at all."""
    draw = random.Random(seed)
    sizes = [draw.randint(CPU * 26 // 100, CPU * 40 // 100) for _ in range(NODES * EACH)]
    sizes[-1] += NODES * CPU - sum(sizes)
    while not CPU // 4 < sizes[-1] < CPU // 2:
        sizes = [draw.randint(CPU * 26 // 100, CPU * 40 // 100) for _ in range(NODES * EACH)]
        sizes[-1] += NODES * CPU - sum(sizes)
    yield pod_group("hard", namespace=EVIL, minMember=len(sizes))
    for number, size in enumerate(sizes):
        yield live_pod(f"hard-{number}", namespace=EVIL, group="hard", cpu=f"{size}m")


def nowhere(count: int, turn: int) -> list[Document]:
    return [live_pod(f"nowhere-{turn}-{number}", namespace=EVIL, cpu=1_000) for number in range(count)]


def again_and_again(api: Api, count: int, over: threading.Event) -> None:
    """Make pods anew that fit nowhere until that is over."""
    turn = 0
    while count and not over.is_set():
        made = nowhere(count, turn)
        for at in range(0, count, 100):
            if not over.is_set():
                api.create(*made[at : at + 100])
        over.wait(10.0)
        for each in made:
            if not over.is_set():
                api.delete(f"/api/v1/namespaces/{EVIL}/pods/{each['metadata']['name']}")
        turn += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=20)
    parser.add_argument("--time-limit", type=float, default=5.0)
    parser.add_argument("--nowhere", type=int, default=0)
    parser.add_argument("--gang", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--sources", type=Path)
    wanted = parser.parse_args()
    draw, over = random.Random(0), threading.Event()
    with started() as (server, api), tempfile.TemporaryFile("w+") as told:
        names = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in (EVIL, GOOD)]
        api.create(*names, *(node(f"n{number:02d}", cpu=f"{CPU}m") for number in range(NODES)))
        api.create(*(hard(0) if wanted.gang else ()))
        flags = ["--kubeconfig", str(server.kubeconfig()), "--every", "60s", "--time-limit", str(wanted.time_limit)]
        where = {} if wanted.sources is None else {"PYTHONPATH": str(wanted.sources.resolve())}
        folder = None if wanted.sources is None else wanted.sources
        process = subprocess.Popen(
            [sys.executable, "-m", "placer", "run", *flags, "--workers", "2"],
            stdout=told,
            env={**os.environ, **where},
            cwd=folder,
        )
        tenant = threading.Thread(target=again_and_again, args=(api, wanted.nowhere, over))
        try:
            wait_until(lambda: os.fstat(told.fileno()).st_size > 0, "the first pass")
            tenant.start()
            found = []
            for number in range(wanted.pods):
                found.append(_one(api, f"small-{number}"))
                time.sleep(draw.uniform(0.5, 5.0))
        finally:
            over.set()
            process.terminate()
            process.wait()
        tenant.join()
        told.seek(0)
        passes = [json.loads(line) for line in told]
    print(f"seconds: {' '.join(f'{each:.1f}' for each in found)}")
    print(f"median {statistics.median(found):.1f} s, slowest {max(found):.1f} s; {len(passes)} passes")
    for step in ("snapshot", "solve", "lane", "bind", "tell"):
        seconds = [each["seconds"][step] for each in passes if step in each["seconds"]]
        if seconds:
            print(f"  {step}: median {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s")


def _one(api: Api, name: str) -> float:
    """Make a pod; seconds until it has a node."""
    began = time.monotonic()
    api.create(live_pod(name, namespace=GOOD, memory="1Mi"))
    until_bound(api, f"/api/v1/namespaces/{GOOD}/pods/{name}")
    return time.monotonic() - began


if __name__ == "__main__":
    main()
