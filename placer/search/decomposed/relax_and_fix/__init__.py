"""Relax and fix: a full cluster is packed leaf by leaf, and all pods that nothing ties are packed everywhere."""

from __future__ import annotations

from placer.search.decomposed.relax_and_fix.search import relaxed_and_fixed

__all__ = ["relaxed_and_fixed"]
