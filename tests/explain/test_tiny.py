"""Correction sets of drawn tiny instances against all sets there are, by brute force."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations

import pytest

from placer.answers.explain.decisions import LoneGroup, corrections
from placer.base.deadline import NEVER
from placer.problem import GroupKey, Instance
from tests.explain.test_hand_made import fits
from tests.tiny import Tiny, tiny, tiny_network
from tests.tiny_neighbours import tiny_neighbours


def smallest(instance: Instance, key: GroupKey, codes: tuple[str, ...]) -> Iterator[frozenset[str]]:
    """Every smallest set of causes that lets the group in, the least first."""
    found: list[frozenset[str]] = []
    for size in range(len(codes) + 1):
        for those in map(frozenset, combinations(codes, size)):
            if not any(one <= those for one in found) and fits(instance, key, those):
                found.append(those)
                yield those


#: Brute force takes longer over calls and NUMA zones, which the others of six have.
CHEAP = [seed for seed in range(36) if seed % 6 < 4]


@pytest.mark.parametrize(
    ("make", "seeds"),
    [
        (tiny, range(16)),
        (tiny_network, range(1, 4)),
        (tiny_neighbours, CHEAP[2:7]),
        pytest.param(tiny_network, (0, 4), marks=pytest.mark.exhaustive),
        pytest.param(tiny_neighbours, [*CHEAP[:2], *CHEAP[7:], 22, 55, 73], marks=pytest.mark.exhaustive),
    ],
)
def test_the_sets_told_are_smallest_ones(make: Callable[[int], Tiny], seeds: Iterable[int]) -> None:
    decided = 0
    for seed in seeds:
        instance = make(seed).instance
        for key, group in instance.groups.items():
            if not group.pending or group.need == 0:
                continue
            lone = LoneGroup(instance, key, NEVER)
            alone = lone.confirmed().fits
            assert alone is None or alone == fits(instance, key, ()), f"seed {seed}: {key}"
            if alone is not False:
                continue
            told = [frozenset(cause.code for cause in causes) for causes in corrections(lone) or ()]
            there = list(smallest(instance, key, lone.codes))
            assert told, f"seed {seed}: {key}: {there}"
            assert set(told) <= set(there), f"seed {seed}: {key}"
            assert len(told[0]) == len(there[0]), f"seed {seed}: {key}: {told[0]} and {there[0]}"
            decided += 1
    assert decided >= 2
