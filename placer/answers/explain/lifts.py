"""The cluster with one group that waits, and with rules lifted for its own new pods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from placer.answers.reasons.relaxations import LADDER
from placer.arrays import Dense
from placer.problem import Group, GroupKey, Instance, what_if

#: Code of a cause to the rules that are set aside when it is lifted.
RULES_OF: Mapping[str, tuple[str, ...]] = {
    "InvalidGroup": ("C5",),
    "GangIncomplete": ("C5", "C6"),
    "Unsupported": ("C4",),
    "NoEligibleNode": ("C3",),
    "QueueClosed": ("C11",),
    "QueueCapability": ("C11",),
    "InsufficientResources": ("C2",),
    "TopologyTooNarrow": ("C7",),
    "PodAffinity": ("C12",),
    "PodAntiAffinity": ("C13",),
    "TopologySpread": ("C14",),
    "Exclusive": ("C15",),
    "NumaAlignment": ("C10",),
    "NetworkCost": ("C8",),
    "Bandwidth": ("C9",),
}

Lift = Callable[[Instance, Group], Instance]


def rules_of(code: str, group: Group) -> tuple[str, ...]:
    """Rules behind a cause of a group; C6 only where the group has subgroups."""
    return tuple(rule for rule in RULES_OF[code] if rule != "C6" or group.policies)


def _without(rule: str) -> Lift:
    return lambda instance, _: what_if.without_rule(instance, rule)


def _queues(**changes: Any) -> Lift:
    return lambda instance, group: what_if.with_queues(instance, group, lambda queue: replace(queue, **changes))


#: Cause to how it is lifted by name. One that is not here is lifted in the arrays, as ``placer.answers.reasons`` does
#: it.
LIFTED: Mapping[str, Lift] = {
    "InvalidGroup": lambda instance, group: what_if.valid(instance, group) if group.invalid is not None else instance,
    "GangIncomplete": what_if.with_existing_minimum,
    "Unsupported": what_if.supported,
    "NoEligibleNode": what_if.eligible,
    "QueueClosed": _queues(open=True, namespaces=None),
    "QueueCapability": _queues(capability={}),
    "InsufficientResources": what_if.roomy,
    "TopologyTooNarrow": what_if.anywhere,
    "Exclusive": _without("C15"),
    "NumaAlignment": _without("C10"),
    "NetworkCost": _without("C8"),
    "Bandwidth": _without("C9"),
}

#: Rules about domains of node labels are lifted by name for counting, and in the arrays for all else.
_BOTH = ("TopologyTooNarrow", "Exclusive")
_IN_ARRAYS = {code: without for code, _, without in LADDER if code not in LIFTED or code in _BOTH}


def lift_causes(instance: Instance, key: GroupKey, codes: frozenset[str]) -> Instance:
    """Lift some causes of the group that waits alone, as far as that is done by name, in any order."""
    for code, lifted in LIFTED.items():
        if code in codes:
            instance = lifted(instance, instance.groups[key])
    return instance


def lift_causes_in_arrays(dense: Dense, codes: frozenset[str]) -> Dense:
    """Lift the rest in the arrays of the instance that :func:`lift_causes` gives."""
    for code, without in _IN_ARRAYS.items():
        if code in codes:
            dense = without(dense) or dense
    return dense
