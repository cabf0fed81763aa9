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
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from placer.base.text import legible


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with the input: what was found in a field, and what was expected.

    ``document``: of the file, from 1; None: the whole file. ``object``: ``Kind namespace/name``.
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
    return [] if most is None or count <= most else [f"  ... and {count - most:,} more (all of them: --json)"]


class UsageError(PlacerError):
    """The command line or the arguments of an API call make no sense."""

    exit_code = 2


class BadInstance(PlacerError):
    """The input cannot be used; ``faults`` is never empty."""

    exit_code = 3

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__(self.told())

    def told(self, most: int | None = None) -> str:
        """Report how many faults there are and the first ``most`` of them."""
        count = len(self.faults)
        head = "1 fault in the input" if count == 1 else f"{count:,} faults in the input"
        return "\n".join([head, *(f"  {fault}" for fault in self.faults[:most]), *_rest(count, most)])

    def __reduce__(self) -> tuple[type[BadInstance], tuple[tuple[Fault, ...]]]:
        return type(self), (self.faults,)


class StrictFindings(BadInstance):
    """The input has findings under ``--strict``: their codes are the fields of the faults."""

    def told(self, most: int | None = None) -> str:
        """The findings as they are reported without ``--strict``."""
        count = len(self.faults)
        head = "1 finding, an error" if count == 1 else f"{count:,} findings, errors"
        texts = (finding_text(fault.field, fault.object, fault.found) for fault in self.faults[:most])
        lines = [f"{head} under --strict", *(f"  {text}" for text in texts)]
        return "\n".join([*lines, *_rest(count, most)])


def finding_text(code: str, subject: str, message: str) -> str:
    """Code and message in one line, with the object where the message does not name it."""
    named = re.search(rf"(?<![\w./-]){re.escape(subject)}(?![\w/-]|\.\w)", message)
    return legible(f"{code} {message}" if named else f"{code} {subject}: {message}")


class NothingFound(PlacerError):
    """A method that shows only its own answers had none when it had to stop."""

    exit_code = 4


class PolicyFailed(PlacerError):
    """A policy that mimics another scheduler broke down: a bug in placer."""

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
