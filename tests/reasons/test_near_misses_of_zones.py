"""Groups that kubelets keep out: whole messages, and the code against brute force without the rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from placer.problem.reading import read
from tests.examples import exhaustive
from tests.reasons.reasons_true import codes_told
from tests.reasons.test_explanation import found
from tests.tiny_numa import tiny_numa

FOLDER = Path(__file__).parent.parent.parent / "instances"


def test_no_zone_and_no_order_for_a_pod_alone() -> None:
    (reason,) = found(read(FOLDER / "numa" / "no-order.yaml")).values()
    assert reason.code == "NumaAlignment"
    said = "0/1 nodes with room for Pod default/torn admit it; Node n1 comes nearest: "
    assert f"(tried every way; pod by pod there is room): {said}" in reason.message


def test_the_room_in_zones_went_to_others() -> None:
    (reason,) = found(read(FOLDER / "tiny" / "c10_numa.yaml")).values()
    assert reason.code == "Outcompeted"
    assert "Pod default/a" in reason.message


@pytest.mark.parametrize("seeds", [120, *exhaustive(480)])
def test_reasons_are_true(seeds: int) -> None:
    """What C10 keeps out fits without it and what comes later, and not without what comes later alone."""
    without = ((("C8", "C9"), False), (("C8", "C9", "C10"), True))
    codes = codes_told(tiny_numa, range(seeds), {"NumaAlignment": without})
    assert codes["NumaAlignment"] >= seeds // 24, codes
    assert codes["NotDecided"] <= 0.05 * codes.total(), codes
