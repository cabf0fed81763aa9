"""How long pods wait for a loop of passes, from making them to their binding, and what the loop costs meanwhile.

    python -m tests.benchmarks.loop [--nodes 1000] [--running 20000] [--seconds 60] [--size 4000]

Starts an API server of its own with nodes and running pods of so many bytes, and ``placer run --every 60s`` in a
process of its own, with the flags of ``deploy/overlays/deployment``. Single pods and gangs of four arrive meanwhile at
two pods a second; there is room for all of them. Prints the seconds from the last pod of each thing to its last
binding, the seconds of passes' steps, and the processor's time of a pass, in all and of passes with nothing pending.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Sequence
from typing import Any

from tests.benchmarks.bind import started
from tests.cluster.api import Api
from tests.cluster.passes import gang, leaves
from tests.cluster.processes import running
from tests.cluster.things import live_pod
from tests.waiting import wait_until

STEPS = ("snapshot", "solve", "lane", "bind", "tell")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--running", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--size", type=int, default=4_000)
    wanted = parser.parse_args()
    with started() as (server, api):
        racks = list(leaves(wanted.nodes // 20, 20, cpu=64))
        api.create(*racks)
        names = [each["metadata"]["name"] for each in racks if each["kind"] == "Node"]
        notes = {"example.com/text": "x" * wanted.size}
        api.create(*(_noted(live_pod(f"runs-{at}", node=names[at % len(names)], cpu=1), notes)
                     for at in range(wanted.running)))  # fmt: skip
        flags = ["--kubeconfig", str(server.kubeconfig()), "--every", "60s", "--time-limit", "5"]
        with running(flags) as process:
            wait_until(lambda: bool(process.lines), "the first pass")
            first = len(process.lines)
            began = process.processor
            waits = arrivals(api, wanted.seconds, notes)
            spent = process.processor - began
            process.terminate()
            process.wait()
            passes = process.lines[first:]
    for size, found in waits.items():
        print(f"{len(found)} of {size} pods: {_figures(found)}")
    for step in STEPS:
        seconds = [each["seconds"][step] for each in passes if step in each["seconds"]]
        if seconds:
            print(f"  {step}: {_figures(seconds)}")
    print(f"{len(passes)} passes, {spent / max(1, len(passes)):.2f} s of processor each, all its threads")


def arrivals(api: Api, seconds: float, notes: dict[str, str]) -> dict[int, list[float]]:
    """Make single pods and gangs of four in turn, two pods a second; pods of a thing to the seconds of each."""
    waits: dict[int, list[float]] = {1: [], 4: []}
    threads = []
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        size = 4 if number % 4 == 3 else 1
        threads.append(threading.Thread(target=_one, args=(api, f"new-{number}", size, notes, waits[size])))
        threads[-1].start()
        time.sleep(size / 2)
        number += 1
    for thread in threads:
        thread.join()
    return waits


def _one(api: Api, name: str, size: int, notes: dict[str, str], waits: list[float]) -> None:
    made = list(gang(name, size)) if size > 1 else [live_pod(f"{name}-0", cpu=1)]
    api.create(*(_noted(each, notes) if each["kind"] == "Pod" else each for each in made))
    began = time.monotonic()
    for at in range(size):
        while "nodeName" not in api.get(f"/api/v1/namespaces/default/pods/{name}-{at}")["spec"]:
            time.sleep(0.02)
    waits.append(time.monotonic() - began)


def _noted(document: dict[str, Any], notes: dict[str, str]) -> dict[str, Any]:
    metadata = document["metadata"]
    return {**document, "metadata": {**metadata, "annotations": metadata.get("annotations", {}) | notes}}


def _figures(seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    last = ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
    return f"median {statistics.median(ordered):.2f} s, p99 {last:.2f} s"


if __name__ == "__main__":
    main()
