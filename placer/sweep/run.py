"""Runs, one after another or several at once, each in a process of its own so that its time and memory are its own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path
from typing import Any

from placer.errors import PlacerError, UsageError
from placer.executors import open_executor
from placer.methods.process import Ended, How, run_apart
from placer.sweep.line import Line
from placer.sweep.memory import PeakOfTree
from placer.sweep.plan import Run

__all__ = ["sweep"]


def sweep(
    runs: Sequence[Run],
    *,
    executor: str = "local",
    jobs: int = 1,
    begin: Callable[[Run], None] | None = None,
) -> Generator[Line, None, None]:
    """Carry out runs.

    Parameters
    ----------
    runs
        What :func:`~placer.sweep.plan.plan` returned, or part of it.
    executor
        Name of an executor (:mod:`placer.executors`). What it is given starts a process for each run.
    jobs
        Runs at once, at least 1. More than one compete for cores and memory, which shows in their seconds.
    begin
        Called with each run that is handed over (progress).

    Yields
    ------
    Line
        One per run, as soon as it is done; a run that fails is a line with its error.

    Raises
    ------
    UsageError
        No such executor, or no such number of jobs.
    PlacerError
        The executor itself failed.
    """
    if jobs < 1:
        raise UsageError(f"jobs: found {jobs}, expected at least 1")
    # What a killed worker leaves behind is in one folder, which this process removes.
    with (
        tempfile.TemporaryDirectory(prefix="placer-sweep-", ignore_cleanup_errors=True) as scratch,
        open_executor(executor, jobs) as opened,
    ):
        going: set[Future[Line]] = set()
        for run in runs:
            if begin is not None:
                begin(run)
            going.add(opened.submit(_carry_out, run, scratch))
            if len(going) >= jobs:
                done, going = wait(going, return_when=FIRST_COMPLETED)
                yield from map(_line_of, done)
        while going:
            done, going = wait(going, return_when=FIRST_COMPLETED)
            yield from map(_line_of, done)


def _line_of(future: Future[Line]) -> Line:
    error = future.exception()
    if error is not None:  # no run's fault: these are caught where it runs
        raise PlacerError(f"the executor failed: {type(error).__name__}: {error}") from error
    return future.result()


def _carry_out(run: Run, scratch: str) -> Line:
    """Make the instance in one process and answer in another: what making takes is not the answer's.

    On another machine there is no ``scratch``; there a folder of its own will do.
    """
    within = scratch if Path(scratch).is_dir() else None
    with tempfile.TemporaryDirectory(dir=within, ignore_cleanup_errors=True) as folder:
        path = run.subject.word
        if run.subject.family is not None:
            path = str(Path(folder, "instance.json"))
            made = _apart("make", (run, path), lambda _: None)
            if made.value != "":
                return run.line(error=made.value or _died(made))
        with PeakOfTree() as tree:
            answered = _apart("answer", (run, path, str(Path(folder, "placement.json"))), tree.hear)
    line: Line = answered.value or run.line(error=_died(answered))
    if line.peak_memory_mib is None:
        return line
    return line.model_copy(update={"peak_memory_mib": max(line.peak_memory_mib, round(tree.peak / 1024, 1))})


def _apart(function: str, arguments: tuple[Any, ...], hear: Callable[[Any], None]) -> Ended:
    ended = run_apart(f"placer.sweep.answer:{function}", arguments, hear)
    if ended.how is How.INTERRUPTED:
        raise KeyboardInterrupt
    return ended


def _died(ended: Ended) -> str:
    return f"the process of the run ended with {ended.detail}"
