"""Whether a change of the code changed an answer, or what an answer costs: before and after, in pairs.

A redesign must change neither. ``greedy`` is repeatable, and so is ``auto`` with one worker under a work limit, so
equal code gives equal values and digests on every machine. Either keep the answers of a former state, or have both
states side by side and let them answer in turn, each in a process of its own, on one machine under one load::

    python -m tests.benchmarks.same_answers -o before.jsonl INSTANCE...
    python -m tests.benchmarks.same_answers --against before.jsonl INSTANCE...
    python -m tests.benchmarks.same_answers --beside ../before --work 1 INSTANCE...

``--beside`` names another copy of the repository; its answers come first. What differs is printed, with processor
seconds and the peak of memory of both, and the exit code is 1 where a value, a binding or a reason does. Without
arguments the instances are those below ``instances/``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent

#: What is measured: it tells nothing about the answer.
COSTS = ("seconds", "megabytes")


def answer(path: str, method: str, work: float | None) -> dict[str, Any]:
    """Solve an instance once with the ``placer`` that is first on the path, in a process that does nothing else."""
    import placer

    instance = placer.read(path)
    result = placer.solve(instance, method=method, workers=1, seed=0, work_limit=work, time_limit=None)
    assert result.placement is not None
    text = json.dumps([[str(each.pod), each.node, each.numa_zones] for each in result.placement.bindings], default=str)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "instance": Path(path).name,
        "method": method,
        "placed": len(result.placement.bindings),
        "values": [each.value.value for each in result.objective],
        "bounds": [None if each.bound is None else each.bound.value for each in result.objective],
        "bindings": hashlib.sha256(text.encode()).hexdigest()[:16],
        "reasons": hashlib.sha256(repr(sorted(map(str, result.reasons.items()))).encode()).hexdigest()[:16],
        "seconds": round(sum(each.ru_utime + each.ru_stime for each in used), 2),
        "megabytes": max(each.ru_maxrss for each in used) // 1024,
    }


def asked(root: Path, path: str, method: str, work: float | None) -> dict[str, Any]:
    """Let the ``placer`` of a copy of the repository answer."""
    beside = [] if work is None else ["--work", str(work)]
    call = [sys.executable, "-P", __file__, "--one", method, *beside, str(Path(path).resolve())]
    # What a process starts as a module is looked for in the working directory first.
    environment = {**os.environ, "PYTHONPATH": str(root.resolve())}
    done = subprocess.run(call, env=environment, cwd=root, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def shipped() -> list[str]:
    paths = sorted((ROOT / "instances").glob("*/*"))
    beside = (".best.", ".planted.", ".expected.")
    return [
        str(path)
        for path in paths
        if path.name.endswith((".yaml", ".json.gz", ".yaml.gz")) and not any(word in path.name for word in beside)
    ]


def pairs(options: argparse.Namespace) -> Iterator[tuple[dict[str, Any] | None, dict[str, Any]]]:
    """Of each instance and method the answer before, where there is one, and the answer now."""
    known = {}
    if options.against:
        for line in Path(options.against).read_text().splitlines():
            before = json.loads(line)
            known[before["instance"], before["method"]] = before
    for path in options.instance or shipped():
        for method in options.methods.split(","):
            work = None if method == "greedy" else options.work
            before = asked(options.beside, path, method, work) if options.beside else None
            yield before or known.get((Path(path).name, method)), asked(ROOT, path, method, work)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare answers and what they cost before and after a change.")
    parser.add_argument("instance", nargs="*")
    parser.add_argument("-o", dest="output", metavar="FILE", help="a JSON line for each answer")
    parser.add_argument("--against", metavar="FILE", help="lines of a former run")
    parser.add_argument("--beside", metavar="FOLDER", type=Path, help="another copy of the repository, asked in turn")
    parser.add_argument("--methods", default="greedy,auto", help="by commas (%(default)s)")
    parser.add_argument("--work", type=float, default=3.0, help="work limit of all but greedy (%(default)s)")
    parser.add_argument("--one", metavar="METHOD", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        work = None if options.one == "greedy" else options.work
        print(json.dumps(answer(options.instance[0], options.one, work)))
        return 0
    lines, different = [], 0
    for before, found in pairs(options):
        lines.append(json.dumps(found))
        print(f"{found['instance']:44} {found['method']:10} {costs(found)}", end="")
        if before is not None:
            changed = [name for name in found if name not in COSTS and found[name] != before[name]]
            different += bool(changed)
            print(f"   before: {costs(before)}   {', '.join(changed) or 'same'}", end="")
            for name in [name for name in changed if name in ("placed", "values", "bounds")]:
                print(f"\n    {name}: {before[name]} -> {found[name]}", end="")
        print(flush=True)
    if options.output:
        Path(options.output).write_text("\n".join(lines) + "\n")
    return 1 if different else 0


def costs(found: dict[str, Any]) -> str:
    return f"{found['seconds']:7.2f} s {found['megabytes']:5} MB"


if __name__ == "__main__":
    sys.exit(main())
