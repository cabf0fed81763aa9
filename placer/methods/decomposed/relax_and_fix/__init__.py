"""Relax and fix: a full cluster is packed leaf by leaf while all pods that nothing ties are packed everywhere at once.

Belongs here: what has to lie in one leaf (``packing_problem``), what has been fixed and the room that is left
(``packing_state``), the integer program of a step (``leaf_program``), and the search (``search``). Does not: packing of
independent pods alone (``column_generation``), and what the tree costs (``master``).
"""

from __future__ import annotations

from placer.methods.decomposed.relax_and_fix.search import relaxed_and_fixed

__all__ = ["relaxed_and_fixed"]
