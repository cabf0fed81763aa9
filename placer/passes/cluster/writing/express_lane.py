"""The express lane of a pass in a loop: single pods that the greedy has placed are bound before anything else is done.

A search may run meanwhile, or reasons be sought. The pods are in no gang, are bound and not released, and no kubelet
chooses their zones (C10), so that nothing is recorded before them. They rank at least as high as each waiting group, or
have a node that no waiting pod above them may use. The search decides with these pods bound, and the rest of the plan
is verified again without the failed ones. Then bindings not begun join the rest, in which namespaces take turns.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from placer.passes.cluster.planning.binding_plan import BindingPlan, is_bound_alone, plan_bindings
from placer.passes.cluster.planning.gang_outcome import GangOutcome
from placer.problem import GroupKey, Instance, Key, Pod
from placer.problem.outcome import Outcome
from placer.problem.placement import Binding, Placement
from placer.rules import verify
from placer.search.process import ProcessEnd

if TYPE_CHECKING:
    from placer.passes.cluster.reading.snapshot import Identity

__all__ = ["Arrivals", "ExpressLane", "express"]

#: Seconds that bindings have whatever comes.
_LEAST_BINDING = 1.0
#: How many times as long as a search that new pods waited for the next ones end at once for them; if all did, whoever
#: makes pods could end every search.
_GIVES_WAY = 5.0
#: The reason to begin no more bindings of the lane.
_DECIDED = "the search has decided"
#: Most pairs of a node and a kind of waiting pod that are looked at: beyond it nothing goes before what ranks above it.
_LOOKS = 100_000


class Arrivals:
    """New pods during a pass, whose search and bindings end early for them; for any number of threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._came = threading.Event()
        self._since: float | None = None  # of the search
        self._whole, self._gives_way_until = True, -math.inf
        self._began, self._bindings_since = clock(), math.inf

    def came(self) -> None:
        """A pod has come."""
        self._came.set()

    @property
    def waiting(self) -> bool:
        """Whether a pod has come since the pass began."""
        return self._came.is_set()

    def begin(self) -> None:
        """A pass begins: later pods may not be in it."""
        self._came.clear()
        self._since = None
        self._began, self._bindings_since = self._clock(), math.inf

    def end_search(self) -> bool:
        """Whether the search ends now: pods wait, and another had all of its time not long ago."""
        now = self._clock()
        if self._since is None:
            self._since, self._whole = now, now >= self._gives_way_until
        if self._whole and self.waiting:
            self._gives_way_until = now + _GIVES_WAY * (now - self._since)
        return self.waiting and not self._whole

    def end_bindings(self) -> bool:
        """Whether no more gangs begin in this pass: they had half as long as the decision, or a second, and pods wait.

        Else one tenant's bindings hold up everybody; a third of the time is left for them.
        """
        now = self._clock()
        self._bindings_since = min(self._bindings_since, now)
        least = max(_LEAST_BINDING, (self._bindings_since - self._began) / 2)
        return self.waiting and now >= self._bindings_since + least


class ExpressLane:
    """The bindings of a pass while its search runs.

    Parameters
    ----------
    carry_out
        Carries a plan out until the given function has a reason to begin no more; called in a thread of its own.

    Attributes
    ----------
    plan, gangs
        The bindings that were begun, and their outcomes; complete after :meth:`hand_over` or :meth:`join`.
    """

    def __init__(
        self,
        instance: Instance,
        identities: Mapping[Key, Identity],
        *,
        begin: Callable[[], None],
        carry_out: Callable[[BindingPlan, Callable[[], str | None]], list[GangOutcome]],
        changed: Callable[[], Collection[Key]],
        is_over: Callable[[], bool],
        arrivals: Arrivals,
    ) -> None:
        self._instance, self._identities = instance, identities
        self._begin, self._carry_out, self._changed, self._is_over = begin, carry_out, changed, is_over
        self._arrivals = arrivals
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self._decided = threading.Event()
        self.plan = BindingPlan()
        self.gangs: list[GangOutcome] = []

    def fix(self, placement: Placement) -> Instance | None:
        """Begin the first bindings, and give the instance with them bound; None where there are none."""
        first = express(self._instance, placement, self._identities)
        if not first.bindings or self._is_over():
            return None
        self._begin()
        self.plan = plan_bindings(self._instance, first, self._identities, self._changed())
        self._thread = threading.Thread(target=self._work, name="express lane", daemon=True)
        self._thread.start()
        return Outcome(self._instance, first).carried_out()

    def enough(self) -> ProcessEnd | None:
        """The end of the search, since the pass ends or new pods wait; None: it continues."""
        if self._is_over():
            return ProcessEnd.INTERRUPTED
        return ProcessEnd.KILLED if self._arrivals.end_search() else None

    def hand_over(self) -> None:
        """Begin no more bindings, and wait for the others."""
        self._decided.set()
        self.join()

    def join(self) -> None:
        """Wait until the first bindings are made."""
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error

    def changed(self) -> set[Key]:
        """Pods without which the rest of the plan has to stand: changed, or not bound first; after :meth:`join`."""
        bound = {bind.pod for gang in self.gangs for bind in gang.bound}
        failed = {bind.pod for batch in self.plan.batches for bind in batch.bindings} - bound
        return {*self._changed()} - bound | failed

    def _work(self) -> None:
        try:
            gangs = self._carry_out(self.plan, lambda: _DECIDED if self._decided.is_set() else None)
        except Exception as error:
            self._error = error
        else:
            self.gangs = [gang for gang in gangs if gang.reason != _DECIDED]
            self.plan = self.plan.of({gang.key for gang in self.gangs})


def express(instance: Instance, placement: Placement, identities: Mapping[Key, Identity]) -> Placement:
    """The part of a valid placement that may be bound before a search ends."""
    single = [
        bind
        for bind in placement.bindings
        if is_bound_alone(instance.pods[bind.pod], bind.numa_zones, identities[bind.pod].on_hold)
    ]
    outranked = _Outranked(instance, placement, min((instance.pods[bind.pod].priority for bind in single), default=0))
    found = [bind for bind in single if not outranked(instance.pods[bind.pod].priority, bind.node)]
    return _standing(instance, found) or _standing(instance, _alone(instance, found)) or Placement()


def _alone(instance: Instance, bindings: Collection[Binding]) -> list[Binding]:
    return [bind for bind in bindings if not instance.pods[bind.pod].neighbours]


def _standing(instance: Instance, bindings: Collection[Binding]) -> Placement | None:
    """A placement of some bindings if it breaks no rule without the others, which some may have to be near."""
    found = Placement(tuple(bindings))
    return None if verify(instance, found) else found


class _Outranked:
    def __init__(self, instance: Instance, placement: Placement, least: int) -> None:
        self._instance = instance
        kinds: dict[tuple[object, ...], tuple[int, Pod]] = {}
        for key, pod in _waiting(instance, placement):
            priority = instance.groups[key].priority
            if priority > least:
                kinds.setdefault((priority, pod.constraints, pod.requests), (priority, pod))
        self._kinds = sorted(kinds.values(), key=lambda kind: -kind[0])
        self._highest: dict[str, int | None] = {}
        self._looks = _LOOKS

    def __call__(self, priority: int, node: str) -> bool:
        if not self._kinds or self._kinds[0][0] <= priority:
            return False
        if node not in self._highest:
            if self._looks < len(self._kinds):
                return True
            self._looks -= len(self._kinds)
            self._highest[node] = self._of(node)
        highest = self._highest[node]
        return highest is not None and highest > priority

    def _of(self, name: str) -> int | None:
        node = self._instance.nodes[name]
        usable = (
            priority
            for priority, pod in self._kinds
            if pod.requests.fits(node.allocatable) and pod.constraints.refusal(node) is None
        )
        return next(usable, None)


def _waiting(instance: Instance, placement: Placement) -> Iterator[tuple[GroupKey, Pod]]:
    placed = placement.node_of
    for key, group in instance.groups.items():
        for pod in group.pending if group.invalid is None else ():
            if pod not in placed and not instance.pods[pod].unsupported:
                yield key, instance.pods[pod]
