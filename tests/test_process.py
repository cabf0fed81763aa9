from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from placer.methods.process import ProcessEnd, run_apart


@pytest.fixture(autouse=True)
def _searches_are_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def test_events_arrive_in_order_and_the_value_returns() -> None:
    events: list[object] = []
    ended = run_apart("searches:honest", (7,), events.append)
    assert (ended.how, ended.value) == (ProcessEnd.RETURNED, "finished")
    assert events == [("found", 7), ("found", 8)]


@pytest.mark.parametrize("search", ["hangs", "hangs_deaf"])
def test_a_search_that_hangs_is_killed_and_its_events_stay(search: str) -> None:
    events: list[object] = []
    start = time.monotonic()
    ended = run_apart(f"searches:{search}", (), events.append, deadline=start + 8)
    assert ended.how is ProcessEnd.KILLED
    assert events == ["before"]
    assert time.monotonic() - start < 300  # and not for ever


@pytest.mark.parametrize(
    ("search", "words"),
    [
        ("aborts", f"signal {int(signal.SIGABRT)}"),
        ("is_killed", f"signal {int(signal.SIGKILL)}"),
        ("raises", "exit status 1: ValueError: a fault in the search"),
    ],
)
def test_a_search_that_dies_says_how_and_its_events_stay(search: str, words: str) -> None:
    events: list[object] = []
    ended = run_apart(f"searches:{search}", (), events.append)
    assert ended.how is ProcessEnd.DIED
    assert words in ended.detail
    assert events == ["before"]


def test_noise_and_large_events_do_no_harm(capfd: pytest.CaptureFixture[str]) -> None:
    events: list[str] = []
    assert run_apart("searches:prints", (), events.append).how is ProcessEnd.RETURNED
    assert [len(event) for event in events] == [5_000_000]
    assert capfd.readouterr() == ("", "")


def test_interrupt_ends_the_search_and_keeps_its_events() -> None:
    """In a process of its own: the signal must reach nobody else's main thread."""
    program = (
        "import os, signal, threading\n"
        "from placer.methods.process import run_apart\n"
        "events = []\n"
        "def pressed(event):\n"
        "    events.append(event)\n"
        "    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "print(run_apart('searches:hangs', (), pressed).how.value, events)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "interrupted ['before']\n"


def test_a_program_that_the_search_started_is_killed_with_it() -> None:
    """A solver may be one, such as CBC."""
    pids: list[int] = []
    ended = run_apart("searches:starts_a_program", (), pids.append, deadline=time.monotonic() + 2)
    assert ended.how is ProcessEnd.KILLED
    _wait_for(lambda: not _runs(pids[0]))


@pytest.mark.parametrize("search", ["tells_its_pid", "starts_a_program"])
def test_the_search_dies_with_its_parent(search: str, tmp_path: Path) -> None:
    """A parent that is killed outright cannot clean up: the child must notice by itself, and end what it started."""
    note = tmp_path / "pid"
    program = (
        "from placer.methods.process import run_apart\n"
        f"run_apart('searches:{search}', (), lambda pid: open({str(note)!r}, 'w').write(str(pid)))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    parent = subprocess.Popen([sys.executable, "-c", program], env=environment)
    _wait_for(lambda: note.exists() and note.read_text() != "")
    child = int(note.read_text())
    parent.kill()
    parent.wait()
    _wait_for(lambda: not _runs(child))


def _runs(pid: int) -> bool:
    """Whether a process still runs (one that has ended but was not reaped does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _wait_for(condition: object) -> None:
    assert callable(condition)
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "waited for a minute"
        time.sleep(0.05)
