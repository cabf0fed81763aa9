"""Why a group stays pending: counted where that is enough, else found by placing the group alone.

Belongs here: one reason per group, in the order of the catalogue (``placer.base.codes``), with numbers that can be
checked by hand. Does not: remedies (``placer.base.codes``), any proof by a solver.
"""

from placer.answers.reasons.explanation import LATE, in_short, late, reasons, reasons_beside

__all__ = ["LATE", "in_short", "late", "reasons", "reasons_beside"]
