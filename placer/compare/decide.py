"""What happens in the process of a row: a policy or a method decides, and what it took is measured."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from placer.errors import NothingFound, PlacerError
from placer.instance import Instance
from placer.placement import Placement
from placer.result import Bound
from placer.sweep.memory import high_water

__all__ = ["Asked", "Decided", "Failed", "decide"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What one row is to do.

    Parameters
    ----------
    name
        A policy or a method.
    arguments
        A policy's configuration (:func:`placer.policies.run`); None: its defaults.
    time_limit, work_limit, workers
        Of a method, as :func:`placer.solve` takes them; policies always run to their end, on one core.
    seed
        Of its random choices.
    """

    name: str
    arguments: Mapping[str, Any] | None = None
    time_limit: float | None = 60.0
    work_limit: float | None = None
    workers: int | None = None
    seed: int = 0


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
        What the placed weight of no valid placement exceeds; None: nothing was proved.
    seconds
        From having the instance to having the placement.
    peak_memory
        High-water mark of the process at the end, KiB; 0 where the system does not tell.
    """

    placement: Placement
    bounds: tuple[Bound | None, ...]
    weight_bound: Bound | None
    seconds: float
    peak_memory: int


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
        Is told the id of this process, and None when the decision is there (:class:`placer.sweep.memory.PeakOfTree`).
    """
    emit(os.getpid())
    began = time.monotonic()
    try:
        placement, bounds, weight_bound = _decide(instance, asked, began)
    except PlacerError as error:
        return Failed(str(error), error.exit_code)
    seconds, peak = time.monotonic() - began, high_water("self")
    emit(None)
    return Decided(placement, bounds, weight_bound, seconds, peak)


def _decide(instance: Instance, asked: Asked, began: float) -> tuple[Placement, tuple[Bound | None, ...], Bound | None]:
    from placer.policies import POLICIES, run
    from placer.solve import solve

    if asked.name in POLICIES:
        return run(instance, asked.name, seed=asked.seed, arguments=asked.arguments), (), None
    result = solve(
        instance,
        method=asked.name,
        time_limit=asked.time_limit,
        work_limit=asked.work_limit,
        workers=asked.workers,
        seed=asked.seed,
        began=began,
    )
    if result.placement is None:
        raise NothingFound(f"{result.method} found nothing before it had to stop ({result.termination})")
    return result.placement, tuple(judged.bound for judged in result.objective), result.weight.bound
