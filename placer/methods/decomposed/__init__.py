"""The method for real clusters: a few leaves at a time, many times, and the whole model where it is small enough.

Belongs here: the incumbent (``incumbent_state``), which nodes to free (``choose``), the part of the instance that they
are (``part``), deciding it (``step``), many such steps at once (``neighbourhoods``), the order in which values are
decided (``search``). Does not: the model itself (``placer.methods.exact``), bounds without search (``placer.bounds``).
"""

from placer.methods.decomposed.search import search

__all__ = ["search"]
