"""The loop that every policy shares: who is next, try it, bind or give the room back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from placer.instance import Key
from placer.laboratory.policies.cluster_state import ClusterState, Task
from placer.placement import Placement

__all__ = ["Scheduler", "Settlement", "schedule"]

#: What is tried at once: a pod, or a job.
Unit = TypeVar("Unit")


@dataclass(frozen=True, slots=True)
class Settlement:
    """What the gang rule makes of an attempt.

    Parameters
    ----------
    bind
        Pods that are bound now, in this order; each is assumed on its node.
    release
        Assumed pods that give their room back. Who is neither bound nor released goes on holding it.
    """

    bind: Sequence[Task] = ()
    release: Sequence[Task] = ()


class Scheduler(Protocol, Generic[Unit]):
    """What a policy hands to the loop."""

    state: ClusterState

    def next(self) -> Unit | None:
        """Who is tried next, by the queue's order; None: none is left."""

    def attempt(self, unit: Unit) -> None:
        """Filter, score, and assume pods on the nodes chosen for them."""

    def settle(self, unit: Unit) -> Settlement:
        """Apply the gang rule to what was assumed."""


def schedule(scheduler: Scheduler[Unit]) -> Placement:
    """Run a policy to its end.

    Returns
    -------
    Placement
        Pods in the order in which they were bound.
    """
    state, bound = scheduler.state, list[tuple[Key, str]]()
    while (unit := scheduler.next()) is not None:
        scheduler.attempt(unit)
        settlement = scheduler.settle(unit)
        for task in settlement.release:
            state.forget(task)
        bound += state.named(settlement.bind)
    return Placement.of(bound)
