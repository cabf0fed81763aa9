"""What goes for one group, domain by domain: the least that any domain needs, and what carries it out.

What must go in a domain at least is what the exact model says of its contraction
(:mod:`placer.search.preempt.contraction`); the least over domains is a bound for the group. What the model says is
then carried out in the cluster: units that it moved elsewhere get nodes by the greedy, or are evicted after all.
Domains come by what counting says has to be moved there, and end where that is no better than what was carried out.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property

from placer.arrays import Dense
from placer.arrays.dense_builder import make_dense
from placer.base.deadline import Deadline
from placer.problem import Group, GroupKey, Instance, Key
from placer.problem.disruption import Disruption, unit_priority
from placer.problem.placement import LOSSES, Placement, Score, Value, better
from placer.problem.what_if import released
from placer.rules.scoring import score
from placer.search.events import Event, Improved, SearchOptions
from placer.search.exact.disturbing import search
from placer.search.preempt.contraction import Contraction
from placer.search.preempt.domain_sets import group_domains, index_of, is_confined
from placer.search.preempt.fewest_evictions import least_needed
from placer.search.preempt.first_plan import Best, by_greedy
from placer.search.preempt.knapsack import Victim, cheapest_share, most_gained
from placer.search.preempt.lifting import goes_whole, least_priorities, lift, may_be_disturbed, on_nodes
from placer.search.preempt.plans import plan_of

#: Share of the time that is for what has to go wherever the group is.
ANYWHERE_SHARE = 0.5
#: Where a group may be on any node, a domain is made of nodes with room for so many times what it needs.
GENEROUS = 3


def disturbance(values: Score) -> Score:
    """The values down to what is disturbed."""
    names = [value.name for value in values]
    return values[: names.index("movedUnits") + 1]


class DomainSearch:
    """Looks for the least that goes for one group of an instance in which nothing else waits.

    ``best``: the best placement that was carried out. ``bound``: the least that any placement disturbs; None: not
    known.
    """

    def __init__(self, instance: Instance, group: Group, deadline: Deadline, seed: int = 0) -> None:
        self.instance, self.group, self.deadline, self.seed = instance, group, deadline, seed
        self.contraction = Contraction(instance, group, may_be_disturbed(instance, group.priority))
        self.best = Best(instance)
        self.bound: Score | None = None
        self._held: dict[tuple[tuple[str, ...], str], tuple[int, Counter[tuple[int, int]]]] = {}

    @cached_property
    def dense(self) -> Dense:
        """The arrays, in which the group alone waits, with what runs of it where that may be moved."""
        return make_dense(released(self.instance, self._own))

    @cached_property
    def _own(self) -> frozenset[Key]:
        """What runs of the group, where that may be moved: all of it, since it is not ready without more."""
        own = frozenset(self.group.bound)
        return own if own <= self.contraction.candidates else frozenset()

    def run(self, *, bounded: bool = True) -> Iterator[Placement]:
        """Look at domain after domain; yield every placement that is better than those before it.

        ``bounded``: find a bound for a group that may be anywhere; for others it also says where to end.
        """
        anywhere = self._anywhere(bounded=bounded)
        known: list[Score | None] = [anywhere]
        for moved, _, names in sorted(self._prospects(anywhere)):
            if self.best.found and self._beaten(anywhere, moved, self.best.values):
                known.append(disturbance(self.best.values))
                break
            found, plan = self._least(names, self.deadline)
            known.append(found)
            placement = None if plan is None else self._carried_out(names, plan)
            if placement is not None and self.best.offer((placement,)):
                yield placement
            if self.deadline.over:
                known.append(None)
                break
        self.bound = self._bound(known[1:]) if self.confined else anywhere

    def _anywhere(self, *, bounded: bool) -> Score | None:
        if not bounded and not self.confined:
            return None
        return self._least((), self.deadline.part(ANYWHERE_SHARE))[0]

    def _bound(self, known: Sequence[Score | None]) -> Score | None:
        least = disturbance(score(self.instance, Placement(), disturbing=True))
        for each in known:
            if each is None:
                return None
            least = each if better(each, least) else least
        return least

    @staticmethod
    def _beaten(anywhere: Score | None, moved: int, best: Score) -> bool:
        if anywhere is None:
            return False
        evicted = [value for value in anywhere if value.name in LOSSES]
        admitted = [value for value in best if value.name == "admitted"]
        least = (*admitted, *evicted, Value("moved", moved), Value("movedUnits", int(moved > 0)))
        return not better(least, disturbance(best))

    # Domains

    @cached_property
    def _index(self) -> int | None:
        return index_of(self.dense, self.group.key)

    @cached_property
    def confined(self) -> bool:
        """Whether the group has to be in one domain."""
        return self._index is not None and is_confined(self.instance, self.dense, self._index)

    def domains(self) -> Iterator[list[str]]:
        """Nodes of each domain that the group may be in, those that some pod of it may be on or runs on."""
        if self._index is None:
            return
        for names in group_domains(self.instance, self.dense, self._index):
            yield names if self.confined else self._cheapest(names)

    def _cheapest(self, names: Sequence[str]) -> list[str]:
        pods = [self.instance.pods[key] for key in self.group.pending]
        asked = max(pods, key=lambda pod: self.instance.weights[pod.key]).requests
        ranked = []
        for name in names:
            room = self.contraction.room[name]
            count = min((room[resource] // amount for resource, amount in asked.items()), default=0)
            if count:
                lost = self.contraction.members[name]
                highest = max((self._least_priorities[pod.key] for pod in lost), default=0)
                ranked.append(
                    (bool(lost), highest, Fraction(self._weight(pod.key for pod in lost), count), name, count)
                )
        chosen, held = [], 0
        for *_, name, count in sorted(ranked):
            if held >= GENEROUS * len(pods):
                break
            chosen.append(name)
            held += count
        return chosen

    @cached_property
    def _least_priorities(self) -> dict[Key, int]:
        return least_priorities(self.instance)

    @cached_property
    def _weights(self) -> dict[Key, int]:
        return self.instance.weights_of(self.instance.pods[key] for key in self.contraction.candidates)

    def _weight(self, keys: Iterable[Key]) -> int:
        return sum(self._weights[key] for key in keys)

    # Bounds

    @cached_property
    def _need(self) -> dict[str, int]:
        return least_needed(self.instance, self.group)

    def _prospects(self, anywhere: Score | None) -> Iterator[tuple[int, int, list[str]]]:
        """Domains that could hold the group: the weight that has to be moved there at least where no more is evicted
        than has to be anywhere, and how many units are there.
        """
        most = {(value.name, value.priority): value.value for value in anywhere or () if value.name in LOSSES}
        for names in self.domains():
            comes = self._coming(names)
            goes = self.counted(names, 1, comes)
            if names and goes is not None:
                there = self._there(names)
                evicted = sum(
                    most_gained(each, most.get(("evicted", priority), 0), most.get(("evictedUnits", priority), 0))
                    for priority, each in there.items()
                )
                yield self._weight(comes) + max(0, goes - evicted), sum(map(len, there.values())), names

    def _there(self, names: Sequence[str]) -> dict[int, list[Victim]]:
        """What may be evicted in a domain, by priority: what goes whole whatever else goes, and else single pods, of
        which nothing is known about how many are a unit, nor about which of several priorities it has.
        """
        found: dict[int, list[Victim]] = defaultdict(list)
        whole: dict[GroupKey, int] = defaultdict(int)
        for pod in (pod for name in names for pod in self.contraction.members[name]):
            group = None if pod.group is None else self.instance.groups[pod.group]
            if group is not None and goes_whole(group):
                whole[group.key] += self._weights[pod.key]
            else:
                weight = self._weights[pod.key]
                for priority in self._may_be_of(pod.unit_priority, group):
                    found[priority].append(Victim(weight, weight, int(group is None)))
        for key, gain in whole.items():
            pods = self.instance.groups[key].bound
            found[unit_priority(self.instance, pods)].append(Victim(self._weight(pods), gain, 1))
        return found

    def _may_be_of(self, own: int, group: Group | None) -> list[int]:
        if group is None:
            return [own]
        return [each for each in self._priorities_in[group.key] if each >= own]

    @cached_property
    def _priorities_in(self) -> dict[GroupKey, frozenset[int]]:
        pods = self.instance.pods
        groups = self.instance.groups.items()
        return {key: frozenset(pods[each].unit_priority for each in group.bound) for key, group in groups}

    def counted(self, names: Sequence[str], groups: int, comes: Collection[Key] = ()) -> int | None:
        """The weight that has to go in a domain for so many groups like this one, with some pods of it that run and
        come there; None: there is no room for them.
        """
        found = [self._on_nodes(names, groups * self.group.need)]
        for resource, amount in self._need.items():
            more = sum(self.instance.pods[key].requests[resource] for key in comes)
            weight, short = self._covering(tuple(names), resource, groups * amount + more)
            found.append(None if short > 0 else int(weight))
        return None if None in found else max((each or 0 for each in found), default=0)

    def _on_nodes(self, names: Sequence[str], count: int) -> int | None:
        """The least weight whose going leaves room for so many pods, each on one node.

        What goes on a node for its first pod, its second and so on grows by each, so the least of all nodes is taken.
        """
        pods = [self.instance.pods[key].requests for key in self.group.pending]
        asked = {each: least for each in self._need if (least := min(pod[each] for pod in pods))}
        marginal = list[Fraction]()
        for name in names:
            room, before = self.contraction.room[name], Fraction(0)
            for copies in range(1, min([count, *(room[each] // least for each, least in asked.items())]) + 1):
                each_resource = (self._covering((name,), each, copies * least)[0] for each, least in asked.items())
                weight = max(each_resource, default=Fraction(0))
                marginal.append(weight - before)
                before = weight
        return None if len(marginal) < count else math.ceil(sum(sorted(marginal)[:count], Fraction(0)))

    def _covering(self, names: tuple[str, ...], resource: str, amount: int) -> tuple[Fraction, int]:
        """The least weight whose going leaves so much on some nodes, and what of it there is not."""
        if (names, resource) not in self._held:
            free, pods = 0, Counter[tuple[int, int]]()
            for name in names:
                there = [(self._weights[pod.key], pod.requests[resource]) for pod in self.contraction.members[name]]
                free += max(0, self.contraction.room[name][resource] - sum(held for _, held in there))
                pods.update(there)
            self._held[names, resource] = free, pods
        free, pods = self._held[names, resource]
        return cheapest_share(pods, amount - free)

    def _coming(self, names: Collection[str]) -> frozenset[Key]:
        stays = any(self.instance.pods[key].node in names for key in self._own)
        return self._own if self.confined and not stays else frozenset()

    def _least(self, names: Sequence[str], until: Deadline) -> tuple[Score | None, Placement | None]:
        small = self.contraction.around(names)
        lifted = lift(small, self.contraction.candidates & small.pods.keys(), self._unit_sizes(small))
        options = SearchOptions(until, seed=self.seed)
        events: list[Event] = []
        search(replace(lifted, last="movedUnits"), options, events.append)
        found = [each.solution for each in events if isinstance(each, Improved)]
        plan = plan_of(lifted, found[-1]) if found else Placement()
        bounds = {each.criterion: each.bound for each in events if not isinstance(each, Improved)}
        criteria = lifted.dense.criteria[: lifted.dense.criteria.index(("movedUnits", None)) + 1]
        values = [Value(name, bounds[at], priority) for at, (name, priority) in enumerate(criteria) if at in bounds]
        admitted = not plan.node_of.keys().isdisjoint(self.group.pending)
        return tuple(values) if len(values) == len(criteria) else None, plan if admitted else None

    def _unit_sizes(self, small: Instance) -> dict[Key, int]:
        names = {key: self.instance.pods[key].group for key, pod in small.pods.items() if pod.group is None}
        groups = self.instance.groups  # a single pod that is to run has no group in it
        return {key: len(groups[name].bound) for key, name in names.items() if name is not None and name in groups}

    # Carrying out

    def _carried_out(self, names: Sequence[str], plan: Placement) -> Placement | None:
        running = {*plan.evictions, *(move.pod for move in plan.moves)}
        units = [frozenset(unit.pods) for unit in Disruption(self.instance, Placement(evictions=tuple(running))).units]
        pods = dict(self.instance.pods)
        for key in self.group.pending:
            pods[key] = replace(pods[key], constraints=on_nodes(names, pods[key].constraints))
        placement = by_greedy(replace(self.instance, pods=pods), {}, units, self.deadline)
        return None if placement.node_of.keys().isdisjoint(self.group.pending) else placement
