"""The hard rules, executable and free of any solver: what a placement breaks, all of it, as data.

One function per rule, under the name that every formulation uses for it. A rule looks at the outcome of a placement
and yields a :class:`~placer.placement.Violation` per breach. What bound pods break by themselves is no violation: a
rule speaks only where something new takes part. :data:`RULES` lists them in the order of models/README.md.

==============  ===================================================
module          rules
==============  ===================================================
``places``      C1 once, C2 capacity, C3 eligibility, C4 refusal
``groups``      C5 gang, C6 subgroup, C7 tier limit
``calls``       C8 network cost, C9 bandwidth
``numa``        C10 numa
``queues``      C11 queue
``neighbours``  C12 pod affinity, C13 pod anti-affinity, C14 spread
``units``       C7 by label, C15 exclusive
``words``       what they share
==============  ===================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from placer.instance import Instance
from placer.outcome import Outcome
from placer.placement import Placement, Violation
from placer.verify.calls import bandwidth, network_cost
from placer.verify.groups import gang, subgroup, tier_limit
from placer.verify.neighbours import pod_affinity, pod_anti_affinity, spread
from placer.verify.numa import numa
from placer.verify.places import capacity, eligibility, once, refusal
from placer.verify.queues import queue
from placer.verify.units import exclusive

__all__ = ["RULES", "Rule", "verify"]

#: A rule: yields every breach of it.
Rule = Callable[[Outcome], Iterator[Violation]]


def verify(instance: Instance, placement: Placement) -> list[Violation]:
    """Judge a placement, whatever its origin.

    Parameters
    ----------
    instance
        The problem; rules that its policy switches off are not looked at.
    placement
        May name pods and nodes that are not there; whatever cannot be carried out is a violation itself and does not
        count for the other rules.

    Returns
    -------
    list[Violation]
        Every violation, in the order of :data:`RULES`; empty where the placement is valid.
    """
    outcome = Outcome(instance, placement)
    on = (rule for name, rule in RULES if name not in instance.policy.rules_off)
    return [violation for rule in on for violation in rule(outcome)]


#: Every rule in the order of models/README.md.
RULES: tuple[tuple[str, Rule], ...] = (
    ("C1", once),
    ("C2", capacity),
    ("C3", eligibility),
    ("C4", refusal),
    ("C5", gang),
    ("C6", subgroup),
    ("C7", tier_limit),
    ("C8", network_cost),
    ("C9", bandwidth),
    ("C10", numa),
    ("C11", queue),
    ("C12", pod_affinity),
    ("C13", pod_anti_affinity),
    ("C14", spread),
    ("C15", exclusive),
)
