"""Every form of input: files, folders, standard input, packed, lists, several documents."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from placer.base.errors import BadInstance
from placer.kube import manifests
from placer.kube.manifests import Objects, Text


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": {}}


def read(text: str | bytes, name: str = "input") -> Objects:
    data = text.encode() if isinstance(text, str) else text
    return manifests.validate(manifests.split([Text(name, data)]))


def names(objects: Objects) -> list[str]:
    return [item.name for item in objects.pods]


def faults(*paths: str | Path) -> list[str]:
    with pytest.raises(BadInstance) as caught:
        manifests.load(paths)
    return [str(fault) for fault in caught.value.faults]


def test_items_of_a_document_that_is_no_list_stay_in_it() -> None:
    raws = manifests.split([Text("config", b"apiVersion: v1\nkind: Menu\nitems:\n- soup\n- {fish: 2}\nx: [1]\n")])
    assert [json.loads(bytes(raw.text))["items"] for raw in raws] == [["soup", {"fish": 2}]]


def test_list_in_a_list_but_no_deeper() -> None:
    def wrapped(items: list[Any]) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "List", "items": items}

    assert names(read(json.dumps(wrapped([pod("a"), wrapped([pod("b")])])))) == ["a", "b"]
    with pytest.raises(BadInstance, match="found a list in a list in a list, expected objects, or a list of them"):
        read(json.dumps(wrapped([wrapped([wrapped([pod("a")])])])))


def test_folder(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a.json").write_text(json.dumps(pod("a")))
    (tmp_path / "b" / "c.yml").write_text(json.dumps(pod("c")))
    (tmp_path / "b" / "b.yaml.gz").write_bytes(gzip.compress(json.dumps(pod("b")).encode()))
    (tmp_path / "notes.txt").write_text("not read")
    objects = manifests.load([tmp_path])
    assert names(objects) == ["a", "b", "c"]
    assert objects.source(objects.pods[1]) == f"{tmp_path}/b/b.yaml.gz (document 1)"


def test_empty_folder_and_missing_file(tmp_path: Path) -> None:
    assert faults(tmp_path, tmp_path / "none.yaml") == [
        f"{tmp_path}: found no such file in it, expected a folder with .yaml, .yml or .json files",
        f"{tmp_path}/none.yaml: found no such file, expected a file that can be read",
    ]


def test_a_missing_file_names_the_one_that_may_be_meant(tmp_path: Path) -> None:
    (tmp_path / "dump.yaml").write_text("")
    (found,) = faults(tmp_path, tmp_path / "dump.yml")
    assert found.endswith("dump.yml: found no such file, expected a file that can be read; found like it: dump.yaml")


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(json.dumps(pod("a")).encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed)))
    objects = manifests.load(["-"])
    assert objects.source(objects.pods[0]) == "- (document 1)"


def test_gzip_members_and_padding(tmp_path: Path) -> None:
    path = tmp_path / "two.gz"
    path.write_bytes(gzip.compress(b"---\n" + json.dumps(pod("a")).encode()) + gzip.compress(b"\n---\n") + b"\0" * 700)
    assert names(manifests.load([path])) == ["a"]


def test_damaged_gzip(tmp_path: Path) -> None:
    whole = gzip.compress(json.dumps([pod(str(n)) for n in range(1000)]).encode())
    (tmp_path / "short.json.gz").write_bytes(whole[:-20])
    (tmp_path / "wrong.json.gz").write_bytes(whole[:40] + b"\xff" * 40 + whole[80:])
    short, wrong = faults(tmp_path)
    assert short == f"{tmp_path}/short.json.gz: found a gzip file that ends too early, expected a whole gzip file"
    assert wrong.startswith(f"{tmp_path}/wrong.json.gz: found a damaged gzip file (Error -3")


def test_gzip_bomb(tmp_path: Path) -> None:
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b'{"a":"' + b"a" * (128 * 2**20), compresslevel=9))
    assert faults(path) == [f"{path}: found text of more than 300 times the size it is packed in, expected less of it"]


def test_too_much_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests.files, "YAML_TEXT", 3000)
    monkeypatch.setattr(manifests.files, "JSON_TEXT", 2000)
    for name, text in (("a.yaml", "# " + "x" * 1998), ("b.yaml", "# " + "x" * 1998), ("c.json", "{" + " " * 2100)):
        (tmp_path / name).write_text(text)
    assert faults(tmp_path) == [
        f"{tmp_path}/b.yaml: found more than 256 MiB of YAML in all, expected at most 256 MiB of YAML, unpacked",
        f"{tmp_path}/c.json: found more than 2 GiB of JSON in all, expected at most 2 GiB of JSON, unpacked",
    ]


def test_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(pod("a")).encode())
    assert names(manifests.load([path])) == ["a"]


def test_other_encodings_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes("kind: Pod".encode("utf-16"))
    assert faults(path) == [f"{path}: found byte 0xff at line 1, which is not UTF-8, expected text in UTF-8"]


def test_characters_are_never_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("#" + "ü" * (9 * 2**20) + "\n" + json.dumps(pod("a")))
    assert names(manifests.load([path])) == ["a"]


def test_same_name_in_another_group_or_namespace_is_another_object() -> None:
    gang = {"kind": "PodGroup", "metadata": {"name": "g"}}
    objects = manifests.validate(
        manifests.from_documents(
            [
                gang | {"apiVersion": "scheduling.volcano.sh/v1beta1"},
                gang | {"apiVersion": "scheduling.x-k8s.io/v1alpha1"},
                pod("a"),
                pod("a", namespace="other"),
            ]
        )
    )
    assert (len(objects.pod_groups), len(objects.coscheduling_pod_groups), len(objects.pods)) == (1, 1, 2)


def test_hash_follows_the_objects_and_not_the_files(tmp_path: Path) -> None:
    one = manifests.validate(manifests.from_documents([pod("a"), pod("b")]))
    two = manifests.validate(manifests.from_documents([pod("a")]) + manifests.from_documents([pod("b")], "elsewhere"))
    other = manifests.validate(manifests.from_documents([pod("b"), pod("a")]))
    assert one.sha256 == two.sha256 != other.sha256
    assert len(one.sha256) == 64


def test_document_keeps_what_no_rule_reads() -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"template": template},
    }
    objects = pickle.loads(pickle.dumps(manifests.validate(manifests.from_documents([document, pod("a")]))))
    assert objects.document(objects.deployments[0]) == document
    assert objects.source(objects.pods[0]) == "memory (document 2)"
    with pytest.raises(KeyError):
        objects.document(objects.pods[0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("apiVersion: 1\nkind: Pod\n", "apiVersion: found 1, expected text"),
        ("apiVersion: [v1]\nkind: Pod\n", "apiVersion: found a list, expected text"),
        ("apiVersion:\nkind: Pod\n", "apiVersion: found nothing, expected an API version such as v1"),
        ("apiVersion: v1\nkind: 7\n", "kind: found 7, expected text"),
    ],
)
def test_an_api_version_or_kind_that_is_no_text(text: str, message: str) -> None:
    with pytest.raises(BadInstance, match=re.escape(message)):
        read(text)


@pytest.mark.parametrize("character", ["\x00", "\x07", "\n", "\x1b", "\x7f", "\x9b"])
@pytest.mark.parametrize("kind", ["Pod", "Node", "Namespace"])
def test_names_hold_no_control_characters(kind: str, character: str) -> None:
    name = f"a{character}[31mb"
    document = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": name}, "spec": {}}
    with pytest.raises(BadInstance) as caught:
        read(json.dumps(document))
    told = [(fault.field, fault.found, fault.expected) for fault in caught.value.faults]
    expected = "a name without control characters"
    assert told == [("metadata.name", ascii(name), expected), ("metadata.namespace", ascii(name), expected)]
    assert str(caught.value).replace("\n", "").isprintable()
    assert character == "\n" or character not in str(caught.value)


def test_what_is_not_read_holds_no_control_characters_either() -> None:
    bad = "a\x1bb"
    document = {"apiVersion": bad, "kind": bad, "metadata": {"name": bad, "namespace": bad}}
    with pytest.raises(BadInstance) as caught:
        read(json.dumps(document))
    fields = [fault.field for fault in caught.value.faults]
    assert fields == ["kind", "apiVersion", "metadata.name", "metadata.namespace"]
    assert "\x1b" not in str(caught.value)
