"""How much memory a pass takes."""

from __future__ import annotations

__all__ = ["MIB", "memory_needed"]

MIB = 2**20
#: What programs and solvers take before the first object is read, and what each node and pod adds: its text, what is
#: made of it, and its share of arrays in both processes. No measured pass took more (the table in ``deploy/README.md``,
#: and that of 100,000 nodes in ``models/measured.md``).
_BASE, _EACH = 300 * MIB, 8 * 2**10


def memory_needed(nodes: int, pods: int) -> int:
    """Bytes that a pass takes at most, solvers included."""
    return _BASE + (nodes + pods) * _EACH
