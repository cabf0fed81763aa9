"""From gangs to PodGroups and Pods, as Volcano's job controller would have made them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from placer.laboratory.generate.carving import CarvedGang, GangPart
from placer.laboratory.generate.fabric import NODE_TYPES
from placer.laboratory.generate.objects import GPU, INSTANCE_TYPE, Document, requests
from placer.laboratory.generate.options import GangMix
from placer.laboratory.generate.random_source import RandomSource

__all__ = ["GROUP", "NAMESPACE", "GeneratedJob", "JobPod", "draw_jobs", "pod_groups", "total_requests"]

NAMESPACE = "default"
TASK = "volcano.sh/task-spec"
PARTITION = "volcano.sh/partition-id"
GROUP = "scheduling.k8s.io/group-name"
#: Creation time of the first job; each job is a second younger than the one before it.
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class JobPod:
    """A pod: its object without a node, and the number of the node it was cut from."""

    document: Document
    node: int
    running: bool

    @property
    def name(self) -> str:
        """Name of the pod."""
        return str(self.document["metadata"]["name"])


@dataclass(frozen=True)
class GeneratedJob:
    """A gang with all that is drawn besides its shape.

    Parameters
    ----------
    name
        Name of the PodGroup, and start of the names of its pods.
    gang
        What it is made of.
    created
        Creation time, RFC 3339.
    soft
        Its networkTopology is soft.
    needed
        Share of its pods (or subgroups) that it needs.
    priority
        Name of its PriorityClass; empty: none.
    queue
        Name of its queue; empty: none.
    running
        How many of its pods run already.
    """

    name: str
    gang: CarvedGang
    created: str
    soft: bool
    needed: float
    priority: str
    queue: str
    running: int

    @property
    def minimums(self) -> dict[str, int]:
        """Pods needed per role: of a part in subgroups, whole subgroups."""
        found = {}
        for part in self.gang.parts:
            unit = part.sub_size or 1
            found[part.role] = unit * math.ceil(self.needed * len(part.nodes) / unit)
        return found


def draw_jobs(
    gangs: Sequence[CarvedGang],
    names: Sequence[str],
    mix: GangMix,
    source: RandomSource,
    running: Sequence[float] | None = None,
) -> list[GeneratedJob]:
    """Draw what a gang's shape does not say.

    Parameters
    ----------
    gangs
        The gangs.
    names
        A name for each; jobs are created in the order of their names.
    mix, source
        The options and all chance.
    running
        Share of each gang's pods that run already; None: nothing runs.
    """
    priorities = [f"priority-{i + 1}" for i in range(mix.priorities)] if mix.priorities > 1 else [""]
    queues = [f"team-{i + 1}" for i in range(mix.queues)] or [""]
    age = {name: order for order, name in enumerate(sorted(names))}
    jobs = []
    for index, (gang, name) in enumerate(zip(gangs, names, strict=True)):
        jobs.append(
            GeneratedJob(
                name=name,
                gang=gang,
                created=f"{EPOCH + timedelta(seconds=age[name]):%Y-%m-%dT%H:%M:%SZ}",
                soft=source.chance(mix.soft),
                needed=source.between(0.5, 0.9) if source.chance(mix.elastic) else 1.0,
                priority=source.pick(priorities),
                queue=source.pick(queues),
                running=math.ceil(gang.pods * running[index]) if running else 0,
            )
        )
    return jobs


def pod_groups(job: GeneratedJob, source: RandomSource) -> tuple[Document, list[JobPod]]:
    """Make the PodGroup of a job and its pods; which pod was cut from which node is shuffled within its role."""
    members = [member for part in job.gang.parts for member in _members(job, part, source)]
    spots = set(source.shuffled(range(len(members)))[: job.running])
    running = [JobPod(member.document, member.node, index in spots) for index, member in enumerate(members)]
    return _pod_group(job), running


def _members(job: GeneratedJob, part: GangPart, source: RandomSource) -> Iterator[JobPod]:
    blocks = [source.shuffled(block) for block in source.shuffled(part.blocks)]
    for index, node in enumerate(node for block in blocks for node in block):
        yield JobPod(_pod(job, part, index), node, False)


def _pod(job: GeneratedJob, part: GangPart, index: int) -> Document:
    labels = {"volcano.sh/job-name": job.name, TASK: part.role, "volcano.sh/task-index": str(index)}
    if part.sub_size:
        labels[PARTITION] = str(index // part.sub_size)
    room = requests(part.gpus, part.cpu, part.memory)
    spec: Document = {
        "schedulerName": "placer",
        "containers": [
            {"name": part.role, "image": "example.com/job:1", "resources": {"requests": room, "limits": dict(room)}}
        ],
    }
    if job.priority:
        spec["priorityClassName"] = job.priority
    if part.node_type is not None:
        spec["nodeSelector"] = {INSTANCE_TYPE: NODE_TYPES[part.node_type].name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{job.name}-{part.role}-{index}",
            "namespace": NAMESPACE,
            "creationTimestamp": job.created,
            "labels": labels,
            "annotations": {GROUP: job.name, TASK: part.role},
        },
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def _pod_group(job: GeneratedJob) -> Document:
    minimums = job.minimums
    spec: Document = {
        "minMember": sum(minimums.values()),
        "minTaskMember": minimums,
        "minResources": _least(job, minimums),
        "networkTopology": _topology(job, job.gang.tier),
    }
    policies = [_policy(job, part, minimums[part.role]) for part in job.gang.parts if part.sub_size]
    if policies:
        spec["subGroupPolicy"] = policies
    if job.priority:
        spec["priorityClassName"] = job.priority
    if job.queue:
        spec["queue"] = job.queue
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": job.name, "namespace": NAMESPACE, "creationTimestamp": job.created},
        "spec": spec,
        "status": {"phase": "Running" if job.running else "Inqueue"},
    }


def _topology(job: GeneratedJob, tier: int) -> Document:
    return {"mode": "soft"} if job.soft else {"mode": "hard", "highestTierAllowed": tier}


def _policy(job: GeneratedJob, part: GangPart, minimum: int) -> Document:
    policy: Document = {
        "name": part.role,
        "subGroupSize": part.sub_size,
        "minSubGroups": minimum // part.sub_size,
        "labelSelector": {"matchLabels": {TASK: part.role}},
        "matchLabelKeys": [PARTITION],
    }
    if part.sub_tier:
        policy["networkTopology"] = _topology(job, part.sub_tier)
    return policy


def _least(job: GeneratedJob, minimums: dict[str, int]) -> dict[str, str]:
    counts = [(part, minimums[part.role]) for part in job.gang.parts]
    return requests(
        sum(part.gpus * count for part, count in counts),
        sum(part.cpu * count for part, count in counts),
        sum(part.memory * count for part, count in counts),
    )


def total_requests(jobs: Sequence[GeneratedJob]) -> dict[str, str]:
    """Sum what all pods of some jobs request."""
    parts = [(part, len(part.nodes)) for job in jobs for part in job.gang.parts]
    total = requests(
        sum(part.gpus * count for part, count in parts),
        sum(part.cpu * count for part, count in parts),
        sum(part.memory * count for part, count in parts),
    )
    return {GPU: "0"} | total
