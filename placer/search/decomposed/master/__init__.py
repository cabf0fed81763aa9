"""The master: O2 of a whole cluster by counting, a bound from its relaxation and a layout that often reaches it."""

from placer.search.decomposed.master.tree_master import TreeMaster

__all__ = ["TreeMaster"]
