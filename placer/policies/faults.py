"""Reading settings: plain values to what a policy takes, every fault noted with its object and field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from placer.errors import BadInstance, Fault

__all__ = ["Reader"]


class Reader:
    """Looks values up and notes what is not as it should be.

    Parameters
    ----------
    file
        Where the settings come from, for messages.
    object
        Their kind.
    """

    def __init__(self, file: str, object: str) -> None:  # noqa: A002
        self.file = file
        self.object = object
        self.faults: list[Fault] = []

    def fault(self, field: str, found: object, expected: str) -> None:
        """Note a value that is not as it should be."""
        self.note(field, "nothing" if found is None else repr(found)[:80], expected)

    def note(self, field: str, found: str, expected: str) -> None:
        """Note a fault in words."""
        self.faults.append(Fault(self.file, None, self.object, field, found, expected))

    def take(self, other: Reader, at: str) -> None:
        """Note what another reader has noted of a part."""
        for fault in other.faults:
            self.note(at + fault.field, fault.found, fault.expected)

    def raise_any(self) -> None:
        """Raise all that was noted.

        Raises
        ------
        BadInstance
            With every fault.
        """
        if self.faults:
            raise BadInstance(self.faults)

    def mapping(self, value: object, field: str) -> Mapping[str, Any]:
        """A mapping; left out it is empty."""
        if value is None:
            return {}
        if isinstance(value, Mapping):
            return value
        self.fault(field, value, "a mapping")
        return {}

    def items(self, value: object, field: str) -> Sequence[Any]:
        """A list; left out it is empty."""
        if value is None:
            return ()
        if isinstance(value, (list, tuple)):
            return value
        self.fault(field, value, "a list")
        return ()

    def integer(self, value: object, field: str, default: int, least: int = 0, most: int | None = None) -> int:
        """A whole number within bounds; left out it is the default."""
        if value is None:
            return default
        fits = isinstance(value, int) and not isinstance(value, bool) and value >= least
        if fits and (most is None or value <= most):  # type: ignore[operator]
            return int(value)  # type: ignore[call-overload, no-any-return]
        self.fault(field, value, f"an integer of at least {least}" + ("" if most is None else f" and at most {most}"))
        return default

    def text(self, value: object, field: str, default: str = "", known: Sequence[str] = ()) -> str:
        """Text, one of the known ones where there are any; left out it is the default."""
        if value is None:
            return default
        if isinstance(value, str) and (not known or value in known):
            return value
        self.fault(field, value, f"one of {', '.join(known)}" if known else "text")
        return default
