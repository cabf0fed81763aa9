"""The MILP method: the rules a second time, as a mixed-integer linear program in PuLP, to keep the first one honest.

``variables`` counts every class on every node in numbers that doubles can hold, ``flows`` and ``zones`` have pods that
call each other and NUMA zones, ``constraints`` and ``neighbour_variables`` the rules, ``objective`` the values,
``solvers`` the solvers of PuLP, ``search`` the program and its search. Nothing comes from ``exact``, whose bundles and
places would carry a mistake over.
"""
