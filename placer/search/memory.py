"""What memory a container may take and has left: above its limit the kernel kills all of it.

Source: Linux ``cgroup-v2`` (``memory.max``, ``memory.current``, ``memory.stat``) and ``cgroup-v1/memory``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
#: Limit, use, and statistics with the name of what the kernel gives back first, of versions 2 and 1.
_FILES = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_inactive_file"),
)
#: A limit of version 1 from which on there is none: the largest multiple of a page.
_NONE = 2**62


def memory_left(root: Path = _ROOT) -> int | None:
    """Bytes that the container may still take; None: unlimited or unknown."""
    for limit_file, use_file, statistics, cache in _FILES:
        try:
            limit, use = (int((root / each).read_text()) for each in (limit_file, use_file))
            lines = (root / statistics).read_text().splitlines()
        except (OSError, ValueError):  # not this version; "max"
            continue
        if limit >= _NONE:
            return None
        counts = dict(line.split(maxsplit=1) for line in lines if " " in line)
        return max(0, limit - use + int(counts.get(cache, 0)))
    return None


def memory_limit(root: Path = _ROOT) -> int:
    """Bytes for this process: its container's limit, at most the machine's."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_limits(root)])


def _limits(root: Path) -> Iterator[int]:
    for limit_file, *_ in _FILES:
        with suppress(OSError, ValueError):  # a group without a limit says "max"
            yield int((root / limit_file).read_text(encoding="ascii"))


def limit_memory(most: int) -> None:
    """Let this process and its children take so many bytes for data; more fails as an allocation."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, hard))
