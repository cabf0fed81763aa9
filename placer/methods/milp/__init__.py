"""The MILP method: the rules a second time, as a mixed-integer linear program in PuLP, to keep the first one honest.

Belongs here: numbers that doubles can hold, and counts of every class on every node with what follows from them
(``variables``); pods that call each other and NUMA zones (``flows``, ``zones``); the rules (``constraints``,
``neighbour_variables``), the values (``objective``); the solvers that PuLP knows (``solvers``); the program and its
search (``search``). Does not: anything of ``exact``, whose bundles and places would carry a mistake over; judging a
placement (``verify``, ``score``).
"""
