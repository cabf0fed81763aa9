"""Families ``planted`` and ``clos``: gangs on a Clos fabric, in PodGroups and Pods as Volcano's controller makes
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from placer.lab.generate.carving import (
    NODE_TYPES,
    TIER_NAMES,
    CarvedGang,
    Fabric,
    GangPart,
    build_fabric,
    carve,
    weigh,
)
from placer.lab.generate.objects import (
    GPU,
    GROUP,
    Document,
    Generated,
    by_name,
    created,
    hyper_node,
    most_pods,
    names_by_chance,
    node_object,
    plant_pod,
    pod_group,
    pod_object,
    priority_class,
    queue,
    requests,
    running_shares,
)
from placer.lab.generate.options import GangMix, option, options_of, whole
from placer.lab.generate.random_source import RandomSource
from placer.problem import Key

__all__ = [
    "ClosOptions",
    "Cluster",
    "GeneratedJob",
    "PlantedOptions",
    "clos",
    "draw_jobs",
    "name_cluster",
    "plant",
    "planted",
    "running_services",
    "spare_room",
    "write_jobs",
]

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
TASK = "volcano.sh/task-spec"
PARTITION = "volcano.sh/partition-id"

#: The layout that Volcano's scheduler was timed on: one pod fills a node, everything hard, 5 % of the nodes stay empty.
LIKE_VOLCANO = {
    "leaf_size": 16,
    "leaves_per_spine": 16,
    "fill": 0.949,
    "tier_shares": (0.42, 0.38, 0.2),
    "subgroups": 0.0,
    "soft": 0.0,
}
#: What a running service asks for: milli-cores and MiB. It needs no GPU.
SERVICE = (100, 256)
#: Priority class below all others, of ``beyond_last``.
LAST = "priority-last"
#: Share of the waiting jobs of ``clos`` that the capabilities of the queues have room for.
WITHIN_CAPABILITY = 0.8


@dataclass(frozen=True, kw_only=True)
class PlantedOptions(GangMix):
    """Options of ``planted``, next to those of :class:`~placer.lab.generate.options.GangMix`."""

    nodes: int = option(64, "number of nodes", 1, 100_000)
    fill: float = option(1.0, "share of the nodes that is full; the others are empty", 0.01)
    running: float = option(0.0, "share of gangs that run already, where they were planted")
    anchored: float = option(0.0, "share of gangs of which half runs already")
    held: float = option(0.0, "share of the nodes on which single pods run already, half of them full")
    overfull: float = option(0.0, "jobs beyond the planted ones, as a share of all GPUs", 0, 100)
    beyond_last: bool = option(False, "jobs beyond the planted ones have a priority of their own, below all others")
    like_volcano: bool = option(False, "the layout that Volcano was timed on, for all options left at their defaults")

    def settled(self) -> PlantedOptions:
        """Apply ``like_volcano`` to options that have their defaults."""
        if not self.like_volcano:
            return self
        defaults = {each.name: each.default for each in options_of(type(self))}
        left = {name: value for name, value in LIKE_VOLCANO.items() if getattr(self, name) == defaults[name]}
        return replace(self, **left, like_volcano=False)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class ClosOptions(GangMix):
    """Options of ``clos``, next to those of :class:`~placer.lab.generate.options.GangMix`."""

    spines: int = option(4, "number of spines", 1, 100_000)
    load: float = option(0.5, "share of the GPUs that running jobs hold")
    queue: float = option(1.0, "GPUs that the queue asks for, as a share of those that are free", 0, 100)
    gangs: int = option(0, "number of gangs in the queue, whatever they ask for; 0: as many as --queue says", 0, 10**6)

    def check(self) -> None:
        """Limit the number of nodes."""
        super().check()
        nodes = self.nodes
        self.demand(
            nodes <= 100_000, "spines", f"{self.spines:,}, which makes {nodes:,} nodes", "at most 100,000 nodes"
        )

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.leaf_size * self.leaves_per_spine * self.spines


def planted(options: PlantedOptions) -> Generated:
    """Make a full cluster and a queue cut from it (:func:`plant`)."""
    mix = options.settled()
    fabric = build_fabric(mix.nodes, mix, RandomSource(mix.seed, "fabric"))
    return plant(name_cluster(fabric, RandomSource(mix.seed, "names of nodes")), mix)


def plant(cluster: Cluster, mix: PlantedOptions) -> Generated:
    """Fill any tree of nodes, and make a queue of its pods.

    Every GPU of every full node is in exactly one planted pod, but for GPUs of ``held`` pods. The planted placement
    keeps every hard limit and every subgroup, and each queue's capability is the sum of its planted jobs. With
    ``overfull`` it leaves out jobs, and is the best one only if those come last. ``mix.nodes`` has to be the number of
    nodes.
    """
    alone = _single_pods(cluster.fabric, mix, RandomSource(mix.seed, "held"))
    fabric = replace(cluster.fabric, held=tuple(map(sum, alone)))
    inside = _carved(fabric, mix, RandomSource(mix.seed, "planted gangs"), mix.fill)
    beyond = _beyond(_carved(cluster.fabric, mix, RandomSource(mix.seed, "gangs beyond")), mix) if mix.overfull else []
    shares = running_shares(len(inside), mix.running, mix.anchored, RandomSource(mix.seed, "running"))
    jobs = draw_jobs([*inside, *beyond], mix, [*shares, *(0.0 for _ in beyond)])
    if mix.beyond_last:
        jobs[len(inside) :] = [replace(job, priority=LAST) for job in jobs[len(inside) :]]
    documents, cut = write_jobs(jobs, jobs[: len(inside)], cluster, mix)
    running = [*_held(cluster, alone), *running_services(cluster, mix.services)]
    summary = {
        "nodes": mix.nodes,
        "gpus": mix.nodes * mix.gpus,
        "gpusPlanted": sum(gang.gpus for gang in inside),
        "jobs": len(jobs),
        "jobsPlanted": len(inside),
        "pods": sum(job.gang.pods for job in jobs) + len(running),
        "podsRunning": sum(job.running for job in jobs) + len(running),
        "podsPlanted": len(cut),
    }
    return Generated([*cluster.documents(mix, spare_room(mix)), *documents, *running], cut, summary)


def _single_pods(fabric: Fabric, mix: PlantedOptions, source: RandomSource) -> list[tuple[int, ...]]:
    """GPUs of the single pods that run on each node: all of it, or so many that the rest can be cut."""
    reach = whole(mix.gpus, mix.pod_sizes)
    partly = [size for size in range(1, mix.gpus) if reach[size] and reach[mix.gpus - size]]
    found: list[tuple[int, ...]] = [()] * fabric.nodes
    for node in source.shuffled(range(fabric.nodes))[: round(mix.held * fabric.nodes)]:
        size = source.pick(partly) if partly and source.chance(0.5) else mix.gpus
        found[node] = tuple(source.summands(size, mix.pod_sizes, reach))
    return found


def _held(cluster: Cluster, alone: Sequence[Sequence[int]]) -> Iterator[Document]:
    for number, sizes in sorted(enumerate(alone), key=lambda item: cluster.nodes[item[0]]):
        kind = NODE_TYPES[cluster.fabric.types[number]]
        for index, gpus in enumerate(sizes):
            room = requests(gpus, kind.cpu * gpus, kind.memory * gpus)
            yield _running_pod("singles", f"single-{cluster.nodes[number]}-{index}", cluster.nodes[number], room)


def _carved(fabric: Fabric, mix: GangMix, source: RandomSource, fill: float = 1.0) -> list[CarvedGang]:
    return weigh(carve(fabric, mix, source, fill), fabric, mix, source)


def _beyond(gangs: list[CarvedGang], mix: PlantedOptions) -> list[CarvedGang]:
    wanted, found = mix.overfull * mix.nodes * mix.gpus, list[CarvedGang]()
    queue = RandomSource(mix.seed, "choice beyond").shuffled(gangs)
    while sum(gang.gpus for gang in found) < wanted:
        found.append(queue[len(found) % len(queue)])
    return found


def clos(options: ClosOptions) -> Generated:
    """Make a cluster with running jobs, which keep all rules, and a queue of which it is open whether it fits."""
    mix = options
    fabric = build_fabric(mix.nodes, mix, RandomSource(mix.seed, "fabric"))
    cluster = name_cluster(fabric, RandomSource(mix.seed, "names of nodes"))
    running = _running(fabric, mix)
    waiting = _waiting(fabric, mix, mix.nodes * mix.gpus - sum(gang.gpus for gang in running))
    jobs = draw_jobs([*running, *waiting], mix, [1.0] * len(running) + [0.0] * len(waiting))
    within = jobs[: len(running) + math.ceil(WITHIN_CAPABILITY * len(waiting))]
    documents, _ = write_jobs(jobs, within, cluster, mix)
    services = list(running_services(cluster, mix.services))
    summary = {
        "nodes": mix.nodes,
        "gpus": mix.nodes * mix.gpus,
        "gpusRunning": sum(gang.gpus for gang in running),
        "gpusPending": sum(gang.gpus for gang in waiting),
        "jobsPending": len(waiting),
        "podsRunning": sum(gang.pods for gang in running) + len(services),
        "podsPending": sum(gang.pods for gang in waiting),
    }
    return Generated([*cluster.documents(mix, spare_room(mix)), *documents, *services], None, summary)


def spare_room(mix: GangMix) -> tuple[int, int, int]:
    """Milli-cores, MiB and pods of a node that services take."""
    return SERVICE[0] * mix.services, SERVICE[1] * mix.services, mix.services


def _running(fabric: Fabric, mix: ClosOptions) -> list[CarvedGang]:
    budget, chosen = mix.load * mix.nodes * mix.gpus, list[CarvedGang]()
    source = RandomSource(mix.seed, "running gangs")
    for gang in source.shuffled(_carved(fabric, mix, source)) if mix.load else []:
        if gang.gpus <= budget:
            chosen.append(gang)
            budget -= gang.gpus
    return chosen


def _waiting(fabric: Fabric, mix: ClosOptions, free: int) -> list[CarvedGang]:
    source, chosen, budget = RandomSource(mix.seed, "queue"), list[CarvedGang](), mix.queue * free
    for gang in _stream(fabric, mix, source) if mix.gangs or budget > 0 else ():
        chosen.append(gang)
        budget -= gang.gpus
        if len(chosen) == mix.gangs if mix.gangs else budget <= 0:
            break
    return chosen


def _stream(fabric: Fabric, mix: ClosOptions, source: RandomSource) -> Iterator[CarvedGang]:
    least, most = mix.gang_pods or (1, mix.nodes * mix.gpus)
    while True:
        gangs = [gang for gang in source.shuffled(_carved(fabric, mix, source)) if least <= gang.pods <= most]
        mix.demand(bool(gangs), "gang_pods", f"{least},{most}", "sizes that the fabric can hold")
        yield from gangs


def running_services(cluster: Cluster, number: int) -> Iterator[Document]:
    """Pods of a service on every node."""
    for name in sorted(cluster.nodes):
        for index in range(number):
            room = {"cpu": f"{SERVICE[0]}m", "memory": f"{SERVICE[1]}Mi"}
            yield _running_pod("services", f"service-{name}-{index}", name, room)


def _running_pod(namespace: str, name: str, target: str, room: dict[str, str]) -> Document:
    container: Document = {"name": "service", "image": "example.com/service:1", "resources": {"requests": room}}
    if GPU in room:  # Kubernetes wants extended resources limited to what is requested
        container["resources"]["limits"] = dict(room)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"nodeName": target, "containers": [container]},
        "status": {"phase": "Running"},
    }


@dataclass(frozen=True)
class Cluster:
    """A fabric and the names of its nodes and domains (by tier); names say nothing of the layout."""

    fabric: Fabric
    nodes: tuple[str, ...]
    domains: tuple[tuple[str, ...], ...]

    def documents(self, mix: GangMix, spare: tuple[int, int, int] = (0, 0, 0)) -> Iterator[Document]:
        """Make Nodes and HyperNodes, each kind by name; ``spare`` is milli-cores, MiB and pods besides the GPUs'
        share.
        """
        yield from by_name(self._node(number, mix.gpus, spare) for number in range(self.fabric.nodes))
        yield from by_name(self._hyper_nodes())

    def _node(self, number: int, gpus: int, spare: tuple[int, int, int]) -> Document:
        fabric, kind = self.fabric, NODE_TYPES[self.fabric.types[number]]
        room = requests(gpus, kind.cpu * gpus + spare[0], kind.memory * gpus + spare[1])
        labels = {INSTANCE_TYPE: kind.name}
        for tier, word in enumerate(TIER_NAMES[fabric.tiers], 1):
            labels[f"placer.dev/{word}"] = self.domains[tier - 1][fabric.domain(tier, number)]
        return node_object(self.nodes[number], labels, room | {"pods": most_pods(gpus + spare[2])})

    def _hyper_nodes(self) -> Iterator[Document]:
        fabric = self.fabric
        for tier, word in enumerate(TIER_NAMES[fabric.tiers], 1):
            for domain, name in enumerate(self.domains[tier - 1]):
                if tier == 1:
                    members = [("Node", self.nodes[each]) for each in fabric.members(1, domain)]
                else:
                    within = fabric.below(tier, domain, tier - 1)
                    members = [("HyperNode", self.domains[tier - 2][each]) for each in within]
                yield hyper_node(name, tier, word, sorted(members))


def name_cluster(fabric: Fabric, source: RandomSource) -> Cluster:
    """Give out names by chance."""
    words = TIER_NAMES[fabric.tiers]
    domains = [names_by_chance(word, fabric.domains(tier), source) for tier, word in enumerate(words[:-1], start=1)]
    return Cluster(fabric, names_by_chance("node", fabric.nodes, source), (*domains, (words[-1],)))


@dataclass(frozen=True)
class GeneratedJob:
    """A gang with all that is drawn besides its shape; ``needed`` is the share of its pods (or subgroups) that it
    needs.
    """

    name: str
    gang: CarvedGang
    created: str
    soft: bool
    unlimited: bool
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


def draw_jobs(gangs: Sequence[CarvedGang], mix: GangMix, running: Sequence[float]) -> list[GeneratedJob]:
    """Draw jobs, created in the order of their names; ``running`` is the share of each gang's pods that run already."""
    names = names_by_chance("job", len(gangs), RandomSource(mix.seed, "names of jobs"))
    source, unlimited = RandomSource(mix.seed, "jobs"), RandomSource(mix.seed, "gangs without a limit")
    priorities = [f"priority-{i + 1}" for i in range(mix.priorities)] if mix.priorities > 1 else [""]
    queues = [f"team-{i + 1}" for i in range(mix.queues)] or [""]
    age = {name: order for order, name in enumerate(sorted(names))}
    return [
        GeneratedJob(
            name=name,
            gang=gang,
            created=created(age[name]),
            soft=source.chance(mix.soft),
            unlimited=gang.tier == mix.tiers and unlimited.chance(mix.unlimited),
            needed=source.between(0.5, 0.9) if source.chance(mix.elastic) else 1.0,
            priority=source.pick(priorities),
            queue=source.pick(queues),
            running=math.ceil(gang.pods * share),
        )
        for gang, name, share in zip(gangs, names, running, strict=True)
    ]


def write_jobs(
    jobs: Sequence[GeneratedJob], planted: Sequence[GeneratedJob], cluster: Cluster, mix: GangMix
) -> tuple[list[Document], dict[Key, str]]:
    """Make PriorityClasses, Queues, PodGroups and Pods; and the node of each pending pod of ``planted`` jobs, whose sum
    is the capability of their queue.
    """
    source = RandomSource(mix.seed, "pods")
    fits = {job.name for job in planted}
    pods: list[Document] = []
    cut: dict[Key, str] = {}
    ordered = sorted(jobs, key=lambda job: job.name)
    for job in ordered:
        members = [member for part in job.gang.parts for member in _members(job, part, source)]
        spots = set(source.shuffled(range(len(members)))[: job.running])
        into = cut if job.name in fits else {}
        pods += [
            plant_pod(pod, cluster.nodes[number], index in spots, into) for index, (pod, number) in enumerate(members)
        ]
    last = [priority_class(LAST, -100)] if any(job.priority == LAST for job in jobs) else []
    documents = [*last, *_classes_and_queues(planted, mix), *map(_pod_group, ordered), *by_name(pods)]
    return documents, dict(sorted(cut.items()))


def _classes_and_queues(planted: Sequence[GeneratedJob], mix: GangMix) -> Iterator[Document]:
    if mix.priorities > 1:
        yield from (priority_class(f"priority-{i + 1}", 100 * (i + 1)) for i in range(mix.priorities))
    for name in sorted(f"team-{i + 1}" for i in range(mix.queues)):
        yield queue(name, _capability([job for job in planted if job.queue == name]))


def _members(job: GeneratedJob, part: GangPart, source: RandomSource) -> Iterator[tuple[Document, int]]:
    blocks = [source.shuffled(block) for block in source.shuffled(part.blocks)]
    for index, number in enumerate(chain.from_iterable(blocks)):
        yield _pod(job, part, index), number


def _pod(job: GeneratedJob, part: GangPart, index: int) -> Document:
    labels = {"volcano.sh/job-name": job.name, TASK: part.role, "volcano.sh/task-index": str(index)}
    if part.sub_size:
        labels[PARTITION] = str(index // part.sub_size)
    found = pod_object(
        f"{job.name}-{part.role}-{index}",
        "job",
        [(part.role, requests(part.gpus, part.cpu, part.memory))],
        creationTimestamp=job.created,
        labels=labels,
        annotations={GROUP: job.name, TASK: part.role},
    )
    if job.priority:
        found["spec"]["priorityClassName"] = job.priority
    if part.node_type is not None:
        found["spec"]["nodeSelector"] = {INSTANCE_TYPE: NODE_TYPES[part.node_type].name}
    return found


def _pod_group(job: GeneratedJob) -> Document:
    minimums = job.minimums
    spec: Document = {
        "minMember": sum(minimums.values()),
        "minTaskMember": minimums,
        "minResources": _sum_of((part, minimums[part.role]) for part in job.gang.parts),
    }
    if not job.unlimited:
        spec["networkTopology"] = _topology(job, job.gang.tier)
    policies = [_policy(job, part, minimums[part.role]) for part in job.gang.parts if part.sub_size]
    if policies:
        spec["subGroupPolicy"] = policies
    if job.priority:
        spec["priorityClassName"] = job.priority
    if job.queue:
        spec["queue"] = job.queue
    return pod_group(job.name, spec, job.running > 0, creationTimestamp=job.created)


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


def _capability(jobs: Sequence[GeneratedJob]) -> dict[str, str]:
    return {GPU: "0"} | _sum_of((part, len(part.nodes)) for job in jobs for part in job.gang.parts)


def _sum_of(parts: Iterable[tuple[GangPart, int]]) -> dict[str, str]:
    amounts = [(count * part.gpus, count * part.cpu, count * part.memory) for part, count in parts]
    gpus, cpu, memory = map(sum, zip(*amounts, strict=True)) if amounts else (0, 0, 0)
    return requests(gpus, cpu, memory)
