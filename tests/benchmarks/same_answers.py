"""Whether a change of the code changed an answer: every value and every binding, by digest, before and after.

A redesign must not. ``greedy`` is repeatable, and so is ``auto`` with one worker under a work limit, so equal code
gives equal digests on every machine::

    python -m tests.benchmarks.same_answers -o before.jsonl INSTANCE...
    python -m tests.benchmarks.same_answers --against before.jsonl INSTANCE...

The second prints what differs, with seconds of both, and exits 1 where something does. Without arguments the instances
are those below ``instances/``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent

#: Methods, and the deterministic work that each may do.
CALLS = (("greedy", None), ("auto", 3.0))


def answer(path: str, method: str, work: float | None) -> dict[str, Any]:
    """Solve an instance once, in a process of its own."""
    import placer

    began = time.process_time()
    instance = placer.read(path)
    result = placer.solve(instance, method=method, workers=1, seed=0, work_limit=work, time_limit=None)
    assert result.placement is not None
    text = json.dumps([[str(each.pod), each.node, each.numa_zones] for each in result.placement.bindings], default=str)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "instance": Path(path).name,
        "method": method,
        "values": [each.value.value for each in result.objective],
        "bounds": [None if each.bound is None else each.bound.value for each in result.objective],
        "bindings": hashlib.sha256(text.encode()).hexdigest()[:16],
        "reasons": hashlib.sha256(repr(sorted(map(str, result.reasons.items()))).encode()).hexdigest()[:16],
        "seconds": round(time.process_time() - began + children.ru_utime + children.ru_stime, 2),
    }


def answers(paths: list[str]) -> Iterator[dict[str, Any]]:
    for path in paths:
        for method, work in CALLS:
            with ProcessPoolExecutor(1) as alone:
                yield alone.submit(answer, path, method, work).result()


def shipped() -> list[str]:
    paths = sorted((ROOT / "instances").glob("*/*"))
    beside = (".best.", ".planted.", ".expected.")
    return [
        str(path)
        for path in paths
        if path.name.endswith((".yaml", ".json.gz", ".yaml.gz")) and not any(word in path.name for word in beside)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare answers before and after a change of the code.")
    parser.add_argument("instance", nargs="*")
    parser.add_argument("-o", dest="output", metavar="FILE", help="a JSON line for each answer")
    parser.add_argument("--against", metavar="FILE", help="lines of a former run")
    options = parser.parse_args()
    known = {}
    if options.against:
        for line in Path(options.against).read_text().splitlines():
            before = json.loads(line)
            known[before["instance"], before["method"]] = before
    lines, different = [], 0
    for found in answers(options.instance or shipped()):
        lines.append(json.dumps(found))
        before = known.get((found["instance"], found["method"]))
        told = [name for name in found if name != "seconds"]
        changed = [] if before is None else [name for name in told if found[name] != before[name]]
        different += bool(changed)
        beside = "" if before is None else f"   {before['seconds']:7.2f} s before   {', '.join(changed) or 'same'}"
        print(f"{found['instance']:44} {found['method']:7} {found['seconds']:7.2f} s{beside}", flush=True)
    if options.output:
        Path(options.output).write_text("\n".join(lines) + "\n")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
