"""How much text is read at all, and how many faults are told: what keeps a hostile or broken input cheap.

A stored Kubernetes object has at most 1.5 MiB, so the limit per object is generous. Values are counted because memory
and time follow their number, not the bytes: sixty megabytes of ``[1,1,1,...`` are thirty million values.
"""

from __future__ import annotations

from placer.errors import BadInstance, Fault

__all__ = [
    "ALIAS_TEXT",
    "ALIAS_VALUES",
    "JSON_DOCUMENTS",
    "JSON_TEXT",
    "KINDS_MOST",
    "LEVELS",
    "OBJECTS",
    "OBJECT_TEXT",
    "UNPACKED_FREE",
    "UNPACKED_TIMES",
    "YAML_TEXT",
    "Faults",
    "memory_allowed",
    "shown",
    "values_allowed",
    "yaml_documents_allowed",
    "yaml_values_allowed",
]

#: Bytes of text in all, unpacked.
JSON_TEXT = 2 * 2**30
YAML_TEXT = 256 * 2**20
#: Packed text may come to so many times its size, once it is longer than the second figure; deflate gets to 1,032, and
#: 55,000 equal pods stay below 150.
UNPACKED_TIMES = 300
UNPACKED_FREE = 64 * 2**20
#: Kinds, told apart by apiVersion.
KINDS_MOST = 10_000
#: Bytes of one object.
OBJECT_TEXT = 8 * 2**20
#: Levels of nesting, counted from the document.
LEVELS = 100
#: Objects in all: Kubernetes supports 150,000 pods in a cluster.
OBJECTS = 500_000
#: JSON documents in one text; JSON comes in lists.
JSON_DOCUMENTS = 100_000
#: Values that aliases may stand for in one text, and the bytes that they may come to.
ALIAS_VALUES = 1_000_000
ALIAS_TEXT = 64 * 2**20

#: Faults told one by one, and faults after which reading stops.
_TOLD = 5_000
_STOP = 20_000


def values_allowed(length: int) -> int:
    """Give the number of values that a JSON text of so many bytes may hold; compact kubectl output has one in 12."""
    return 1_000_000 + length // 6


def yaml_values_allowed(length: int) -> int:
    """Give the number of events that a YAML text of so many bytes may cause; ordinary YAML has one in 6 to 10."""
    return 5_000_000 + length // 7


def yaml_documents_allowed(length: int) -> int:
    """Give the number of documents in a YAML text of so many bytes; people write one for each object."""
    return min(OBJECTS, 100_000 + length // 300)


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
        self.enough = False  #: Whether there is no point in reading on.

    def __bool__(self) -> bool:
        return self._count > 0

    @property
    def tells(self) -> bool:
        """Whether another fault would still be told."""
        return len(self._told) < _TOLD

    def add(self, fault: Fault) -> None:
        """Take one fault."""
        if self.tells:
            self._told.append(fault)
        self.count(1)

    def count(self, number: int) -> None:
        """Count faults that are not told."""
        self._count += number
        self.enough = self.enough or self._count >= _STOP

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
        raise BadInstance([*self._in_order(), *rest])

    def _in_order(self) -> list[Fault]:
        """Faults file by file and document by document, whichever step found them."""
        files = {name: rank for rank, name in enumerate(dict.fromkeys(fault.file for fault in self._told))}
        return sorted(self._told, key=lambda fault: (files[fault.file], fault.document or 0))
