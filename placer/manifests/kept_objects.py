"""Objects as they were read before."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from placer.manifests.raw_objects import RawObject, split
from placer.manifests.syntax import Text
from placer.manifests.validation import Objects, validate


class KeptObjects:
    """Objects of a cluster by their texts; one with something to report is not kept."""

    def __init__(self) -> None:
        self._raws: dict[bytes, RawObject] = {}
        self._typed: dict[int, Any] = {}  # by the address of the raw object, which is kept
        self._used: set[bytes] = set()
        self._guard = threading.Lock()  # what has come is read while a plan is carried out

    def read(self, items: Sequence[bytes], text: Callable[[Sequence[bytes]], Text]) -> Objects:
        """Read the ``items`` of a snapshot, no two alike; ``text`` makes a file of some."""
        with self._guard:
            return self._read(items, text)

    def _read(self, items: Sequence[bytes], text: Callable[[Sequence[bytes]], Text]) -> Objects:
        new = [item for item in items if item not in self._raws]
        split_off = split([text(new)]) if new else []
        if len(split_off) != len(new) or len(set(items)) != len(items):  # a list in a list, or an object twice
            return validate(split([text(items)]), listed=True)
        for item, raw in zip(new, split_off, strict=True):  # a raw object holds the whole text that it was split off
            written = bytes(raw.text)
            kept = item if written == item else written
            self._raws[item] = msgspec.structs.replace(raw, text=msgspec.Raw(kept))
        self._used.update(items)
        return validate([self._raws[item] for item in items], listed=True, known=self._typed)

    def forget_unused(self) -> None:
        """Forget the objects that were not read since this was called last."""
        for item in self._raws.keys() - self._used:
            self._typed.pop(id(self._raws.pop(item)), None)
        self._used.clear()
