"""Pod affinity, anti-affinity, spread and domains of units (C12 to C15, C7 by label), read from pods.

Labels and owners tell units apart. Source: kube-scheduler ``plugins/interpodaffinity``, ``plugins/podtopologyspread``;
jobset and lws ``pkg/webhooks``; kueue ``pkg/controller/jobs``.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from placer.kube.base import Labels, LabelSelector, controller
from placer.kube.marks import KUEUE_GROUP, KUEUE_POD_SET, KUEUE_POD_SET_GROUP, KUEUE_REQUIRED, KUEUE_WORKLOAD
from placer.problem.eligibility import (
    MOST_VALUES,
    Requirements,
    label_requirements,
    longer,
    required_node_terms,
    tolerations_of,
)
from placer.problem.gangs import (
    GROUP_INDEX,
    JOB_EXCLUSIVE_TOPOLOGY,
    REPLICA_EXCLUSIVE_TOPOLOGY,
    SUB_GROUP_EXCLUSIVE_TOPOLOGY,
    SUB_GROUP_INDEX,
)
from placer.problem.keys import GroupKey, Key
from placer.problem.neighbours import (
    NO_NEIGHBOURS,
    AffinityTerm,
    ChildJob,
    DomainUnit,
    Neighbours,
    PodSelector,
    SpreadLimit,
)
from placer.problem.nodes import Constraints, Requirement, Toleration
from placer.problem.pod_states import JOB_SET, LEADER_WORKER_SET, is_daemon

if TYPE_CHECKING:
    from placer.kube.core import NamespaceManifest
    from placer.kube.pod import PodAffinity, PodAffinityTerm, PodManifest, PodSpec, SpreadConstraint

#: Each term is a sum over all pods.
_MOST_TERMS = 50
_EVERYTHING = (Toleration(operator="Exists"),)


def read_namespaces(written: Iterable[NamespaceManifest]) -> dict[str, Mapping[str, str]]:
    """Namespace to its labels."""
    return {each.name: each.metadata.labels or {} for each in sorted(written, key=lambda each: each.name)}


def required_terms(affinity: PodAffinity | None) -> tuple[PodAffinityTerm, ...]:
    """Terms of pod affinity or anti-affinity that must hold."""
    return (affinity.required or ()) if affinity is not None else ()


def forbidding(spec: PodSpec) -> Iterator[tuple[int, SpreadConstraint]]:
    """Spread constraints that forbid, with their places; without ``whenUnsatisfiable`` the stricter reading counts."""
    for index, spread in enumerate(spec.topology_spread_constraints or ()):
        if spread.when_unsatisfiable != "ScheduleAnyway":
            yield index, spread


def too_many_neighbours(spec: PodSpec) -> Iterator[str]:
    """Fields with more terms than are looked at, as ``field: what``."""
    if spec.affinity is None and spec.topology_spread_constraints is None:
        return
    spread = [each for _, each in forbidding(spec)]
    attracting = required_terms(spec.affinity.pod_affinity) if spec.affinity is not None else ()
    rivals = required_terms(spec.affinity.pod_anti_affinity) if spec.affinity is not None else ()
    yield from longer("spec.affinity.podAffinity", "terms", len(attracting), _MOST_TERMS)
    yield from longer("spec.affinity.podAntiAffinity", "terms", len(rivals), _MOST_TERMS)
    yield from longer("spec.topologySpreadConstraints", "constraints", len(spread), _MOST_TERMS)
    values = sum(map(_values_of_term, (*attracting, *rivals))) + sum(map(_values, spread))
    yield from longer("spec", "names and values in its terms about other pods", values, MOST_VALUES)


def _values_of_term(term: PodAffinityTerm) -> int:
    of_namespaces = _values_of_selector(term.namespace_selector) + len(term.namespaces or ())
    return _values(term) + of_namespaces + len(term.mismatch_label_keys or ())


def _values(said: PodAffinityTerm | SpreadConstraint) -> int:
    return _values_of_selector(said.label_selector) + len(said.match_label_keys or ())


def _values_of_selector(selector: LabelSelector | None) -> int:
    if selector is None:
        return 0
    asked = selector.match_expressions or ()
    return len(selector.match_labels or ()) + sum(1 + len(each.values or ()) for each in asked)


class NeighboursPool:
    """Pods that ask for the same of others share one object."""

    def __init__(self, exclusive_job_keys: Sequence[str] = ()) -> None:
        self._known: dict[Neighbours, Neighbours] = {}
        self._exclusive = exclusive_job_keys

    def of(self, pod: PodManifest, units: tuple[DomainUnit, ...] = ()) -> Neighbours:
        """Demands of a pod on others; of one that asks for too much only its units, since it is refused (C4)."""
        spec, units = pod.spec, units + exclusive_units(pod)
        jobs = child_jobs(pod, self._exclusive) if self._exclusive else ()
        if spec.affinity is None and spec.topology_spread_constraints is None and not units and not jobs:
            return NO_NEIGHBOURS
        affinity = spec.affinity
        made = (
            Neighbours(units=units, jobs=jobs)
            if any(too_many_neighbours(spec))
            else Neighbours(
                affinity=_terms(affinity.pod_affinity if affinity is not None else None, pod),
                anti_affinity=_terms(affinity.pod_anti_affinity if affinity is not None else None, pod),
                spread=_spread(pod),
                units=units,
                jobs=jobs,
            )
        )
        return self._known.setdefault(made, made) if made else NO_NEIGHBOURS


def _terms(affinity: PodAffinity | None, pod: PodManifest) -> tuple[AffinityTerm, ...]:
    return tuple(
        sorted(
            {
                AffinityTerm(term.topology_key, _selector_of_term(term, pod))
                for term in required_terms(affinity)
                if term.topology_key
            },
            key=repr,
        )
    )


def _selector_of_term(term: PodAffinityTerm, pod: PodManifest) -> PodSelector:
    own = not term.namespaces and term.namespace_selector is None
    labels = pod.metadata.labels or {}
    return PodSelector(
        (pod.namespace,) if own else tuple(sorted(set(term.namespaces or ()))),
        None if term.namespace_selector is None else label_requirements(term.namespace_selector),
        _requirements(
            term.label_selector,
            (*_same(term.match_label_keys, "In", labels), *_same(term.mismatch_label_keys, "NotIn", labels)),
        ),
    )


def _requirements(selector: LabelSelector | None, more: Requirements) -> Requirements | None:
    return None if selector is None else tuple(sorted({*label_requirements(selector), *more}))


def _same(keys: tuple[str, ...] | None, operator: str, labels: Labels) -> Requirements:
    return tuple(Requirement(key, operator, (labels[key],)) for key in keys or () if key in labels)


def _spread(pod: PodManifest) -> tuple[SpreadLimit, ...]:
    asked = [each for _, each in forbidding(pod.spec) if each.topology_key]
    keys = tuple(sorted({each.topology_key for each in asked if each.topology_key}))
    return tuple(sorted({_limit(each, pod, keys) for each in asked}, key=repr))


def _limit(written: SpreadConstraint, pod: PodManifest, keys: tuple[str, ...]) -> SpreadLimit:
    labels = pod.metadata.labels or {}
    requirements = _requirements(written.label_selector, _same(written.match_label_keys, "In", labels))
    return SpreadLimit(
        topology_key=written.topology_key or "",
        # Unlike elsewhere, an empty selector counts nothing here.
        pods=PodSelector((pod.namespace,), None, requirements or None),
        max_skew=written.max_skew or 1,
        min_domains=written.min_domains or 1,
        keys=keys,
        counted=_counted(written, pod.spec),
    )


def _counted(written: SpreadConstraint, spec: PodSpec) -> Constraints:
    honours_affinity = written.node_affinity_policy != "Ignore"
    return Constraints(
        tolerations=tolerations_of(spec) if written.node_taints_policy == "Honor" else _EVERYTHING,
        selector=tuple(sorted((spec.node_selector or {}).items())) if honours_affinity else (),
        required=required_node_terms(spec) if honours_affinity else (),
    )


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
