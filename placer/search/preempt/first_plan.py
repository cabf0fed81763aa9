"""The first plans for what waits, and how a choice of who goes becomes a placement that the judge accepts.

Runs where the caller does: no solver, and no process of its own, which costs seconds at 50,000 pods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from placer.arrays.dense_builder import make_dense
from placer.base.deadline import Deadline
from placer.problem import Group, Instance, Key, PodState
from placer.problem.disruption import Disruption, outcome_of
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement, Score, Value, better
from placer.problem.what_if import released, without
from placer.rules import verify
from placer.rules.scoring import score
from placer.search.greedy.multi_start import greedy
from placer.search.numa.binding_order import aligned
from placer.search.preempt.construction import Construction, FirstPlan
from placer.search.preempt.fewest_evictions import never_admitted
from placer.search.preempt.lifting import waiting
from placer.search.preempt.plans import planned

#: Plans that are made one after another where rules that a construction does not look at refuse the first.
TRIES = 4
#: Seconds that carrying out has at least, also where a search took all of the time: what it found is else for nothing.
CARRYING = 1.0


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


class Best:
    """The best placement of an instance so far."""

    def __init__(self, instance: Instance, placement: Placement | None = None) -> None:
        self.instance = instance
        self.placement = placement or Placement()
        self.values: Score = score(instance, self.placement, disturbing=True)
        self.found = placement is not None

    def offer(self, placements: Iterable[Placement]) -> bool | None:
        """Take the first of some placements that keeps the rules, where it is better; say whether it is.

        None: all of them break rules.
        """
        for placement in placements:
            values = score(self.instance, placement, disturbing=True)
            if self.found and not better(values, self.values):
                return False
            if not verify(self.instance, placement):
                self.placement, self.values, self.found = placement, values, True
                return True
        return None


def first_plans(instance: Instance, deadline: Deadline) -> Iterator[Carried]:
    """Give placements, each better than the one before it: what disturbs nothing, then plans by construction.

    What disturbs nothing is left out where it admits nothing and a plan does.
    """
    best = Best(instance)
    kept = undisturbed(instance, deadline)
    best.offer((kept,))
    lacking = missing(instance, kept)
    if kept.bindings or not lacking:
        yield Carried(kept, "greedy")
    for construction in _constructions(instance, kept, lacking, deadline) if lacking else ():
        if _is_better(best, kept, construction):
            yield Carried(best.placement, "construction")
    if not best.placement.disturbs and not best.placement.bindings:
        yield Carried(best.placement, "greedy")


def _constructions(
    instance: Instance, kept: Placement, lacking: Iterable[Group], deadline: Deadline
) -> Iterator[Construction]:
    state = after(instance, kept, set()) if kept.bindings else instance
    groups = [state.groups[group.key] for group in lacking]
    for moving in (True, False) if instance.may_evict and not instance.moves_only else (True,):
        yield Construction(state, groups, moving=moving, deadline=deadline)


def _is_better(best: Best, kept: Placement, construction: Construction) -> bool:
    """Whether the first plan of a construction that keeps the rules is better; where none does, nodes are barred."""
    barred, deadline = set[str](), construction.deadline
    for _ in deadline.each(range(TRIES)):
        found = construction.plan(barred=barred)
        placements = carried_out(construction.instance, found, deadline)
        taken = best.offer(whole_plan(best.instance, kept, each) for each in placements)
        if taken is not None:
            return taken
        barred.update(found.bound.values())
    return False


def missing(instance: Instance, placement: Placement) -> list[Group]:
    """Groups that wait still once a placement is carried out."""
    outcome = outcome_of(instance, placement)
    return [group for group in waiting(instance) if not outcome.ready(outcome.instance.groups[group.key])]


def placeable(instance: Instance) -> Iterator[Known]:
    """Say of each priority how much is admitted at most: all groups but those that lack a resource in any case."""
    dense, never = make_dense(instance), never_admitted(instance, waiting(instance))
    for name, priority in dense.criteria:
        if name == "admitted":
            may = (group for group in dense.groups if group.priority == priority and group.key not in never)
            yield Known((Value(name, sum(group.need_weight for group in may), priority),), "counting")


def undisturbed(instance: Instance, deadline: Deadline) -> Placement:
    """The greedy's placement, which disturbs nothing."""
    dense = make_dense(instance)
    return planned(instance, dense.placement(greedy(dense, None, deadline)).node_of, ())


def carried_out(state: Instance, found: FirstPlan, deadline: Deadline) -> Iterator[Placement]:
    """Placements for a choice of who goes, to be judged: as it says, then with all but who goes left to the greedy."""
    if not found.bound:
        return
    yield planned(state, {**found.bound, **found.moved}, found.evicted)
    gone = found.evicted.union(found.moved)
    units = [frozenset(each.pods) for each in Disruption(state, Placement(evictions=tuple(sorted(gone)))).units]
    for fixed in (found.bound, {}):
        yield by_greedy(state, fixed, units, deadline)


def by_greedy(
    state: Instance, bound: Mapping[Key, str], units: Collection[frozenset[Key]], deadline: Deadline
) -> Placement:
    """Where some units go, the placement of the greedy: who finds no room is evicted, and some remain after all."""
    waits = released(state, frozenset[Key]().union(*units))
    dense = make_dense(Outcome(waits, aligned(waits, Placement.of(bound))).carried_out())
    placed = {**bound, **dense.placement(greedy(dense, None, deadline.not_before(CARRYING))).node_of}
    back = {unit for unit in units if all(placed.get(key) == state.pods[key].node for key in unit)}
    able = [unit for unit in units if state.may_move and unit not in back and unit <= placed.keys()]
    moved = _moved(able, state.most_moves)
    not_moved = frozenset[Key]().union(*units) - moved
    bound_now = {key: node for key, node in placed.items() if key not in not_moved}
    return planned(state, bound_now, not_moved.difference(*back))


def _moved(units: Iterable[frozenset[Key]], most: int | None) -> frozenset[Key]:
    found = frozenset[Key]()
    for unit in units:
        if most is None or len(found) + len(unit) <= most:
            found |= unit
    return found


def after(state: Instance, placement: Placement, disturbed: set[Key]) -> Instance:
    """The instance once a placement is carried out, in which what was evicted waits no more; what it evicts and moves
    is added to what is ``disturbed``.
    """
    outcome, moved = outcome_of(state, placement), Disruption(state, placement).gone
    disturbed |= moved
    changed = without(outcome.carried_out(), set(placement.evictions))
    pods = dict(changed.pods)
    for key in outcome.new:
        # A pod that was a group of its own is in none once it runs.
        pod = pods[key]
        group = pod.group if pod.group is not None and pod.group.api_group else None
        pods[key] = replace(pod, group=group, protected="it was placed just now")
    budgets = tuple(
        replace(each, pods=each.pods - moved, allowed=each.allowed - len(each.pods & moved)) for each in state.budgets
    )
    left = None if state.most_moves is None else state.most_moves - len(placement.moves)
    groups = {key: each for key, each in changed.groups.items() if each.pending or key.api_group}
    return replace(changed, pods=pods, groups=groups, budgets=budgets, most_moves=left)


def whole_plan(instance: Instance, first: Placement, then: Placement) -> Placement:
    """One placement for one that disturbs nothing and one that follows it."""
    if not first.bindings:
        return then
    disturbed = set[Key]()
    state = after(after(instance, first, disturbed), then, disturbed)
    return plan_to(instance, state, disturbed)


def plan_to(instance: Instance, state: Instance, disturbed: Collection[Key]) -> Placement:
    """How an instance becomes a state of it in which some pods were disturbed.

    A pod of a gang that is moved as one may be made again on the node that it was on.
    """
    bound = {
        key: pod.node or ""
        for key, pod in state.pods.items()
        if pod.state is PodState.BOUND and (key in disturbed or instance.pods[key].node != pod.node)
    }
    return planned(instance, bound, set(disturbed) - state.pods.keys())
