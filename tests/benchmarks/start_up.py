"""How long ``placer`` needs before it answers: the smallest instances, and the first answer of large ones.

Each run is a process of its own, from the interpreter's start on; what counts is its processor seconds (user and
system, child processes included), the best of several, because a busy machine makes the clock worthless. One line of
JSON per instance:

``modules``
    Modules that were imported until the answer was printed; of small instances this is most of the time.
``read``
    Processor seconds until the instance was read, imports included.
``first``
    Until the greedy's answer was known, which is the first that is reported.
``whole``
    Of ``placer solve --method METHOD``, the summary included.
``peak``
    MiB that the process had at most until the first answer.

Without arguments: the smallest instances, with ``auto``, and planted queues of 5,120 and 10,000 nodes, with ``greedy``,
whose whole command would else be a search.

Bytecode is written before the first run that counts, ``PYTHONDONTWRITEBYTECODE`` or not: else the compiler is measured.

    python -m tests.benchmarks.start_up
    python -m tests.benchmarks.start_up --method greedy --repeat 3 --nodes 5120 10000
    python -m tests.benchmarks.start_up --method greedy QUEUE.json.gz
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

TINY = Path(__file__).parents[2] / "instances" / "tiny"
#: Nodes of planted queues.
LARGE = (5120, 10000)

#: One of each kind of small instance: single pods, a gang, HyperNodes, an AppGroup, NUMA zones.
SMALL = ("c2_capacity", "c5_gang", "c7_tier_limit", "c8_network_cost", "c10_numa")

#: Stops at the first point of the trace: it is the greedy's answer.
PROBE = """
import json, resource, sys

def used():
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime

def first(point):
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    line = {"read": round(read_at, 3), "first": round(used(), 3), "modules": len(sys.modules), "peak": peak}
    print(json.dumps(line), flush=True)
    sys.exit()

from placer.problem.reading import read
instance = read(sys.argv[1])
read_at = used()
from placer.answers.solving import solve
solve(instance, method="greedy", watch=first)
"""


def processor_seconds(command: Sequence[str]) -> tuple[float, str]:
    """Run a command; user and system seconds of it and its children, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def measured(path: Path, method: str, repeat: int) -> dict[str, Any]:
    """The line of one instance: of each figure the best of the runs."""
    solving = [sys.executable, "-m", "placer", "solve", str(path), "--method", method, "--quiet"]
    processor_seconds(solving)  # writes bytecode, and has the file in the cache of the system
    runs = [json.loads(processor_seconds([sys.executable, "-c", PROBE, str(path)])[1]) for _ in range(repeat)]
    best = {name: min(run[name] for run in runs) for name in ("modules", "peak", "read", "first")}
    whole = min(processor_seconds(solving)[0] for _ in range(repeat))
    return {"instance": path.name, "method": method, **best, "whole": round(whole, 3)}


def generated(nodes: Sequence[int], folder: Path) -> Iterator[Path]:
    """Write planted queues of so many nodes."""
    for each in nodes:
        path = folder / f"planted-{each}.json.gz"
        command = ["generate", "planted", "--nodes", str(each), "--seed", "1", "-o", str(path)]
        processor_seconds([sys.executable, "-m", "placer", *command])
        yield path


def main() -> None:
    """Measure what was asked for, one line of JSON each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("instances", nargs="*", type=Path, help="default: the smallest of instances/tiny, and --nodes")
    parser.add_argument("--nodes", type=int, nargs="*", help=f"also planted queues of so many nodes (default {LARGE})")
    parser.add_argument("--method", help="default: auto for files, greedy for planted queues")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    default = not options.instances and options.nodes is None
    files = [TINY / f"{name}.yaml" for name in SMALL] if default else options.instances
    nodes = LARGE if default else options.nodes or ()
    with tempfile.TemporaryDirectory() as folder:
        for path in files:
            print(json.dumps(measured(path, options.method or "auto", options.repeat)), flush=True)
        for path in generated(nodes, Path(folder)):
            print(json.dumps(measured(path, options.method or "greedy", options.repeat)), flush=True)


if __name__ == "__main__":
    main()
