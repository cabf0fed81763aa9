"""Whether one group fits with some rules lifted, decided twice by different means (models/explain.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from placer.answers.explain.lifts import LIFTED, RULES_OF, lift_causes, lift_causes_in_arrays
from placer.answers.reasons.cause import Cause
from placer.answers.reasons.explanation import Causes
from placer.answers.reasons.relaxations import LOOKS, undecided
from placer.arrays import Dense, Solution
from placer.arrays.dense_builder import make_dense
from placer.base.deadline import Deadline
from placer.problem import Group, GroupKey, Instance, Key, Pod
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement
from placer.problem.what_if import alone
from placer.rules import verify
from placer.search.events import BoundFound, Event, Improved, SearchOptions
from placer.search.greedy.backtrack import Effort
from placer.search.greedy.multi_start import squeeze_in
from placer.search.greedy.state import GreedyLayout, GreedyState
from placer.search.numa.binding_order import aligned

#: Nodes that a quick search looks at besides the greedy's ways.
QUICK = 400

SECONDS = 10.0


@dataclass(frozen=True)
class Decision:
    """Whether a group fits (None: unconfirmed), who decided, where, and the cause where not."""

    fits: bool | None
    by: tuple[str, ...] = ()
    placement: Placement | None = None
    cause: Cause | None = None


def _pods_ask(asks: Callable[[Instance, Pod], bool]) -> Callable[[Instance, Group], bool]:
    return lambda instance, group: any(asks(instance, instance.pods[key]) for key in group.pending)


def _is_limited(instance: Instance, group: Group) -> bool:
    return group.limited or any(instance.pods[key].neighbours.units for key in group.pending)


def _is_exclusive(_: Instance, pod: Pod) -> bool:
    return bool(pod.neighbours.jobs) or any(unit.exclusive for unit in pod.neighbours.units)


def _calls(instance: Instance, pod: Pod) -> bool:
    return instance.network is not None and pod.workload is not None


#: Cause to whether a group asks for anything of its rules; one that is not here concerns every group.
_ASKED: Mapping[str, Callable[[Instance, Group], bool]] = {
    "InvalidGroup": lambda _, group: group.invalid is not None,
    "Unsupported": _pods_ask(lambda _, pod: bool(pod.unsupported)),
    "QueueClosed": _pods_ask(lambda instance, pod: instance.closed_queue(pod.queue, pod.namespace) is not None),
    "QueueCapability": _pods_ask(
        lambda instance, pod: any(instance.queues[name].capability for name in instance.queue_path(pod.queue))
    ),
    "TopologyTooNarrow": _is_limited,
    "Exclusive": _pods_ask(_is_exclusive),
    "NumaAlignment": _pods_ask(lambda instance, pod: bool(instance.aligning_nodes) and pod.numa is not None),
    "NetworkCost": _pods_ask(_calls),
    "Bandwidth": _pods_ask(_calls),
}


#: Causes for which the arrays leave pods of a group out: lifted, they tell which other rules concern it.
_LEFT_OUT = frozenset({"InvalidGroup", "GangIncomplete", "Unsupported", "QueueClosed", "InsufficientResources"})

#: Causes that are set aside in the group and its queues, not by a rule that is off: of C11, one part holds.
_BY_NAME = frozenset({"InvalidGroup", "GangIncomplete", "Unsupported", "QueueClosed", "QueueCapability"})


class LoneGroup:
    """One group alone with running pods, and whether it fits with rules lifted."""

    def __init__(self, instance: Instance, key: GroupKey, deadline: Deadline) -> None:
        self.instance, self.key, self.deadline = alone(instance, key), key, deadline
        self._known: dict[frozenset[str], Decision] = {}
        self._confirmed: dict[frozenset[str], Decision] = {}

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """Causes that the group asks for and that can be lifted, in the order of the catalogue."""
        group, plain = self.instance.groups[self.key], _World(self.instance, self.key, _LEFT_OUT)
        asks = [code for code in RULES_OF if code not in LIFTED or self._asks(code)]
        return (
            tuple(
                code
                for code in asks
                if code in LIFTED or lift_causes_in_arrays(plain.arrays, frozenset({code})) is not plain.arrays
            )
            if group.pending
            else ()
        )

    def _asks(self, code: str) -> bool:
        off = set(RULES_OF[code]) <= self.instance.policy.rules_off
        asked = _ASKED.get(code)
        return not off and (asked is None or asked(self.instance, self.instance.groups[self.key]))

    def fits(self, codes: frozenset[str] = frozenset()) -> Decision:
        """The first decision; a *yes* is verified."""
        if codes not in self._known:
            self._known[codes] = _World(self.instance, self.key, codes).decide(self.deadline)
        return self._known[codes]

    def found(self, codes: frozenset[str] = frozenset()) -> Decision:
        """A quick look for a place; never a proof that there is none."""
        return _World(self.instance, self.key, codes).searched(QUICK) or Decision(None)

    def confirmed(self, codes: frozenset[str] = frozenset()) -> Decision:
        """The same decided twice, or None."""
        if codes not in self._confirmed:
            first = self.fits(codes)
            if first.fits is False:
                first = _World(self.instance, self.key, codes).confirm(first, self.deadline)
            self._confirmed[codes] = first
        return self._confirmed[codes]


class _World:
    def __init__(self, instance: Instance, key: GroupKey, codes: frozenset[str]) -> None:
        self.original, self.key, self.codes = instance, key, codes
        self.instance = lift_causes(instance, key, codes)

    @cached_property
    def arrays(self) -> Dense:
        return lift_causes_in_arrays(make_dense(self.instance), self.codes)

    @cached_property
    def group(self) -> int | None:
        return next((index for index, each in enumerate(self.arrays.groups) if each.key == self.key), None)

    def decide(self, deadline: Deadline) -> Decision:
        if deadline.over:
            return Decision(None)
        if self._only_lacks_what_is_lifted():
            return self._judged(Solution(), "objects") or Decision(None)
        cause = Causes(self.instance, self.arrays, Solution()).of(self.key)
        if cause is not None and cause.code != "NotDecided":
            return Decision(False, ("objects" if self.group is None else "counting and search",), cause=cause)
        return self.searched(LOOKS) or self._asked_cp_first(deadline)

    def _only_lacks_what_is_lifted(self) -> bool:
        """Such a group needs no pod once these causes are lifted."""
        worlds = (self.original, self.instance) if self.codes else ()
        return [Outcome(each, Placement()).ready(each.groups[self.key]) for each in worlds] == [False, True]

    def _asked_cp_first(self, deadline: Deadline) -> Decision:
        fits, solution = self._asked_cp(deadline) if self.group is not None else (None, None)
        if solution is not None:
            return self._judged(solution, "cp-sat") or Decision(None)
        return Decision(False, ("cp-sat",), cause=undecided()) if fits is False else Decision(None, cause=undecided())

    def searched(self, looks: int) -> Decision | None:
        if self.group is None:
            return None
        state = GreedyState(GreedyLayout(self.arrays))
        return self._judged(state.solution(), "search") if squeeze_in(state, self.group, Effort(most=looks)) else None

    def _asked_cp(self, deadline: Deadline) -> tuple[bool | None, Solution | None]:
        from placer.search.exact.readiness import ready_solution

        return ready_solution(self.arrays, Deadline(min(deadline.at, Deadline.within(SECONDS).at)))

    def _judged(self, solution: Solution, by: str) -> Decision | None:
        placement = aligned(self.instance, self.arrays.placement(solution))
        return Decision(True, (by, "rules"), placement) if self.allows(placement) else None

    def allows(self, placement: Placement) -> bool:
        """Rules are those of the original instance, except for the demands of the group and its queues."""
        asks = self.codes & _BY_NAME
        off = {rule for code in self.codes - asks for rule in RULES_OF[code]}
        judged = lift_causes(self.original, self.key, frozenset(asks))
        judged = replace(judged, policy=replace(judged.policy, rules_off=judged.policy.rules_off | off))
        ready = Outcome(judged, placement).ready(judged.groups[self.key])
        return ready and not verify(judged, placement)

    def confirm(self, first: Decision, deadline: Deadline) -> Decision:
        """A *no* has to be confirmed by another way than the first."""
        if self.group is None:
            return replace(first, fits=False, by=(*first.by, "rules")) if self._never_ready() else Decision(None)
        if "cp-sat" in first.by:
            fits, by = self._asked_milp(deadline), "milp"
        else:
            (fits, solution), by = self._asked_cp(deadline), "cp-sat"
            if fits and solution is not None:
                return self._judged(solution, by) or Decision(None)
        return replace(first, by=(*first.by, by)) if fits is False else Decision(None, cause=first.cause)

    def _never_ready(self) -> bool:
        """Even with every pod placed that may be placed at all (C2, C4, queues)."""
        node = next(iter(self.instance.nodes), "")
        placed = [key for key in self.instance.groups[self.key].pending if self._may(key)]
        group = self.instance.groups[self.key]
        placed = self._in_whole_sub_groups(placed)
        return not placed or not Outcome(self.instance, Placement.of(dict.fromkeys(placed, node))).ready(group)

    def _in_whole_sub_groups(self, keys: list[Key]) -> list[Key]:
        group, pods = self.instance.groups[self.key], self.instance.pods
        whole = {
            at
            for at, part in enumerate(group.sub_groups)
            if part.placed_before + sum(pods[key].sub_group == at for key in keys) >= group.policies[part.policy].size
        }
        return [key for key in keys if pods[key].sub_group is None or pods[key].sub_group in whole]

    def _may(self, key: Key) -> bool:
        pod = self.instance.pods[key]
        takes = "C11" in self.instance.policy.rules_off or not self.instance.closed_queue(pod.queue, pod.namespace)
        return takes and not pod.unsupported and not self.instance.unoffered(pod)

    def _asked_milp(self, deadline: Deadline) -> bool | None:
        from placer.search.milp.method import search

        told: list[Event] = []
        until = min(deadline, Deadline.within(SECONDS), key=lambda each: each.at)
        if until.over:
            return None
        search(self.arrays, SearchOptions(until), told.append)
        need = sum(group.need_weight for group in self.arrays.groups)
        if any(isinstance(each, BoundFound) and each.criterion == 0 and each.bound < need for each in told):
            return False
        return True if any(isinstance(each, Improved) and each.solution for each in told) else None
