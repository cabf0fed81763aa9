"""Required anti-affinity of pods that have a node already: which pending pods it keeps off somewhere (C4).

Every node that shares the running pod's domain is forbidden to a pod that a term matches. That is not modelled, so such
a pod is refused; where the instance does not say enough to rule a match out, it counts as one.

Source: kube-scheduler ``plugins/interpodaffinity`` and core/v1 ``PodAffinityTerm``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from placer.instance.constraints import Requirement
from placer.instance.node import Node
from placer.instance.selectors import Requirements, label_requirements, matches
from placer.kube.base import Labels
from placer.kube.core import NamespaceManifest
from placer.kube.pod import PodAffinityTerm, PodManifest

__all__ = ["StandingAntiAffinity", "anti_affinity_terms"]


@dataclass(frozen=True, slots=True)
class _Term:
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
        Nodes by name: a pod whose node lacks the term's topology key keeps nobody off.
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
        self._owners: dict[_Term, str] = {}
        #: Terms by one label that a pod must have for them, so that most pods meet few terms.
        self._by_label: dict[tuple[str, str], list[_Term]] = {}
        self._rest: list[_Term] = []
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

    def _in_namespace(self, term: _Term, namespace: str) -> bool:
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


def _read(written: PodAffinityTerm, pod: PodManifest) -> _Term | None:
    """Bring a term to its canonical form; None where it has no label selector, which matches no pod."""
    if written.label_selector is None:
        return None
    own = not written.namespaces and written.namespace_selector is None
    labels = pod.metadata.labels or {}
    return _Term(
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
