"""Runs to draw, out of files: lines of ``placer sweep`` (also as one array), or rows of ``placer compare --json``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.base.errors import BadInstance, Fault, UsageError
from placer.lab.sweep.records import KEY, RunRecord, read_lines, read_record
from placer.lab.sweep.statistics import references

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_runs"]

EXPECTED = "lines of placer sweep, or output of placer compare --json"

_NUMBERS = ("placed", "most", "nodes", "seconds", "memory")
_COLUMNS = ("file", "instance", "seed", "policy", "failed", "broken", "trace", *_NUMBERS)
#: Keys of a line in which runs of one policy may differ, and how a name says them.
_WAYS = {"limit": "{:g} s", "workers": "{} threads", "version": "placer {}", "config": "configuration {}"}


def read_runs(paths: Sequence[str]) -> pd.DataFrame:
    """Read the runs to draw; lines of several files count as one sweep.

    ``failed``: there is no result that can be trusted; ``broken``: the placement breaks rules; ``trace``: seconds and
    placed weight of each improvement. NaN where the file does not say: ``placed`` weight in micro-nodes; ``most``: its
    reference (:func:`~placer.lab.sweep.statistics.references`); ``nodes``; ``seconds``; ``memory``, MiB.

    Raises
    ------
    BadInstance
        A file holds something else, or nothing.
    UsageError
        A file cannot be read.
    """
    import pandas as pd

    lines: list[tuple[str, RunRecord]] = []
    rows: list[dict[str, Any]] = []
    for path in paths:
        array = _array(path)
        if array is None:
            lines += [(path, line) for line in read_lines(path)]
        elif all(map(_is_line, array)):
            lines += [(path, read_record(row, path, f"entry {number}")) for number, row in enumerate(array, start=1)]
        else:
            rows += _compared(path, array)
    if not lines and not rows:
        raise BadInstance([Fault(path, None, "", "", "nothing", EXPECTED) for path in paths])
    return pd.DataFrame([*_swept(lines), *rows], columns=_COLUMNS).astype(dict.fromkeys(_NUMBERS, float))


def _is_line(row: Any) -> bool:
    return isinstance(row, dict) and set(KEY) <= set(row)


def _swept(lines: Sequence[tuple[str, RunRecord]]) -> list[dict[str, Any]]:
    most = references(line for _, line in lines)
    ways: dict[str, dict[str, set[Any]]] = {}
    for _, line in lines:
        for way, values in ways.setdefault(line.policy, {way: set() for way in _WAYS}).items():
            values.add(getattr(line, way))
    found = []
    for path, line in lines:
        several = [way for way, values in ways[line.policy].items() if len(values) > 1]
        found.append(
            {
                "file": path,
                "instance": line.instance,
                "seed": line.seed,
                "policy": ", ".join([line.policy, *(_WAYS[way].format(getattr(line, way)) for way in several)]),
                "failed": line.error is not None,
                "broken": bool(line.violations),
                "placed": line.placed_weight,
                "most": most.get((line.instance, line.seed)),
                "nodes": line.nodes,
                "seconds": line.seconds,
                "memory": line.peak_memory_mib,
                "trace": _trace(line),
            }
        )
    return found


def _trace(line: RunRecord) -> list[tuple[float, int]]:
    counts = [each.name == "placed" for each in line.objective]
    weights = (sum(value for value, placed in zip(point.values, counts, strict=True) if placed) for point in line.trace)
    return [(point.seconds, weight) for point, weight in zip(line.trace, weights, strict=True)]


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


def _compared(path: str, rows: Iterable[Any]) -> list[dict[str, Any]]:
    faults: list[Fault] = []
    found: list[dict[str, Any]] = []
    for number, row in enumerate(rows, start=1):
        if not (isinstance(row, dict) and isinstance(row.get("policy"), str) and "metrics" in row):
            faults.append(Fault(path, None, f"entry {number}", "", repr(row)[:60], EXPECTED))
            continue
        weight = (row["metrics"] or {}).get("weight", {})
        found.append(
            {
                "file": path,
                "instance": path,
                "seed": 0,
                "policy": row["policy"],
                "failed": row.get("error") is not None,
                "broken": bool(row.get("violations")),
                "placed": weight.get("value"),
                "most": weight.get("bound"),
                "seconds": row.get("seconds"),
                "memory": row.get("peakMemoryMiB"),
                "trace": [],
            }
        )
    if faults:
        raise BadInstance(faults)
    return found
