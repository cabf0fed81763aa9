"""What each search loop brings: answers with it and without it, after equal deterministic work.

One loop at a time is switched off, or several with ``+`` between them: of a family that answers one question all but
two. Each run is a process of its own with one worker and a work limit, so equal code gives equal lines on every machine
(what disturbs has a limit of seconds)::

    python -m tests.benchmarks.ablation -o lines.jsonl [--work 1] [--seeds 0] [--without NAME...] [INSTANCE...]
    python -m tests.benchmarks.ablation --table lines.jsonl

A run that has a line is not repeated. A loop that an instance never enters is not tried there. What brings nothing on
any instance is to be deleted; ``docs/notes/ablation.md`` has the result.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import os
import resource
import shlex
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import placer
from placer.answers.making_room import free_domains, lost_named, preempt, repair
from placer.base.errors import PlacerError, UsageError
from placer.lab.generate import FAMILIES
from placer.lab.sweep.runs import make, plan
from placer.problem import Instance
from placer.problem.result import Result
from placer.search.decomposed.destroy import DestroyOperators
from placer.search.decomposed.lexicographic import DecomposedSearch
from placer.search.process import ProcessEnd, ProcessResult
from tests.benchmarks import redrawn
from tests.benchmarks.families import CALLS, HETERO, MIXED, ODD, PARTLY_FULL

ROOT = Path(__file__).parent.parent.parent

#: Processor seconds after which a run is ended; its line says so.
MOST_SECONDS = 120

#: A loop is not tried further where so many instances need it; nor where it found nothing in so many seconds.
ENOUGH, LARGE = 2, 60.0

#: What asks who must go has no limit of work; most answers end by themselves.
DISTURBING_SECONDS = 10.0

#: Name -> a shipped file, a redrawn one with its seed, or a generator with its options and ``@seed``; cheap ones first.
INSTANCES: dict[str, str] = {
    "small-redrawn": "redrawn hetero-s 1",
    "small-redrawn-2": "redrawn hetero-s 2",
    "small-redrawn-3": "redrawn hetero-s 3",
    "small-redrawn-4": "redrawn mixed-s 1",
    "hetero-128": f"planted --nodes 128 {PARTLY_FULL} {HETERO}",
    "over-prio-128": f"planted --nodes 128 {PARTLY_FULL} {MIXED} --priorities 4 --overfull 0.2 --beyond-last",
    "odd-128": f"planted --nodes 128 {PARTLY_FULL} {ODD}",
    "elastic-128": f"planted --nodes 128 {PARTLY_FULL} {MIXED} --elastic 0.5",
    "elastic-128-over": f"planted --nodes 128 {PARTLY_FULL} {MIXED} --elastic 0.5 --overfull 0.2",
    "span-128": "planted --nodes 128 --leaf-size 16 --soft 0.5",
    "packed-128": "planted --nodes 128 --like-volcano",
    "busy-256": "planted --nodes 256 --leaf-size 16 --leaves-per-spine 16 --pod-sizes 1,2,4,8 --held 0.85"
    " --services 8 --priorities 12",
    "neighbours-100": "neighbours --nodes 100",
    "neighbours-100-2": "neighbours --nodes 100 @2",
    "label-racks-100": "neighbours --nodes 100 --by-label",
    "numa-12": "numa --nodes 12",
    "numa-20": "numa --nodes 20 --fill 1 @2",
    "app-groups-6": f"network --app-groups 6 --nodes 15 {CALLS}",
    "app-groups-12": "hard/network-fleet-s-1",
    "tight-30": "network/tight-30",
    "fragmented": "fragmented --nodes 64",
    "stranded": "stranded --nodes 16",
    "lost": "lost --nodes 16",
    "victims": "victims --nodes 16",
    "victims-budget": "victims --nodes 16 --budget",
    "victims-gangs": "victims --nodes 16 --spanning",
    "openb-gpuspec33": "openb/openb-noshare-gpuspec33-130-1",
    "openb-cpu250": "openb/openb-noshare-cpu250-130-1",
    "topology-nvl-m": "hard/topology-nvl-m-1",
    "app-groups-48": "hard/network-fleet-m-1",
    "hetero-m": "hard/planted-hetero-m-1",
    "odd-m": "hard/planted-odd-m-1",
    "over-prio-m": "hard/over-prio-m-1",
    "neighbours-m": "neighbours --nodes 1000",
    "numa-1000": "numa/numa-1000",
    "mixed-l": "hard/planted-mixed-l-1",
    "app-groups-200": f"network --app-groups 200 --nodes 1000 {CALLS}",
    "busy-5120": "planted --nodes 5120 --leaf-size 16 --leaves-per-spine 16 --pod-sizes 1,2,4,8 --held 0.85"
    " --services 8 --priorities 12",
}


def nothing(*_: Any, **__: Any) -> None:
    """In place of a loop that changes something, or may find nothing."""


def no(*_: Any, **__: Any) -> bool:
    """In place of a loop that says whether it worked out."""
    return False


def none(*_: Any, **__: Any) -> list[Any]:
    """In place of a loop that lists what it found."""
    return []


DECOMPOSED = "placer.search.decomposed."
GREEDY = "placer.search.greedy."
PREEMPT = "placer.search.preempt."
SEARCH = DECOMPOSED + "lexicographic:DecomposedSearch."

#: Loop -> where its function is, and what a call of it answers where it is switched off.
LOOPS: dict[str, tuple[str, Callable[..., Any]]] = {
    "layouts": (DECOMPOSED + "master.tree_master:TreeMaster.propose", nothing),
    "master's bound": (DECOMPOSED + "master.tree_master:TreeMaster._least", nothing),
    "branch and cut": (SEARCH + "branched", no),
    "pooled search": (SEARCH + "decide_homes", no),
    "whole model": (SEARCH + "solve_unpooled", no),
    "column generation": (SEARCH + "refill", no),
    "rounding of columns": (DECOMPOSED + "column_generation:_ColumnGeneration.generate", nothing),
    "relax and fix": (SEARCH + "packed", no),
    "leaves freed again": (DECOMPOSED + "relax_and_fix.search:_RelaxAndFix._improve", lambda _, state: state),
    "gang relaxation": (SEARCH + "gangs_relaxed", no),
    "area assignment": (SEARCH + "assigned", no),
    "bound by splits": (SEARCH + "_calls_bounded", no),
    "steps by chains": ("_for_chains", nothing),
    "steps without hint": ("UNHINTED", nothing),
    "compact steps": (DECOMPOSED + "repairing:_compactness", nothing),
    "steps in a domain": ("_in_a_domain", nothing),
    "steps on stranded nodes": ("_stranded_anywhere", nothing),
    "steps on what fits elsewhere": ("_fitting_elsewhere", nothing),
    "steps on leaves": ("_leaves", nothing),
    "steps around those asked for": ("_around_those_asked_for", nothing),
    "steps around waiting AppGroups": ("_around_waiting_apps", nothing),
    "steps around a dear AppGroup": ("_around_a_dear_app", nothing),
    "steps on a dear AppGroup alone": ("_a_dear_app_alone", nothing),
    "steps around a scope": ("_around_a_scope", nothing),
    "steps on hardly used domains": ("_hardly_used", nothing),
    "neighbourhoods": (SEARCH + "neighbourhoods", no),
    "make way": (GREEDY + "making_way:make_way", none),
    "emptying nodes": (GREEDY + "making_way:empty_nodes", no),
    "backtracking": (GREEDY + "backtrack:force", no),
    "other orders of a node's pods": (GREEDY + "multi_start:_in_another_order", nothing),
    "chains of the greedy": (GREEDY + "multi_start:_GreedySearch._gather", nothing),
    "other orders and styles": (GREEDY + "multi_start:_GreedySearch.refinements", nothing),
    "repairs": (GREEDY + "multi_start:_GreedySearch.repairs", nothing),
    "thorough admission": (GREEDY + "multi_start:squeeze_in", no),
    "several domains of units": (GREEDY + "unit_homes:HOMES", nothing),
    "ruin and recreate for more": (GREEDY + "gang_admission:_RuinAndRecreate._more", nothing),
    "ruin and recreate for less": (GREEDY + "gang_admission:_RuinAndRecreate._cheaper", nothing),
    "moves of calling pods": (GREEDY + "local_search:move_pods", nothing),
    "exchanges of calling pods": (GREEDY + "local_search:_LocalSearch._exchange", no),
    "victims: rounds": (PREEMPT + "method:_Search._by_units", nothing),
    "victims: domains": (PREEMPT + "method:_Search._in_turn", nothing),
    "victims: bound anywhere": (PREEMPT + "domains:DomainSearch._anywhere", nothing),
    "victims: knapsack": (PREEMPT + "domains:DomainSearch.counted", nothing),
    "victims: equal groups": (PREEMPT + "method:_Search._equal", nothing),
    "victims: counting": (PREEMPT + "method:_Search._must_be_lost", nothing),
    "victims: whole model": (PREEMPT + "method:_Search._whole", nothing),
    "emptying: whole model": (PREEMPT + "emptying:_Emptying._whole", nothing),
}

#: A loop that is always called -> the function whose calls say that it has something to do.
ENTERED = {
    "chains of the greedy": "placer.search.numa.ejection_chains:place_by_ejection_chains",
    "repairs": GREEDY + "multi_start:_GreedySearch._following",
    "make way": GREEDY + "making_way:_MakingWay.admit",
    "several domains of units": GREEDY + "unit_homes:_homes",
    "column generation": DECOMPOSED + "column_generation:_ColumnGeneration.generate",
    "leaves freed again": DECOMPOSED + "relax_and_fix.search:_RelaxAndFix._opened",
}

#: A part of a loop -> the loop with which it is entered.
BESIDE = {
    "steps without hint": "steps by chains",
    "victims: rounds": "victims: greedy",
    "area assignment": "bound by splits",
}


class Asked(NamedTuple):
    """One run: an instance, what is switched off (empty: nothing), and the seed of the solver."""

    instance: str
    without: str
    seed: int


# ------------------------------------------------------------------------------------------------------------- switches


def resolved(path: str) -> tuple[Any, str]:
    """Owner and name of a function."""
    module, _, names = path.partition(":")
    owner: Any = importlib.import_module(module)
    *outer, name = names.split(".")
    for each in outer:
        owner = getattr(owner, each)
    return owner, name


def switch(path: str, instead: Any) -> None:
    """Put another value in the place of one, wherever placer's modules have imported it."""
    owner, name = resolved(path)
    value = getattr(owner, name)
    setattr(owner, name, instead)
    for module in [each for title, each in sys.modules.items() if title.startswith("placer.")]:
        for other, known in list(vars(module).items()):
            if known is value and callable(value):
                setattr(module, other, instead)


def counted(function: Callable[..., Any], label: str, calls: Counter[str], gains: Counter[str]) -> Callable[..., Any]:
    """The function, with a count of its calls, and of those that found something.

    A step of the decomposition finds something where a value or a bound gets better; any other function where it
    returns something, or returns nothing at all by its nature.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        calls[label] += 1
        search = args[0] if args and isinstance(args[0], DecomposedSearch) else None
        before = None if search is None else (search.values, len(search.bounds))
        found = function(*args, **kwargs)
        if search is None:
            gains[label] += found is not False and not (hasattr(found, "__len__") and not len(found))
        else:
            gains[label] += (search.values, len(search.bounds)) != before
        return found

    return call


def chosen_operators(without: Iterable[str], calls: Counter[str]) -> None:
    """Leave destroy operators out, unless none would be left, and count those that are there."""
    whole, names = DestroyOperators._operators, {LOOPS[label][0]: label for label in LOOPS}

    def some(self: DestroyOperators) -> list[Any]:
        found = whole(self)
        calls.update(names[each.__name__] for each in found)
        left = [each for each in found if names[each.__name__] not in without]
        return left or found

    DestroyOperators._operators = some  # type: ignore[method-assign]


def special(label: str, *, off: bool) -> bool:
    """Switch off, or count, what is no function of its own; say whether it was that."""
    from placer.search.decomposed import large_neighbourhood
    from placer.search.greedy import unit_homes

    if label == "steps without hint":
        large_neighbourhood.UNHINTED *= not off
    elif label == "several domains of units":
        unit_homes.HOMES = 1 if off else unit_homes.HOMES
    else:
        return LOOPS[label][0].startswith("_")
    return True


def switched(without: Sequence[str], *, counts: bool) -> tuple[Counter[str], Counter[str]]:
    """Switch loops off, and count the calls of all, and those that found something."""
    calls, gains = Counter[str](), Counter[str]()
    chosen_operators(without, calls)
    for label, (path, instead) in LOOPS.items():
        off = label in without
        if not (off or counts) or ((off or label not in ENTERED) and special(label, off=off)):
            continue
        path = path if off else ENTERED.get(label, path)
        owner, name = resolved(path)
        switch(path, instead if off else counted(getattr(owner, name), label, calls, gains))
    switch("placer.search.process:run_apart", run_here)
    return calls, gains


def run_here(
    target: str,
    arguments: tuple[Any, ...],
    on_event: Callable[[Any], None],
    _: float | None,
    __: Callable[[], ProcessEnd | None] | None = None,
) -> ProcessResult:
    """Run a search in this process, where loops are switched off, instead of in one of its own."""
    module, function = target.split(":")
    return ProcessResult(ProcessEnd.RETURNED, getattr(importlib.import_module(module), function)(*arguments, on_event))


# ----------------------------------------------------------------------------------------------------------------- runs


def made(name: str) -> Instance:
    """Make an instance, or read it."""
    word, *rest = shlex.split(INSTANCES.get(name, name))
    if word == "redrawn":
        folder = ROOT / "build" / "redrawn"
        path = folder / f"{rest[0]}-{rest[1]}.json.gz"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            redrawn.carry_out([rest[0]], [int(rest[1])], folder)
        return placer.read(str(path))
    if word not in FAMILIES:
        path = ROOT / "instances" / f"{word}.json.gz"
        return placer.read(str(path if path.exists() else word))
    words, _, seed = INSTANCES[name].partition(" @")
    (run,) = plan([words], seeds=[int(seed or 1)], policies=["auto"], time_limit=1.0, workers=1)
    with tempfile.TemporaryDirectory() as temporary:
        target = str(Path(temporary, "instance.json"))
        if fault := make(run, target, lambda _: None):
            raise PlacerError(fault)
        return placer.read(target)


def solved(instance: Instance, asked: Asked, work: float) -> Result:
    """Answer what the instance asks for."""
    word = INSTANCES.get(asked.instance, "").partition(" ")[0]
    if word in ("victims", "stranded"):
        return preempt(instance, time_limit=DISTURBING_SECONDS, workers=1, seed=asked.seed, costs=False)
    if word == "lost":
        lost = lost_named(instance, None)
        return repair(instance, lost, time_limit=DISTURBING_SECONDS, workers=1, seed=asked.seed)
    if word == "fragmented":
        return free_domains(instance, 1, 2, time_limit=DISTURBING_SECONDS, workers=1, seed=asked.seed)
    return placer.solve(instance, method="auto", work_limit=work, time_limit=None, workers=1, seed=asked.seed)


def line_of(instance: Instance, asked: Asked, work: float) -> dict[str, Any]:
    """The line of a run, in this process."""
    calls, gains = switched(asked.without.split("+"), counts=not asked.without)
    before = used()
    found = solved(instance, asked, work)
    greedy = [point.values for point in found.trace if point.phase == "greedy"]
    names = [each.value.name + (f" {each.value.priority}" if each.value.priority else "") for each in found.objective]
    return {
        **asked._asdict(),
        "work": work,
        "names": names,
        "values": [each.value.value for each in found.objective],
        "bounds": [None if each.bound is None else each.bound.value for each in found.objective],
        "greedy": list(greedy[-1]) if greedy else [],
        "verdict": found.verdict.name,
        "seconds": round(used() - before, 1),
        "calls": dict(calls),
        "gains": {label: many for label, many in gains.items() if many},
    }


def used() -> float:
    """Processor seconds of this process."""
    found = resource.getrusage(resource.RUSAGE_SELF)
    return found.ru_utime + found.ru_stime


def forked(instance: Instance, asked: Asked, work: float) -> dict[str, Any]:
    """The line of a run, made in a copy of this process that has no more than so much time."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        resource.setrlimit(resource.RLIMIT_CPU, (int(used()) + MOST_SECONDS,) * 2)
        try:
            line = line_of(instance, asked, work)
        except BaseException as error:  # whatever it is, the other runs have nothing to do with it
            line = {**asked._asdict(), "work": work, "error": f"{type(error).__name__}: {error}"}
        os.write(write, json.dumps(line).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as source:
        text = source.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {**asked._asdict(), "work": work, "error": "over"}


def carry_out(path: Path, names: Sequence[str], tried: Sequence[str], seeds: Sequence[int], work: float) -> None:
    """Every run that has no line yet."""
    known = {Asked(*(line[each] for each in Asked._fields)): line for line in lines_of(path)}
    for name in names:
        instance: Instance | None = None
        for seed in seeds:
            whole = known.get(Asked(name, "", seed))
            for without in ("", *tried):
                asked = Asked(name, without, seed)
                if asked in known or (without and (not entered(whole, without) or enough(known, without, whole))):
                    continue
                instance = instance or made(name)
                line = known[asked] = forked(instance, asked, work)
                whole = whole or line
                with path.open("a") as target:
                    print(json.dumps(line), file=target)
                print(name, seed, without or "-", line.get("error") or difference(whole, line), flush=True)


def entered(whole: dict[str, Any] | None, without: str) -> bool:
    """Whether a run with everything has called a loop, or one of a family."""
    calls = (whole or {}).get("calls", {})
    calls = calls | {one: calls.get(other, 0) for one, other in BESIDE.items()}
    return any(calls.get(each) for each in without.split("+"))


def enough(known: dict[Asked, dict[str, Any]], without: str, whole: dict[str, Any] | None) -> bool:
    """Whether two instances need a loop already, or the one that is next is large and the loop found nothing there."""
    if without not in LOOPS:
        return False
    needed = 0
    for asked, line in known.items():
        if asked.without == without:
            before = known.get(Asked(asked.instance, "", asked.seed))
            needed += before is not None and difference(before, line) not in ("=", "greedy alone")
    large = (whole or {}).get("seconds", 0.0) > LARGE
    return needed >= ENOUGH or (large and not (whole or {}).get("gains", {}).get(without))


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The lines that are there."""
    return [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []


# ---------------------------------------------------------------------------------------------------------------- table


def difference(whole: dict[str, Any], found: dict[str, Any]) -> str:
    """The first value that changes, then bounds that do; ``=`` where none does."""
    if "values" not in found or "values" not in whole:
        return f"{found.get('error', '?')}"
    told = []
    rows = list(zip(whole["names"], whole["values"], found["values"], strict=False))
    told += [f"{name} {before:,} -> {after:,}" for name, before, after in rows if before != after][:1]
    if not told:
        bounds = zip(whole["names"], whole["bounds"], found["bounds"], strict=False)
        told += [f"bound of {name} {before} -> {after}" for name, before, after in bounds if before != after][:1]
    if whole["verdict"] != found["verdict"]:
        told.append(f"{whole['verdict']} -> {found['verdict']}")
    if not told and whole["greedy"] != found["greedy"]:
        told.append("greedy alone")
    return "; ".join(told) or "="


def table(lines: Sequence[dict[str, Any]]) -> str:
    """Loop by loop: where it is entered, and what changes without it."""
    by = {Asked(*(line[each] for each in Asked._fields)): line for line in lines}
    rows: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for asked, line in by.items():
        whole = by.get(Asked(asked.instance, "", asked.seed))
        if asked.without and whole is not None:
            name = asked.instance + (f" ({asked.seed})" if asked.seed else "")
            rows[asked.without].append((name, difference(whole, line)))
    told = ["| without | entered on | what changes |", "| --- | ---: | --- |"]
    for without, found in sorted(rows.items()):
        changed = [f"{name}: {what}" for name, what in sorted(found, key=itemgetter(0)) if what != "="]
        told.append(f"| {without} | {len(found)} | {'<br>'.join(changed) or '='} |")
    return "\n".join(told)


def main() -> None:
    """Run what has no line yet, or write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("instance", nargs="*", help=f"of {', '.join(INSTANCES)}, or a file (all)")
    parser.add_argument("-o", dest="output", metavar="FILE", type=Path, help="a JSON line for each run")
    parser.add_argument("--table", metavar="FILE", type=Path, help="write the table of these lines, run nothing")
    parser.add_argument("--work", type=float, default=1.0, help="deterministic work of auto (%(default)s)")
    parser.add_argument("--seeds", default="0", help="of the solver, by commas (%(default)s)")
    parser.add_argument(
        "--without", action="append", metavar="NAME", help="only this loop, or several with + (each alone)"
    )
    options = parser.parse_args()
    if options.table is not None:
        print(table(lines_of(options.table)))
        return
    if options.output is None:
        parser.error("found none of -o and --table, expected one of them")
    tried = options.without or [*LOOPS]
    if unknown := [each for several in tried for each in several.split("+") if each not in LOOPS]:
        raise UsageError(f"--without: found {unknown[0]}, expected one of {', '.join(LOOPS)}")
    seeds = [int(each) for each in options.seeds.split(",")]
    carry_out(options.output, options.instance or [*INSTANCES], tried, seeds, options.work)


if __name__ == "__main__":
    main()
