"""The exact method: one CP-SAT model of counts, solved value after value, with proofs.

Belongs here: what is interchangeable and so counted (``places``, ``bundles``), the model (``variables``,
``constraints``, ``objective``, ``model``), the way between its values and solutions (``solutions``), the search
(``search``). Does not: judging a placement (``verify``, ``score``), bounds without search (``placer.bounds``).
"""

from placer.methods.exact.search import search

__all__ = ["search"]
