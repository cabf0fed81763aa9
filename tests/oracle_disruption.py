"""The optimum of a tiny instance in which running pods may go, by trying everything: what ``preempt`` is held against.

:func:`best_preempting` gives the best score there is, as ``score(instance, placement, disturbing=True)`` counts it, and
a placement that has it, with its evictions, moves and steps, in which ``verify`` finds nothing. For one group alone
(``--for``) ask it about :func:`only_for`. Every choice of what goes is laid over the instance
(:func:`placer.problem.disruption.released`), and all placements of what waits then are looked at as :mod:`tests.oracle`
does.

What keeps that short:

* what goes breaks neither D1 nor D2, and no unit goes for whose priority nothing waits (D3);
* of equal pods of a group on one node the first ones go, and of those that go the first ones are evicted;
* choices are tried from the cheapest on, and one is left as soon as what it costs, with the most that could still be
  admitted beside it, is worse than the best so far;
* everything goes in one step, in which all is bound: what D5 asks for holds after each of several steps, too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, product
from typing import NamedTuple

from placer.base.quantity import Resources
from placer.problem import Group, GroupKey, Instance, Key, Node, PodState
from placer.problem.disruption import Disruption, DisruptionUnit
from placer.problem.outcome import Outcome
from placer.problem.placement import LOSSES, Binding, Placement, Score, Step, Value, better
from placer.problem.what_if import released
from placer.rules import verify
from placer.rules.disruption import never_disturbed, whole_units
from placer.rules.scoring import disturbed, score
from tests.oracle import Counts, Search, kind_of, placements

#: What is compared first, less being better: of each priority what is not admitted, then what is disturbed.
Cost = tuple[int, ...]


class Choice(NamedTuple):
    """What goes, and how much that is."""

    cost: Cost
    evicted: tuple[Key, ...] = ()
    moved: tuple[Key, ...] = ()


def best_preempting(instance: Instance) -> tuple[Score, Placement]:
    """The best score there is where units may be evicted and moved for groups that wait (D1 to D5), and a placement
    that has it: one that disturbs nothing where none is better.
    """
    return _Preemption(instance).best()


def only_for(instance: Instance, group: GroupKey) -> Instance:
    """The instance in which nothing waits but one group."""
    others = {pod.key for pod in instance.pending if pod.group != group}
    pods = {key: pod for key, pod in instance.pods.items() if key not in others}
    groups = {key: _without(each, others) for key, each in instance.groups.items() if key == group or key.api_group}
    return replace(instance, pods=pods, groups=groups)


def _without(group: Group, gone: Collection[Key]) -> Group:
    """A group some of whose waiting pods are not there."""
    parts = tuple(replace(each, pending=_left(each.pending, gone)) for each in group.sub_groups)
    return replace(group, pending=_left(group.pending, gone), sub_groups=parts)


def _left(keys: Sequence[Key], gone: Collection[Key]) -> tuple[Key, ...]:
    return tuple(key for key in keys if key not in gone)


class _Preemption:
    """All that may go, with all that may come, and the best of it so far."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.placement, self.score = Placement(), score(instance, Placement(), disturbing=True)

    def best(self) -> tuple[Score, Placement]:
        for placement in placements(self.instance):
            self.look_at(placement)
        for choice in sorted(self.choices()):
            if self.beaten((*(0 for _ in self.priorities), *choice.cost)):
                break
            if choice.evicted or choice.moved:
                for placement in _Going(self, choice).placements():
                    self.look_at(_with_what_goes(choice, placement))
        assert verify(self.instance, self.placement) == []
        return self.score, self.placement

    def look_at(self, placement: Placement) -> None:
        """Take a placement that is better than all before it and keeps every rule."""
        value = score(self.instance, placement, disturbing=True)
        if better(value, self.score) and not verify(self.instance, placement):
            self.placement, self.score = placement, value
            vars(self).pop("cost", None)

    def beaten(self, cost: Cost) -> bool:
        """Whether everything that costs at least so much is worse than the best so far."""
        return cost > self.cost

    @cached_property
    def cost(self) -> Cost:
        """What the best so far costs."""
        admitted = [each for each in self.score if each.name == "admitted"]
        return (*(self.needs[each.priority or 0] - each.value for each in admitted), *self.disturbance(self.score))

    @cached_property
    def priorities(self) -> tuple[int, ...]:
        """Those that are compared by what is admitted."""
        return self.instance.priorities if "placed" in self.instance.policy.levels else ()

    @cached_property
    def needs(self) -> Mapping[int, int]:
        """Priority to all that could be admitted of it."""
        found: dict[int, int] = defaultdict(int)
        for key, group in self.instance.groups.items():
            found[group.priority] += self.instance.need_weights[key]
        return found

    @cached_property
    def running(self) -> tuple[int, ...]:
        """Priorities of what runs, highest first."""
        bound = [pod for pod in self.instance.pods.values() if pod.state is PodState.BOUND]
        return tuple(sorted({pod.unit_priority for pod in bound}, reverse=True))

    def disturbance(self, values: Sequence[Value]) -> Cost:
        """What goes, priority by priority, and what is moved."""
        of = {(each.name, each.priority): each.value for each in values}
        names = [*product(self.running, LOSSES), (None, "moved"), (None, "movedUnits")]
        return tuple(of.get((name, priority), 0) for priority, name in names)

    def choices(self) -> Iterator[Choice]:
        """Everything that may go, one choice of each kind."""
        homes: dict[object, list[Key]] = defaultdict(list)
        for key, pod in self.instance.pods.items():
            if pod.state is PodState.BOUND:
                homes[pod.group or self._kind(key)].append(key)
        ways = [list(self._ways(keys)) for keys in homes.values()]
        for parts in product(*ways):
            costs = zip(*(part.cost for part in parts), strict=True)
            evicted, moved = (tuple(chain.from_iterable(part[side] for part in parts)) for side in (1, 2))
            if not any(never_disturbed(_going(self.instance, evicted, moved))):
                yield Choice(tuple(map(sum, costs)), evicted, moved)

    def _kind(self, key: Key) -> str:
        """What tells a running pod from others."""
        pod = self.instance.pods[key]
        budgets = [budget.key for budget in self.instance.budgets if key in budget.pods]
        return repr((pod.group, pod.node, pod.unit_priority, kind_of(pod), budgets, pod.protected))

    def _either(self, unit: DisruptionUnit, highest: int) -> list[bool]:
        """Whether a unit may be evicted, and whether it may be moved, for who waits with the highest priority."""
        if self.instance.moves_only:
            return [True]
        evict = self.instance.may_evict and unit.priority < highest
        return [False] * evict + [True] * (self.instance.may_move and unit.priority <= highest)

    def _ways(self, keys: Sequence[Key]) -> Iterator[Choice]:
        """What may go of the pods of a group, or of equal pods in none."""
        highest = max(self.instance.priorities, default=-1)
        kinds: dict[str, list[Key]] = defaultdict(list)
        for key in keys:
            kinds[self._kind(key)].append(key)
        for counts in product(*(range(len(each) + 1) for each in kinds.values())):
            gone = [key for each, count in zip(kinds.values(), counts, strict=True) for key in each[:count]]
            all_go = _going(self.instance, gone, ())
            if any(chain(whole_units(all_go), never_disturbed(all_go))):
                continue
            for ways in product(*(self._either(unit, highest) for unit in all_go.units)):
                evicted = {
                    key for unit, moves in zip(all_go.units, ways, strict=True) if not moves for key in unit.pods
                }
                rows = ([key in evicted for key in gone if key in each] for each in kinds.values())
                if all(row == sorted(row, reverse=True) for row in rows):
                    moved = _left(gone, evicted)
                    values = tuple(disturbed(_going(self.instance, sorted(evicted), moved)))
                    yield Choice(self.disturbance(values), tuple(sorted(evicted)), moved)


def _going(instance: Instance, evicted: Sequence[Key], moved: Sequence[Key]) -> Disruption:
    return Disruption(instance, Placement(evictions=tuple(evicted), moves=tuple(Binding(key, "") for key in moved)))


def _with_what_goes(choice: Choice, placement: Placement) -> Placement:
    """A placement of what waits once the choice is gone, told as one of the instance."""
    moves = tuple(each for each in placement.bindings if each.pod in choice.moved)
    bindings = tuple(each for each in placement.bindings if each.pod not in choice.moved)
    order = tuple(each.pod for each in placement.bindings)
    steps = (Step((*choice.evicted, *choice.moved), order),)
    return Placement(bindings, evictions=choice.evicted, moves=moves, steps=steps)


class _Going(Search):
    """Placements of what waits, moved pods among it, once a choice is gone; evicted pods are not there any more."""

    def __init__(self, preemption: _Preemption, choice: Choice) -> None:
        self.preemption, self.choice = preemption, choice
        self.before = preemption.instance
        instance = released(self.before, (*choice.evicted, *choice.moved))
        pods = {key: pod for key, pod in instance.pods.items() if key not in choice.evicted}
        groups = {key: _without(group, choice.evicted) for key, group in instance.groups.items()}
        self.readiness: dict[tuple[GroupKey, Counts], bool] = {}
        self.taken: dict[tuple[GroupKey, Counts], Counter[tuple[int, str]]] = {}
        super().__init__(
            replace(instance, pods=pods, groups=groups), bound_again=choice.moved, promises=self.is_promising
        )
        held = self.instance.held
        self.free = [node.allocatable - held.get(name, Resources()) for name, node in instance.nodes.items()]
        self.within_reach = {
            group.key: any(self.ready(group, option) for option in self.options[group.key]) for group in self.groups
        }

    def is_promising(self, chosen: Mapping[GroupKey, Counts]) -> bool:
        """Whether what is chosen has room, and is not worse than the best so far with the most that may follow it."""
        if not self.has_room(chosen):
            return False
        lacking = dict.fromkeys(self.preemption.priorities, 0)
        for key, group in self.before.groups.items():
            after = self.instance.groups[key]
            if group.pending and lacking:
                ready = self.ready(after, chosen[key]) if key in chosen else self.within_reach[key]
                lacking[group.priority] += 0 if ready else self.before.need_weights[key]
        return not self.preemption.beaten((*lacking.values(), *self.choice.cost))

    def has_room(self, chosen: Mapping[GroupKey, Counts]) -> bool:
        """Whether no node is asked for more than it has left: what C2 would say, sooner."""
        taken: Counter[tuple[int, str]] = Counter()
        for group, option in chosen.items():
            taken.update(self.takes(group, option))
        return all(amount <= self.free[node][resource] for (node, resource), amount in taken.items() if amount)

    def takes(self, group: GroupKey, option: Counts) -> Mapping[tuple[int, str], int]:
        """What an option requests of the nodes."""
        if (group, option) not in self.taken:
            taken = self.taken[group, option] = Counter()
            for members, row in zip(self.classes[group], option, strict=True):
                requests = self.instance.pods[members[0]].requests.items()
                for (node, count), (resource, amount) in product(enumerate(row), requests):
                    taken[node, resource] += count * amount
        return self.taken[group, option]

    def ready(self, group: Group, option: Counts) -> bool:
        """Whether a group is ready with one of its options."""
        if (group.key, option) not in self.readiness:
            outcome = Outcome(self.instance, self.placement({group.key: option}))
            self.readiness[group.key, option] = outcome.ready(group)
        return self.readiness[group.key, option]

    def node_kind(self, node: Node) -> object:
        """A node that held something before is like no other (O4), though it may be empty now."""
        held = any(pod.node == node.name for pod in self.before.pods.values())
        return node.name if held else super().node_kind(node)
