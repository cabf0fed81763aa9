"""What each ingredient of the greedy and of the decomposition brings: answers with it and without it.

One ingredient at a time is switched off, and the first value that changes is shown, with it -> without it, for
``greedy`` alone and for ``auto`` (which begins with the greedy's answer)::

    python -m tests.benchmarks.ablation [--work 0.5] [--without NAME...] [INSTANCE...]

Work limits, one worker: equal code gives equal tables on every machine. An ingredient that an instance never calls is
not tried there. What brings nothing on any instance, neither to the greedy nor beside the decomposition, is to be
deleted; ``models/measured.md`` has the result.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import placer
from placer.methods import process
from placer.methods.decomposed.lexicographic import DecomposedSearch
from placer.methods.decomposed.master import TreeMaster
from placer.methods.decomposed.repair import _compactness
from placer.methods.greedy.backtrack import force
from placer.methods.greedy.communicating import tabu_repair
from placer.methods.greedy.gang_admission import _homes, _RuinAndRecreate
from placer.methods.greedy.local_search import _LocalSearch, move_pods
from placer.methods.greedy.multi_start import _GreedySearch, squeeze_in
from placer.methods.numa.ejection_chains import place_by_ejection_chains
from placer.methods.process import ProcessEnd, ProcessResult

ROOT = Path(__file__).parent.parent.parent

INSTANCES = ("planted/planted-200-mixed", "planted/planted-200-tight", "network/tight-30", "numa/numa-50-restricted")

#: Ingredient -> its function, and what a call of it answers where it is switched off, given its arguments.
INGREDIENTS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "backtracking for one group": (force, lambda *_, **__: False),
    "thorough admission": (squeeze_in, lambda *_: False),
    "squeaky-wheel repairs": (_GreedySearch.repairs, lambda *_: None),
    "other orders and styles": (_GreedySearch.refinements, lambda *_: None),
    "AppGroups in one area first": (_homes, lambda *_: []),
    "tabu repair": (tabu_repair, lambda *_: None),
    "ruin and recreate, for more pods": (_RuinAndRecreate._more, lambda *_: None),
    "ruin and recreate, for cheaper calls": (_RuinAndRecreate._cheaper, lambda *_: None),
    "moving pods that call": (move_pods, lambda *_: None),
    "exchanging pods that call": (_LocalSearch._exchange, lambda *_: False),
    "ejection chains": (place_by_ejection_chains, lambda _, solution, *__: (solution, 0.1)),
    "gangs pod by pod": (DecomposedSearch.gangs_relaxed, lambda *_: False),
    "master, layouts": (TreeMaster.propose, lambda *_: None),
    "room in few leaves beside the value": (_compactness, lambda *_: None),
}


class Run(NamedTuple):
    """What one call of ``solve`` gave."""

    names: list[str]
    greedy: tuple[int, ...]
    auto: tuple[int, ...]
    calls: dict[str, int]
    seconds: float


def owners() -> Iterator[Any]:
    """Modules of placer that are loaded, and their classes."""
    for name, module in list(sys.modules.items()):
        if name.startswith("placer."):
            yield module
            yield from (each for each in vars(module).values() if isinstance(each, type))


def switch(function: Callable[..., Any], instead: Callable[..., Any]) -> None:
    """Put another function in the place of one, wherever it has been imported."""
    for owner in owners():
        for name, value in list(vars(owner).items()):
            if value is function:
                setattr(owner, name, instead)


def counted(function: Callable[..., Any], label: str, calls: Counter[str]) -> Callable[..., Any]:
    """The function, with a count of its calls."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        calls[label] += 1
        return function(*args, **kwargs)

    return call


def run_here(
    target: str, arguments: tuple[Any, ...], on_event: Callable[[Any], None], _: float | None
) -> ProcessResult:
    """Run a search in this process, where ingredients are switched off, instead of in one of its own."""
    module, _, function = target.partition(":")
    return ProcessResult(ProcessEnd.RETURNED, getattr(importlib.import_module(module), function)(*arguments, on_event))


def run(path: str, without: str | None, work: float) -> Run:
    """Solve an instance without an ingredient, or count the calls of all; alone in its process."""
    calls = Counter[str]()
    for label, (function, instead) in INGREDIENTS.items():
        if without in (None, label):
            switch(function, counted(function, label, calls) if without is None else instead)
    switch(process.run_apart, run_here)
    instance = placer.read(path)
    began = time.process_time()
    found = placer.solve(instance, method="auto", workers=1, seed=0, work_limit=work, time_limit=None)
    seconds = time.process_time() - began
    values = [each.value for each in found.objective]
    names = [each.name if each.priority is None else f"{each.name} ({each.priority})" for each in values]
    first = next(point for point in found.trace if point.phase == "greedy")
    return Run(names, first.values, tuple(each.value for each in values), dict(calls), seconds)


def difference(names: list[str], with_it: tuple[int, ...], without: tuple[int, ...]) -> str:
    """The first value that changes; ``=`` where none does."""
    for name, before, after in zip(names, with_it, without, strict=True):
        if before != after:
            return f"{name} {before:,} -> {after:,}"
    return "="


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what each ingredient brings.")
    parser.add_argument("instance", nargs="*")
    parser.add_argument("--work", type=float, default=0.5, help="deterministic work of auto (default 0.5)")
    parser.add_argument("--without", action="append", choices=INGREDIENTS, help="only this one (default all)")
    options = parser.parse_args()
    print("| without | instance | greedy | auto | seconds with and without |")
    print("| --- | --- | --- | --- | --- |")
    for path in options.instance or [str(ROOT / "instances" / f"{each}.json.gz") for each in INSTANCES]:
        tasks = [None, *(options.without or INGREDIENTS)]
        whole: Run | None = None
        for without in tasks:
            if whole is not None and without not in whole.calls:
                continue
            with ProcessPoolExecutor(1) as alone:
                found = alone.submit(run, path, without, options.work).result()
            if whole is None:
                whole = found
                continue
            greedy = difference(whole.names, whole.greedy, found.greedy)
            auto = difference(whole.names, whole.auto, found.auto)
            instance = Path(path).name.split(".")[0]
            print(
                f"| {without} | `{instance}` | {greedy} | {auto} | {whole.seconds:.1f}, {found.seconds:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
