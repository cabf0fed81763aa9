"""The MILP method: the rules a second time, as a mixed-integer linear program in PuLP, to keep the first one honest.

Belongs here: counts of every class on every node and what follows from them (``variables``), the rules and the values
(``constraints``, ``objective``, ``model``), numbers that doubles can hold (``program``), the solvers that PuLP knows
(``solvers``), the search (``search``). Does not: anything of ``exact``, whose bundles and places would carry a mistake
over; judging a placement (``verify``, ``score``).
"""

from placer.methods.milp.search import search
from placer.methods.milp.solvers import complaint

__all__ = ["complaint", "search"]
