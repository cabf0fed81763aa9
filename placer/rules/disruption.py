"""Rules about evictions and moves: D1 units, D2 protection, D3 priority, D4 gain, D5 order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from itertools import chain

from placer.base.quantity import Resources
from placer.problem import Instance, Key, Pod, PodState
from placer.problem.disruption import Disruption, in_the_way
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement, Violation
from placer.problem.what_if import released
from placer.rules.calls import bandwidth
from placer.rules.groups import queue
from placer.rules.places import capacity
from placer.rules.rules import broken
from placer.rules.words import count_of, pod_name

DisruptionRule = Callable[[Disruption], Iterator[Violation]]


def whole_units(disruption: Disruption) -> Iterator[Violation]:
    """D1: disturbed pods go in units, each as one, all evicted or all moved.

    The amount is the number of pods that do otherwise.
    """
    times = Counter(_disturbed(disruption.placement))
    for key, count in sorted(times.items()):
        if count > 1:
            message = f"{pod_name(key)} is evicted or moved {count} times"
            yield Violation("D1", (pod_name(key),), count - 1, message)
    for unit in disruption.units:
        staying = sorted(set(unit.pods) - disruption.gone)
        moved = len(disruption.moved.keys() & set(unit.pods))
        evicted = len(unit.pods) - len(staying) - moved
        if staying:
            message = f"{unit.name} is evicted as one, but {count_of(len(staying), 'pod')} of {len(unit.pods)} remain"
            yield Violation("D1", (unit.name, pod_name(staying[0])), len(staying), message)
        if moved and evicted:
            message = f"{unit.name} goes as one, and {moved} of its pods are moved and {evicted} evicted"
            yield Violation("D1", (unit.name,), min(moved, evicted), message)


def _disturbed(placement: Placement) -> tuple[Key, ...]:
    return (*placement.evictions, *(move.pod for move in placement.moves))


def protection(disruption: Disruption) -> Iterator[Violation]:
    """D2: only pods that may be disturbed are, of queues, too."""
    yield from never_disturbed(disruption)
    yield from _kept_by_queues(disruption)


def never_disturbed(disruption: Disruption) -> Iterator[Violation]:
    """D2 but for queues: only bound, unprotected pods go, within budgets and the asked number of moves.

    The amount is the number of pods.
    """
    for key in dict.fromkeys(_disturbed(disruption.placement)):
        refusal = _refusal(disruption.instance.pods.get(key))
        if refusal:
            yield Violation("D2", (pod_name(key),), 1, f"{pod_name(key)} cannot be disturbed: {refusal}")
    for budget in disruption.instance.budgets:
        going = len(budget.pods & disruption.gone)
        if going > budget.allowed:
            subject = str(budget)
            message = f"{subject} allows {count_of(budget.allowed, 'disruption')} at once, and {going} of its pods go"
            yield Violation("D2", (subject,), going - budget.allowed, message)
    most, moves = disruption.instance.most_moves, len(disruption.moved)
    if most is not None and moves > most:
        message = f"{count_of(moves, 'pod')} are moved, and at most {most} may be"
        yield Violation("D2", ("Placement",), moves - most, message)


def _refusal(pod: Pod | None) -> str:
    if pod is None:
        return "it is not in the instance"
    if pod.state is not PodState.BOUND:
        return f"it is {pod.state.value}"
    return pod.protected


def _kept_by_queues(disruption: Disruption) -> Iterator[Violation]:
    """Pods of a queue that is not reclaimable go only for a more urgent group of it."""
    instance = disruption.instance
    for unit in disruption.units:
        held = Counter(queue for key in unit.pods if (queue := instance.keeping_queue(instance.pods[key])) is not None)
        for queue, count in sorted(held.items()):
            takes = (group for group in disruption.admitted if instance.waiting_queue(group) == queue)
            if all(group.priority <= unit.priority for group in takes):
                message = (
                    f"{unit.name} of priority {unit.priority} goes, and Queue {queue} is not reclaimable: that takes a "
                    f"group of the queue, of a higher priority, that is admitted"
                )
                yield Violation("D2", (unit.name, f"Queue {queue}"), count, message)


def priority(disruption: Disruption) -> Iterator[Violation]:
    """D3: only units of a priority below that of an admitted group are evicted, and none of a higher one moved.

    Where lost nodes are repaired any unit is moved, and none is evicted. The amount is the number of pods.
    """
    yield from _unlicensed(disruption)
    if disruption.instance.moves_only:
        return
    highest = max((group.priority for group in disruption.admitted), default=None)
    if highest is None:
        return
    for unit in disruption.units:
        moved = any(key in disruption.moved for key in unit.pods)
        if unit.priority > highest or (unit.priority == highest and not moved):
            way, least = ("moved", "no higher than") if moved else ("evicted", "below")
            message = (
                f"{unit.name} of priority {unit.priority} is {way}, which takes a priority {least} that of a group "
                f"that is admitted; the highest of these is {highest}"
            )
            yield Violation("D3", (unit.name,), len(unit.pods), message)


def _unlicensed(disruption: Disruption) -> Iterator[Violation]:
    instance = disruption.instance
    evicts = instance.may_evict and not instance.moves_only
    why = (
        "to repair lost nodes or make room units may be moved alone"
        if instance.moves_only
        else "the Policy allows none of it"
    )
    for unit in disruption.units:
        moved = not disruption.moved.keys().isdisjoint(unit.pods)
        if not (instance.may_move if moved else evicts):
            message = f"{unit.name} is {'moved' if moved else 'evicted'}, and {why}"
            yield Violation("D3", (unit.name,), len(unit.pods), message)


def gain(disruption: Disruption) -> Iterator[Violation]:
    """D4: pods are disturbed only where a group is admitted by it that could not be without, or domains emptied.

    The bindings must break a rule if everything keeps its place. The amount is the number of pods.
    """
    if disruption.placement.freed:
        yield from _emptied(disruption)
        return
    if not disruption.gone:
        return
    amount = len(disruption.gone)
    subjects = tuple(unit.name for unit in disruption.units[:1])
    if not disruption.admitted:
        message = f"{count_of(amount, 'pod')} would go, and no group that waits is admitted"
        yield Violation("D4", subjects, amount, message)
        return
    waiting = tuple(each for each in disruption.outcome.placement.bindings if each.pod not in disruption.moved)
    if not broken(Outcome(disruption.instance, Placement(waiting))):
        message = f"{count_of(amount, 'pod')} would be evicted, and all bound pods have room next to them"
        yield Violation("D4", subjects, amount, message)


def _emptied(disruption: Disruption) -> Iterator[Violation]:
    tree, freed = disruption.instance.topology, disruption.placement.freed
    found = in_the_way(disruption.instance, freed)
    for name, there in found.items():
        subject = f"HyperNode {name}"
        if name not in tree.hyper_nodes:
            yield Violation("D4", (subject,), 1, f"{subject} is to be empty, and is not in the instance")
        left = there - disruption.gone
        left |= {key for key, node in disruption.outcome.new.items() if name in tree.path(node)}
        if left:
            message = f"{subject} is to be empty, and {count_of(len(left), 'pod')} would be there"
            yield Violation("D4", (subject, pod_name(min(left))), len(left), message)
    if disruption.gone and not any(found.values()):
        amount = len(disruption.gone)
        message = f"{count_of(amount, 'pod')} would go, and all that is to be empty is so before"
        yield Violation("D4", tuple(f"HyperNode {name}" for name in freed[:1]), amount, message)


def order(disruption: Disruption) -> Iterator[Violation]:
    """D5: in each step first whole units go and then pods are bound; after every step each node, queue and link keeps
    its room, and no pod that runs on lacks its C12. The amount is the excess, or the number of pods or times.
    """
    steps = disruption.placement.steps
    goes = [(key, number) for number, step in enumerate(steps, 1) for key in step.go]
    comes = [(key, number) for number, step in enumerate(steps, 1) for key in step.bind]
    yield from _once_each("goes", goes, disruption.gone)
    yield from _once_each("is bound", comes, disruption.outcome.placement.node_of.keys())
    went = dict(reversed(goes))
    yield from _too_early(disruption, went, dict(reversed(comes)))
    for unit in disruption.units:
        times = Counter(went[key] for key in unit.pods if key in went)
        late = times.total() - times[min(times, default=0)]
        if late:
            message = f"{unit.name} goes as one, and {count_of(late, 'pod')} of it in a later step than the others"
            yield Violation("D5", (unit.name,), late, message)
    if not _keeps_room(disruption):
        yield from _moments(disruption)


def _keeps_room(disruption: Disruption) -> bool:
    """Whether only room on nodes is asked, and all have it: plans have hundreds of steps."""
    instance = disruption.instance
    near = any(pod.host_ports or pod.neighbours.affinity for pod in instance.pods.values())
    return not (near or instance.network is not None or _limited(instance)) and _has_room(disruption)


def _has_room(disruption: Disruption) -> bool:
    instance, nodes = disruption.instance, disruption.outcome.new
    homes = {key: instance.pods[key].node or "" for key in disruption.gone}
    free = {
        name: Counter(instance.nodes[name].allocatable - instance.held.get(name, Resources()))
        for name in instance.nodes.keys() & {*nodes.values(), *homes.values()}
    }
    for step in disruption.placement.steps:
        for key in homes.keys() & step.go:
            free.get(homes.pop(key), Counter[str]()).update(instance.pods[key].requests)
        bound = nodes.keys() & step.bind
        for key in bound:
            free[nodes[key]].subtract(instance.pods[key].requests)
        if any(free[nodes[key]][each] < 0 for key in bound for each in instance.pods[key].requests):
            return False
    return True


def _once_each(what: str, stands: list[tuple[Key, int]], wanted: Collection[Key]) -> Iterator[Violation]:
    times = Counter(key for key, _ in stands)
    for key in sorted({*times, *wanted}):
        due = int(key in wanted)
        if times[key] != due:
            message = f"{pod_name(key)} {what} {count_of(times[key], 'time')} in the steps, and {due} times in all"
            yield Violation("D5", (pod_name(key),), abs(times[key] - due), message)


def _moments(disruption: Disruption) -> Iterator[Violation]:
    """Other rules report breaches by bound pods in the end."""
    steps, nodes = disruption.placement.steps, disruption.outcome.new
    instance = _touched(disruption)
    told = without_affinity(Outcome(instance, Placement()))
    gone: set[Key] = set()
    bound: dict[Key, str] = {}
    for number, step in enumerate(steps, 1):
        gone |= disruption.gone.intersection(step.go)
        free = nodes.keys() - (disruption.moved.keys() - gone)
        bound.update((key, nodes[key]) for key in step.bind if key in free)
        outcome = Outcome(released(instance, gone), Placement.of(bound))
        for each in chain(capacity(outcome), queue(outcome), bandwidth(outcome)) if number < len(steps) else ():
            yield Violation("D5", each.subjects, each.amount, f"after step {number}: {each.message}")
        alone = without_affinity(outcome) - told - bound.keys()
        for key in sorted(alone):
            message = f"after step {number}: no pod is left in the domain of {pod_name(key)} that its affinity asks for"
            yield Violation("D5", (pod_name(key),), 1, message)
        told |= alone


def _touched(disruption: Disruption) -> Instance:
    """The instance without pods that no moment concerns: most of a large cluster, where rules look at single nodes."""
    instance, new = disruption.instance, disruption.outcome.new
    pods = instance.pods
    if any(pod.neighbours.affinity for pod in pods.values()):
        return instance
    nodes, disturbed, limited = set(new.values()), {*disruption.gone, *new}, _limited(instance)
    calls = instance.network is not None
    kept = {
        key: pod
        for key, pod in pods.items()
        if pod.node in nodes or key in disturbed or pod.queue in limited or (calls and pod.app_group is not None)
    }
    return replace(instance, pods=kept)


def _limited(instance: Instance) -> set[str | None]:
    queues = instance.queues
    return {name for name in queues if any(queues[up].capability for up in instance.queue_path(name))}


def without_affinity(outcome: Outcome) -> set[Key]:
    """Running pods in whose domain no pod matches all terms of their pod affinity (C12)."""
    return {key for _, alone in outcome.unattracted() for key in alone}


DISRUPTION_RULES: tuple[tuple[str, DisruptionRule], ...] = (
    ("D1", whole_units),
    ("D2", protection),
    ("D3", priority),
    ("D4", gain),
    ("D5", order),
)


def _too_early(disruption: Disruption, went: Mapping[Key, int], came: Mapping[Key, int]) -> Iterator[Violation]:
    for key in sorted(disruption.moved.keys() & went.keys() & came.keys()):
        if came[key] < went[key]:
            message = f"{pod_name(key)} is bound in step {came[key]} and goes only in step {went[key]}"
            yield Violation("D5", (pod_name(key),), 1, message)
