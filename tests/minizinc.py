"""Ask MiniZinc: ``models/placement.mzn`` over the data of an instance, in a process of its own."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from placer.problem import Instance, Key
from placer.problem.placement import Placement, Score, Step
from tests.tools import require

MODELS = Path(__file__).parent.parent / "models"
SOLVER = "gecode"

#: Seconds that one question may take; those about tiny instances take about a third of one.
LIMIT = 120

#: How lines begin that say where a pod comes.
_COMES = ("bind ", "move ")


@dataclass(frozen=True)
class Answer:
    """The last placement that was printed, its values as the model counts them, and whether the search was complete."""

    values: tuple[int, ...]
    placement: Placement
    complete: bool


@cache
def minizinc() -> str:
    return require("minizinc", "apt-get install minizinc")


def _to_dzn() -> ModuleType:
    """``models/to_dzn.py``, which is a script and in no package."""
    if str(MODELS) not in sys.path:
        sys.path.append(str(MODELS))
    return importlib.import_module("to_dzn")


def dzn(instance: Instance, *, disturbing: bool = False) -> str:
    """The instance as MiniZinc data."""
    text: str = _to_dzn().dzn(instance, disturbing=disturbing)
    return text


def in_order(instance: Instance, values: Score, *, disturbing: bool = False) -> list[int]:
    """The values as the model has them: 0 of what a priority loses that a score says nothing of."""
    there = {(each.name, each.priority): each.value for each in values}
    return [there.get((each.name, each.priority), 0) for each in _to_dzn().criteria(instance, disturbing=disturbing)]


def ask(instance: Instance, criterion: int, kept: Sequence[int], *, disturbing: bool = False) -> Answer | None:
    """Optimise the value of number ``criterion``; 0: judge the claim that ``kept`` is the best there is.

    ``disturbing``: what runs may be evicted and moved.

    Returns
    -------
    Answer or None
        None: no placement is as good as ``kept``.
    """
    return ask_data(f"{dzn(instance, disturbing=disturbing)}criterion = {criterion};\nkept = {list(kept)};\n")


def ask_data(data: str) -> Answer | None:
    """Solve the model for data as text."""
    command = [minizinc(), "--solver", SOLVER, str(MODELS / "placement.mzn"), "--cmdline-data", data]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    if "=====UNSATISFIABLE=====" in done.stdout:
        return None
    blocks = done.stdout.split("----------\n")
    assert len(blocks) > 1, done.stderr + done.stdout
    values, found = [], dict[str, dict[Key, str]](bind={}, move={}, evict={})
    for line in blocks[-2].splitlines():
        word, first, second = line.split(" ")
        if word in found:
            found[word][Key(*first.split("/"))] = second
        else:
            values.append(int(second))
    order = tuple(Key(*line.split(" ")[1].split("/")) for line in blocks[-2].splitlines() if line[:5] in _COMES)
    return Answer(tuple(values), _placement(found, order), "==========" in blocks[-1])


def _placement(found: Mapping[str, Mapping[Key, str]], order: tuple[Key, ...]) -> Placement:
    """What the model says, all in one step."""
    bound, moves = (Placement.of(found[word]).bindings for word in ("bind", "move"))
    gone = (*found["evict"], *found["move"])
    steps = (Step(gone, order),) if gone else ()
    return Placement(bound, evictions=tuple(found["evict"]), moves=moves, steps=steps)
