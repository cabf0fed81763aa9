"""Fields that no object of its kind has: what is written and nothing will read.

A snapshot has 55,000 pods, and hardly one has such a field. The first objects of a kind are walked; from then on a
shape (``shape``) looks at each, and only what does not fit is walked. A field that has been told of once, such as one
of a newer API server, is one that the next shape counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from placer.kube import KindInfo
from placer.kube.fields import Fields, Steps, known_fields, nearest
from placer.manifests.limits import shown
from placer.manifests.paths import path_text
from placer.manifests.raw_objects import ObjectShape, Place, RawObject

__all__ = ["Strays", "UnknownField"]

#: After so many objects that were walked a shape is made, and after twice as many as the last time made anew.
_WALKED = 64
#: Places told of one kind: who finds more was given something else than objects of that kind; characters shown of each.
_TOLD = 200
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class UnknownField:
    """A field that no object of its kind has, or a kind that is like one that is read.

    Parameters
    ----------
    object
        The first object that has it, ``Kind namespace/name``.
    kind
        ``apiVersion Kind`` of the objects.
    path
        Where it stands in that object; empty where there are more than are told, and no further object was looked at.
    nearest
        The known field, or kind, that is most like it; empty where there is none.
    count
        Number of objects that have it.
    """

    object: str
    kind: str
    path: str
    nearest: str
    count: int


class Strays:
    """Looks for them in the objects of one kind."""

    def __init__(self, info: KindInfo) -> None:
        self._fields = known_fields(info)
        self._found: dict[Place, _Stray] = {}
        self._beyond: _Stray | None = None
        self._walked = 0
        self._enough = _WALKED
        self._shape: ObjectShape | None = None

    def look(self, raw: RawObject, text: bytes) -> None:
        """Take one object, which has been read without fault."""
        if raw.fits or self._fields is None or self._beyond is not None:
            return
        places = self._shape.places(text) if self._shape is not None else None
        if places is None:
            places = self._walk(raw, text, self._fields)
        for place in places:
            self._found[place].count += 1

    def all(self, kind: str) -> Iterator[UnknownField]:
        """Every one that was found; ``kind`` is the apiVersion and kind of the objects."""
        for stray in (*self._found.values(), *([self._beyond] if self._beyond else [])):
            yield UnknownField(stray.label, kind, stray.path, stray.nearest, stray.count)

    def _walk(self, raw: RawObject, text: bytes, fields: Fields) -> set[Place]:
        places: set[Place] = set()
        for steps, above in _unknown(msgspec.json.decode(text), (), [((), fields)]):
            place = tuple(None if isinstance(step, int) else step for step in steps)
            if place not in self._found:
                if len(self._found) == _TOLD:
                    self._beyond = _Stray(raw.label, count=1)
                    break
                like = nearest(str(steps[-1]), above)
                self._found[place] = _Stray(raw.label, path_text(steps), path_text(like))
            places.add(place)
        self._walked += 1
        if self._walked == self._enough:
            self._enough *= 2
            self._shape = ObjectShape(fields, self._found)
        return places


@dataclass(slots=True)
class _Stray:
    """One place at which a field was found, as it was in the first object, and how many objects have it."""

    label: str
    path: str = ""
    nearest: str = ""
    count: int = 0


def _unknown(
    value: Any, steps: Steps, above: Sequence[tuple[Steps, Fields]]
) -> Iterator[tuple[Steps, Sequence[tuple[Steps, Fields]]]]:
    """Way to each field that is not known, and each place on the way with what may stand there."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            item = (*steps, index)
            yield from _unknown(each, item, [*above[:-1], (item, above[-1][1])])
    elif isinstance(value, dict):
        here = above[-1][1]
        for key, each in value.items():
            below = here.under(key)
            if below is None:
                yield (*steps, shown(key, _LONGEST)), above
            elif below.names or below.values is not None:
                yield from _unknown(each, (*steps, key), [*above, ((*steps, key), below)])
