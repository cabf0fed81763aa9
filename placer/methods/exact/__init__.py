"""The exact method: one CP-SAT model of counts, solved value after value, with proofs.

Belongs here: what is counted together (``aggregation``), the model (``variables`` with the way between their values
and solutions, ``calls``, ``zones``, ``constraints``, ``objective``, ``model``), the search (``search``). Does not:
judging a placement (``verify``, ``score``), bounds without search (``placer.bounds``).
"""

from placer.methods.exact.search import search

__all__ = ["search"]
