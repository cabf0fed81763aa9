"""NUMA zones in the methods (C10): moves that only zones need.

Belongs here: ejection chains that make room in a zone (``ejection_chains``, over ``zone_bins``), swaps that let pods be
bound by creation time (``creation_order``), and the order in which the pods of a node are bound in the end
(``binding_order``). Does not: the zones of a partial solution (``partial.zone_rooms``); what a kubelet does, which is
``instance.numa`` in plain words and ``dense`` in packed ones; the zones in the models of ``exact`` and ``milp``.
``models/numa.md`` explains all of it.
"""
