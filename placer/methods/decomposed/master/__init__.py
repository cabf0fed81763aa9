"""The master: O2 of a whole cluster by counting, a bound from its relaxation and a layout that often reaches it.

Belongs here: what the tree asks of groups, in pieces of one resource (``measured``); the program over counts of equal
groups per domain (``program``); naming domains one by one (``dive``); bounds, and the placement that a layout means
(``tree_master``). Does not: values that are no matter of the tree, deciding what is placed at all.
"""

from placer.methods.decomposed.master.tree_master import TreeMaster

__all__ = ["TreeMaster"]
