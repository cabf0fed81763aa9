"""Relax and fix: a full cluster is packed leaf by leaf, and all pods that nothing ties are packed everywhere at once.

``packing_problem`` has the items that one leaf must hold, ``packing_state`` the fixed ones and the room that is left,
``leaf_program`` the integer program of a step, ``search`` the search.
"""

from __future__ import annotations

from placer.methods.decomposed.relax_and_fix.search import relaxed_and_fixed

__all__ = ["relaxed_and_fixed"]
