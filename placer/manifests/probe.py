"""Whether it is worth making objects of more YAML: some are validated while the rest is still text.

YAML takes a hundred times as long to become JSON as JSON takes to be validated. Of a text that is wrong all over, only
so much is read as there are faults to be told; faults themselves are told by ``validation``, each object once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

if TYPE_CHECKING:
    from placer.manifests.objects import Identity, RawObject

__all__ = ["Probe"]

#: One object in so many is looked at, and after so many wrong ones reading stops: 20,000 in all, as with faults.
_EVERY = 8
_WRONG = 2_500


class Probe:
    """Looks at every eighth object."""

    def __init__(self) -> None:
        self._count = 0
        self._wrong = 0
        self._seen: set[Identity] = set()

    def finds_enough(self, raw: RawObject) -> bool:
        """Take one object; say whether so many were wrong that there is no point in reading on."""
        self._count += 1
        if self._count % _EVERY:
            return False
        self._wrong += self._is_wrong(raw)
        return self._wrong >= _WRONG

    def _is_wrong(self, raw: RawObject) -> bool:
        identity = raw.identity
        if raw.name and identity in self._seen:
            return True
        self._seen.add(identity)
        info = raw.info
        if info is None:
            return False
        if raw.api_version.rpartition("/")[2] not in info.versions:
            return True
        try:
            info.read(bytes(raw.text))
        except ValidationError:
            return True
        return False
