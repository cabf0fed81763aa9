"""The command line on a terminal, a real one (a pty), and on a pipe: widths, the moving line, many faults."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

from placer.answers.progress import Progress
from placer.cli import main
from placer.problem.result import TracePoint
from tests.support import instance_of, node, pod

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(arguments: list[str], columns: int, **environment: str) -> tuple[int, str]:
    """Run placer on a pty of so many columns: exit code, and everything that came."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    clean = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    command = [sys.executable, "-m", "placer.cli", *arguments]
    child = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env={**clean, "TERM": "xterm", **environment}
    )
    os.close(theirs)
    parts = []
    with contextlib.suppress(OSError):  # the other end is closed: that is how a pty says that there is no more
        while part := os.read(ours, 65536):
            parts.append(part)
    os.close(ours)
    return child.wait(), b"".join(parts).decode()


def lines(text: str) -> list[str]:
    """What stands on the lines, each state of a line that was drawn anew as one of its own."""
    return [line.rstrip() for line in re.split(r"[\r\n]+", ESCAPES.sub("", text)) if line.strip()]


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    objects = [node("a"), node("b"), *(pod(f"p{index}", cpu=3) for index in range(3)), pod("large", cpu=20)]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return path


@pytest.mark.parametrize(("columns", "stated", "width"), [(80, None, 80), (132, None, 132), (132, "80", 80)])
def test_a_terminal_gets_what_fits_it(cluster: Path, columns: int, stated: str | None, width: int) -> None:
    environment = {} if stated is None else {"COLUMNS": stated}
    code, text = on_terminal(["solve", str(cluster), "--method", "greedy"], columns, **environment)
    assert code == 0
    found = lines(text)
    assert max(map(len, found)) <= width
    assert any(line.startswith("OPTIMAL  all that can be placed is placed (proved)") for line in found)
    assert any("s left · reading" in line for line in found)


def test_a_pipe_gets_a_fixed_width_and_no_progress(cluster: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    command = [sys.executable, "-m", "placer.cli", "solve", str(cluster), "--method", "greedy"]
    done = subprocess.run(command, capture_output=True, text=True, env=clean, check=True)
    assert done.stderr == ""
    assert max(map(len, done.stdout.splitlines())) <= 140
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("width", [40, 60, 80, 140])
def test_tables_are_cut_between_columns_and_never_in_a_number(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Links between areas with long names, and capacities of eleven digits."""
    monkeypatch.setenv("COLUMNS", str(width))
    path = Path(__file__).parent.parent / "instances" / "network" / "online-boutique-3.yaml"
    assert main(["topology", "costs", str(path)]) == 0
    found = capsys.readouterr().out
    assert max(map(len, found.splitlines())) <= width
    assert found.count("10,737,418,240") == 2
    assert found.count("1,073,741,824") == 4
    assert "zone z1 -> z2" in found


# ----------------------------------------------------------------------------------------------------- the moving line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def progress(monkeypatch: pytest.MonkeyPatch) -> Progress:
    """On a terminal of 60 columns, begun at second 100 with 50 seconds to go."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("COLUMNS", "60")
    return Progress(quiet=False, began=100.0, limit=50.0)


def drawn(progress: Progress, monkeypatch: pytest.MonkeyPatch, now: float) -> str:
    monkeypatch.setattr("placer.answers.progress.time.monotonic", lambda: now)
    return progress._line().plain


def test_the_countdown_moves_where_nothing_happens(progress: Progress, monkeypatch: pytest.MonkeyPatch) -> None:
    progress._text = "reading"
    assert drawn(progress, monkeypatch, 101.0) == "49 s left · reading"
    assert drawn(progress, monkeypatch, 120.0) == "30 s left · reading"
    assert drawn(progress, monkeypatch, 170.0) == "0 s left · reading"


def test_it_is_drawn_again_and_again() -> None:
    """Without a word from the search: what draws it is a clock of its own."""
    program = (
        "import sys, time\nfrom placer.answers.progress import Progress\n"
        "with Progress(quiet=False, began=time.monotonic(), limit=600) as progress:\n"
        "    progress.phase('waiting')\n    sys.stdin.read()\n"
    )
    ours, theirs = pty.openpty()
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=theirs, stderr=theirs)
    os.close(theirs)
    assert child.stdin is not None
    text, seen = b"", list[int]()
    with contextlib.suppress(OSError):
        while part := os.read(ours, 65536):
            text += part
            seen = [int(number) for number in re.findall(r"(\d+) s left · waiting", text.decode(errors="ignore"))]
            if len(set(seen)) >= 3:
                child.stdin.close()
    os.close(ours)
    assert child.wait() == 0
    assert seen == sorted(seen, reverse=True)
    assert text.count(b"\n") <= 1


def test_it_is_one_line_and_holds_no_half_number(progress: Progress, monkeypatch: pytest.MonkeyPatch) -> None:
    progress._text = "span (leaf switches) 1,234,567 and then some more words until 987,654,321 and on"
    found = drawn(progress, monkeypatch, 101.0)
    assert len(found) <= 60
    assert found.endswith(" ...")
    assert set(re.findall(r"[\d,]{5,}", found)) <= {"1,234,567", "987,654,321"}


def test_the_first_value_that_is_not_proved_is_shown_in_words(progress: Progress) -> None:
    progress.knows(instance_of(node("a"), pod("p", cpu=1)))
    names = [criterion.name for criterion in progress._criteria]
    assert names[:4] == ["admitted", "placed", "locality", "span"]
    rest = (0,) * (len(names) - 4)
    progress.point(
        TracePoint(1.0, "decomposed: span", (125_000, 125_000, 7, 5, *rest), (125_000, 125_000, 7, 4, *rest))
    )
    assert progress._text == "decomposed: span (leaf switches) 5 (bound 4)"
    progress.point(TracePoint(1.0, "greedy", (125_000, 125_000, 0, 0, *rest), (150_000, None, None, None, *rest)))
    assert progress._text == "greedy: admitted groups 0.12 nodes (bound 0.15 nodes)"
    progress.point(TracePoint(1.0, "greedy", (1, 1, 0, 0, *rest), (1, 1, 0, 0, *rest)))
    assert progress._text == "greedy: every value is proved"


# ---------------------------------------------------------------------------------------------------------- many faults


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """25 nodes, each with one fault."""
    objects: list[Any] = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}"}, "spec": {"taints": 3}}
        for number in range(25)
    ]
    path = tmp_path / "faulty.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return path


def test_a_terminal_shows_twenty_faults_and_says_how_many_more_there_are(faulty: Path) -> None:
    code, text = on_terminal(["solve", str(faulty), "--quiet"], 250)
    assert code == 3
    found = lines(text)
    assert found[0] == "placer: 25 faults in the input"
    assert sum("spec.taints: found 3" in line for line in found) == 20
    assert found[-1] == "  ... and 5 more (all of them: --json)"


def test_json_and_files_get_all_faults(faulty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", str(faulty)]) == 3
    assert capsys.readouterr().err.count("spec.taints: found 3") == 25
    code, text = on_terminal(["solve", str(faulty), "--json", "--quiet"], 80)
    assert code == 3
    assert len(json.loads(text)["faults"]) == 25
