"""The ranges of seconds, work, threads and seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence


def limit_faults(
    time_limit: float | None, workers: int | None = None, seeds: Sequence[int] = (), work_limit: float | None = None
) -> list[str]:
    """What is out of its range: what was found and what is expected.

    Examples
    --------
    >>> limit_faults(-1.0, workers=0)
    ['time limit: found -1.0, expected seconds, at least 0', 'workers: found 0, expected at least 1']
    """
    ranges = (
        ("time limit", time_limit, "seconds, at least 0", time_limit is None or 0 <= time_limit < math.inf),
        ("work limit", work_limit, "a number above 0", work_limit is None or 0 < work_limit < math.inf),
        ("workers", workers, "at least 1", workers is None or workers >= 1),
        *(("seed", seed, "0 to 2147483647", 0 <= seed < 2**31) for seed in seeds),
    )
    return [f"{name}: found {found}, expected {expected}" for name, found, expected, fine in ranges if not fine]
