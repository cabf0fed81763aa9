"""Mutation benchmark: which changed lines of ``placer/`` does a set of tests notice.

::

    python -m tests.benchmarks.mutants draw 300 placer/rules placer/arrays > mutants.jsonl
    python -m tests.benchmarks.mutants run mutants.jsonl tests/rules tests/arrays --beside BEFORE > table.jsonl

``draw`` chooses mutants by seed: one changed operator, constant, condition or deleted statement each. ``run`` makes
each of them in a copy of the tree and runs the tests, one path after the other, until one fails. With ``--beside``
the tests of another checkout that are not here word for word are asked about the survivors: a mutant that only they
kill is printed as ``lost``.
``--map`` names a JSON object of path prefixes and tests: a mutant is asked about by those of the longest prefix of its
path, in their order, and by all tests of the command line where no prefix fits.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_CALLED = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """One changed piece of one file: ``before`` from ``start`` to ``end`` (line, column in bytes) becomes ``after``."""

    path: str
    start: tuple[int, int]
    end: tuple[int, int]
    before: str
    after: str

    def apply(self, tree: Path) -> None:
        """Write the mutant into the copy of the project at ``tree``."""
        lines = (tree / self.path).read_bytes().splitlines(keepends=True)
        (first, left), (last, right) = self.start, self.end
        head, tail = lines[first - 1][:left], lines[last - 1][right:]
        lines[first - 1 : last] = [head + self.after.encode() + tail]
        (tree / self.path).write_bytes(b"".join(lines))


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Every mutant of the file at ``path``, in the order of the text."""
    source = path.read_text()
    for node in ast.walk(ast.parse(source)):
        changed = _changed(node)
        if changed is None or not isinstance(node, ast.expr | ast.stmt):
            continue
        before = ast.get_source_segment(source, node)
        if before is None or node.end_lineno is None or node.end_col_offset is None:
            continue
        start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
        # Brackets keep the changed expression one operand of what surrounds it, on one line or several.
        after = ast.unparse(changed) if isinstance(node, ast.stmt) else f"({ast.unparse(changed)})"
        yield Mutant(str(path.relative_to(ROOT)), start, end, before, after)


def _changed(node: ast.AST) -> ast.AST | None:
    new = copy.deepcopy(node)
    match new:
        case ast.Compare(ops=[operator]) if type(operator) in _COMPARE:
            new.ops = [_COMPARE[type(operator)]()]
        case ast.BoolOp():
            new.op = ast.And() if isinstance(new.op, ast.Or) else ast.Or()
        case ast.BinOp(op=operator) if type(operator) in _ARITHMETIC and not _texts(new):
            new.op = _ARITHMETIC[type(operator)]()
        case ast.UnaryOp(op=ast.Not()):
            return new.operand
        case ast.Call(func=ast.Name(id=name)) if name in _CALLED:
            new.func = ast.Name(_CALLED[name], ast.Load())
        case ast.IfExp():
            new.body, new.orelse = new.orelse, new.body
        case ast.Constant(value=bool(value)):
            new.value = not value
        case ast.Constant(value=int(value)):
            new.value = value + 1
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Continue():
            return ast.Pass()
        case _:
            return None
    return new


def _texts(node: ast.BinOp) -> bool:
    return any(isinstance(part, ast.Constant | ast.JoinedStr) and not _number(part) for part in (node.left, node.right))


def _number(part: ast.AST) -> bool:
    return isinstance(part, ast.Constant) and isinstance(part.value, int | float)


def draw(count: int, paths: list[Path], seed: int) -> list[Mutant]:
    """``count`` mutants of the files under ``paths``: files by chance, so that no large file has them all."""
    files = sorted({file for path in paths for file in ([path] if path.is_file() else path.rglob("*.py"))})
    rng, kept = random.Random(seed), {file: list(mutants_of(file)) for file in files}
    drawn: list[Mutant] = []
    while len(drawn) < count and any(kept.values()):
        file = rng.choice([file for file in files if kept[file]])
        drawn.append(kept[file].pop(rng.randrange(len(kept[file]))))
    return drawn


def killer(mutant: Mutant, tree: Path, tests: list[list[str]], limit: float) -> tuple[str, float]:
    """The test that notices ``mutant`` and the seconds until it did; an empty text if none of ``tests`` does.

    Tests are asked list by list; each has so many seconds.
    """
    began, clean = time.monotonic(), (tree / mutant.path).read_bytes()
    mutant.apply(tree)
    try:
        for together in filter(None, tests):
            failed = _failed(tree, together, limit)
            if failed:
                return failed, time.monotonic() - began
    finally:
        (tree / mutant.path).write_bytes(clean)
    return "", time.monotonic() - began


def _failed(tree: Path, tests: list[str], limit: float) -> str:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "--tb=no", *tests]
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"{tests[0]} (no end within {limit:g} s)"
    if done.returncode in (0, 5):
        return ""
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return lines[0].split(" - ")[0] if lines else f"{tests[0]} (exit {done.returncode})"


def only_there(path: str, there: Path, here: Path) -> list[str]:
    """The tests below a path of one checkout that another has not, or not word for word."""
    files = [there / path] if path.endswith(".py") else sorted((there / path).rglob("test_*.py"))
    found = []
    for file in (each for each in files if each.exists()):
        name = str(file.relative_to(there))
        known = _sources(here / name)
        found += [f"{name}::{test}" for test, source in _sources(file).items() if known.get(test) != source]
    return found


def _sources(file: Path) -> dict[str, str]:
    """The test functions of a file, with their decorators."""
    if not file.exists():
        return {}
    tests = (node for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef))
    return {node.name: ast.unparse(node) for node in tests if node.name.startswith("test_")}


def chosen(path: str, tests: list[str], mapped: Mapping[str, list[str]]) -> list[str]:
    """The tests that are asked about a file: those of the longest prefix of its path, else all."""
    fitting = [prefix for prefix in mapped if path.startswith(prefix)]
    return mapped[max(fitting, key=len)] if fitting else tests


def run(
    mutants: list[Mutant], tests: list[str], mapped: Mapping[str, list[str]], beside: Path | None, limit: float
) -> Iterator[dict[str, object]]:
    """One row for each mutant: who kills it here, and in the checkout ``beside`` where nobody does here."""
    with tempfile.TemporaryDirectory() as folder:
        here = _copied(ROOT, Path(folder) / "here")
        there = _copied(ROOT, Path(folder) / "there") if beside else None
        if there and beside:
            shutil.rmtree(there / "tests")
            shutil.copytree(beside / "tests", there / "tests")
        for mutant in mutants:
            asked = chosen(mutant.path, tests, mapped)
            name, seconds = killer(mutant, here, [[path] for path in asked if (here / path).exists()], limit)
            before = ""
            if there and not name:
                before, _ = killer(mutant, there, [only_there(path, there, here) for path in asked], limit)
            state = "killed" if name else "lost" if before else "survived"
            yield asdict(mutant) | {"state": state, "killer": name or before, "seconds": round(seconds, 1)}


def _copied(root: Path, target: Path) -> Path:
    return Path(shutil.copytree(root, target, ignore=shutil.ignore_patterns(".git", "__pycache__", ".*_cache", "site")))


def main() -> int:
    """Run the command line; 1 if a mutant is lost that the checkout ``--beside`` noticed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("draw")
    drawing.add_argument("count", type=int)
    drawing.add_argument("paths", nargs="+", type=Path)
    drawing.add_argument("--seed", type=int, default=1)
    running = commands.add_parser("run")
    running.add_argument("mutants", type=Path)
    running.add_argument("tests", nargs="*", default=["tests"])
    running.add_argument("--map", type=Path, help="JSON: path prefix to the tests of what is under it")
    running.add_argument("--beside", type=Path)
    running.add_argument("--limit", type=float, default=300, help="seconds for the tests of one path")
    options = parser.parse_args()
    if options.command == "draw":
        for mutant in draw(options.count, [path.resolve() for path in options.paths], options.seed):
            print(json.dumps(asdict(mutant)))
        return 0
    lines = options.mutants.read_text().splitlines()
    drawn = [Mutant(**{key: tuple(v) if isinstance(v, list) else v for key, v in json.loads(x).items()}) for x in lines]
    mapped = json.loads(options.map.read_text()) if options.map else {}
    lost = 0
    for row in run(drawn, options.tests, mapped, options.beside, options.limit):
        print(json.dumps(row), flush=True)
        lost += row["state"] == "lost"
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
