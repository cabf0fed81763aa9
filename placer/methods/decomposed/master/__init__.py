"""The master: O2 of a whole cluster by counting, a bound from its relaxation and a layout that often reaches it.

Belongs here: what the tree asks of groups, in pieces of one resource (``kinds``); the program over counts of equal
groups per domain (``model``, ``flow``, ``program``); naming domains one by one (``dive``); the placement that a layout
means (``place``). Does not: values that are no matter of the tree, deciding what is placed at all.
"""

from placer.methods.decomposed.master.search import TreeMaster

__all__ = ["TreeMaster"]
