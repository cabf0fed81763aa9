"""Rules about gangs: C5 gang, C6 subgroup, C7 tier limit."""

from __future__ import annotations

from collections.abc import Iterator

from placer.outcome import Outcome, sub_group_subject
from placer.placement import Violation
from placer.verify.neighbour_rules import one_domain
from placer.verify.words import bound_and_new, count_of


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
