"""Every field that objects of a kind may have, and those of them that placer reads.

Schemas declare what some rule reads, and real objects have hundreds of fields beside: a pod's image, the status of a
node. ``fields.json`` holds the names of all of them, from the sources and under the licences that it states; it is made
by ``tests/write_fields.py``. What a schema declares is known without standing there.
"""

from __future__ import annotations

import difflib
import importlib.resources
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast, get_args, get_origin

from placer.kube.base import Present
from placer.kube.kinds import KINDS, KindInfo
from placer.kube.shapes import fields_of, is_closed, is_schema, names_of, without_none

__all__ = ["Fields", "Steps", "alike", "known_fields", "nearest", "nearest_kind", "read_fields"]

#: How like a name must be to one that is known to be shown beside it, from 0 to 1.
_ALIKE = 0.7
_KINDS_ALIKE = 0.8
_GROUPS_ALIKE = 0.85
#: Names longer than this are like none.
_LONGEST = 64

#: API groups of Kubernetes itself: who writes one of placer's kinds under them means placer's.
_OWN_GROUPS = frozenset(("", "apps", "autoscaling", "batch", "extensions", "policy", "scheduling.k8s.io"))
#: Kinds of groups that placer reads from, or of Kubernetes, that are themselves although they sound like others.
_THEMSELVES = frozenset(("scheduling.k8s.io", kind) for kind in ("PodGroup", "Workload", "CompositePodGroup"))

#: A way through an object: keys, and indices of lists.
Steps = tuple[str | int, ...]


@dataclass(eq=False, slots=True)
class Fields:
    """What may stand at one place of an object; a list is the place of its items.

    Parameters
    ----------
    names
        Fields that the place may have, and what may stand in each.
    values
        What stands under a key, where keys are free: labels, resources.
    open
        Whether it is not known, or does not matter, what stands there.
    is_list
        Whether it is a list that stands there; said of fields that are read only.
    """

    names: dict[str, Fields] = field(default_factory=dict)
    values: Fields | None = None
    open: bool = False
    is_list: bool = False

    def under(self, key: str) -> Fields | None:
        """What may stand under a key; None where there is no such field."""
        return self.names.get(key, self.values)


_OPEN = Fields(open=True)
#: Text or a number: nothing stands below it.
_VALUE = Fields()


@cache
def known_fields(info: KindInfo) -> Fields | None:
    """Give every field of a kind, read or not; None where they are not written down."""
    model = cast(Any, info.model)
    if is_closed(model):
        return _joined(Fields({"metadata": _of_type("ObjectMeta")}), model)
    called = _data()["kinds"].get(f"{info.kind}.{info.group}".rstrip("."))
    return None if called is None else _joined(_of_type(called), model)


@cache
def read_fields(info: KindInfo) -> Fields:
    """Give the fields of a kind that its schema declares: those that some rule reads."""
    return _of_schema(info.model)


def _of_schema(model: Any) -> Fields:
    if model is Present:
        return _VALUE
    return Fields({name: _of_annotation(annotation) for name, annotation in _declared(model)})


def _declared(model: Any) -> Iterator[tuple[str, Any]]:
    """Name in the text and type of each field of a schema."""
    for name, declared in fields_of(model).items():
        for each in names_of(name, declared):
            yield each, declared.annotation


def _of_annotation(annotation: Any) -> Fields:
    inner = without_none(annotation)
    if is_schema(inner):
        return _of_schema(inner)
    arguments = get_args(inner)
    if get_origin(inner) is tuple:
        item = _of_annotation(arguments[0])
        return Fields(item.names, item.values, is_list=True)
    return Fields(values=_of_annotation(arguments[1])) if get_origin(inner) is dict else _VALUE


# ------------------------------------------------------------------------------------------- what is written down


@cache
def _data() -> Mapping[str, Mapping[str, str]]:
    text = (importlib.resources.files("placer.kube") / "fields.json").read_text(encoding="utf-8")
    data: Mapping[str, Mapping[str, str]] = json.loads(text)
    return data


@cache
def _of_type(called: str) -> Fields:
    """Fields of a type; empty: anything may stand there, with a star: free keys with values of the type."""
    if not called:
        return _OPEN
    if called.startswith("*"):
        return Fields(values=_of_type(called[1:]))
    words = (word.partition(":") for word in _data()["types"][called].split())
    return Fields({name: _of_type(inner) for name, _, inner in words})


@cache
def _joined(known: Fields, model: Any) -> Fields:
    """Add what a schema declares; a field with two spellings may have, under either, what it may have under both."""
    names = dict(known.names)
    for name, declared in fields_of(model).items():
        spellings = names_of(name, declared)
        parts = [names[each] for each in spellings if each in names]
        part = _together(parts) if parts else _of_annotation(declared.annotation)
        inner = _schema_in(declared.annotation)
        if parts and inner is not None and part.names:
            part = _joined(part, inner)
        names.update(dict.fromkeys(spellings, part))
    return Fields(names, known.values, known.open)


def _together(parts: Sequence[Fields]) -> Fields:
    if len(parts) == 1:
        return parts[0]
    return Fields({name: each for part in parts for name, each in part.names.items()})


def _schema_in(annotation: Any) -> Any:
    """The schema of what stands in a field or in its list; None where it is none, or only its presence matters."""
    inner = without_none(annotation)
    if get_origin(inner) is tuple:
        inner = without_none(get_args(inner)[0])
    return inner if is_schema(inner) and inner is not Present else None


# ---------------------------------------------------------------------------------------------------- near misses


def nearest(key: str, above: Sequence[tuple[Steps, Fields]]) -> Steps:
    """Give the known path that is most like one that is not.

    Parameters
    ----------
    key
        The field that is not known.
    above
        The places on the way to it, the object's root first, and what may stand in each.

    Returns
    -------
    Steps
        A field beside it with a name like it, else one of that very name in a place above, or in the only place below
        its neighbours that has one; empty where there is none.
    """
    place, here = above[-1]
    like = alike(key, here.names)
    if like is not None:
        return (*place, like)
    for other, fields in reversed(above[:-1]):
        if key in fields.names:
            return (*other, key)
    below = [name for name, each in here.names.items() if key in each.names]
    return (*place, below[0], key) if len(below) == 1 else ()


def nearest_kind(group: str, kind: str) -> KindInfo | None:
    """Find the kind that is read and that may be meant by one that is not read.

    Parameters
    ----------
    group, kind
        As they are written; no kind that is read.

    Returns
    -------
    KindInfo, or None
        None where the kind is like none, or its group is foreign: many have a Job or a Policy of their own.

    Examples
    --------
    >>> nearest_kind("topology.volcano.sh", "Hypernode").kind, nearest_kind("", "HyperNode").group
    ('HyperNode', 'topology.volcano.sh')
    >>> nearest_kind("", "Service"), nearest_kind("kyverno.io", "Policy")
    (None, None)
    """
    if (group, kind) in _THEMSELVES or not _is_familiar(group):
        return None
    here = {info.kind: info for (each, _), info in KINDS.items() if each == group}
    anywhere = {info.kind: info for info in reversed(tuple(KINDS.values()))}
    for kinds in (here, anywhere):
        like = alike(kind, kinds, _KINDS_ALIKE)
        if like is not None:
            return kinds[like]
    return None


def _is_familiar(group: str) -> bool:
    """Whether a group is one that placer reads from, or like one, or of Kubernetes itself."""
    groups = {each for each, _ in KINDS}
    return group in groups or group in _OWN_GROUPS or alike(group, groups, _GROUPS_ALIKE) is not None


def alike(word: str, known: Iterable[str], least: float = _ALIKE) -> str | None:
    """Find the known word that is most like another, whatever the case; None where none is at least so much like it."""
    if len(word) > _LONGEST:
        return None
    by_lower = {each.lower(): each for each in known}
    found = difflib.get_close_matches(word.lower(), by_lower, 1, least)
    return by_lower[found[0]] if found else None
