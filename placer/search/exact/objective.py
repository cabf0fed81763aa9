"""The values of ``Dense.criteria`` as linear expressions, with variables and rows that only they need."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property, partial

import numpy as np
from ortools.sat.python.cp_model import IntVar

from placer.arrays.solution import IntArray
from placer.search.exact.calls import CallPairs, Tie
from placer.search.exact.count_model import Linear, ValuedModel, fewest_rooms, solver_form, value_at
from placer.search.exact.variables import Bundle, ExactVariables, Reach


class ExactObjective(ValuedModel):
    """Value after value, equal to :func:`placer.rules.scoring.score` at every optimum.

    Where a value is minimised its expression may exceed the score of a solution that was cut short, never fall below.
    """

    def __init__(self, variables: ExactVariables, calls: CallPairs | None) -> None:
        self.variables, self.calls = variables, calls
        self.dense, self.proto = variables.dense, variables.model
        self.watched = [
            (index, bundle) for index, bundle in enumerate(variables.all) if self.dense.scopes[bundle.scope].wanted
        ]
        self.makers = {
            "admitted": self._admitted,
            "placed": self._placed,
            "locality": self._locality,
            "span": self._span,
            "networkCost": self._network_cost,
            "packedHyperNodes": lambda _: variables.packed_hyper_nodes(),
            "packedNodes": lambda _: variables.packed_nodes(),
        }

    def _admitted(self, priority: int | None) -> Linear:
        row = Linear()
        for bundle, active in zip(self.variables.bundles.gangs, self.variables.active, strict=False):
            group = self.dense.groups[bundle.members[0]]
            if group.priority == priority and group.need_weight:
                if active is None:
                    row.constant += group.need_weight * bundle.many
                else:
                    row.add(group.need_weight, active)
        return row

    def _placed(self, priority: int | None) -> Linear:
        row = Linear()
        for index in range(len(self.variables.bundles.items)):
            first = self.variables.first(index)
            if self.dense.groups[first.group].priority == priority:
                row.add(first.weight, *self.variables.placed(index))
        return row

    def _locality(self, _: int | None) -> Linear:
        """O2: sum over scopes of placed pods times tier(home)."""
        total = Linear(constant=self.dense.constant_locality)
        for index, bundle in self.watched:
            if bundle.whole and not self.dense.scopes[bundle.scope].bound:
                pods = sum(self.variables.bundles.items[item].total for item in bundle.items) // bundle.many
                for domain, members in self.variables.homes[index].items():
                    total.add(pods * self._tier(domain), members)
            elif self.variables.homes[index]:
                self._spread(total, index, bundle)
            else:
                total.constant += self._standing(bundle)
        return total

    def _standing(self, bundle: Bundle) -> int:
        bound = self.dense.scopes[bundle.scope].bound
        anchor = self.dense.common(bound)
        return 0 if anchor is None else len(bound) * self._tier(anchor)

    def _spread(self, total: Linear, index: int, bundle: Bundle) -> None:
        homes, bound = self.variables.homes[index], len(self.dense.scopes[bundle.scope].bound)
        most = bound + sum(self.variables.bundles.items[item].total for item in bundle.items)
        by_tier: dict[int, list[IntVar]] = {}
        for domain, chosen in homes.items():
            by_tier.setdefault(self._tier(domain), []).append(chosen)
        if list(by_tier) == [0]:
            return
        placed = Linear(constant=bound)
        for item in bundle.items:
            placed.add(1, *self.variables.placed(item))
        row = Linear().plus(-1, placed)
        for tier, chosen_of_tier in by_tier.items():
            pods = self.variables.integer(most, partial(_pods_at, Linear().add(1, *chosen_of_tier), placed))
            self.proto.add(solver_form(Linear().add(1, pods).add(-most, *chosen_of_tier)) <= 0)
            row.add(1, pods)
            total.add(tier, pods)
        self.proto.add(solver_form(row) == -row.constant)

    def _span(self, _: int | None) -> Linear:
        """O2: sum over scopes of the leaves they touch.

        Implied rows tighten the bound: a touched leaf has at most the pods it holds, and a home is touched in as many
        leaves as its pods need.
        """
        total = Linear(constant=self.dense.constant_span)
        for index, bundle in self.watched:
            if bundle.reach is Reach.LEAF:
                total.add(1, *self.variables.homes[index].values())
            else:
                self._touch(total, index, bundle)
        return total

    def _touch(self, total: Linear, index: int, bundle: Bundle) -> None:
        scope, items = self.dense.scopes[bundle.scope], self.variables.bundles.items
        there = (
            (unit, counts, min(self._room(item, unit), items[item].total))
            for item in bundle.items
            for unit, counts in self.variables.by_unit(item).items()
        )
        touched = self.variables.touch(total, scope, there)
        if bundle.whole and not scope.bound:
            self.variables.cover(touched, self.variables.homes[index], partial(self._fewest, bundle))

    def _fewest(self, bundle: Bundle, units: list[int]) -> int:
        found = (
            fewest_rooms((self._room(item, unit) for unit in units), self.variables.bundles.items[item].total)
            for item in bundle.items
        )
        return max(found, default=0)

    def _room(self, item: int, unit: int) -> int:
        fits, places = self.variables.bundles.items[item].fits, self.variables.units[unit]
        return sum(int(fits[node]) for place in places for node in self.variables.places[place].nodes)

    def _network_cost(self, _: int | None) -> Linear:
        """O3: sum over calls and areas of cost times pairs, less the savings of pairs on one node."""
        constant = self.dense.constant_network
        return Linear(constant=constant) if self.calls is None else NetworkCost(self.calls).value(constant)

    def _tier(self, domain: int) -> int:
        return int(self.dense.domains.tier[domain])


def _pods_at(home: Linear, placed: Linear, values: list[int]) -> int:
    return value_at(home, values) * value_at(placed, values)


#: Per workload: area or place to its ties there, each as the workload at the other end and the pairs.
Tied = list[dict[int, list[tuple[int, list[IntVar]]]]]


class NetworkCost:
    """O3 as a linear expression, and rows that follow from the room of nodes and areas; ``calls`` are made with
    ``tight``.
    """

    def __init__(self, calls: CallPairs) -> None:
        self.calls, self.network, self.model = calls, calls.network, calls.model
        self.places = calls.variables.places
        self._inside: Tied = [defaultdict(list) for _ in calls.size]
        self._on: Tied = [defaultdict(list) for _ in calls.size]

    def value(self, constant: int) -> Linear:
        """Sum over calls and areas of cost times pairs, less the savings of pairs on one node, and ``constant``."""
        total = Linear(constant=constant + self.network.total_cost(()))
        self._beside_running(total)
        for tie in self.calls.ties:
            if self.calls.size[tie.one] and self.calls.size[tie.other]:
                self._among_new(total, tie)
        self._rooms()
        return total

    def _beside_running(self, total: Linear) -> None:
        calls, cost = self.calls, self.network.cost
        slope = np.zeros_like(calls.bound)
        saved: list[dict[int, int]] = [defaultdict(int) for _ in calls.size]
        for call in self.network.calls:
            slope[call.origin] += cost @ calls.bound[call.destination]
            slope[call.destination] += calls.bound[call.origin] @ cost
            for one, other in ((call.origin, call.destination), (call.destination, call.origin)):
                for node, pods in calls.bound_on[other].items():
                    area = int(self.network.area[node])
                    saved[one][node] += pods * int(cost[area, area])
        for workload, counts in enumerate(calls.at_place):
            for place, there in counts.items():
                node = self.places[place].nodes[0]
                each = int(slope[workload, calls.area[place]]) - saved[workload].get(node, 0)
                if each:
                    total.add(each, *there)

    def _among_new(self, total: Linear, tie: Tie) -> None:
        pairs, together = self.calls.pairs(tie), self.calls.together(tie)
        inside: dict[int, Linear] = {}
        for (area, to), variables in pairs.items():
            total.add(int(tie.cost[area, to]), *variables)
            if area == to:
                inside[area] = Linear().add(-1, *variables)
                self._remember(self._inside, tie, area, variables)
        for place, variables in together.items():
            area = self.calls.area[place]
            total.add(-int(tie.cost[area, area]), *variables)
            inside[area].add(1, *variables)
            self._remember(self._on, tie, place, variables)
        for row in inside.values():
            self.model.add(solver_form(row) <= 0)

    def _remember(self, found: Tied, tie: Tie, where: int, pairs: list[IntVar]) -> None:
        for one, other in {(tie.one, tie.other), (tie.other, tie.one)}:
            found[one][where].append((other, pairs))

    def _rooms(self) -> None:
        calls, free = self.calls, self.calls.dense.free
        by_area = np.zeros((len(self.network.cost), free.shape[1]), dtype=np.int64)
        for place, where in enumerate(self.places):
            by_area[calls.area[place]] += free[list(where.nodes)].sum(axis=0)
        for workload in range(len(calls.size)):
            for place, tied in self._on[workload].items():
                most = {other: calls.most_at[other][place] for other, _ in tied}
                self._room(workload, free[self.places[place].nodes[0]], tied, most, calls.at_place[workload][place])
            for area, tied in self._inside[workload].items():
                most = {other: int(calls.most[other, area]) for other, _ in tied}
                self._room(workload, by_area[area], tied, most, calls.in_area[workload][area])

    def _room(
        self,
        workload: int,
        room: IntArray,
        tied: list[tuple[int, list[IntVar]]],
        most: dict[int, int],
        counts: list[IntVar],
    ) -> None:
        """Per resource: sum over ties of request(other) t <= (room - request) y; itself is among its own pairs."""
        least = self._least_requests
        left = room if workload in most else room - least[workload]
        asked = sum(least[other] * pods for other, pods in most.items())
        for resource in np.flatnonzero(asked > left):
            row = Linear().add(-int(left[resource]), *counts)
            for other, pairs in tied:
                if least[other, resource]:
                    row.add(int(least[other, resource]), *pairs)
            self.model.add(solver_form(row) <= 0)

    @cached_property
    def _least_requests(self) -> IntArray:
        requests = self.calls.dense.requests
        rows = [requests[list(each.classes)].min(axis=0, initial=2**62) for each in self.network.workloads]
        return np.array(rows, dtype=np.int64).reshape(len(rows), requests.shape[1])
