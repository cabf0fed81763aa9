"""The values of ``Dense.criteria`` as linear expressions, with variables and rows that only they need.

``models/milp.md`` has their formulas.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from placer.arrays import Call
from placer.search.milp.flows import Flows
from placer.search.milp.variables import Linear, MilpVariables, Variable, reaches

__all__ = ["MilpObjective"]


class MilpObjective:
    """Value after value, equal to :func:`placer.rules.scoring.score` at every optimum."""

    def __init__(self, variables: MilpVariables, flows: Flows | None) -> None:
        self.variables, self.flows = variables, flows
        self.dense, self.program = variables.dense, variables.program
        self._made: dict[int, Linear] = {}
        self._filled_by_node: dict[int, Variable] = {}
        self._opened_by_domain: dict[int, Variable] = {}

    def criterion(self, index: int) -> Linear:
        """Return the expression of ``Dense.criteria[index]``."""
        makers: dict[str, Callable[[int | None], Linear]] = {
            "admitted": self._admitted,
            "placed": self._placed,
            "locality": self._locality,
            "span": self._span,
            "networkCost": self._network_cost,
            "packedHyperNodes": self._packed_hyper_nodes,
            "packedNodes": self._packed_nodes,
        }
        if index not in self._made:
            name, priority = self.dense.criteria[index]
            self._made[index] = makers[name](priority)
        return self._made[index]

    def _admitted(self, priority: int | None) -> Linear:
        row = Linear()
        for group, active in zip(self.dense.groups, self.variables.active, strict=True):
            if group.priority == priority and active is not None:
                row.add(group.need_weight, active)
            elif group.priority == priority:
                row.constant += group.need_weight
        return row

    def _placed(self, priority: int | None) -> Linear:
        row = Linear()
        for index, pod_class in enumerate(self.dense.classes):
            if self.dense.groups[pod_class.group].priority == priority:
                row.add(pod_class.weight, *self.variables.placed(index))
        return row

    def _locality(self, _: int | None) -> Linear:
        """O2: pods times tier is a product of two decisions; w, the pods by home, makes it linear."""
        total = Linear(constant=self.dense.constant_locality)
        for number, scope in enumerate(self.dense.scopes):
            homes = self.variables.homes[number]
            if not scope.wanted or homes is None:
                continue
            for domain, chosen in homes.items():
                tier = int(self.dense.domains.tier[domain])
                total.add(tier * len(scope.bound), chosen)
                for index in scope.classes:
                    if (number, index, domain) in self.variables.inside:
                        total.add(tier, self.variables.inside[number, index, domain])
            if not homes and scope.bound:  # beyond the limit already: nothing new, the old stays where it is
                total.constant += len(scope.bound) * int(self.dense.domains.tier[self.dense.common(scope.bound)])
        return total

    def _span(self, _: int | None) -> Linear:
        """O2: sum over scopes of the leaves they touch."""
        total = Linear(constant=self.dense.constant_span)
        for number, scope in enumerate(self.dense.scopes):
            if scope.wanted:
                before = {int(self.dense.span_leaf[node]) for node in scope.bound if node >= 0}
                total.constant += len(before) + scope.lost_leaves
                total.add(1, *self._touched(number, before))
        return total

    def _touched(self, number: int, before: set[int]) -> Iterable[Variable]:
        touched: dict[int, Variable] = {}
        pods: dict[int, Linear] = defaultdict(Linear)
        for index in self.dense.scopes[number].classes:
            by_unit: dict[int, list[Variable]] = defaultdict(list)
            for node, variable in self.variables.count[index].items():
                by_unit[int(self.dense.span_leaf[node])].append(variable)
            for unit in (unit for unit in by_unit if unit not in before):
                if unit not in touched:
                    touched[unit] = self.program.integer(f"t_{number}_{unit}", 1, partial(reaches, pods[unit], 1))
                pods[unit].add(1, *by_unit[unit])
                most = min(self.dense.classes[index].size, sum(int(variable.upBound) for variable in by_unit[unit]))
                self.program.at_most("span", Linear().add(1, *by_unit[unit]).add(-most, touched[unit]), 0)
        return touched.values()

    def _network_cost(self, _: int | None) -> Linear:
        """O3: pairs are products of two decisions; :mod:`placer.search.milp.flows` makes them linear."""
        total, flows = Linear(constant=self.dense.constant_network), self.flows
        if flows is not None:
            for call in flows.network.calls:
                self._add_cost(total, flows, call)
        return total

    @staticmethod
    def _add_cost(total: Linear, flows: Flows, call: Call) -> None:
        for area, groups in enumerate(flows.groups):
            for group in groups:
                if group.cost:
                    total.plus(group.cost, flows.pairs(call, area, group, leaving=False))
        for node, area in enumerate(flows.network.area):
            total.plus(-int(flows.network.cost[area, area]), flows.together(call, node))

    def _packed_hyper_nodes(self, _: int | None) -> Linear:
        """O4: sum over empty HyperNodes of o[d]: v[n] <= o[leaf(n)] and o[d] <= o[parent(d)]."""
        for node, filled in self._filled().items():
            leaf = int(self.dense.leaf[node])
            if self._empty(leaf):
                self.program.at_most("packing", Linear().add(1, filled).add(-1, self._opened(leaf)), 0)
        return Linear().add(1, *self._opened_by_domain.values())

    def _empty(self, domain: int) -> bool:
        return domain != self.dense.domains.root and not self.dense.domains.used[domain]

    def _opened(self, domain: int) -> Variable:
        tree, opened = self.dense.domains, self._opened_by_domain
        if domain not in opened:
            inside = range(int(tree.begin[domain]), int(tree.end[domain]))
            filled = Linear().add(1, *(each for node, each in self._filled().items() if node in inside))
            opened[domain] = self.program.integer(f"o_{domain}", 1, partial(reaches, filled, 1))
            parent = int(tree.parent[domain])
            if self._empty(parent):
                self.program.at_most("packing", Linear().add(1, opened[domain]).add(-1, self._opened(parent)), 0)
        return opened[domain]

    def _packed_nodes(self, _: int | None) -> Linear:
        return Linear().add(1, *self._filled().values())

    def _filled(self) -> dict[int, Variable]:
        """v[n], 0 or 1, of each empty node, daemons apart: x[c, n] <= most(c, n) v[n], and, which tightens the LP, sum
        over c of request(c, r) x[c, n] <= free(n, r) v[n].
        """
        if not self._filled_by_node:
            for node, counts in self.variables.on_nodes().items():
                here = [(index, variable) for index, variable in counts if not self.dense.classes[index].daemon]
                if here and not self.dense.node_used[node]:
                    self._fill(node, here)
        return self._filled_by_node

    def _fill(self, node: int, here: Sequence[tuple[int, Variable]]) -> None:
        pods = Linear().add(1, *(variable for _, variable in here))
        filled = self._filled_by_node[node] = self.program.integer(f"v_{node}", 1, partial(reaches, pods, 1))
        for variable in pods.variables:
            self.program.at_most("packing", Linear().add(1, variable).add(-int(variable.upBound), filled), 0)
        for resource, room in enumerate(self.dense.free[node]):
            row = Linear().add(-int(room), filled)
            for index, variable in here:
                row.add(int(self.dense.classes[index].request[resource]), variable)
            self.program.at_most("packing", row, 0)
