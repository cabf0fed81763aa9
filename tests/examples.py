"""How many cases the test command of the README tries, and how many ``.ci/exhaustive``: some of them, and all."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, settings

__all__ = ["every", "examples", "exhaustive", "register_profiles", "seed_blocks"]


def register_profiles() -> None:
    """Make the profiles ``quick``, which holds unless another is asked for, ``ci``, and ``explore``.

    None depends on speed. ``quick`` and ``ci`` draw the same examples in every run, so that a commit that passed
    passes again; ``explore`` draws others each time and keeps what failed.
    """
    for name, percent, same in (("quick", 20, True), ("ci", 100, True), ("explore", 100, False)):
        settings.register_profile(
            name,
            max_examples=percent,
            deadline=None,
            derandomize=same,
            suppress_health_check=[HealthCheck.too_slow],
        )
    settings.load_profile("quick")


def examples(number: int, *, derandomize: bool = False) -> settings:
    """Draw so many examples under the profiles ``ci`` and ``explore``, and a fifth of them under ``quick``.

    Parameters
    ----------
    number
        Examples under ``ci`` and ``explore``, where hypothesis itself would draw 100.
    derandomize
        Draw the same examples in every run, also under ``explore``.
    """
    profile = settings()
    most = number * profile.max_examples // 100
    return settings(max_examples=most, derandomize=derandomize or profile.derandomize)


def exhaustive(*values: object) -> list[object]:
    """Values for ``parametrize`` that the test command leaves out."""
    return [pytest.param(value, marks=pytest.mark.exhaustive) for value in values]


def every(step: int, values: Iterable[object], first: int = 0) -> list[object]:
    """Values for ``parametrize`` of which the test command tries every ``step``-th, beginning with the ``first``."""
    return [
        pytest.param(value, marks=[] if (at - first) % step == 0 else pytest.mark.exhaustive)
        for at, value in enumerate(values)
    ]


def seed_blocks(seeds: int, size: int, *, quick: int = 1) -> list[object]:
    """Blocks of seeds for ``parametrize``, all but the first few of them exhaustive.

    Parameters
    ----------
    seeds
        Seeds in all, from 0 on.
    size
        Seeds of a block.
    quick
        Blocks that the test command tries too.
    """
    return [
        pytest.param(
            range(first, first + size),
            id=f"{first}-{first + size - 1}",
            marks=[pytest.mark.exhaustive] if first >= quick * size else [],
        )
        for first in range(0, seeds, size)
    ]
