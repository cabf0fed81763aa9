from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from placer.base.deadline import Deadline
from placer.search import fork_server, process
from placer.search.process import ProcessEnd, ProcessResult, run_apart
from tests.waiting import wait_until


@pytest.fixture(autouse=True)
def _searches_are_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent))


#: Makes what notes events in a list, and once one is there the time is over.
OverAfter = Callable[[list[Any]], Callable[[object], None]]


@pytest.fixture
def over_after(monkeypatch: pytest.MonkeyPatch) -> OverAfter:
    """A clock that goes far ahead with the first event: no test waits, and none depends on how soon it comes."""

    def make(events: list[Any]) -> Callable[[object], None]:
        clock = SimpleNamespace(monotonic=lambda: time.monotonic() + (3600 if events else 0))
        monkeypatch.setattr("placer.base.deadline.time", clock)
        return events.append

    return make


def test_events_arrive_in_order_and_the_value_returns() -> None:
    events: list[object] = []
    ended = run_apart("searches:honest", (7,), events.append)
    assert (ended.how, ended.value) == (ProcessEnd.RETURNED, "finished")
    assert events == [("found", 7), ("found", 8)]


@pytest.mark.parametrize("search", ["hangs", "hangs_deaf"])
def test_a_search_that_hangs_is_killed_and_its_events_stay(search: str, over_after: OverAfter) -> None:
    events: list[object] = []
    ended = run_apart(f"searches:{search}", (), over_after(events), Deadline.within(600))
    assert ended.how is ProcessEnd.KILLED
    assert events == ["before"]


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


def test_what_lies_in_the_users_directory_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in place of the standard library nor of ours."""
    monkeypatch.chdir(tmp_path)
    for name in ("pickle.py", "struct.py", "placer.py"):
        (tmp_path / name).write_text("raise SystemExit('a module of the user was run')\n")
    ended = run_apart("searches:honest", (7,), lambda _: None)
    assert (ended.how, ended.value, ended.detail) == (ProcessEnd.RETURNED, "finished", "")


def test_one_that_stops_before_it_reads_does_not_hold_us_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The task is larger than a pipe holds, and the time is over after a moment."""
    stopped = tmp_path / "python"
    stopped.write_text("#!/bin/sh\nexec sleep 3600\n")
    stopped.chmod(0o755)
    monkeypatch.setattr(process, "SERVER", fork_server.ForkServer())
    monkeypatch.setattr(sys, "executable", str(stopped))
    ended = run_apart("searches:honest", ("x" * 5_000_000,), lambda _: None, Deadline.within(0.2))
    assert ended.how is ProcessEnd.KILLED


@pytest.fixture
def own_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[fork_server.ForkServer]:
    server = fork_server.ForkServer()
    monkeypatch.setattr(process, "SERVER", server)
    yield server
    server.stop()


def test_children_come_from_one_server_in_the_state_of_the_parent(
    own_server: fork_server.ForkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Directory, environment and path are those of the call and not of the first one."""
    (before,) = _events("tells_its_state")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLACER_TEST", "1")
    (after,) = _events("tells_its_state")
    assert before["server"] == after["server"] != os.getpid()
    assert (after["directory"], after["environment"]) == (str(tmp_path), "1")
    assert before["environment"] is None


def test_several_threads_have_a_child_each(own_server: fork_server.ForkServer) -> None:
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda value: _events("honest", value), range(8)))
    assert found == [[("found", value), ("found", value + 1)] for value in range(8)]


def test_a_server_that_has_ended_is_started_again(own_server: fork_server.ForkServer) -> None:
    """By whatever hand: a container that is short of memory may lose it."""
    (state,) = _events("tells_its_state")
    os.kill(state["server"], signal.SIGKILL)
    wait_until(lambda: not _runs(state["server"]))
    assert _events("honest", 7) == [("found", 7), ("found", 8)]


def test_a_child_outlives_its_server_and_nobody_knows_how_it_ended(own_server: fork_server.ForkServer) -> None:
    ended = run_apart("searches:honest", (7,), lambda _: own_server.stop())
    assert (ended.how, ended.value) == (ProcessEnd.RETURNED, "finished")
    ended = run_apart("searches:raises", (), lambda _: own_server.stop())
    assert ended == ProcessResult(ProcessEnd.DIED, detail="no exit status: ValueError: a fault in the search")


def test_a_server_says_of_a_child_of_another_that_it_does_not_know(own_server: fork_server.ForkServer) -> None:
    (before,) = _events("tells_its_state")
    assert own_server.wait(os.getpid()) is None
    (after,) = _events("tells_its_state")
    assert after["server"] == before["server"]


def _events(search: str, *arguments: object) -> list[Any]:
    events: list[Any] = []
    assert run_apart(f"searches:{search}", arguments, events.append).how is ProcessEnd.RETURNED
    return events


def test_in_a_container_one_that_takes_too_much_dies_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may take nine tenths of what is left, and asks for twice as much."""
    monkeypatch.setattr(process, "memory_left", lambda: 2**29)
    events: list[object] = []
    ended = run_apart("searches:eats", (), events.append)
    assert (ended.how, events) == (ProcessEnd.DIED, ["before"])
    assert "MemoryError" in ended.detail
    monkeypatch.setattr(process, "memory_left", lambda: None)
    assert run_apart("searches:eats", (), events.append).value == "ate 64"


def test_one_is_ended_when_the_container_has_nothing_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where others took it: before the kernel ends us all."""
    events: list[object] = []
    monkeypatch.setattr(process, "memory_left", lambda: 2**20 if events else 2**34)
    ended = run_apart("searches:hangs", (), events.append)
    assert (ended.how, ended.detail) == (ProcessEnd.DIED, "the container's memory is nearly used up")
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
        "from placer.search.process import run_apart\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background command ignores it
        "events = []\n"
        "def pressed(event):\n"
        "    events.append(event)\n"
        "    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "print(run_apart('searches:hangs', (), pressed).how.value, events)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "interrupted ['before']\n"


@pytest.mark.parametrize("begun", [False, True], ids=["before", "after"])
def test_an_interrupt_while_the_task_is_handed_over_ends_the_search(
    begun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt may fall into the start of the thread that writes the task, which then never began, or did."""

    class Interrupted(threading.Thread):
        def start(self) -> None:
            if begun:
                super().start()
            raise KeyboardInterrupt

    monkeypatch.setattr(process.threading, "Thread", Interrupted)
    assert run_apart("searches:honest", (7,), lambda _: None).how is ProcessEnd.INTERRUPTED


def test_a_program_that_the_search_started_is_killed_with_it(over_after: OverAfter) -> None:
    """A solver may be one, such as CBC."""
    pids: list[int] = []
    ended = run_apart("searches:starts_a_program", (), over_after(pids), Deadline.within(600))
    assert ended.how is ProcessEnd.KILLED
    wait_until(lambda: not _runs(pids[0]))


@pytest.mark.parametrize("search", ["tells_its_pid", "starts_a_program"])
def test_the_search_dies_with_its_parent(search: str, tmp_path: Path) -> None:
    """A parent that is killed outright cannot clean up: the child must notice by itself, and end what it started."""
    note = tmp_path / "pid"
    program = (
        "from placer.search.process import run_apart\n"
        f"run_apart('searches:{search}', (), lambda pid: open({str(note)!r}, 'w').write(str(pid)))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    parent = subprocess.Popen([sys.executable, "-c", program], env=environment)
    wait_until(lambda: note.exists() and note.read_text() != "")
    child = int(note.read_text())
    parent.kill()
    parent.wait()
    wait_until(lambda: not _runs(child))


def _runs(pid: int) -> bool:
    """Whether a process still runs (one that has ended but was not reaped does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Endless:
    """Arguments that are never written to an end."""

    def __reduce__(self) -> Any:
        while True:
            pass


def test_no_task_is_written_beyond_the_deadline() -> None:
    found = run_apart("searches:count", (Endless(),), print, Deadline.within(0.01))
    assert found.how is ProcessEnd.KILLED


@pytest.mark.parametrize("end", [ProcessEnd.KILLED, ProcessEnd.INTERRUPTED])
def test_a_search_ends_that_its_caller_has_enough_of(end: ProcessEnd) -> None:
    asked: list[None] = []

    def enough() -> ProcessEnd | None:
        asked.append(None)
        return end if len(asked) > 2 else None

    ended = run_apart("searches:hangs", (), lambda _: None, enough=enough)
    assert ended.how is end
    assert len(asked) == 3
