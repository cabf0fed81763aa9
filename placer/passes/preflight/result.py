"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

__all__ = ["CheckResult", "CheckState"]


class CheckState(Enum):
    """How it stands, the best first."""

    OK = "ok"
    UNKNOWN = "unknown"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One finding of a check; empty ``expected``: fine as it is; empty ``action``: nothing to do."""

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
