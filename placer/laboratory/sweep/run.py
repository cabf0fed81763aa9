"""Runs, one after another or several at once, each in a process of its own so that its time and memory are its own.

What happens in such a process (:func:`answer`) is the whole call as a user makes it, reading to writing.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.errors import PlacerError, UsageError
from placer.executors import open_executor
from placer.laboratory.deciders import ask
from placer.laboratory.peak_memory import PeakOfTree, high_water
from placer.laboratory.policies import Mimicry
from placer.laboratory.sweep.plan import Run, planted_beside
from placer.laboratory.sweep.records import RunRecord
from placer.methods.process import ProcessEnd, ProcessResult, run_apart
from placer.result import Termination, Verdict

if TYPE_CHECKING:
    from placer.instance import Instance
    from placer.result import Result

__all__ = ["answer", "make", "sweep"]


LONGEST = 2000  #: characters of an error in a line; a bad instance may have thousands of faults


def make(run: Run, target: str, emit: Callable[[Any], None]) -> str:  # noqa: ARG001  # nothing to tell on the way
    """Generate the instance of a run, with its planted placement beside it.

    Returns
    -------
    str
        What went wrong; empty: nothing.
    """
    from placer.laboratory.generate import bindings, generate
    from placer.manifests import dump

    try:
        made = generate(run.subject.family or "", **dict(run.subject.options), seed=run.seed)
        dump({"apiVersion": "v1", "kind": "List", "items": made.documents}, target)
        if made.planted is not None:
            dump(bindings(made), planted_beside(target))
    except PlacerError as error:
        return str(error)[:LONGEST]
    return ""


def answer(run: Run, path: str, target: str, emit: Callable[[Any], None]) -> RunRecord:
    """Decide, write, measure.

    Parameters
    ----------
    run
        Its policy and limits; the instance is the one at ``path``.
    path
        File or folder of the instance.
    target
        Where the Placement is written; of a policy its Bindings.
    emit
        Is told the id of this process, and None when the call is over (:meth:`PeakOfTree.hear`).
    """
    began = time.monotonic()
    emit(os.getpid())
    try:
        instance, figures = _decide(run, path, target, began)
        seconds, peak = time.monotonic() - began, high_water("self")
        emit(None)
        line = run.line(
            nodes=len(instance.nodes),
            pending=len(instance.pending),
            seconds=round(seconds, 3),
            peak_memory_mib=round(peak / 1024, 1) or None,
            **figures,
        )
        return _beside_planted(line, instance, path)
    except PlacerError as error:
        return run.line(error=str(error)[:LONGEST])


def _decide(run: Run, path: str, target: str, began: float) -> tuple[Instance, dict[str, Any]]:
    """Read, decide and write; the figures of the answer."""
    from placer.read import read

    instance = read(path)
    said = ask(instance, run.asked, began)
    return instance, _of_policy(instance, said, target) if isinstance(said, Mimicry) else _of_method(said, target)


def _of_policy(instance: Instance, said: Mimicry, target: str) -> dict[str, Any]:
    """Judge as the call of a method does, and write."""
    from placer.document import ValuePart, bindings_document
    from placer.manifests import dump
    from placer.score import placed_weight, score
    from placer.verify import RULES, verify

    placement = said.placement
    broken = Counter(violation.rule for violation in verify(instance, placement))
    unproved = {"bound": None, "gap": None, "proved_by": None}
    figures = {
        "placed_pods": len(placement.bindings),
        "placed_weight": placed_weight(instance, placement),
        "objective": [
            ValuePart(name=each.name, priority=each.priority, value=each.value, **unproved)
            for each in score(instance, placement)
        ],
        "violations": {rule: broken[rule] for rule, _ in RULES if broken[rule]},
        "verdict": None if broken else Verdict.FEASIBLE,
        "termination": Termination.FINISHED,
        "notes": list(said.notes),
    }
    dump(bindings_document(placement), target)
    return figures


def _of_method(result: Result, target: str) -> dict[str, Any]:
    """Write what is verified already."""
    from placer.document import placement_document
    from placer.manifests import dump

    document = placement_document(result)
    dump(document.as_dict(), target)
    return {
        "placed_pods": len(document.bindings),
        "placed_weight": document.weight.value,
        "weight_bound": document.weight.bound,
        "weight_gap": document.weight.gap,
        "weight_proved_by": document.weight.proved_by,
        "objective": document.objective,
        "verdict": document.verdict,
        "termination": document.termination,
        "seconds_to_first": document.trace[0].seconds if document.trace else None,
    }


def _beside_planted(line: RunRecord, instance: Instance, path: str) -> RunRecord:
    """Compare with the planted placement, where one lies beside the instance; one that is broken is an error."""
    from placer.read import read_placement
    from placer.score import placed_weight
    from placer.verify import verify

    beside = planted_beside(path)
    if not Path(beside).is_file():
        return line
    try:
        planted = read_placement(beside)
    except PlacerError as error:
        return line.model_copy(update={"error": str(error)[:LONGEST]})
    broken = verify(instance, planted)
    if broken:
        text = f"{beside}: the planted placement breaks {len(broken):,} rules, the first: {broken[0].message}"
        return line.model_copy(update={"error": text[:LONGEST]})
    weight = placed_weight(instance, planted)
    share = (line.placed_weight or 0) / weight if weight else None
    return line.model_copy(update={"planted_weight": weight, "placed_over_planted": share})


def sweep(
    runs: Sequence[Run],
    *,
    executor: str = "local",
    jobs: int = 1,
    begin: Callable[[Run], None] | None = None,
) -> Generator[RunRecord, None, None]:
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
        going, asked = set[Future[RunRecord]](), dict[Future[RunRecord], Run]()

        def line_of(future: Future[RunRecord]) -> RunRecord:
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


def _line_of(future: Future[RunRecord], run: Run) -> RunRecord:
    error = future.exception()
    if error is not None:  # no run's fault: these are caught where it runs
        raise PlacerError(f"the executor failed: {type(error).__name__}: {error}") from error
    line = future.result()
    if line.version != run.line().version:
        raise PlacerError(f"the executor: found placer {line.version} there, expected {run.line().version} as here")
    return line


def _carry_out(run: Run, path: str, scratch: str) -> RunRecord:
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
    line: RunRecord = answered.value or run.line(error=_died(answered))
    if line.peak_memory_mib is None:
        return line
    return line.model_copy(update={"peak_memory_mib": max(line.peak_memory_mib, round(tree.peak / 1024, 1))})


def _apart(function: str, arguments: tuple[Any, ...], hear: Callable[[Any], None]) -> ProcessResult:
    ended = run_apart(f"placer.laboratory.sweep.run:{function}", arguments, hear)
    if ended.how is ProcessEnd.INTERRUPTED:
        raise KeyboardInterrupt
    return ended


def _died(ended: ProcessResult) -> str:
    return f"the process of the run ended with {ended.detail}"
