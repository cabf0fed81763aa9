"""The greedy: several orders, each a run over all groups, the best answer kept and completed.

Lower modules first: the partial solution (``state``); ``best_fit`` of equal pods, pods that call each other
(``communicating``), moves of these (``local_search``); gangs and AppGroups (``gang_admission``), domains of their units
(``unit_homes``), pods that move aside (``making_way``), trying everything (``backtrack``); orders, runs and repairs
(``multi_start``).
"""
