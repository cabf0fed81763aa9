"""The same question many times: families or instances × seeds × policies, a line of figures for each run.

Belongs here: what to run (``plan``), one run in a process of its own with its time and its memory (``run``), the file
of lines that a broken-off sweep goes on from (``store``), figures of many lines (``rows``, ``medians``, ``duels``).
Does not: printing and flags (``cli``); how a placement is found (``policies``, ``solve``).

A policy is a name of :data:`placer.laboratory.deciders.NAMES`: another scheduler's, or a method of
:func:`placer.solve`.
"""

from __future__ import annotations

from placer.laboratory.sweep.duels import Duel, duels
from placer.laboratory.sweep.line import Line
from placer.laboratory.sweep.medians import Median, median_of
from placer.laboratory.sweep.plan import Run, parse_seeds, plan
from placer.laboratory.sweep.rows import Row, rows
from placer.laboratory.sweep.run import sweep
from placer.laboratory.sweep.store import Store
from placer.laboratory.sweep.subject import Subject, parse_subject, planted_beside

__all__ = [
    "Duel",
    "Line",
    "Median",
    "Row",
    "Run",
    "Store",
    "Subject",
    "duels",
    "median_of",
    "parse_seeds",
    "parse_subject",
    "plan",
    "planted_beside",
    "rows",
    "sweep",
]
