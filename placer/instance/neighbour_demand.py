"""Pod affinity, anti-affinity, spread and domains of units (C12 to C15, C7 by label), read from pods.

Source: kube-scheduler ``plugins/interpodaffinity`` and ``plugins/podtopologyspread``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from placer.instance.domain_units import child_jobs, exclusive_units
from placer.instance.eligibility import (
    MOST_VALUES,
    Requirements,
    label_requirements,
    longer,
    required_node_terms,
    tolerations_of,
)
from placer.instance.neighbours import NO_NEIGHBOURS, AffinityTerm, DomainUnit, Neighbours, PodSelector, SpreadLimit
from placer.instance.nodes import Constraints, Requirement, Toleration

if TYPE_CHECKING:
    from placer.kube.base import Labels, LabelSelector
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
