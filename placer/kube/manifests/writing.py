"""Plain values to JSON or YAML text and files, the same bytes every time.

Our own writer of block style puts text in quotes wherever YAML 1.1 or 1.2 would take it for something else.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from placer.kube.manifests.files import STDIN
from placer.kube.manifests.syntax import is_text

#: Text that no YAML reader, of whichever version, takes for anything else.
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*")
#: Words that YAML 1.1 takes for booleans.
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off"))
#: Characters that YAML does not allow in text, beyond those that JSON escapes, and those that a terminal may obey.
_UNPRINTABLE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]")


def dump(
    documents: Mapping[str, Any] | Iterable[Mapping[str, Any]], target: str | Path, *, as_json: bool | None = None
) -> None:
    """Write one document or several: as YAML documents, or in JSON as the items of a v1 List.

    ``target``: a file, ``.json`` or ``.yaml``, each also ``.gz``; ``-`` is standard output. ``as_json``: under any
    name.
    """
    name = str(target)
    if as_json is None:
        as_json = name.removesuffix(".gz").endswith(".json")
    text = (to_json(documents) if as_json else to_yaml(documents)).encode()
    if name == STDIN:
        sys.stdout.buffer.write(text)
        sys.stdout.flush()
        return
    if name.endswith(".gz"):
        text = gzip.compress(text, mtime=0)
    Path(name).write_bytes(text)


def to_json(documents: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> str:
    """Write JSON, indented by two; several documents become a v1 List."""
    if not isinstance(documents, Mapping):
        documents = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
    text = json.dumps(documents, indent=2, ensure_ascii=False, allow_nan=False)
    return _UNPRINTABLE.sub(_escaped, text) + "\n"


def to_yaml(documents: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> str:
    """Write YAML, several documents parted by ``---``."""
    several = [documents] if isinstance(documents, Mapping) else list(documents)
    return "---\n".join("".join(_lines(document, "")) for document in several)


def _lines(value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for key, part in value.items():
            yield from _entry(f"{indent}{_scalar(str(key))}:", part, f"{indent}  ")
    elif isinstance(value, (list, tuple)) and value:
        for part in value:
            lines = _lines(part, f"{indent}  ")
            if _is_block(part):
                yield f"{indent}- {next(lines).removeprefix(indent + '  ')}"
                yield from lines
            else:
                yield f"{indent}- {_scalar(part)}\n"
    else:
        yield f"{indent}{_scalar(value)}\n"


def _entry(head: str, value: Any, indent: str) -> Iterator[str]:
    if not _is_block(value):
        yield f"{head} {_scalar(value)}\n"
        return
    yield f"{head}\n"
    yield from _lines(value, indent if isinstance(value, Mapping) else indent[:-2])


def _is_block(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple)) and bool(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        if _PLAIN.fullmatch(value) and value.lower() not in _WORDS and is_text(value):
            return value
        return _UNPRINTABLE.sub(_escaped, json.dumps(value, ensure_ascii=False))
    if isinstance(value, (Mapping, list, tuple)):
        return "{}" if isinstance(value, Mapping) else "[]"
    return json.dumps(value, allow_nan=False)


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
