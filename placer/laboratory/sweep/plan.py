"""What to run: subjects (instances in files, families with options) × seeds × policies.

A subject is one word of a command line. Every fault is told before anything runs.
"""

from __future__ import annotations

import hashlib
import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placer.errors import UsageError
from placer.laboratory.deciders import NAMES, Asked, configuration_of
from placer.laboratory.generate import FAMILIES, Option
from placer.laboratory.sweep.records import KEY, Key, RunRecord
from placer.version import __version__

__all__ = ["Run", "Subject", "Value", "parse_seeds", "parse_subject", "plan", "planted_beside"]


Value = int | float | bool | tuple[int | float, ...]

ENDINGS = (".json", ".yaml", ".yml", ".gz")  #: of names that are meant for files, whether they are there or not


@dataclass(frozen=True, slots=True)
class Subject:
    """A family or an instance.

    Parameters
    ----------
    word
        As it was typed; lines and tables name it so.
    family
        Name of the family; None: the word is the path of a file or folder.
    options
        Options of the family, name and value, without the seed.
    """

    word: str
    family: str | None = None
    options: tuple[tuple[str, Value], ...] = ()


def parse_subject(word: str) -> Subject:
    """Read a word: a family and its options as ``placer generate`` takes them, or a path.

    Parameters
    ----------
    word
        A name of ``FAMILIES`` and its options, with the quotes of a shell where they have spaces; else a path. A file
        that bears a family's name is meant with ``./`` before it.

    Raises
    ------
    UsageError
        Neither a family nor a path; an option that the family does not have, out of range, or at odds with another.

    Examples
    --------
    >>> parse_subject("planted --nodes 16 --pod-sizes=4,8").options
    (('nodes', 16), ('pod_sizes', (4, 8)))
    """
    parts = _split(word)
    if parts and parts[0] in FAMILIES:
        try:
            options: dict[str, Any] = _options(parts[0], parts[1:])
            FAMILIES[parts[0]].options(**options)  # which checks what concerns several of them
        except UsageError as error:
            raise UsageError(f"{word}: {error}") from None
        return Subject(word, parts[0], tuple(options.items()))
    if word == "-":
        raise UsageError("-: found standard input, expected a file or folder, which can be read again for each run")
    meant = "/" in word.split(" ")[0] or word.endswith(ENDINGS)
    if not word or not (meant or Path(word).exists()):
        raise UsageError(
            f"{word or repr(word)}: found neither a file or folder nor a family, expected one of {', '.join(FAMILIES)}"
        )
    return Subject(word)


def _split(word: str) -> list[str]:
    """Split at spaces outside quotes; nothing where quotes do not match, as in the name of some file."""
    try:
        return shlex.split(word)
    except ValueError:
        return []


def _options(family: str, words: list[str]) -> dict[str, Value]:
    """Read the options; the last of several counts, as on a command line."""
    flags = {option.flag: option for option in FAMILIES[family].flags if option.name != "seed"}
    found: dict[str, Value] = {}
    left = list(reversed(words))
    while left:
        flag, equals, text = left.pop().partition("=")
        if flag == "--seed":
            raise UsageError("found --seed in the family's options, expected it in --seeds of the sweep")
        if flag not in flags:
            raise UsageError(f"found {flag!r}, expected one of {', '.join(flags)}")
        option = flags[flag]
        found[option.name] = (
            _switched(option, equals) if option.switch else option.parse(_text(option, equals, text, left))
        )
    return found


def _switched(option: Option, equals: str) -> bool:
    if equals:
        raise UsageError(f"{option.flag}: found a value, expected none")
    return True


def _text(option: Option, equals: str, text: str, left: list[str]) -> str:
    """Text of an option's value, behind ``=`` or the next word."""
    if equals:
        return text
    if not left:
        raise option.fault("nothing")
    return left.pop()


def planted_beside(path: str) -> str:
    """Where the planted placement of an instance goes: ``queue.json.gz`` to ``queue.planted.json.gz``.

    Examples
    --------
    >>> planted_beside("made/queue.yaml")
    'made/queue.planted.yaml'
    """
    file = Path(path)
    endings = "".join(file.suffixes[-2:] if file.suffix == ".gz" else file.suffixes[-1:])
    return str(file.with_name(file.name.removesuffix(endings) + ".planted" + endings))


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

    def line(self, **found: Any) -> RunRecord:
        """Make its line."""
        return RunRecord.model_validate({**dict(zip(KEY, self.key, strict=True)), **found})


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
