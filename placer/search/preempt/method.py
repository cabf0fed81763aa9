"""What goes for all groups that wait: the first plans made better, then group by group, then the whole model if small.

Each group sees what those before it have left: what they were given is not disturbed again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from placer.arrays import Solution
from placer.arrays.dense_builder import make_dense
from placer.base.deadline import Deadline
from placer.problem import Group, Instance, Key, PodState
from placer.problem.disruption import Disruption, outcome_of
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement, Value
from placer.problem.what_if import without
from placer.search.events import Event, Improved, SearchOptions
from placer.search.exact import disturbing
from placer.search.exact.method import MOST_VARIABLES
from placer.search.preempt.construction import Construction
from placer.search.preempt.domains import DomainSearch, disturbance
from placer.search.preempt.equal_groups import least_for_equal
from placer.search.preempt.fewest_evictions import least_evicted
from placer.search.preempt.first_plan import (
    Best,
    Carried,
    Known,
    after,
    carried_out,
    first_plans,
    missing,
    placeable,
    plan_to,
    undisturbed,
    whole_plan,
)
from placer.search.preempt.lifting import Lifted, lift, may_be_disturbed, moved_key, waiting
from placer.search.preempt.plans import plan_of

#: Share of the time that is left which groups have together where there are several; the rest is for what follows.
SHARE = 0.8
#: Share of the time in which units that were chosen first stay one by one.
UNITS_SHARE = 0.3
#: So many times in a row that may find nothing better.
UNIT_ROUNDS = 60


def search(
    instance: Instance, first: Placement | None, options: SearchOptions, emit: Callable[[Carried | Known], None]
) -> str:
    """Look for the placement that disturbs least; ``finished``, or ``time`` where that ended it.

    ``first``: a placement that keeps the rules, to start from; None: what is found first is emitted, too. ``emit`` gets
    every placement that is better than those before it, and what is known about all.
    """
    return _Search(instance, first, options, emit).run()


class _Search:
    def __init__(
        self,
        instance: Instance,
        first: Placement | None,
        options: SearchOptions,
        emit: Callable[[Carried | Known], None],
    ) -> None:
        self.instance, self.options, self.emit = instance, options, emit
        self.deadline = options.deadline
        self.best = Best(instance, first)

    def run(self) -> str:
        if not self.best.found:
            for carried in first_plans(self.instance, self.deadline):
                self.offer(carried.by, (carried.placement,))
        groups = waiting(self.instance)
        for known in placeable(self.instance):
            self.emit(known)
        if not self.best.placement.disturbs and not self._missing():
            return "finished"
        self._must_be_lost(groups)
        self._equal()
        kept = undisturbed(self.instance, self.deadline)
        lacking = missing(self.instance, kept)
        self._by_units(kept, lacking)
        self._in_turn(kept if len(groups) > len(lacking) else Placement(), groups, lacking)
        self._rest()
        self._whole()
        return "time" if self.deadline.over else "finished"

    def _in_turn(self, kept: Placement, groups: Sequence[Group], lacking: Sequence[Group]) -> None:
        self.offer("domains", (self._one_by_one(kept, lacking if kept.bindings else groups),))
        if kept.bindings and self._missing() and not self.deadline.over:
            self.offer("domains", (self._one_by_one(Placement(), groups),))

    def offer(self, by: str, placements: Iterable[Placement]) -> bool:
        taken = self.best.offer(placements)
        if taken:
            self.emit(Carried(self.best.placement, by))
        return bool(taken)

    def _missing(self) -> list[Group]:
        return missing(self.instance, self.best.placement)

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

    def _one_by_one(self, kept: Placement, groups: Sequence[Group]) -> Placement:
        disturbed = set[Key]()
        state = after(self.instance, kept, disturbed) if kept.bindings else self.instance
        alone = len(groups) == 1 and not kept.bindings
        together = self.deadline if len(groups) == 1 else self.deadline.part(SHARE)
        for number, group in together.each(enumerate(groups)):
            # An even part of what is left: what one does not need is the others'.
            until = together.part(1 / (len(groups) - number))
            placement = self._for_group(state, group, until, alone=alone)
            if placement is not None:
                state = after(state, placement, disturbed)
        state = after(state, undisturbed(state, self.deadline), disturbed)
        return plan_to(self.instance, state, disturbed)

    def _by_units(self, kept: Placement, lacking: Sequence[Group]) -> None:
        until, source = self.deadline.part(UNITS_SHARE), random.Random(self.options.seed)
        state = after(self.instance, kept, set()) if kept.bindings else self.instance
        groups = [state.groups[group.key] for group in lacking]
        evicts = bool(self.best.placement.evictions)
        construction = Construction(state, groups, moving=not evicts, deadline=until)
        stay, tried, failed = frozenset[Key](), set[frozenset[Key]](), 0
        while not until.over and failed < min(UNIT_ROUNDS, 2 * len(units := self._units())):
            new = [unit for unit in units if unit not in tried][:1]
            more = new or source.sample(units, min(len(units), source.randint(1, 3)))
            tried.update(more)
            staying = stay.union(*more)
            found = carried_out(state, construction.plan(staying), self.deadline)
            better_now = self.offer("construction", (whole_plan(self.instance, kept, each) for each in found))
            stay, failed = (staying, 0) if better_now else (stay, failed + 1)

    def _rest(self) -> None:
        disturbed = set[Key]()
        state = after(self.instance, self.best.placement, disturbed)
        if state.pending:
            state = after(state, undisturbed(state, self.deadline), disturbed)
            self.offer("greedy", (plan_to(self.instance, state, disturbed),))

    def _units(self) -> list[frozenset[Key]]:
        units = [frozenset(unit.pods) for unit in Disruption(self.instance, self.best.placement).units]
        return sorted(units, key=lambda unit: (-sum(self._weights[key] for key in unit), min(unit)))

    @cached_property
    def _weights(self) -> Mapping[Key, int]:
        return self.instance.weights_of(pod for pod in self.instance.pods.values() if pod.state is PodState.BOUND)

    def _for_group(self, state: Instance, group: Group, until: Deadline, *, alone: bool) -> Placement | None:
        others = {pod.key for pod in state.pending if pod.group != group.key}
        only = without(state, others)
        placement = undisturbed(only, self.deadline)
        if Outcome(only, placement).ready(only.groups[group.key]):
            return placement
        domains = DomainSearch(only, group, until, self.options.seed)
        for found in domains.run(bounded=alone):
            placement = found
            if alone:
                self.offer("domains", (found,))
        if alone and domains.bound is not None and len(waiting(self.instance)) == 1:
            self.emit(Known(domains.bound, "domains"))
        return placement if domains.best.found else None

    def _equal(self) -> None:
        groups = waiting(self.instance)
        if not self.instance.moves_only or self._missing():
            return
        least = least_for_equal(self.instance, groups, DomainSearch(self.instance, groups[0], self.deadline))
        if least is not None:
            above = (value for value in disturbance(self.best.values) if value.name not in ("moved", "movedUnits"))
            self.emit(Known((*above, *least), "domains"))

    def _whole(self) -> None:
        candidates = may_be_disturbed(self.instance, max(group.priority for group in waiting(self.instance)))
        groups = {self.instance.pods[key].group for key in candidates}
        if len(groups) * len(self.instance.nodes) > MOST_VARIABLES:
            return  # each could be moved to any node
        lifted = lift(self.instance, candidates)
        options = replace(self.options, hint=_hint(lifted, self.best.placement))
        disturbing.search(lifted, options, lambda event: self._hear(lifted, event))

    def _hear(self, lifted: Lifted, event: Event) -> None:
        if isinstance(event, Improved):
            self.offer("exact", (plan_of(lifted, event.solution),))
        elif event.criterion is not None:
            values = zip(lifted.dense.criteria, (*event.context, event.bound), strict=False)
            self.emit(Known(tuple(Value(name, value, priority) for (name, priority), value in values), event.by))


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
