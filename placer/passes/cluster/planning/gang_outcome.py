"""The outcome of a gang after bindings, by answers of the server, later events, and rejections by kubelets."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING

from placer.passes.cluster.planning.binding_plan import Batch, PlannedBinding
from placer.problem import GroupKey, Instance, Key
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement

if TYPE_CHECKING:
    from placer.passes.cluster.planning.scheduler_cache import SchedulerCache

__all__ = ["GAVE_WAY", "BatchOutcome", "GangOutcome", "GangState", "gang_outcomes"]

#: Why a gang is left to a pass that follows at once, so that nobody else needs to read of it.
GAVE_WAY = "new pods came while others were bound"


@dataclass
class BatchOutcome:
    """A batch under way, sent, or left."""

    batch: Batch
    bound: list[PlannedBinding] = field(default_factory=list)  #: bindings that the server confirmed
    failed: dict[Key, str] = field(default_factory=dict)  #: other pods, with the reason of each
    left: str = ""  #: the reason for which nothing was sent; empty where it was
    ready: deque[PlannedBinding] = field(default_factory=deque)
    parked: list[PlannedBinding] = field(default_factory=list)  #: those that wait for a pod before them
    out: int = 0  #: number of those that are sent and not answered
    progress: float = 0.0  #: ``time.monotonic()`` of the last success

    @property
    def over(self) -> bool:
        """Whether nothing more becomes of it."""
        return not (self.ready or self.parked or self.out)


class GangState(Enum):
    """State of a gang after a pass."""

    BOUND = "bound"  #: all of its bindings
    RELEASED = "released"  #: all of its pods have a node, and schedulers are still to bind some that were released
    SHORT = "short"  #: not all, but it is ready
    HALF_BOUND = "halfBound"  #: some, and it is not ready
    ROLLED_BACK = "rolledBack"  #: what had been bound is deleted
    LEFT = "left"  #: nothing


@dataclass(frozen=True, slots=True)
class GangOutcome:
    """A gang after a pass."""

    key: GroupKey
    state: GangState
    bound: tuple[PlannedBinding, ...] = ()  #: its bindings of this pass
    missing: dict[Key, str] = field(default_factory=dict)  #: planned pods that are not bound, with the reason of each
    reason: str = ""  #: why it was left or is still half-bound, or when it is tried again after a roll-back
    before: tuple[PlannedBinding, ...] = ()  #: bindings by earlier passes, where they left it half-bound
    waiting: tuple[PlannedBinding, ...] = ()  #: released pods among these that their own scheduler has not bound yet
    #: Of a half-bound one: since when, and its latest roll-back; None: unknown, never.
    since: datetime | None = None
    until: datetime | None = None


def gang_outcomes(instance: Instance, cache: SchedulerCache, tried: BatchOutcome) -> Iterator[GangOutcome]:
    """The outcome of each gang of a batch, by the latest state of its pods."""
    if tried.left:
        for key in tried.batch.gangs:
            yield GangOutcome(key, GangState.LEFT, reason=tried.left)
        return
    failed, answered = dict(tried.failed), set(tried.bound)
    for pod, each in cache.rejected.items():
        failed[pod] = f"the kubelet of Node {each.node} rejected it ({each.reason})"
    bound: dict[GroupKey, list[PlannedBinding]] = defaultdict(list)
    missing: dict[GroupKey, dict[Key, str]] = defaultdict(dict)
    for bind in tried.batch.bindings:
        gang = instance.pods[bind.pod].group or GroupKey("", *bind.pod)
        if bind.pod not in cache.rejected and (bind in answered or cache.is_bound(bind)):
            bound[gang].append(bind)
        else:
            missing[gang][bind.pod] = failed.get(bind.pod, "it was not bound")
    for key in tried.batch.gangs:
        yield _gang_outcome(instance, key, tuple(bound[key]), missing[key])


def _gang_outcome(
    instance: Instance, key: GroupKey, bound: tuple[PlannedBinding, ...], missing: dict[Key, str]
) -> GangOutcome:
    if not missing:
        return GangOutcome(key, GangState.BOUND, bound)
    if not bound:
        pod, reason = next(iter(missing.items()))
        return GangOutcome(key, GangState.LEFT, missing=missing, reason=f"Pod {pod}: {reason}")
    outcome = Outcome(instance, Placement.of({bind.pod: bind.node for bind in bound}))
    state = GangState.SHORT if outcome.ready(instance.groups[key]) else GangState.HALF_BOUND
    return GangOutcome(key, state, bound, missing)
