"""What to run: subjects × seeds × policies, every fault told before anything runs."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placer.errors import UsageError
from placer.laboratory.deciders import NAMES, Asked, configuration_of
from placer.laboratory.sweep.line import KEY, Key, Line
from placer.laboratory.sweep.subject import Subject, parse_subject
from placer.version import __version__

__all__ = ["Run", "parse_seeds", "plan"]

MOST_SEEDS = 100_000  #: ``1-5`` is meant, ``1-5000000000`` is not


@dataclass(frozen=True, slots=True)
class Run:
    """One run to do.

    Parameters
    ----------
    subject
        What is decided upon.
    seed
        Of the family's chance; of the policy's or the solver's where the instance is in files.
    policy
        One of :data:`placer.laboratory.deciders.NAMES`.
    limit
        Seconds of the whole call of a method.
    workers
        Solver threads of a method.
    arguments
        Configuration of a policy; None: its defaults.
    """

    subject: Subject
    seed: int
    policy: str
    limit: float
    workers: int
    arguments: Mapping[str, Any] | None = None

    @property
    def key(self) -> Key:
        """What tells it apart; its line has the same."""
        config = "" if self.arguments is None else _digest(self.arguments)
        return self.subject.word, self.seed, self.policy, self.limit, self.workers, __version__, config

    @property
    def asked(self) -> Asked:
        """What is asked of the policy or method: of families the seed is theirs, and its own is 0."""
        seed = self.seed if self.subject.family is None else 0
        return Asked(self.policy, self.arguments, self.limit, None, self.workers, seed)

    def line(self, **found: Any) -> Line:
        """Make its line."""
        return Line.model_validate({**dict(zip(KEY, self.key, strict=True)), **found})


def _digest(arguments: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()[:12]


def plan(
    words: Sequence[str],
    *,
    seeds: Sequence[int] = (1, 2, 3, 4, 5),
    policies: Sequence[str] = ("greedy", "auto"),
    time_limit: float = 60.0,
    workers: int = 1,
    arguments: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Run]:
    """List the runs of a sweep, all of one instance together.

    Parameters
    ----------
    words
        Families with their options, and paths (:func:`parse_subject`); one given twice counts once.
    seeds
        Each makes an instance of a family, and is the policy's or the solver's seed on an instance in files:
        0 .. 2^31 - 1.
    policies
        Policies and methods, names of :data:`placer.laboratory.deciders.NAMES`.
    time_limit
        Seconds of each whole call of a method, at least 0.
    workers
        Solver threads of a method, at least 1.
    arguments
        Policy to its configuration (:func:`placer.laboratory.policies.config.read_config`).

    Raises
    ------
    UsageError
        With every fault of every word.
    """
    configured = arguments or {}
    bare = {name.partition(":")[0] for name in policies}
    faults = [
        f"{name}: found {found}, expected {expected}"
        for name, found, expected, fine in (
            ("time limit", time_limit, "seconds, at least 0", 0 <= time_limit < math.inf),
            ("workers", workers, "at least 1", workers >= 1),
            ("instances", "none", "at least one", bool(words)),
            ("seeds", "none", "at least one", bool(seeds)),
            ("policies", "none", "at least one", bool(policies)),
            *(("seed", seed, "0 to 2147483647", 0 <= seed < 2**31) for seed in seeds),
            *(("policy", repr(name), f"one of {', '.join(NAMES)}", name in NAMES) for name in policies),
            *(("configuration", f"one for {name}", "it among the policies", name in bare) for name in configured),
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
        Run(subject, seed, policy, time_limit, workers, configuration_of(policy, configured))
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
