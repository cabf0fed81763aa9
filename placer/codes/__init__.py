"""Every code that placer says, with what it means: reasons, findings, and what is written into a cluster.

Belongs here: the codes as types, so that mypy checks each use, and the words that explain them. Does not: when a code
is said. ``models/codes.md`` is made from this (``python models/codes.py``).
"""

from placer.codes.code import Code
from placer.codes.events import CONDITIONS, EVENTS, ConditionReason, EventReason
from placer.codes.findings import FINDINGS, FindingCode
from placer.codes.reasons import REASONS, ReasonCode

__all__ = [
    "CONDITIONS",
    "EVENTS",
    "FINDINGS",
    "REASONS",
    "Code",
    "ConditionReason",
    "EventReason",
    "FindingCode",
    "ReasonCode",
]
