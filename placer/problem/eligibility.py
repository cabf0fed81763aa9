"""A pod's demands on a node's own properties (C3), those of its queue and marks included, and its ports there (C2).

Source of node groups: Volcano ``pkg/scheduler/plugins/nodegroup``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from placer.kube.base import LabelSelector, NodeRequirement, NodeSelector
from placer.kube.marks import NODE_GROUP, VOLCANO_NUMA
from placer.kube.pod import Container, PodManifest, PodSpec
from placer.problem.instance import HostPort
from placer.problem.nodes import OS_LABEL, TOPOLOGY_POLICY, Constraints, NodeMark, Requirement, Term, Toleration
from placer.problem.requests import is_sidecar

if TYPE_CHECKING:
    from placer.kube.volcano import NodeGroups, QueueManifest

#: Each node is compared with every entry, so a huge object could keep a pass busy for minutes.
_MOST_ENTRIES, MOST_VALUES = 200, 5_000


#: Requirements that must all hold; none at all takes everything.
Requirements = tuple[Requirement, ...]


def label_requirements(selector: LabelSelector) -> Requirements:
    """Sorted requirements of a label selector; an empty one takes everything."""
    labels = (Requirement(key, "In", (value,)) for key, value in (selector.match_labels or {}).items())
    return tuple(sorted({*labels, *_requirements(selector.match_expressions)}))


def matches(requirements: Requirements, labels: Mapping[str, str]) -> bool:
    """Whether labels meet every requirement."""
    return all(requirement.holds(labels.get(requirement.key)) for requirement in requirements)


def node_terms(selector: NodeSelector) -> tuple[Term, ...]:
    """Sorted terms of a node selector, of which one must match."""
    return tuple(
        sorted(
            {
                Term(_requirements(term.match_expressions), _requirements(term.match_fields))
                for term in selector.node_selector_terms
            }
        )
    )


def _requirements(expressions: Iterable[NodeRequirement] | None) -> Requirements:
    # Sorted before equal ones go: a set would shuffle what most lists have in order.
    values = ((each, tuple(dict.fromkeys(sorted(each.values or ())))) for each in expressions or ())
    return tuple(sorted({Requirement(each.key, each.operator, ordered) for each, ordered in values}))


class ConstraintsPool:
    """Makes constraints; pods that ask for the same share one object."""

    def __init__(self) -> None:
        self._by_spec: dict[object, Constraints] = {}
        self._by_value: dict[Constraints, Constraints] = {}

    def of(
        self,
        spec: PodSpec,
        volumes: tuple[NodeSelector, ...] = (),
        labels: Mapping[str, str] | None = None,
        marks: Iterable[NodeMark] = (),
    ) -> Constraints:
        """Read the constraints of a pod; ``volumes`` are node affinities of its bound volumes."""
        selector, ordered = tuple(sorted((spec.node_selector or {}).items())), tuple(sorted(marks))
        os, required = next(iter(operating_systems(spec, labels).values()), ""), _required(spec)
        written = (spec.tolerations, selector, required, volumes, os, ordered)
        found = self._by_spec.get(written)
        if found is None:
            terms = {node_terms(each) for each in (volumes if required is None else (required, *volumes))}
            made = Constraints(tolerations_of(spec), selector, tuple(sorted(terms)), os, ordered)
            found = self._by_spec[written] = self._by_value.setdefault(made, made)
        return found


def operating_systems(spec: PodSpec, labels: Mapping[str, str] | None) -> dict[str, str]:
    """Fields by which a pod states its operating system (Kubernetes ``pkg/kubelet/lifecycle/predicate.go``, 1.35)."""
    labelled = labels.get(OS_LABEL) if labels else None
    if spec.os is None and not labelled:
        return {}
    said = {
        "spec.os.name": spec.os.name if spec.os is not None else None,
        f"metadata.labels[{OS_LABEL}]": labelled,
    }
    return {field: system for field, system in said.items() if system}


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Ports that app containers and sidecars take on the node; with ``hostNetwork`` all of them."""
    if spec.init_containers is None and not any(each.ports for each in spec.containers or ()):
        return ()
    staying = (*(spec.containers or ()), *filter(is_sidecar, spec.init_containers or ()))
    return tuple(sorted({port for container in staying for port in _ports(container, bool(spec.host_network))}))


def _ports(container: Container, host_network: bool) -> list[HostPort]:
    found = []
    for port in container.ports or ():
        number = port.host_port or (port.container_port if host_network else None)
        if number:
            found.append(HostPort(port.protocol or "TCP", port.host_ip or "0.0.0.0", number))
    return found


def _required(spec: PodSpec) -> NodeSelector | None:
    node_affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    return node_affinity.required if node_affinity is not None else None


def required_node_terms(spec: PodSpec) -> tuple[tuple[Term, ...], ...]:
    """Terms of a pod's own required node affinity."""
    required = _required(spec)
    return () if required is None else (node_terms(required),)


def too_long(spec: PodSpec) -> Iterator[str]:
    """Fields with more entries than are looked at, as ``field: what``."""
    yield from longer("spec.tolerations", "tolerations", len(spec.tolerations or ()), _MOST_ENTRIES)
    yield from longer("spec.nodeSelector", "labels", len(spec.node_selector or ()), _MOST_ENTRIES)
    required = _required(spec)
    if required is not None:
        terms = required.node_selector_terms
        asked = [each for term in terms for each in (*(term.match_expressions or ()), *(term.match_fields or ()))]
        field = "spec.affinity.nodeAffinity"
        yield from longer(field, "terms and expressions", len(terms) + len(asked), _MOST_ENTRIES)
        yield from longer(field, "values", sum(len(each.values or ()) for each in asked), MOST_VALUES)


def has_long_lists(spec: PodSpec) -> bool:
    """Whether :func:`too_long` finds anything outside the affinity."""
    return max(len(spec.tolerations or ()), len(spec.node_selector or ())) > _MOST_ENTRIES


def longer(field: str, what: str, count: int, most: int) -> Iterator[str]:
    """State that a field has more of something than is looked at, if it has."""
    if count > most:
        yield f"{field}: {count:,} {what}, of {most:,} at most"


def tolerations_of(spec: PodSpec) -> tuple[Toleration, ...]:
    """Sorted tolerations of a pod."""
    return tuple(
        sorted(
            {
                Toleration(each.key or "", each.operator or "Equal", each.value or "", each.effect or "")
                for each in spec.tolerations or ()
                if each.operator not in ("Lt", "Gt")  # behind a feature gate that is off by default
            }
        )
    )


#: Annotation of a pod, in snapshots: the node whose kubelet rejected a pod of the same workload a short while ago.
REJECTED_BY = "placer.dev/rejected-by"

_ROOT = "root"
#: These kubelets refuse no pod, so a pod may ask for them without a limit.
_LOOSE = frozenset(("", "none", "best-effort"))
_NAMED = 8


def queue_marks(queues: Iterable[QueueManifest]) -> dict[str, tuple[NodeMark, ...]]:
    """Limits of each queue to nodes, its own or of the nearest queue above that has any."""
    by_name = {each.name: each for each in queues}
    own = {name: tuple(_own_marks(queue)) for name, queue in by_name.items()}
    return {name: _nearest(name, by_name, own) for name in by_name}


def _nearest(
    name: str, queues: Mapping[str, QueueManifest], own: Mapping[str, tuple[NodeMark, ...]]
) -> tuple[NodeMark, ...]:
    seen: set[str] = set()
    while name in queues and name not in seen:
        if own[name]:
            return own[name]
        seen.add(name)
        spec = queues[name].spec
        name = (spec.parent if spec is not None else None) or _ROOT
    return ()


def _own_marks(queue: QueueManifest) -> Iterator[NodeMark]:
    near, far = _affinity(queue)
    wanted = sorted({*(near.required or ()), *(near.preferred or ())}) if near is not None else []
    if wanted:
        which = f"not in node group {wanted[0]}" if len(wanted) == 1 else f"in none of the node groups {_named(wanted)}"
        yield _group_mark(f"node is {which} of Queue {queue.name}", "In", wanted)
    unwanted = sorted(set(far.required or ())) if far is not None else []
    if unwanted:
        which = f"node group {unwanted[0]}" if len(unwanted) == 1 else f"one of the node groups {_named(unwanted)}"
        yield _group_mark(f"node is in {which}, which Queue {queue.name} keeps its pods off", "NotIn", unwanted)


def _affinity(queue: QueueManifest) -> tuple[NodeGroups | None, NodeGroups | None]:
    affinity = queue.spec.affinity if queue.spec is not None else None
    return (affinity.node_group_affinity, affinity.node_group_anti_affinity) if affinity is not None else (None, None)


def avoided_groups(queue: QueueManifest) -> tuple[str, ...]:
    """Node groups that a queue prefers not to use."""
    _, far = _affinity(queue)
    return (far.preferred if far is not None else None) or ()


def _group_mark(refusal: str, operator: str, groups: Sequence[str]) -> NodeMark:
    return NodeMark(refusal, Term((Requirement(NODE_GROUP, operator, tuple(groups)),)))


def _named(groups: Sequence[str]) -> str:
    return ", ".join(groups[:_NAMED]) + (", ..." if len(groups) > _NAMED else "")


def numa_marks(pod: PodManifest) -> tuple[NodeMark, ...]:
    """The policy that a mark asks of the node's kubelet."""
    policy = (pod.metadata.annotations or {}).get(VOLCANO_NUMA, "")
    if policy in _LOOSE:
        return ()
    refusal = f"node is without a NodeResourceTopology of policy {policy}, which annotation {VOLCANO_NUMA} asks for"
    return (NodeMark(refusal, Term((), (Requirement(TOPOLOGY_POLICY, "In", (policy,)),))),)


def rejection_marks(pod: PodManifest) -> tuple[NodeMark, ...]:
    """Excludes the node whose kubelet has just rejected a pod like it."""
    node = (pod.metadata.annotations or {}).get(REJECTED_BY)
    if not node:
        return ()
    refusal = "node's kubelet rejected a pod of the same workload a short while ago"
    return (NodeMark(refusal, Term((), (Requirement("metadata.name", "NotIn", (node,)),))),)


def label_mark(label: str, annotation: str) -> NodeMark:
    """The node must carry a label: enough for a pod alone that an annotation wants in one domain of it."""
    refusal = f"node is without the label {label}, which annotation {annotation} asks for"
    return NodeMark(refusal, Term((Requirement(label, "Exists"),)))
