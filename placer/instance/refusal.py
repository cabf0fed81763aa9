"""What a pod asks for that is not modelled (C4): such a pod is never bound, and the fields that said so are reported.

Each item leaves this list once it is modelled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from placer.instance.anti_affinity import StandingAntiAffinity
from placer.instance.constraints import DEFAULT_OS
from placer.instance.owners import controller
from placer.instance.pod import Key
from placer.instance.volumes import Volumes
from placer.kube.apps import JobManifest
from placer.kube.pod import PodAffinity, PodManifest

__all__ = ["Refusals", "scheduled_jobs", "upstream_gangs"]

_UPSTREAM = "a PodGroup of scheduling.k8s.io"


@dataclass(frozen=True, slots=True)
class Refusals:
    """Everything that can make a pending pod one that is never bound.

    Parameters
    ----------
    volumes
        Claims, bound and not.
    anti_affinity
        Required anti-affinity of the pods that have a node.
    systems
        Operating systems of the nodes.
    scheduled_jobs
        Batch Jobs whose ``spec.scheduling`` makes their pods an upstream gang.
    """

    volumes: Volumes
    anti_affinity: StandingAntiAffinity
    systems: frozenset[str] = frozenset({DEFAULT_OS})
    scheduled_jobs: frozenset[Key] = frozenset()

    def of(self, pod: PodManifest) -> tuple[str, ...]:
        """List what keeps a pending pod from being bound at all, as ``field: what``; empty where nothing does."""
        return *self._own(pod), *self.volumes.refusals(pod), *self.anti_affinity.refusals(pod)

    def _own(self, pod: PodManifest) -> Iterator[str]:
        yield from _own(pod)
        yield from upstream_gangs(pod, self.scheduled_jobs)
        system = pod.spec.os.name if pod.spec.os is not None else None
        if system and system not in self.systems:
            yield f"spec.os.name: {system}, and no node is of that operating system"


def scheduled_jobs(jobs: Iterable[JobManifest]) -> frozenset[Key]:
    """Batch Jobs whose pods their controller makes an upstream gang."""
    return frozenset(Key(job.namespace, job.name) for job in jobs if job.spec.scheduling is not None)


def upstream_gangs(pod: PodManifest, jobs: frozenset[Key]) -> Iterator[str]:
    """Gangs of ``scheduling.k8s.io`` that a pod is of, by the field that says so: half a gang is worse than none.

    Parameters
    ----------
    pod
        The pod.
    jobs
        Batch Jobs whose pods are a gang, whether or not their pods say so yet.
    """
    spec = pod.spec
    if spec.scheduling_group is not None:
        name = spec.scheduling_group.pod_group_name
        yield f"spec.schedulingGroup.podGroupName: gang {name or 'without a name'} of {_UPSTREAM}, which is not read"
    elif spec.workload_ref is not None:
        name = spec.workload_ref.name
        yield f"spec.workloadRef: gang {name or 'without a name'} of a Workload of scheduling.k8s.io, which is not read"
    elif jobs and (job := _job_of(pod)) in jobs:
        yield f"spec.scheduling of Job {job}: a gang of {_UPSTREAM}, which is not read"


def _job_of(pod: PodManifest) -> Key | None:
    owner = controller(pod.metadata)
    if owner is None or (owner.kind, owner.api_version.rpartition("/")[0]) != ("Job", "batch"):
        return None
    return Key(pod.namespace, owner.name)


def _own(pod: PodManifest) -> Iterator[str]:
    """Fields of the pod's own spec."""
    spec = pod.spec
    if spec.affinity is not None:
        yield from _terms("spec.affinity.podAffinity", spec.affinity.pod_affinity, "affinity")
        yield from _terms("spec.affinity.podAntiAffinity", spec.affinity.pod_anti_affinity, "anti-affinity")
    for index, spread in enumerate(spec.topology_spread_constraints or ()):
        # The field is required, and what it says when left out is the stricter of the two.
        if spread.when_unsatisfiable != "ScheduleAnyway":
            yield f"spec.topologySpreadConstraints[{index}]: DoNotSchedule over {spread.topology_key or 'no key'}"
    for claim in spec.resource_claims or ():
        yield f"spec.resourceClaims[{claim.name or ''}]: devices allocated by claim"


def _terms(field: str, affinity: PodAffinity | None, what: str) -> Iterator[str]:
    for term in (affinity.required or ()) if affinity is not None else ():
        yield f"{field}: required pod {what} over {term.topology_key or 'no key'}"
