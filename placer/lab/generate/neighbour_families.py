"""Family ``neighbours``: a full Clos fabric whose pods keep near to others, away from others, or spread.

Spread applications claim slots of ``planted`` first, of every domain as many as of the next; the rest is carved into
gangs. Some get one host for each pod: second pods on a host become another gang. Some get a neighbour: a workload with
pods in all their domains. With ``by_label`` racks are node labels, and gangs PodGroups of Kubernetes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from placer.lab.generate.carving import (
    TIER_NAMES,
    CarvedGang,
    Fabric,
    FreeSlots,
    GangPart,
    Slot,
    build_fabric,
    carve_slots,
    cut_nodes,
    weigh,
)
from placer.lab.generate.clos_fabric import (
    GeneratedJob,
    draw_jobs,
    name_cluster,
    running_services,
    spare_room,
    write_jobs,
)
from placer.lab.generate.objects import (
    GROUP,
    Document,
    Generated,
    by_name,
    names_by_chance,
    plant_pod,
    pod_object,
    requests,
    running_shares,
)
from placer.lab.generate.options import GangMix, listed, option
from placer.lab.generate.random_source import RandomSource

__all__ = ["NeighbourOptions", "neighbours"]

#: Labels by which terms mean the pods of a gang, and those of an application.
JOB, APP = "volcano.sh/job-name", "app"
#: Such a label and its value.
Label = tuple[str, str]
#: The place of hosts below the tiers of a fabric.
HOSTS = 0


@dataclass(frozen=True, kw_only=True)
class NeighbourOptions(GangMix):
    """Options of ``neighbours``, next to those of :class:`~placer.lab.generate.options.GangMix`."""

    pod_sizes: tuple[int, ...] = option((1, 2, 4, 8), "GPUs a pod may ask for", 1, 64)
    nodes: int = option(64, "number of nodes", 1, 100_000)
    spread: float = option(0.3, "share of the pods that are of applications, and spread")
    app_pods: tuple[int, ...] = option((6, 40), "least and most pods of an application", 1, 10**6)
    over_hosts: float = option(0.3, "share of applications spread over hosts, the others over domains below the core")
    skew: int = option(1, "maxSkew of applications", 1, 100)
    one_per_host: float = option(0.2, "share of gangs of which no two pods may be on one host")
    near: float = option(0.1, "share of gangs that must have pods of a certain other workload in their domains")
    running: float = option(0.0, "share of gangs and applications that run already, where they were planted")
    by_label: bool = option(
        False, "racks are labels of nodes alone, without HyperNodes; gangs ask for one domain of them"
    )

    def check(self) -> None:
        """Check options that PodGroups of Kubernetes lack, and the sizes of applications."""
        super().check()
        for name in ("subgroups", "tight", "queues") if self.by_label else ():
            asked = getattr(self, name)
            none = asked in (0, getattr(NeighbourOptions, name))
            self.demand(none, name, f"{asked:g}", "0 with by_label: PodGroups of Kubernetes have none")
        pair = len(self.app_pods) == 2 and self.app_pods[0] <= self.app_pods[1]
        self.demand(pair, "app_pods", listed(self.app_pods), "two numbers, the least one first")


def neighbours(options: NeighbourOptions) -> Generated:
    """Make a full cluster and a queue cut from it, whose pods depend on each other's places.

    In the planted placement pods that must have others near them come last (C12).
    """
    mix = replace(options, subgroups=0.0) if options.by_label else options
    fabric = build_fabric(mix.nodes, mix, RandomSource(mix.seed, "fabric"))
    cluster = name_cluster(fabric, RandomSource(mix.seed, "names of nodes"))
    queue = _cut_queue(fabric, mix)
    documents, cut = write_jobs(queue.jobs, queue.jobs, cluster, mix)
    of_jobs = [document for document in documents if document["kind"] == "Pod"]
    for pod in of_jobs:
        queue.put_affinity(pod, fabric)
    pods: list[Document] = []
    for app in queue.apps:
        pods += [plant_pod(pod, cluster.nodes[number], app.runs, cut) for pod, number in _app_pods(app, fabric, mix)]
    running = list(running_services(cluster, mix.services))
    documents = [*cluster.documents(mix, spare_room(mix)), *documents, *by_name(pods), *running]
    documents = (
        [_by_label(each, fabric) for each in documents if each["kind"] != "HyperNode"] if mix.by_label else documents
    )
    attracted = _attracted(of_jobs)
    planted = dict(sorted(cut.items(), key=lambda item: (item[0].name in attracted, item)))
    return Generated(documents, planted, _summary(queue, len(planted), len(running), mix))


def _attracted(pods: Sequence[Document]) -> set[str]:
    return {pod["metadata"]["name"] for pod in pods if "podAffinity" in pod["spec"].get("affinity", ())}


def _by_label(document: Document, fabric: Fabric) -> Document:
    """A PodGroup of Volcano as one of Kubernetes, whose tier limit is a label; a pod that is in one; else the same."""
    metadata, spec = document["metadata"], document.get("spec", {})
    if document["kind"] == "Pod" and GROUP in metadata.get("annotations", ()):
        return {**document, "spec": {**spec, "schedulingGroup": {"podGroupName": metadata["annotations"].pop(GROUP)}}}
    if document["kind"] != "PodGroup":
        return document
    asked: Document = {"schedulingPolicy": {"gang": {"minCount": spec["minMember"]}}}
    limit = spec.get("networkTopology", {}).get("highestTierAllowed", fabric.tiers)
    if limit < fabric.tiers:
        asked["schedulingConstraints"] = {"topology": [{"key": _key(limit, fabric)}]}
    if "priorityClassName" in spec:
        asked["priorityClassName"] = spec["priorityClassName"]
    return {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": asked}


def _summary(queue: _CutQueue, planted: int, services: int, mix: NeighbourOptions) -> dict[str, int]:
    spread = sum(app.cut.pods for app in queue.apps)
    count = sum(job.gang.pods for job in queue.jobs) + spread
    return {
        "nodes": mix.nodes,
        "gpus": mix.nodes * mix.gpus,
        "gpusPlanted": sum(cut.gpus for cut in (*(job.gang for job in queue.jobs), *(app.cut for app in queue.apps))),
        "jobs": len(queue.jobs),
        "jobsOnePerHost": len(queue.apart),
        "jobsNear": len(queue.near),
        "apps": len(queue.apps),
        "pods": count + services,
        "podsSpread": spread,
        "podsRunning": count - planted + services,
        "podsPlanted": planted,
    }


@dataclass(frozen=True)
class App:
    """Pods in no gang, spread over the domains of a tier, or :data:`HOSTS`; all or none of them run."""

    name: str
    tier: int
    cut: CarvedGang
    runs: bool = False


#: The workload that a gang must be near, by a label of its pods, and the tier of their common domain.
Neighbour = tuple[Label, int]


@dataclass(frozen=True)
class _CutQueue:
    """``apart``: names of the gangs with one pod per host; ``near``: labels of those with a neighbour."""

    jobs: Sequence[GeneratedJob]
    apps: Sequence[App]
    apart: frozenset[str]
    near: Mapping[Label, Neighbour]

    def put_affinity(self, pod: Document, fabric: Fabric) -> None:
        job, terms = pod["metadata"]["labels"][JOB], {}
        neighbour = self.near.get((JOB, job))
        if neighbour is not None:
            label, tier = neighbour
            terms["podAffinity"] = _term(_key(tier, fabric), label)
        if job in self.apart:
            terms["podAntiAffinity"] = _term(_key(HOSTS, fabric), (JOB, job))
        if terms:
            pod["spec"]["affinity"] = terms


def _key(tier: int, fabric: Fabric) -> str:
    return "kubernetes.io/hostname" if tier == HOSTS else f"placer.dev/{TIER_NAMES[fabric.tiers][tier - 1]}"


def _term(key: str, label: Label) -> Document:
    means = {"matchLabels": dict([label])}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": means, "topologyKey": key}]}


def _app_pods(app: App, fabric: Fabric, mix: NeighbourOptions) -> Iterator[tuple[Document, int]]:
    (part,) = app.cut.parts
    spread = {
        "maxSkew": mix.skew,
        "topologyKey": _key(app.tier, fabric),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {APP: app.name}},
    }
    for index, number in enumerate(RandomSource(mix.seed, f"pods of {app.name}").shuffled(part.nodes)):
        containers = [(APP, requests(part.gpus, part.cpu, part.memory))]
        found = pod_object(f"{app.name}-{index}", APP, containers, labels={APP: app.name})
        found["spec"]["topologySpreadConstraints"] = [spread]
        yield found, number


def _cut_queue(fabric: Fabric, mix: NeighbourOptions) -> _CutQueue:
    slots = cut_nodes(fabric, mix, RandomSource(mix.seed, "slots"), 1.0)
    apps = _cut_apps(slots, mix)
    gangs, apart = _one_per_host(carve_slots(slots, mix), mix)
    weighed = weigh([*gangs, *(app.cut for app in apps)], fabric, mix, RandomSource(mix.seed, "weights"))
    shares = running_shares(len(weighed), mix.running, 0, RandomSource(mix.seed, "running"))
    jobs = draw_jobs(weighed[: len(gangs)], mix, shares[: len(gangs)])
    of_apps = zip(apps, weighed[len(gangs) :], shares[len(gangs) :], strict=True)
    apps = [replace(app, cut=cut, runs=share == 1) for app, cut, share in of_apps]
    near = _near(jobs, apps, fabric, mix)
    return _CutQueue(jobs, apps, frozenset(jobs[index].name for index in apart), near)


def _cut_apps(slots: FreeSlots, mix: NeighbourOptions) -> list[App]:
    source, free = slots.source, slots.counts[-1][0]
    left, found = round(mix.spread * free.total()), list[tuple[int, CarvedGang]]()
    while left > 0 and free.total():
        kinds = sorted(kind for kind, count in free.items() if count)
        kind = source.weighted(kinds, [free[kind] for kind in kinds])
        wanted = min(left, int(source.log_between(mix.app_pods[0], mix.app_pods[1] + 0.999)))
        tier = HOSTS if source.chance(mix.over_hosts) else slots.fabric.tiers - 1
        nodes = _one_each(slots, kind, wanted) if tier == HOSTS else _evenly(slots, tier, kind, wanted, mix.skew)
        left -= len(nodes)
        found.append((tier, CarvedGang(slots.fabric.tiers, (GangPart(APP, kind.gpus, kind.grade, None, (nodes,)),))))
    names = names_by_chance("app", len(found), RandomSource(mix.seed, "names of applications"))
    return [App(name, *each) for name, each in zip(names, found, strict=True)]


def _one_each(slots: FreeSlots, kind: Slot, pods: int) -> tuple[int, ...]:
    found = list[int]()
    for leaf in slots.source.shuffled(range(slots.fabric.domains(1))):
        taken = Counter(slots.take(1, leaf, (kind,), slots.free(1, leaf, (kind,))))
        chosen = list(taken)[: pods - len(found)]
        for node in (taken - Counter(chosen)).elements():
            slots.add(node, kind)
        found += chosen
        if len(found) == pods:
            break
    return tuple(found)


def _evenly(slots: FreeSlots, tier: int, kind: Slot, pods: int, skew: int) -> tuple[int, ...]:
    domains = slots.source.shuffled(range(slots.fabric.domains(tier)))
    free = [slots.free(tier, domain, (kind,)) for domain in domains]
    fewest = min(min(free), pods // len(domains))
    found, left = list[int](), pods - fewest * len(domains)
    for domain, there in zip(domains, free, strict=True):
        more = min(there - fewest, skew, left)
        left -= more
        found += slots.take(tier, domain, (kind,), fewest + more)
    return tuple(found)


def _one_per_host(gangs: Sequence[CarvedGang], mix: NeighbourOptions) -> tuple[list[CarvedGang], frozenset[int]]:
    """Gangs with subgroups or a second role stay whole, and are chosen where all their pods are on different hosts."""
    found, apart = list(gangs), set[int]()
    for index in RandomSource(mix.seed, "one per host").shuffled(range(len(gangs))):
        if len(apart) >= mix.one_per_host * len(found):
            break
        gang, *others = _hosts_apart(gangs[index])
        if gang.pods > 1 and len({node for part in gang.parts for node in part.nodes}) == gang.pods:
            found[index] = gang
            found += others
            apart.add(index)
    return found, frozenset(apart)


def _hosts_apart(gang: CarvedGang) -> Iterator[CarvedGang]:
    (part, *others) = gang.parts
    once = Counter(dict.fromkeys(part.nodes, 1))
    rest = Counter(part.nodes) - once
    if part.sub_size or others or not rest:
        yield gang
    else:
        for nodes in (once, rest):
            yield replace(gang, parts=(replace(part, blocks=(tuple(nodes.elements()),)),))


def _near(
    jobs: Sequence[GeneratedJob], apps: Sequence[App], fabric: Fabric, mix: NeighbourOptions
) -> dict[Label, Neighbour]:
    """The neighbour needs no neighbour itself, so that all its pods can be placed first."""
    source, found, wanted = RandomSource(mix.seed, "near"), dict[Label, Neighbour](), set[Label]()
    cuts = {(JOB, job.name): job.gang for job in jobs} | {(APP, app.name): app.cut for app in apps}
    homes = [_Homes(cuts, tier, fabric) for tier in range(1, fabric.tiers)]
    for label in source.shuffled(list(cuts)[: len(jobs)]):
        if len(found) >= mix.near * len(jobs):
            break
        none = {label, *found}
        choices = ((source.pick(others), each.tier) for each in homes if (others := each.around(label, none)))
        neighbour = None if label in wanted else next(choices, None)
        if neighbour is not None:
            found[label] = neighbour
            wanted.add(neighbour[0])
    return found


class _Homes:
    def __init__(self, cuts: Mapping[Label, CarvedGang], tier: int, fabric: Fabric) -> None:
        self.tier = tier
        self.domains = {
            label: {fabric.domain(tier, node) for part in cut.parts for node in part.nodes}
            for label, cut in cuts.items()
        }
        self.there: dict[int, set[Label]] = defaultdict(set)
        for label, domains in self.domains.items():
            for domain in domains:
                self.there[domain].add(label)

    def around(self, label: Label, none: set[Label]) -> list[Label]:
        return sorted(set.intersection(*(self.there[domain] for domain in self.domains[label])) - none)
