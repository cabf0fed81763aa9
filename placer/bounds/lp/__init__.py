"""Bounds by linear programming over shapes of pods and classes of nodes."""

from placer.bounds.lp.search import lp_bounds

__all__ = ["lp_bounds"]
