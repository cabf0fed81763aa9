"""How much text is read at all, and how many faults are told: what keeps a hostile or broken input cheap.

A stored Kubernetes object has at most 1.5 MiB, so the limit per object is generous. Values are counted because memory
and time follow their number, not the bytes: sixty megabytes of ``[1,1,1,...`` are thirty million values.
"""

from __future__ import annotations

from placer.errors import BadInstance, Fault

__all__ = [
    "ALIAS_NODES",
    "ALIAS_TEXT",
    "DOCUMENTS",
    "JSON_TEXT",
    "LEVELS",
    "OBJECT_TEXT",
    "YAML_TEXT",
    "Faults",
    "memory_allowed",
    "shown",
    "values_allowed",
    "yaml_values_allowed",
]

#: Bytes of text in all, unpacked.
JSON_TEXT = 2 * 2**30
YAML_TEXT = 256 * 2**20
#: Bytes of one object.
OBJECT_TEXT = 8 * 2**20
#: Levels of nesting, counted from the document.
LEVELS = 100
#: Documents in one text.
DOCUMENTS = 1_000_000
#: Values that aliases may stand for in one text, and the bytes that they may come to.
ALIAS_NODES = 1_000_000
ALIAS_TEXT = 64 * 2**20

#: Faults told one by one, and faults after which reading stops.
_TOLD = 5_000
_STOP = 100_000


def values_allowed(length: int) -> int:
    """Give the number of values that a JSON text of so many bytes may hold; compact kubectl output has one in 12."""
    return 1_000_000 + length // 6


def yaml_values_allowed(length: int) -> int:
    """Give the number of parser events that a YAML text of so many bytes may cause; kubectl's output has one in 10."""
    return 4_000_000 + length // 8


def memory_allowed(length: int) -> int:
    """Give the bytes by which the process may grow while a text of so many bytes becomes objects."""
    return 512 * 2**20 + 4 * length


def shown(text: str, most: int = 80) -> str:
    """Make text from an object fit to be printed: one line, no control characters, not too long."""
    if len(text) > most:
        text = f"{text[:most]}..."
    return text if text.isprintable() else ascii(text)[1:-1]


class Faults:
    """All faults of an input, told up to a limit and counted beyond it."""

    def __init__(self) -> None:
        self._told: list[Fault] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def enough(self) -> bool:
        """Whether reading on would only count."""
        return self._count >= _STOP

    @property
    def tells(self) -> bool:
        """Whether another fault would still be told."""
        return len(self._told) < _TOLD

    def add(self, fault: Fault) -> None:
        """Take one fault."""
        self._count += 1
        if self.tells:
            self._told.append(fault)

    def count(self, number: int) -> None:
        """Count faults that are not told."""
        self._count += number

    def raise_any(self) -> None:
        """Raise what was found.

        Raises
        ------
        BadInstance
            There was at least one fault.
        """
        if not self._count:
            return
        more = self._count - len(self._told)
        rest = []
        if more:
            number = f"at least {more} more faults" if self.enough else f"{more} more faults"
            rest = [Fault("the input", None, "", "", number, "none")]
        raise BadInstance([*self._told, *rest])
