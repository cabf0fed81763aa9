"""A binding plan carried out, gang by gang, many bindings at a time.

A gang is sent when all events are heard and the scheduler cache has room for it, all bindings together except those
that wait for a pod before them. A single pod that asks nothing of others needs an open watch only. While nothing of a
gang is bound, one failure ends it; later the rest is still tried, within a grace that begins again with each success.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from placer.base.errors import ClusterError
from placer.passes.cluster.planning.binding_plan import Batch, BindingPlan, PlannedBinding, is_bound_alone
from placer.passes.cluster.planning.gang_outcome import BatchOutcome, GangOutcome, GangState, gang_outcomes
from placer.passes.cluster.reading.access import Right, allows
from placer.passes.cluster.reading.client import Writer
from placer.passes.cluster.reading.views import KubeletAnswer
from placer.passes.cluster.writing.binding import BindingResult, BindingState, bind_pod
from placer.passes.cluster.writing.breaker import Breaker
from placer.passes.cluster.writing.lease import HANDOVER, LeaderElector, NoElection
from placer.problem import Instance, Key

if TYPE_CHECKING:
    from placer.passes.cluster.planning.scheduler_cache import SchedulerCache

__all__ = ["BindingOptions", "execute_plan", "missing_right", "why_refused"]

#: Without any of these nothing goes out: each with the folder that gives it.
_SEEING = ((Right("", "pods", "watch"), "base"), (Right("", "nodes", "watch"), "base"))
_BINDING = (Right("", "pods/binding", "create"), "base")
_RELEASING = (Right("", "pods", "patch"), "overlays/gates")
#: Seconds that a gang under way has left when the pass is to end, so few that no other pass has begun by then where the
#: Lease is lost; and those after which nothing more is waited for.
_LAST, _END = HANDOVER - 1.0, 6.0
#: Most seconds to wait at the end for events of what was bound: without them it is not known what else came.
_EVENTS = 10.0
#: The same where the pass is to end: kubelets are not waited for, and there is time left to say what became of all.
_EVENTS_AT_THE_END = 2.0
#: Seconds after which a wait looks whether the pass is to end.
_SLICE = 0.1
#: Seconds between two looks at what kubelets answered.
_TICK = 0.02


@dataclass(frozen=True, slots=True)
class BindingOptions:
    """Options of carrying out a plan."""

    workers: int = 16  #: bindings under way at once, at least 1
    grace: float = 30.0  #: seconds that a gang may be without success
    settle: float = 5.0  #: most seconds to wait at the end for kubelets' answers; 0 in a loop
    dry_run: bool = False  #: the server keeps nothing


def execute_plan(
    server: Breaker,
    cache: SchedulerCache,
    instance: Instance,
    plan: BindingPlan,
    settings: BindingOptions,
    stop: threading.Event,
    elector: LeaderElector | NoElection,
    answered: Callable[[], None] = lambda: None,
    gives_way: Callable[[], str | None] = lambda: None,
) -> list[GangOutcome]:
    """Carry a plan out.

    Parameters
    ----------
    server
        Once it is open nothing more is sent.
    stop
        Set by another thread: begin no further gang, and return within seconds.
    elector
        Lost, it is the same as ``stop``; paused, gangs under way continue.
    answered
        Called after each answer, as a sign of life.
    gives_way
        Gives a sentence where no further gang may begin; gangs under way continue.

    Returns
    -------
    list[GangOutcome]
        Every gang of the plan's batches, in order. Errors of the server are reasons here and not raised.
    """
    work = _Execution(server, cache, instance, settings, stop, elector, answered, gives_way)
    work.carry_out(plan)
    if not settings.dry_run:
        _settle(cache, settings, stop)
    return [gang for tried in work.done for gang in gang_outcomes(instance, cache, tried)]


def missing_right(server: Writer, plan: BindingPlan) -> str | None:
    """A sentence on a missing right, without which nothing of a plan can be bound or released; None: unknown."""
    places = sorted({bind.pod.namespace for batch in plan.batches for bind in batch.bindings})
    with suppress(ClusterError):
        for right, folder in _needed(plan):
            if not _is_given(server, right, places):
                done = "released" if right == _RELEASING[0] else "bound"
                return (
                    f"nothing is {done} without the right to {right}: kubectl apply -k deploy/{folder}, "
                    f"or give {right.rule}"
                )
    return None


def why_refused(
    server: Writer, breaker: Breaker, plan: BindingPlan, carried_out: Collection[GangOutcome]
) -> str | None:
    """A sentence on why the server takes no bindings, where one was not made."""
    if all(gang.state is GangState.BOUND for gang in carried_out):
        return None
    why = breaker.open or breaker.refused
    return why if why is not None or any(gang.bound for gang in carried_out) else missing_right(server, plan)


def _needed(plan: BindingPlan) -> list[tuple[Right, str]]:
    ways = {bind.by_release for batch in plan.batches for bind in batch.bindings}
    return [*_SEEING, *(_RELEASING if by_release else _BINDING for by_release in sorted(ways))]


def _is_given(server: Writer, right: Right, places: Iterable[str]) -> bool:
    return allows(server, right) or (
        right not in dict(_SEEING) and all(allows(server, right.within(each)) for each in places)
    )


def _settle(cache: SchedulerCache, settings: BindingOptions, stop: threading.Event) -> None:
    start = time.monotonic()
    for most, at_the_end, answered in ((_EVENTS, _EVENTS_AT_THE_END, False), (settings.settle, 0.0, True)):
        while time.monotonic() < start + (min(most, at_the_end) if stop.is_set() else most):
            if cache.wait(_SLICE, partial(cache.all_seen, answered=answered)):
                break


@dataclass(eq=False)
class _Execution:
    _server: Breaker
    _cache: SchedulerCache
    _instance: Instance
    _settings: BindingOptions
    _stop: threading.Event
    _elector: LeaderElector | NoElection
    _answered: Callable[[], None]
    _gives_way: Callable[[], str | None]

    def __post_init__(self) -> None:
        self._tasks: SimpleQueue[tuple[BatchOutcome, PlannedBinding] | None] = SimpleQueue()
        self._made: SimpleQueue[tuple[BatchOutcome, BindingResult]] = SimpleQueue()
        self._results: dict[Key, tuple[PlannedBinding, BindingState]] = {}
        self._out = 0
        self._stopped: float | None = None
        self._deaf_since: float | None = None
        self._unheard: str | None = None  # why no events came when it was asked last, which is before each batch
        self._left: set[Key] = set()
        self.done: list[BatchOutcome] = []

    def carry_out(self, plan: BindingPlan) -> None:
        count = min(self._settings.workers, sum(len(batch.bindings) for batch in plan.batches))
        for number in range(count):
            threading.Thread(target=self._bind, name=f"bind {number}", daemon=True).start()
        waiting, active = deque(plan.batches), deque[BatchOutcome]()
        while waiting or active:
            self._advance(waiting, active)
            if self._past_end():
                self._abandon(active)
            else:
                self._wait(waiting, active)
        for _ in range(count):
            self._tasks.put(None)

    def _wait(self, waiting: deque[Batch], active: deque[BatchOutcome]) -> None:
        if active:
            self._take(_TICK if waiting or any(each.parked for each in active) else 0.5)
        elif waiting:
            self._stop.wait(_TICK)

    def _advance(self, waiting: deque[Batch], active: deque[BatchOutcome]) -> None:
        self._notice_stop()
        while waiting and self._has_workers(active) and (batch := self._next(waiting)) is not None:
            active.append(self._begin(batch))
        for each in active:
            self._unpark(each)
            self._deal(each)
        while active and active[0].over:
            self.done.append(active.popleft())

    # ------------------------------------------------------------------------------------------------------ dealing

    def _has_workers(self, active: Iterable[BatchOutcome]) -> bool:
        return not any(each.ready for each in active) and self._out < 2 * self._settings.workers

    def _next(self, waiting: deque[Batch]) -> Batch | None:
        deaf = self._deaf()
        if deaf and self._cache.closed():
            return None
        batch = next((each for each in waiting if not deaf or self._is_lone(each)), None)
        if batch is not None:
            waiting.remove(batch)
            if self._unheard is not None and self._is_lone(batch):
                self._unheard = self._cache.closed()
        return batch

    def _is_lone(self, batch: Batch) -> bool:
        bind, pod = batch.bindings[0], self._instance.pods[batch.bindings[0].pod]
        asks = len(batch.bindings) > 1 or pod.neighbours or bind.after is not None
        return not asks and is_bound_alone(pod, bind.numa_zones, bind.by_release)

    def _deaf(self) -> bool:
        """Whether events may still come: they are awaited once, for a gang's grace."""
        self._unheard = self._cache.lost()
        if self._stopped is not None or self._unheard is None:
            self._deaf_since = None
            return False
        if self._deaf_since is None:
            self._deaf_since = time.monotonic()
        return time.monotonic() < self._deaf_since + self._settings.grace

    def _begin(self, batch: Batch) -> BatchOutcome:
        found = BatchOutcome(batch, progress=time.monotonic())
        found.left = "the pass was to end" if self._stop.is_set() else self._refusal(batch)
        if found.left:
            self._left |= {bind.pod for bind in batch.bindings}
            return found
        self._cache.assume(batch.bindings)
        for bind in batch.bindings:
            (found.ready if bind.after is None else found.parked).append(bind)
        return found

    def _refusal(self, batch: Batch) -> str:
        refused, _, _ = (self._server.open or "").partition(":")  # what it said last it said of another pod
        forbidden = next(
            filter(None, (self._elector.lost, self._elector.paused, self._gives_way(), refused, self._unheard)), None
        )
        if forbidden:
            return forbidden
        own = {bind.pod for bind in batch.bindings}
        for bind in batch.bindings:
            if bind.after is not None and bind.after not in own and self._failed(bind.after):
                return f"Pod {bind.after}, which comes before Pod {bind.pod} on Node {bind.node}, was not bound"
        return self._cache.refusal(batch.gangs, batch.bindings) or ""

    def _failed(self, pod: Key) -> bool:
        if pod in self._results:
            return self._results[pod][1] is not BindingState.BOUND
        return pod in self._left

    def _unpark(self, under: BatchOutcome) -> None:
        kept = []
        for bind in under.parked:
            verdict = self._turn(under, bind)
            if verdict is None:
                kept.append(bind)
            elif verdict:
                self._fail(under, bind, verdict)
            else:
                under.ready.append(bind)
        under.parked = kept

    def _turn(self, under: BatchOutcome, bind: PlannedBinding) -> str | None:
        """Whether a waiting binding may be sent: an empty text; None: not yet; else why it never will."""
        if bind.after is None:
            return ""
        if self._failed(bind.after) or bind.after in under.failed:
            return f"Pod {bind.after} before it on Node {bind.node} was not bound"
        if bind.after in self._results:
            before = self._results[bind.after][0]
            if self._is_enough(bind, before):
                return ""
            answer = self._cache.kubelet_answer(before)
            if answer is KubeletAnswer.ADMITTED:
                return ""
            if answer is KubeletAnswer.REJECTED:
                return f"the kubelet of Node {bind.node} rejected Pod {bind.after} before it"
        if time.monotonic() < self._deadline(under):
            return None
        return f"the kubelet of Node {bind.node} has not answered to Pod {bind.after} before it in time"

    def _is_enough(self, bind: PlannedBinding, before: PlannedBinding) -> bool:
        bound = not bind.admitted and (not before.by_release or self._cache.is_bound(before))
        return bound or self._settings.dry_run

    def _deal(self, under: BatchOutcome) -> None:
        while under.ready and self._out < 2 * self._settings.workers:
            if under.failed and not under.bound and under.out:
                return  # if what is under way comes to nothing, the rest is not tried
            bind = under.ready.popleft()
            if under.failed and not under.bound:
                self._fail(under, bind, "another pod of its gang cannot be bound")
            elif time.monotonic() >= self._deadline(under):
                self._fail(under, bind, "its gang's time was over")
            else:
                under.out += 1
                self._out += 1
                self._tasks.put((under, bind))

    def _take(self, seconds: float) -> None:
        with suppress(Empty):
            under, made = self._made.get(timeout=seconds)
            while True:
                self._answered()
                self._note(under, made)
                under, made = self._made.get_nowait()

    def _note(self, under: BatchOutcome, made: BindingResult) -> None:
        under.out -= 1
        self._out -= 1
        self._results[made.bind.pod] = (made.bind, made.state)
        if made.state is BindingState.BOUND:
            under.bound.append(made.bind)
            self._server.note_answer()  # it may have been found done, and not have been answered
            under.progress = time.monotonic()
            return
        under.failed[made.bind.pod] = made.reason
        if made.state is BindingState.REFUSED:
            self._cache.forget(made.bind)

    def _fail(self, under: BatchOutcome, bind: PlannedBinding, reason: str) -> None:
        under.failed[bind.pod] = reason
        self._results[bind.pod] = (bind, BindingState.REFUSED)
        self._cache.forget(bind)

    # --------------------------------------------------------------------------------------------------------- time

    def _deadline(self, under: BatchOutcome) -> float:
        ends = [under.progress + self._settings.grace, time.monotonic() + self._elector.left + _LAST]
        return min(ends if self._stopped is None else [*ends, self._stopped + _LAST])

    def _notice_stop(self) -> None:
        if self._stopped is None and (self._stop.is_set() or self._elector.lost is not None):
            self._stopped = time.monotonic()

    def _past_end(self) -> bool:
        return self._stopped is not None and time.monotonic() > self._stopped + _END

    def _abandon(self, active: deque[BatchOutcome]) -> None:
        for under in active:
            settled = {bind.pod for bind in under.bound} | set(under.failed)
            for bind in under.batch.bindings:
                if bind.pod not in settled:
                    under.failed[bind.pod] = "the pass had to end before the server answered"
        self.done += active
        active.clear()

    def _bind(self) -> None:
        while (task := self._tasks.get()) is not None:
            under, bind = task
            try:
                made = bind_pod(
                    self._server,
                    bind,
                    partial(self._deadline, under),
                    refusal=partial(self._cache.late_refusal, bind),
                    dry_run=self._settings.dry_run,
                )
            except Exception as error:  # a worker that dies would leave its gang waiting for ever
                made = BindingResult(bind, BindingState.UNKNOWN, f"{type(error).__name__}: {error}")
            self._made.put((under, made))
