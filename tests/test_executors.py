"""Executors by name: what runs where, and that nothing stays behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from pathlib import Path

import pytest

from placer.base import executors
from placer.base.errors import UsageError
from placer.base.executors import open_executor
from tests.executing import (
    is_interrupted,
    process_id,
    writes_its_id_and_sleeps,
    writes_whether_ctrl_c_is_held_back,
)
from tests.waiting import wait_until

ROOT = Path(__file__).parent.parent

#: Opens a local executor, has a worker write its id into the file given, and waits.
PARENT = """
import sys
from placer.base.executors import open_executor
from tests.executing import writes_its_id_and_sleeps

if __name__ == "__main__":
    with open_executor("local", 1) as executor:
        executor.submit(writes_its_id_and_sleeps, sys.argv[1]).result()
"""


def runs(pid: int) -> bool:
    """Whether there is such a process; one that is dead and waits to be collected does not run."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextlib.contextmanager
def parent(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A process of its own group with a busy worker; both are gone afterwards."""
    written, program = tmp_path / "pid", tmp_path / "parent.py"
    program.write_text(PARENT)
    with (tmp_path / "errors").open("wb") as errors:
        started = subprocess.Popen(
            [sys.executable, str(program), str(written)],
            stderr=errors,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    worker = 0
    try:
        wait_until(lambda: written.exists() and written.read_text() != "")
        worker = int(written.read_text())
        assert runs(worker)
        yield started, worker
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def test_local_runs_in_as_many_processes_as_asked() -> None:
    with open_executor("local", 2) as executor:
        seen = {executor.submit(process_id).result() for _ in range(6)}
        assert os.getpid() not in seen
        assert 1 <= len(seen) <= 2


def test_leaving_local_ends_what_runs_and_cancels_what_waits(tmp_path: Path) -> None:
    written = tmp_path / "pid"
    with open_executor("local", 1) as executor:
        waiting = [executor.submit(writes_its_id_and_sleeps, str(written)) for _ in range(4)]
        wait_until(lambda: written.exists() and written.read_text() != "")
    assert not runs(int(written.read_text()))
    for future in waiting:
        with pytest.raises((BrokenExecutor, CancelledError)):
            future.result(timeout=600)
    assert waiting[-1].cancelled()


def test_leaving_by_an_error_ends_the_workers_too(tmp_path: Path) -> None:
    written = tmp_path / "pid"

    def fails() -> None:
        with open_executor("local", 1) as executor:
            executor.submit(writes_its_id_and_sleeps, str(written))
            wait_until(lambda: written.exists() and written.read_text() != "")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert not runs(int(written.read_text()))


def test_killing_the_group_ends_the_workers(tmp_path: Path) -> None:
    with parent(tmp_path) as (process, worker):
        os.killpg(process.pid, signal.SIGKILL)
        wait_until(lambda: not runs(worker))


def test_killing_the_parent_alone_ends_the_workers(tmp_path: Path) -> None:
    with parent(tmp_path) as (process, worker):
        process.kill()
        wait_until(lambda: not runs(worker))


def test_ctrl_c_does_not_reach_a_process_before_it_is_a_worker(tmp_path: Path) -> None:
    """While it imports, it would end with a traceback on the terminal of its parent."""
    written = tmp_path / "held"
    process = executors._Starting().Process(target=writes_whether_ctrl_c_is_held_back, args=(str(written),))
    process.start()
    process.join()
    assert written.read_text() == "True"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_ctrl_c_ends_the_parent_and_with_it_the_workers(tmp_path: Path) -> None:
    with parent(tmp_path) as (process, worker):
        os.killpg(process.pid, signal.SIGINT)
        process.wait()
        said = (tmp_path / "errors").read_text()
        assert said.count("Traceback") == 1
        assert "KeyboardInterrupt" in said.splitlines()
        wait_until(lambda: not runs(worker))


def test_ctrl_c_is_for_the_parent_alone_to_heed() -> None:
    with open_executor("local", 1) as executor:
        assert executor.submit(is_interrupted).result() == "goes on"


def test_inline_runs_when_submitted_and_in_order() -> None:
    order: list[int] = []
    with open_executor("inline", 1) as executor:
        futures = [executor.submit(order.append, number) for number in range(3)]
        assert order == [0, 1, 2]
        assert all(future.done() for future in futures)
        assert executor.submit(process_id).result() == os.getpid()
        assert list(executor.map(abs, [-1, 2])) == [1, 2]


def test_inline_keeps_errors_in_the_future_and_lets_interrupts_through() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with open_executor("inline", 1) as executor:
        assert isinstance(executor.submit(int, "x").exception(), ValueError)
        with pytest.raises(KeyboardInterrupt):
            executor.submit(interrupted)


@pytest.mark.parametrize("name", ["local", "inline", "tests.executing:threads"])
def test_nothing_is_taken_after_the_context(name: str) -> None:
    with open_executor(name, 1) as executor:
        pass
    with pytest.raises(RuntimeError):
        executor.submit(process_id)


def test_an_executor_of_the_users_runs_and_its_waiting_calls_are_cancelled() -> None:
    begun, go = threading.Event(), threading.Event()

    def waits() -> str:
        begun.set()
        go.wait()
        return threading.current_thread().name

    with open_executor("tests.executing:threads", 1) as executor:
        running: Future[str] = executor.submit(waits)
        waiting = executor.submit(waits)
        assert begun.wait(60)
    assert waiting.cancelled()
    go.set()
    assert running.result().startswith("theirs")


@pytest.mark.parametrize(
    ("name", "workers", "words"),
    [
        ("cloud", 1, "executor: found 'cloud', expected one of local, inline, dask:ADDRESS, package.module:function"),
        (":f", 1, "found ':f'"),
        ("tests.executing:", 1, "found 'tests.executing:'"),
        ("tests.nowhere:f", 1, "tests.nowhere:f: cannot be opened: ModuleNotFoundError"),
        ("tests.executing:nothing", 1, "cannot be opened: AttributeError"),
        ("tests.executing:refuses", 3, "cannot be opened: OSError: no scheduler for 3 workers"),
        ("tests.executing:no_executor", 1, "found int, expected a concurrent.futures.Executor"),
        ("local", 0, "workers: found 0, expected at least 1"),
    ],
)
def test_a_name_that_opens_nothing_is_a_usage_error(name: str, workers: int, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_executor(name, workers)
    assert words in str(caught.value)


def test_every_name_gives_an_executor() -> None:
    for name in ("local", "inline", "tests.executing:threads"):
        with open_executor(name, 2) as executor:
            assert isinstance(executor, Executor)
