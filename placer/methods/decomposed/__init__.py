"""The method for real clusters: large neighbourhood search, and the whole model where it is small enough.

Belongs here: the incumbent's state (``incumbent_state``), which nodes to free (``destroy``), the subproblem that they
are (``subproblem``), deciding it (``repair``), many of them at once (``large_neighbourhood``), gangs placed pod by pod
(``gang_relaxation``); independent pods on all nodes at once (``column_generation`` over ``node_fillings``); AppGroups
by zone (``area_assignment`` by ``area_program``); O2 of the whole cluster by counting (``master``), the values of it a
few leaves at a time with pods pooled (``pooled_search``), or all at once (``pooled_branching``); the order in which
values are decided (``lexicographic``).
Does not: the model itself (``placer.methods.exact``), ejection chains (``placer.methods.numa``), bounds without search
(``placer.bounds``). ``models/decomposed.md`` explains all of it.
"""

from placer.methods.decomposed.lexicographic import search

__all__ = ["search"]
