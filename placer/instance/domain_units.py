"""Units: pods that must be in one domain of a node label (C7 by label), maybe in one of their own (C15).

Source: jobset ``pkg/webhooks``, lws ``pkg/webhooks``, kubernetes/api ``scheduling/v1beta1``, kueue
``pkg/controller/jobs``.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import TYPE_CHECKING

from placer.instance.gangs import (
    GROUP_INDEX,
    JOB_EXCLUSIVE_TOPOLOGY,
    REPLICA_EXCLUSIVE_TOPOLOGY,
    SUB_GROUP_EXCLUSIVE_TOPOLOGY,
    SUB_GROUP_INDEX,
)
from placer.instance.keys import GroupKey, Key
from placer.instance.neighbours import ChildJob, DomainUnit
from placer.instance.pod_makers import JOB_SET, LEADER_WORKER_SET
from placer.instance.pod_states import is_daemon
from placer.kube.base import controller
from placer.kube.marks import KUEUE_GROUP, KUEUE_POD_SET, KUEUE_POD_SET_GROUP, KUEUE_REQUIRED, KUEUE_WORKLOAD

if TYPE_CHECKING:
    from placer.kube.base import Labels
    from placer.kube.pod import PodManifest

EXCLUSIVE_ANNOTATIONS = (JOB_EXCLUSIVE_TOPOLOGY, REPLICA_EXCLUSIVE_TOPOLOGY, SUB_GROUP_EXCLUSIVE_TOPOLOGY)
DOMAIN_ANNOTATIONS = (*EXCLUSIVE_ANNOTATIONS, KUEUE_REQUIRED)
_REPLICATED_JOB, _JOB_INDEX = "jobset.sigs.k8s.io/replicatedjob-name", "jobset.sigs.k8s.io/job-index"
_JOB_KEY = "jobset.sigs.k8s.io/job-key"


def units_of_group(key: GroupKey, topology_keys: Iterable[str]) -> tuple[DomainUnit, ...]:
    """The units that a PodGroup makes of its pods: one for each key."""
    return tuple(DomainUnit(str(key), each) for each in sorted(set(topology_keys)))


def exclusive_units(pod: PodManifest) -> tuple[DomainUnit, ...]:
    """The units that a pod's annotations ask for; a subgroup's makes its replica's unnecessary."""
    inner = (pod.metadata.annotations or {}).get(SUB_GROUP_EXCLUSIVE_TOPOLOGY)
    return tuple(
        DomainUnit(unit, key, exclusive=name != REPLICA_EXCLUSIVE_TOPOLOGY or key != inner)
        for name, key, unit in _asked(pod)
        if unit
    )


def exclusive_job_keys(pods: Iterable[PodManifest]) -> tuple[str, ...]:
    """The node labels in which some Job of a JobSet is exclusive."""
    written = ((pod.metadata.annotations or {}).get(JOB_EXCLUSIVE_TOPOLOGY) for pod in pods if pod.metadata.annotations)
    return tuple(sorted(set(filter(None, written))))


def child_jobs(pod: PodManifest, keys: Iterable[str]) -> tuple[ChildJob, ...]:
    """The exclusive Jobs of JobSets in some labels that a pod is of."""
    labels = pod.metadata.labels or {}
    if not (labels.get(_JOB_KEY) or _job(pod.namespace, labels)):
        return ()
    own = (pod.metadata.annotations or {}).get(JOB_EXCLUSIVE_TOPOLOGY)
    return tuple(ChildJob(key, key == own) for key in keys)


def unnamed_units(pod: PodManifest) -> Iterator[str]:
    """Annotations, as ``field: what``, whose exclusive domain no label gives a name."""
    for name, key, unit in _asked(pod):
        if unit == "":
            yield f"metadata.annotations[{name}]: a domain of {key}, and no label says of which Job or replica"


def _asked(pod: PodManifest) -> Iterator[tuple[str, str, str | None]]:
    """Pods that belong to their node are in no unit, since they would tie it to that node."""
    annotations = pod.metadata.annotations
    for name in EXCLUSIVE_ANNOTATIONS if annotations and not is_daemon(pod.metadata) else ():
        if annotations and annotations.get(name):
            yield name, annotations[name], _NAMES[name](pod.namespace, pod.metadata.labels or {})


def _job(namespace: str, labels: Labels) -> str:
    parts = [labels.get(label, "") for label in (JOB_SET, _REPLICATED_JOB, _JOB_INDEX)]
    return f"Job {namespace}/{'-'.join(parts)}" if all(parts) else ""


def _replica(namespace: str, labels: Labels) -> str:
    name, index = labels.get(LEADER_WORKER_SET, ""), labels.get(GROUP_INDEX, "")
    return f"replica {index} of LeaderWorkerSet {namespace}/{name}" if name and index else ""


def _sub_group(namespace: str, labels: Labels) -> str | None:
    replica, index = _replica(namespace, labels), labels.get(SUB_GROUP_INDEX)
    if replica and index is None:
        return None  # a leader beside the subgroups
    return f"subgroup {index} of {replica}" if replica else ""


_NAMES = {
    JOB_EXCLUSIVE_TOPOLOGY: _job,
    REPLICA_EXCLUSIVE_TOPOLOGY: _replica,
    SUB_GROUP_EXCLUSIVE_TOPOLOGY: _sub_group,
}


# ------------------------------------------------------------------------------------------------- pod sets of Kueue

#: Labels by which operators tell the templates of one workload apart.
_ROLES = ("training.kubeflow.org/replica-type", "ray.io/group", "volcano.sh/task-spec")
#: (API group, kind) of owners each pod of which is a workload of its own to Kueue.
_SINGLE = frozenset((("apps", "Deployment"), ("apps", "ReplicaSet"), ("apps", "DaemonSet"), ("", "Node")))
_WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"
JOB_NAMES = ("batch.kubernetes.io/job-name", "job-name")


def pod_set_units(pod: PodManifest, own_leaders: Container[Key] = ()) -> tuple[DomainUnit, ...]:
    """The unit of a pod's pod set of Kueue, where an annotation requires one domain.

    Leaders of the LeaderWorkerSets ``own_leaders`` are a pod set of their own.
    """
    key = _required(pod)
    name = _pod_set(pod, own_leaders) if key else ""
    return (DomainUnit(f"{name} ({KUEUE_REQUIRED})", key),) if name else ()


def pod_set_label(pod: PodManifest) -> str:
    """The label that an annotation requires of a pod's node; empty: none."""
    key = _required(pod)
    return key if key and not _pod_set(pod, ()) else ""


def _required(pod: PodManifest) -> str:
    return "" if is_daemon(pod.metadata) else (pod.metadata.annotations or {}).get(KUEUE_REQUIRED, "")


def _pod_set(pod: PodManifest, own_leaders: Container[Key]) -> str:
    workload, part = _workload(pod, own_leaders)
    joined = (pod.metadata.annotations or {}).get(KUEUE_POD_SET_GROUP)
    if joined and workload:
        return f"pod sets {joined} of {workload}"
    return f"{part} of {workload}" if part and workload else workload


def _workload(pod: PodManifest, own_leaders: Container[Key]) -> tuple[str, str]:
    labels, namespace = pod.metadata.labels or {}, pod.namespace
    if labels.get(KUEUE_GROUP):
        return f"pod group {namespace}/{labels[KUEUE_GROUP]}", ""
    if labels.get(JOB_SET):
        return f"JobSet {namespace}/{labels[JOB_SET]}", _part("replicated job", labels, _REPLICATED_JOB)
    replica = _replica(namespace, labels)
    if replica:
        split = Key(namespace, labels[LEADER_WORKER_SET]) in own_leaders
        own = ("leader" if labels.get(_WORKER_INDEX) == "0" else "workers") if split else ""
        return replica, _part("pod set", labels, KUEUE_POD_SET) or own
    return _maker(pod, namespace, labels)


def _maker(pod: PodManifest, namespace: str, labels: Labels) -> tuple[str, str]:
    job = next((labels[name] for name in JOB_NAMES if labels.get(name)), "")
    if job:
        return f"Job {namespace}/{job}", ""
    managing = (pod.metadata.annotations or {}).get(KUEUE_WORKLOAD, "")
    if managing:
        return f"Workload {namespace}/{managing}", _part("pod set", labels, KUEUE_POD_SET)
    owner = controller(pod.metadata)
    if owner is None or (owner.api_version.rpartition("/")[0], owner.kind) in _SINGLE:
        return "", ""
    return f"{owner.kind} {namespace}/{owner.name}", _part("role", labels, *_ROLES)


def _part(what: str, labels: Labels, *names: str) -> str:
    return next((f"{what} {labels[name]}" for name in names if labels.get(name)), "")
