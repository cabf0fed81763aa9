"""Objects in memory, as JSON text: dicts, typed objects, those of a Kubernetes client."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from placer.kube.kinds import KINDS
from placer.kube.manifests.syntax import Text

_CLASS = re.compile(r"(V\d+(?:(?:alpha|beta)\d+)?)([A-Z]\w+)")


def as_texts(sources: Iterable[object], name: str = "memory") -> list[str | Path | Text]:
    """Take paths and texts as they are, and objects as one text with the given name; else TypeError."""
    paths: list[str | Path | Text] = []
    objects: list[Any] = []
    for place, source in enumerate(sources, 1):
        for each in _each(source):
            if isinstance(each, (str, Path, Text)):
                paths.append(each)
            else:
                objects.append(_object(each, place))
    if objects:
        document = {"apiVersion": "v1", "kind": "List", "items": objects}
        paths.append(Text(name, json.dumps(document).encode()))
    return paths


def _each(source: Any) -> Iterator[Any]:
    inner = getattr(source, "documents", source)
    if isinstance(inner, (list, tuple)) or hasattr(inner, "__next__"):
        for each in inner:
            yield from _each(each)
    else:
        yield inner


def _object(value: Any, place: int) -> dict[str, Any]:
    found = plain(value)
    if isinstance(found, dict):
        return found
    expected = "a path, a Kubernetes object (a dict, or a client's), or a list of them"
    raise TypeError(f"source {place}: found {type(value).__name__} {str(value)[:60]}, expected {expected}")


def plain(value: Any) -> Any:
    """The JSON of a value, under the names of the API."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(each) for each in value]
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if hasattr(value, "attribute_map"):  # of the Kubernetes client
        return _of_client(value)
    for name in ("raw", "obj"):  # of kr8s, of pykube
        if isinstance(getattr(value, name, None), Mapping):
            return plain(getattr(value, name))
    return plain(value.to_dict()) if hasattr(value, "to_dict") else _of_dataclass(value)


def _of_dataclass(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        named = ((each.name, getattr(value, each.name)) for each in fields(value))
        return {name: plain(each) for name, each in named if each is not None}
    return value


def _of_client(value: Any) -> dict[str, Any]:
    """Items of a client's lists state neither kind nor version, but their class does."""
    keys = value.attribute_map
    found = {key: plain(getattr(value, name)) for name, key in keys.items() if getattr(value, name) is not None}
    match = _CLASS.fullmatch(type(value).__name__) if {"kind", "metadata"} <= {*keys.values()} else None
    return found if match is None else {"apiVersion": _version(match[1].lower(), match[2]), "kind": match[2]} | found


def _version(version: str, kind: str) -> str:
    groups = (group for group, name in KINDS if name == kind)
    builtin = next((group for group in groups if "." not in group or group.endswith(".k8s.io")), "")
    return f"{builtin}/{version}" if builtin else version
