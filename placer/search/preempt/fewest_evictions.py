"""What has to be evicted at least where several groups are all admitted, by counting on each resource.

What waits needs so much of a resource, and so much is free on all nodes together; moving what runs does not change
that, so the rest has to be evicted. The cheapest share of it, by weight, is a bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from placer.base.grouping import grouped
from placer.base.quantity import Resources
from placer.problem import Group, GroupKey, Instance, Key
from placer.problem.placement import LOSSES, Score, Value
from placer.search.preempt.knapsack import cheapest_share
from placer.search.preempt.lifting import least_priorities, may_be_disturbed


def never_admitted(instance: Instance, groups: Sequence[Group]) -> frozenset[GroupKey]:
    """Find groups that lack a resource even alone, and with everything evicted that may go for any group."""
    needs = {group.key: least_needed(instance, group) for group in groups}
    room = Counter(_free(instance, set[str]().union(*needs.values())))
    highest = max((group.priority for group in groups), default=0)
    for _, keys in () if instance.moves_only else _below(instance, highest):
        for key in keys:
            room.update(instance.pods[key].requests)
    return frozenset(key for key, need in needs.items() if any(amount > room[name] for name, amount in need.items()))


def least_evicted(instance: Instance, groups: Sequence[Group]) -> Score | None:
    """Say what goes at least for all groups that wait; None where nothing may be evicted, or not enough.

    ``evicted`` and ``evictedUnits`` of each priority that may lose something, highest first, as far as they are 0, and
    ``evicted`` of the first that has to lose something.
    """
    if instance.moves_only or not groups:
        return None
    below = _below(instance, max(group.priority for group in groups))
    short, values = _short(instance, groups), list[Value]()
    while below:
        priority, keys = below.pop(0)
        rest = _less(short, [instance.pods[key].requests for _, lower in below for key in lower])
        least = _least(instance, keys, rest)
        if least is None:
            return None
        values.append(Value(LOSSES[0], least, priority))
        if least:
            break
        values.append(Value(LOSSES[1], 0, priority))
    return tuple(values)


def _below(instance: Instance, highest: int) -> list[tuple[int, list[Key]]]:
    found = grouped(may_be_disturbed(instance, highest), least_priorities(instance).__getitem__)
    return sorted(((priority, keys) for priority, keys in found.items() if priority < highest), reverse=True)


def _short(instance: Instance, groups: Iterable[Group]) -> dict[str, int]:
    needs: Counter[str] = Counter()
    for group in groups:
        needs.update(least_needed(instance, group))
    needs.subtract(_free(instance, needs))
    return {resource: amount for resource, amount in needs.items() if amount > 0}


def _free(instance: Instance, resources: Iterable[str]) -> dict[str, int]:
    held, free = instance.held, dict.fromkeys(resources, 0)
    for name, node in instance.nodes.items():
        taken = held.get(name, Resources())
        for resource in free:
            free[resource] += max(0, node.allocatable[resource] - taken[resource])
    return free


def least_needed(instance: Instance, group: Group) -> dict[str, int]:
    """The least of each resource with which a group is ready."""
    pods = [instance.pods[key].requests for key in group.pending]
    resources = {resource for requests in pods for resource in requests}
    return {resource: sum(sorted(each[resource] for each in pods)[: group.need]) for resource in resources}


def _less(short: Mapping[str, int], pods: Sequence[Resources]) -> dict[str, int]:
    left = {resource: amount - sum(each[resource] for each in pods) for resource, amount in short.items()}
    return {resource: amount for resource, amount in left.items() if amount > 0}


def _least(instance: Instance, keys: Sequence[Key], short: dict[str, int]) -> int | None:
    weights = instance.weights_of(instance.pods[key] for key in keys)
    most = Fraction(0)
    for resource, amount in short.items():
        pods = Counter((weights[key], instance.pods[key].requests[resource]) for key in keys)
        total, left = cheapest_share(pods, amount)
        if left > 0:
            return None
        most = max(most, total)
    return -(-most.numerator // most.denominator)
