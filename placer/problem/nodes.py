"""Nodes, the limits of pods to them (C3), and the tier tree over them (C7).

Source: component-helpers ``scheduling/corev1/nodeaffinity`` and core/v1 ``Toleration.ToleratesTaint``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from placer.problem.keys import label_word

if TYPE_CHECKING:
    from placer.base.quantity import Resources
    from placer.problem.numa import NumaNode


OS_LABEL = "kubernetes.io/os"
DEFAULT_OS = "linux"
UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
TOPOLOGY_POLICY = "topologyManagerPolicy"


@dataclass(frozen=True, slots=True, order=True)
class Taint:
    """``effect`` is NoSchedule or NoExecute (others keep no pod off)."""

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
    """One expression of a node selector: In, NotIn, Exists, DoesNotExist, Gt or Lt."""

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
        return all(requirement.holds(node.field(requirement.key)) for requirement in self.fields)


@dataclass(frozen=True, slots=True, order=True)
class NodeMark:
    """A limit to nodes that a queue or a mark of another system states."""

    refusal: str
    term: Term

    @property
    def asks_kubelet(self) -> bool:
        """Whether it limits the policy of a node's kubelet."""
        return any(each.key == TOPOLOGY_POLICY for each in self.term.fields)


def _is_matched(terms: Iterable[Term], node: Node) -> bool:
    return any(term.matches(node) for term in terms)


#: How the keys of taints begin by which Kubernetes says how a node is.
_STATE_TAINTS = "node.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class Constraints:
    """Demands of a pod on a node's own properties (C3), sorted, hashable and shared.

    ``required``: of each entry one term must match. ``os``: empty: any. ``marks``: all must hold.
    """

    tolerations: tuple[Toleration, ...] = ()
    selector: tuple[tuple[str, str], ...] = ()
    required: tuple[tuple[Term, ...], ...] = ()
    os: str = ""
    marks: tuple[NodeMark, ...] = ()

    @property
    def os_terms(self) -> tuple[Term, ...]:
        """Terms of which one must match for the operating system; empty: any will do."""
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
        return self._repelled(node) or self.mismatch(node)

    def refusals(self, node: Node) -> list[str]:
        """Every reason why the node is not eligible, without taints that repeat one of them."""
        found = [] if node.ready else ["node is not Ready"]
        sound = replace(node, ready=True, taints=())
        found += [text for text in (self._repelled(sound),) if text is not None]
        for taint in node.taints:
            text = self._repelled(replace(sound, unschedulable=False, taints=(taint,)))
            if text is not None and not (found and taint.key.startswith(_STATE_TAINTS)):
                found.append(text)
        return [*found, *(text for text in (self.mismatch(node),) if text is not None)]

    def _repelled(self, node: Node) -> str | None:
        if node.unschedulable and not self._tolerated(Taint(UNSCHEDULABLE_TAINT, "", "NoSchedule")):
            return "node is unschedulable"
        taint = self.untolerated(node)
        if taint is not None:
            return f"untolerated taint {taint.key}{'=' + taint.value if taint.value else ''}:{taint.effect}"
        return None

    def untolerated(self, node: Node) -> Taint | None:
        """The first taint of a node that these tolerations do not tolerate."""
        return next((taint for taint in node.taints if not self._tolerated(taint)), None)

    def mismatch(self, node: Node) -> str | None:
        """The first label that the node lacks, in a few words."""
        for label, value in self.selector:
            if node.labels.get(label) != value:
                return f"node selector {label}={label_word(value)}"
        if not all(_is_matched(terms, node) for terms in self.required):
            return "required node affinity"
        if self.os and not _is_matched(self.os_terms, node):
            return f"operating system other than {self.os}"
        return next((each.refusal for each in self.marks if not each.term.matches(node)), None)

    def _tolerated(self, taint: Taint) -> bool:
        return any(toleration.tolerates(taint) for toleration in self.tolerations)


@dataclass(frozen=True, slots=True)
class Node:
    """A Kubernetes node.

    ``allocatable``: milli-cpu, bytes, counts; ``pods`` included. ``taints``: NoSchedule and NoExecute only.
    ``topology_policy``: of the kubelet, where C10 is off, too.
    """

    name: str
    allocatable: Resources
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    numa: NumaNode | None = None
    topology_policy: str = ""

    def field(self, key: str) -> str | None:
        """The value of a field that terms name; None where there is none."""
        return self.name if key == "metadata.name" else self.topology_policy or None if key == TOPOLOGY_POLICY else None


@dataclass(frozen=True, slots=True)
class HyperNode:
    """A network domain, ``children`` and ``nodes`` sorted; one with direct ``nodes`` is a *leaf HyperNode*."""

    name: str
    tier: int
    tier_name: str = ""
    parent: str | None = None
    children: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TopologyTree:
    """All sound HyperNodes, and the virtual root above them.

    A node belongs to the lowest HyperNode that lists it (its *leaf*). ``root_tier``: 1 + the highest tier of all
    objects.
    """

    hyper_nodes: Mapping[str, HyperNode]
    root_tier: int = 1
    left_out: tuple[str, ...] = ()

    @cached_property
    def leaf(self) -> Mapping[str, str]:
        """Node to its leaf HyperNode; a node in no HyperNode is absent."""
        lowest: dict[str, str] = {}
        for hyper_node in sorted(self.hyper_nodes.values(), key=lambda h: -h.tier):
            lowest.update(dict.fromkeys(hyper_node.nodes, hyper_node.name))
        return lowest

    @cached_property
    def paths(self) -> Mapping[str, tuple[str, ...]]:
        """HyperNode to itself and its ancestors, lowest first, without the virtual root."""
        found: dict[str, tuple[str, ...]] = {}
        for hyper_node in sorted(self.hyper_nodes.values(), key=lambda h: -h.tier):
            above = found[hyper_node.parent] if hyper_node.parent is not None else ()
            found[hyper_node.name] = (hyper_node.name, *above)
        return found

    def path(self, node: str) -> tuple[str, ...]:
        """HyperNodes that hold the node, lowest first; empty where only the virtual root does."""
        leaf = self.leaf.get(node)
        return () if leaf is None else self.paths[leaf]

    def smallest_common(self, nodes: Iterable[str]) -> str | None:
        """Lowest HyperNode that holds all the nodes; None: the virtual root."""
        common: tuple[str, ...] | None = None
        for node in set(nodes):
            path = self.path(node)
            common = path if common is None else tuple(name for name in common if name in path)
            if not common:
                return None
        return common[0] if common else None

    def tier(self, hyper_node: str | None) -> int:
        """Tier of a HyperNode; None is the virtual root."""
        return self.root_tier if hyper_node is None else self.hyper_nodes[hyper_node].tier
