"""Domains of a tier that are to be empty: which, and where what runs there goes, the least of it.

What has to be moved for a domain is all that runs there, with what goes with it (D1). A pod that goes for several
domains is shared between them, so that no choice of K domains moves less than the K smallest shares together, with
which choices are tried, cheapest first. Where everything is small the exact model decides: a domain is emptied there by
a pod that asks for nothing and keeps off all others in its domain (C13).
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, islice
from typing import NamedTuple

from placer.arrays.dense_builder import make_dense
from placer.base.deadline import Deadline
from placer.base.quantity import Resources
from placer.problem import Group, GroupKey, Instance, Key, Node, Pod, PodState
from placer.problem.disruption import Disruption, in_the_way
from placer.problem.neighbours import AffinityTerm, Neighbours, PodSelector
from placer.problem.nodes import Constraints, Requirement, Taint, Toleration
from placer.problem.placement import FREED, Placement, Score, Value, better
from placer.problem.what_if import groups_alone, released
from placer.rules import verify
from placer.rules.scoring import score
from placer.search.events import Event, Improved, SearchOptions
from placer.search.exact import disturbing
from placer.search.exact.method import MOST_VARIABLES
from placer.search.greedy.multi_start import greedy
from placer.search.preempt.first_plan import Carried, Known
from placer.search.preempt.lifting import lift, may_be_disturbed, on_nodes
from placer.search.preempt.plans import plan_of, planned

#: Choices of domains that are tried for one number of them.
MOST_CHOICES = 1000
#: The same for the first placement.
TRIES = 20
#: Label of the nodes of a domain; label of pods that keep no domain from being empty.
_DOMAIN, _STAYS = "placer.dev/domain", "placer.dev/stays"


class _Domain(NamedTuple):
    """What has to go, ``pods``, and the domain's shares of it."""

    weight: Fraction
    units: Fraction
    name: str
    moves: Fraction
    pods: frozenset[Key]


def empty(
    instance: Instance,
    first: Placement | None,
    tier: int,
    count: int,
    options: SearchOptions,
    emit: Callable[[Carried | Known], None],
) -> str:
    """Look for the placement that empties so many HyperNodes of a tier, empty ones included, and moves least.

    ``instance``: nothing waits in it, and nothing may be evicted. ``first``, ``emit`` and the result are as of
    :func:`placer.search.preempt.method.search`.
    """
    return _Emptying(instance, first, tier, count, options, emit).run()


def first_emptied(instance: Instance, tier: int, count: int, deadline: Deadline) -> list[Carried | Known]:
    """Give the placement for the cheapest domains out of which all finds room, without any process of its own."""
    found = list[Carried | Known]()
    _Emptying(instance, None, tier, count, SearchOptions(deadline), found.append).first()
    return found


class _Emptying:
    def __init__(
        self,
        instance: Instance,
        first: Placement | None,
        tier: int,
        count: int,
        options: SearchOptions,
        emit: Callable[[Carried | Known], None],
    ) -> None:
        self.instance, self.tier, self.count, self.options, self.emit = instance, tier, count, options, emit
        self.deadline = options.deadline
        self.best = None if first is None else (score(instance, first, disturbing=True), first)

    def first(self) -> None:
        domains = self._ranked()
        choices = _choices([domain.weight for domain in domains], self.count)
        for _, choice in self.deadline.each(islice(choices, TRIES if self.count <= len(domains) else 0)):
            self._tried([domains[index] for index in choice])
            if self.best is not None:
                return

    def run(self) -> str:
        domains = self._ranked()
        most = self._most(domains)
        if most < self.count:
            self.emit(Known((Value(FREED, most),), "counting"))
        bound: Score = ()
        for count in range(most, 0, -1):
            bound = self._cheapest_first(domains, count)
            if self.best is not None or self.deadline.over:
                break
        if not self._proves(bound):
            self._whole()
        return "time" if self.deadline.over else "finished"

    def _proves(self, bound: Score) -> bool:
        if self.best is None or len(self.best[1].freed) < self.count:
            return False
        self.emit(Known(bound, "domains"))
        return bound == tuple(value for value in self.best[0] if value.name in ("moved", "movedUnits"))

    def offer(self, placement: Placement, by: str) -> None:
        values = score(self.instance, placement, disturbing=True)
        if self.best is not None:
            more = len(placement.freed) - len(self.best[1].freed)
            if more < 0 or (more == 0 and not better(values, self.best[0])):
                return
        if not verify(self.instance, placement):
            self.best = values, placement
            self.emit(Carried(placement, by))

    # Domains

    @cached_property
    def candidates(self) -> frozenset[Key]:
        return frozenset(may_be_disturbed(self.instance, 0))

    @cached_property
    def weights(self) -> dict[Key, int]:
        return self.instance.weights_of(self.instance.pods[key] for key in self.candidates)

    def _ranked(self) -> list[_Domain]:
        tree = self.instance.topology
        there = in_the_way(self.instance, (name for name in tree.hyper_nodes if tree.tier(name) == self.tier))
        going = {name: _with_units(self.instance, pods) for name, pods in there.items()}
        domains = {name: pods for name, pods in going.items() if pods <= self.candidates}
        times = Counter(chain.from_iterable(domains.values()))
        owners = Counter(owner for pods in domains.values() for owner in self._owners(pods))
        return sorted(self._shared(name, pods, times, owners) for name, pods in domains.items())

    def _shared(self, name: str, pods: frozenset[Key], times: Counter[Key], owners: Counter[object]) -> _Domain:
        weight = _sum((self.weights[key], times[key]) for key in pods)
        units = _sum((1, owners[owner]) for owner in self._owners(pods))
        return _Domain(weight, units, name, _sum((1, times[key]) for key in pods), pods)

    def _owners(self, pods: Collection[Key]) -> set[object]:
        """Groups that go in one unit at least, and pods of none."""
        return {self.instance.pods[key].group or key for key in pods}

    def _most(self, domains: Sequence[_Domain]) -> int:
        limit, total = self.instance.most_moves, Fraction(0)
        for number, moves in enumerate(sorted(domain.moves for domain in domains)):
            total += moves
            if number == self.count or (limit is not None and total > limit):
                return number
        return min(self.count, len(domains))

    # Choices

    def _cheapest_first(self, domains: Sequence[_Domain], count: int) -> Score:
        least = math.inf
        choices = _choices([domain.weight for domain in domains], count)
        for number, (total, choice) in enumerate(choices):
            bound = math.ceil(total)
            if bound >= self._reached or number == MOST_CHOICES or self.deadline.over:
                least = min(least, bound)
                break
            least = min(least, self._tried([domains[index] for index in choice]))
        moved = min(least, self._reached)
        if moved < math.inf:
            return _least(domains, count, int(moved))
        self.emit(Known((Value(FREED, count - 1),), "counting"))
        return ()

    def _tried(self, chosen: Sequence[_Domain]) -> float:
        pods = _with_units(self.instance, frozenset[Key]().union(*(each.pods for each in chosen)))
        if not pods <= self.candidates:
            return math.inf
        weight = sum(self.weights[key] for key in pods)
        decided = weight >= self._reached or self._emptied(sorted(each.name for each in chosen), pods)
        return math.inf if decided else weight

    @property
    def _reached(self) -> float:
        if self.best is None:
            return math.inf
        return next(value.value for value in self.best[0] if value.name == "moved")

    def _emptied(self, names: Sequence[str], pods: frozenset[Key]) -> bool:
        if not self._has_room(names, pods):
            return True
        gone = released(self.instance, pods)
        closed = {name for name in gone.nodes if set(gone.topology.path(name)).intersection(names)}
        nodes = {name: replace(node, ready=node.ready and name not in closed) for name, node in gone.nodes.items()}
        dense = make_dense(replace(gone, nodes=nodes))
        there = dense.placement(greedy(dense, None, self.deadline)).node_of if pods else {}
        if there.keys() < pods:
            return False
        before = self._reached
        self.offer(replace(planned(self.instance, there, ()), freed=tuple(names)), "greedy")
        return self._reached < before

    def _has_room(self, names: Collection[str], pods: Collection[Key]) -> bool:
        path, left = self.instance.topology.path, Counter[str]()
        outside = {name for name in self.instance.nodes if not set(path(name)).intersection(names)}
        for name in outside:
            left.update(self._free[name])
        coming = [self.instance.pods[key].requests for key in pods if self.instance.pods[key].node not in outside]
        for requests in coming:
            left.subtract(requests)
        return all(left[resource] >= 0 for requests in coming for resource in requests)

    @cached_property
    def _free(self) -> dict[str, dict[str, int]]:
        held, nothing = self.instance.held, Resources()
        return {name: _left(node.allocatable, held.get(name, nothing)) for name, node in self.instance.nodes.items()}

    # The whole model

    def _whole(self) -> None:
        groups = {self.instance.pods[key].group for key in self.candidates}
        if len(groups) * len(self.instance.nodes) > MOST_VARIABLES // 8 or self.deadline.over:
            return  # a pod that keeps off all others takes rows for each of them
        instance = emptied_by_pods(self.instance, self.tier, self.count)
        lifted = lift(instance, sorted(self.candidates))
        if lifted.dense.criteria[0][0] != "admitted":
            return  # nothing says there that more domains are better
        events: list[Event] = []
        disturbing.search(replace(lifted, last="movedUnits"), self.options, events.append)
        for event in events:
            if isinstance(event, Improved):
                placement = plan_of(lifted, event.solution)
                self.offer(_freeing(instance, placement, self.tier), "exact")
            elif event.criterion is not None:
                self._hear(lifted.dense.criteria, (*event.context, event.bound))

    def _hear(self, criteria: Sequence[tuple[str, int | None]], bounds: Sequence[int]) -> None:
        values = [Value(name, bound) for (name, _), bound in zip(criteria, bounds, strict=False)]
        if len(values) == 1:
            self.emit(Known((Value(FREED, values[0].value),), "exact"))
        elif values[0].value == self.count:
            moved = tuple(value for value in values if value.name in ("moved", "movedUnits"))
            if moved:
                self.emit(Known(moved, "exact"))


def _least(domains: Sequence[_Domain], count: int, moved: int) -> Score:
    first, none = domains[:count], Fraction(0)
    # Only a choice that weighs as little can move as little.
    cheapest = sum((each.weight for each in first), none) == moved
    units = (each.units for each in first) if cheapest else sorted(each.units for each in domains)[:count]
    return Value("moved", moved), Value("movedUnits", math.ceil(sum(units, none)))


def _choices(shares: Sequence[Fraction], count: int) -> Iterator[tuple[Fraction, tuple[int, ...]]]:
    first = tuple(range(count))
    queue = [(sum(shares[:count], Fraction(0)), first)]
    seen = {first}
    while queue:
        total, choice = heapq.heappop(queue)
        yield total, choice
        for place, index in enumerate(choice):
            after = choice[place + 1] if place + 1 < count else len(shares)
            if index + 1 < after:
                other = (*choice[:place], index + 1, *choice[place + 1 :])
                if other not in seen:
                    seen.add(other)
                    heapq.heappush(queue, (total - shares[index] + shares[index + 1], other))


def _left(allocatable: Resources, held: Resources) -> dict[str, int]:
    return {resource: max(0, amount - held[resource]) for resource, amount in allocatable.items()}


def _sum(shares: Iterable[tuple[int, int]]) -> Fraction:
    by_divisor = Counter[int]()
    for amount, divisor in shares:
        by_divisor[divisor] += amount
    return sum((Fraction(amount, divisor) for divisor, amount in by_divisor.items()), Fraction(0))


def _with_units(instance: Instance, pods: Collection[Key]) -> frozenset[Key]:
    lone = frozenset(key for key in pods if instance.pods[key].group is None)
    going, wider = frozenset[Key](), frozenset(pods) - lone
    while wider != going:
        going = wider
        alone = groups_alone(instance, going)
        bound = tuple(key for key in going if instance.pods[key].state is PodState.BOUND)
        units = Disruption(alone, Placement(evictions=bound)).units
        wider = going.union(*(unit.pods for unit in units))
    return going | lone


def emptied_by_pods(instance: Instance, tier: int, count: int) -> Instance:
    """Give the instance in which so many pods wait, each in a domain of a tier that is empty but for it.

    Nodes have labels in it by which domains are told apart, DaemonSet and terminating pods one by which those are who
    need not go. A domain in which room is held for somebody cannot be empty. One of which no node takes pods can: there
    a node does that has a taint, which the waiting pods alone tolerate.
    """
    domain_of, nodes = _domain_of(instance, tier), dict(instance.nodes)
    for name, domain in domain_of.items():
        nodes[name] = replace(nodes[name], labels={**nodes[name].labels, _DOMAIN: domain})
    doors = _doors(instance, domain_of)
    nodes |= {name: _opened(nodes[name]) for name in doors}
    pods = {
        key: replace(pod, labels={**pod.labels, _STAYS: "true"}) if _stays(pod) else pod
        for key, pod in instance.pods.items()
    }
    nobody = PodSelector((), (), (Requirement(_STAYS, "DoesNotExist"),))
    alone = Neighbours(anti_affinity=(AffinityTerm(_DOMAIN, nobody),))
    where, groups = on_nodes(doors, Constraints((Toleration(operator="Exists"),))), dict(instance.groups)
    for number in range(count):
        key = Key("", f"empty-{number}")
        group = GroupKey("", *key)
        pods[key] = Pod(*key, PodState.PENDING, Resources(), where, group=group, neighbours=alone)
        groups[group] = Group(group, min_member=1, pending=(key,))
    return replace(instance, nodes=nodes, pods=dict(sorted(pods.items())), groups=dict(sorted(groups.items())))


def _domain_of(instance: Instance, tier: int) -> dict[str, str]:
    tree = instance.topology
    return {name: domain for name in instance.nodes for domain in tree.path(name) if tree.tier(domain) == tier}


def _doors(instance: Instance, domain_of: Mapping[str, str]) -> list[str]:
    held = (pod.node or "" for pod in instance.pods.values() if pod.state is PodState.NOMINATED)
    closed = {domain_of.get(node) for node in held}
    ready_last = sorted(domain_of, key=lambda name: (_takes_pods(instance.nodes[name]), name))
    doors = {domain_of[name]: name for name in ready_last if domain_of[name] not in closed}
    return sorted(doors.values())


def _takes_pods(node: Node) -> bool:
    return node.ready and not node.unschedulable


def _opened(node: Node) -> Node:
    taints = (*node.taints, Taint(_DOMAIN, "", "NoSchedule"))
    return node if _takes_pods(node) else replace(node, ready=True, unschedulable=False, taints=taints)


def _stays(pod: Pod) -> bool:
    return pod.daemon or pod.state is PodState.TERMINATING


def _freeing(instance: Instance, placement: Placement, tier: int) -> Placement:
    tree = instance.topology
    freed = {name for node in placement.node_of.values() for name in tree.path(node) if tree.tier(name) == tier}
    waiting = set(placement.node_of)
    steps = [replace(step, bind=tuple(key for key in step.bind if key not in waiting)) for step in placement.steps]
    kept = tuple(step for step in steps if step.go or step.bind)
    return replace(placement, bindings=(), freed=tuple(sorted(freed)), steps=kept)
