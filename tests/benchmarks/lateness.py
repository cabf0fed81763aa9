"""How late ``placer solve`` ends, beside processes that keep the machine busy.

The limit is one of the whole call. Everything after the search (adding what fits, verifying, scoring, reasons, writing)
has to fit into what was kept for it, on a machine that gives the process a fraction of a core. Each run is a process of
its own; beside it run ``--busy`` others that only count. One line of JSON per run:

``late``
    Seconds by which the whole process, from its start to its end, exceeded the limit; negative: it ended before.
``placed``
    Placed weight over its bound.
``undecided``
    Groups for which the time did not suffice for a reason.

    python -m tests.benchmarks.lateness QUEUE.json.gz --time-limits 20 60 --busy 0 4
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

COUNTING = "while True:\n    pass"


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep so many processes busy meanwhile."""
    with ExitStack() as stack:
        for _ in range(processes):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", COUNTING]))
            stack.callback(process.kill)
        yield


def measured(path: Path, limit: float, method: str, others: int) -> dict[str, Any]:
    """The line of one run."""
    with tempfile.TemporaryDirectory() as folder, busy(others):
        output = Path(folder) / "placement.json"
        command = [sys.executable, "-m", "placer", "solve", str(path), "--time-limit", str(limit), "--method", method]
        start = time.monotonic()
        subprocess.run([*command, "--quiet", "-o", str(output)], check=True, stdout=subprocess.DEVNULL)
        late = time.monotonic() - start - limit
        placement = json.loads(output.read_text())
    weight = placement["weight"]
    reasons = [group["reason"]["code"] for group in placement["groups"] if group.get("reason")]
    return {
        "instance": path.name,
        "method": method,
        "limit": limit,
        "busy": others,
        "late": round(late, 2),
        "placed": None if weight["bound"] is None else round(weight["value"] / max(1, weight["bound"]), 5),
        "undecided": reasons.count("NotDecided"),
        "seconds": placement["seconds"],
    }


def main() -> None:
    """Measure what was asked for, one line of JSON each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("instances", nargs="+", type=Path)
    parser.add_argument("--time-limits", type=float, nargs="+", default=[20.0])
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 4], help="counting processes beside each run")
    parser.add_argument("--method", default="auto")
    options = parser.parse_args()
    for path in options.instances:
        for limit in options.time_limits:
            for others in options.busy:
                print(json.dumps(measured(path, limit, options.method, others)), flush=True)


if __name__ == "__main__":
    main()
