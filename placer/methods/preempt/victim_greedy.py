"""What goes for several groups, one after another and without a search: the cheapest domain, cheapest units first.

A pod goes where there is room; where there is none, on the node on which least has to go for it, counted as the values
are compared: the highest priority that loses something first. A unit goes whole, so what it leaves on other nodes is
room for what follows. What turns out to have its room still stays after all.

Only room, eligibility, tiers, labels in common and budgets are looked at: who carries the answer out asks ``verify``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import add, ge, sub
from typing import NamedTuple

from placer.dense.dense_builder import make_dense
from placer.disruption import unit_priority
from placer.instance import Group, GroupKey, Instance, Key
from placer.methods.preempt.group_domains import group_domains, index_of
from placer.methods.preempt.lifting import goes_whole, least_priorities, may_be_disturbed

__all__ = ["Evictions", "cheapest_evictions"]

#: Amounts of the resources that somebody who waits asks for, one each.
_Amounts = list[int]
#: Weight and number of units that go, per priority, highest first.
_Loss = tuple[int, ...]


class Evictions(NamedTuple):
    """Who goes, and who is bound then.

    Parameters
    ----------
    bound
        Pods that wait to their nodes.
    gone
        Pods that run and go, unit by unit.
    """

    bound: Mapping[Key, str]
    gone: tuple[frozenset[Key], ...]


class _Evictable(NamedTuple):
    """Bound pods that go together.

    Parameters
    ----------
    number
        Position among all of them.
    priority, pods
        Its own, and they.
    loss
        What is lost where it goes.
    there
        Node to what it holds there.
    budgets
        Budget to how many of its pods that counts.
    queues
        Those that are not reclaimable.
    """

    number: int
    priority: int
    pods: frozenset[Key]
    loss: _Loss
    there: Mapping[str, _Amounts]
    budgets: Mapping[int, int]
    queues: frozenset[str]


class _Choice(NamedTuple):
    loss: _Loss
    bound: dict[Key, str]
    units: tuple[_Evictable, ...]


def cheapest_evictions(instance: Instance, groups: Sequence[Group], kept: Collection[Key] = ()) -> Evictions:
    """Choose who goes for groups that wait.

    Parameters
    ----------
    instance
        In which they wait; whatever else waits gets nothing.
    groups
        They, in the order in which they are served.
    kept
        Pods that do not go.

    Returns
    -------
    Evictions
        Of a group for which nothing was found no pod is bound.
    """
    return _VictimGreedy(instance, groups, frozenset(kept)).run()


class _VictimGreedy:
    def __init__(self, instance: Instance, groups: Sequence[Group], kept: frozenset[Key]) -> None:
        self.instance, self.groups = instance, groups
        self.dense = make_dense(instance)
        self.resources = self.dense.resources
        held = instance.held
        self.free = {
            name: self.amounts(node.allocatable - held[name] if name in held else node.allocatable)
            for name, node in instance.nodes.items()
        }
        self.waits_in = {group.key: instance.waiting_queue(group) for group in groups}
        self.units = [*self._units(kept)]
        self.on: dict[str, list[_Evictable]] = defaultdict(list)
        for unit in sorted(self.units, key=lambda each: (each.loss, each.number)):
            for name in unit.there:
                self.on[name].append(unit)
        self.left = [budget.allowed for budget in instance.budgets]
        self.gone: dict[int, _Evictable] = {}
        self.bound: dict[Key, str] = {}
        #: Counts what has changed on a node; what was found for a pod there is true as long as it stays the same.
        self.changes: Counter[str] = Counter()
        self.found: dict[object, tuple[int, tuple[_Loss, tuple[_Evictable, ...]] | None]] = {}

    def run(self) -> Evictions:
        for group in self.groups:
            choice = self._cheapest(group)
            if choice is not None:
                self._take(choice)
        for unit in sorted(self.gone.values(), key=lambda each: each.loss, reverse=True):
            if all(_fits(amounts, self.free[name]) for name, amounts in unit.there.items()):
                self._stay(unit)
        return Evictions(self.bound, tuple(unit.pods for unit in self.gone.values()))

    def amounts(self, resources: Mapping[str, int]) -> _Amounts:
        return [resources.get(name, 0) for name in self.resources]

    # Units

    @cached_property
    def _priorities(self) -> tuple[int, ...]:
        pods = self.instance.pods
        return tuple(sorted({pods[key].unit_priority for key in self._candidates}, reverse=True))

    @cached_property
    def _candidates(self) -> frozenset[Key]:
        highest = max((group.priority for group in self.groups), default=0)
        pods, least = self.instance.pods, least_priorities(self.instance)
        allowed = may_be_disturbed(self.instance, highest)
        return frozenset(key for key in allowed if pods[key].node in self.instance.nodes and least[key] < highest)

    def _units(self, kept: frozenset[Key]) -> Iterator[_Evictable]:
        counting: dict[Key, list[int]] = defaultdict(list)
        for number, budget in enumerate(self.instance.budgets):
            for key in budget.pods:
                counting[key].append(number)
        weights = self.instance.weights_of(self.instance.pods[key] for key in self._candidates)
        for number, pods in enumerate(self._together()):
            if pods <= self._candidates and pods.isdisjoint(kept):
                yield self._unit(number, pods, sum(weights[key] for key in pods), counting)

    def _together(self) -> Iterator[frozenset[Key]]:
        whole = set[GroupKey]()
        for key in sorted(self._candidates):
            name = self.instance.pods[key].group
            group = None if name is None else self.instance.groups[name]
            if group is None or not goes_whole(group):
                yield frozenset((key,))
            elif group.key not in whole:
                whole.add(group.key)
                yield frozenset(group.bound)

    def _unit(self, number: int, pods: frozenset[Key], weight: int, counting: Mapping[Key, list[int]]) -> _Evictable:
        there: dict[str, _Amounts] = {}
        for key in pods:
            pod = self.instance.pods[key]
            amounts = self.amounts(pod.requests)
            there[pod.node or ""] = [*map(add, there.get(pod.node or "", [0] * len(amounts)), amounts)]
        priority = unit_priority(self.instance, pods)
        loss = [0] * (2 * len(self._priorities))
        at = 2 * self._priorities.index(priority)
        loss[at : at + 2] = weight, 1
        budgets = Counter(each for key in pods for each in counting.get(key, ()))
        held = (self.instance.keeping_queue(self.instance.pods[key]) for key in pods)
        queues = frozenset(queue for queue in held if queue is not None)
        return _Evictable(number, priority, pods, tuple(loss), there, budgets, queues)

    # What is done

    def _take(self, choice: _Choice) -> None:
        for unit in choice.units:
            self.gone[unit.number] = unit
            self._change(unit.there, add)
            for budget, count in unit.budgets.items():
                self.left[budget] -= count
        for key, name in choice.bound.items():
            self.bound[key] = name
            self._change({name: self.amounts(self.instance.pods[key].requests)}, sub)

    def _stay(self, unit: _Evictable) -> None:
        del self.gone[unit.number]
        self._change(unit.there, sub)
        for budget, count in unit.budgets.items():
            self.left[budget] += count

    def _change(self, there: Mapping[str, _Amounts], how: Callable[[int, int], int]) -> None:
        for name, amounts in there.items():
            self.free[name] = [*map(how, self.free[name], amounts)]
            self.changes[name] += 1

    # One group

    def _cheapest(self, group: Group) -> _Choice | None:
        index = index_of(self.dense, group.key)
        best: _Choice | None = None
        if index is None:
            return None
        pods = self._needed(group)
        if any(key not in self.dense.class_of for key in pods):
            return None
        for names in group_domains(self.instance, self.dense, index):
            choice = _InDomain(self, group, names).choice(pods, best)
            if choice is not None and (best is None or choice.loss < best.loss):
                best = choice
            if best is not None and not any(best.loss):
                break
        return best

    def _needed(self, group: Group) -> list[Key]:
        weights = self.instance.weights
        pods = sorted(group.pending, key=lambda key: (weights[key], key))
        if not group.min_task_member and not group.sub_groups:
            pods = pods[: group.need]
        return pods[::-1]

    @cached_property
    def _masks(self) -> list[frozenset[str]]:
        return [
            frozenset(name for name, able in zip(self.dense.nodes, row.tolist(), strict=True) if able)
            for row in self.dense.masks
        ]

    def admitting(self, key: Key) -> frozenset[str]:
        return self._masks[self.dense.classes[self.dense.class_of[key]].mask]

    def may_go(self, unit: _Evictable, group: Group, going: Mapping[int, _Evictable]) -> bool:
        if unit.number in self.gone or unit.number in going or unit.priority >= group.priority:
            return False
        if unit.queues and unit.queues != {self.waits_in[group.key]}:
            return False
        if not unit.budgets:
            return True
        taken = Counter[int]()
        for each in going.values():
            taken.update(each.budgets)
        return all(self.left[budget] - taken[budget] >= count for budget, count in unit.budgets.items())

    @property
    def nothing(self) -> _Loss:
        return (0,) * (2 * len(self._priorities))


class _InDomain:
    def __init__(self, whole: _VictimGreedy, group: Group, names: Sequence[str]) -> None:
        self.whole, self.group, self.names = whole, group, names
        self.free: dict[str, _Amounts] = {}
        self.going: dict[int, _Evictable] = {}
        self.bound: dict[Key, str] = {}

    def choice(self, pods: Sequence[Key], best: _Choice | None) -> _Choice | None:
        """What the group gets here; None: there is no room whatever goes, or no less goes than for the best."""
        loss = self.whole.nothing
        for key in pods:
            needs = self.whole.amounts(self.whole.instance.pods[key].requests)
            able = self.whole.admitting(key)
            names = [name for name in self.names if name in able]
            name = self._with_room(names, needs) or self._made_free(names, needs)
            if name is None:
                return None
            self.bound[key] = name
            self.free[name] = [*map(sub, self._room(name), needs)]
            loss = _total(unit.loss for unit in self.going.values()) or self.whole.nothing
            if best is not None and loss >= best.loss:
                return None
        return _Choice(loss, self.bound, tuple(self.going.values()))

    def _room(self, name: str) -> _Amounts:
        return self.free.get(name) or self.whole.free[name]

    def _with_room(self, names: Iterable[str], needs: _Amounts) -> str | None:
        fitting = ((sum(self._room(name)), name) for name in names if _fits(needs, self._room(name)))
        return min(fitting, default=(0, None))[1]

    def _made_free(self, names: Iterable[str], needs: _Amounts) -> str | None:
        """The node on which least has to go for a pod, which then has gone; None: on none would that do."""
        best: tuple[_Loss, str, tuple[_Evictable, ...]] | None = None
        for name in names:
            found = self._on(name, needs)
            if found is not None and (best is None or found[0] < best[0]):
                best = found[0], name, found[1]
        if best is None:
            return None
        for unit in best[2]:
            self.going[unit.number] = unit
            for name, amounts in unit.there.items():
                self.free[name] = [*map(add, self._room(name), amounts)]
        return best[1]

    def _on(self, name: str, needs: _Amounts) -> tuple[_Loss, tuple[_Evictable, ...]] | None:
        if name in self.free:
            return self._units_on(name, needs)
        asked = name, tuple(needs), self.group.priority, self.whole.waits_in[self.group.key]
        changes, found = self.whole.found.get(asked, (-1, None))
        if changes != self.whole.changes[name] or (found and not self._may_all_go(found[1])):
            found = self._units_on(name, needs)
            if not self.going:
                self.whole.found[asked] = self.whole.changes[name], found
        return found

    def _may_all_go(self, units: Iterable[_Evictable]) -> bool:
        return all(self.whole.may_go(unit, self.group, self.going) for unit in units)

    def _units_on(self, name: str, needs: _Amounts) -> tuple[_Loss, tuple[_Evictable, ...]] | None:
        room, taken, going = self._room(name), list[_Evictable](), dict(self.going)
        for unit in self.whole.on[name]:
            if _fits(needs, room):
                break
            if _helps(unit.there[name], needs, room) and self.whole.may_go(unit, self.group, going):
                taken.append(unit)
                going[unit.number] = unit
                room = [*map(add, room, unit.there[name])]
        if not _fits(needs, room):
            return None
        for unit in reversed(taken[:-1]):
            less = [*map(sub, room, unit.there[name])]
            if _fits(needs, less):
                taken.remove(unit)
                room = less
        return _total(unit.loss for unit in taken), tuple(taken)


def _helps(gains: Iterable[int], needs: Iterable[int], room: Iterable[int]) -> bool:
    return any(gain and need > there for gain, need, there in zip(gains, needs, room, strict=True))


def _fits(needs: Iterable[int], room: Iterable[int]) -> bool:
    return all(map(ge, room, needs))


def _total(losses: Iterable[_Loss]) -> _Loss:
    return tuple(map(sum, zip(*losses, strict=True)))
