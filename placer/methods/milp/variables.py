"""Decision variables of the MILP: how many pods of each class go to each node, and what follows from that.

Nothing is bundled: a class of the arrays on a node of the arrays is one integer. What only a value of the objective
needs is made when that value is decided.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import numpy as np
import numpy.typing as npt

from placer.dense import Dense, Solution
from placer.dense.score import ready
from placer.methods.events import TooLarge
from placer.methods.milp.flows import Flows, size_of_flows
from placer.methods.milp.program import PulpProgram, Values, Variable
from placer.methods.milp.zones import Plan, Zones, plans_of, size_of_plans

__all__ = ["MOST_VARIABLES", "MilpVariables"]

IntArray = npt.NDArray[np.int64]

#: A program with more counts and homes than this is not built: PuLP alone would take minutes and gigabytes for it, and
#: no solver it knows gets anywhere.
MOST_VARIABLES = 300_000


class MilpVariables:
    """What the program decides.

    Parameters
    ----------
    dense
        The instance.

    Attributes
    ----------
    count
        x[c, n], integer, per class: node to the number of its pods that go there, at most what fits. Only where they
        may be (C3) and where a limit of their scopes leaves them a home (C7).
    active
        a[g], 0 or 1, per group: whether it is ready (C5). None where it is ready with no new pod at all.
    enough
        b[s], 0 or 1, per subgroup: whether it has its size (C6). None where it has it with no new pod.
    homes
        z[s, d], 0 or 1, per scope: domain to whether it is the smallest that holds all its pods. None for a scope that
        no limit and no value looks at.
    inside
        w[s, c, d] by scope, class, domain: pods of the class where d is the home of the scope, else 0.
    touched
        t[s, u], 0 or 1: whether new pods of the scope are in the leaf u that it is not in yet. Made with ``span``.
    filled, opened
        v[n] and o[d], 0 or 1: whether an empty node or HyperNode is empty no more. Made with packing.
    flows
        Pods of workloads that call each other, by area, and their pairs. None without a network.
    zones
        Pods on nodes whose kubelets refuse what they cannot align, by NUMA zone or crowd.

    Raises
    ------
    TooLarge
        More than :data:`MOST_VARIABLES`, or too many crowds before kubelets; nothing was built.
    """

    def __init__(self, dense: Dense) -> None:
        self.dense, self.program = dense, PulpProgram()
        self.watched = any(name in ("locality", "span") for name, _ in dense.levels)
        domains = [self._domains(scope) for scope in range(len(dense.scopes))]
        self.fits = self._fits(domains)
        self.sums = [np.concatenate(([0], np.cumsum(row))) for row in self.fits]
        homes = [self._able(scope, found) for scope, found in enumerate(domains)]
        plans = plans_of(dense, self.fits)
        self._check_size(homes, plans)
        self.count = [self._counts(index, row) for index, row in enumerate(self.fits)]
        self.active = [self._active(index) for index in range(len(dense.groups))]
        self.enough = [self._enough(index) for index in range(len(dense.sub_groups))]
        self.homes = [self._homes(scope, found) for scope, found in enumerate(homes)]
        self.inside: dict[tuple[int, int, int], Variable] = {}
        self._make_inside()
        self.touched: dict[tuple[int, int], Variable] = {}
        self.filled: dict[int, Variable] = {}
        self.opened: dict[int, Variable] = {}
        network = dense.network
        self.flows = None if network is None else Flows(dense, network, self.program, self.count)
        self.zones = Zones(dense, plans, self.program, self.count)

    # Making them

    def _domains(self, number: int) -> list[int] | None:
        """Domains that hold all running pods of a scope, up to its limit; None where nothing looks at them."""
        scope, tree = self.dense.scopes[number], self.dense.domains
        if scope.limit is None and not (scope.wanted and self.watched):
            return None
        able = np.ones(len(tree.tier), dtype=bool) if scope.limit is None else tree.tier <= scope.limit
        for node in set(scope.bound):
            there = np.arange(len(tree.tier)) == tree.root
            if node >= 0:
                there |= (tree.begin <= node) & (node < tree.end)
            able = able & there
        return [int(domain) for domain in np.flatnonzero(able)]

    def _fits(self, domains: list[list[int] | None]) -> list[IntArray]:
        """Most pods of each class on each node: int64, shape (nodes,), per class."""
        fits = [self.dense.fits(index) for index in range(len(self.dense.classes))]
        for scope, found in enumerate(domains):
            if found is not None:
                outside = np.ones(len(self.dense.nodes), dtype=bool)
                for domain in found:
                    outside[self.dense.domains.begin[domain] : self.dense.domains.end[domain]] = False
                for index in self.dense.scopes[scope].classes:
                    fits[index] = np.where(outside, 0, fits[index])
        return fits

    def _able(self, scope: int, domains: list[int] | None) -> list[int] | None:
        """Without domains that could hold no new pod; they stay where pods run, whose domain may be one."""
        asked = self.dense.scopes[scope]
        if domains is None or asked.bound:
            return domains
        return [domain for domain in domains if any(self.room(index, domain) for index in asked.classes)]

    def _check_size(self, homes: list[list[int] | None], plans: dict[int, Plan]) -> None:
        size = sum(int(np.count_nonzero(row)) for row in self.fits)
        for scope, found in zip(self.dense.scopes, homes, strict=True):
            size += len(found or ()) * (1 + len(scope.classes))
        size += size_of_flows(self.dense, self.fits) + size_of_plans(plans)
        if size > MOST_VARIABLES:
            raise TooLarge(f"{size:,} variables, at most {MOST_VARIABLES:,}")

    def _counts(self, index: int, fits: IntArray) -> dict[int, Variable]:
        return {int(node): self.program.integer(f"x_{index}_{node}", int(fits[node])) for node in np.flatnonzero(fits)}

    def _enough(self, index: int) -> Variable | None:
        return self.program.integer(f"b_{index}", 1) if self.dense.sub_groups[index].short else None

    def _active(self, index: int) -> Variable | None:
        group = self.dense.groups[index]
        gated = group.short or group.short_by_role or group.short_by_policy
        return self.program.integer(f"a_{index}", 1) if gated else None

    def _homes(self, scope: int, domains: list[int] | None) -> dict[int, Variable] | None:
        if domains is None:
            return None
        return {domain: self.program.integer(f"z_{scope}_{domain}", 1) for domain in domains}

    def _make_inside(self) -> None:
        for scope, homes in enumerate(self.homes):
            for index, domain in product(self.dense.scopes[scope].classes, homes or ()):
                most = self.room(index, domain)
                if most:
                    name = f"w_{scope}_{index}_{domain}"
                    self.inside[scope, index, domain] = self.program.real(name, most)

    # What the rules and the values ask again and again

    def room(self, index: int, domain: int) -> int:
        """Most pods of a class in a domain, each node looked at by itself: the big M of all rows about domains."""
        tree, sums = self.dense.domains, self.sums[index]
        return min(self.dense.classes[index].size, int(sums[tree.end[domain]] - sums[tree.begin[domain]]))

    def placed(self, index: int) -> list[Variable]:
        """Counts of a class on all nodes."""
        return list(self.count[index].values())

    def within(self, index: int, domain: int) -> list[Variable]:
        """Counts of a class on the nodes of a domain."""
        begin, end = int(self.dense.domains.begin[domain]), int(self.dense.domains.end[domain])
        return [variable for node, variable in self.count[index].items() if begin <= node < end]

    def on_nodes(self) -> dict[int, list[tuple[int, Variable]]]:
        """Node to pairs of a class and its count there; nodes that take nothing absent."""
        found: dict[int, list[tuple[int, Variable]]] = defaultdict(list)
        for index, counts in enumerate(self.count):
            for node, variable in counts.items():
                found[node].append((index, variable))
        return found

    # Between solutions and values

    def read(self, found: dict[Variable, float], tolerance: float) -> Solution | None:
        """Solution that counts mean, rounded; None where one is no integer within the tolerance."""
        solution: Solution = {}
        for index, counts in enumerate(self.count):
            for node, variable in counts.items():
                count = round(found[variable])
                if abs(found[variable] - count) > tolerance:
                    return None
                if count:
                    solution[index, node] = count
        return solution

    def values(self, solution: Solution) -> Values | None:
        """Value of every variable as the solution has it, each from its meaning; None where it cannot be said here."""
        values = dict.fromkeys(self.program.variables, 0)
        totals: dict[int, int] = defaultdict(int)
        for (index, node), count in solution.items():
            if node not in self.count[index]:
                return None
            values[self.count[index][node]] = count
            totals[index] += count
        self._gates(values, totals)
        for scope, homes in enumerate(self.homes):
            if homes is not None and not self._home(values, solution, totals, scope, homes):
                return None
        self._opened(values, solution)
        if self.flows is not None:
            self.flows.fill(values)
        self.zones.fill(values, solution)
        return self.program.carry(values)

    def _gates(self, values: Values, totals: dict[int, int]) -> None:
        for group, variable in enumerate(self.active):
            if variable is not None:
                values[variable] = int(ready(self.dense, group, totals))
        for sub, variable in zip(self.dense.sub_groups, self.enough, strict=True):
            if variable is not None:
                values[variable] = int(sum(totals[index] for index in sub.classes) >= sub.short)

    def _home(
        self, values: Values, solution: Solution, totals: dict[int, int], number: int, homes: dict[int, Variable]
    ) -> bool:
        """Set home, pods inside it and leaves touched of a scope; say whether there is such a home."""
        scope = self.dense.scopes[number]
        nodes = {node for index, node in solution if index in scope.classes}
        home = self.dense.common((*scope.bound, *nodes))
        if home not in homes:  # a scope without new pods needs none
            return not nodes
        values[homes[home]] = 1
        for index in scope.classes:
            if totals[index]:
                values[self.inside[number, index, home]] = totals[index]
        for unit in {int(self.dense.leaf_unit[node]) for node in nodes}:
            if (number, unit) in self.touched:
                values[self.touched[number, unit]] = 1
        return True

    def _opened(self, values: Values, solution: Solution) -> None:
        tree = self.dense.domains
        for index, node in solution:
            if not self.dense.classes[index].daemon and node in self.filled:
                values[self.filled[node]] = 1
                for domain, variable in self.opened.items():
                    if tree.begin[domain] <= node < tree.end[domain]:
                        values[variable] = 1
