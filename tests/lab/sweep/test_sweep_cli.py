"""`placer sweep` as users type it: going on from a file, exit codes, what is printed; and how memory is measured."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from placer.cli import main
from placer.lab.deciders import PeakOfTree, high_water
from placer.lab.sweep.records import RunRecord
from placer.lab.sweep.runs import Run
from tests.support import listing, node, pod
from tests.waiting import wait_until

Capture = pytest.CaptureFixture[str]

ROOT = Path(__file__).parents[3]


class Pretended:
    """In place of the real runs: remembers what was to be run, and interrupts after so many lines."""

    def __init__(self) -> None:
        self.done: list[tuple[str, int, str]] = []
        self.patience = 1000
        self.fails: set[int] = set()  #: seeds of which a run fails

    def __call__(
        self, runs: Sequence[Run], *, begin: Callable[[Run], None], **_: Any
    ) -> Generator[RunRecord, None, None]:
        for run in runs:
            if not self.patience:
                raise KeyboardInterrupt
            begin(run)
            self.patience -= 1
            self.done.append((run.subject.word, run.seed, run.policy))
            error = "first [b]\nsecond" if run.seed in self.fails else None
            share = run.seed / 8
            yield run.line(placed_over_planted=share, weight_gap=1 - share, seconds=10.0 + run.seed, error=error)


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> Pretended:
    found = Pretended()
    monkeypatch.setattr("placer.cli.lab.sweeping.sweep", found)
    return found


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_is_in_the_file_is_not_run_again(pretended: Pretended, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "lines.jsonl"
    command = ["sweep", "clos", "--seeds", "1-3", "--policies", "greedy, auto", "-o", str(path)]
    pretended.patience = 4
    assert main(command) == 130
    assert capsys.readouterr().err == "placer: interrupted: 4 of 6 runs done\n"
    four = [("clos", 1, "greedy"), ("clos", 1, "auto"), ("clos", 2, "greedy"), ("clos", 2, "auto")]
    assert pretended.done == four
    assert [(line["instance"], line["seed"], line["policy"]) for line in lines_of(path)] == four
    pretended.patience = 1000
    pretended.done.clear()
    assert main(command) == 0
    assert pretended.done == [("clos", 3, "greedy"), ("clos", 3, "auto")]
    assert len(lines_of(path)) == 6
    assert "6 runs, 4 of them known from before" in capsys.readouterr().out
    assert main([*command, "--time-limit", "30"]) == 0  # another question
    assert len(lines_of(path)) == 12


def test_the_table_has_a_row_per_policy_below_each_instance(pretended: Pretended, capsys: Capture) -> None:
    pretended.fails = {5}
    assert main(["sweep", "clos", "planted --nodes 9", "--seeds", "2-5", "--policies", "greedy"]) == 1
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    # Seeds 2, 3, 4: shares 2/8, 3/8, 4/8, seconds 12, 13, 14; no bound, no memory, no first answer.
    shares, seconds = ["37.50", "[25.00", "50.00]", "25.00"], ["13.0", "[12.0", "14.0]", "14.0"]
    figures = ["greedy", "4", "(1", "failed)", *shares, "-", "-", "0", "-", *seconds, "-"]
    assert (lines[0], lines[4]) == ("clos", "planted --nodes 9")
    assert lines[3].split() == lines[7].split() == figures
    assert lines[8:] == [
        "8 runs; 2 failed:",
        "  clos, seed 5, greedy: first [b]",
        "    second",
        "  planted --nodes 9, seed 5, greedy: first [b]",
        "    second",
    ]
    assert printed.err == ""


def test_below_the_tables_is_who_does_better(pretended: Pretended, capsys: Capture) -> None:
    pretended.fails = {4}
    assert main(["sweep", "clos", "planted", "--seeds", "1-4", "--policies", "volcano,greedy"]) == 1
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    # No values, so that nobody does better; on each instance one pair has failed.
    assert ["volcano", "greedy", "0", "6", "0", "2"] in rows


def test_json_is_an_array_of_all_lines_and_dash_the_lines_alone(
    pretended: Pretended, tmp_path: Path, capsys: Capture
) -> None:
    command = ["sweep", "clos", "--seeds", "2,1", "--policies", "greedy", "--workers", "3", "--time-limit", "7"]
    path = tmp_path / "lines.jsonl"
    assert main([*command, "-o", "-"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["seed"], line["limit"], line["workers"]) for line in lines] == [(2, 7.0, 3), (1, 7.0, 3)]
    assert main([*command, "-o", str(path)]) == 0
    pretended.done.clear()
    capsys.readouterr()
    assert main([*command, "-o", str(path), "--json"]) == 0
    assert pretended.done == []
    assert listing(capsys.readouterr().out) == lines == lines_of(path)


def test_jobs_share_the_cores(pretended: Pretended, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    for jobs, workers in ((1, 8), (3, 2), (16, 1)):
        assert main(["sweep", "clos", "--seeds", "1", "--policies", "auto", "--jobs", str(jobs), "--json"]) == 0
        assert listing(capsys.readouterr().out)[0]["workers"] == workers


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["planted --nodes 0"], 2, "planted --nodes 0: --nodes: found 0"),
        (["plantd"], 2, "plantd: found neither a file or folder nor a family"),
        (["clos", "--policies", "greedy,magic"], 2, "policy: found 'magic', expected one of as-is, kube-default"),
        (["clos", "--policies", ""], 2, "policy: found ''"),
        (["clos", "--seeds", "5-1"], 2, "seeds: found '5-1'"),
        (["clos", "--time-limit", "-1"], 2, "time limit: found -1.0"),
        (["clos", "--workers", "0"], 2, "workers: found 0"),
        (["clos", "-o", "lines.json"], 2, "lines.json: found no known ending, expected one of .jsonl"),
        (["clos", "-o", "nowhere/lines.jsonl"], 2, "found no folder"),
        (["clos", "-o", "notes.jsonl"], 3, "line 1: found 'my notes', expected a line of placer sweep"),
    ],
)
def test_nothing_runs_where_something_makes_no_sense(
    pretended: Pretended,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    code: int,
    words: str,
    capsys: Capture,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.jsonl").write_text("my notes")
    assert main(["sweep", "-o", "lines.jsonl", *options]) == code
    assert words in capsys.readouterr().err
    assert pretended.done == []
    assert not Path("lines.jsonl").exists()


def test_a_configuration_goes_to_its_policy_and_makes_another_run(
    pretended: Pretended, tmp_path: Path, capsys: Capture
) -> None:
    config, target = tmp_path / "volcano-scheduler.conf", tmp_path / "lines.jsonl"
    config.write_text("actions: allocate\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n")
    command = ["sweep", "clos", "--seeds", "1", "--policies", "volcano,greedy", "-o", str(target)]
    assert main(command) == 0
    assert main([*command, "--scheduler-config", str(config)]) == 0
    # The method has no configuration: its line is known.
    assert pretended.done == [("clos", 1, "volcano"), ("clos", 1, "greedy"), ("clos", 1, "volcano")]
    assert [bool(line["config"]) for line in lines_of(target)] == [False, False, True]
    capsys.readouterr()
    assert main(["sweep", "clos", "--policies", "greedy", "--scheduler-config", str(config)]) == 2
    assert "configuration: found one for volcano, expected it among the policies" in capsys.readouterr().err


def test_notes_are_in_the_lines_and_below_the_tables(tmp_path: Path, capsys: Capture) -> None:
    config, cluster = tmp_path / "volcano-scheduler.conf", tmp_path / "cluster.json"
    config.write_text("tiers:\n- plugins: [{name: gang}, {name: predicates}, {name: capacity}]\n")
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node("a"), pod("p", cpu=1)]}))
    target = tmp_path / "lines.jsonl"
    command = ["sweep", str(cluster), "--seeds", "1", "--policies", "volcano", "-o", str(target)]
    assert main([*command, "--scheduler-config", str(config)]) == 0
    note = "tiers[0].plugins[2].name: the plug-in capacity is not mimicked"
    assert [line["notes"] for line in lines_of(target)] == [[note]]
    assert f"  volcano: {note}\n" in capsys.readouterr().out


def test_a_broken_instance_is_a_line_and_exit_1(tmp_path: Path, capsys: Capture) -> None:
    good, bad, target = tmp_path / "good.json", tmp_path / "bad.json", tmp_path / "lines.jsonl"
    good.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node("a"), pod("p", cpu=1)]}))
    bad.write_text("{")
    command = ["sweep", str(bad), str(good), "--seeds", "1", "--policies", "kube-default", "-o", str(target)]
    assert main(command) == 1
    first, second = lines_of(target)
    assert (first["instance"], first["placedPods"]) == (str(bad), None)
    assert "bad.json" in first["error"]
    assert (second["instance"], second["placedPods"], second["error"]) == (str(good), 1, None)
    assert "1 failed" in capsys.readouterr().out
    # What failed is tried again, what did not is not.
    assert main(command) == 1
    assert [line["instance"] for line in lines_of(target)] == [str(bad), str(good), str(bad)]
    assert "2 runs, 1 of them known from before; 1 failed" in capsys.readouterr().out
    bad.write_text(good.read_text())
    assert main(command) == 0
    assert [line["error"] for line in lines_of(target)] == [first["error"], None, first["error"], None]
    assert main(command) == 0
    assert len(lines_of(target)) == 4


@pytest.mark.exhaustive
def test_a_sweep_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    words = ["sweep", "planted --nodes 4 --gpus 2 --pod-sizes 1", "--seeds", "1-3", "--policies", "greedy"]
    command = [sys.executable, "-m", "placer.cli", *words, "-o", str(path)]
    scratch = {**os.environ, "TMPDIR": str(tmp_path)}  # where a sweep that is killed leaves what it had made
    began = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, env=scratch)
    wait_until(lambda: path.exists() and b"\n" in path.read_bytes())
    os.killpg(began.pid, signal.SIGKILL)
    began.wait()
    kept = path.read_text()
    path.write_text(kept + '{"instance": "planted --no')  # what may be left of a line
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert path.read_text().startswith(kept)
    lines = lines_of(path)
    assert [line["seed"] for line in lines] == [1, 2, 3]
    assert listing(done.stdout) == lines
    assert {line["error"] for line in lines} == {None}


# ------------------------------------------------------------------------------------------------------------- memory

#: Takes 60 MB, then has a child that takes 100 MB for itself; both wait for a line.
TREE = """
import subprocess, sys
mine = bytearray(60_000_000)
mine[::4096] = bytes(len(mine[::4096]))
code = "his = bytearray(100_000_000); his[::4096] = bytes(len(his[::4096])); print(1, flush=True); input()"
child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
input()
child.communicate(b"go")
print("gone", flush=True)
input()
"""


def test_the_peak_of_a_tree_is_that_of_all_its_processes_together() -> None:
    tree = subprocess.Popen(
        [sys.executable, "-c", TREE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert tree.stdin is not None
    assert tree.stdout is not None
    try:
        child = int(tree.stdout.readline())
        together = high_water(tree.pid) + high_water(child)
        # 160 MB are 156,250 KiB; an interpreter takes about 10,000 more, and is given as much again.
        assert 156_250 < together < 156_250 + 2 * 20_000
        with PeakOfTree() as peak:
            peak.hear(tree.pid)
            while not peak.peak:
                time.sleep(0.01)
        assert together <= peak.peak <= high_water(tree.pid) + high_water(child)  # which may take a page meanwhile
        tree.stdin.write("\n")
        assert tree.stdout.readline() == "gone\n"
        with PeakOfTree() as later:
            later.hear(tree.pid)
            while not later.peak:
                time.sleep(0.01)
        assert later.peak <= high_water(tree.pid) < together
        assert high_water(child) == 0
    finally:
        tree.kill()
        tree.communicate()


def test_a_process_does_not_inherit_the_peak_of_the_one_that_started_it() -> None:
    code = "from placer.lab.deciders import high_water; print(high_water('self'))"
    mine = bytearray(400_000_000)
    mine[::4096] = bytes(len(mine[::4096]))
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert high_water("self") > 390_000
    assert 0 < int(done.stdout) < 300_000


def test_findings_are_told_and_are_errors_under_strict(tmp_path: Path, capsys: Capture) -> None:
    asks = pod("p", cpu=1, spec={"priorityClassName": "missing"})
    path = tmp_path / "i.json"
    path.write_text(json.dumps({"kind": "List", "items": [node("n"), asks]}))
    command = ["sweep", str(path), "--seeds", "1", "--policies", "kube-default", "-o", str(tmp_path / "lines.jsonl")]
    assert main(command) == 0
    assert "UnknownReference 1" in capsys.readouterr().out
    assert main([*command, "--strict"]) == 3
    (first, second) = lines_of(tmp_path / "lines.jsonl")
    assert first["error"] is None
    assert "1 finding, an error under --strict" in second["error"]
    assert first["findings"] == second["findings"] == {"UnknownReference": 1}
    assert main([*command, "--scheduler-name", "another"]) == 0
    assert lines_of(tmp_path / "lines.jsonl")[2]["pending"] == 0
