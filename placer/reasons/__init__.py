"""Why a group stays pending: counted where that is enough, else found by placing the group alone.

Belongs here: one reason per group, in the order of the catalogue (``placer.codes``), with numbers that can be checked
by hand. Does not: remedies (``placer.codes``), any proof by a solver.
"""

from placer.reasons.explanation import LATE, reasons

__all__ = ["LATE", "reasons"]
