"""The greedy: several orders, each a run over all groups, the best answer kept and completed.

Belongs here, lower modules first: the partial solution and what never changes (``state``); ``best_fit`` of equal pods,
pods that call each other (``communicating``) and moves of these (``local_search``); gangs and AppGroups
(``gang_admission``), domains of their units (``unit_homes``), pods that move aside for others (``make_way``), and what
trying everything adds (``backtrack``); orders, runs and repairs (``multi_start``). Does not: proofs, solvers.
"""
