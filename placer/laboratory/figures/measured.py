"""Runs to draw, out of files: lines of ``placer sweep`` (also as one array), or rows of ``placer compare --json``."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from placer.errors import BadInstance, Fault, UsageError
from placer.laboratory.sweep.records import KEY, Key, RunRecord, read_lines, read_record
from placer.laboratory.sweep.statistics import references

__all__ = ["MeasuredRun", "read_runs"]

EXPECTED = "lines of placer sweep, or output of placer compare --json"


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """One run of a policy or method in figures; None: its file does not say.

    Parameters
    ----------
    instance, seed
        Of a comparison its file, and 0.
    failed
        There is no result that can be trusted.
    broken
        The placement breaks rules: it is as good as none.
    placed
        Placed weight, in micro-nodes.
    most
        The reference for it: the least bound on the weight that any run proves, or the best known placement's.
    seconds, memory
        Of the whole call, and the peak in MiB.
    trace
        Seconds and placed weight of each improvement; empty for one answer only.
    """

    file: str
    instance: str
    seed: int
    policy: str
    failed: bool
    broken: bool
    placed: int | None
    most: int | None
    nodes: int | None
    seconds: float | None
    memory: float | None
    trace: tuple[tuple[float, int], ...] = ()


def read_runs(paths: Sequence[str]) -> list[MeasuredRun]:
    """Read the runs to draw; lines of several files count as one sweep.

    Raises
    ------
    BadInstance
        A file holds something else, or nothing.
    UsageError
        A file cannot be read.
    """
    lines: list[tuple[str, RunRecord]] = []
    rows: list[MeasuredRun] = []
    for path in paths:
        array = _array(path)
        if array is None:
            lines += [(path, line) for line in read_lines(path)]
        elif _is_swept(array):
            lines += [(path, read_record(row, path, f"entry {number}")) for number, row in enumerate(array, start=1)]
        else:
            rows += _compared(path, array)
    if not lines and not rows:
        raise BadInstance([Fault(path, None, "", "", "nothing", EXPECTED) for path in paths])
    return [*_swept(lines), *rows]


def _is_swept(array: Iterable[Any]) -> bool:
    return all(isinstance(row, dict) and set(KEY) <= set(row) for row in array)


def _swept(lines: Sequence[tuple[str, RunRecord]]) -> list[MeasuredRun]:
    beside = references(line for _, line in lines)
    names = _names([line for _, line in lines])
    return [
        replace(_measured(path, line, beside.get((line.instance, line.seed))), policy=names[line.key])
        for path, line in lines
    ]


#: What one policy may have been run with in several ways: key of a line to how that is told.
_WAYS = {"limit": "{:g} s", "workers": "{} threads", "version": "placer {}", "config": "configuration {}"}


def _names(lines: Iterable[RunRecord]) -> dict[Key, str]:
    by_policy: dict[str, list[RunRecord]] = defaultdict(list)
    for line in lines:
        by_policy[line.policy].append(line)
    found: dict[Key, str] = {}
    for policy, of_policy in by_policy.items():
        several = [way for way in _WAYS if len({getattr(line, way) for line in of_policy}) > 1]
        for line in of_policy:
            found[line.key] = ", ".join([policy, *(_WAYS[way].format(getattr(line, way)) for way in several)])
    return found


def _array(path: str) -> list[Any] | None:
    """The array that a file is, or the items of a list of placer's; None where it is neither."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    if not text.lstrip().startswith((b"[", b"{")):
        return None
    try:
        found = json.loads(text)
    except ValueError as error:
        if text.lstrip().startswith(b"{"):  # lines of a sweep
            return None
        raise BadInstance([Fault(path, None, "", "", f"no JSON ({error})", EXPECTED)]) from None
    if isinstance(found, dict):
        if not isinstance(found.get("items"), list):
            return None
        found = found["items"]
    if not found:
        raise BadInstance([Fault(path, None, "", "", "an empty array", EXPECTED)])
    return list(found)


def _measured(path: str, line: RunRecord, most: int | None) -> MeasuredRun:
    placed = [each.name == "placed" for each in line.objective]
    trace = [
        (point.seconds, sum(value for value, counts in zip(point.values, placed, strict=True) if counts))
        for point in line.trace
    ]
    return MeasuredRun(
        file=path,
        instance=line.instance,
        seed=line.seed,
        policy=line.policy,
        failed=line.error is not None,
        broken=bool(line.violations),
        placed=line.placed_weight,
        most=most,
        nodes=line.nodes,
        seconds=line.seconds,
        memory=line.peak_memory_mib,
        trace=tuple(trace),
    )


def _compared(path: str, rows: Iterable[Any]) -> list[MeasuredRun]:
    faults: list[Fault] = []
    found: list[MeasuredRun] = []
    for number, row in enumerate(rows, start=1):
        if not (isinstance(row, dict) and isinstance(row.get("policy"), str) and "metrics" in row):
            faults.append(Fault(path, None, f"entry {number}", "", repr(row)[:60], EXPECTED))
            continue
        weight = (row["metrics"] or {}).get("weight", {})
        found.append(
            MeasuredRun(
                file=path,
                instance=path,
                seed=0,
                policy=row["policy"],
                failed=row.get("error") is not None,
                broken=bool(row.get("violations")),
                placed=weight.get("value"),
                most=weight.get("bound"),
                nodes=None,
                seconds=row.get("seconds"),
                memory=row.get("peakMemoryMiB"),
            )
        )
    if faults:
        raise BadInstance(faults)
    return found
