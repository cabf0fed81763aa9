"""What stands beside each other on the page: the page's own placement in the figures of `placer compare`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from placer.answers.report import contents, told_apart
from placer.cli import main
from placer.problem.reading import read
from tests.report.scenes import fleet, write
from tests.support import listing


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("beside")
    instance = write(folder, "fleet", fleet())
    assert main(["solve", instance, "--method", "greedy", "-o", str(folder / "placed.json"), "--quiet"]) == 0
    policies = f"as-is,kube-default,same={folder / 'placed.json'}"
    assert main(["compare", instance, "--policies", policies, "-o", str(folder / "rows.json"), "--quiet"]) == 0
    return folder


def shown(folder: Path, *names: str) -> dict[str, Any]:
    inputs = told_apart([str(folder / f"{name}.json") for name in names])
    found: dict[str, Any] = contents(read(*inputs.instance), inputs)["comparison"]
    return found


def test_the_own_placement_is_a_row_in_the_figures_of_compare(folder: Path) -> None:
    own, as_is, kube, same = shown(folder, "fleet", "placed", "rows")["policies"]
    assert [own["name"], same["name"]] == ["this placement", "same"]
    figures = ("pods", "groups", "gpus", "weight", "weightBound", "breaks")
    assert [own[each] for each in figures] == [same[each] for each in figures]
    assert (own["pods"], own["groups"], own["gpus"], own["breaks"]) == (3, 1, 12, "")
    (row,) = (row for row in listing((folder / "rows.json").read_text()) if row["policy"] == "same")
    assert own["weight"] == row["metrics"]["weight"]["value"]
    # x is ready here and waits as it is; kube-default has it ready, too, and tears y apart.
    assert [(each["onlyThere"], each["onlyHere"]) for each in (own, as_is, kube, same)] == [
        (None, None),
        (0, 1),
        (0, 0),
        (0, 0),
    ]


def test_its_values_stand_first_with_what_is_proved_of_them(folder: Path) -> None:
    values = shown(folder, "fleet", "placed", "rows")["values"]
    document = json.loads((folder / "placed.json").read_text())
    assert [value["numbers"][0] for value in values] == [each["value"] for each in document["objective"]]
    assert [value["bounds"][0] for value in values] == [each["bound"] for each in document["objective"]]
    assert values[0]["name"] == "admitted groups, nodes"
    assert "nodes" not in values[0]["texts"][0]


def test_without_a_placement_the_page_has_none_of_its_own(folder: Path) -> None:
    policies = shown(folder, "fleet", "rows")["policies"]
    assert [each["name"] for each in policies] == ["as-is", "kube-default", "same"]
    assert {(each["onlyThere"], each["onlyHere"]) for each in policies} == {(None, None)}
