"""What a hostile namespace takes from all others: their pods that are placed, and how much later.

For each kind of object of ``tests/hostile.py`` one call without it and one beside it, each in a process of its own. One
line of JSON per kind and command:

``placed``, ``alone``
    Pods of the others that are placed beside it, and without it.
``times``
    Processor seconds of the call beside it over those without it; what reading takes is in both.
``late``
    Seconds by which the call exceeds its limit; negative: it ended before.

    python -m tests.benchmarks.hostile --nodes 1000 --size 1000 --time-limit 20 --commands solve explain
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.hostile import EVIL, HOSTILE
from tests.support import Document, node, pod

#: What each command is told beside the input and the limit.
COMMANDS = {
    "solve": ["--json"],
    "budget": ["--json", "--namespace-budget", "default"],
    "explain": [],
    "preempt": [],
    "repair": ["--lost", "n0"],
    "audit": [],
    "compare": [],
    "defrag": ["--want", "1 x 1 x cpu=15 @ kubernetes.io/hostname"],
    "queue": ["--cost"],
}


def others(nodes: int) -> list[Document]:
    """Nodes, and twenty pods for each hundred of them in two namespaces."""
    pods = [pod(f"h{number}", namespace=f"good-{number % 2}", cpu=2) for number in range(nodes // 5)]
    return [*(node(f"n{number}", cpu=16) for number in range(nodes)), *pods]


def called(path: Path, command: str, limit: float) -> tuple[float, float, int]:
    """Processor seconds and seconds of one call, and how many pods of the others it places."""
    name = "solve" if command == "budget" else command
    words = [sys.executable, "-m", "placer", name, str(path), "--quiet", "--time-limit", str(limit)]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    ended = subprocess.run([*words, *COMMANDS[command]], capture_output=True, text=True, check=False)
    seconds, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    placed = 0
    if name == "solve":
        placed = sum(each["namespace"] != EVIL for each in json.loads(ended.stdout)["bindings"])
    return used, seconds, placed


def measured(nodes: int, size: int, limit: float, command: str, kinds: list[str]) -> list[dict[str, Any]]:
    """The lines of one command."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "instance.json"

        def write(items: list[Document]) -> None:
            path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

        write(others(nodes))
        used, _, alone = called(path, command, limit)
        for kind in kinds:
            write([*others(nodes), *HOSTILE[kind](size)])
            beside, seconds, placed = called(path, command, limit)
            line = {"kind": kind, "command": command, "placed": placed, "alone": alone}
            lines.append(line | {"times": round(beside / used, 2), "late": round(seconds - limit, 2)})
    return lines


def main() -> None:
    """Measure what was asked for, one line of JSON each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--time-limit", type=float, default=20.0)
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=["solve"])
    parser.add_argument("--kinds", nargs="+", choices=HOSTILE, default=list(HOSTILE))
    options = parser.parse_args()
    for command in options.commands:
        for line in measured(options.nodes, options.size, options.time_limit, command, options.kinds):
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
