"""What goes so that groups get room: every way finds the least there is, or does not claim it, by trying everything."""

from __future__ import annotations

from collections import Counter

import pytest

from placer.search.preempt.lifting import waiting
from tests.agreement import DISTURBED
from tests.disturbing import DISTURBING, UNPROVED
from tests.examples import seed_blocks
from tests.oracle_disruption import best_preempting, only_for
from tests.shrink import describe


@pytest.mark.parametrize("seeds", seed_blocks(640, 8))
@pytest.mark.parametrize("family", DISTURBED)
def test_the_least_is_found_or_not_claimed(family: str, seeds: range) -> None:
    """Domains are searched for the first group that waits alone; the whole model and all ways together for all."""
    found: Counter[str] = Counter()
    for seed in seeds:
        instance = DISTURBED[family](seed).instance
        groups = waiting(instance)
        if not groups:
            continue
        alone = only_for(instance, groups[0].key)
        together = instance, best_preempting(instance)
        asked = {"exact": together, "preempt": together, "decomposed": (alone, best_preempting(alone))}
        for name, (about, (best, placement)) in asked.items():
            wrong = DISTURBING[name](about, best)
            assert not wrong or wrong.startswith(UNPROVED), f"seed {seed}, {name}: {wrong}\n{describe(about)}"
            found[name] += not wrong
            found["disturbing"] += placement.disturbs
    assert found["preempt"] > len(seeds) // 2
    assert found["disturbing"] or family != "preempt"  # few of the others have room for a move
