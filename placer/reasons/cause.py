"""What keeps a group out, and where it comes nearest to being let in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from placer.codes import ReasonCode
from placer.instance import Pod
from placer.result import Reason

__all__ = ["Cause"]


def _nobody(_: Pod) -> bool:
    return False


@dataclass(frozen=True)
class Cause:
    """A reason, and where to look for those who hold what is missing.

    Parameters
    ----------
    code, message
        As in :class:`placer.result.Reason`.
    nodes
        Whose room would be needed: the best node, those of the best domain, those near enough; None: any.
    held
        Beginning of the sentence about pods for which ``holds`` is true; empty: there is none.
    holds
        Tells pods that are in its way wherever they are (in a queue, on a link, at the other end of a call).
    """

    code: ReasonCode
    message: str
    nodes: frozenset[str] | None = None
    held: str = ""
    holds: Callable[[Pod], bool] = _nobody

    @classmethod
    def of(cls, reason: Reason) -> Cause:
        """A reason that names no place."""
        return cls(reason.code, reason.message)

    @property
    def reason(self) -> Reason:
        """Without the place."""
        return Reason(self.code, self.message)
