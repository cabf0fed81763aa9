"""Collecting findings while an instance is built, and references that lead nowhere."""

from __future__ import annotations

from collections.abc import Iterable

from placer.codes import FindingCode
from placer.instance.model import Finding

__all__ = ["Findings", "counted"]


class Findings:
    """Findings as they turn up; equal ones count once, and their order in the input leaves no trace."""

    def __init__(self) -> None:
        self._found: set[Finding] = set()
        self._missing: dict[str, set[str]] = {}

    def add(self, code: FindingCode, subject: str, message: str) -> None:
        """Note one finding; the parameters are those of :class:`~placer.instance.model.Finding`."""
        self._found.add(Finding(code, subject, message))

    def update(self, found: Iterable[Finding]) -> None:
        """Note findings that were made elsewhere."""
        self._found.update(found)

    def missing(self, target: str, subject: str) -> None:
        """Note that ``subject`` names ``target``, which is not in the instance; one finding per target comes of it."""
        self._missing.setdefault(target, set()).add(subject)

    def all(self) -> tuple[Finding, ...]:
        """Every finding so far, sorted."""
        unknown = {
            Finding("UnknownReference", target, f"{target}, named by {counted(subjects)}, is not in the instance")
            for target, subjects in self._missing.items()
        }
        return tuple(sorted(self._found | unknown))


def counted(subjects: set[str]) -> str:
    """Name the first of some objects, and how many others there are.

    Examples
    --------
    >>> counted({"Pod default/b", "Pod default/a"}), counted({"Node n1"})
    ('Pod default/a and 1 other', 'Node n1')
    """
    first, others = min(subjects), len(subjects) - 1
    return f"{first} and {others} other{'s' if others > 1 else ''}" if others else first
