"""Waiting for what another process, or a server, does."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["wait_until"]

#: Seconds; for ever, as far as tests go, on the busiest of machines.
_PATIENCE = 600.0


def wait_until(condition: Callable[[], bool], what: str = "it") -> None:
    """Wait until a condition holds.

    Raises
    ------
    TimeoutError
        Ten minutes have passed; ``what`` did not happen.
    """
    end = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited for ten minutes, and {what} did not happen")
        time.sleep(0.02)
