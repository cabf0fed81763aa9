"""What to run: subjects × seeds × policies, every fault told before anything runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import placer
from placer.errors import UsageError
from placer.solve import METHODS
from placer.sweep.line import KEY, Key, Line
from placer.sweep.subject import Subject, parse_subject

__all__ = ["POLICIES", "Run", "parse_seeds", "plan"]

#: What can decide, by name.
POLICIES = METHODS

MOST_SEEDS = 100_000  #: ``1-5`` is meant, ``1-5000000000`` is not


@dataclass(frozen=True, slots=True)
class Run:
    """One run to do.

    Parameters
    ----------
    subject
        What is decided upon.
    seed
        Of the family's chance; of the solver's where the instance is in files.
    policy
        One of :data:`POLICIES`.
    limit
        Seconds of the whole call.
    workers
        Solver threads.
    """

    subject: Subject
    seed: int
    policy: str
    limit: float
    workers: int

    @property
    def key(self) -> Key:
        """What tells it apart; its line has the same."""
        return self.subject.word, self.seed, self.policy, self.limit, self.workers, placer.__version__

    def line(self, **found: Any) -> Line:
        """Make its line."""
        return Line.model_validate({**dict(zip(KEY, self.key, strict=True)), **found})


def plan(
    words: Sequence[str],
    *,
    seeds: Sequence[int] = (1, 2, 3, 4, 5),
    policies: Sequence[str] = ("greedy", "auto"),
    time_limit: float = 60.0,
    workers: int = 1,
) -> list[Run]:
    """List the runs of a sweep, all of one instance together.

    Parameters
    ----------
    words
        Families with their options, and paths (:func:`parse_subject`); one given twice counts once.
    seeds
        Each makes an instance of a family, and is the solver's seed on an instance in files: 0 .. 2^31 - 1.
    policies
        Names of :data:`POLICIES`.
    time_limit
        Seconds of each whole call, at least 0.
    workers
        Solver threads, at least 1.

    Raises
    ------
    UsageError
        With every fault of every word.
    """
    faults = [
        f"{name}: found {found}, expected {expected}"
        for name, found, expected, fine in (
            ("time limit", time_limit, "seconds, at least 0", 0 <= time_limit < math.inf),
            ("workers", workers, "at least 1", workers >= 1),
            ("instances", "none", "at least one", bool(words)),
            ("seeds", "none", "at least one", bool(seeds)),
            ("policies", "none", "at least one", bool(policies)),
            *(("seed", seed, "0 to 2147483647", 0 <= seed < 2**31) for seed in seeds),
            *(("policy", repr(name), f"one of {', '.join(POLICIES)}", name in POLICIES) for name in policies),
        )
        if not fine
    ]
    subjects: list[Subject] = []
    for word in dict.fromkeys(words):
        try:
            subjects.append(parse_subject(word))
        except UsageError as error:
            faults.append(str(error))
    if faults:
        raise UsageError("; ".join(faults))
    return [
        Run(subject, seed, policy, time_limit, workers)
        for subject in subjects
        for seed in dict.fromkeys(seeds)
        for policy in dict.fromkeys(policies)
    ]


def parse_seeds(text: str) -> list[int]:
    """Read seeds: numbers and ranges with commas, such as ``1-5,8``.

    Raises
    ------
    UsageError
        Anything else, or more than 100,000 of them.

    Examples
    --------
    >>> parse_seeds("1-3,8")
    [1, 2, 3, 8]
    """
    seeds: list[int] = []
    for part in text.split(","):
        low, dash, high = part.partition("-")
        last = high if dash else low
        if not (low.isdecimal() and last.isdecimal() and int(low) <= int(last)):
            raise UsageError(f"seeds: found {part!r}, expected numbers and ranges such as 1-5,8")
        if len(seeds) + int(last) - int(low) >= MOST_SEEDS:
            raise UsageError(f"seeds: found more than {MOST_SEEDS:,}, expected at most so many")
        seeds += range(int(low), int(last) + 1)
    return seeds
