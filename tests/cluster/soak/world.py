"""A cluster in which jobs arrive and end, some of them for kube-scheduler; all of it drawn by a seed."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import urllib3

from tests.cluster.api import Api, Refused
from tests.cluster.background import at_work
from tests.cluster.passes import gang, leaves
from tests.cluster.soak.ledger import Ledger
from tests.cluster.things import live_pod
from tests.support import Document

__all__ = ["World"]

_PODS = "/api/v1/namespaces/default/pods"
_GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
CPUS, RACK = 32, 20
#: Pods of 4 cpu that run on each node of a rack from the beginning to the end: some racks are full, half of all cpu.
_RUNNING = (0, 4, 8)
#: CPUs of a pod of a gang, pods of it.
_SIZES, _PODS_OF_GANG = (4, 8, 16, 24, 28), (2, 4, 8, 8, 16)
#: Most pods of a gang that must be in one rack.
_IN_RACK = 8
#: Most gangs that wait: who has so many jobs in the queue submits no more.
_QUEUE = 12


@dataclass(slots=True)
class _Job:
    name: str
    pods: list[str]
    is_gang: bool
    end: int | None = None  #: the step in which it ends: known when it has begun
    ended: bool = False


class World:
    """Nodes in racks, what runs on them, and what comes and goes.

    Parameters
    ----------
    api
        The server.
    nodes
        How many; in racks of twenty.
    seed
        Draws everything.
    """

    def __init__(self, api: Api, nodes: int, seed: int) -> None:
        self._api, self._draw, self._nodes = api, random.Random(f"{seed} world"), nodes
        self._documents = list(leaves(max(1, nodes // RACK), min(nodes, RACK), cpu=CPUS))
        self._names = [each["metadata"]["name"] for each in self._documents if each["kind"] == "Node"]
        racks = [self._names[begin : begin + RACK] for begin in range(0, len(self._names), RACK)]
        self.ledger, self.lock = Ledger(racks), threading.Lock()
        for each in self._documents:
            if each["kind"] == "Node":
                self.ledger.node_is(each)
        self._jobs: list[_Job] = []
        self._ended: list[tuple[int, _Job]] = []  # when they are cleaned up
        self._number, self._step = 0, 0
        #: Gangs that arrive in a step, so that what runs for thirty steps fills what is free.
        self._rate = max(1.0, 0.5 * CPUS * len(self._names) / (30 * 130))

    def listeners(self) -> dict[str, Callable[[str, Any], None]]:
        """Who hears of which list."""
        ledger = self.ledger
        found = {
            "/api/v1/pods": ledger.pod_happened,
            "/apis/scheduling.volcano.sh/v1beta1/podgroups": ledger.group_happened,
            "/apis/events.k8s.io/v1/events": ledger.event_happened,
            "/apis/coordination.k8s.io/v1/namespaces/placer/leases": ledger.lease_happened,
        }

        def locked(listener: Callable[[str, Any], None]) -> Callable[[str, Any], None]:
            def work(kind: str, item: Any) -> None:
                with self.lock:
                    listener(kind, item)

            return work

        return {path: locked(listener) for path, listener in found.items()}

    def fill(self) -> None:
        """Make the nodes, and what runs on half of what they have."""
        self._api.create(*self._documents)
        runs = [
            live_pod(f"runs-{number}-{i}", scheduler="default-scheduler", node=name, cpu=4)
            for number, name in enumerate(self._names)
            for i in range(_RUNNING[number // RACK % len(_RUNNING)])
        ]
        self._api.create(*runs)

    # ----------------------------------------------------------------------------------------------- arrivals and ends

    def step(self) -> None:
        """Have some jobs end, and others arrive."""
        self._step += 1
        with self.lock:
            waiting = sum(all(not each.node for each in pods) for pods in self.ledger.members().values())
            bound = {each.name for each in self.ledger.pods.values() if each.node}
        for job in self._jobs:
            if job.end is None and bound.issuperset(job.pods):
                job.end = self._step + self._draw.randint(10, 50)
        self._clean_up()
        self._end([job for job in self._jobs if job.end is not None and job.end <= self._step])
        self._api.create(*self._arrivals(waiting))

    def _arrivals(self, waiting: int) -> list[Document]:
        draw, found = self._draw, list[Document]()
        gangs = int(self._rate + draw.random()) if waiting < _QUEUE else 0
        for _ in range(gangs):
            job = self._new("gang", draw.choice(_PODS_OF_GANG))
            tier = draw.choice((None, 1)) if len(job.pods) <= _IN_RACK else None
            found += gang(job.name, len(job.pods), tier=tier, cpu=draw.choice(_SIZES))
        for _ in range(int(self._rate + draw.random())):
            job = self._new("lone", 1)
            found += [live_pod(name, cpu=draw.choice((1, 2, 4))) for name in job.pods]
        for _ in range(int(self._rate + draw.random())):
            job = self._new("web", 4)
            found += [live_pod(name, scheduler="default-scheduler", cpu=2) for name in job.pods]
        return found

    def _new(self, kind: str, pods: int) -> _Job:
        self._number += 1
        name = f"{kind}{self._number}"
        self._jobs.append(_Job(name, [f"{name}-{i}" for i in range(pods)], kind == "gang"))
        return self._jobs[-1]

    def _end(self, jobs: list[_Job]) -> None:
        """Some succeed and are deleted later, others are deleted while they run."""
        self._jobs = [job for job in self._jobs if job not in jobs]
        for job in jobs:
            if self._draw.random() < 0.5:
                self._api.each(self._succeeds, job.pods)
                self._ended.append((self._step + 3, job))
            else:
                self._delete(job)

    def _succeeds(self, name: str) -> None:
        self._api.patch(f"{_PODS}/{name}/status", {"status": {"phase": "Succeeded"}})

    def _clean_up(self) -> None:
        due = [job for step, job in self._ended if step <= self._step]
        self._ended = [(step, job) for step, job in self._ended if step > self._step]
        for job in due:
            self._delete(job)

    def _delete(self, job: _Job) -> None:
        if job.is_gang:
            self._api.delete(f"{_GROUPS}/{job.name}")
        self._api.each(lambda name: self._api.delete(f"{_PODS}/{name}"), job.pods)

    # ------------------------------------------------------------------------------------------------------- kubelets

    @contextmanager
    def kubelets(self) -> Iterator[None]:
        """What is bound runs, for as long as the block lasts; a server that is away is waited for."""

        def step() -> None:
            with self.lock:
                coming = [each.name for each in self.ledger.pods.values() if each.node and each.phase == "Pending"]
            with suppress(urllib3.exceptions.HTTPError, OSError):
                self._api.each(self._runs, coming)

        with at_work(step, 0.2):
            yield

    def _runs(self, name: str) -> None:
        status = {"phase": "Running", "startTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        with suppress(Refused):  # deleted meanwhile
            self._api.patch(f"{_PODS}/{name}/status", {"status": status})
