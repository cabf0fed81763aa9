"""Ask a policy or a method, by its name."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from placer.instance import Instance
from placer.laboratory.policies import POLICIES, SORTED, Mimicry, mimic
from placer.methods import METHODS
from placer.result import Result
from placer.solve import solve

__all__ = ["NAMES", "Asked", "ask", "configuration_of"]

#: Everything that can decide.
NAMES = (*POLICIES, *SORTED, *METHODS)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be decided, and how.

    Parameters
    ----------
    name
        One of :data:`NAMES`.
    arguments
        A policy's configuration (:func:`placer.laboratory.policies.mimic`); None: its defaults.
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


def configuration_of(name: str, arguments: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The configuration that a policy goes by: its own; one with a sort in its name has that of the policy it is of.

    Examples
    --------
    >>> configuration_of("network-overhead:KahnSort", {"network-overhead": {"percentageOfNodesToScore": 50}})
    {'percentageOfNodesToScore': 50}
    """
    return arguments.get(name, arguments.get(name.partition(":")[0]))


def ask(instance: Instance, asked: Asked, began: float | None = None) -> Mimicry | Result:
    """Let a policy or a method decide.

    Parameters
    ----------
    instance
        The problem.
    asked
        Who decides, and the limits.
    began
        ``time.monotonic()`` at which the time of a method began; None: now.

    Returns
    -------
    Mimicry or Result
        What a policy would bind, not judged, and what of it is not mimicked; what a method found, verified, with what
        it proved.

    Raises
    ------
    PlacerError
        As :func:`placer.laboratory.policies.mimic` and :func:`placer.solve` raise it.
    """
    if asked.name in POLICIES or asked.name in SORTED:
        return mimic(instance, asked.name, seed=asked.seed, arguments=asked.arguments)
    return solve(
        instance,
        method=asked.name,
        time_limit=asked.time_limit,
        work_limit=asked.work_limit,
        workers=asked.workers,
        seed=asked.seed,
        began=time.monotonic() if began is None else began,
    )
