"""Hostile input is refused early, with a place, in little time and memory."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.base.errors import BadInstance
from placer.kube import manifests
from placer.kube.manifests import Text, raw_objects, syntax, validation
from placer.kube.manifests.faults import Faults
from tests.examples import examples

MIB = 2**20


def refused(text: str | bytes) -> str:
    data = text.encode() if isinstance(text, str) else text
    with pytest.raises(BadInstance) as caught:
        manifests.validate(manifests.split([Text("input", data)]))
    return str(caught.value.faults[0])


def listed(items: str) -> str:
    return '{"apiVersion": "v1", "kind": "List", "items": [' + items + "]}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (listed("1," * (8 * MIB) + "1"), r"found 8388612 values in \d+ bytes, expected at most \d+ values"),
        (listed("[]," * (6 * MIB) + "1"), r"found 12582916 values in \d+ bytes"),
        ("[" * (16 * MIB), r"found 16777216 values in"),
        (listed("12345678," * 400_000 + "1"), r"document 1\): found 12345678, expected a Kubernetes object"),
        (
            listed('{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"x":"' + "a" * (9 * MIB) + '"}'),
            "at most 8 MiB",
        ),
        ("kind: List\nitems: [" + "1," * 200_000 + "1]", "more than 100000 items that are no objects"),
        ("kind: Pod\napiVersion: v1\nx: '" + "a" * (9 * MIB) + "'\n", "expected an object of at most 8 MiB"),
        ('{"apiVersion":"v1","kind":"Pod","spec":{"priority":' + "1" * 5000 + "}}", "found a very large number"),
    ],
    ids=[
        "ones",
        "empty lists",
        "brackets",
        "numbers as items",
        "long string",
        "yaml ones as items",
        "yaml string",
        "digits",
    ],
)
def test_refused(text: str, message: str) -> None:
    assert re.search(message, refused(text))


def test_an_object_in_yaml_is_measured_while_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax, "OBJECT_TEXT", MIB)
    for text in ("x: [" + "1," * MIB + "1]", "".join(f"key{n}: value\n" for n in range(200_000))):
        assert "found an object of more than 1 MiB, expected a smaller object" in refused(f"kind: Pod\n{text}")


def test_values_in_yaml_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax, "yaml_values_allowed", lambda _: 50_000)
    assert "found too many values for the length of the text" in refused(
        "- [" + "1, " * 30_000 + "1]\n- [" + "1," * 30_000 + "1]"
    )


def test_a_million_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax, "yaml_documents_allowed", lambda _: 1000)
    monkeypatch.setattr(raw_objects, "JSON_DOCUMENTS", 1000)
    assert "more than 1000 documents" in refused("---\n" * 1100)
    assert "more than 1000 documents" in refused('{"apiVersion":"v1","kind":"X"}\n' * 1100)


def test_kinds_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "KINDS_MOST", 10)
    text = listed(",".join(f'{{"apiVersion":"v1","kind":"K{n}"}}' for n in range(12)))
    assert refused(text) == "input (document 11): K10: kind: found more than 10 kinds, expected at most 10"


def test_objects_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_objects, "OBJECTS", 3)
    text = listed(",".join(f'{{"apiVersion":"v1","kind":"K","metadata":{{"name":"{n}"}}}}' for n in range(9)))
    assert refused(text) == "input (document 4): found more than 3 objects, expected at most 3"


def test_memory_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "memory_allowed", lambda _: 30 * MIB)
    pods = ",".join(
        f'{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p{n}"}},"spec":{{}}}}' for n in range(200_000)
    )
    assert "found an input that needs far more memory than its text" in refused(listed(pods))


def test_faults_are_told_up_to_a_limit_and_then_counted() -> None:
    wrong = '{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p{}"}},"spec":{{"priority":"x"}}}}'
    with pytest.raises(BadInstance) as caught:
        manifests.validate(
            manifests.split([Text("f", listed(",".join(wrong.format(n) for n in range(6000))).encode())])
        )
    assert len(caught.value.faults) == 5001
    assert str(caught.value.faults[-1]) == "the input: found 1000 more faults, expected none"


def test_reading_stops_when_there_are_far_too_many_faults() -> None:
    with pytest.raises(BadInstance) as caught:
        manifests.validate(manifests.split([Text("f", listed(",".join(["12345678"] * 30_000)).encode())]))
    assert str(caught.value.faults[-1]) == "the input: found at least 15000 more faults, expected none"


@pytest.mark.parametrize(
    "document",
    [
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {}}}\nspec: {{}}\n---\n",
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p{}}}\nspec: {{priority: x}}\n---\n",
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: same}}\nspec: {{}}\n---\n",
        "apiVersion: v7\nkind: Pod\nmetadata: {{name: p{}}}\nspec: {{}}\n---\n",
    ],
    ids=["names", "fields", "the same", "versions"],
)
def test_of_yaml_that_is_wrong_all_over_only_a_part_is_read(document: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_objects, "_WRONG", 100)
    text = "".join(map(document.format, range(3_000))).encode()
    faults = Faults()
    raws = manifests.split([Text("a", text), Text("b", text)], faults)
    assert 800 <= len(raws) <= 808
    with pytest.raises(BadInstance) as caught:
        manifests.validate(raws, faults)
    assert len(caught.value.faults) >= 800
    assert "found wrong objects all the way to here, where reading stops" in str(caught.value)
    right = b"".join(b"apiVersion: v1\nkind: Pod\nmetadata: {name: p%d}\nspec: {}\n---\n" % n for n in range(3_000))
    assert len(manifests.split([Text("a", right)])) == 3_000


def test_documents_are_limited_by_the_length_of_the_text() -> None:
    assert syntax.yaml_documents_allowed(0) == 100_000
    assert syntax.yaml_documents_allowed(60 * MIB) < 310_000
    for pods in (100_000, 250_000, 500_000):
        assert syntax.yaml_documents_allowed(250 * pods) >= pods


def test_an_object_with_very_many_faults_is_told_as_one() -> None:
    labels = ",".join(f'"key{n}":{n}' for n in range(30_000))
    text = '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{' + labels + '}},"spec":{}}'
    assert refused(text) == "input (document 1): Pod default/a: found 30000 faults in one object, expected none"


def test_a_hundred_levels_of_json_and_no_more() -> None:
    pod = '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{},\n"x":%s}'
    assert manifests.split([Text("f", (pod % ("[" * 99 + "]" * 99)).encode())])
    assert "line 2, column 104: found more than 100 levels" in refused(pod % ("[" * 100 + "]" * 100))


@pytest.mark.parametrize("piece", [1, 2, 3, 5, 64])
@given(st.integers(0, 2**32))
@examples(40)
def test_levels_are_found_whatever_strings_hold(piece: int, seed: int) -> None:
    rng = random.Random(seed)
    strings = ['""', '"{"', '"}]"', r'"\""', r'"\\"', r'"[\\\"[["', '"a"', r'"\\\\"']
    depth = rng.randint(95, 105)
    text = "".join(f"{{{rng.choice(strings)}:" for _ in range(depth)) + rng.choice(strings) + "}" * depth
    before, syntax._PIECE = syntax._PIECE, piece
    try:
        found = syntax.refusal(text.encode())
    finally:
        syntax._PIECE = before
    assert (found is None) == (depth <= 100)
    if found is not None:
        column = int(found[0].removeprefix("line 1, column "))
        outside = re.sub(r'"(?:[^"\\]|\\.)*"', lambda match: "x" * len(match[0]), text[: column - 1])
        assert outside.count("{") == 100
        assert text[column - 1] == "{"


def test_compact_output_of_kubectl_is_within_the_limits() -> None:
    fields = '"f:metadata":{"f:labels":{".":{},"f:app":{}}},"k:{\\"type\\":\\"Ready\\"}":{".":{},"f:status":{}}'
    labels = ",".join(f'"label-{n}.example.org/name":"value-{n}"' for n in range(8))
    pod = f'{{"metadata":{{"labels":{{{labels}}},"managedFields":[{{"fieldsV1":{{{fields}}}}}]}},"spec":{{}}}},'
    text = f"[{pod * 40_000}1]".encode()
    assert len(text) > 6 * 10**6
    assert syntax.refusal(text) is None
