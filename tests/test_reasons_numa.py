"""Groups that kubelets keep out: whole messages, and the code against brute force without the rule."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from placer.dense import make_dense
from placer.instance import GroupKey, Instance
from placer.methods.greedy import greedy
from placer.outcome import Outcome
from placer.placement import Placement
from placer.read import read
from placer.reasons import reasons
from tests.oracle import best
from tests.test_greedy import carried_out
from tests.test_reasons import found, one_more
from tests.tiny_numa import tiny_numa

FOLDER = Path(__file__).parent.parent / "instances"


def test_no_zone_and_no_order_for_a_pod_alone() -> None:
    (reason,) = found(read(FOLDER / "numa" / "no-order.yaml")).values()
    assert reason.code == "NumaAlignment"
    said = "0/1 nodes with room for Pod default/torn admit it; on Node n1 "
    assert f"(tried every way to place its pods; pod by pod there is room): {said}" in reason.message


def test_the_room_in_zones_went_to_others() -> None:
    (reason,) = found(read(FOLDER / "tiny" / "c10_numa.yaml")).values()
    assert reason.code == "Outcompeted"
    assert "Pod default/a" in reason.message


def alone(instance: Instance, key: GroupKey, *off: str) -> bool:
    """Whether brute force places a group alone where some rules are off."""
    policy = replace(instance.policy, rules_off=instance.policy.rules_off | set(off))
    return bool(best(carried_out(replace(instance, policy=policy), Placement(), key))[1].node_of)


def test_reasons_are_true() -> None:
    """By brute force: outcompeted groups fit alone; what C10 keeps out fits without it and what comes later."""
    codes: Counter[str] = Counter()
    for seed in range(480):
        instance = tiny_numa(seed).instance
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
            assert alone(instance, key) == (reason.code == "Outcompeted"), f"seed {seed}: {key}: {reason}"
            if reason.code == "NumaAlignment":
                assert not alone(instance, key, "C8", "C9"), f"seed {seed}: {key}: {reason}"
                assert alone(instance, key, "C8", "C9", "C10"), f"seed {seed}: {key}: {reason}"
    assert codes["NumaAlignment"] >= 20, codes
    assert codes["NotDecided"] <= 0.05 * codes.total(), codes
