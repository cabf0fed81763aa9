"""What all tests need: how many cases they try, how processes end, and a terminal of known width."""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import pytest

from tests.examples import register_profiles

register_profiles()


def pytest_configure(config: pytest.Config) -> None:
    """Let processes that tests start share what they compile, where the environment forbids to keep it for good.

    There are hundreds of them, and to compile what one of them imports takes as long as what most of them do. They heed
    Ctrl-C, also where a shell has started the tests in the background, which has its jobs ignore it.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if sys.dont_write_bytecode and not hasattr(config, "workerinput"):
        folder = tempfile.mkdtemp(prefix="placer-tests-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say that tests against an API server did not run, and how to get them: a letter among thousands says nothing."""
    all_skipped = (
        each for each in terminalreporter.stats.get("skipped", ()) if "::test_" in each.nodeid
    )  # no doctests
    skipped = [each for each in all_skipped if each.nodeid.startswith("tests/cluster/")]
    reasons = sorted({str(each.longrepr[2]).removeprefix("Skipped: ") for each in skipped})
    if skipped:
        terminalreporter.section("tests/cluster")
        terminalreporter.line(f"tests that did not run: {len(skipped)}")
    for reason in reasons:
        terminalreporter.line(reason)


@pytest.fixture(autouse=True)
def width_of_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print as into a pipe: parallel test processes have ``COLUMNS`` from the terminal that they were started from."""
    monkeypatch.delenv("COLUMNS", raising=False)


#: Rooms none of whose tests is about the process that a search runs in.
SEARCH_HERE = {"audit", "bounds", "cli", "explain", "numa", "preempt", "problem", "reasons", "report", "summary"}


@pytest.fixture(autouse=True)
def search_here_in_these_rooms(request: pytest.FixtureRequest) -> None:
    """Start no process for a search where only its answer matters."""
    if request.path.parent.name in SEARCH_HERE:
        request.getfixturevalue("search_here")


@pytest.fixture
def search_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run searches in this process: hundreds of tiny ones would otherwise spend their time on starting."""
    from placer.search import process

    def run_here(target: str, arguments: tuple[Any, ...], on_event: Callable[[Any], None], *_: object) -> Any:
        module, _, function = target.partition(":")
        value = getattr(importlib.import_module(module), function)(*arguments, on_event)
        return process.ProcessResult(process.ProcessEnd.RETURNED, value)

    monkeypatch.setattr(process, "run_apart", run_here)


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of two to four nodes, so that tiny instances have several."""
    from placer.search.decomposed import destroy, large_neighbourhood

    for name, value in (("FIRST", 3), ("LEAST", 2), ("MOST", 4)):
        monkeypatch.setattr(large_neighbourhood, name, value)
    monkeypatch.setattr(destroy, "CELL", 2)
