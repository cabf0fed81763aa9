"""YAML to JSON text: the core schema of 1.2, anchors, merge keys, and agreement with another reader."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from placer.kube.manifests import syntax
from placer.kube.manifests.syntax import scalar
from placer.kube.manifests.writing import to_yaml
from tests.examples import examples


def loaded(text: str) -> list[Any]:
    found = ["".join(document.pieces) for document in syntax.documents(text.encode())]
    return [json.loads(document) if document else None for document in found]


def refused(text: str) -> tuple[str, str, str]:
    with pytest.raises(syntax.YamlError) as caught:
        loaded(text)
    return caught.value.place, caught.value.found, caught.value.expected


#: Words that are text, however much they look like something else.
TEXTS = (
    *("on", "off", "yes", "No", "y", "tRUE", "nULL", "0b1", "1_000", "12:30:45", "2026-01-31", "1e", ".", "100m"),
    *("1Gi", "=", "<<"),
)
VALUES = (
    *(("true", True), ("FALSE", False), ("~", None), ("", None), ("Null", None), ("010", 10), ("0o17", 15)),
    *(("0x1F", 31), ("+7", 7), ("-0", 0), ("1.", 1.0), (".5", 0.5), ("-1.5e3", -1500.0), ("1e3", 1000.0)),
    *(('"true"', "true"), ("'1'", "1"), ("!!str 1", "1"), ("!!int '7'", 7), ("!!null ''", None), ("!!float 1", 1)),
    *(("!!map {a: 1}", {"a": 1}), ("!!seq [a]", ["a"])),
)


@pytest.mark.parametrize(("text", "value"), [*zip(TEXTS, TEXTS, strict=True), *VALUES])
def test_core_schema(text: str, value: object) -> None:
    assert loaded(f"- {text}\n") == [[value]]
    assert type(loaded(f"- {text}\n")[0][0]) is type(value)


@pytest.mark.parametrize("text", [".inf", "-.INF", ".NaN", "1e400", "-1e999", "1" * 401])
def test_numbers_that_json_does_not_know(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        scalar(text)


@pytest.mark.parametrize(
    "text", ["!!binary aGk=", "!!int one", "!!bool 1", "!!timestamp 2026-01-31", "!own x", "!!set {a}"]
)
def test_tags_beyond_the_core_schema(text: str) -> None:
    place, found, expected = refused(f"key: {text}")
    assert place == "line 1, column 6"
    assert "tag" in found + expected


def test_anchors_are_expanded() -> None:
    text = "a: &a {x: [1, &two 2]}\nb: *a\nc: *two\n&key d: e\nf: *key\n"
    assert loaded(text) == [{"a": {"x": [1, 2]}, "b": {"x": [1, 2]}, "c": 2, "d": "e", "f": "d"}]


def test_anchors_end_with_their_document() -> None:
    assert refused("a: &a 1\n---\nb: *a\n")[1] == "the alias *a"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("base: &b {x: 1, y: 2}\nc: {<<: *b, y: 3}", {"x": 1, "y": 3}),
        ("base: &b {x: 1, y: 2}\nc: {y: 3, <<: *b}", {"x": 1, "y": 3}),
        ("base: &b {x: 1}\nc: {<<: [*b, {x: 2, z: 4}]}", {"x": 1, "z": 4}),
        ("base: &b {}\nc: {<<: *b}", {}),
        ("base: &b {}\nc: {<<: {p: {<<: *b, q: 1}}, r: 2}", {"p": {"q": 1}, "r": 2}),
        ('c: {"<<": 1}', {"<<": 1}),
    ],
)
def test_merge_keys(text: str, value: object) -> None:
    assert loaded(text)[0]["c"] == value


def test_merge_key_twice() -> None:
    assert refused("a: &a {}\nb:\n  <<: *a\n  <<: *a\n")[:2] == ("line 4, column 3", "the key '<<' a second time")


def test_two_objects_without_a_line_between_them() -> None:
    """As ``cat *.yaml`` writes them."""
    where, found, expected = refused("apiVersion: v1\nkind: Node\napiVersion: v1\nkind: Pod\n")
    assert (where, found) == ("line 3, column 1", "the key 'apiVersion' a second time")
    assert expected == "each key once in a mapping, and --- between two objects"


def test_alias_limit_counts_what_aliases_stand_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax, "ALIAS_VALUES", 20)
    assert len(loaded("a: &a [1, 2, 3, 4]\nb: [*a, *a, *a, *a]")[0]["b"]) == 4
    assert refused("a: &a [1, 2, 3, 4]\nb: [*a, *a, *a, *a, *a]")[1] == "more than 20 values behind aliases"
    assert refused("a: &a [1, 2]\nb: &b [*a, *a, *a]\nc: [*b, *b]")[1] == "more than 20 values behind aliases"


def test_alias_text_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax, "ALIAS_TEXT", 2**20)
    text = f"a: &a {'x' * 2**18}\nb: [*a, *a]\n"
    assert len(loaded(text)[0]["b"]) == 2
    assert refused(text + "c: [*a, *a]\n")[1] == "anchors and aliases of more than 1 MiB in all"


def test_one_hundred_levels_and_no_more() -> None:
    assert loaded("[" * 100 + "]" * 100)
    assert refused("[" * 101 + "]" * 101) == (
        "line 1, column 101",
        "more than 100 levels of nesting",
        "at most 100 levels",
    )
    assert refused("- " * 101 + "a")[1] == "more than 100 levels of nesting"
    assert refused("\n".join(" " * level + "a:" for level in range(102)))[0] == "line 101, column 101"


def test_many_tag_directives_are_refused() -> None:
    text = "".join(f"%TAG !a{number}! tag:x\n" for number in range(200)) + "---\na: 1\n"
    assert refused(text)[1] == "more than 100 %TAG directives"


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), values, max_size=5))
@examples(150)
def test_what_we_write_we_read(value: dict[str, Any]) -> None:
    (found,) = loaded(to_yaml(value))
    assert found == (value or {})


letters = st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff\u2028\u2029")
#: PyYAML writes the text 0E0 without quotes; Kubernetes' parser, and ours, take that for a number.
texts = st.text(letters).filter(lambda text: not re.fullmatch(r"[-+]?[0-9.]+[eE][-+]?[0-9]+", text))
plain_values = st.recursive(
    texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(plain_values, st.sampled_from([None, "'", '"', "|", ">"]), st.booleans(), st.integers(2, 6))
@examples(150)
def test_agrees_with_pyyaml_on_every_style(value: Any, style: str | None, flow: bool, indent: int) -> None:
    text = yaml.safe_dump(
        [value], default_style=style, default_flow_style=flow, indent=indent, allow_unicode=True, width=30
    )
    expected = yaml.load(text, Loader=yaml.BaseLoader)
    (found,) = loaded(text)
    assert as_text(found) == expected


def as_text(value: Any) -> Any:
    """What a loader that resolves nothing makes of a value whose scalars are all text."""
    if isinstance(value, dict):
        return {key: as_text(part) for key, part in value.items()}
    return [as_text(part) for part in value] if isinstance(value, list) else value
