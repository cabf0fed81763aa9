"""Figures: their numbers, worked out by hand, and what stands in the files that are drawn."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from placer.cli import main
from placer.cli.commands import FIGURES as NAMES
from placer.lab.figures.content import FIGURES, make_figure
from placer.lab.figures.measured import read_runs
from placer.lab.sweep.records import RunRecord

Capture = pytest.CaptureFixture[str]
STATISTICS = "placer.lab.sweep.statistics"
SVG = "{http://www.w3.org/2000/svg}"


def line(instance: str, policy: str, placed: int | None, **figures: Any) -> RunRecord:
    """A line; the queue of every instance weighs 100, which is also its bound."""
    key = {"instance": instance, "seed": 1, "policy": policy, "limit": 60.0, "workers": 1, "version": "1", "config": ""}
    objective = [] if placed is None else [
        {"name": "admitted", "value": 7, "bound": None, "gap": None, "proved_by": None, "priority": 0},
        {"name": "placed", "value": placed, "bound": None, "gap": None, "proved_by": None, "priority": 0},
    ]  # fmt: skip
    more = {"placed_weight": placed, "weight_bound": 100, "objective": objective}
    return RunRecord.model_validate({**key, **more, **figures})


def trace(*points: tuple[float, int]) -> list[dict[str, Any]]:
    return [{"seconds": each, "phase": "x", "values": [7, weight], "bounds": [None, None]} for each, weight in points]


LINES = (
    line("small.json", "auto", 100, nodes=10, seconds=2.0, peak_memory_mib=50.0, trace=trace((1.0, 60), (2.0, 100))),
    line("small.json", "volcano", 80, nodes=10, seconds=1.0, peak_memory_mib=40.0),
    line("made/large.json.gz", "auto", 90, nodes=1000, seconds=200.0, peak_memory_mib=500.0, trace=trace((4.0, 90))),
    line("made/large.json.gz", "volcano", 100, nodes=1000, seconds=10.0, peak_memory_mib=40.0, violations={"C5": 1}),
)


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "lines.jsonl"
    path.write_text("".join(f"{each.text()}\n" for each in LINES))
    return path


def figure(name: str, *paths: Path) -> dict[str, Any]:
    return make_figure(name, read_runs([str(path) for path in paths]))


def points(found: dict[str, Any], panel: int = 0) -> dict[str, list[tuple[float, float]]]:
    return {
        series["name"]: [(round(point["x"], 6), round(point["y"], 6)) for point in series["points"]]
        for series in found["panels"][panel]["series"]
    }


# ---------------------------------------------------------------------------------------------------------- the numbers


def test_the_profile_is_the_share_within_a_ratio_of_the_best(lines: Path) -> None:
    """Volcano's second placement breaks a rule: it is never near the best."""
    found = figure("profile", lines)
    assert points(found) == {"auto": [(1, 1), (1.25, 1)], "volcano": [(1, 0), (1.25, 0.5)]}
    assert found["panels"][0]["title"] == "Performance profile, 2 instances"
    assert found["leftOut"] == []


def test_the_profile_is_of_instances_that_all_were_run_on(lines: Path) -> None:
    with lines.open("a") as file:
        file.write(f"{line('alone.json', 'auto', 50).text()}\n{line('start.json', 'auto', None).text()}\n")
    found = figure("profile", lines)
    assert found["panels"][0]["title"] == "Performance profile, 2 instances"
    assert found["leftOut"] == [
        "1 runs without a placed weight or an error",
        "1 runs of instances that not every policy was run on",
    ]


def test_a_run_that_failed_is_far_from_the_best(lines: Path) -> None:
    lines.write_text(f"{LINES[0].text()}\n{line('small.json', 'volcano', None, error='a bug').text()}\n")
    assert points(figure("profile", lines)) == {"auto": [(1, 1)], "volcano": [(1, 0)]}


def test_what_is_placed_stands_over_the_optimum_with_its_interval(lines: Path) -> None:
    with lines.open("a") as file:
        for seed, weight in ((2, 70), (3, 90)):
            file.write(f"{line('small.json', 'volcano', weight, seed=seed).text()}\n")
    found = figure("placed", lines)
    assert points(found) == {"auto": [(0, 100), (1, 90)], "volcano": [(0, 80)]}
    (median,) = found["panels"][0]["series"][1]["points"]
    assert (median["low"], median["high"]) == (70, 90)
    assert found["panels"][0]["x"]["names"] == ["small", "large"]
    assert found["leftOut"] == ["1 runs of placements that break rules"]


def test_time_and_memory_grow_with_a_slope(lines: Path) -> None:
    """A hundred times the nodes: auto takes 100 times the time and 10 times the memory."""
    found = figure("size", lines)
    time, memory = points(found), points(found, 1)
    assert time["auto"] == [(10, 2), (1000, 200)]
    assert time["auto: slope 1.00"] == [(10, 2), (1000, 200)]
    assert time["volcano: slope 0.50"] == [(10, 1), (1000, 10)]
    assert memory["auto: slope 0.50"] == [(10, 50), (1000, 500)]
    assert memory["volcano: slope 0.00"] == [(10, 40), (1000, 40)]


def test_of_one_size_there_is_no_slope(lines: Path) -> None:
    lines.write_text(f"{LINES[0].text()}\n")
    assert points(figure("size", lines)) == {"auto": [(10, 2)]}


def test_the_gap_is_what_is_not_placed_yet_before_the_first_answer_everything(lines: Path) -> None:
    """At 1 s one of the two runs has 60 of 100, the other has nothing: the median lacks 70 %."""
    found = figure("gap", lines)
    assert points(found) == {"auto": [(1, 70), (2, 50), (4, 5), (200, 5)]}
    assert found["leftOut"] == ["2 runs with one answer and no trace"]


def test_what_a_policy_was_run_with_is_told_where_it_differs(lines: Path) -> None:
    with lines.open("a") as file:
        file.write(f"{line('small.json', 'auto', 70, limit=5.0).text()}\n")
    assert set(points(figure("placed", lines))) == {"auto, 60 s", "auto, 5 s", "volcano"}


def test_a_comparison_and_an_array_of_lines_are_read_too(tmp_path: Path) -> None:
    rows = [
        {"policy": "kube-default", "metrics": {"weight": {"value": 80, "bound": 100}}, "violations": {"C7": 2}},
        {"policy": "greedy", "metrics": {"weight": {"value": 90, "bound": 100}}, "violations": {}},
        {"policy": "milp", "metrics": None, "violations": {}, "error": "no answer in time"},
    ]
    compared, swept = tmp_path / "queue.json", tmp_path / "array.json"
    compared.write_text(json.dumps(rows))
    swept.write_text(json.dumps([each.as_dict() for each in LINES[:1]]))
    found = figure("placed", compared)
    assert points(found)["greedy"] == [(0, 90)]
    assert found["panels"][0]["x"]["names"] == ["queue"]
    assert found["leftOut"] == ["1 runs of placements that break rules", "1 runs that failed"]
    assert points(figure("placed", compared, swept)) == {"auto": [(0, 100)], "greedy": [(1, 90)]}


def test_the_command_knows_every_figure() -> None:
    assert tuple(FIGURES) == NAMES


# ----------------------------------------------------------------------------------------------------------- the files


def texts(svg: Path) -> list[str]:
    return ["".join(each.itertext()).strip() for each in ElementTree.parse(svg).iter(f"{SVG}text")]


def drawn(svg: Path) -> dict[str, list[tuple[float, float]]]:
    """Corners of the path of each series, in points of the page."""
    found = {}
    for group in ElementTree.parse(svg).iter(f"{SVG}g"):
        name = group.get("id", "")
        if name.startswith("series:"):
            found.setdefault(name.removeprefix("series:"), list(_corners(group)))
    return found


def _corners(group: ElementTree.Element) -> Iterator[tuple[float, float]]:
    markers = list(group.iter(f"{SVG}use"))
    if markers:
        yield from ((float(each.get("x", "")), float(each.get("y", ""))) for each in markers)
        return
    for path in group.iter(f"{SVG}path"):
        for x, y in re.findall(r"[ML] ([\d.]+) ([\d.]+)", path.get("d", "")):
            yield float(x), float(y)


def test_a_drawn_profile_has_its_axes_its_names_and_its_steps(lines: Path, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "profile.svg"
    assert main(["plot", str(lines), "-o", str(target)]) == 0
    assert capsys.readouterr().out == f"{target}: Performance profile, 2 instances; 4 points\n"
    shown = texts(target)
    for text in ("placed weight of the best over that of the policy", "share of instances", "auto", "volcano"):
        assert text in shown
    series = drawn(target)
    assert set(series) == {"auto", "volcano"}
    assert len({y for _, y in series["auto"]}) == 1
    (left, bottom), *_, (right, top) = series["volcano"]
    assert left < right
    assert top < bottom  # an SVG counts downwards: from 0 to a half
    assert series["auto"][0][1] < top  # ... and auto stands at 1, twice as high
    assert bottom - series["auto"][0][1] == pytest.approx(2 * (bottom - top), rel=1e-3)


def test_drawn_sizes_have_two_panels_and_slopes(lines: Path, tmp_path: Path) -> None:
    target = tmp_path / "size.svg"
    assert main(["plot", str(lines), "--figure", "size", "-o", str(target)]) == 0
    shown = texts(target)
    for text in ("Time by size", "Memory by size", "seconds of the whole call", "peak memory, MiB"):
        assert shown.count(text) == 1
    assert shown.count("nodes") == 2
    assert {"auto: slope 1.00", "volcano: slope 0.50", "auto: slope 0.50"} <= set(shown)


def test_the_same_numbers_give_the_same_file_in_every_format(lines: Path, tmp_path: Path) -> None:
    for ending, begin in ((".svg", b"<?xml"), (".pdf", b"%PDF"), (".png", b"\x89PNG")):
        one, other = (tmp_path / f"{name}{ending}" for name in "ab")
        for target in (one, other):
            assert main(["plot", str(lines), "--figure", "size", "-o", str(target)]) == 0
        assert one.read_bytes().startswith(begin)
        assert one.read_bytes() == other.read_bytes()


def test_the_table_has_every_point(lines: Path, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "placed.csv"
    assert main(["plot", str(lines), "--figure", "placed"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "left out: 1 runs of placements that break rules\n"
    assert main(["plot", str(lines), "--figure", "placed", "-o", str(target)]) == 0
    assert target.read_text() == printed.out
    head, *rows = csv.reader(printed.out.splitlines())
    assert head == ["figure", "panel", "series", "x", "y", "low", "high"]
    title = "Placed over the optimum, median"
    assert rows == [
        ["placed", title, "auto", "small", "100", "100", "100"],
        ["placed", title, "auto", "large", "90", "90", "90"],
        ["placed", title, "volcano", "small", "80", "80", "80"],
    ]


def test_json_is_the_figure_in_numbers(lines: Path, capsys: Capture) -> None:
    assert main(["plot", str(lines), "--figure", "gap", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["file"], found["name"], found["leftOut"]) == (None, "gap", ["2 runs with one answer and no trace"])
    (panel,) = found["panels"]
    assert panel["x"] == {"label": "seconds", "log": True, "names": []}
    assert panel["series"][0]["points"][0] == {"x": 1.0, "y": 70.0, "low": None, "high": None}


# ------------------------------------------------------------------------------------------------------- what is no run


@pytest.mark.parametrize(
    ("text", "arguments", "code", "words"),
    [
        ("notes\n", [], 3, "line 1: found 'notes\\n', expected a line of placer sweep"),
        ('{"policy": "auto"}\n', [], 3, "line 1: found"),
        ("", [], 3, "found nothing, expected lines of placer sweep, or output of placer compare --json"),
        ("[]", [], 3, "found an empty array, expected lines of placer sweep"),
        ("[1, 2", [], 3, "found no JSON"),
        ('[{"colour": 1}]', [], 3, "entry 1: found {'colour': 1}, expected lines of placer sweep, or output"),
        (LINES[1].text() + "\n", ["--figure", "gap"], 3, "gap: found 1 runs with one answer and no trace, expected"),
        (LINES[3].text() + "\n", ["--figure", "placed"], 3, "placed: found 1 runs of placements that break rules"),
        (
            line("a.json", "auto", 5).text() + "\n",
            ["--figure", "size"],
            3,
            "size: found 1 runs whose number of nodes is not stated, expected runs that this figure can show",
        ),
        ("", ["--figure", "cake"], 2, "cake"),
        ("", ["-o", "figure.gif"], 2, "found no known ending, expected one of .pdf, .svg, .png, .csv"),
    ],
)
def test_what_cannot_be_drawn_is_told(
    text: str, arguments: list[str], code: int, words: str, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text(text)
    assert main(["plot", str(path), *arguments]) == code
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.out == ""


def test_a_file_that_is_not_there_is_a_usage_error(capsys: Capture) -> None:
    assert main(["plot", "nowhere.jsonl"]) == 2
    assert "nowhere.jsonl: cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("library", "words", "command"),
    [
        ("matplotlib", "figures need matplotlib, found none", ["plot", "LINES", "-o", "a.svg"]),
        ("scipy.stats", "statistics need pandas and scipy", ["plot", "LINES"]),
        ("pandas", "statistics need pandas and scipy", ["sweep", "clos"]),
    ],
)
def test_figures_and_tables_need_the_extra(
    library: str, words: str, command: list[str], lines: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """A sweep says so before it runs anything."""
    monkeypatch.chdir(lines.parent)
    for name in [name for name in sys.modules if name.startswith(("placer.lab.figures", STATISTICS))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    assert main([str(lines) if word == "LINES" else word for word in command]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert "pip install '.[lab]'" in error
