"""From a solution of an instance in which all that may be disturbed waits to evictions, moves and steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from placer.arrays import Solution
from placer.arrays.dense_builder import make_dense
from placer.problem import Instance, Key, PodState
from placer.problem.disruption import Disruption
from placer.problem.placement import Binding, Placement, Step
from placer.rules.disruption import order
from placer.rules.neighbour_rules import pod_affinity
from placer.search.numa.binding_order import aligned
from placer.search.preempt.lifting import MOVED, Lifted, moved_key


def plan_of(lifted: Lifted, solution: Solution) -> Placement:
    """Name what goes and what is bound: of equal pods the younger ones go."""
    targets = lifted.dense.placement(solution).node_of
    pods = lifted.before.pods
    staying = {key for key in lifted.pods if key in targets or lifted.idle.get(key) in targets}
    gone = sorted(set(lifted.pods) - staying, key=lambda key: (pods[key].created, key))
    moved = dict(_renamed(lifted, targets, gone))
    waiting = {key: node for key, node in targets.items() if key in pods and pods[key].state is PodState.PENDING}
    return planned(lifted.before, {**waiting, **moved}, [key for key in gone if key not in moved])


def _renamed(lifted: Lifted, targets: Mapping[Key, str], gone: Iterable[Key]) -> Iterator[tuple[Key, str]]:
    class_of = lifted.dense.class_of
    places: dict[int, list[str]] = defaultdict(list)
    for key, node in targets.items():
        if key.name.endswith(MOVED):
            places[class_of[key]].append(node)
    for key in gone:
        there = places.get(class_of.get(moved_key(key), -1))
        if there:
            home = lifted.before.pods[key].node
            node = next((each for each in there if each != home), there[0])
            there.remove(node)
            yield key, node


def planned(instance: Instance, bound: Mapping[Key, str], evicted: Iterable[Key]) -> Placement:
    """Make a placement that disturbs: zones and order where kubelets align pods, and steps.

    ``bound``: pending pods and those that are moved, to their nodes, in an order in which each is admitted.
    """
    running = {key for key in bound if instance.pods[key].node is not None}
    draft = Placement(
        evictions=tuple(sorted(evicted)), moves=tuple(Binding(key, bound[key]) for key in sorted(running))
    )
    if not draft.disturbs:
        return aligned(instance, Placement.of(bound))
    released = Disruption(instance, draft).released
    whole = aligned(released, _in_order(released, bound))
    placement = replace(
        whole,
        bindings=tuple(each for each in whole.bindings if each.pod not in running),
        evictions=draft.evictions,
        moves=tuple(each for each in whole.bindings if each.pod in running),
    )
    return _in_steps(instance, placement, [each.pod for each in whole.bindings])


def _in_order(released: Instance, bound: Mapping[Key, str]) -> Placement:
    placement = Placement.of(bound)
    if not any(released.pods[key].neighbours.affinity for key in bound):
        return placement
    dense = make_dense(released)
    return dense.placement(dense.solution(placement))


def _in_steps(instance: Instance, placement: Placement, plan: Sequence[Key]) -> Placement:
    """What is evicted goes first; then unit after unit is moved, where each has room at once and what follows is
    admitted beside it, else all in one step.
    """
    moved = {move.pod for move in placement.moves}
    one = replace(placement, steps=(Step((*placement.evictions, *sorted(moved)), tuple(plan)),))
    units = [unit.pods for unit in Disruption(instance, placement).units if moved.issuperset(unit.pods)]
    if not units:
        return one
    last = Step((), _in_plan(plan, set(plan) - moved))
    steps = [Step(placement.evictions), *(Step(pods, _in_plan(plan, pods)) for pods in units), last]
    several = replace(placement, steps=tuple(step for step in steps if step.go or step.bind))
    disruption = Disruption(instance, several)
    return one if any(chain(order(disruption), pod_affinity(disruption.outcome))) else several


def _in_plan(plan: Sequence[Key], pods: Collection[Key]) -> tuple[Key, ...]:
    return tuple(key for key in plan if key in pods)
