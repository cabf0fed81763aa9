"""The method for real clusters: large neighbourhood search, and the whole model where it is small enough.

* the incumbent (``incumbent_state``), and the order in which values are decided (``lexicographic``);
* neighbourhoods (``large_neighbourhood``): nodes to free (``destroy``), the ``subproblem`` there, and its ``repair``;
* gangs pod by pod (``gang_relaxation``), or leaf by leaf (``relax_and_fix``);
* independent pods on all nodes at once (``column_generation`` over ``node_fillings``);
* AppGroups by zone (``area_assignment`` by ``area_program``);
* O2 by counting (``master``), and with pooled pods (``pooled_search``, ``pooled_branching``).

``models/decomposed.md`` explains all of it.
"""

from placer.methods.decomposed.lexicographic import search

__all__ = ["search"]
