"""How long honest pods wait for a loop of passes while tenants do their worst.

    python -m tests.benchmarks.hostile_loop [--minutes 25] [--tenants hard costly heavy] [--nodes 200] [--size 500]

Starts an API server of its own and ``placer run --every 60s`` in a process of its own, with the flags of
``deploy/overlays/deployment``. Each tenant has a namespace, in which its objects are made and deleted in turn. Single
pods and gangs of four arrive meanwhile in two other namespaces, and end after half a minute to two minutes; there is
room for all of them. Prints the seconds from making to binding, of pods and of gangs; the memory of the process; the
seconds of passes' steps. Ends with 1 where an honest pod is not bound within a minute, the median exceeds three
seconds, memory grows by more than a tenth, or snapshot and decision take longer than the limit and two seconds.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count, cycle
from typing import Any

from tests.benchmarks.bind import started
from tests.cluster.api import Api
from tests.cluster.processes import PlacerProcess, running
from tests.cluster.things import live_pod
from tests.hostile import HOSTILE
from tests.support import Document, node, pod_group

CPU, EACH, GOOD = 100_000, 3, ("good-a", "good-b")
STEPS = ("snapshot", "solve", "lane", "bind", "tell")
#: Seconds between two turns of a tenant; most seconds that an honest pod may wait.
TURN, MOST = 20.0, 60.0


def hard(nodes: int, _size: int) -> list[Document]:
    """A gang that fills all cpu exactly, if at all: no search finds or refutes it soon."""
    draw, nodes = random.Random(0), min(nodes, 20)
    sizes = [0]
    while not CPU // 4 < sizes[-1] < CPU // 2:
        sizes = [draw.randint(CPU * 26 // 100, CPU * 40 // 100) for _ in range(nodes * EACH)]
        sizes[-1] += nodes * CPU - sum(sizes)
    spec = {"nodeSelector": {"pool": "hard"}}
    pods = [live_pod(f"hard-{at}", group="hard", spec=spec, cpu=f"{size}m") for at, size in enumerate(sizes)]
    return [pod_group("hard", minMember=len(sizes)), *pods]


def nowhere(_nodes: int, size: int) -> list[Document]:
    """Pods that fit nowhere."""
    return [live_pod(f"nowhere-{number}", cpu=1_000) for number in range(size)]


def daemons(_nodes: int, size: int) -> list[Document]:
    """DaemonSets of which no pod ever comes."""
    container = {"name": "main", "image": "example.com/main:1", "resources": {"requests": {"cpu": "90"}}}
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": f"never-{number}"},
            "spec": {
                "selector": {"matchLabels": {"n": str(number)}},
                "template": {"metadata": {"labels": {"n": str(number)}}, "spec": {"containers": [container]}},
            },
        }
        for number in range(size // 10)
    ]


def _pods_of(kind: str) -> Callable[[int, int], list[Document]]:
    """What the offline tests try, as a server takes it."""

    def made(_nodes: int, size: int) -> list[Document]:
        found = []
        for each in HOSTILE[kind](size):
            main = each["spec"]["containers"][0]
            requests = main.get("resources", {}).get("requests", {})
            if "topologySpreadConstraints" in each["spec"]:  # a server takes one of a key
                del each["spec"]["topologySpreadConstraints"][1:]
            main["resources"] = {"requests": requests, "limits": {k: v for k, v in requests.items() if "/" in k}}
            found.append(each)
        return found

    return made


#: What each tenant makes, turn by turn.
TENANTS: dict[str, tuple[Callable[[int, int], list[Document]], ...]] = {
    "hard": (hard,),
    "nowhere": (nowhere,),
    "costly": tuple(map(_pods_of, ("anti_affinity", "spread", "broad_terms", "host_ports", "node_terms"))),
    "heavy": (*map(_pods_of, ("huge_labels", "pods_of_many_resources", "amounts", "affinity")), daemons, nowhere),
}


@dataclass
class Honest:
    """What the others make, and how long each thing waited.

    Parameters
    ----------
    api
        Of the server.
    over
        Is set when nothing may be made any more.
    waits
        Pods of a thing to the seconds that each of these things waited; infinite: longer than a minute.
    """

    api: Api
    over: threading.Event
    waits: dict[int, list[float]] = field(default_factory=lambda: {1: [], 4: []})
    threads: list[threading.Thread] = field(default_factory=list)

    def arrive(self) -> None:
        """Make things until it is over."""
        draw = random.Random(0)
        for number in count():
            if self.over.wait(draw.uniform(0.5, 5.0)):
                break
            size = 4 if number % 4 == 3 else 1
            lives = draw.uniform(30.0, 120.0)
            self.threads.append(threading.Thread(target=self._one, args=(number, size, lives)))
            self.threads[-1].start()

    def _one(self, number: int, size: int, lives: float) -> None:
        namespace = GOOD[number % 2]
        group = f"g{number}" if size > 1 else None
        pods = [live_pod(f"h{number}-{at}", namespace=namespace, group=group, memory="1Mi") for at in range(size)]
        paths = [f"/api/v1/namespaces/{namespace}/pods/{each['metadata']['name']}" for each in pods]
        if group is not None:
            self.api.create(pod_group(group, namespace=namespace, minMember=size))
        self.api.create(*pods)
        began = time.monotonic()
        for path in paths:
            while "nodeName" not in self.api.get(path)["spec"] and time.monotonic() < began + MOST:
                time.sleep(0.1)
        waited = time.monotonic() - began
        self.waits[size].append(waited if waited < MOST else float("inf"))
        self.over.wait(lives)
        for path in paths:
            self.api.delete(path)


def tenant(api: Api, name: str, nodes: int, size: int, over: threading.Event) -> None:
    """Make one kind of objects after another in the tenant's namespace, and delete those of the turn before."""
    before: list[Document] = []
    for turn, kind in enumerate(cycle(TENANTS[name])):
        made = [_named(each, name, turn) for each in kind(nodes, size)]
        for at in range(0, len(made), 50):
            if not over.is_set():
                api.create(*made[at : at + 50])
        for each in before:
            if not over.is_set():
                api.delete(api.path(each))
        before = made
        if name == "hard" or over.wait(TURN):
            return


def _named(document: Document, namespace: str, turn: int) -> Document:
    """The same in a namespace, with a name of its own in each turn."""
    metadata = dict(document["metadata"])
    if document["kind"] != "PodGroup":
        metadata["name"] = f"{metadata['name']}-{turn}"
    return {**document, "metadata": {**metadata, "namespace": namespace}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=25.0)
    parser.add_argument("--tenants", nargs="*", choices=TENANTS, default=["hard", "costly", "heavy"])
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--size", type=int, default=500)
    parser.add_argument("--time-limit", type=float, default=5.0)
    wanted = parser.parse_args()
    over = threading.Event()
    with started() as (server, api):
        api.make_namespaces(*wanted.tenants, *GOOD)
        api.create(*_nodes(wanted.nodes))
        flags = ["--kubeconfig", str(server.kubeconfig()), "--every", "60s", "--time-limit", str(wanted.time_limit)]
        with running([*flags, "--namespace-budget", "default"]) as process:
            honest = Honest(api, over)
            work: list[Callable[[], None]] = [honest.arrive]
            work += [partial(tenant, api, name, wanted.nodes, wanted.size, over) for name in wanted.tenants]
            threads = [threading.Thread(target=each) for each in work]
            for thread in threads:
                thread.start()
            memory = list(_memory(process, wanted.minutes))
            over.set()
            for thread in (*threads, *honest.threads):
                thread.join()
            process.terminate()
            code = process.wait()
            lines = process.lines
    return _judged(honest, memory, lines, code, wanted.time_limit)


def _nodes(nodes: int) -> Iterator[Document]:
    for number in range(nodes):
        labels = {"pool": "hard" if number < 20 else "any"}
        yield node(f"n{number:04d}", labels=labels, cpu=f"{CPU}m", pods=250)


def _memory(process: PlacerProcess, minutes: float) -> Iterator[int]:
    """KiB of the process, every five seconds."""
    end = time.monotonic() + 60.0 * minutes
    while time.monotonic() < end:
        yield process.memory or 0
        time.sleep(5.0)


def _judged(honest: Honest, memory: list[int], lines: list[dict[str, Any]], code: int, limit: float) -> int:
    """Print the figures; 1 where one is not as it must be."""
    faults = []
    for size, waits in honest.waits.items():
        median = statistics.median(waits) if waits else float("inf")
        print(f"{len(waits)} of {size} pods: median {median:.1f} s, slowest {max(waits, default=0.0):.1f} s")
        faults += [f"median of {size} pods: {median:.1f} s"] if median > 3.0 else []
        faults += ["a pod was not bound within a minute"] if float("inf") in waits else []
    fifth = max(1, len(memory) // 5)
    early, late = statistics.median(memory[fifth : 2 * fifth]), statistics.median(memory[-fifth:])
    print(f"memory {early / 1024:.0f} MiB early, {late / 1024:.0f} MiB late, {max(memory) / 1024:.0f} MiB at most")
    faults += ["memory grows"] if late > 1.1 * early else []
    for step in STEPS:
        seconds = [each["seconds"][step] for each in lines if step in each["seconds"]]
        if seconds:
            print(f"  {step}: median {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s")
    decided = [each["seconds"].get("snapshot", 0.0) + each["seconds"].get("solve", 0.0) for each in lines]
    print(f"{len(lines)} passes, ended with {code}; snapshot and decision: longest {max(decided, default=0.0):.1f} s")
    faults += [f"a pass decided for {max(decided):.1f} s"] if max(decided, default=0.0) > limit + 2.0 else []
    print(json.dumps({"faults": faults}))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
