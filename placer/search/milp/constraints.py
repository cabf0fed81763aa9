"""The hard rules as rows: one method per rule, in the order and under the names of :mod:`placer.rules`.

``models/milp.md`` has their formulas.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from placer.arrays import Call
from placer.arrays.model import BoolArray
from placer.problem import HostPort
from placer.search.milp.flows import Flows
from placer.search.milp.neighbour_variables import NeighbourVariables
from placer.search.milp.variables import Linear, MilpVariables, Variable
from placer.search.milp.zones import ByCrowd, ByZone, ZoneRows

__all__ = ["MilpConstraints"]


class MilpConstraints:
    """Adds every rule to the program of ``variables``; C3 and C4 are in the variables and the arrays."""

    def __init__(
        self,
        variables: MilpVariables,
        flows: Flows | None,
        zones: ZoneRows,
        neighbours: NeighbourVariables | None = None,
    ) -> None:
        self.variables, self.flows, self.zones, self.neighbours = variables, flows, zones, neighbours
        self.dense, self.program = variables.dense, variables.program
        #: a or b of the group or subgroup whose scope it is.
        self._owners = {group.scope: a for group, a in zip(self.dense.groups, variables.active, strict=True)}
        self._owners |= {sub.scope: b for sub, b in zip(self.dense.sub_groups, variables.enough, strict=True)}

    def add(self) -> None:
        """Add all rules, in the order of models/README.md."""
        self.once()
        self.capacity()
        self.eligibility()
        self.refusal()
        self.gang()
        self.subgroup()
        self.tier_limit()
        self.network_cost()
        self.bandwidth()
        self.numa()
        self.queue()
        self.pod_affinity()
        self.pod_anti_affinity()
        self.spread()
        self.exclusive()

    def once(self) -> None:
        """C1: of a class no more pods are placed than there are."""
        for index, pod_class in enumerate(self.dense.classes):
            self.program.at_most("once", self._placed(1, [index]), pod_class.size)

    def capacity(self) -> None:
        """C2: room per node and resource; host ports do not clash."""
        for node, counts in self.variables.on_nodes().items():
            for resource, room in enumerate(self.dense.free[node]):
                row = Linear()
                for index, variable in counts:
                    row.add(int(self.dense.classes[index].request[resource]), variable)
                self.program.at_most("capacity", row, int(room))
            self._ports(counts)

    def _ports(self, counts: Sequence[tuple[int, Variable]]) -> None:
        asking: dict[HostPort, list[Variable]] = defaultdict(list)
        for index, variable in counts:
            for port in set(self.dense.classes[index].host_ports):
                asking[port].append(variable)
        for port in asking:
            shut = (variable for other in asking if self._shut(port, other) for variable in asking[other])
            holders = list(dict.fromkeys(shut))
            if len(holders) > 1:
                self.program.at_most("ports", Linear().add(1, *holders), 1)

    @staticmethod
    def _shut(port: HostPort, other: HostPort) -> bool:
        """Whether ``other`` is kept out together with ``port``; two addresses that only share 0.0.0.0 are not."""
        return other == port or (other.ip == "0.0.0.0" and port.clashes(other))

    def eligibility(self) -> None:
        """C3: a count exists only where the class may be on the node."""

    def refusal(self) -> None:
        """C4: such pods are in no class."""

    def gang(self) -> None:
        """C5: a group that is not ready gets nothing. Ready: enough pods in all, per role, and ready subgroups per
        policy.
        """
        for group, active in zip(self.dense.groups, self.variables.active, strict=True):
            if active is None:
                continue
            self._only_with(group.classes, active, "gang")
            self._at_least(group.classes, group.short, active, "gang")
            for role, short in group.short_by_role:
                of_role = [index for index in group.classes if self.dense.classes[index].role == role]
                self._at_least(of_role, short, active, "gang")
            for policy, short in group.short_by_policy:
                row = Linear().add(-short, active)
                for sub in group.sub_groups:
                    enough = self.variables.enough[sub]
                    if self.dense.sub_groups[sub].policy == policy and enough is not None:
                        row.add(1, enough)
                self.program.at_least("gang", row, 0)

    def subgroup(self) -> None:
        """C6: a subgroup gets its size or nothing."""
        for sub, enough in zip(self.dense.sub_groups, self.variables.enough, strict=True):
            if enough is not None:
                self._only_with(sub.classes, enough, "subgroup")
                self._at_least(sub.classes, sub.short, enough, "subgroup")
                active = self.variables.active[sub.group]
                if active is not None:
                    self.program.at_most("subgroup", Linear().add(1, enough).add(-1, active), 0)

    def tier_limit(self) -> None:
        """C7: all pods of a scope lie in its home, a domain of a tier within the limit; by label a unit has one domain.

        The same rows say where a scope is for O2. Where pods run, only domains that hold them are homes.
        """
        rows = self.neighbours
        for row in rows.neighbours.confinements if rows is not None else ():
            assert rows is not None
            self.program.at_most("tier_limit", Linear().add(1, *rows.use(row.key, row.classes).values()), 1)
        for number, homes in enumerate(self.variables.homes):
            if homes is not None:
                self._one_home(number, homes)
                for index in self.dense.scopes[number].classes:
                    self._inside(number, index, homes)

    def _one_home(self, number: int, homes: dict[int, Variable]) -> None:
        row = Linear().add(1, *homes.values())
        if self.dense.scopes[number].bound:
            if homes:
                self.program.equal("tier_limit", row, 1)
            return
        owner = self._owners[number]
        if owner is None:
            self.program.at_most("tier_limit", row, 1)
        else:
            self.program.at_most("tier_limit", row.add(-1, owner), 0)

    def _inside(self, number: int, index: int, homes: dict[int, Variable]) -> None:
        inside = {
            domain: self.variables.inside[number, index, domain]
            for domain in homes
            if (number, index, domain) in self.variables.inside
        }
        for domain, pods in inside.items():
            row = Linear().add(1, pods).add(-self.variables.bounds.room(index, domain), homes[domain])
            self.program.at_most("tier_limit", row, 0)
        self.program.equal("tier_limit", self._placed(-1, [index]).add(1, *inside.values()), 0)
        tree = self.dense.domains
        for domain in inside:
            if domain != tree.root:
                row = Linear().add(1, *self.variables.within(index, domain))
                for home, pods in inside.items():
                    if self._below(home, domain):
                        row.add(-1, pods)
                self.program.at_least("tier_limit", row, 0)

    def _below(self, domain: int, top: int) -> bool:
        while domain >= 0:
            if domain == top:
                return True
            domain = int(self.dense.domains.parent[domain])
        return False

    def network_cost(self) -> None:
        """C8: where a caller is, every callee is near enough, and no caller where a running callee is too far."""
        flows = self.flows
        if flows is None:
            return
        if flows.network.majority:
            self._majority(flows)
            return
        for call in flows.network.calls:
            callers, callees = flows.staff[call.origin], flows.staff[call.destination]
            near = flows.network.near(call.limit)
            for area in range(len(near)):
                far = callees.inside(_where(~near[area]))
                if callers.bound[area]:
                    self.program.at_most("network_cost", far.row, 0)
                elif area in callers.new:
                    present = flows.steps(callers.new[area])[0]
                    self.program.at_most("network_cost", far.row.plus(far.most, present), far.most)
                if callees.bound[area]:
                    self.program.at_most("network_cost", callers.inside(_where(~near[:, area])).row, 0)

    def _majority(self, flows: Flows) -> None:
        """Of the callees of a pod in area a, itself left out, no more are too far than near.

        far - near <= most (1 - u[w, a, 1]), and where w runs in a, far - near <= max(0, far - near before).
        """
        by_caller: dict[int, list[Call]] = defaultdict(list)
        for call in flows.network.calls:
            by_caller[call.origin].append(call)
        for number, calls in by_caller.items():
            callers = flows.staff[number]
            for area in range(len(flows.groups)):
                surplus, most = self._surplus(flows, calls, area)
                if callers.bound[area]:
                    self.program.at_most("network_cost", surplus, max(0, surplus.constant))
                if area in callers.new and most > 0:
                    present = flows.steps(callers.new[area])[0]
                    self.program.at_most("network_cost", surplus.plus(most, present), most)

    @staticmethod
    def _surplus(flows: Flows, calls: Sequence[Call], area: int) -> tuple[Linear, int]:
        """How many more callees of a pod in an area are too far than near enough, and the most that it can be."""
        row, most = Linear(), 0
        for call in calls:
            callees, near = flows.staff[call.destination], flows.network.near(call.limit)[area]
            far = callees.inside(_where(~near))
            row.plus(1, far.row).plus(-1, callees.inside(_where(near)).row)
            row.constant += sum(-pods if near[other] else pods for other, pods in callees.bound.items())
            row.constant += call.origin == call.destination
            most += far.most
        return row, row.constant + most

    def bandwidth(self) -> None:
        """C9: per link, bandwidth times pairs in sum is at most the room that pods before leave of it."""
        flows = self.flows
        if flows is None:
            return
        rows = [Linear() for _ in flows.network.room]
        for call in flows.network.calls:
            for area, groups in enumerate(flows.groups):
                for group in groups:
                    if group.link >= 0 and call.bandwidth:
                        rows[group.link].plus(call.bandwidth, flows.pairs(call, area, group, leaving=True))
        for row, room in zip(rows, flows.network.room, strict=True):
            row.constant = 0  # pairs that are there before are not in the room
            self.program.at_most("bandwidth", row, room)

    def numa(self) -> None:
        """C10: pods on a node whose kubelet refuses some are dealt out to its zones, or are a crowd that it admits."""
        for node, plan in self.zones.plans.items():
            if isinstance(plan, ByCrowd):
                self._crowd(node, plan)
            else:
                self._zones(node, plan)

    def _zones(self, node: int, plan: ByZone) -> None:
        rooms = {(zone, at): Linear() for zone, room in enumerate(plan.rooms) for at in range(len(room))}
        for number, kind in enumerate(plan.kinds):
            row = self.zones.of_kind(node, kind)
            for zone in range(len(plan.rooms)):
                if (node, number, zone) in self.zones.inside:
                    pods = self.zones.inside[node, number, zone]
                    row.add(-1, pods)
                    for at, need, _ in kind.units[0].amounts:
                        rooms[zone, at].add(need, pods)
            self.program.equal("numa", row, 0)
        for (zone, at), row in rooms.items():
            self.program.at_most("numa", row, plan.rooms[zone][at])

    def _crowd(self, node: int, plan: ByCrowd) -> None:
        chosen = self.zones.chosen[node]
        self.program.at_most("numa", Linear().add(1, *chosen), 1)
        rows = [self.zones.of_kind(node, kind) for kind in plan.kinds]
        for crowd, there in zip(plan.crowds, chosen, strict=True):
            for kind, count in crowd:
                rows[kind].add(-count, there)
        for row in rows:
            self.program.equal("numa", row, 0)

    def queue(self) -> None:
        """C11: the classes in a queue and below it take at most the room of its capability."""
        for limit in self.dense.queue_rows:
            row = Linear()
            for index in limit.classes:
                amount = int(self.dense.classes[index].request[limit.resource])
                row.add(amount, *self.variables.placed(index))
            self.program.at_most("queue", row, limit.room)

    def pod_affinity(self) -> None:
        """C12: owners only where a match is, or next to the first; there is one first, an owner that matches itself."""
        rows = self.neighbours
        for row in rows.neighbours.attractions if rows is not None else ():
            assert rows is not None
            firsts = rows.firsts(row)
            for place, key in enumerate(row.keys):
                others = rows.by_domain(key, row.others)
                for domain, owners in rows.by_domain(key, row.owners).items():
                    if domain not in row.ground[place]:
                        room = [first for at, first in firsts.items() if at[place] == domain]
                        room += [rows.some(others[domain])] if domain in others else []
                        limit = Linear().add(1, *owners).add(-rows.most(owners), *room)
                        self.program.at_most("pod_affinity", limit, 0)

    def pod_anti_affinity(self) -> None:
        """C13: of those that keep each other off one; nothing that is kept off next to it."""
        rows = self.neighbours
        for row in rows.neighbours.repulsions if rows is not None else ():
            assert rows is not None
            mutual, owning, meant = rows.apart(row)
            for domain in sorted({*mutual, *owning, *meant}):
                bar = Linear().add(1, *mutual.get(domain, ()))
                if domain in owning:
                    bar.add(1, rows.some(owning[domain]))
                self.program.at_most("pod_anti_affinity", bar, 1)
                kept_off = meant.get(domain, [])
                most = rows.most(kept_off)
                self.program.at_most("pod_anti_affinity", Linear().add(1, *kept_off).plus(most, bar), most)

    def spread(self) -> None:
        """C14: where an owner is, the domain has at most ``maxSkew`` more than the emptiest one; running pods count."""
        rows = self.neighbours
        for row in rows.neighbours.spreads if rows is not None else ():
            assert rows is not None
            counts = rows.counted(row)
            if len(counts) == 1 and not row.floor:
                continue  # it is the one with fewest itself
            fewest = rows.fewest(row, counts)
            for domain, owners in rows.by_domain(row.key, row.owners).items():
                if domain in counts:
                    ahead = Linear().plus(1, counts[domain])
                    most = max(0, ahead.constant + rows.most(ahead.variables) - row.skew)
                    ahead.add(-1, *([] if fewest is None else [fewest])).add(most, rows.some(owners))
                    self.program.at_most("spread", ahead, row.skew + most)

    def exclusive(self) -> None:
        """C15: a domain has pods of one exclusive unit at most."""
        rows = self.neighbours
        for row in rows.neighbours.exclusions if rows is not None else ():
            assert rows is not None
            by_domain: dict[int, Linear] = defaultdict(Linear)
            for unit in row.units:
                for domain, used in rows.use(row.key, unit).items():
                    by_domain[domain].add(1, used)
            for units in by_domain.values():
                self.program.at_most("exclusive", units, 1)

    # Rows that several rules share

    def _placed(self, coefficient: int, classes: Sequence[int]) -> Linear:
        row = Linear()
        for index in classes:
            row.add(coefficient, *self.variables.placed(index))
        return row

    def _only_with(self, classes: Sequence[int], gate: Variable, rule: str) -> None:
        for index in classes:
            most = self.variables.bounds.room(index, self.dense.domains.root)
            self.program.at_most(rule, self._placed(1, [index]).add(-most, gate), 0)

    def _at_least(self, classes: Sequence[int], least: int, gate: Variable, rule: str) -> None:
        self.program.at_least(rule, self._placed(1, classes).add(-least, gate), 0)


def _where(mask: BoolArray) -> set[int]:
    return set(np.flatnonzero(mask).tolist())
