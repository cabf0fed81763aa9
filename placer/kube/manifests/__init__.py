"""Kubernetes objects from files and back: text in every form that kubectl prints or takes, all faults at once.

The way of a text, one file for each step::

    files        read_texts   paths -> texts, unpacked within the limits
    memory       as_texts     objects that are in memory already -> one text
    raw_objects  split        texts -> one slice of JSON text for each object   (with syntax: JSON, YAML, their limits)
    edits        edit         the what-if options   (with label_selectors)
    validation   validate     slices -> typed objects, fields that no kind has; objects as they were read before
    writing      dump         plain values -> a file

``faults`` collects faults on the way, and words them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypedDict, Unpack

from placer.kube.manifests.edits import edit
from placer.kube.manifests.faults import Faults
from placer.kube.manifests.files import read_texts
from placer.kube.manifests.memory import as_texts
from placer.kube.manifests.raw_objects import ENFORCED, SNAPSHOT, UNREADABLE, RawObject, from_documents, split
from placer.kube.manifests.syntax import Text, object_refusal
from placer.kube.manifests.validation import (
    NEVER_SET_ASIDE,
    Objects,
    UnreadObject,
    held_pod,
    useless_files,
    validate,
)
from placer.kube.manifests.writing import dump

__all__ = [
    "ENFORCED",
    "NEVER_SET_ASIDE",
    "SNAPSHOT",
    "UNREADABLE",
    "Edits",
    "Objects",
    "RawObject",
    "Text",
    "UnreadObject",
    "as_texts",
    "dump",
    "edit",
    "from_documents",
    "held_pod",
    "load",
    "object_refusal",
    "read_objects",
    "read_texts",
    "split",
    "validate",
]


class Edits(TypedDict, total=False):
    """The what-if options (:func:`~placer.kube.manifests.edits.edit`), objects that are added as files."""

    with_: Sequence[str | Path | Text]
    without: Sequence[str]
    set_: Sequence[str]


def load(paths: Sequence[str | Path | Text], *, lenient: bool = False, **edits: Unpack[Edits]) -> Objects:
    """Read an instance's objects from files: typed, in the order of the input.

    ``lenient``: skip objects that cannot be read.

    Raises
    ------
    BadInstance
        With every fault of every file.
    UsageError
        An edit names no object, or several.
    """
    faults = Faults()
    raws, useless = _edited(paths, faults, lenient=lenient, **edits)
    return replace(validate(raws, faults, lenient=lenient), useless_files=useless)


def read_objects(
    paths: Sequence[str | Path | Text], *, lenient: bool = False, **edits: Unpack[Edits]
) -> list[RawObject]:
    """As :func:`load`, but text that can be changed again, before validation."""
    faults = Faults()
    raws, _ = _edited(paths, faults, lenient=lenient, **edits)
    faults.raise_any()
    return raws


def _edited(
    paths: Sequence[str | Path | Text], faults: Faults, *, lenient: bool, **edits: Unpack[Edits]
) -> tuple[list[RawObject], tuple[str, ...]]:
    raws, useless = _objects(paths, faults, lenient=lenient)
    added, useless_too = _objects(edits.get("with_", ()), faults, added=True, lenient=lenient)
    if not faults:
        raws = edit(raws, with_=added, without=edits.get("without", ()), set_=edits.get("set_", ()))
    return raws, (*useless, *useless_too)


def _objects(
    paths: Sequence[str | Path | Text], faults: Faults, *, added: bool = False, lenient: bool = False
) -> tuple[list[RawObject], list[str]]:
    texts = [replace(each, found=each.found or lenient) for each in read_texts(paths, faults)]
    raws = split(texts, faults, added=added)
    return raws, [] if faults else useless_files(texts, raws)
