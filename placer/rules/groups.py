"""Rules about gangs and queues: C5 gang, C6 subgroup, C7 tier limit, C11 queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from placer.problem import Pod, Queue
from placer.problem.outcome import Outcome, pods_by_queue, requested, sub_group_subject
from placer.problem.placement import Violation
from placer.rules.neighbour_rules import one_domain
from placer.rules.words import bound_and_new, count_of, excesses


def gang(outcome: Outcome) -> Iterator[Violation]:
    """C5: a group that is not ready after the placement gets none of its pending pods.

    The amount is the number of pods missing, or of pods added to a group that is not in order.
    """
    for group in outcome.instance.groups.values():
        new = outcome.added(group.pending)
        if not new:
            continue
        subject = str(group.key)
        if group.invalid is not None:
            message = f"{subject} gets {count_of(len(new), 'pod')} but must wait: {group.invalid}"
            yield Violation("C5", (subject,), len(new), message)
            continue
        for shortage in outcome.shortages(group):
            message = f"{subject} gets {count_of(len(new), 'pod')} but is not ready: {shortage.message}"
            yield Violation("C5", (subject,), shortage.missing, message)


def subgroup(outcome: Outcome) -> Iterator[Violation]:
    """C6: a subgroup ends with at least subGroupSize placed pods, or gets none of its pending ones.

    The amount is the number of pods missing.
    """
    for group in outcome.instance.groups.values():
        for part in group.sub_groups:
            new = len(outcome.added(part.pending))
            size = group.policies[part.policy].size
            placed = part.placed_before + new
            if new and placed < size:
                subject = sub_group_subject(group, part.name)
                message = f"{subject}: {placed} of subGroupSize {size} placed ({part.placed_before} before, {new} new)"
                yield Violation("C6", (str(group.key), subject), size - placed, message)


def tier_limit(outcome: Outcome) -> Iterator[Violation]:
    """C7: with mode hard and limit t, all placed pods of the scope lie under one HyperNode of tier ≤ t.

    The amount is the tier of the smallest common HyperNode minus t.
    """
    yield from one_domain(outcome)
    tree = outcome.instance.topology
    for scope in outcome.scopes():
        limit = scope.topology.limit
        if limit is None or not scope.new:
            continue
        common = tree.smallest_common((*scope.before, *scope.new))
        tier = tree.tier(common)
        if tier > limit:
            where = "the virtual root" if common is None else f"HyperNode {common}"
            message = (
                f"{scope.subject} asks for {scope.topology.asked}: the smallest common HyperNode of its "
                f"{bound_and_new(len(scope.before), len(scope.new))} is {where}, tier {tier}"
            )
            yield Violation("C7", (scope.subject,), tier - limit, message)


def queue(outcome: Outcome) -> Iterator[Violation]:
    """C11: per queue q and resource r of its capability, the sum of requests(p, r) over the pods in q or below is ≤
    capability(q, r); a closed queue takes no new pods, one with namespaces only theirs. The amount is the excess, or
    the number of new pods.
    """
    instance = outcome.instance
    new = pods_by_queue(instance, (instance.pods[key] for key in outcome.new))
    if not new:
        return
    before = pods_by_queue(instance, (pod for pod in instance.pods.values() if pod.state.on_node))
    for name, pods in sorted(new.items()):
        if not instance.queues[name].open:
            message = f"Queue {name} is closed and gets {count_of(len(pods), 'new pod')}"
            yield Violation("C11", (f"Queue {name}",), len(pods), message)
        yield from _of_others(instance.queues[name], pods)
        held, added = requested(before.get(name, ())), requested(pods)
        for resource, excess, sums in excesses(held, added, instance.queues[name].capability):
            yield Violation("C11", (f"Queue {name}",), excess, f"Queue {name}: {resource} {sums}")


def _of_others(queue_read: Queue, pods: Iterable[Pod]) -> Iterator[Violation]:
    takes = queue_read.namespaces
    others = Counter(pod.namespace for pod in pods if takes is not None and pod.namespace not in takes)
    for namespace, count in sorted(others.items()) if queue_read.open else ():
        whose = ", ".join(sorted(takes or ())) or "no namespace"
        gets = f"gets {count_of(count, 'new pod')} of {namespace}"
        message = f"Queue {queue_read.name} takes pods of {whose} only and {gets}"
        yield Violation("C11", (f"Queue {queue_read.name}",), count, message)
