"""Codes of reasons against brute force: whether a group fits alone, and without which rules it would."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from placer.answers.reasons import reasons
from placer.arrays.dense_builder import make_dense
from placer.problem import GroupKey, Instance
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement
from placer.search.greedy.multi_start import greedy
from tests.oracle import best
from tests.reasons.test_explanation import one_more
from tests.solving import carried_out
from tests.tiny import Tiny

__all__ = ["codes_told"]

#: Rules that are off, and whether the group then fits alone.
Without = tuple[tuple[str, ...], bool]


def codes_told(
    make: Callable[[int], Tiny], seeds: Iterable[int], without: Mapping[str, tuple[Without, ...]]
) -> Counter[str]:
    """Count the codes told after the greedy, each checked: outcompeted groups fit alone, all others do not.

    Parameters
    ----------
    make
        The instance of a seed.
    seeds
        Which.
    without
        Code to what must hold where some rules are off.
    """
    codes: Counter[str] = Counter()
    for seed in seeds:
        instance = make(seed).instance
        dense = make_dense(instance)
        placement = dense.placement(solution := greedy(dense))
        outcome = Outcome(instance, placement)
        for key, reason in reasons(instance, dense, solution).items():
            codes[reason.code] += 1
            if instance.policy.levels[:1] != ("placed",) or reason.code == "NotDecided":
                continue
            if outcome.ready(instance.groups[key]):
                fits = one_more(instance, dense, key, placement)
                assert fits == (reason.code == "Outcompeted"), f"seed {seed}: {key}: {reason}"
                continue
            for off, fits in ((), reason.code == "Outcompeted"), *without.get(reason.code, ()):
                assert _alone(instance, key, off) == fits, f"seed {seed}, without {off}: {key}: {reason}"
    return codes


def _alone(instance: Instance, key: GroupKey, off: tuple[str, ...]) -> bool:
    """Whether brute force places a group alone where some rules are off."""
    policy = replace(instance.policy, rules_off=instance.policy.rules_off | set(off))
    return bool(best(carried_out(replace(instance, policy=policy), Placement(), key))[1].node_of)
