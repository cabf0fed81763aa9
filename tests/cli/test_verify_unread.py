"""What verify does not read of a placement, it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from placer.base.errors import StrictFindings
from placer.cli import main
from placer.problem.reading import read_whole_placement

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "4", "pods": "9"}},
}
PODS = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {}} for name in ("a", "b")]
BINDINGS = [{"namespace": "default", "pod": name, "node": "n"} for name in ("a", "b")]


def written(path: Path, document: dict[str, Any]) -> str:
    path.write_text(json.dumps(document))
    return str(path)


@pytest.fixture
def instance(tmp_path: Path) -> str:
    return written(tmp_path / "instance.json", {"apiVersion": "v1", "kind": "List", "items": [NODE, *PODS]})


def placement(folder: Path, **keys: Any) -> str:
    document = {"apiVersion": "placer.dev/v1alpha1", "kind": "Placement", "bindings": BINDINGS, **keys}
    return written(folder / "placement.json", document)


def test_keys_of_a_placement(tmp_path: Path, instance: str, capsys: pytest.CaptureFixture[str]) -> None:
    bindings = [{**each, "foo": 1, "numaZone": []} for each in BINDINGS]
    path = placement(tmp_path, bindings=bindings, bindngs=[], evictions=[], groups=[], oneByOne=[])
    assert main(["verify", instance, path, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["valid"]
    assert found["notRead"] == {
        "unknown": ["bindings[].foo", "bindings[].numaZone", "bindngs"],
        "notJudged": ["groups"],
    }
    assert [each["message"] for each in found["findings"] if each["code"] == "UnknownField"] == [
        "bindings[].foo is no key of a Placement and is not judged, here and in 1 more",
        "bindings[].numaZone is no key of a Placement and is not judged, here and in 1 more; "
        "found like it: bindings[].numaZones",
        "bindngs is no key of a Placement and is not judged; found like it: bindings",
    ]
    assert main(["verify", instance, path]) == 0
    text = capsys.readouterr().out
    assert "Not judged: groups" in text
    assert "bindings[].foo is no key of a Placement" in text


def test_what_is_disturbed_is_judged(tmp_path: Path, instance: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The pods that run have no controller, and nothing is gained."""
    name, where = BINDINGS[0]["pod"], BINDINGS[0]["node"]
    evictions = [{"namespace": "default", "pod": name, "node": where, "unit": "Pod/default/x", "priority": 0, "why": 1}]
    steps = [{"go": [f"default/{name}"], "bind": []}]
    path = placement(tmp_path, bindings=BINDINGS[1:], evictions=evictions, steps=steps)
    assert main(["verify", instance, path, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert {each["rule"] for each in found["violations"]} == {"D2", "D5"}
    assert found["violations"][0]["message"] == f"Pod default/{name} cannot be disturbed: it is pending"
    assert found["notRead"] == {
        "unknown": ["evictions[].why"],
        "notJudged": ["evictions[].node", "evictions[].priority", "evictions[].unit"],
    }
    assert main(["verify", instance, path]) == 1
    assert ", 1 eviction, 0 moves; " in capsys.readouterr().out


def test_faults_of_what_is_disturbed_are_told_all_at_once(
    tmp_path: Path, instance: str, capsys: pytest.CaptureFixture[str]
) -> None:
    moves = [{"namespace": "default", "pod": "a", "from": "n1"}, "b"]
    path = placement(tmp_path, evictions={"pod": "a"}, moves=moves, steps=[{"go": ["a"], "bind": "default/b"}])
    assert main(["verify", instance, path]) == 3
    told = " ".join(capsys.readouterr().err.split())
    for field in ("evictions", "moves[0].to", "moves[1]", "steps[0].go", "steps[0].bind"):
        assert field in told
    assert "NAMESPACE/NAME of a pod" in told


def test_unknown_keys_are_errors_where_asked(tmp_path: Path, instance: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = placement(tmp_path, verdit="OPTIMAL", verdict="OPTIMAL")
    assert main(["verify", instance, path]) == 0
    assert main(["verify", instance, path, "--strict"]) == 3
    assert "verdit is no key of a Placement" in capsys.readouterr().err
    with pytest.raises(StrictFindings):
        read_whole_placement(path, strict=True)


def test_keys_of_bindings(tmp_path: Path) -> None:
    target = {"apiVersion": "v1", "kind": "Node", "name": "n"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a", "uid": "u"}, "target": target}
    assert read_whole_placement(written(tmp_path / "a.json", binding))[1].unknown == ()
    wrong = {**binding, "target": {**target, "node": "m"}, "spec": {}}
    unread = read_whole_placement(written(tmp_path / "b.json", wrong))[1]
    assert (unread.unknown, unread.not_judged) == (("spec", "target.node"), ())
