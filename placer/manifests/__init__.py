"""Kubernetes objects from files and back: text in every form that kubectl prints or takes, all faults at once.

Here belongs everything about text: files, packing, encoding, YAML and JSON, lists, limits, the wording of faults,
what-if edits, writing. What a field is called and which values it may have belongs to ``placer.kube``; what objects
mean together belongs to ``placer.instance``.

The way of a text, one file for each step::

    files        read_texts   paths -> texts, unpacked within the limits
    raw_objects  split        texts -> one slice of JSON text for each object   (with jsontext, yamltext, scalars)
    edits        edit         the what-if options   (with settable: whether anything reads the field)
    useless      ...          files that give an instance nothing
    validation   validate     slices -> typed objects   (with wording; unknown: fields that no kind has)
    writing      dump         plain values -> a file
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from placer.manifests.edits import edit
from placer.manifests.files import Text, read_texts
from placer.manifests.limits import Faults
from placer.manifests.raw_objects import SNAPSHOT, RawObject, from_documents, split
from placer.manifests.useless import UselessFile, useless_files
from placer.manifests.validation import Objects, validate
from placer.manifests.writing import dump

__all__ = [
    "SNAPSHOT",
    "Objects",
    "RawObject",
    "Text",
    "dump",
    "edit",
    "from_documents",
    "load",
    "read_texts",
    "split",
    "validate",
]


def load(
    paths: Sequence[str | Path],
    *,
    with_: Sequence[str | Path] = (),
    without: Sequence[str] = (),
    set_: Sequence[str] = (),
) -> Objects:
    """Read an instance's objects from files.

    Parameters
    ----------
    paths
        Files, folders (searched recursively) and ``-`` for standard input.
    with_
        Files with objects to add; one of the same kind, namespace and name is replaced.
    without
        Objects to leave out, ``KIND/[NAMESPACE/]NAME``.
    set_
        Fields to change, ``KIND/[NAMESPACE/]NAME:PATH=VALUE``.

    Returns
    -------
    Objects
        Typed, in the order of the input.

    Raises
    ------
    BadInstance
        With every fault of every file.
    UsageError
        An edit names what is not there, or names several things.
    """
    faults = Faults()
    raws, useless = _objects(paths, faults)
    added, useless_too = _objects(with_, faults, added=True)
    if not faults:
        raws = edit(raws, with_=added, without=without, set_=set_)
    return replace(validate(raws, faults), useless_files=(*useless, *useless_too))


def _objects(
    paths: Sequence[str | Path], faults: Faults, *, added: bool = False
) -> tuple[list[RawObject], list[UselessFile]]:
    """Objects of files, and the files that hold none or only what no instance has."""
    texts = read_texts(paths, faults)
    raws = split(texts, faults, added=added)
    return raws, [] if faults else list(useless_files(texts, raws))
