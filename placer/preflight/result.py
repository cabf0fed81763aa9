"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

__all__ = ["CheckResult", "CheckState"]


class CheckState(Enum):
    """How it stands, the best first; where something has failed, passes do not do their work."""

    OK = "ok"
    UNKNOWN = "unknown"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One finding.

    Parameters
    ----------
    check
        What was looked at; several findings may have one.
    state
        How it stands.
    object
        Whom it is about.
    found, expected
        Empty ``expected``: what was found is fine.
    action
        What to do; empty: nothing.
    """

    check: str
    state: CheckState
    object: str
    found: str
    expected: str = ""
    action: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "check": self.check,
            "state": self.state.value,
            "object": self.object,
            "found": self.found,
            "expected": self.expected or None,
            "action": self.action or None,
        }
