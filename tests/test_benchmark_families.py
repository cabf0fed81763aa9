"""The benchmark of hard families: its words mean something, its goals are measured as they say, its tables are true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from placer.lab.sweep.records import RunRecord
from placer.lab.sweep.runs import parse_subject
from tests.benchmarks.families import FAMILIES, REDRAWN, cut_out, draw_missing, tables
from tests.benchmarks.goals import (
    Goal,
    methods_table,
    placed,
)
from tests.benchmarks.redrawn import FAMILIES as CUT_OUT

ROOT = Path(__file__).parent.parent


def known(values: list[int], bounds: list[int | None] | None = None, weight_bound: int | None = None) -> dict[str, Any]:
    weight = sum(values[:2])
    return {"weight": weight, "weight_bound": weight_bound, "values": values, "bounds": bounds or [None] * len(values)}


def line(**figures: Any) -> RunRecord:
    key = {"instance": "i", "seed": 1, "policy": "auto", "limit": 60.0, "workers": 2, "version": "1", "config": ""}
    return RunRecord.model_validate({**key, **figures})


def test_every_word_is_a_family_or_a_shipped_instance() -> None:
    for name, family in FAMILIES.items():
        assert family.goals, name
        for word in family.words:
            subject = parse_subject(word)
            there = (ROOT / word).is_file() or word in cut_out(" ".join(CUT_OUT), 8)
            assert subject.family is not None or there, word
    words = [word for family in FAMILIES.values() for word in family.words if not family.started]
    assert len(words) == len(set(words))


def test_what_is_cut_out_of_shipped_instances_is_drawn_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [word for word in FAMILIES["small-redrawn"].words if "hetero-s-1." in word]
    draw_missing([*words, "other.json.gz", "planted --nodes 4"])
    (drawn, best) = sorted((tmp_path / REDRAWN).iterdir(), key=lambda path: len(path.name))
    assert (drawn.name, best.name) == ("hetero-s-1.json.gz", "hetero-s-1.best.json.gz")
    assert "128 nodes" in capsys.readouterr().out
    draw_missing(words)
    assert capsys.readouterr().out == ""


def test_a_goal_is_reached_from_its_figure_on() -> None:
    least, most = Goal("x", placed, min, least=0.9), Goal("x", placed, min, most=2.0, shown="{:.1f}")
    assert [least.reached(each) for each in (0.9, 0.89)] == [True, False]
    assert [most.reached(each) for each in (2.0, 2.1)] == [True, False]
    assert (least.wanted, most.wanted) == ("≥ 90.00%", "≤ 2.0")


def test_tables_are_made_of_lines(tmp_path: Path) -> None:
    word = FAMILIES["scale-queue"].words[0]
    figures = {"instance": word, "placed_weight": 99, "weight_bound": 100, "seconds": 61.0, "known": known([50, 50])}
    lines = [line(**figures), line(**figures | {"placed_weight": 95, "seconds": 63.0, "seed": 2})]
    lines.append(line(**figures | {"policy": "volcano", "error": "a bug"}))
    path = tmp_path / "lines.jsonl"
    path.write_text("".join(f"{each.text()}\n" for each in lines))
    text = tables(path)
    assert "3 lines; methods had 60 s and 2 threads" in text
    name = f"scale-queue: {FAMILIES['scale-queue'].text}"
    assert f"| {name} | placed, median | ≥ 99.00% | 97.00% | 2 | **no** |" in text
    assert "|  | seconds beyond the limit, worst | ≤ 2.0 | 3.0 | 2 | **no** |" in text
    assert "| family | `auto` | `volcano` |" in text
    assert "| scale-queue | 97.00% | - |" in text
    by_method = "\n".join(methods_table({"scale-queue": lines}))
    assert "| scale-queue | `auto` | 2 | 97.00% | 95.00% | - | 0 | - | 62.0 | 3.0 | - | - | - |" in by_method
    assert "| scale-queue | `volcano` | 1 (1 failed) |" in by_method


def test_the_page_has_the_tables_of_the_lines_that_are_kept() -> None:
    page = (ROOT / "models" / "benchmarks.md").read_text(encoding="utf-8")
    assert tables(ROOT / "models" / "benchmarks.jsonl") in page
