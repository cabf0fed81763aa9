"""Demands of pods that are not modelled (C4): such a pod is never bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from placer.base.text import shown
from placer.kube.base import FREE_TEXT, LEFT_OUT, MOST_TEXT, TEXT_BYTES, Metadata, NodeSelector, controller
from placer.kube.marks import KAI_TOPOLOGIES, SHARES
from placer.problem.eligibility import has_long_lists, longer, operating_systems, too_long
from placer.problem.findings import Findings
from placer.problem.keys import GroupKey, Key
from placer.problem.mark_gangs import refusals_alone
from placer.problem.neighbour_demand import forbidding, required_terms, too_many_neighbours, unnamed_units
from placer.problem.nodes import DEFAULT_OS, OS_LABEL

if TYPE_CHECKING:
    from placer.kube.apps import JobManifest
    from placer.kube.core import PersistentVolumeClaimManifest, PersistentVolumeManifest
    from placer.kube.pod import PodAffinity, PodManifest, PodSpec

_ONE_POD = "ReadWriteOncePod"
_MOST_RESOURCES, _MOST_WORDS = 200, 200
_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"

#: Kernel parameters that every kubelet lets a pod set; any other only where its own configuration says so, which no
#: object tells. Source: Kubernetes ``pkg/kubelet/sysctl/safe_sysctls.go`` (1.35).
SAFE_SYSCTLS = frozenset(
    (
        *("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies"),
        *("net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ip_local_reserved_ports"),
        *("net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl"),
        *("net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
    )
)


def _is_for_one_pod(claim: PersistentVolumeClaimManifest) -> bool:
    return claim.spec is not None and _ONE_POD in (claim.spec.access_modes or ())


class Volumes:
    """Claims and volumes of an instance; ``users`` may take claims for one pod."""

    def __init__(
        self,
        claims: Sequence[PersistentVolumeClaimManifest],
        volumes: Sequence[PersistentVolumeManifest],
        users: Iterable[PodManifest],
        findings: Findings,
    ) -> None:
        self._claims = {Key(each.namespace, each.name): each for each in claims}
        self._volumes = {each.name: each for each in volumes}
        self._findings = findings
        exclusive = {key for key, claim in self._claims.items() if _is_for_one_pod(claim)}
        self._taken: Counter[Key] = Counter()
        if exclusive:
            self._taken.update(key for pod in users for _, key in claimed(pod) if key in exclusive)

    def affinities(self, pod: PodManifest) -> tuple[NodeSelector, ...]:
        """Node affinity of every bound volume of the pod."""
        if not pod.spec.volumes:
            return ()
        bound = (self._volume(key) for _, key in claimed(pod) if self._refusal(key) is None)
        affinities = (each.spec.node_affinity for each in bound if each is not None and each.spec is not None)
        return tuple(each.required for each in affinities if each is not None and each.required is not None)

    def refusals(self, pod: PodManifest) -> Iterator[str]:
        """Demands of its volumes that are not modelled."""
        for place, key in claimed(pod):
            reason = self._refusal(key)
            if reason is not None:
                yield f"{place}: claim {key.name} {reason}"

    def _refusal(self, key: Key) -> str | None:
        claim = self._claims.get(key)
        if claim is None:
            return "is not in the instance, so it is not seen Bound"
        if claim.status is None or claim.status.phase != "Bound":
            return "is not Bound"
        if self._taken[key] > 1:
            return f"is {_ONE_POD} and more than one pod names it"
        return None

    def _volume(self, key: Key) -> PersistentVolumeManifest | None:
        spec = self._claims[key].spec
        name = spec.volume_name if spec is not None else None
        if not name:
            return None
        if name not in self._volumes:
            self._findings.missing(f"PersistentVolume {name}", f"PersistentVolumeClaim {key}")
        return self._volumes.get(name)


def claimed(pod: PodManifest) -> Iterator[tuple[str, Key]]:
    """Field and claim of every volume that a claim backs."""
    for volume in pod.spec.volumes or ():
        named, ephemeral = volume.persistent_volume_claim, volume.ephemeral is not None
        claim = named.claim_name if named is not None else f"{pod.name}-{volume.name}" if ephemeral else None
        if claim is not None:
            kind = "ephemeral" if ephemeral else "persistentVolumeClaim"
            yield f"spec.volumes[{volume.name or ''}].{kind}", Key(pod.namespace, claim)


@dataclass(frozen=True, slots=True)
class Refusals:
    """Everything that can make a pending pod one that is never bound.

    ``scheduled_jobs``: batch Jobs whose pods are a gang. ``gangs``: those not modelled. ``ending``: namespaces being
    deleted. ``devices``: resources that only a DeviceClass serves.
    """

    volumes: Volumes
    systems: frozenset[str] = frozenset({DEFAULT_OS})
    scheduled_jobs: frozenset[Key] = frozenset()
    gangs: Mapping[GroupKey, str] = field(default_factory=dict)
    ending: frozenset[str] = frozenset()
    devices: Mapping[str, str] = field(default_factory=dict)

    def of(self, pod: PodManifest, group: GroupKey | None = None, asked: Collection[str] = ()) -> tuple[str, ...]:
        """Reasons, as ``field: what``, why a pending pod that requests ``asked`` is never bound."""
        wanting = self.gangs.get(group) if group is not None else None
        exclusive = tuple(unnamed_units(pod))
        of_gang = tuple(refusals_alone(pod.metadata)) if group is None else ()
        of_gang = (f"{group}: {wanting}",) if wanting else of_gang
        ending = pod.namespace in self.ending
        of_namespace = (f"metadata.namespace: {pod.namespace}, which is being deleted",) if ending else ()
        marked = (*exclusive, *_refused_marks(pod, asked), *self._served(asked), *_too_much(pod, asked))
        if self._is_plain(pod):
            return *of_gang, *of_namespace, *marked
        return *of_gang, *of_namespace, *marked, *self._own(pod, group), *self.volumes.refusals(pod)

    def _served(self, asked: Iterable[str]) -> Iterator[str]:
        for name in asked:
            served = self.devices.get(name) or (name.removeprefix(_CLASS_PREFIX) if _CLASS_PREFIX in name else "")
            if served:
                yield f"resources.requests[{name}]: devices of DeviceClass {served}, and no node offers it otherwise"

    def _is_plain(self, pod: PodManifest) -> bool:
        """Most pods have no field at all that could keep them, so one test ends the search."""
        spec, labelled = pod.spec, OS_LABEL in (pod.metadata.labels or ())
        fields = (spec.affinity, spec.topology_spread_constraints, spec.resource_claims, spec.volumes, spec.os)
        nameless = spec.scheduling_group is not None and not spec.scheduling_group.pod_group_name
        named = _sysctls(spec) or self.scheduled_jobs
        return not (any(fields) or labelled or named or nameless or has_long_lists(spec))

    def _own(self, pod: PodManifest, group: GroupKey | None) -> Iterator[str]:
        yield from _own(pod)
        if group is None:
            yield from undeclared_gang(pod, self.scheduled_jobs)
        said = operating_systems(pod.spec, pod.metadata.labels)
        for name, system in said.items():
            if system not in self.systems:
                yield f"{name}: {system}, and no node is of that operating system"
        if len(set(said.values())) > 1:
            yield " and ".join(f"{name}: {system}" for name, system in said.items()) + ", and a node is of one only"


def scheduled_jobs(jobs: Iterable[JobManifest]) -> frozenset[Key]:
    """Batch Jobs whose pods their controller makes a gang."""
    return frozenset(Key(job.namespace, job.name) for job in jobs if job.spec.scheduling is not None)


def undeclared_gang(pod: PodManifest, jobs: frozenset[Key]) -> Iterator[str]:
    """The gang that a pod in no PodGroup is of all the same: half a gang is worse than none."""
    if pod.spec.scheduling_group is not None:
        yield "spec.schedulingGroup: a gang without a name"
        return
    owner = controller(pod.metadata) if jobs else None
    if owner is not None and (owner.kind, owner.api_version.rpartition("/")[0]) == ("Job", "batch"):
        job = Key(pod.namespace, owner.name)
        if job in jobs:
            yield f"spec.scheduling of Job {job}: a gang, of which the pod names no PodGroup"


def text_bytes(pod: PodManifest) -> int:
    """Bytes of labels and annotations, and of all that a pod asks of nodes and pods, unless these are few.

    Of a pod of which text was left out in a cluster it is the length before that.
    """
    spec = pod.spec
    of_others = (spec.affinity, spec.topology_spread_constraints, spec.node_selector, spec.tolerations, spec.volumes)
    asked = sum(len(msgspec.json.encode(each)) for each in of_others if each is not None)
    notes = pod.metadata.annotations or {}
    found = _marked_bytes(pod.metadata) + (asked if asked > FREE_TEXT else 0)
    left_out = notes.get(TEXT_BYTES, "")
    return max(found, int(left_out)) if left_out.isdecimal() else found


def _marked_bytes(metadata: Metadata) -> int:
    written = (*(metadata.labels or {}).items(), *(metadata.annotations or {}).items())
    return sum(len(name) + len(value) for name, value in written)


def _too_much(pod: PodManifest, asked: Collection[str]) -> Iterator[str]:
    yield from longer("resources.requests", "resources", len(asked), _MOST_RESOURCES)
    yield from longer("metadata", "bytes of labels and annotations", _marked_bytes(pod.metadata), MOST_TEXT)
    if left_out := (pod.metadata.annotations or {}).get(LEFT_OUT):
        yield shown(left_out, _MOST_WORDS)


def _refused_marks(pod: PodManifest, asked: Collection[str]) -> Iterator[str]:
    notes = pod.metadata.annotations or {}
    for name in KAI_TOPOLOGIES:
        if notes.get(name):
            yield f"metadata.annotations[{name}]: a topology of KAI"
    for place, written in (("annotations", pod.metadata.annotations), ("labels", pod.metadata.labels)):
        for name in sorted(_REFUSED_MARKS.intersection(written or ())):
            if name not in asked:
                yield f"metadata.{place}[{name}]: a share of GPUs that no request states"


_REFUSED_MARKS = frozenset(SHARES)


def _own(pod: PodManifest) -> Iterator[str]:
    spec = pod.spec
    yield from too_long(spec)
    yield from too_many_neighbours(spec)
    if spec.affinity is not None:
        yield from _keyless("spec.affinity.podAffinity", spec.affinity.pod_affinity, "affinity")
        yield from _keyless("spec.affinity.podAntiAffinity", spec.affinity.pod_anti_affinity, "anti-affinity")
    for index, spread in forbidding(spec):
        if not spread.topology_key:
            yield f"spec.topologySpreadConstraints[{index}]: DoNotSchedule without a topologyKey"
    for claim in spec.resource_claims or ():
        yield f"spec.resourceClaims[{claim.name or ''}]: devices allocated by claim"
    for sysctl in _sysctls(spec):
        if sysctl.replace("/", ".") not in SAFE_SYSCTLS:
            yield f"spec.securityContext.sysctls: {sysctl}, which a kubelet allows only if it is configured to"


def _sysctls(spec: PodSpec) -> tuple[str, ...]:
    written = spec.security_context.sysctls if spec.security_context is not None else None
    return tuple(each.name or "" for each in written or ())


def _keyless(field: str, affinity: PodAffinity | None, what: str) -> Iterator[str]:
    for term in required_terms(affinity):
        if not term.topology_key:
            yield f"{field}: required pod {what} without a topologyKey"
