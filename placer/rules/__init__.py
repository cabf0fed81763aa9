"""The hard rules (models/README.md), executable and free of any solver: every breach of a placement, as data.

A rule speaks only where something new takes part, so bound pods break none by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping

from placer.problem import Instance
from placer.problem.disruption import Disruption, as_asked
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement, Violation
from placer.rules.disruption import DISRUPTION_RULES, DisruptionRule
from placer.rules.places import once
from placer.rules.rules import RULES, Rule, broken

__all__ = ["DISRUPTION_RULES", "RULES", "DisruptionRule", "Rule", "in_order", "rules_said", "verify"]


def in_order(broken: Mapping[str, int]) -> dict[str, int]:
    """Broken rules with their counts, in the order of the rules."""
    return {name: broken[name] for name, _ in (*RULES, *DISRUPTION_RULES) if broken.get(name)}


def rules_said(broken: Mapping[str, int]) -> str:
    """Broken rules with their counts, by number and name: ``C5 gang 34, C6 subgroup 7``; none: empty."""
    names = {name: rule.__name__.replace("_", " ") for name, rule in (*RULES, *DISRUPTION_RULES)}
    return ", ".join(f"{rule} {names[rule]} {count:,}" for rule, count in in_order(broken).items())


def verify(instance: Instance, placement: Placement) -> list[Violation]:
    """Judge a placement of any origin, in the order of :data:`RULES` and :data:`DISRUPTION_RULES`.

    A binding that cannot be carried out does not count for other rules. Where pods go, moved pods count as new ones.
    """
    instance = as_asked(instance, placement)
    if not (placement.disturbs or placement.steps or placement.freed):
        return broken(Outcome(instance, placement))
    disruption = Disruption(instance, placement)
    after = [violation for violation in broken(disruption.outcome) if violation.rule != "C1"]
    about = [violation for _, rule in DISRUPTION_RULES for violation in rule(disruption)]
    return [*once(Outcome(instance, placement)), *after, *about]
