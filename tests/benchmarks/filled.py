"""Real clusters that are full: a shipped queue runs on 95 % of the GPUs, and gangs of a higher priority wait.

What the best placement known places of an instance runs there, by chance as much as the share says. Gangs of what it
does not place wait, or where it places all of it copies of those that run. A queue of gangs keeps them, and they go as
one; of single pods some become gangs, and the others belong to ReplicaSets. Some of both have a disruption budget. The
same seed gives the same cluster.
"""

from __future__ import annotations

import copy
import gzip
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from placer.lab.generate.objects import (
    GPU,
    GROUP,
    Document,
    created,
    disruption_budget,
    pod_group,
    priority_class,
    run_on,
)
from placer.lab.generate.random_source import RandomSource
from placer.problem import Key

__all__ = ["filled"]

OWNER = "placer.dev/owner"
#: Priority classes of what runs; what waits has the last.
RUNNING = {"priority-1": 100, "priority-2": 200, "priority-3": 300}
WAITING, PRIORITY = "priority-top", 1000
#: Shares: of jobs made of single pods that are gangs where they run, and of jobs and ReplicaSets that have a budget.
GANGS, BUDGETS = 0.3, 0.2
#: Pods of a gang that is made of single ones, at most, and of a ReplicaSet.
MOST_PODS, REPLICAS = 16, 10


@dataclass(frozen=True)
class _Job:
    """Pods that go together, or that one controller keeps."""

    name: str
    pods: tuple[Document, ...]
    group: Document | None = None

    @property
    def gpus(self) -> int:
        """GPUs that its pods ask for."""
        return sum(_gpus(each["resources"]["requests"]) for pod in self.pods for each in pod["spec"]["containers"])

    def again(self) -> _Job:
        """The same job under another name."""
        return _Job(f"{self.name}-again", tuple(map(_again, self.pods)), self.group and _again(self.group))

    def of_priority(self, name: str, value: int) -> _Job:
        """The job with a priority class."""
        for pod in self.pods:
            pod["spec"] |= {"priorityClassName": name, "priority": value}
        if self.group is not None:
            self.group["spec"]["priorityClassName"] = name
        return self

    def documents(self) -> Iterator[Document]:
        """Its objects."""
        yield from self.pods
        if self.group is not None:
            yield self.group


def _gpus(room: Mapping[str, str]) -> int:
    return int(room.get(GPU, "0"))


def _key(pod: Document) -> Key:
    return Key(pod["metadata"]["namespace"], pod["metadata"]["name"])


def _again(document: Document) -> Document:
    made = copy.deepcopy(document)
    made["spec"].pop("nodeName", None)
    metadata = made["metadata"]
    metadata["name"] += "-again"
    if GROUP in metadata.get("annotations", {}):
        metadata["annotations"][GROUP] += "-again"
    return made


def filled(path: Path, seed: int, share: float = 0.95, waiting: float = 0.1) -> list[Document]:
    """Fill the cluster of an instance in a file.

    Parameters
    ----------
    path
        A list of objects in which nothing runs, packed JSON.
    seed
        Of priorities, gangs of single pods, budgets, what stays and what waits.
    share
        Of all GPUs, that run at most.
    waiting
        Of all GPUs, that the gangs ask for that wait, at most.
    """
    items: list[Document] = json.loads(gzip.decompress(path.read_bytes()))["items"]
    cluster = [item for item in items if item["kind"] in ("Node", "HyperNode")]
    classes = [priority_class(*each) for each in {**RUNNING, WAITING: PRIORITY}.items()]
    total = sum(_gpus(each["status"]["allocatable"]) for each in cluster if each["kind"] == "Node")
    placed, rest = _jobs(items, _best(path), RandomSource(seed, "gangs"))
    rest = rest or [job.again() for job in placed]
    running = _running(placed, math.floor(share * total), RandomSource(seed, "running"))
    gangs = [job for job in rest if job.group is not None]
    waiting_jobs = _within(RandomSource(seed, "waiting").shuffled(gangs), math.floor(waiting * total))
    jobs = [*running, *(job.of_priority(WAITING, PRIORITY) for job in waiting_jobs)]
    budgets = _owned(running, RandomSource(seed, "budgets"))
    return [*cluster, *classes, *budgets, *(each for job in jobs for each in job.documents())]


def _best(path: Path) -> dict[Key, str]:
    """Pod to node of the best placement known, which lies beside an instance."""
    best = path.with_name(path.name.replace(".json.gz", ".best.json.gz"))
    bindings = json.loads(gzip.decompress(best.read_bytes()))["bindings"]
    return {Key(each["namespace"], each["pod"]): each["node"] for each in bindings}


def _within(jobs: Iterable[_Job], gpus: int) -> Iterator[_Job]:
    """Job after job, but for those that would ask for more GPUs than are left."""
    for job in jobs:
        if job.gpus <= gpus:
            gpus -= job.gpus
            yield job


def _jobs(items: Sequence[Document], node_of: Mapping[Key, str], source: RandomSource) -> tuple[list[_Job], list[_Job]]:
    """Jobs that are placed, each pod on its node, and those that are not: gangs, or what is made of single pods."""
    groups = {item["metadata"]["name"]: item for item in items if item["kind"] == "PodGroup"}
    pods: dict[str, list[Document]] = defaultdict(list)
    for item in items:
        if item["kind"] == "Pod":
            pods[item["metadata"].get("annotations", {}).get(GROUP, "")].append(item)
    several = [_Job(name, tuple(pods[name]), group) for name, group in groups.items()]
    parts = [[pod for pod in pods[""] if (_key(pod) in node_of) is there] for there in (True, False)]
    placed = list(_made_of_singles("job", parts[0], GANGS, source))
    rest = list(_made_of_singles("next", parts[1], 1.0, source))
    for job in several:
        (placed if all(_key(pod) in node_of for pod in job.pods) else rest).append(job)
    for pod in (pod for job in placed for pod in job.pods):
        pod["spec"]["nodeName"] = node_of[_key(pod)]
    return placed, rest


def _made_of_singles(word: str, pods: Sequence[Document], share: float, source: RandomSource) -> Iterator[_Job]:
    """Gangs, by chance a share of all, and ReplicaSets: of pods that are alike, one sort after another."""
    alike: dict[str, list[Document]] = defaultdict(list)
    for pod in source.shuffled(pods):
        alike[json.dumps(pod["spec"], sort_keys=True)].append(pod)
    for each in alike.values():
        while each:
            gang = source.chance(share)
            count = int(source.log_between(2, MOST_PODS)) if gang else REPLICAS
            part = tuple(each[:count])
            del each[:count]
            name = f"{word}-{part[0]['metadata']['name']}"
            yield _Job(name, part, _gang(name, part) if gang and len(part) > 1 else None)


def _gang(name: str, pods: Sequence[Document]) -> Document:
    """A PodGroup that needs all of some pods; they become its."""
    for pod in pods:
        pod["metadata"].setdefault("annotations", {})[GROUP] = name
    namespace = pods[0]["metadata"]["namespace"]
    return pod_group(name, {"minMember": len(pods)}, False, namespace=namespace)


def _running(jobs: Sequence[_Job], gpus: int, source: RandomSource) -> list[_Job]:
    """As many of the jobs by chance as hold so many GPUs, each of some priority; they run."""
    classes = [*RUNNING.items()]
    found = [job.of_priority(*source.pick(classes)) for job in _within(source.shuffled(jobs), gpus)]
    for pod in (pod for job in found for pod in job.pods):
        run_on(pod, pod["spec"]["nodeName"])
    for group in (job.group for job in found if job.group is not None):
        group["status"] = {"phase": "Running"}
    return found


def _owned(jobs: Sequence[_Job], source: RandomSource) -> list[Document]:
    """Give every job a controller and an age; budgets of some: no pod of a gang may go, one of a ReplicaSet."""
    budgets = list[Document]()
    for age, job in enumerate(source.shuffled(jobs)):
        kind = "ReplicaSet" if job.group is None else "Job"
        owner = {"apiVersion": "apps/v1", "kind": kind, "name": job.name, "uid": job.name, "controller": True}
        for pod in job.pods:
            metadata = pod["metadata"]
            metadata["labels"] = {**metadata.get("labels", {}), OWNER: job.name}
            metadata |= {"creationTimestamp": created(age), "ownerReferences": [owner]}
        if source.chance(BUDGETS):
            namespace = job.pods[0]["metadata"]["namespace"]
            budgets.append(disruption_budget(job.name, namespace, {OWNER: job.name}, int(job.group is None)))
    return budgets
