"""Units: pods that must be in one domain of a node label (C7 by label), maybe in one of their own (C15).

A PodGroup of Kubernetes asks for one in its scheduling constraints; a child Job of a JobSet, and a replica or subgroup
of a LeaderWorkerSet, by an annotation of its pods, which labels of theirs tell from those of others. So pods that exist
and pods that would be made are read alike.

Source: sigs.k8s.io/jobset ``pkg/webhooks/pod_mutating_webhook.go``, sigs.k8s.io/lws ``pkg/webhooks/pod_webhook.go``
(both make affinity and anti-affinity of it), kubernetes/api ``scheduling/v1beta1``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from placer.instance.gangs import (
    GROUP_INDEX,
    JOB_EXCLUSIVE_TOPOLOGY,
    JOB_SET,
    LEADER_WORKER_SET,
    REPLICA_EXCLUSIVE_TOPOLOGY,
    SUB_GROUP_EXCLUSIVE_TOPOLOGY,
    SUB_GROUP_INDEX,
)
from placer.instance.keys import GroupKey
from placer.instance.problem import ChildJob, DomainUnit

if TYPE_CHECKING:
    from placer.kube.base import Labels
    from placer.kube.pod import PodManifest

__all__ = [
    "EXCLUSIVE_ANNOTATIONS",
    "child_jobs",
    "exclusive_job_keys",
    "exclusive_units",
    "units_of_group",
    "unnamed_units",
]

#: Annotations of pods that name the label in whose domains something is exclusive.
EXCLUSIVE_ANNOTATIONS = (JOB_EXCLUSIVE_TOPOLOGY, REPLICA_EXCLUSIVE_TOPOLOGY, SUB_GROUP_EXCLUSIVE_TOPOLOGY)
_REPLICATED_JOB, _JOB_INDEX = "jobset.sigs.k8s.io/replicatedjob-name", "jobset.sigs.k8s.io/job-index"
_JOB_KEY = "jobset.sigs.k8s.io/job-key"


def units_of_group(key: GroupKey, topology_keys: Iterable[str]) -> tuple[DomainUnit, ...]:
    """The units that a PodGroup makes of its pods: one for each key."""
    return tuple(DomainUnit(str(key), each) for each in sorted(set(topology_keys)))


def exclusive_units(pod: PodManifest) -> tuple[DomainUnit, ...]:
    """The units that a pod's annotations ask for.

    Where a replica and its subgroups are exclusive in one key, the subgroup alone is: the replica is in one domain all
    the same.
    """
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
    """What a pod is to the Jobs of JobSets that are exclusive in some labels; nothing where it is of no such Job."""
    labels = pod.metadata.labels or {}
    if not (labels.get(_JOB_KEY) or _job(pod.namespace, labels)):
        return ()
    own = (pod.metadata.annotations or {}).get(JOB_EXCLUSIVE_TOPOLOGY)
    return tuple(ChildJob(key, key == own) for key in keys)


def unnamed_units(pod: PodManifest) -> Iterator[str]:
    """Annotations that ask for a domain of its own for what no label names, as ``field: what``."""
    for name, key, unit in _asked(pod):
        if unit == "":
            yield f"metadata.annotations[{name}]: a domain of {key}, and no label says of which Job or replica"


def _asked(pod: PodManifest) -> Iterator[tuple[str, str, str | None]]:
    """Annotation, topology key, and the name of the unit, empty where labels do not tell, None where the pod is of no
    subgroup.
    """
    annotations = pod.metadata.annotations
    for name in EXCLUSIVE_ANNOTATIONS if annotations else ():
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
