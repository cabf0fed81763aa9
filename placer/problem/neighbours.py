"""Demands of pods on the pods around them: C12 to C15, and C7 by label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from placer.problem.nodes import Constraints, Node, Requirement

#: The API server labels every namespace with its name.
NAMESPACE_LABEL = "kubernetes.io/metadata.name"


class _Namespaced(Protocol):
    @property
    def namespace(self) -> str: ...

    @property
    def labels(self) -> Mapping[str, str]: ...


@dataclass(frozen=True, slots=True)
class PodSelector:
    """Which pods a term or a spread constraint means.

    ``namespace_requirements``: of further namespaces; empty: all; None: none. ``requirements``: empty: every pod; None:
    no pod.
    """

    namespaces: tuple[str, ...]
    namespace_requirements: tuple[Requirement, ...] | None
    requirements: tuple[Requirement, ...] | None

    def matches(self, pod: _Namespaced, namespace_labels: Mapping[str, Mapping[str, str]]) -> bool:
        """Whether a pod is meant; a namespace without entry has its name as its label."""
        if self.requirements is None:
            return False
        if not all(each.holds(pod.labels.get(each.key)) for each in self.requirements):
            return False
        if pod.namespace in self.namespaces:
            return True
        if self.namespace_requirements is None:
            return False
        labels = {NAMESPACE_LABEL: pod.namespace, **namespace_labels.get(pod.namespace, {})}
        return all(each.holds(labels.get(each.key)) for each in self.namespace_requirements)


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """A required term of pod affinity (C12) or anti-affinity (C13)."""

    topology_key: str
    pods: PodSelector


@dataclass(frozen=True, slots=True)
class SpreadLimit:
    """A topology spread constraint with DoNotSchedule (C14).

    ``min_domains``: with fewer the fewest is 0. ``keys``: labels that a node needs to count at all. ``counted``:
    further demands on nodes that count.
    """

    topology_key: str
    pods: PodSelector
    max_skew: int
    min_domains: int
    keys: tuple[str, ...]
    counted: Constraints

    def counts(self, node: Node) -> bool:
        """Whether pods on a node count, and its domain with them."""
        if any(key not in node.labels for key in self.keys):
            return False
        return self.counted.mismatch(node) is None and self.counted.untolerated(node) is None


@dataclass(frozen=True, slots=True)
class DomainUnit:
    """Pods that must all be in one domain of a node label (C7 by label), which is theirs alone if ``exclusive``
    (C15).
    """

    name: str
    topology_key: str
    exclusive: bool = False

    def keeps_off(self, other: DomainUnit) -> bool:
        """Whether the two may not be in one domain (C15)."""
        alone = self.exclusive and other.exclusive
        return alone and self != other and self.topology_key == other.topology_key


@dataclass(frozen=True, slots=True)
class ChildJob:
    """A pod is of a JobSet's Job, over a node label with exclusive Jobs (C15)."""

    topology_key: str
    exclusive: bool

    @property
    def opposite(self) -> ChildJob:
        """The pods that it keeps off."""
        return ChildJob(self.topology_key, not self.exclusive)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Demands of a pod on the pods around it (C12 to C15, C7 by label), sorted and shared.

    Of ``units`` at most one of a key is exclusive; ``jobs`` has one entry for each key.
    """

    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    spread: tuple[SpreadLimit, ...] = ()
    units: tuple[DomainUnit, ...] = ()
    jobs: tuple[ChildJob, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is asked."""
        return bool(self.affinity or self.anti_affinity or self.spread or self.units or self.jobs)


NO_NEIGHBOURS = Neighbours()
