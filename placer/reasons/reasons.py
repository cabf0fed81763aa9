"""One reason per group that has pods left."""

from __future__ import annotations

from placer.dense import Dense, Solution
from placer.instance import GroupKey, Instance
from placer.reasons.beside import Beside
from placer.reasons.causes import Causes
from placer.result import Reason

__all__ = ["reasons"]


def reasons(instance: Instance, dense: Dense, solution: Solution, *, decided: bool = True) -> dict[GroupKey, Reason]:
    """Say why pods stay pending.

    Parameters
    ----------
    instance
        The problem.
    dense
        Its arrays.
    solution
        What is placed; keeps all rules.
    decided
        False: there is no time to try groups alone, and what counting cannot exclude is ``NotDecided``.

    Returns
    -------
    dict
        One entry per group with a pending pod that ``solution`` does not place. The code is the first of the
        catalogue's order that keeps the group out when it is alone with the pods that run now. Where it is ready,
        every pod left is optional: then the first that keeps each of them out beside those placed of the group, one
        more at a time. What fits so is kept out beside what ``solution`` binds: asked there once more.
    """
    causes = Causes(instance, dense, solution, decided)
    beside = Beside(causes, solution)
    found = {key: causes.of(key) for key in causes.left}
    return {key: beside.reason(key) if cause is None else cause.reason for key, cause in found.items()}
