"""How much memory a pass takes, and how much there is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["MIB", "memory_limit", "memory_needed"]

MIB = 2**20
#: What programs and solvers take before the first object is read, and what each node and pod adds: its text, what is
#: made of it, and its share of arrays in both processes. No measured pass took more (the table in ``deploy/README.md``,
#: and that of 100,000 nodes in ``models/decomposed.md``).
_BASE, _EACH = 300 * MIB, 8 * 2**10
#: Where a container's limit is written: cgroup v2, and v1.
_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")


def memory_needed(nodes: int, pods: int) -> int:
    """Bytes that a pass takes at most, solvers included.

    Examples
    --------
    >>> memory_needed(1_000, 11_000) // MIB
    393
    """
    return _BASE + (nodes + pods) * _EACH


def memory_limit(root: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that there are for this process: its container's limit, and never more than the machine has."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_written(root)])


def _written(root: Path) -> Iterator[int]:
    for name in _LIMITS:
        with suppress(OSError, ValueError):  # a group without a limit says "max"
            yield int((root / name).read_text(encoding="ascii"))
