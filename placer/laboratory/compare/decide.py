"""What happens in the process of a row: a policy or a method decides, and what it took is measured."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from placer.errors import NothingFound, PlacerError
from placer.instance import Instance
from placer.laboratory.deciders import Asked, ask
from placer.laboratory.peak_memory import high_water
from placer.laboratory.policies import Mimicry
from placer.placement import Placement
from placer.result import Bound

__all__ = ["Decided", "Failed", "decide"]


@dataclass(frozen=True, slots=True)
class Decided:
    """A placement, not judged yet.

    Parameters
    ----------
    placement
        What it would bind.
    bounds
        What was proved, one per value of the objective; empty for a policy, which proves nothing.
    weight_bound
        What the placed weight of no valid placement exceeds that is at least as good in the order of the objective;
        None: nothing was proved.
    seconds
        From having the instance to having the placement.
    peak_memory
        High-water mark of the process at the end, KiB; 0 where the system does not tell.
    notes
        What of a policy is not mimicked (:class:`placer.laboratory.policies.Mimicry`).
    """

    placement: Placement
    bounds: tuple[Bound | None, ...]
    weight_bound: Bound | None
    seconds: float
    peak_memory: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """Why there is no placement, and the exit code that this has."""

    error: str
    exit_code: int = 1


def decide(instance: Instance, asked: Asked, emit: Callable[[Any], None]) -> Decided | Failed:
    """Decide and measure.

    Parameters
    ----------
    instance
        The problem.
    asked
        Who decides, and the limits.
    emit
        Is told the id of this process, and None when the decision is there (:class:`~placer.laboratory.peak_memory.
        PeakOfTree`).
    """
    emit(os.getpid())
    began = time.monotonic()
    try:
        found = _decide(instance, asked, began)
    except PlacerError as error:
        return Failed(str(error), error.exit_code)
    seconds, peak = time.monotonic() - began, high_water("self")
    emit(None)
    return replace(found, seconds=seconds, peak_memory=peak)


def _decide(instance: Instance, asked: Asked, began: float) -> Decided:
    """The decision; what it took is not known yet."""
    said = ask(instance, asked, began)
    if isinstance(said, Mimicry):
        return Decided(said.placement, (), None, 0.0, 0, said.notes)
    if said.placement is None:
        raise NothingFound(said.nothing_found)
    return Decided(said.placement, tuple(judged.bound for judged in said.objective), said.weight.bound, 0.0, 0)
