"""Which nodes a pod may use at all (C3), in one canonical, hashable form.

Everything that keeps a pod off a node by the node's own properties is here: tolerations against taints, the node
selector, required node affinity, and the node affinity of bound volumes. Pods made from one template share one
:class:`Constraints`.

Source: component-helpers ``scheduling/corev1/nodeaffinity`` and core/v1 ``Toleration.ToleratesTaint``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.instance.node import Node

__all__ = ["DEFAULT_OS", "OS_LABEL", "Constraints", "Requirement", "Taint", "Term", "Toleration"]

#: Every kubelet labels its node with this.
OS_LABEL = "kubernetes.io/os"
#: Operating system of a node that does not say.
DEFAULT_OS = "linux"
UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"


@dataclass(frozen=True, slots=True, order=True)
class Taint:
    """A taint of a node; ``effect`` is NoSchedule or NoExecute (others keep no pod off)."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True, order=True)
class Toleration:
    """A toleration as written; empty ``key`` with Exists tolerates all, empty ``effect`` every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Whether a pod with this toleration may be on a node with ``taint``."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return bool(self.key) and self.value == taint.value


@dataclass(frozen=True, slots=True, order=True)
class Requirement:
    """One expression of a node selector: ``key operator values`` with In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, value: str | None) -> bool:
        """Whether a label of this value (None: absent) meets the requirement."""
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return self._compares(value)
        return False

    def _compares(self, value: str | None) -> bool:
        if value is None or len(self.values) != 1:
            return False
        try:
            label, bound = int(value), int(self.values[0])
        except ValueError:
            return False
        return label > bound if self.operator == "Gt" else label < bound


@dataclass(frozen=True, slots=True, order=True)
class Term:
    """A node selector term: all label ``expressions`` and ``fields`` (metadata.name) hold; empty: no match."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def matches(self, node: Node) -> bool:
        """Whether the node meets every requirement of this term."""
        if not self.expressions and not self.fields:
            return False
        if not all(requirement.holds(node.labels.get(requirement.key)) for requirement in self.expressions):
            return False
        return all(
            requirement.holds(node.name if requirement.key == "metadata.name" else None) for requirement in self.fields
        )


@dataclass(frozen=True, slots=True)
class Constraints:
    """What a pod asks of a node's own properties.

    Parameters
    ----------
    tolerations
        Sorted tolerations of the pod.
    selector
        ``nodeSelector`` as sorted (label, value) pairs; all must hold.
    required
        Each entry is a list of terms of which at least one must match: the required node affinity, and one entry per
        bound volume with node affinity.
    os
        Operating system that the pod is made for, whose kubelets alone admit it; empty: any.
    """

    tolerations: tuple[Toleration, ...] = ()
    selector: tuple[tuple[str, str], ...] = ()
    required: tuple[tuple[Term, ...], ...] = ()
    os: str = ""

    @property
    def os_terms(self) -> tuple[Term, ...]:
        """Terms of which one must match for the operating system; empty where any will do."""
        if not self.os:
            return ()
        labelled = Term((Requirement(OS_LABEL, "In", (self.os,)),))
        return (labelled, Term((Requirement(OS_LABEL, "DoesNotExist"),))) if self.os == DEFAULT_OS else (labelled,)

    def admits(self, node: Node) -> bool:
        """Whether a pod with these constraints may be bound to ``node`` (C3)."""
        return self.refusal(node) is None

    def refusal(self, node: Node) -> str | None:
        """Why the node is not eligible, in a few words; None where it is."""
        if not node.ready:
            return "node is not Ready"
        if node.unschedulable and not self._tolerated(Taint(UNSCHEDULABLE_TAINT, "", "NoSchedule")):
            return "node is unschedulable"
        for taint in node.taints:
            if not self._tolerated(taint):
                return f"untolerated taint {taint.key}{'=' + taint.value if taint.value else ''}:{taint.effect}"
        for label, value in self.selector:
            if node.labels.get(label) != value:
                return f"node selector {label}={value}"
        for terms in self.required:
            if not any(term.matches(node) for term in terms):
                return "required node affinity"
        if self.os and not any(term.matches(node) for term in self.os_terms):
            return f"operating system other than {self.os}"
        return None

    def _tolerated(self, taint: Taint) -> bool:
        return any(toleration.tolerates(taint) for toleration in self.tolerations)
