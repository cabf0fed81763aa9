"""The values of ``Dense.levels`` as linear expressions; what only they need is made when one is asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from ortools.sat.python.cp_model import IntVar

from placer.methods.exact.bundles import Bundle, Reach
from placer.methods.exact.calls import Calls
from placer.methods.exact.network_cost import NetworkCost
from placer.methods.exact.variables import Linear, Variables, solver_form

__all__ = ["Objective"]


class Objective:
    """Value after value, equal to :func:`placer.score.score` at every optimum.

    Where a value is minimised its expression may exceed the score of a solution that was cut short, never fall below.

    Parameters
    ----------
    variables
        The model they are expressed in.
    calls
        Of it; None where nobody calls anybody.
    """

    def __init__(self, variables: Variables, calls: Calls | None) -> None:
        self.variables, self.calls = variables, calls
        self.dense, self.model = variables.dense, variables.model
        self.watched = [
            (index, bundle) for index, bundle in enumerate(variables.all) if self.dense.scopes[bundle.scope].wanted
        ]
        self._made: dict[int, Linear] = {}

    def level(self, index: int) -> Linear:
        """Return the expression of ``Dense.levels[index]``."""
        makers: dict[str, Callable[[int | None], Linear]] = {
            "admitted": self.admitted,
            "placed": self.placed,
            "locality": self.locality,
            "span": self.span,
            "networkCost": self.network_cost,
            "packedHyperNodes": self.packed_hyper_nodes,
            "packedNodes": self.packed_nodes,
        }
        if index not in self._made:
            name, priority = self.dense.levels[index]
            self._made[index] = makers[name](priority)
        return self._made[index]

    def weight(self) -> Linear:
        """Sum of the weights of all placed pods, whatever their priority."""
        return self._weights(range(len(self.dense.groups)))

    def admitted(self, priority: int | None) -> Linear:
        """O1: sum over groups of the priority of need(g) a[g]."""
        row = Linear()
        for bundle, active in zip(self.variables.bundles.gangs, self.variables.active, strict=False):
            group = self.dense.groups[bundle.members[0]]
            if group.priority == priority and group.need_weight:
                if active is None:
                    row.constant += group.need_weight * bundle.many
                else:
                    row.add(group.need_weight, active)
        return row

    def placed(self, priority: int | None) -> Linear:
        """O1: sum over items of the priority of weight(i) y[i, p]."""
        return self._weights([index for index, group in enumerate(self.dense.groups) if group.priority == priority])

    def _weights(self, groups: range | list[int]) -> Linear:
        row, chosen = Linear(), set(groups)
        for index, item in enumerate(self.variables.bundles.items):
            first = self.dense.classes[item.classes[0]]
            if first.group in chosen:
                row.add(first.weight, *self.variables.placed(index))
        return row

    def locality(self, _: int | None = None) -> Linear:
        """O2: sum over scopes of placed pods times tier(home).

        Whole: (running + pods) sum over d of tier(d) z[d]; elastic: sum over tiers t of t w[t], where w[t] is the
        number of placed pods if the home has tier t.
        """
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
        """What running pods add where nothing new may come."""
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
        row = Linear()
        for item in bundle.items:
            row.add(-1, *self.variables.placed(item))
        for tier, chosen_of_tier in by_tier.items():
            pods = self.variables.spread[index, tier] = self.variables.integer(most)
            self.model.add(solver_form(Linear().add(1, pods).add(-most, *chosen_of_tier)) <= 0)
            row.add(1, pods)
            total.add(tier, pods)
        self.model.add(solver_form(row) == bound)

    def span(self, _: int | None = None) -> Linear:
        """O2: sum over scopes of the leaves they touch, t[s, l] >= y[i, p] / most for p in l.

        A member that lies in one leaf touches one. For the others two sets of implied rows tighten the bound: in a
        leaf that is touched are at most the pods it holds, and a home is not touched in fewer leaves than its pods
        need.
        """
        total = Linear(constant=self.dense.constant_span)
        for index, bundle in self.watched:
            if bundle.reach is Reach.LEAF:
                total.add(1, *self.variables.homes[index].values())
            else:
                self._touch(total, index, bundle)
        return total

    def _touch(self, total: Linear, index: int, bundle: Bundle) -> None:
        scope = self.dense.scopes[bundle.scope]
        before = {int(self.dense.leaf_unit[node]) for node in scope.bound if node >= 0}
        total.constant += len(before) + scope.lost_leaves
        touched: dict[int, IntVar] = {}
        for item in bundle.items:
            for unit, counts in self.variables.by_unit(item).items():
                if unit not in before:
                    if unit not in touched:
                        touched[unit] = self.variables.touched[index, unit] = self.variables.integer(1)
                    most = min(self._room(item, unit), self.variables.bundles.items[item].total)
                    self.model.add(solver_form(Linear().add(1, *counts).add(-most, touched[unit])) <= 0)
        total.add(1, *touched.values())
        if bundle.whole and not scope.bound:
            self._cover(index, bundle, touched)

    def _cover(self, index: int, bundle: Bundle, touched: dict[int, IntVar]) -> None:
        """A whole member touches in each of its homes at least as many leaves as its pods need there."""
        inside: dict[int, list[int]] = defaultdict(list)
        for unit in touched:
            for domain in self.variables.path(self.variables.unit_leaf[unit]):
                inside[domain].append(unit)
        for domain, chosen in self.variables.homes[index].items():
            least = max((self._fewest(item, inside[domain]) for item in bundle.items), default=0)
            row = Linear().add(1, *(touched[unit] for unit in inside[domain])).add(-least, chosen)
            self.model.add(solver_form(row) >= 0)

    def _fewest(self, item: int, units: list[int]) -> int:
        """Fewest of the leaves that hold all pods of the item: the largest first."""
        left, count = self.variables.bundles.items[item].total, 0
        for room in sorted((self._room(item, unit) for unit in units), reverse=True):
            if left <= 0:
                break
            left, count = left - room, count + 1
        return count

    def _room(self, item: int, unit: int) -> int:
        fits = self.variables.bundles.items[item].fits
        return sum(int(fits[node]) for node in self.variables.unit_nodes[unit])

    def network_cost(self, _: int | None = None) -> Linear:
        """O3: sum over calls and areas of cost times pairs, less what pairs on one node save."""
        constant = self.dense.constant_network
        return Linear(constant=constant) if self.calls is None else NetworkCost(self.calls).value(constant)

    def packed_hyper_nodes(self, _: int | None = None) -> Linear:
        """O4: sum over empty domains of o[d]: nodes are filled only in opened leaves, o[parent] >= o[d]."""
        tree = self.dense.domains
        for place, filled in self._filled().items():
            where = self.variables.places[place]
            if not tree.used[where.leaf] and where.leaf != tree.root:
                row = Linear().add(1, filled).add(-len(where.nodes), self._opened(where.leaf))
                self.model.add(solver_form(row) <= 0)
        return Linear().add(1, *self.variables.opened.values())

    def _opened(self, domain: int) -> IntVar:
        """Whether a domain is empty no more; with it all empty ones that hold it."""
        tree = self.dense.domains
        if domain not in self.variables.opened:
            opened = self.variables.opened[domain] = self.variables.integer(1)
            parent = int(tree.parent[domain])
            if parent != tree.root and not tree.used[parent]:
                self.model.add_implication(opened, self._opened(parent))
        return self.variables.opened[domain]

    def packed_nodes(self, _: int | None = None) -> Linear:
        """O4: sum over empty places of u[p], how many of its nodes are filled."""
        return Linear().add(1, *self._filled().values())

    def _filled(self) -> dict[int, IntVar]:
        """Per empty place the number of nodes that are empty no more.

        A single node has room only if it is filled: sum over i of request(i, r) y[i, n] <= free(n, r) u[n]. On a place
        that is counted, per size s: sum over i with size(i) >= s of size(i) y[i, p] <= u[p] times the room of one node
        in pieces of s (its nodes hold equally many of each size).
        """
        if not self.variables.filled:
            there: dict[int, list[tuple[int, IntVar]]] = defaultdict(list)
            for item, counts in enumerate(self.variables.counts):
                if not self.variables.first(item).daemon:
                    for place, variable in counts.items():
                        there[place].append((item, variable))
            for place, counts_there in there.items():
                if not self.variables.places[place].used:
                    filled = self.variables.integer(len(self.variables.places[place].nodes))
                    self.variables.filled[place] = filled
                    self._fill(place, filled, counts_there)
        return self.variables.filled

    def _fill(self, place: int, filled: IntVar, there: list[tuple[int, IntVar]]) -> None:
        where, requests = self.variables.places[place], self.variables.requests
        room = [int(amount) for amount in self.dense.free[where.nodes[0]]]
        if where.resource is None:
            for resource, amount in enumerate(room):
                row = Linear().add(-amount, filled)
                for item, variable in there:
                    row.add(requests[item][resource], variable)
                self.model.add(solver_form(row) <= 0)
            for item, variable in there:
                most = int(self.variables.sizes[item][place])
                self.model.add(solver_form(Linear().add(1, variable).add(-most, filled)) <= 0)
        for size in where.sizes:
            row = Linear().add(-(room[where.resource or 0] // size), filled)
            for item, variable in there:
                row.add(requests[item][where.resource or 0] // size, variable)
            self.model.add(solver_form(row) <= 0)

    def _tier(self, domain: int) -> int:
        return int(self.dense.domains.tier[domain])
