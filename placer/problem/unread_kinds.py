"""Findings about kinds that are not read, and work that makes no pods yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from placer.base.words import and_list, some
from placer.kube.base import controller
from placer.kube.marks import YUNIKORN_APP_ID, YUNIKORN_APPLICATION
from placer.kube.unread_kinds import KUEUE_QUEUES, LIMITS, UnreadLimit
from placer.problem.blueprints import job_finished
from placer.problem.findings import Findings, counted
from placer.problem.instance import PodState
from placer.problem.pod_makers import Maker, PodMakers, all_workloads
from placer.problem.pod_states import HOLD_GATE, Ownership, gated_pods, scheduler_of

if TYPE_CHECKING:
    from placer.kube.apps import DeploymentManifest, StatefulSetManifest
    from placer.kube.leader_worker_sets import LeaderWorkerSetManifest
    from placer.kube.manifests import Objects
    from placer.kube.pod import PodManifest
    from placer.problem.expansion import Expansion
    from placer.problem.gangs import PodEntry

_ALL = "*"
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
    """Work that makes no pods yet, and gated pods, counted and named: a sentence each."""
    found: dict[str, set[str]] = defaultdict(set)
    for words, workload in (*_suspended(objects), *_of_none(objects)):
        found[words].add(workload)
    sentences = [
        f"{_count(words, each)}: {'they make' if len(each) > 1 else 'it makes'} no pods yet"
        for words, each in sorted(found.items())
    ]
    held: dict[str, set[str]] = defaultdict(set)
    for pod in gated_pods(objects.pods, ownership):
        gates = " and ".join(sorted({each.name for each in pod.spec.scheduling_gates or ()} - {HOLD_GATE}))
        if gates:
            held[f"pod# with the gate {gates}{_of_queue(pod.metadata.labels)}"].add(f"{pod.namespace}/{pod.name}")
    sentences += [
        f"{_count(words, each)}: no scheduler places {'them' if len(each) > 1 else 'it'} yet"
        for words, each in sorted(held.items())
    ]
    return tuple(sentences)


def _suspended(objects: Objects) -> Iterator[tuple[str, str]]:
    for each in objects.jobs:
        if each.spec.suspend and not job_finished(each):
            yield f"suspended {each.kind}#{_of_queue(each.metadata.labels)}", f"{each.namespace}/{each.name}"
    for job_set in objects.job_sets:
        if job_set.spec.suspend:
            yield f"suspended JobSet#{_of_queue(job_set.metadata.labels)}", f"{job_set.namespace}/{job_set.name}"
    for other in objects.unread_workloads:
        if other.suspended:
            queue = f" of Kueue's queue {other.queue}" if other.queue else ""
            yield f"suspended {other.kind}#{queue}", f"{other.namespace}/{other.name}"


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
    queue = next((labels[key] for key in KUEUE_QUEUES if labels.get(key)), None) if labels else None
    return f" of Kueue's queue {queue}" if queue else ""


def _count(words: str, names: set[str]) -> str:
    named = and_list(some(sorted(names), _NAMED))
    return f"{len(names):,} {words.replace('#', 's' if len(names) > 1 else '', 1)} ({named})"
