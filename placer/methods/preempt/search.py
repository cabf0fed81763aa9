"""What goes for all groups that wait: as many as go without, then group by group, then the whole model if it is small.

Each group sees what those before it have left: what they were given is not disturbed again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from placer.deadline import Deadline
from placer.dense import Solution
from placer.dense.dense_builder import make_dense
from placer.disruption import Disruption, outcome_of
from placer.instance import Group, Instance, Key, PodState
from placer.instance.what_if import released, without
from placer.methods.events import Event, Improved, SearchOptions
from placer.methods.exact import disturbing
from placer.methods.exact.search import MOST_VARIABLES
from placer.methods.greedy.multi_start import greedy
from placer.methods.numa.binding_order import aligned
from placer.methods.preempt.domains import CARRYING, DomainSearch, disturbance
from placer.methods.preempt.equal_groups import least_for_equal
from placer.methods.preempt.least_evicted import least_evicted
from placer.methods.preempt.lifting import Lifted, lift, may_be_disturbed, moved_key, waiting
from placer.methods.preempt.plans import plan_of, planned
from placer.methods.preempt.victim_greedy import cheapest_evictions
from placer.outcome import Outcome
from placer.placement import Placement, Score, Value, better
from placer.score import score
from placer.verify import verify

__all__ = ["Carried", "Known", "search"]

#: Share of the time that is left which groups have together where there are several; the rest is for what follows.
SHARE = 0.8
#: Seconds that each of them has at least at first; where there are too many for that, the last ones have none.
LEAST = 0.5
#: Share of the time in which units that the greedy of victims chose stay one by one.
VICTIMS_SHARE = 0.3
#: So many times in a row that may find nothing better.
VICTIM_ROUNDS = 60


@dataclass(frozen=True)
class Carried:
    """A placement that keeps all rules, and what found it."""

    placement: Placement
    by: str


@dataclass(frozen=True)
class Known:
    """Values of which none can be better, those that equal them above it given, and who proved it."""

    values: Score
    by: str


def search(instance: Instance, options: SearchOptions, emit: Callable[[Carried | Known], None]) -> str:
    """Look for the placement that disturbs least.

    Parameters
    ----------
    options
        Seconds, seed and threads.
    emit
        Told every placement that is better than those before it, and what is known about all.

    Returns
    -------
    str
        ``finished``, or ``time`` where that ended it.
    """
    return _Search(instance, options, emit).run()


class _Search:
    def __init__(self, instance: Instance, options: SearchOptions, emit: Callable[[Carried | Known], None]) -> None:
        self.instance, self.options, self.emit = instance, options, emit
        self.deadline = Deadline.within(options.seconds)
        self.best: tuple[Score, Placement] | None = None

    def run(self) -> str:
        self.offer(self._undisturbed(self.instance), "greedy")
        groups, missing = waiting(self.instance), self._missing()
        if not missing:
            return "finished"
        assert self.best is not None, "placing nothing is always allowed"
        undisturbed = Placement(self.best[1].bindings)
        self._placeable()
        self._must_be_lost(groups)
        if len(missing) > 1 and not self.instance.moves_only:
            self._cheapest(undisturbed, missing)
        self._in_turn(undisturbed, groups, missing)
        self._equal()
        self._whole()
        return "time" if self.deadline.over else "finished"

    def _in_turn(self, undisturbed: Placement, groups: Sequence[Group], missing: Sequence[Group]) -> None:
        kept = undisturbed if len(groups) > len(missing) else Placement()
        self.offer(self._one_by_one(kept, missing if kept.bindings else groups), "domains")
        if kept.bindings and self._missing() and not self.deadline.over:
            self.offer(self._one_by_one(Placement(), groups), "domains")

    def offer(self, placement: Placement, by: str) -> None:
        values = score(self.instance, placement, disturbing=True)
        if (self.best is None or better(values, self.best[0])) and not verify(self.instance, placement):
            self.best = values, placement
            self.emit(Carried(placement, by))

    def _missing(self) -> list[Group]:
        assert self.best is not None, "placing nothing is always allowed"
        outcome = outcome_of(self.instance, self.best[1])
        return [group for group in waiting(self.instance) if not outcome.ready(outcome.instance.groups[group.key])]

    def _placeable(self) -> None:
        dense = make_dense(self.instance)
        for name, priority in dense.criteria:
            if name == "admitted":
                most = sum(group.need_weight for group in dense.groups if group.priority == priority)
                self.emit(Known((Value(name, most, priority),), "counting"))

    def _must_be_lost(self, groups: Sequence[Group]) -> None:
        least = least_evicted(self.instance, groups)
        if least is not None:
            needs = self.instance.need_weights
            admitted = [
                Value(name, sum(needs[group.key] for group in groups if group.priority == priority), priority)
                for name, priority in make_dense(self.instance).criteria
                if name == "admitted"
            ]
            self.emit(Known((*admitted, *least), "volume"))

    def _undisturbed(self, instance: Instance) -> Placement:
        dense = make_dense(instance)
        return planned(instance, dense.placement(greedy(dense, None, self.deadline)).node_of, ())

    def _one_by_one(self, kept: Placement, groups: Sequence[Group]) -> Placement:
        disturbed = set[Key]()
        state = self._after(self.instance, kept, disturbed) if kept.bindings else self.instance
        alone = len(groups) == 1 and not kept.bindings
        least = LEAST
        together = self.deadline if len(groups) == 1 else self.deadline.part(SHARE)
        for number, group in together.each(enumerate(groups)):
            # An even part of what is left: what one does not need is the others'.
            until = together.part(1 / (len(groups) - number)).not_before(least)
            began = time.monotonic()
            placement = self._for_group(state, group, until, alone=alone)
            if placement is None and until.over:  # too little to find anything: fewer groups have more
                least = 2 * (time.monotonic() - began)
            if placement is not None:
                state = self._after(state, placement, disturbed)
        state = self._after(state, self._undisturbed(state), disturbed)
        return self._plan(state, disturbed)

    def _cheapest(self, undisturbed: Placement, missing: Sequence[Group]) -> None:
        self.offer(self._by_victims(undisturbed, missing, ()), "victims")
        until, source = self.deadline.part(VICTIMS_SHARE), random.Random(self.options.seed)
        stay, tried, failed = frozenset[Key](), set[frozenset[Key]](), 0
        while self.best is not None and not until.over and failed < VICTIM_ROUNDS:
            units = self._evicted(self.best[1])
            new = [unit for unit in units if unit not in tried][:1]
            more = new or source.sample(units, min(len(units), source.randint(1, 3)))
            tried.update(more)
            before, kept = self.best, stay.union(*more)
            self.offer(self._by_victims(undisturbed, missing if new else _shuffled(missing, source), kept), "victims")
            better_now = self.best is not before
            stay, failed = (kept, 0) if better_now else (stay, failed + 1)

    def _evicted(self, placement: Placement) -> list[frozenset[Key]]:
        evicted = set(placement.evictions)
        units = (frozenset(unit.pods) for unit in Disruption(self.instance, placement).units)
        return sorted(
            (unit for unit in units if unit <= evicted),
            key=lambda unit: (-sum(self._weights[key] for key in unit), min(unit)),
        )

    @cached_property
    def _weights(self) -> Mapping[Key, int]:
        return self.instance.weights_of(pod for pod in self.instance.pods.values() if pod.state is PodState.BOUND)

    def _by_victims(self, undisturbed: Placement, missing: Sequence[Group], stay: Collection[Key]) -> Placement:
        disturbed = set[Key]()
        state = self._after(self.instance, undisturbed, disturbed) if undisturbed.bindings else self.instance
        bound, gone = cheapest_evictions(state, [state.groups[group.key] for group in missing], stay)
        for fixed in (bound, {}):
            placement = self._carried_out(state, fixed, frozenset[Key]().union(*gone))
            if not verify(state, placement):
                state = self._after(state, placement, disturbed)
                break
        state = self._after(state, self._undisturbed(state), disturbed)
        return self._plan(state, disturbed)

    def _carried_out(self, state: Instance, bound: Mapping[Key, str], gone: Collection[Key]) -> Placement:
        units = [frozenset(each.pods) for each in Disruption(state, Placement(evictions=tuple(sorted(gone)))).units]
        waits = released(state, frozenset[Key]().union(*units))
        dense = make_dense(Outcome(waits, aligned(waits, Placement.of(bound))).carried_out())
        placed = {**bound, **dense.placement(greedy(dense, None, self.deadline.not_before(CARRYING))).node_of}
        back = {unit for unit in units if all(placed.get(key) == state.pods[key].node for key in unit)}
        moved = _moved([unit for unit in units if unit not in back and unit <= placed.keys()], state.most_moves)
        not_moved = frozenset[Key]().union(*units) - moved
        bound_now = {key: node for key, node in placed.items() if key not in not_moved}
        return planned(state, bound_now, not_moved.difference(*back))

    def _for_group(self, state: Instance, group: Group, until: Deadline, *, alone: bool) -> Placement | None:
        others = {pod.key for pod in state.pending if pod.group != group.key}
        only = without(state, others)
        placement = self._undisturbed(only)
        if Outcome(only, placement).ready(only.groups[group.key]):
            return placement
        domains = DomainSearch(only, group, until, self.options.seed)
        for found in domains.run(bounded=alone):
            placement = found
            if alone:
                self.offer(self._plan(self._after(state, found, disturbed := set[Key]()), disturbed), "domains")
        if alone and domains.bound is not None and len(waiting(self.instance)) == 1:
            self.emit(Known(domains.bound, "domains"))
        return placement if domains.best is not None else None

    @staticmethod
    def _after(state: Instance, placement: Placement, disturbed: set[Key]) -> Instance:
        """The instance once a placement is carried out, in which what was evicted waits no more; what it evicts and
        moves is added to what is ``disturbed``.
        """
        outcome, moved = outcome_of(state, placement), Disruption(state, placement).gone
        disturbed |= moved
        after = without(outcome.carried_out(), set(placement.evictions))
        pods = dict(after.pods)
        for key in outcome.new:
            # A pod that was a group of its own is in none once it runs.
            pod = pods[key]
            group = pod.group if pod.group is not None and pod.group.api_group else None
            pods[key] = replace(pod, group=group, protected="it was placed just now")
        budgets = tuple(
            replace(each, pods=each.pods - moved, allowed=each.allowed - len(each.pods & moved))
            for each in state.budgets
        )
        left = None if state.most_moves is None else state.most_moves - len(placement.moves)
        groups = {key: each for key, each in after.groups.items() if each.pending or key.api_group}
        return replace(after, pods=pods, groups=groups, budgets=budgets, most_moves=left)

    def _plan(self, state: Instance, disturbed: Collection[Key]) -> Placement:
        """How the instance becomes what it is after several placements.

        A pod of a gang that is moved as one may be made again on the node that it was on.
        """
        bound = {
            key: pod.node or ""
            for key, pod in state.pods.items()
            if pod.state is PodState.BOUND and (key in disturbed or self.instance.pods[key].node != pod.node)
        }
        return planned(self.instance, bound, set(disturbed) - state.pods.keys())

    def _equal(self) -> None:
        groups = waiting(self.instance)
        if self.best is None or len(groups) < 2 or not self.instance.moves_only or self._missing():
            return
        least = least_for_equal(self.instance, groups, DomainSearch(self.instance, groups[0], self.deadline))
        if least is not None:
            above = (value for value in disturbance(self.best[0]) if value.name not in ("moved", "movedUnits"))
            self.emit(Known((*above, *least), "domains"))

    def _whole(self) -> None:
        candidates = may_be_disturbed(self.instance, max(group.priority for group in waiting(self.instance)))
        groups = {self.instance.pods[key].group for key in candidates}
        if len(groups) * len(self.instance.nodes) > MOST_VARIABLES:
            return  # each could be moved to any node
        lifted = lift(self.instance, candidates)
        hint = None if self.best is None else _hint(lifted, self.best[1])
        options = replace(self.options, seconds=None if self.options.seconds is None else self.deadline.left, hint=hint)
        disturbing.search(lifted, options, lambda event: self._hear(lifted, event))

    def _hear(self, lifted: Lifted, event: Event) -> None:
        if isinstance(event, Improved):
            self.offer(plan_of(lifted, event.solution), "exact")
        elif event.criterion is not None:
            values = zip(lifted.dense.criteria, (*event.context, event.bound), strict=False)
            self.emit(Known(tuple(Value(name, value, priority) for (name, priority), value in values), event.by))


def _moved(units: Iterable[frozenset[Key]], most: int | None) -> frozenset[Key]:
    """The pods of units that are moved, of which there are no more than so many; None: there is no limit."""
    found = frozenset[Key]()
    for unit in units:
        if most is None or len(found) + len(unit) <= most:
            found |= unit
    return found


def _shuffled(groups: Sequence[Group], source: random.Random) -> list[Group]:
    return sorted(source.sample(groups, len(groups)), key=lambda group: -group.priority)


def _hint(lifted: Lifted, placement: Placement) -> Solution | None:
    moved = {moved_key(move.pod): move.node for move in placement.moves}
    gone = Disruption(lifted.before, placement).gone
    if not gone <= set(lifted.pods):
        return None
    admitted = {group.key for group in outcome_of(lifted.before, placement).made_ready}
    pods = lifted.before.pods
    stay = {
        key if pods[key].group in admitted else lifted.idle.get(key, key): pods[key].node or ""
        for key in lifted.pods
        if key not in gone
    }
    there = {**stay, **moved, **placement.node_of}
    return lifted.dense.solution(Placement.of(there)) if there.keys() <= lifted.dense.class_of.keys() else None
