"""Measures of a placement of any scheduler: exact counts, and shares as floats."""

from __future__ import annotations

import bisect
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from placer.base.quantity import Resources
from placer.problem import Constraints, Group, GroupKey, Instance, Key, Node
from placer.problem.disruption import Disruption, outcome_of
from placer.problem.gpus import Placeable, gpus_in, gpus_placed, placeable
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement, Violation

__all__ = ["GroupFate", "Metrics", "Victims", "differing", "fates", "groups_gaining", "measure", "victims"]


#: A leaf HyperNode (True, its name), or a node in none, which is a leaf of its own (False, the node's name).
Leaf = tuple[bool, str]


def excess_spans(outcome: Outcome) -> list[int]:
    """Leaves that the new pods of each gang touch, less the fewest that could hold them if it were alone with running
    pods.

    The fewest is exact where the pods are alike, else a lower bound.
    """
    room = _Room(outcome.instance)
    found = []
    for group in outcome.instance.groups.values():
        new = outcome.added(group.pending)
        if group.key.api_group and new:
            leaves = {room.leaf(outcome.new[key]) for key in new}
            found.append(max(0, len(leaves) - room.fewest(new)))
    return found


class _Room:
    """For pods that are alike: the sum over the leaf's eligible nodes of how many fit; the leaves that take most come
    first, and the shortest prefix that takes all pods is the fewest. For pods that differ: the largest of these numbers
    over their kinds, and of the same count with each resource summed up.
    """

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._of_kind: dict[tuple[Constraints, Resources], list[int]] = {}
        self._of_resource: dict[str, list[int]] = {}

    @cached_property
    def _free(self) -> dict[str, Resources]:
        """Negative where more is held than there is."""
        held, nodes = self._instance.held, self._instance.nodes.items()
        return {name: node.allocatable - held[name] if name in held else node.allocatable for name, node in nodes}

    def leaf(self, node: str) -> Leaf:
        leaf = self._instance.topology.leaf.get(node)
        return (False, node) if leaf is None else (True, leaf)

    def fewest(self, pods: Sequence[Key]) -> int:
        kinds = Counter((self._instance.pods[key].constraints, self._instance.pods[key].requests) for key in pods)
        total: Counter[str] = Counter()
        for (_, requests), count in kinds.items():
            total.update({resource: count * amount for resource, amount in requests.items()})
        numbers = [_shortest(self._kind(*kind), count) for kind, count in kinds.items()]
        numbers += [_shortest(self._resource(name), amount) for name, amount in total.items() if amount]
        return max(1, *numbers)

    def _kind(self, constraints: Constraints, requests: Resources) -> list[int]:
        known = self._of_kind.get((constraints, requests))
        if known is None:
            amounts = ((name, self._fits(node, constraints, requests)) for name, node in self._instance.nodes.items())
            known = self._of_kind[constraints, requests] = self._prefixes(amounts)
        return known

    def _fits(self, node: Node, constraints: Constraints, requests: Resources) -> int:
        fits = requests.copies_in(self._free[node.name])
        return fits if fits and constraints.admits(node) else 0

    def _resource(self, resource: str) -> list[int]:
        known = self._of_resource.get(resource)
        if known is None:
            amounts = ((name, max(0, free[resource])) for name, free in self._free.items())
            known = self._of_resource[resource] = self._prefixes(amounts)
        return known

    def _prefixes(self, amounts: Iterable[tuple[str, int]]) -> list[int]:
        of_leaf: dict[Leaf, int] = defaultdict(int)
        for node, amount in amounts:
            of_leaf[self.leaf(node)] += amount
        return list(itertools.accumulate(sorted(of_leaf.values(), reverse=True)))


def _shortest(prefixes: Sequence[int], wanted: int) -> int:
    return min(len(prefixes), bisect.bisect_left(prefixes, wanted) + 1)


@dataclass(frozen=True, slots=True)
class OfPriority:
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
        GPUs held after the placement over all GPUs; None without GPUs.
    tiers, sub_group_tiers
        Tier to the share of gangs with a new pod whose placed pods have their smallest common HyperNode there.
    excess_span, worst_excess_span
        Leaves of the new pods of a gang, less the fewest that could hold them: sum and maximum.
    placeable
        For 1, 2, 4 and 8 GPUs; empty without GPUs.
    """

    gpu_allocation_ratio: float | None
    tiers: Mapping[int, float]
    sub_group_tiers: Mapping[int, float]
    excess_span: int
    worst_excess_span: int
    placeable: tuple[Placeable, ...]
    priorities: tuple[OfPriority, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON, names in camel case."""
        plain = camel_case(self)
        return plain | {
            "tiers": {str(tier): share for tier, share in self.tiers.items()},
            "subGroupTiers": {str(tier): share for tier, share in self.sub_group_tiers.items()},
            "placeable": {str(each.pop("size")): each for each in plain["placeable"]},
            "priorities": list(plain["priorities"]),
        }


def camel_case(record: Any) -> dict[str, Any]:
    return asdict(record, dict_factory=lambda pairs: {_camel(name): value for name, value in pairs})


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.title, rest))


def measure(instance: Instance, placement: Placement) -> Metrics:
    """Measure a placement, valid or not; bindings that cannot be carried out do not count."""
    outcome = outcome_of(instance, placement)
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


def _allocation_ratio(outcome: Outcome) -> float | None:
    instance = outcome.instance
    total = sum(gpus_in(node.allocatable) for node in instance.nodes.values())
    held = sum(gpus_in(held) for name, held in instance.held.items() if name in instance.nodes)
    return (held + gpus_placed(outcome)) / total if total else None


def _gangs(outcome: Outcome) -> Iterable[Group]:
    groups = outcome.instance.groups.values()
    return (group for group in groups if group.key.api_group and outcome.added(group.pending))


def _nodes(outcome: Outcome, bound: Iterable[Key], pending: Iterable[Key]) -> list[str]:
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
    instance = outcome.before
    groups: dict[int, list[Group]] = defaultdict(list)
    for group in instance.groups.values():
        if group.pending:
            groups[group.priority].append(group)
    admitted = Counter(group.priority for group in outcome.made_ready)
    return tuple(
        _of_priority(outcome, priority, groups[priority], admitted[priority]) for priority in instance.priorities
    )


def _of_priority(outcome: Outcome, priority: int, groups: list[Group], admitted: int) -> OfPriority:
    weights = outcome.before.weights
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


@dataclass(frozen=True, slots=True)
class GroupFate:
    """A group with pending pods after a placement; a pod in no group is a group of its own name.

    Parameters
    ----------
    admitted
        Ready after the placement (C5), some of its pods placed.
    placed
        Its pods with a node, bound ones included.
    tier, hyper_node
        Of the smallest common HyperNode of these, if the group asks for a topology; None: the virtual root.
    """

    group: GroupKey
    admitted: bool
    placed: int
    tier: int | None = None
    hyper_node: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data with the names of the contract."""
        return self.group.as_dict() | {key: value for key, value in camel_case(self).items() if key != "group"}


def fates(instance: Instance, placement: Placement) -> tuple[GroupFate, ...]:
    """Fates of all groups with pending pods, in the order of the groups."""
    outcome = outcome_of(instance, placement)
    found = []
    for group in instance.groups.values():
        if group.pending:
            after = outcome.instance.groups[group.key]
            placed = (*after.bound, *outcome.added(after.pending))
            tier, hyper_node = outcome.common(group.topology, placed)
            found.append(GroupFate(group.key, outcome.admitted(after), len(placed), tier, hyper_node))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Victims:
    """Evicted pods, and the units they are of (D1).

    Parameters
    ----------
    for_nothing
        Pods on nodes that no gaining group (:func:`groups_gaining`) and no moved pod gets.
    """

    pods: int
    units: int
    for_nothing: int

    def as_dict(self) -> dict[str, Any]:
        """Plain data with the names of models/interface.md."""
        return camel_case(self)


def victims(instance: Instance, placement: Placement, violations: Iterable[Violation]) -> Victims | None:
    """Count evictions; None where the placement disturbs nothing."""
    if not placement.disturbs:
        return None
    disruption = Disruption(instance, placement)
    gaining = groups_gaining(disruption.outcome, violations)
    gained = {disruption.outcome.new[key] for group in gaining for key in disruption.outcome.added(group.pending)}
    gained |= {move.node for move in placement.moves}  # by which something else makes room
    nodes = [instance.pods[key].node for key in disruption.evicted]
    return Victims(len(nodes), len(disruption.units), sum(node not in gained for node in nodes))


def groups_gaining(outcome: Outcome, violations: Iterable[Violation]) -> list[Group]:
    """Groups that become ready and keep their tier limits (C7), in the order of the groups."""
    broken = [each.subjects[0] for each in violations if each.rule == "C7"]
    return [group for group in outcome.made_ready if not any(_is_of(subject, group.key) for subject in broken)]


def _is_of(subject: str, key: GroupKey) -> bool:
    return subject == str(key) or subject.startswith(f"SubGroup {key.namespace}/{key.name}/")


def differing(several: Iterable[Iterable[GroupFate]]) -> list[GroupKey]:
    """Groups that are ready under one placement and not under another, or have more pods there."""
    known: dict[GroupKey, set[tuple[bool, int]]] = {}
    for row in several:
        for fate in row:
            known.setdefault(fate.group, set()).add((fate.admitted, fate.placed))
    return [group for group, ends in known.items() if len(ends) > 1]
