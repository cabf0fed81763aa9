"""Limits to nodes outside a pod's spec (C3): node groups of its queue (Volcano), and marks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from placer.instance.nodes import TOPOLOGY_POLICY, NodeMark, Requirement, Term
from placer.kube.marks import NODE_GROUP, VOLCANO_NUMA

if TYPE_CHECKING:
    from placer.kube.pod import PodManifest
    from placer.kube.volcano import NodeGroups, QueueManifest

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
