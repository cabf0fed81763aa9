"""The method for real clusters: large neighbourhood search, and the whole model where it is small enough.

Belongs here: the incumbent's state (``incumbent_state``), which nodes to free (``destroy``), the subproblem that they
are (``subproblem``), deciding it (``repair``), many of them at once (``large_neighbourhood``), the order in which
values are decided (``lexicographic``). Does not: the model itself (``placer.methods.exact``), bounds without search
(``placer.bounds``).
"""

from placer.methods.decomposed.lexicographic import search

__all__ = ["search"]
