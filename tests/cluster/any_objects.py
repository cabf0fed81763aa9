"""Any object that an API server may hold: what it says itself of the fields of each kind, filled in by hypothesis.

A case begins with an object that is in order, and a few of its fields, at any depth, get values of the type that the
schema of the field has: texts of every kind, amounts beyond all bounds, numbers at the ends of their range, lists and
objects that are empty or odd. What an API server refuses beside the type (a negative request, a label of 400
characters) is tried all the same, since it has not always refused it and custom resources are checked by little else.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin

import yaml
from hypothesis import strategies as st

from placer.kube.kinds import KINDS
from placer.kube.reader import fields_of, is_schema, without_none
from tests.support import Document

__all__ = ["changed", "schema_of"]

ROOT = Path(__file__).parent.parent.parent
KUBERNETES = ROOT / "tests" / "data" / "openapi" / "kubernetes.json"

#: Texts that mean something to a reader, or break one that takes too much for granted.
TEXTS = (
    "",
    " ",
    "a",
    "A_b.c",
    "x" * 400,
    f"{'d' * 300}/{'e' * 60}",
    "ä\u202e\x1b[2J\n",
    "\x00",
    "../../kube-system/secrets/x",
    "0",
    "-1",
    "9" * 40,
    "1.5",
    "NaN",
    "true",
    "null",
    "[",
    "(?<x>a+)+$",
    "*",
    "{}",
    "a:b",
    "a/b/c",
    "10.0.0.1",
    "::",
    "UTF-8",
)
AMOUNTS = (
    *("1", "0", "-1", "1e30", "-1e30", "1n", "1u", "0.0000001", "1Ki", "1Ei", "9" * 40, ".5", "5.", "+3", "1E", "1E3"),
    *("1e-30", "", "1 Gi", "12e6", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "0.1", "1M"),
)
NUMBERS = (0, 1, -1, 2, 7, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
TIMES = ("2026-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-01-01T00:00:00.123456Z")
#: Deepest value that is made for one field.
_DEEPEST = 5

Schema = Mapping[str, Any]


@cache
def _kubernetes() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(KUBERNETES.read_text())
    return found


@cache
def _custom() -> Mapping[tuple[str, str], Schema]:
    """(group/version, kind) to the schema in its definition."""
    files = (path for folder in ("crds", "overlays") for path in sorted((ROOT / "deploy" / folder).rglob("*.yaml")))
    found = {}
    for path in files:
        for each in yaml.safe_load_all(path.read_text()):
            if each and each["kind"] == "CustomResourceDefinition":
                spec = each["spec"]
                for version in spec["versions"]:
                    schema = version["schema"]["openAPIV3Schema"]
                    found[f"{spec['group']}/{version['name']}", spec["names"]["kind"]] = schema
    return found


def schema_of(document: Document) -> Schema:
    """What may stand in objects of the kind of one."""
    key = document["apiVersion"], document["kind"]
    if key in _custom():
        metadata = {"$ref": "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
        custom = _custom()[key]
        return {**custom, "properties": {**custom["properties"], "metadata": metadata}}
    found: Schema = _kubernetes()["schemas"][_kubernetes()["kinds"][document["kind"]]]
    return found


def _resolved(schema: Schema) -> Schema:
    while "$ref" in schema:
        schema = _kubernetes()["schemas"][schema["$ref"]]
    return schema


# ------------------------------------------------------------------------------------------------------------- a value


@st.composite
def values(draw: st.DrawFn, schema: Schema, words: Sequence[str], depth: int = 0) -> Any:
    """A value of a schema's type; texts may be some of ``words``."""
    schema = _resolved(schema)
    if "enum" in schema and draw(st.integers(0, 4)):
        return draw(st.sampled_from(list(schema["enum"])))
    kind = schema.get("type")
    if "oneOf" in schema or "anyOf" in schema or schema.get("x-kubernetes-int-or-string"):
        return draw(st.one_of(st.sampled_from(AMOUNTS), st.sampled_from(NUMBERS), st.sampled_from((0.5, 1e300, -2.5))))
    if kind == "object" or "properties" in schema:
        return _object(draw, schema, words, depth)
    if kind == "array":
        most = 0 if depth >= _DEEPEST else 3
        return [draw(values(schema["items"], words, depth + 1)) for _ in range(draw(st.integers(0, most)))]
    if kind == "boolean":
        return draw(st.booleans())
    if kind in ("integer", "number"):
        numbers = [each for each in NUMBERS if schema.get("format") != "int32" or abs(each) < 2**31]
        return draw(st.sampled_from(numbers))
    if schema.get("format") == "date-time":
        return draw(st.sampled_from(TIMES))
    return draw(_texts(tuple(words)))


@cache
def _texts(words: tuple[str, ...]) -> st.SearchStrategy[str]:
    known = st.sampled_from((*words, *words, *TEXTS, *AMOUNTS))
    return st.one_of(known, known, st.text(st.characters(exclude_categories=["Cs"]), max_size=8))


def _object(draw: st.DrawFn, schema: Schema, words: Sequence[str], depth: int) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    if not properties:
        inner = schema.get("additionalProperties")
        inner = inner if isinstance(inner, dict) else {"type": "string"}
        keys = draw(st.lists(_texts(tuple(words)), max_size=2, unique=True))
        return {key: draw(values(inner, words, depth + 1)) for key in keys}
    asked = [name for name in schema.get("required") or () if draw(st.integers(0, 9))]  # custom ones may lack it
    if depth < _DEEPEST:
        asked += draw(st.lists(st.sampled_from(sorted(properties)), max_size=3))
    return {name: draw(values(properties[name], words, depth + 1)) for name in dict.fromkeys(asked)}


# ---------------------------------------------------------------------------------------------------- an object of them


@st.composite
def changed(draw: st.DrawFn, document: Document, words: Sequence[str] = ()) -> Document:
    """An object with one to four of its fields changed, added or taken away; its name stays what it is.

    Parameters
    ----------
    document
        Of a kind that placer lists.
    words
        Texts that other objects use, so that references meet.
    """
    found = copy.deepcopy(document)
    group = document["apiVersion"].rpartition("/")[0]
    info = KINDS.get((group, document["kind"]))
    for _ in range(draw(st.integers(1, 4))):
        _change(draw, found, schema_of(document), info.model if info is not None else None, words)
    for key in ("name", "namespace", "uid", "resourceVersion"):  # what a server itself sees to
        found["metadata"].pop(key, None)
        if key in document["metadata"]:
            found["metadata"][key] = document["metadata"][key]
    return {**found, "apiVersion": document["apiVersion"], "kind": document["kind"]}


def _change(draw: st.DrawFn, value: dict[str, Any], schema: Schema, model: Any, words: Sequence[str]) -> None:
    """Go down to some field and change it; mostly by fields that placer reads."""
    while True:
        properties = _resolved(schema).get("properties") or {}
        read = {name: inner for name, inner in _read(model).items() if name in properties}
        apart = {"apiVersion", "kind"}
        names = sorted((read if read and draw(st.integers(0, 4)) else properties).keys() - apart)
        if not names:
            return
        name = draw(st.sampled_from(names))
        schema, model = _resolved(properties[name]), read.get(name)
        there = value.get(name)
        deeper = draw(st.integers(0, 5)) > 0
        if isinstance(there, dict) and deeper and schema.get("properties"):
            value = there
        elif isinstance(there, list) and there and isinstance(there[0], dict) and deeper:
            value, schema = draw(st.sampled_from(there)), schema["items"]
        elif isinstance(there, dict) and deeper:
            there.update(draw(values(schema, words)))
            return
        else:
            _put(draw, value, name, schema, words)
            return


def _put(draw: st.DrawFn, value: dict[str, Any], name: str, schema: Schema, words: Sequence[str]) -> None:
    how = draw(st.integers(0, 9))
    if how == 0 and name != "metadata":
        value.pop(name, None)
    elif how == 1 and name != "metadata":
        value[name] = None
    elif name != "metadata":
        value[name] = draw(values(schema, words))


def _read(model: Any) -> dict[str, Any]:
    """Fields that a model of ours reads, and the models of those that are objects or lists of them."""
    return dict(_pairs(model)) if model is not None and is_schema(model) else {}


def _pairs(model: Any) -> Iterator[tuple[str, Any]]:
    for field in fields_of(model):
        inner = without_none(field.type)
        arguments = get_args(inner)
        if get_origin(inner) is tuple and arguments:
            inner = without_none(arguments[0])
        yield field.encode_name, inner
