"""Reading settings: plain values to arguments of a policy; every fault and every remark with its field."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from placer.base.errors import BadInstance, Fault
from placer.base.text import found_like

__all__ = ["ConfigReader"]


class ConfigReader:
    """Looks values up and notes faults and remarks; ``file`` and ``object`` are for messages."""

    def __init__(self, file: str, object: str) -> None:  # noqa: A002
        self.file = file
        self.object = object
        self.faults: list[Fault] = []
        self.remarks: list[str] = []

    def fault(self, field: str, found: object, expected: str) -> None:
        """Note a value that is not as it should be."""
        self.note(field, "nothing" if found is None else repr(found)[:80], expected)

    def note(self, field: str, found: str, expected: str) -> None:
        """Note a fault in words."""
        self.faults.append(Fault(self.file, None, self.object, field, found, expected))

    def remark(self, field: str, text: str) -> None:
        """Note that something sound is not mimicked, or how it is read."""
        told = f"{field}: {text}"
        if told not in self.remarks:
            self.remarks.append(told)

    def rest(
        self,
        written: Mapping[str, Any],
        at: str,
        honoured: Collection[str],
        reasons: Mapping[str, str] | None = None,
        *,
        hint: bool = True,
    ) -> None:
        """Remark that keys beyond the honoured ones are not mimicked, with the reason, or as a ``hint`` the known key
        like it.
        """
        for key in written:
            if key not in honoured:
                known = {*honoured, *(reasons or ())}
                reason = (reasons or {}).get(key)
                why = f": {reason}" if reason else found_like(key, known) if hint else ""
                self.remark(f"{at}{key}", f"not mimicked{why}")

    def take(self, other: ConfigReader, at: str) -> None:
        """Note the faults that another reader found in a part."""
        for fault in other.faults:
            self.note(at + fault.field, fault.found, fault.expected)

    def raise_any(self) -> None:
        """Raise a :class:`BadInstance` with every fault, if there are any."""
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

    def texts(self, value: object, field: str) -> tuple[str, ...]:
        """A list of text, none of it empty; left out it is empty."""
        found = []
        for index, each in enumerate(self.items(value, field)):
            if isinstance(each, str) and each:
                found.append(each)
            else:
                self.fault(f"{field}[{index}]", each, "text that is not empty")
        return tuple(found)

    def flag(self, value: object, field: str) -> bool:
        """True or false; left out it is false."""
        if not isinstance(value, bool | None):
            self.fault(field, value, "true or false")
        return value is True

    def weights(self, value: object, field: str) -> dict[str, int]:
        """A list of resources with their weights, 1 where left out."""
        found = {}
        for index, entry in enumerate(self.items(value, field)):
            each, at = self.mapping(entry, f"{field}[{index}]"), f"{field}[{index}]"
            name = self.text(each.get("name"), f"{at}.name")
            if not name:
                self.fault(f"{at}.name", each.get("name"), "the name of a resource")
            found[name] = self.integer(each.get("weight"), f"{at}.weight", 1, 1, 100)
            self.rest(each, f"{at}.", ("name", "weight"))
        return found

    def text(self, value: object, field: str, default: str = "", known: Sequence[str] = ()) -> str:
        """Text, one of the known ones where there are any; left out it is the default."""
        if value is None:
            return default
        if isinstance(value, str) and (not known or value in known):
            return value
        self.fault(field, value, f"one of {', '.join(known)}" if known else "text")
        return default
