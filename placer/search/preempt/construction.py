"""A first plan by construction: the cheapest domain of each group, cheapest units first, receivers by best fit.

Who is bound, who goes and where it goes is chosen on arrays, without a search and without a solver. Only room,
eligibility, tiers, labels in common and budgets are looked at: who carries a plan out asks ``verify``.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count
from operator import add, sub
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from placer.arrays.amounts import SAFE, NodeAmounts, Scale
from placer.arrays.dense_builder import make_dense
from placer.arrays.eligibility import Eligibility
from placer.base.deadline import NEVER, Deadline
from placer.base.grouping import grouped
from placer.base.quantity import Resources
from placer.problem import Constraints, Group, Instance, Key, Pod
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement
from placer.search.preempt.domain_sets import alike, group_domains, index_of
from placer.search.preempt.lifting import goes_whole, may_be_disturbed

#: Scaled amounts of resources, one each.
_Amounts = list[int]
#: What goes: weight and number of units, per priority where they are evicted, highest first.
_Loss = tuple[int, ...]
#: Domains that are tried for one group, and rounds in which what finds no receiver stays.
MOST_DOMAINS, ROUNDS = 24, 6
_NONE: Mapping[int, int] = {}
_NOBODY = frozenset[str | None]()


class FirstPlan(NamedTuple):
    """Who is bound, moved and evicted; of a group for which nothing was found no pod is bound."""

    bound: Mapping[Key, str]
    moved: Mapping[Key, str]
    evicted: frozenset[Key]


class _Disturbed(NamedTuple):
    """Bound pods that go together.

    ``there``: node to what it holds there; ``budgets``: budget to how many of its pods that counts; ``queues``: those
    that are not reclaimable; ``movable``: whether it may be bound again.
    """

    number: int
    priority: int
    pods: tuple[Key, ...]
    loss: _Loss
    there: Mapping[int, _Amounts]
    budgets: Mapping[int, int]
    queues: frozenset[str | None]
    movable: bool


class _Choice(NamedTuple):
    loss: _Loss
    bound: Mapping[Key, int]
    units: tuple[_Disturbed, ...]


class Construction:
    """Chooses who goes for groups that wait, and where it goes; they are served in their order, and nothing else is.

    ``moving``: domains are ranked by what is moved; else by what is evicted where nothing finds a receiver.
    """

    def __init__(
        self, instance: Instance, groups: Sequence[Group], *, moving: bool, deadline: Deadline = NEVER
    ) -> None:
        self.instance, self.groups, self.moving, self.deadline = instance, groups, moving, deadline
        self.dense = make_dense(instance)
        self.node_index = self.dense.node_index
        highest = max((group.priority for group in groups), default=0)
        self.candidates = frozenset(
            key for key in may_be_disturbed(instance, highest) if instance.pods[key].node in self.node_index
        )
        self.amounts = NodeAmounts(instance)
        self.pods_in_turn = [self._needed(group) for group in groups]
        self.scale = self._scaled()
        self.start = self._room()
        self.eligibility = Eligibility([instance.nodes[name] for name in self.dense.nodes])
        self.able: dict[Constraints, npt.NDArray[np.bool_]] = {}
        self.requests: dict[Resources, tuple[_Amounts, int]] = {}
        self.losses: dict[tuple[int, int], _Loss] = {}
        self.closed: dict[tuple[str, str], bool] = {}
        self.waits_in = {group.key: instance.waiting_queue(group) for group in groups}
        self.left = [budget.allowed for budget in instance.budgets]
        self.units = [*self._units()]

    def _scaled(self) -> Scale:
        pods, nodes = self.instance.pods, self.instance.nodes
        asked = Counter(self.amounts.asked(pods[key]) for key in self.candidates)
        asked.update(self.amounts.asked(pods[key]) for keys in self.pods_in_turn for key in keys)
        return Scale(asked.elements(), [nodes[name].allocatable for name in self.dense.nodes])

    def _room(self) -> npt.NDArray[np.int64]:
        rooms = [self.amounts.left(name) for name in self.dense.nodes]
        scale = [*zip(self.scale.resources, self.scale.divisors, strict=True)]
        scaled = [[max(-SAFE, min(room[name] // by, SAFE)) for name, by in scale] for room in rooms]
        return np.array(scaled, dtype=np.int64).reshape(len(rooms), len(scale))

    def plan(self, kept: Collection[Key] = (), barred: Collection[str] = ()) -> FirstPlan:
        """Choose, where some pods do not go and what waits gets none of some nodes.

        What can be neither moved nor evicted does not go in the next round.
        """
        keys = frozenset(kept)
        self.open = np.array([name not in barred for name in self.dense.nodes], dtype=bool)
        self.stay = {unit.number for unit in self.units if kept and not keys.isdisjoint(unit.pods)}
        best = FirstPlan({}, {}, frozenset())
        for _ in range(ROUNDS):
            found, stuck = _Round(self).run()
            if len(found.bound) > len(best.bound):
                best = found
            if not stuck or self.deadline.over:
                break
            self.stay |= stuck
        return best

    def asked(self, pod: Pod) -> _Amounts:
        """Scaled amounts that a pod takes of its node."""
        return self._asked_and_weight(pod)[0]

    def _asked_and_weight(self, pod: Pod) -> tuple[_Amounts, int]:
        found = self.requests.get(pod.requests)
        if found is None:
            amounts = self.scale.request(self.amounts.asked(pod)).tolist()
            found = self.requests[pod.requests] = amounts, *self.instance.weights_of([pod]).values()
        return found

    def admitting(self, pod: Pod) -> npt.NDArray[np.bool_]:
        """bool, shape (nodes,): where a pod may be (C3)."""
        if pod.constraints not in self.able:
            self.able[pod.constraints] = self.eligibility.row(pod.constraints)
        return self.able[pod.constraints]

    def _needed(self, group: Group) -> list[Key]:
        weights = self.instance.weights
        pods = sorted(group.pending, key=lambda key: (weights[key], key))
        if not group.min_task_member and not group.sub_groups:
            pods = pods[: group.need]
        return pods[::-1]

    # Units

    @cached_property
    def _priorities(self) -> tuple[int, ...]:
        pods = self.instance.pods
        return tuple(sorted({pods[key].unit_priority for key in self.candidates}, reverse=True))

    @cached_property
    def nothing(self) -> _Loss:
        """The loss where nothing goes."""
        return (0, 0) if self.moving else (0,) * (2 * len(self._priorities))

    def _units(self) -> Iterator[_Disturbed]:
        counting, numbers, standing = self._budgets_of_pods(), count(), Outcome(self.instance, Placement())
        for together, group, spare in self._together(standing):
            if spare is not None:  # what a gang can spare is a budget of its own
                self.left.append(spare)
            ready = group is None or standing.ready(group)
            for keys in together:
                budgets: Mapping[int, int] = _NONE
                if spare is not None or not counting.keys().isdisjoint(keys):
                    budgets = Counter(each for key in keys for each in counting.get(key, ()))
                    budgets |= Counter({len(self.left) - 1: len(keys)} if spare is not None else {})
                yield self._unit(next(numbers), keys, budgets, ready)

    def _budgets_of_pods(self) -> dict[Key, list[int]]:
        found: dict[Key, list[int]] = defaultdict(list)
        for number, budget in enumerate(self.instance.budgets):
            for key in budget.pods:
                found[key].append(number)
        return found

    def _together(self, standing: Outcome) -> Iterator[tuple[Iterable[tuple[Key, ...]], Group | None, int | None]]:
        pods = self.instance.pods
        for name, keys in grouped(sorted(self.candidates), lambda key: pods[key].group).items():
            group = None if name is None else self.instance.groups.get(name)
            if group is None:
                yield ((key,) for key in keys), None, None
            elif _has_parts(group) or not standing.ready(group):
                yield [group.bound] if self.candidates.issuperset(group.bound) else [], group, None
            else:
                yield ((key,) for key in keys), group, group.placed_before - group.min_member

    def _unit(self, number: int, keys: tuple[Key, ...], budgets: Mapping[int, int], ready: bool) -> _Disturbed:
        there: dict[int, _Amounts] = {}
        queues, weight, movable = _NOBODY, 0, ready
        pods = [self.instance.pods[key] for key in keys]
        for pod in pods:
            node, (amounts, own) = self.node_index[pod.node or ""], self._asked_and_weight(pod)
            there[node] = [*map(add, there[node], amounts)] if node in there else amounts
            weight += own
            movable = movable and not pod.unsupported
            if pod.queue is not None:
                keeping = self.instance.keeping_queue(pod)
                queues |= {keeping} - {None}
                movable = movable and not self._is_closed(pod.queue, pod.namespace)
        priority = max(pod.unit_priority for pod in pods)
        return _Disturbed(number, priority, keys, self._loss(priority, weight), there, budgets, queues, movable)

    def _loss(self, priority: int, weight: int) -> _Loss:
        if (priority, weight) not in self.losses:
            at = 0 if self.moving else 2 * self._priorities.index(priority)
            self.losses[priority, weight] = (*self.nothing[:at], weight, 1, *self.nothing[at + 2 :])
        return self.losses[priority, weight]

    def _is_closed(self, queue: str, namespace: str) -> bool:
        if (queue, namespace) not in self.closed:
            self.closed[queue, namespace] = self.instance.closed_queue(queue, namespace) is not None
        return self.closed[queue, namespace]


class _Round:
    def __init__(self, whole: Construction) -> None:
        self.whole, self.instance = whole, whole.instance
        self.free: list[_Amounts] = whole.start.tolist()
        self.left = list(whole.left)
        self.on: dict[int, list[_Disturbed]] = defaultdict(list)
        for unit in sorted(whole.units, key=lambda each: each.loss):
            if unit.number not in whole.stay:
                for node in unit.there:
                    self.on[node].append(unit)
        self.gone: dict[int, _Disturbed] = {}
        self.for_group: dict[int, int] = {}
        #: What was found for a pod on a node is true as long as nothing has changed there.
        self.changes: Counter[int] = Counter()
        self.found: dict[object, tuple[int, tuple[_Loss, tuple[_Disturbed, ...]] | None]] = {}
        self.rankings: dict[object, _Ranking] = {}

    def run(self) -> tuple[FirstPlan, set[int]]:
        """The plan, and the numbers of the units that could go nowhere."""
        bound = list[Mapping[Key, int]]()
        for number, group in enumerate(self.whole.groups):
            choice = self._cheapest(group, self.whole.pods_in_turn[number])
            bound.append({} if choice is None else choice.bound)
            if choice is not None:
                self._take(choice, number)
        for unit in sorted(self.gone.values(), key=lambda each: each.loss, reverse=True):
            if all(_fits(amounts, self.free[node]) for node, amounts in unit.there.items()):
                self._stay(unit)
        return self._without_stuck(bound, *self._received())

    def _without_stuck(
        self, bound: Iterable[Mapping[Key, int]], moved: Mapping[Key, int], evicted: set[Key], stuck: set[int]
    ) -> tuple[FirstPlan, set[int]]:
        without = {self.for_group[number] for number in stuck}
        nodes = self.whole.dense.nodes
        placed = {
            key: nodes[at] for number, each in enumerate(bound) for key, at in each.items() if number not in without
        }
        going = {
            key for number, unit in self.gone.items() if self.for_group[number] not in without for key in unit.pods
        }
        moves = {key: nodes[at] for key, at in moved.items() if key in going}
        return FirstPlan(placed, moves, frozenset(evicted & going)), stuck

    def _take(self, choice: _Choice, number: int) -> None:
        for unit in choice.units:
            self.gone[unit.number] = unit
            self.for_group[unit.number] = number
            self._change(unit.there, add)
            for budget, pods in unit.budgets.items():
                self.left[budget] -= pods
        for key, node in choice.bound.items():
            self._change({node: self.whole.asked(self.instance.pods[key])}, sub)

    def _stay(self, unit: _Disturbed) -> None:
        del self.gone[unit.number]
        self._change(unit.there, sub)

    def _change(self, there: Mapping[int, _Amounts], how: Callable[[int, int], int]) -> None:
        for node, amounts in there.items():
            self.free[node] = [*map(how, self.free[node], amounts)]
            self.changes[node] += 1

    # One group

    def _cheapest(self, group: Group, pods: Sequence[Key]) -> _Choice | None:
        index = index_of(self.whole.dense, group.key)
        if index is None or not self.whole.dense.class_of.keys() >= set(pods):
            return None
        best: _Choice | None = None
        for estimate, nodes in self._ranking(group, index).ranked(group, pods)[:MOST_DOMAINS]:
            if best is not None and (estimate >= best.loss or self.whole.deadline.over):
                break
            choice = _InDomain(self, group, nodes).choice(pods, best)
            if choice is not None and (best is None or choice.loss < best.loss):
                best = choice
        return best

    def _ranking(self, group: Group, index: int) -> _Ranking:
        kind = alike(self.instance, group)
        if kind not in self.rankings:
            names = group_domains(self.instance, self.whole.dense, index)
            self.rankings[kind] = _Ranking(self, [[self.whole.node_index[name] for name in each] for each in names])
        return self.rankings[kind]

    def may_go(self, unit: _Disturbed, group: Group, going: Mapping[int, _Disturbed]) -> bool:
        if unit.number in self.gone or unit.number in going or not self._licensed(unit, group):
            return False
        if unit.queues and unit.queues != {self.whole.waits_in[group.key]}:
            return False
        if not unit.budgets:
            return True
        taken = Counter[int]()
        for each in going.values():
            taken.update(each.budgets)
        return all(self.left[budget] - taken[budget] >= count for budget, count in unit.budgets.items())

    def _licensed(self, unit: _Disturbed, group: Group) -> bool:
        return self._may_be_evicted(unit, group) or (self.whole.moving and self._may_be_moved(unit, group))

    def _may_be_evicted(self, unit: _Disturbed, group: Group) -> bool:
        instance = self.instance
        return instance.may_evict and not instance.moves_only and unit.priority < group.priority

    def _may_be_moved(self, unit: _Disturbed, group: Group) -> bool:
        instance = self.instance
        return unit.movable and instance.may_move and (instance.moves_only or unit.priority <= group.priority)

    def on_node(self, node: int, needs: _Amounts, group: Group) -> tuple[_Loss, tuple[_Disturbed, ...]] | None:
        """What goes on a node for a pod of a group; None: not enough may."""
        asked = node, tuple(needs), group.priority, self.whole.waits_in[group.key]
        changes, found = self.found.get(asked, (-1, None))
        if changes != self.changes[node] or (found and not all(self.may_go(each, group, {}) for each in found[1])):
            found = self.units_on(node, self.free[node], needs, group, {})
            self.found[asked] = self.changes[node], found
        return found

    def units_on(
        self, node: int, room: _Amounts, needs: _Amounts, group: Group, going: Mapping[int, _Disturbed]
    ) -> tuple[_Loss, tuple[_Disturbed, ...]] | None:
        taken, going = list[_Disturbed](), dict(going)
        for unit in self.on[node]:
            if _fits(needs, room):
                break
            if _helps(unit.there[node], needs, room) and self.may_go(unit, group, going):
                taken.append(unit)
                going[unit.number] = unit
                room = [*map(add, room, unit.there[node])]
        if not _fits(needs, room):
            return None
        for unit in reversed(taken[:-1]):
            less = [*map(sub, room, unit.there[node])]
            if _fits(needs, less):
                taken.remove(unit)
                room = less
        return _total(self.whole.nothing, taken), tuple(taken)

    # Receivers

    def _received(self) -> tuple[dict[Key, int], set[Key], set[int]]:
        receivers = _Receivers(self.whole, np.array(self.free, dtype=np.int64).reshape(self.whole.start.shape))
        moved, evicted, stuck, most = dict[Key, int](), set[Key](), set[int](), self.instance.most_moves
        for unit in sorted(self.gone.values(), key=lambda each: (-len(each.pods), each.loss)):
            group = self.whole.groups[self.for_group[unit.number]]
            room = most is None or len(moved) + len(unit.pods) <= most
            found = receivers.receive(unit) if room and self._may_be_moved(unit, group) else None
            if found is not None:
                moved |= found
            elif self._may_be_evicted(unit, group):
                evicted.update(unit.pods)
            else:
                stuck.add(unit.number)
        return moved, evicted, stuck


class _Ranking:
    def __init__(self, outer: _Round, domains: Sequence[Sequence[int]]) -> None:
        self.outer, self.domains = outer, domains
        self.estimates: dict[int, tuple[int, _Loss | None]] = {}

    def ranked(self, group: Group, pods: Sequence[Key]) -> list[tuple[_Loss, Sequence[int]]]:
        """Domains with room for the group if all went that may, cheapest first."""
        found = list[tuple[_Loss, int]]()
        for number, nodes in enumerate(self.domains):
            changes = sum(self.outer.changes[node] for node in nodes)
            before, estimate = self.estimates.get(number, (-1, None))
            if changes != before:
                estimate = self._estimate(nodes, group, pods) if pods else self.outer.whole.nothing
                self.estimates[number] = changes, estimate
            if estimate is not None:
                found.append((estimate, number))
        return [(estimate, self.domains[number]) for estimate, number in sorted(found)]

    def _estimate(self, nodes: Sequence[int], group: Group, pods: Sequence[Key]) -> _Loss | None:
        largest = self.outer.instance.pods[pods[0]]
        needs, able = self.outer.whole.asked(largest), self.outer.whole.admitting(largest) & self.outer.whole.open
        costs, room = list[tuple[_Loss, int]](), 0
        for node in nodes:
            found = self.outer.on_node(node, needs, group) if able[node] else None
            if found is not None:
                copies = self._copies(node, needs, found[1])
                room += max(copies, self._copies(node, needs, self.outer.on[node]))
                costs.append((found[0], -copies))
        short, total = len(pods), self.outer.whole.nothing
        for loss, copies in sorted(costs):
            if short <= 0:
                break
            short += copies
            total = tuple(map(add, total, loss))
        return total if room >= len(pods) else None

    def _copies(self, node: int, needs: _Amounts, gone: Iterable[_Disturbed]) -> int:
        room = self.outer.free[node]
        for unit in gone:
            room = [*map(add, room, unit.there[node])]
        return min((have // need for need, have in zip(needs, room, strict=True) if need), default=SAFE)


class _InDomain:
    def __init__(self, outer: _Round, group: Group, nodes: Sequence[int]) -> None:
        self.outer, self.group, self.nodes = outer, group, nodes
        self.free: dict[int, _Amounts] = {}
        self.going: dict[int, _Disturbed] = {}
        self.bound: dict[Key, int] = {}
        self.queues: dict[object, list[tuple[_Loss, int, int]]] = {}

    def choice(self, pods: Sequence[Key], best: _Choice | None) -> _Choice | None:
        """What the group gets here; None: there is no room whatever goes, or no less goes than for the best."""
        loss, whole = self.outer.whole.nothing, self.outer.whole
        for key in pods:
            pod = self.outer.instance.pods[key]
            found = self._cheapest(pod, whole.asked(pod))
            if found is None:
                return None
            node, units = found
            loss = tuple(map(add, loss, _total(whole.nothing, units)))
            if best is not None and loss >= best.loss:
                return None
            self._take(units)
            self.bound[key] = node
            self.free[node] = [*map(sub, self._room(node), whole.asked(pod))]
        return _Choice(loss, self.bound, tuple(self.going.values()))

    def _room(self, node: int) -> _Amounts:
        return self.free.get(node) or self.outer.free[node]

    def _take(self, units: Iterable[_Disturbed]) -> None:
        for unit in units:
            self.going[unit.number] = unit
            for node, amounts in unit.there.items():
                self.free[node] = [*map(add, self._room(node), amounts)]

    def _cheapest(self, pod: Pod, needs: _Amounts) -> tuple[int, tuple[_Disturbed, ...]] | None:
        kind = pod.constraints, tuple(needs)
        if kind not in self.queues:
            able = self.outer.whole.admitting(pod) & self.outer.whole.open
            entries = (self._entry(node, needs) for node in self.nodes if able[node])
            self.queues[kind] = queue = [entry for entry in entries if entry is not None]
            heapq.heapify(queue)
        queue = self.queues[kind]
        while queue:
            loss, _, node = heapq.heappop(queue)
            found = self._on(node, needs)
            if found is None:
                continue
            heapq.heappush(queue, (found[0], sum(self._room(node)), node))
            if found[0] <= loss:
                return node, found[1]
        return None

    def _entry(self, node: int, needs: _Amounts) -> tuple[_Loss, int, int] | None:
        found = self._on(node, needs)
        return None if found is None else (found[0], sum(self._room(node)), node)

    def _on(self, node: int, needs: _Amounts) -> tuple[_Loss, tuple[_Disturbed, ...]] | None:
        if node in self.free or self.going:
            return self.outer.units_on(node, self._room(node), needs, self.group, self.going)
        return self.outer.on_node(node, needs, self.group)


class _Receivers:
    def __init__(self, whole: Construction, free: npt.NDArray[np.int64]) -> None:
        self.whole, self.free = whole, free
        totals = np.maximum(whole.start, 0).max(axis=0, initial=1)
        self.shares = 1.0 / np.maximum(totals, 1)

    def receive(self, unit: _Disturbed) -> dict[Key, int] | None:
        """Where the pods of a unit are bound again; None: not all of them find room."""
        before = self.free.copy() if len(unit.pods) > 1 else None
        for begin, end in self._ranges(unit):
            found = self._within(unit, begin, end)
            if found is not None:
                return found
            if before is not None:
                self.free[:] = before
        return None

    def _within(self, unit: _Disturbed, begin: int, end: int) -> dict[Key, int] | None:
        found = dict[Key, int]()
        pods = sorted((self.whole.instance.pods[key] for key in unit.pods), key=self.whole.asked, reverse=True)
        for pod in pods:
            needs, room = np.array(self.whole.asked(pod)), self.free[begin:end]
            able = self.whole.admitting(pod)[begin:end] & (room >= needs).all(axis=1)
            places = np.flatnonzero(able)
            if not len(places):
                return None
            node = begin + int(places[np.argmin(room[places] @ self.shares)])
            self.free[node] -= needs
            found[pod.key] = node
        return found

    def _ranges(self, unit: _Disturbed) -> Iterator[tuple[int, int]]:
        tree = self.whole.dense.domains
        name = self.whole.instance.pods[unit.pods[0]].group
        group = None if name is None else self.whole.instance.groups.get(name)
        top_tier = tree.tier[tree.root]
        if group is None or not group.topology or (limit := group.topology.limit) is None or limit >= top_tier:
            yield 0, len(self.whole.dense.nodes)
            return
        within = tree.tier <= limit
        homes = [] if len(unit.pods) == len(group.bound) else list(unit.there)
        for top in np.flatnonzero(within & ~within[tree.parent]):
            begin, end = int(tree.begin[top]), int(tree.end[top])
            if all(begin <= home < end for home in homes):
                yield begin, end


def _has_parts(group: Group) -> bool:
    """Whether no pod of a group goes alone: one would take others with it, or leave a part of it too small."""
    return goes_whole(group) or bool(group.sub_groups or group.min_task_member)


def _helps(gains: Iterable[int], needs: Iterable[int], room: Iterable[int]) -> bool:
    return any(gain and need > there for gain, need, there in zip(gains, needs, room, strict=True))


def _fits(needs: Iterable[int], room: Iterable[int]) -> bool:
    return all(not need or there >= need for need, there in zip(needs, room, strict=True))


def _total(nothing: _Loss, units: Iterable[_Disturbed]) -> _Loss:
    for unit in units:
        nothing = tuple(map(add, nothing, unit.loss))
    return nothing
