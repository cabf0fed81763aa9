"""Everything placer raises on purpose.

::

    PlacerError                 exit code
    ├── UsageError                  2      the call's words are off
    ├── BadInstance                 3      the input cannot be used; carries every fault
    │   └── StrictFindings          3      findings, under --strict
    ├── NothingFound                4      a method that shows only its own answers had none in time
    ├── PolicyFailed                1      a bug: a policy that mimics another scheduler broke down
    ├── ClusterError                6      the cluster refused or did not answer
    └── VerificationFailed          1      a bug: an answer broke a rule

A solver that dies is not an error of this tree: the answer in hand survives it.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from placer.legible import legible

__all__ = [
    "BadInstance",
    "ClusterError",
    "Fault",
    "NothingFound",
    "PlacerError",
    "PolicyFailed",
    "StrictFindings",
    "UsageError",
    "VerificationFailed",
    "finding_text",
]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with the input.

    Parameters
    ----------
    file
        The file as the caller named it; ``-`` is standard input.
    document
        Position of the document or list item in the file, from 1; None where the file as a whole is meant.
    object
        ``Kind namespace/name`` as far as it could be read, else empty.
    field
        Path of the field (``spec.containers[0].image``), or ``line 3, column 7`` where the text does not parse.
    found
        What stands there.
    expected
        What should stand there.
    """

    file: str
    document: int | None
    object: str
    field: str
    found: str
    expected: str

    def __str__(self) -> str:
        place = self.file if self.document is None else f"{self.file} (document {self.document})"
        what = ": ".join(part for part in (place, self.object, self.field) if part)
        return legible(f"{what}: found {self.found}, expected {self.expected}")


class PlacerError(Exception):
    """Base of every error placer raises on purpose."""

    exit_code = 1


def _rest(count: int, most: int | None) -> list[str]:
    """The line that says how many more there are, where not all are told."""
    return [] if most is None or count <= most else [f"  ... and {count - most:,} more (all of them: --json)"]


class UsageError(PlacerError):
    """The command line or the arguments of an API call make no sense."""

    exit_code = 2


class BadInstance(PlacerError):
    """The input cannot be used.

    Parameters
    ----------
    faults
        Every fault that was found, in the order of the input; never empty.
    """

    exit_code = 3

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__(self.told())

    def told(self, most: int | None = None) -> str:
        """Tell how many faults there are and the first of them, ``most`` at most; None: all."""
        count = len(self.faults)
        head = "1 fault in the input" if count == 1 else f"{count:,} faults in the input"
        return "\n".join([head, *(f"  {fault}" for fault in self.faults[:most]), *_rest(count, most)])

    def __reduce__(self) -> tuple[type[BadInstance], tuple[tuple[Fault, ...]]]:
        """Survive a pickle: the message is made anew from the faults."""
        return type(self), (self.faults,)


class StrictFindings(BadInstance):
    """The input has findings and the caller asked for none (``--strict``): their codes are the fields of the faults."""

    def told(self, most: int | None = None) -> str:
        """Tell the findings as they are told without ``--strict``, ``most`` at most; None: all."""
        count = len(self.faults)
        head = "1 finding, an error" if count == 1 else f"{count:,} findings, errors"
        texts = (finding_text(fault.field, fault.object, fault.found) for fault in self.faults[:most])
        lines = [f"{head} under --strict", *(f"  {text}" for text in texts)]
        return "\n".join([*lines, *_rest(count, most)])


def finding_text(code: str, subject: str, message: str) -> str:
    """Code and message in one line, with what it is about between them where the message does not name it.

    Examples
    --------
    >>> finding_text("NumaZones", "Node n1", "zone node-0 of Node n1 lists no cpu")
    'NumaZones zone node-0 of Node n1 lists no cpu'
    >>> finding_text("NumaZones", "Node n1", "zone node-0 of Node n11 lists no cpu")
    'NumaZones Node n1: zone node-0 of Node n11 lists no cpu'
    """
    named = re.search(rf"(?<![\w./-]){re.escape(subject)}(?![\w/-]|\.\w)", message)
    return legible(f"{code} {message}" if named else f"{code} {subject}: {message}")


class NothingFound(PlacerError):
    """A method that shows only what it found itself had found nothing when it had to stop."""

    exit_code = 4


class PolicyFailed(PlacerError):
    """A policy that mimics another scheduler broke down: a bug in placer, of that policy alone."""

    @classmethod
    def of(cls, policy: str, error: Exception) -> PolicyFailed:
        """Name the policy, the error and where it happened."""
        place = traceback.extract_tb(error.__traceback__)[-1]
        found = ": ".join(filter(None, (type(error).__name__, str(error))))
        where = f"{Path(place.filename).name}:{place.lineno}"
        return cls(f"policy {policy} failed, which is a bug in placer: {found} ({where})")


class ClusterError(PlacerError):
    """The cluster could not be reached, or refused."""

    exit_code = 6


class VerificationFailed(PlacerError):
    """An answer broke a rule: a bug in placer, never a result."""

    exit_code = 1

    @classmethod
    def of(cls, method: str, messages: Sequence[str]) -> VerificationFailed:
        """Name the method and the first of what its answer broke."""
        shown = "\n".join(f"  {message}" for message in messages[:20])
        return cls(f"the answer of {method} breaks {len(messages)} rules; this is a bug in placer:\n{shown}")
