"""Findings: input that cannot be as meant, collected while an instance is built."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placer.base.errors import finding_text
from placer.base.text import found_like

if TYPE_CHECKING:
    from placer.base.codes import FindingCode

#: Missing objects that are compared with those there are, and how many of these at most: input may be hostile.
HINTED, COMPARED = 20, 1_000


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Something in the input that cannot be as meant; ``object`` is ``Kind namespace/name``."""

    code: FindingCode
    object: str
    message: str

    def __str__(self) -> str:
        """Code and message, with the object between them where the message does not name it."""
        return finding_text(self.code, self.object, self.message)

    def as_dict(self) -> dict[str, str]:
        """Plain values, for JSON."""
        return {"code": self.code, "object": self.object, "message": self.message}


class Findings:
    """Equal findings count once, and their order in the input leaves no trace."""

    def __init__(self) -> None:
        self._found: set[Finding] = set()
        self.noted = 0  #: how often something was noted, the same again included
        self._missing: dict[str, set[str]] = {}
        self._known: dict[str, Collection[str]] = {}  #: kind to the names that there are
        self._alike: dict[tuple[FindingCode, str, str], set[str]] = {}
        self.unread: dict[str, set[str]] = {}  #: objects that are there and cannot be read, and which name them

    def add(self, code: FindingCode, subject: str, message: str) -> None:
        """Note one finding about ``subject``, which is ``Kind namespace/name``."""
        self.noted += 1
        self._found.add(Finding(code, subject, message))

    def update(self, found: Iterable[Finding]) -> None:
        """Note findings that were made elsewhere."""
        self._found.update(found)

    def several(self, code: FindingCode, subject: str, after: str, before: str = "") -> None:
        """Note the same of one more object."""
        self.noted += 1
        self._alike.setdefault((code, before, after), set()).add(subject)

    def missing(self, target: str, subject: str, known: Collection[str] = ()) -> None:
        """Note that ``subject`` names ``target``, which is absent; ``known``: names that may be meant."""
        self.noted += 1
        if known:
            self._known[target.partition(" ")[0]] = known
        where = self.unread if target in self.unread else self._missing
        where.setdefault(target, set()).add(subject)

    def all(self) -> tuple[Finding, ...]:
        """Every finding so far, sorted."""
        hints = {target: self._like(target) for target in sorted(self._missing)[:HINTED]}
        unknown = {
            Finding(
                "UnknownReference",
                target,
                f"{target}, named by {counted(subjects)}, is not in the instance{hints.get(target, '')}",
            )
            for target, subjects in self._missing.items()
        }
        alike = {
            Finding(code, min(subjects), f"{before}{counted(subjects)}{after}")
            for (code, before, after), subjects in self._alike.items()
        }
        return tuple(sorted(self._found | unknown | alike))

    def _like(self, target: str) -> str:
        kind, _, rest = target.partition(" ")
        known = self._known.get(kind, ())
        return found_like(rest.rpartition(" ")[2], known) if len(known) <= COMPARED else ""


def counted(subjects: set[str]) -> str:
    """Name the first of some objects, and how many others there are."""
    first, others = min(subjects), len(subjects) - 1
    return f"{first} and {others} other{'s' if others > 1 else ''}" if others else first
