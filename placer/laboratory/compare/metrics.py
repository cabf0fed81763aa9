"""What the field measures of a placement, anybody's: pure functions, exact counts, shares as floats."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from placer.gpus import Placeable, gpus_in, placeable
from placer.instance import Group, Instance, Key
from placer.laboratory.compare.span import excess_spans
from placer.outcome import Outcome
from placer.placement import Placement

__all__ = ["Metrics", "OfPriority", "admitted_groups", "gpus_placed", "measure"]


@dataclass(frozen=True, slots=True)
class OfPriority:
    """What is new among the groups of one priority.

    Parameters
    ----------
    priority
        Of the groups.
    pods, groups, weight
        Pods that get a node; groups that become ready by it (:func:`admitted_groups`); the pods' weight in micro-nodes.
    pending_pods, pending_groups, pending_weight
        The same of all that is pending.
    """

    priority: int
    pods: int
    pending_pods: int
    groups: int
    pending_groups: int
    weight: int
    pending_weight: int


@dataclass(frozen=True, slots=True)
class Metrics:
    """Measures of one placement.

    Parameters
    ----------
    gpu_allocation_ratio
        GPUs that pods hold after the placement over all GPUs of the cluster, nodes that take no pods included; None
        where there are no GPUs.
    tiers
        Tier to the share of gangs (PodGroups of which a pod is new) whose placed pods have their smallest common
        HyperNode there, lowest tier first; the virtual root has a tier of its own. The shares sum to 1; empty without
        such gangs or without HyperNodes.
    sub_group_tiers
        The same of subgroups.
    excess_span
        Sum of the excess spans of the gangs (:func:`placer.laboratory.compare.span.excess_spans`).
    worst_excess_span
        The largest of them; 0 without gangs.
    placeable
        For 1, 2, 4 and 8 GPUs; empty where there are no GPUs.
    priorities
        Highest first; those of groups with pending pods.
    """

    gpu_allocation_ratio: float | None
    tiers: Mapping[int, float]
    sub_group_tiers: Mapping[int, float]
    excess_span: int
    worst_excess_span: int
    placeable: tuple[Placeable, ...]
    priorities: tuple[OfPriority, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON, names in camel case; keys of mappings are texts there."""
        return {
            "gpuAllocationRatio": self.gpu_allocation_ratio,
            "tiers": {str(tier): share for tier, share in self.tiers.items()},
            "subGroupTiers": {str(tier): share for tier, share in self.sub_group_tiers.items()},
            "excessSpan": self.excess_span,
            "worstExcessSpan": self.worst_excess_span,
            "placeable": {str(each.size): {"pods": each.pods, "atBest": each.at_best} for each in self.placeable},
            "priorities": [
                {
                    "priority": each.priority,
                    "pods": each.pods,
                    "pendingPods": each.pending_pods,
                    "groups": each.groups,
                    "pendingGroups": each.pending_groups,
                    "weight": each.weight,
                    "pendingWeight": each.pending_weight,
                }
                for each in self.priorities
            ],
        }


def measure(instance: Instance, placement: Placement) -> Metrics:
    """Measure a placement.

    Parameters
    ----------
    instance
        The problem.
    placement
        Need not be valid; bindings that cannot be carried out count for nothing.
    """
    outcome = Outcome(instance, placement)
    spans = excess_spans(outcome)
    return Metrics(
        gpu_allocation_ratio=_allocation_ratio(outcome),
        tiers=_tiers(outcome, (_nodes(outcome, group.bound, group.pending) for group in _gangs(outcome))),
        sub_group_tiers=_tiers(
            outcome,
            (
                _nodes(outcome, part.bound, part.pending)
                for group in _gangs(outcome)
                for part in group.sub_groups
                if outcome.added(part.pending)
            ),
        ),
        excess_span=sum(spans),
        worst_excess_span=max(spans, default=0),
        placeable=placeable(outcome),
        priorities=_priorities(outcome),
    )


# --------------------------------------------------------------------------------------------------------------- GPUs


def gpus_placed(instance: Instance, placement: Placement) -> int:
    """GPUs that the newly placed pods request."""
    pods = instance.pods
    return sum(gpus_in(pods[key].requests) for key in Outcome(instance, placement).new)


def _allocation_ratio(outcome: Outcome) -> float | None:
    instance = outcome.instance
    total = sum(gpus_in(node.allocatable) for node in instance.nodes.values())
    held = sum(gpus_in(held) for name, held in instance.held.items() if name in instance.nodes)
    new = sum(gpus_in(instance.pods[key].requests) for key in outcome.new)
    return (held + new) / total if total else None


# --------------------------------------------------------------------------------------------------------------- gangs


def admitted_groups(instance: Instance, placement: Placement) -> list[Group]:
    """Groups, single pods included, that the placement makes ready: ready after it, with a new pod, and before it not
    ready or without any placed pod.
    """
    return _admitted(Outcome(instance, placement))


def _admitted(outcome: Outcome) -> list[Group]:
    before = Outcome(outcome.instance, Placement())
    return [
        group
        for group in outcome.instance.groups.values()
        if outcome.added(group.pending) and outcome.ready(group) and not (group.placed_before and before.ready(group))
    ]


def _gangs(outcome: Outcome) -> Iterable[Group]:
    """PodGroups of which the placement adds a pod."""
    groups = outcome.instance.groups.values()
    return (group for group in groups if group.key.api_group and outcome.added(group.pending))


def _nodes(outcome: Outcome, bound: Iterable[Key], pending: Iterable[Key]) -> list[str]:
    """Nodes of the placed pods of a scope."""
    before = (outcome.instance.pods[key].node for key in bound)
    return [
        *(node for node in before if node is not None),
        *(outcome.new[key] for key in pending if key in outcome.new),
    ]


def _tiers(outcome: Outcome, scopes: Iterable[list[str]]) -> dict[int, float]:
    tree = outcome.instance.topology
    if not tree.hyper_nodes:
        return {}
    found = Counter(tree.tier(tree.smallest_common(nodes)) for nodes in scopes)
    return {tier: count / found.total() for tier, count in sorted(found.items())}


def _priorities(outcome: Outcome) -> tuple[OfPriority, ...]:
    instance = outcome.instance
    groups: dict[int, list[Group]] = defaultdict(list)
    for group in instance.groups.values():
        if group.pending:
            groups[group.priority].append(group)
    admitted = Counter(group.priority for group in _admitted(outcome))
    return tuple(
        _of_priority(outcome, priority, groups[priority], admitted[priority]) for priority in instance.priorities
    )


def _of_priority(outcome: Outcome, priority: int, groups: list[Group], admitted: int) -> OfPriority:
    weights = outcome.instance.weights
    pending = [key for group in groups for key in group.pending]
    new = outcome.added(pending)
    return OfPriority(
        priority=priority,
        pods=len(new),
        pending_pods=len(pending),
        groups=admitted,
        pending_groups=len(groups),
        weight=sum(weights[key] for key in new),
        pending_weight=sum(weights[key] for key in pending),
    )
