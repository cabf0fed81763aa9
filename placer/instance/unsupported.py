"""What a pod asks for that is not modelled (C4): such a pod is never bound, and the fields that said so are reported.

Each item leaves this list once it is modelled.

* Claims: a bound one decides by its volume where the pod can run (C3), any other is refused.
* Required anti-affinity of pods that have a node already: every node that shares the running pod's domain is forbidden
  to a pod that a term matches. Where the instance does not say enough to rule a match out, it counts as one. Source:
  kube-scheduler ``plugins/interpodaffinity`` and core/v1 ``PodAffinityTerm``.
* Fields of the pod's own spec, and gangs of ``scheduling.k8s.io``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from placer.instance.eligibility import Requirements, label_requirements, matches
from placer.instance.findings import Findings
from placer.instance.keys import Key
from placer.instance.problem import DEFAULT_OS, Node, Requirement
from placer.kube.apps import JobManifest
from placer.kube.base import Labels, NodeSelector, controller
from placer.kube.core import NamespaceManifest, PersistentVolumeClaimManifest, PersistentVolumeManifest
from placer.kube.pod import PodAffinity, PodAffinityTerm, PodManifest, VolumeEntry

__all__ = ["Refusals", "StandingAntiAffinity", "Volumes", "anti_affinity_terms", "scheduled_jobs", "upstream_gangs"]


_ONE_POD = "ReadWriteOncePod"


class Volumes:
    """Claims and volumes of an instance.

    Parameters
    ----------
    claims, volumes
        The PersistentVolumeClaim and PersistentVolume objects.
    users
        The pods that are pending or have a node: a claim for one pod only is taken by any of them.
    findings
        Takes volumes that a bound claim names and that are not there.
    """

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
        exclusive = {key for key, claim in self._claims.items() if _for_one_pod(claim)}
        self._taken: Counter[Key] = Counter()
        if exclusive:
            self._taken.update(key for pod in users for _, key in _claimed(pod) if key in exclusive)

    def affinities(self, pod: PodManifest) -> tuple[NodeSelector, ...]:
        """Node affinity of every bound volume of the pod."""
        if not pod.spec.volumes:
            return ()
        bound = (self._volume(key) for _, key in _claimed(pod) if self._refusal(key) is None)
        affinities = (each.spec.node_affinity for each in bound if each is not None and each.spec is not None)
        return tuple(each.required for each in affinities if each is not None and each.required is not None)

    def refusals(self, pod: PodManifest) -> Iterator[str]:
        """What its volumes ask for that is not modelled."""
        for field, key in _claimed(pod):
            reason = self._refusal(key)
            if reason is not None:
                yield f"{field}: claim {key.name} {reason}"

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


def _claimed(pod: PodManifest) -> Iterator[tuple[str, Key]]:
    """Field and claim of every volume that a claim backs; a generic ephemeral one has a claim of its own name."""
    for volume in pod.spec.volumes or ():
        name = _claim_name(pod, volume)
        if name is not None:
            kind = "ephemeral" if volume.ephemeral is not None else "persistentVolumeClaim"
            yield f"spec.volumes[{volume.name or ''}].{kind}", Key(pod.namespace, name)


def _claim_name(pod: PodManifest, volume: VolumeEntry) -> str | None:
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.name}-{volume.name}" if volume.ephemeral is not None else None


def _for_one_pod(claim: PersistentVolumeClaimManifest) -> bool:
    return claim.spec is not None and _ONE_POD in (claim.spec.access_modes or ())


@dataclass(frozen=True, slots=True)
class _AntiAffinityTerm:
    """A term as seen from a pod that it may keep off: its namespaces, or a selector of namespaces, and its labels."""

    namespaces: frozenset[str]
    namespace_requirements: Requirements | None
    requirements: Requirements


class StandingAntiAffinity:
    """Required anti-affinity of all pods that have a node.

    Parameters
    ----------
    pods
        The pods that have a node, with the name of it; sorted, so that the first one is named.
    nodes
        Nodes by name: a pod whose node lacks the term's topology key keeps no pod off.
    namespaces
        The Namespace objects, whose labels a term may select.
    """

    def __init__(
        self,
        pods: Iterable[tuple[PodManifest, str]],
        nodes: Mapping[str, Node],
        namespaces: Sequence[NamespaceManifest],
    ) -> None:
        self._namespace_labels = {each.name: each.metadata.labels or {} for each in namespaces}
        self._owners: dict[_AntiAffinityTerm, str] = {}
        #: Terms by one label that a pod must have for them, so that most pods meet few terms.
        self._by_label: dict[tuple[str, str], list[_AntiAffinityTerm]] = {}
        self._rest: list[_AntiAffinityTerm] = []
        for pod, node in pods:
            for written in anti_affinity_terms(pod):
                if _has_domain(written, nodes.get(node)):
                    self._add(written, pod)

    def refusals(self, pod: PodManifest) -> Iterator[str]:
        """Say whose anti-affinity keeps the pod off somewhere: the first by name."""
        labels = pod.metadata.labels or {}
        candidates = [term for label in labels.items() for term in self._by_label.get(label, ())]
        owners = [
            self._owners[term]
            for term in (*candidates, *self._rest)
            if self._in_namespace(term, pod.namespace) and matches(term.requirements, labels)
        ]
        if owners:
            yield f"spec.affinity.podAntiAffinity of bound {min(owners)}: required, and matches this pod"

    def _add(self, written: PodAffinityTerm, pod: PodManifest) -> None:
        term = _read(written, pod)
        if term is None or term in self._owners:
            return
        self._owners[term] = f"Pod {pod.namespace}/{pod.name}"
        narrow = next((each for each in term.requirements if each.operator == "In"), None)
        if narrow is None:
            self._rest.append(term)
        else:
            for value in narrow.values:
                self._by_label.setdefault((narrow.key, value), []).append(term)

    def _in_namespace(self, term: _AntiAffinityTerm, namespace: str) -> bool:
        if namespace in term.namespaces:
            return True
        if term.namespace_requirements is None:
            return False
        labels = self._namespace_labels.get(namespace)
        # A namespace whose object was not given may have any labels.
        return labels is None or matches(term.namespace_requirements, labels)


def anti_affinity_terms(pod: PodManifest) -> tuple[PodAffinityTerm, ...]:
    """Required anti-affinity terms of a pod."""
    affinity = pod.spec.affinity
    anti = affinity.pod_anti_affinity if affinity is not None else None
    return (anti.required or ()) if anti is not None else ()


def _has_domain(term: PodAffinityTerm, node: Node | None) -> bool:
    """Whether the pod's node lies in a domain of the term; unknown counts as yes."""
    return node is None or not term.topology_key or term.topology_key in node.labels


def _read(written: PodAffinityTerm, pod: PodManifest) -> _AntiAffinityTerm | None:
    """Bring a term to its canonical form; None where it has no label selector, which matches no pod."""
    if written.label_selector is None:
        return None
    own = not written.namespaces and written.namespace_selector is None
    labels = pod.metadata.labels or {}
    return _AntiAffinityTerm(
        frozenset((pod.namespace,) if own else written.namespaces or ()),
        None if written.namespace_selector is None else label_requirements(written.namespace_selector),
        (
            *label_requirements(written.label_selector),
            *_same(written.match_label_keys, "In", labels),
            *_same(written.mismatch_label_keys, "NotIn", labels),
        ),
    )


def _same(keys: tuple[str, ...] | None, operator: str, labels: Labels) -> Requirements:
    """Requirements on the running pod's own label values; a key that it lacks asks for nothing."""
    return tuple(Requirement(key, operator, (labels[key],)) for key in keys or () if key in labels)


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
