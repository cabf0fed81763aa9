"""Files that give an instance nothing: without an object, or with a Placement and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from placer.manifests import yamltext
from placer.manifests.files import Text
from placer.manifests.raw_objects import RawObject

__all__ = ["UselessFile", "useless_files"]


@dataclass(frozen=True, slots=True)
class UselessFile:
    """A file that gives the instance nothing.

    Parameters
    ----------
    name
        As the caller named it.
    holds_placement
        Whether it holds a Placement; else it holds no object at all.
    """

    name: str
    holds_placement: bool


def useless_files(texts: Iterable[Text], raws: Iterable[RawObject]) -> Iterator[UselessFile]:
    """Find the files that give an instance nothing; an empty list is an answer, and no empty file.

    Parameters
    ----------
    texts
        The files, which have been read without fault.
    raws
        Their objects.
    """
    held: dict[str, bool] = {}
    for raw in raws:
        is_placement = (raw.group, raw.kind) == ("placer.dev", "Placement")
        held[raw.file] = is_placement and held.get(raw.file, True)
    for text in texts:
        if text.name in held:
            if held[text.name]:
                yield UselessFile(text.name, True)
        elif _is_empty(text):
            yield UselessFile(text.name, False)


def _is_empty(text: Text) -> bool:
    return not text.is_json and not any(document.pieces for document in yamltext.documents(bytes(text.data)))
