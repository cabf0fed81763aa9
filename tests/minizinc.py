"""Ask MiniZinc: ``models/placement.mzn`` over the data of an instance, in a process of its own."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from placer.instance import Instance, Key
from placer.placement import Placement
from tests.tools import require

MODELS = Path(__file__).parent.parent / "models"
SOLVER = "gecode"

#: Seconds that one question may take; those about tiny instances take about a third of one.
LIMIT = 120


@dataclass(frozen=True)
class Answer:
    """The last placement that was printed, its values as the model counts them, and whether the search was complete."""

    values: tuple[int, ...]
    placement: Placement
    complete: bool


@cache
def minizinc() -> str:
    return require("minizinc", "apt-get install minizinc")


def dzn(instance: Instance) -> str:
    """The instance as MiniZinc data, by ``models/to_dzn.py``, which is a script and in no package."""
    if str(MODELS) not in sys.path:
        sys.path.append(str(MODELS))
    text: str = importlib.import_module("to_dzn").dzn(instance)
    return text


def ask(instance: Instance, criterion: int, kept: Sequence[int]) -> Answer | None:
    """Optimise the value of number ``criterion``; 0: judge the claim that ``kept`` is the best there is.

    Returns
    -------
    Answer or None
        None: no placement is as good as ``kept``.
    """
    return ask_data(f"{dzn(instance)}criterion = {criterion};\nkept = {list(kept)};\n")


def ask_data(data: str) -> Answer | None:
    """Solve the model for data as text."""
    command = [minizinc(), "--solver", SOLVER, str(MODELS / "placement.mzn"), "--cmdline-data", data]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    if "=====UNSATISFIABLE=====" in done.stdout:
        return None
    blocks = done.stdout.split("----------\n")
    assert len(blocks) > 1, done.stderr + done.stdout
    values, bindings = [], {}
    for line in blocks[-2].splitlines():
        word, first, second = line.split(" ")
        if word == "bind":
            bindings[Key(*first.split("/"))] = second
        else:
            values.append(int(second))
    return Answer(tuple(values), Placement.of(bindings), "==========" in blocks[-1])
