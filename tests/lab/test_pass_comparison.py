"""``compare --passes``: what a second series of passes would have bound otherwise."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from placer.cli import main
from placer.cli.lab.comparing_passes import SAYS
from placer.lab.pass_comparison import DIFFERENCES, PassSeries, compare_series, read_series
from tests.support import Document, node, pod

SCHEMA = json.loads((importlib.resources.files("placer") / "schemas" / "passcomparison.schema.json").read_text())
FIRST, SECOND, THIRD = (f"2026-01-01T10-00-{second}.000000Z" for second in ("00", "10", "20"))
FIRST_TIME = datetime(2026, 1, 1, 10, tzinfo=UTC)

#: What a pass makes of a group: where its pods go, None: it waits; why; its tier.
Fate = tuple[str | None, str | None, int | None]
WAITS: Fate = (None, "InsufficientResources", None)


def on(node: str, tier: int | None = None) -> Fate:
    return (node, None, tier)


def placement(groups: Mapping[str, Fate], **more: Any) -> dict[str, Any]:
    """The Placement of single pods, as far as it is compared; the name's number is the priority."""
    parts = [
        {
            "kind": "Pod",
            "namespace": "ml",
            "name": name,
            "priority": int("0" + "".join(filter(str.isdigit, name))),
            "admitted": where is not None,
            "placed": int(where is not None),
            "pending": int(where is None),
            "tier": tier,
            "hyperNode": None,
            "reason": None if code is None else {"code": code, "message": ""},
        }
        for name, (where, code, tier) in groups.items()
    ]
    bound = [{"namespace": "ml", "pod": name, "node": where} for name, (where, *_) in groups.items() if where]
    head = {"apiVersion": "placer.dev/v1alpha1", "kind": "Placement", "versions": {"placer": "0.0.9"}}
    return {**head, "bindings": bound, "groups": parts, **more}


def saved(folder: Path, passes: Mapping[str, Mapping[str, Fate]]) -> PassSeries:
    folder.mkdir()
    for name, groups in passes.items():
        (folder / f"{name}-placement.json").write_text(json.dumps(placement(groups)))
    (folder / "notes.json").write_text("of the user")
    return read_series(str(folder))


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        ({FIRST: on("a")}, {FIRST: on("a")}, "same"),
        ({FIRST: on("a")}, {FIRST: on("b")}, "elsewhere"),
        ({FIRST: on("a", 1)}, {FIRST: on("b", 2)}, "wider"),
        ({FIRST: on("a", 2)}, {FIRST: on("b", 1)}, "narrower"),
        ({FIRST: on("a")}, {FIRST: WAITS}, "lost"),
        ({FIRST: WAITS}, {FIRST: on("a")}, "won"),
        ({FIRST: WAITS, SECOND: on("a")}, {FIRST: on("a")}, "sooner"),
        ({FIRST: on("a")}, {FIRST: WAITS, SECOND: on("a")}, "later"),
        ({FIRST: WAITS}, {FIRST: WAITS}, "waits"),
        ({FIRST: WAITS}, {FIRST: (None, "Outcompeted", None)}, "otherReason"),
        ({FIRST: WAITS, SECOND: on("a")}, {FIRST: WAITS}, "unseen"),  # not looked at since the first left it waiting
        # Two loops next to each other: each looks in between, and what one binds the other sees bound.
        ({FIRST: on("a")}, {SECOND: on("a")}, "same"),
        ({SECOND: on("a")}, {FIRST: on("a")}, "same"),
        ({SECOND: on("a")}, {FIRST: WAITS}, "lost"),
        ({FIRST: WAITS, THIRD: on("a")}, {SECOND: WAITS}, "lost"),
        ({SECOND: WAITS, THIRD: on("a")}, {FIRST: on("a")}, "sooner"),
        ({FIRST: WAITS, THIRD: on("a")}, {SECOND: on("a")}, "same"),
    ],
)
def test_a_group_is_compared_by_the_first_pass_that_admits_it(
    old: dict[str, Fate], new: dict[str, Fate], difference: str, tmp_path: Path
) -> None:
    every = {FIRST: {}, SECOND: {}, THIRD: {}}
    series = [
        saved(tmp_path / name, {**every, **{when: {"p1": fate} for when, fate in passes.items()}})
        for name, passes in (("old", old), ("new", new))
    ]
    found = compare_series(*series)
    assert {name for name, count in found["groups"].items() if count} == {difference}
    assert [each["difference"] for each in found["items"]] == ([difference] if difference in DIFFERENCES else [])


def test_who_was_never_seen_is_no_difference(tmp_path: Path) -> None:
    found = compare_series(saved(tmp_path / "old", {FIRST: {"p1": on("a")}}), saved(tmp_path / "new", {FIRST: {}}))
    assert found["groups"]["unseen"] == 1
    assert found["items"] == []


def test_gangs_are_compared_by_their_pods_too() -> None:
    series = []
    for placed in (2, 3):
        document = placement({"p1": on("a")})
        document["groups"][0] |= {"kind": "PodGroup", "placed": placed}
        series.append(PassSeries("x"))
        series[-1].add(FIRST_TIME, document)
    assert [each["difference"] for each in compare_series(*series)["items"]] == ["more"]
    assert [each["difference"] for each in compare_series(*reversed(series))["items"]] == ["fewer"]


def test_counts_come_first_and_groups_by_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = placement({"p1": on("a"), "p900": on("b"), "p5": WAITS, "q5": on("c"), "same": on("d")})
    gone = {"namespace": "ml", "pod": "gone", "node": "c", "unit": "Pod/ml/gone", "priority": 0}
    new = placement({"p1": WAITS, "p900": on("e"), "p5": on("a"), "q5": WAITS, "same": on("d")}, evictions=[gone])
    for part in old["groups"]:
        del part["priority"]  # documents of earlier versions have none
    files = [str(tmp_path / name) for name in ("old.json", f"{SECOND}-placement.json")]
    for file, document in zip(files, (old, new), strict=True):
        Path(file).write_text(json.dumps(document))
    assert main(["compare", "--passes", *files, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, SCHEMA)
    assert [(each["group"]["name"], each["difference"]) for each in document["items"]] == [
        ("p900", "elsewhere"),
        ("q5", "lost"),
        ("p5", "won"),
        ("p1", "lost"),
    ]
    assert document["pods"] == {"sameNode": 1, "otherNode": 1}
    assert document["old"] | {"source": ""} == {
        "source": "",
        "versions": ["0.0.9"],
        "passes": 1,
        "from": None,
        "until": None,
        "boundPods": 4,
        "evictedPods": 0,
        "movedPods": 0,
    }
    assert document["new"]["evictedPods"] == 1
    assert main(["compare", "--passes", *files, "-o", str(tmp_path / "found.json")]) == 0
    assert json.loads((tmp_path / "found.json").read_text()) == document
    text = capsys.readouterr().out
    assert text.index("1 evicted") < text.index("lost") < text.index("ml/p900") < text.index("ml/p1")


def test_a_policy_runs_in_the_shadow_of_a_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The snapshot of a pass is solved again with another Policy, and what it would have bound otherwise is told."""
    labels = {"kubernetes.io/hostname": "x"}
    objects: list[Document] = [node("n1", cpu=2, labels=labels), pod("large", cpu=2), pod("a", cpu=1), pod("b", cpu=1)]
    policy = {"apiVersion": "placer.dev/v1alpha1", "kind": "Policy", "metadata": {"name": "default"}}
    folders = [tmp_path / "live", tmp_path / "shadow"]
    snapshot = tmp_path / f"{FIRST}-snapshot.json"
    snapshot.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    other = tmp_path / "policy.json"
    other.write_text(json.dumps({**policy, "spec": {"levels": []}}))
    for folder, more in zip(folders, ([], ["--with", str(other)]), strict=True):
        folder.mkdir()
        target = str(folder / f"{FIRST}-placement.json")
        assert main(["solve", str(snapshot), *more, "--method", "greedy", "-o", target]) == 0
    capsys.readouterr()
    assert main(["compare", "--passes", *map(str, folders), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, SCHEMA)
    assert sum(document["groups"].values()) == 3
    assert all(each["priority"] == 0 for each in document["items"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x.json"], "INSTANCE"),
        (["--seed", "4", "--policies", "greedy"], "--policies, --seed"),
    ],
)
def test_what_decides_nothing_is_refused(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *words, "--passes", str(tmp_path), str(tmp_path)]) == 2
    assert f"--passes: found {message}, expected none" in capsys.readouterr().err


def test_what_is_no_series_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, several = tmp_path / "one.json", tmp_path / "several"
    one.write_text(json.dumps(placement({})))
    saved(several, {FIRST: {}, SECOND: {}})
    cases = {
        ("compare",): "no kubeconfig",
        ("compare", "--passes", str(tmp_path), str(several)): "found no Placement of a pass",
        ("compare", "--passes", str(one), str(several)): "found one Placement and a folder of several",
        ("compare", "--passes", str(one), str(several / "notes.json")): "notes.json",
    }
    for words, message in cases.items():
        assert main([*words]) in (2, 3)
        assert message in capsys.readouterr().err


def test_every_difference_has_words() -> None:
    assert SAYS.keys() == set(SCHEMA["properties"]["groups"]["required"])
    assert set(DIFFERENCES) == set(SCHEMA["properties"]["items"]["items"]["properties"]["difference"]["enum"])
