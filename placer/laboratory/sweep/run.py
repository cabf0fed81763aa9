"""Runs, one after another or several at once, each in a process of its own so that its time and memory are its own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path
from typing import Any

from placer.errors import PlacerError, UsageError
from placer.executors import open_executor
from placer.laboratory.peak_memory import PeakOfTree
from placer.laboratory.sweep.line import Line
from placer.laboratory.sweep.plan import Run
from placer.methods.process import ProcessEnd, ProcessResult, run_apart

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
        What :func:`~placer.laboratory.sweep.plan.plan` returned, or part of it.
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
        going, asked = set[Future[Line]](), dict[Future[Line], Run]()

        def line_of(future: Future[Line]) -> Line:
            return _line_of(future, asked.pop(future))

        for run in runs:
            if begin is not None:
                begin(run)
            future = opened.submit(_carry_out, run, _anywhere(run), scratch)
            asked[future] = run
            going.add(future)
            if len(going) >= jobs:
                done, going = wait(going, return_when=FIRST_COMPLETED)
                yield from map(line_of, done)
        while going:
            done, going = wait(going, return_when=FIRST_COMPLETED)
            yield from map(line_of, done)


def _anywhere(run: Run) -> str:
    """Path of an instance in files that does not depend on where a worker was started; of a family nothing."""
    return str(Path(run.subject.word).absolute()) if run.subject.family is None else ""


def _line_of(future: Future[Line], run: Run) -> Line:
    error = future.exception()
    if error is not None:  # no run's fault: these are caught where it runs
        raise PlacerError(f"the executor failed: {type(error).__name__}: {error}") from error
    line = future.result()
    if line.version != run.line().version:
        raise PlacerError(f"the executor: found placer {line.version} there, expected {run.line().version} as here")
    return line


def _carry_out(run: Run, path: str, scratch: str) -> Line:
    """Make the instance in one process and answer in another: what making takes is not the answer's.

    On another machine there is no ``scratch``; there a folder of its own will do.
    """
    within = scratch if Path(scratch).is_dir() else None
    with tempfile.TemporaryDirectory(dir=within, ignore_cleanup_errors=True) as folder:
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


def _apart(function: str, arguments: tuple[Any, ...], hear: Callable[[Any], None]) -> ProcessResult:
    ended = run_apart(f"placer.laboratory.sweep.answer:{function}", arguments, hear)
    if ended.how is ProcessEnd.INTERRUPTED:
        raise KeyboardInterrupt
    return ended


def _died(ended: ProcessResult) -> str:
    return f"the process of the run ended with {ended.detail}"
