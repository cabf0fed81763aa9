"""Every rule about new pods, in the order of models/README.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from placer.problem.outcome import Outcome
from placer.problem.placement import Violation
from placer.rules.calls import bandwidth, network_cost
from placer.rules.groups import gang, queue, subgroup, tier_limit
from placer.rules.neighbour_rules import exclusive, pod_affinity, pod_anti_affinity, spread
from placer.rules.places import capacity, eligibility, numa, once, refusal

Rule = Callable[[Outcome], Iterator[Violation]]

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


def broken(outcome: Outcome) -> list[Violation]:
    """Every breach of the rules that the instance's policy does not switch off, in their order."""
    on = (rule for name, rule in RULES if name not in outcome.instance.policy.rules_off)
    return [violation for rule in on for violation in rule(outcome)]
