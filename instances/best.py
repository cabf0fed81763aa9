"""Look for a better placement of a shipped instance than the one beside it, and keep the better one.

``python instances/best.py tiny/c5_gang.yaml planted/planted-50.json.gz`` starts each search from the best placement
known (``NAME.best.*``, ``NAME.planted.*``, files given with ``--from``), runs for ``--seconds``, verifies, and writes
``NAME.best.*`` again where a value or a bound got better. ``--table`` then writes ``best.csv`` from the files. An
instance is a file or folder with ``NAME.best.*`` next to it, or about to have one.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

import placer
from placer.arrays import Dense, Solution
from placer.arrays.dense_builder import make_dense
from placer.bounds import NamedBound, bounds_for, named_bounds
from placer.kube.manifests import dump
from placer.problem import Instance
from placer.problem.placement import Placement
from placer.problem.result import Bound, Judged, judge
from placer.search.events import SearchOptions
from placer.search.greedy.multi_start import complete, greedy
from placer.search.incumbent import Incumbent
from placer.search.numa.binding_order import aligned
from placer.search.process import run_apart

HERE = Path(__file__).parent
ENDINGS = (".json.gz", ".yaml.gz", ".json", ".yaml")


def beside(path: Path, word: str) -> Path:
    """``queue.json.gz`` to ``queue.best.json.gz``, a folder ``shop`` to ``shop.best.yaml``."""
    ending = next((ending for ending in ENDINGS if path.name.endswith(ending)), "")
    return path.with_name(f"{path.name.removesuffix(ending)}.{word}{ending or '.yaml'}")


def instances() -> list[Path]:
    """Every shipped instance: what has a best placement beside it."""
    found = []
    for best in HERE.rglob("*.best.*"):
        stem, ending = best.name.split(".best", 1)
        folder = best.with_name(stem)
        found.append(folder if folder.is_dir() else best.with_name(stem + ending))
    return sorted(found)


def document(path: Path) -> dict[str, Any]:
    """Read a placement file as plain data."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    read: dict[str, Any] = yaml.load(text, yaml.CSafeLoader) if ".yaml" in path.name else json.loads(text)
    return read


# ------------------------------------------------------------------------------------------------------------ searching


def improve(path: Path, starts: list[Path], seconds: float, workers: int) -> str:
    """Search from the best placement known, write what is better, and say what came of it."""
    instance = placer.read(path)
    dense = make_dense(instance)
    known = Incumbent(dense, time.monotonic())
    known.add_bounds(*named_bounds(dense))
    given: list[Placement] = []
    for start in (beside(path, "best"), beside(path, "planted"), *starts):
        if start.exists():
            placement = placer.read_placement(start)
            given.append(placement)
            if found := placer.verify(instance, placement):
                raise SystemExit(f"{start}: {len(found)} violations, the first: {found[0].message}")
            known.offer(dense.solution(placement), _method(start))
            known.add_bounds(*_old_bounds(start))
    before = known.values, known.bounds()
    known.offer(greedy(dense), "greedy")
    known.add_bounds(*bounds_for(dense, known.values))
    if seconds > 0 and not _proved(known):
        options = SearchOptions(seconds, None, workers, 0, known.solution)
        deadline = time.monotonic() + seconds + 5
        run_apart(
            "placer.search.exact.method:search",
            (dense, options),
            lambda event: known.on_event(event, "exact"),
            deadline,
        )
    known.offer(complete(dense, known.solution or {}), known.method or "greedy")
    known.add_bounds(*bounds_for(dense, known.values))
    target = beside(path, "best")
    if target.exists() and before == (known.values, known.bounds()):
        return "nothing better"
    dump(trimmed(instance, _named(instance, dense, known.solution or {}, given), known), target)
    return f"{before[0] or 'nothing'} -> {known.values}, bounds {[b and b.value for b in known.bounds()]}"


def _named(instance: Instance, dense: Dense, solution: Solution, starts: list[Placement]) -> Placement:
    """The solution by name, in an order that kubelets admit; a start that is still the best shows its own (C10)."""
    same = (start for start in starts if dense.solution(start) == solution)
    return aligned(instance, next(same, None) or dense.placement(solution))


def _method(path: Path) -> str:
    read = document(path)
    return str(read["method"]) if read["kind"] == "Placement" else "planted"


def _old_bounds(path: Path) -> Iterator[NamedBound]:
    """Bounds that were proved earlier, each for the values above it."""
    read = document(path)
    rows = read.get("objective", ())
    values = tuple(row["value"] for row in rows)
    for criterion, row in enumerate(rows):
        if row["bound"] is not None:
            yield NamedBound(criterion, row["bound"], row["provedBy"], values[:criterion])
    if read.get("weight", {}).get("bound") is not None:
        yield NamedBound(None, read["weight"]["bound"], read["weight"]["provedBy"])


def _proved(known: Incumbent) -> bool:
    return all(bound and bound.value == value for value, bound in zip(known.values, known.bounds(), strict=True))


def trimmed(instance: Instance, placement: Placement, known: Incumbent) -> dict[str, Any]:
    """Write a Placement without what differs from run to run."""
    if found := placer.verify(instance, placement):
        raise SystemExit(f"found an invalid placement: {found[0].message}")
    objective, _ = judge(placer.score(instance, placement), known.bounds())
    weight = sum(instance.weights[binding.pod] for binding in placement.bindings)
    return {
        "apiVersion": "placer.dev/v1alpha1",
        "kind": "Placement",
        "instance": {
            "sha256": instance.digest,
            "nodes": len(instance.nodes),
            "pods": len(instance.pods),
            "pending": len(instance.pending),
            "groups": len(instance.groups),
            "hyperNodes": len(instance.topology.hyper_nodes),
        },
        "method": known.method,
        "verdict": "OPTIMAL" if all(judged.met for judged in objective) else "FEASIBLE",
        "objective": [
            {"name": judged.value.name}
            | ({} if judged.value.priority is None else {"priority": judged.value.priority})
            | {"value": judged.value.value, **_bound(judged.bound), "gap": _gap(judged)}
            for judged in objective
        ],
        "weight": {"value": weight, **_bound(known.weight_bound())},
        "bindings": [
            {"namespace": binding.pod.namespace, "pod": binding.pod.name, "node": binding.node}
            for binding in placement.bindings
        ],
        "versions": {"placer": placer.__version__},
    }


def _bound(bound: Bound | None) -> dict[str, Any]:
    return {"bound": bound and bound.value, "provedBy": bound and bound.by}


def _gap(judged: Judged) -> float | None:
    return None if judged.gap is None else round(judged.gap, 6)


# ---------------------------------------------------------------------------------------------------------------- table

TABLE = HERE / "best.csv"
NAMES = ("admitted", "placed", "locality", "span", "networkCost", "packedHyperNodes", "packedNodes")
BEST = (*NAMES, "found by", "proved by")
SIZE = ("nodes", "HyperNodes", "running pods", "pending pods", "groups")


def write_table() -> None:
    """Write the size and the best values of every instance."""
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("instance", *SIZE, *BEST))
        writer.writerows(
            (path.relative_to(HERE).as_posix(), *_size_row(path), *_best_row(path)) for path in instances()
        )


def _size_row(path: Path) -> tuple[int, ...]:
    instance = placer.read(path)
    pending = [group for group in instance.groups.values() if group.pending]
    return (
        len(instance.nodes),
        len(instance.topology.hyper_nodes),
        len(instance.pods) - len(instance.pending),
        len(instance.pending),
        len(pending),
    )


def _best_row(path: Path) -> tuple[str, ...]:
    best = document(beside(path, "best"))
    cells = ("; ".join(_cell(row) for row in best["objective"] if row["name"] == name) or "-" for name in NAMES)
    by = dict.fromkeys(row["provedBy"] for row in best["objective"] if row["provedBy"])
    return (*cells, best["method"], ", ".join(by) or "-")


def _cell(row: dict[str, Any]) -> str:
    """The value; where it is not proved, with the bound."""
    if row["bound"] is None:
        return f"{row['value']} (no bound)"
    return f"{row['value']}" + ("" if row["bound"] == row["value"] else f" (bound {row['bound']})")


def main() -> None:
    """Improve the instances that are named, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("instance", nargs="*", type=Path, help="files or folders")
    parser.add_argument("--from", dest="starts", action="append", default=[], type=Path, help="a placement to start at")
    parser.add_argument("--seconds", type=float, default=50, help="of each search (default 50)")
    parser.add_argument("--workers", type=int, default=2, help="solver threads (default 2)")
    parser.add_argument("--table", action="store_true", help="write best.csv")
    arguments = parser.parse_args()
    for path in arguments.instance:
        print(f"{path}: {improve(path, arguments.starts, arguments.seconds, arguments.workers)}", flush=True)
    if arguments.table:
        write_table()


if __name__ == "__main__":
    main()
