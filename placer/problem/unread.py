"""Objects and kinds that cannot be read, or are not: findings, groups that wait, and work that makes no pods yet.

An object called ``*`` stands for all of a kind that a cluster does not serve (models/reading.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from placer.base.words import and_list, some
from placer.kube.base import controller
from placer.kube.marks import YUNIKORN_APP_ID, YUNIKORN_APPLICATION
from placer.kube.pod import TERMINAL_PHASES
from placer.kube.unread_kinds import LIMITS, UnreadLimit, kueue_queue
from placer.problem.blueprints import job_finished
from placer.problem.eligibility import numa_marks
from placer.problem.findings import Findings, counted
from placer.problem.gangs import COSCHEDULING, KAI, VOLCANO
from placer.problem.instance import Group, Pod, PodState, Queue
from placer.problem.keys import GroupKey, Key
from placer.problem.network_objects import APP_GROUP_LABEL
from placer.problem.nodes import Node
from placer.problem.pod_states import HOLD_GATE, Maker, Ownership, PodMakers, all_workloads, gated_pods, scheduler_of
from placer.problem.unsupported import claimed

if TYPE_CHECKING:
    from placer.kube.apps import DeploymentManifest, StatefulSetManifest
    from placer.kube.leader_worker_sets import LeaderWorkerSetManifest
    from placer.kube.manifests import Objects, UnreadObject
    from placer.kube.pod import PodManifest
    from placer.problem.expansion import Expansion
    from placer.problem.gangs import PodEntry

#: Name of what stands for all objects of a kind.
_ALL = "*"
#: API group of PodGroups to the sequence that holds them.
_GROUPS = {VOLCANO: "pod_groups", COSCHEDULING: "coscheduling_pod_groups", KAI: "kai_pod_groups"}


def note_unread(objects: Objects, findings: Findings) -> None:
    """Note every object that cannot be read."""
    for each in objects.unread:
        findings.unread.setdefault(each.label, set())
        findings.add("Unreadable", each.label, f"{_said(each.label)}, and its dependents wait: {each.wrong}")


def _said(label: str) -> str:
    kind, _, name = label.partition(" ")
    return f"no {kind} can be read" if name.rpartition("/")[2] == _ALL else f"{label} cannot be read"


def without_unread_room(nodes: Mapping[str, Node], objects: Objects) -> dict[str, Node]:
    """The nodes; one whose free room is not known is not ready."""
    unknown = set(_nodes_in_doubt(objects.unread))
    return {name: replace(node, ready=False) if name in unknown else node for name, node in nodes.items()}


def _nodes_in_doubt(unread: Iterable[UnreadObject]) -> Iterator[str]:
    for each in unread:
        if each.attribute == "node_resource_topologies":
            yield each.name
        elif each.attribute == "pods" and not each.holds_room:
            node = each.at("spec", "nodeName")
            if isinstance(node, str) and each.at("status", "phase") not in TERMINAL_PHASES:
                yield node


def hold_back(
    groups: Mapping[GroupKey, Group],
    pods: Mapping[Key, Pod],
    entries: Iterable[PodEntry],
    queues: Mapping[str, Queue],
    objects: Objects,
    findings: Findings,
    rules_off: Container[str] = (),
) -> dict[GroupKey, Group]:
    """Make groups invalid that depend on an unreadable object."""
    if not objects.unread:
        return dict(groups)
    manifests = {each.key: each.pod for each in entries}
    doubts = _Doubts(objects, queues, findings, rules_off)
    found = {}
    for key, group in groups.items():
        why = next(doubts.of(group, [(pods[pod], manifests[pod]) for pod in group.pending]), None)
        found[key] = replace(group, invalid=_said(why)) if why is not None and group.pending else group
    return found


class _Doubts:
    def __init__(
        self, objects: Objects, queues: Mapping[str, Queue], findings: Findings, rules_off: Container[str]
    ) -> None:
        self._queues, self._findings = queues, findings
        self._by_attribute: dict[str, list[UnreadObject]] = {}
        for each in objects.unread:
            self._by_attribute.setdefault(each.attribute, []).append(each)
        self._queues_matter = "C11" not in rules_off
        self._named_by = {subject: target for target, subjects in findings.unread.items() for subject in subjects}
        self._app_groups = [(each, _listed_names(each)) for each in self._by_attribute.get("app_groups", ())]
        self._borne = dict(_names_borne(self._by_attribute.get("pods", ())))
        # One that can be read is in use then, and text of another tenant decides nothing.
        self._network = [] if objects.network_topologies else list(self._all("network_topologies"))
        self._network += (each for by, each in self._named_by.items() if by.startswith(("NetworkTopology ", "Policy")))

    def of(self, group: Group, pods: Iterable[tuple[Pod, PodManifest]]) -> Iterator[str]:
        label = str(group.key)
        if label in self._findings.unread:
            yield label
        yield from self._named(label)
        yield from self._kind(_GROUPS.get(group.key.api_group, ""))
        yield from self._of_queue(group.queue)
        for borne in (self._borne.get(group.key[1:]), self._any("namespaces", group.key.namespace)):
            if borne is not None:
                yield borne
        if group.limited:
            yield from self._all("hyper_nodes")
        for pod, written in pods:
            yield from self._of_pod(pod, written)

    def _of_pod(self, pod: Pod, written: PodManifest) -> Iterator[str]:
        yield from self._named(f"Pod {pod.key}")
        if numa_marks(written):
            yield from self._kind("node_resource_topologies")
        yield from self._of_queue(pod.queue)
        for _, claim in claimed(written):
            label = f"PersistentVolumeClaim {claim}"
            if label in self._findings.unread:
                yield label
            yield from self._named(label)
        yield from self._of_app_group(pod, written)
        owner = controller(written.metadata)
        label = f"{owner.kind} {pod.namespace}/{owner.name}" if owner is not None else ""
        if label in self._findings.unread:
            yield label

    def _of_app_group(self, pod: Pod, written: PodManifest) -> Iterator[str]:
        labels = written.metadata.labels or {}
        if APP_GROUP_LABEL in labels:
            yield from self._kind("app_groups")
        yield from (each.label for each, listed in self._app_groups if _may_name(each, listed, pod, written))
        if pod.app_group is not None:
            yield from self._network

    def _of_queue(self, name: str | None) -> Iterator[str]:
        seen: set[str] = set()
        if name is not None and self._queues_matter:
            yield from self._kind("queues")
        while name is not None and name not in seen:
            seen.add(name)
            label = f"Queue {name}"
            if label in self._findings.unread:
                yield label
            yield from self._named(label)
            name = self._queues[name].parent if name in self._queues else None

    def _named(self, subject: str) -> Iterator[str]:
        if subject in self._named_by:
            yield self._named_by[subject]

    def _kind(self, attribute: str) -> Iterator[str]:
        return (each.label for each in self._by_attribute.get(attribute, ()) if each.name == _ALL)

    def _all(self, attribute: str) -> Iterator[str]:
        return (each.label for each in self._by_attribute.get(attribute, ()))

    def _any(self, attribute: str, name: str) -> str | None:
        return next((each.label for each in self._by_attribute.get(attribute, ()) if each.name == name), None)


def _listed_names(app_group: UnreadObject) -> frozenset[str] | None:
    entries = app_group.at("spec", "workloads")
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        return None
    workloads = [each.get("workload") for each in entries]
    names = {each.get("name") for each in workloads if isinstance(each, dict)}
    is_whole = all(isinstance(each, dict) and isinstance(each.get("name"), str) for each in workloads)
    return frozenset(map(str, names)) if is_whole else None


def _may_name(app_group: UnreadObject, listed: frozenset[str] | None, pod: Pod, written: PodManifest) -> bool:
    named, is_near = (written.metadata.labels or {}).get(APP_GROUP_LABEL), app_group.namespace == pod.namespace
    if named:
        return named == app_group.name and (is_near or pod.app_group is None)
    return is_near and (listed is None or not listed.isdisjoint(_makers(written)))


def _makers(pod: PodManifest) -> set[str]:
    owner = controller(pod.metadata)
    return {pod.name} if owner is None else {owner.name, owner.name.rpartition("-")[0]}


def _names_borne(pods: Iterable[UnreadObject]) -> Iterator[tuple[tuple[str, str], str]]:
    """Any of these texts may be the name of its group; a pod is a group of its own name, too."""
    for each in pods:
        if each.at("status", "phase") in TERMINAL_PHASES:
            continue
        yield (each.namespace, each.name), each.label
        for owner in each.at("metadata", "ownerReferences") or ():  # Volcano's controller calls its gang so
            if isinstance(owner, dict):
                yield (each.namespace, f"podgroup-{owner.get('uid')}"), each.label
        for place in ("labels", "annotations"):
            said = each.at("metadata", place)
            for value in said.values() if isinstance(said, dict) else ():
                if isinstance(value, str):
                    yield (each.namespace, value), each.label


_NAMED = 8  #: workloads that make no pods yet, and gated pods, that a sentence names
_YUNIKORN = "yunikorn"
_APPLICATION = frozenset((YUNIKORN_APP_ID, YUNIKORN_APPLICATION))


# ---------------------------------------------------------------------------------------------- workloads without pods


def note_pods_not_made(objects: Objects, findings: Findings, *, cluster: bool) -> None:
    """Note workloads of which offline no pod is made or there, once per kind."""
    found: dict[str, set[str]] = {}
    for kind, workload in () if cluster else _not_made(objects):
        found.setdefault(kind, set()).add(workload)
    present = _Makers(objects.pods) if found else None
    for kind, workloads in found.items():
        absent = {each for each in workloads if present is not None and not present.has(kind, each)}
        if absent:
            what = f"no pod of {counted(absent)} is in the instance"
            message = f"{kind} is not expanded, and {what}: its pods take no room and are not placed"
            findings.add("UnsupportedKind", kind, message)


class _Makers:
    #: How labels end by whose values controllers name a workload above the owner of a pod.
    _NAMING = ("-name", "/cluster", "/workflow", "/name")

    def __init__(self, pods: Iterable[PodManifest]) -> None:
        self._makers: set[str] = set()
        self._near: set[str] = set()
        for pod in pods:
            labels = pod.metadata.labels or {}
            self._near.update(f"{pod.namespace}/{text}" for key, text in labels.items() if key.endswith(self._NAMING))
            owner = controller(pod.metadata)
            if owner is not None:
                self._makers.add(f"{owner.kind} {pod.namespace}/{owner.name}")
                words = owner.name.split("-")
                self._near.update(f"{pod.namespace}/{'-'.join(words[:end])}" for end in range(1, len(words) + 1))

    def has(self, kind: str, workload: str) -> bool:
        """By name, since a RayJob makes a RayCluster, for example."""
        is_native = kind.rpartition(".")[2] in ("ReplicationController", "apps")
        return workload in self._makers or (not is_native and workload.partition(" ")[2] in self._near)


def _not_made(objects: Objects) -> Iterator[tuple[str, str]]:
    for each in objects.unread_workloads:
        if not each.suspended:
            kind = f"{each.kind}.{each.group}" if each.group else each.kind
            yield kind, f"{each.kind} {each.namespace}/{each.name}"
    for replica_set in objects.replica_sets:
        if controller(replica_set.metadata) is None:
            yield "ReplicaSet.apps", f"ReplicaSet {replica_set.namespace}/{replica_set.name}"


# --------------------------------------------------------------------------------------------------- queues and quotas


def note_limits_not_read(
    entries: Iterable[PodEntry], made: Expansion, objects: Objects, findings: Findings, *, cluster: bool
) -> None:
    """Note, once per kind, queues and quotas of other systems that pending pods belong to."""
    waiting = [entry.pod for entry in entries if entry.state is PodState.PENDING]
    there, named = _namespaces(objects), _LimitFinder(objects, made)
    for limit in LIMITS:
        namespaces = set().union(*(there[group, limit.kind] for group in limit.groups))
        counts = bool(namespaces) or not cluster or not limit.groups
        found = ((pod, named.limited_by(pod, limit, namespaces, counts)) for pod in waiting)
        _note_limit(limit, {f"Pod {pod.namespace}/{pod.name}": by for pod, by in found if by is not None}, findings)


def _namespaces(objects: Objects) -> dict[tuple[str, str], set[str]]:
    there: dict[tuple[str, str], set[str]] = defaultdict(set)
    for group, kind, namespace, name in objects.skipped_names:
        there[group, kind].add(_ALL if name == _ALL else namespace or "default")
    return there


def _note_limit(limit: UnreadLimit, limited: Mapping[str, str], findings: Findings) -> None:
    if limited:
        queues = {queue for queue in limited.values() if queue}
        which = f" of {counted(queues)}" if queues else ""
        message = f"the limits{which} that hold for {counted(set(limited))} decide nothing"
        findings.add("UnsupportedKind", limit.full, f"{limit.full} is not read: {message}")


class _LimitFinder:
    def __init__(self, objects: Objects, made: Expansion) -> None:
        self._made = {id(pod.metadata) for pod in made.pods}
        self._of_namespaces = {each.name: each.metadata.annotations or {} for each in objects.namespaces}
        self._makers = PodMakers((*objects.replica_sets, *objects.jobs))
        self._notes: dict[Maker, dict[str, str]] = {}
        for maker, labels, notes in all_workloads(objects):
            if labels or notes:
                self._notes[maker] = {**notes, **labels}

    def limited_by(self, pod: PodManifest, limit: UnreadLimit, namespaces: set[str], counts: bool) -> str | None:
        queue = next(self._of(pod, limit), None) if counts else None
        return "" if queue is None and self._is_within(pod, limit, namespaces) else queue

    def _of(self, pod: PodManifest, limit: UnreadLimit) -> Iterator[str]:
        own = {**(pod.metadata.annotations or {}), **(pod.metadata.labels or {})} if limit.marks else {}
        for notes in (own, *(self._notes.get(each, {}) for each in self._makers.with_sets(pod))):
            yield from (notes[mark] for mark in limit.marks if notes.get(mark))
        if scheduler_of(pod) == _YUNIKORN or not _APPLICATION.isdisjoint(own):
            yield from filter(None, map(own.get, limit.plain_marks))

    def _is_within(self, pod: PodManifest, limit: UnreadLimit, namespaces: set[str]) -> bool:
        is_within = limit.of_namespace and not namespaces.isdisjoint((pod.namespace, _ALL))
        if not is_within and limit.namespace_marks:
            notes = self._of_namespaces.get(pod.namespace, {})
            is_within = any(notes.get(mark) for mark in limit.namespace_marks)
        return is_within and (not limit.on_making or id(pod.metadata) in self._made)


# ---------------------------------------------------------------------------------------------- work that is not there


def absent_work(objects: Objects, ownership: Ownership) -> tuple[str, ...]:
    """Work that makes no pods yet, and gated pods, counted and named: a sentence per kind and namespace."""
    made = _sentences((*_suspended(objects), *_of_none(objects)), "it makes no pods yet", "they make no pods yet")
    held = _gated(objects, ownership)
    return (*made, *_sentences(held, "no scheduler places it yet", "no scheduler places them yet"))


def _sentences(work: Iterable[tuple[str, str]], one: str, several: str) -> Iterator[str]:
    """A sentence is of one namespace: a LocalQueue is, and so are the questions of users."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for words, name in work:
        found[words, name.partition("/")[0]].add(name)
    for (words, _), names in sorted(found.items()):
        yield f"{_count(words, names)}: {several if len(names) > 1 else one}"


def _gated(objects: Objects, ownership: Ownership) -> Iterator[tuple[str, str]]:
    for pod in gated_pods(objects.pods, ownership):
        gates = " and ".join(sorted({each.name for each in pod.spec.scheduling_gates or ()} - {HOLD_GATE}))
        if gates:
            yield f"pod# with the gate {gates}{_of_queue(pod.metadata.labels)}", f"{pod.namespace}/{pod.name}"


def _suspended(objects: Objects) -> Iterator[tuple[str, str]]:
    for each in objects.jobs:
        if each.spec.suspend and not job_finished(each):
            yield f"suspended {each.kind}#{_of_queue(each.metadata.labels)}", f"{each.namespace}/{each.name}"
    for job_set in objects.job_sets:
        if job_set.spec.suspend:
            yield f"suspended JobSet#{_of_queue(job_set.metadata.labels)}", f"{job_set.namespace}/{job_set.name}"
    for other in objects.unread_workloads:
        if other.suspended:
            yield f"suspended {other.kind}#{_of_queue(other.labels)}", f"{other.namespace}/{other.name}"


def _of_none(objects: Objects) -> Iterator[tuple[str, str]]:
    scaled: Iterable[DeploymentManifest | StatefulSetManifest | LeaderWorkerSetManifest]
    scaled = (*objects.deployments, *objects.stateful_sets, *objects.leader_worker_sets)
    for each in scaled:
        if each.spec.replicas == 0:
            yield f"{each.kind}# of 0 replicas", f"{each.namespace}/{each.name}"
    for job in objects.jobs:
        if job.spec.parallelism == 0 and not job.spec.suspend and not job_finished(job):
            yield "Job# of parallelism 0", f"{job.namespace}/{job.name}"


def _of_queue(labels: Mapping[str, str] | None) -> str:
    queue = kueue_queue(labels)
    return f" of Kueue's queue {queue}" if queue else ""


def _count(words: str, names: set[str]) -> str:
    named = and_list(some(sorted(names), _NAMED))
    return f"{len(names):,} {words.replace('#', 's' if len(names) > 1 else '', 1)} ({named})"
