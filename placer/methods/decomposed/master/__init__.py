"""The master: O2 of a whole cluster by counting, a bound from its relaxation and a layout that often reaches it.

``measured`` has the demands on the tree in pieces of one resource, ``program`` the counts of equal groups per domain;
``dive`` names domains one by one, ``tree_master`` gives bounds, and the placement of a layout.
"""

from placer.methods.decomposed.master.tree_master import TreeMaster

__all__ = ["TreeMaster"]
