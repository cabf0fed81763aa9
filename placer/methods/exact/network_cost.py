"""O3 ``networkCost`` as a linear expression, and rows that follow from the room of nodes and areas."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

import numpy as np
import numpy.typing as npt
from ortools.sat.python.cp_model import IntVar

from placer.dense.network import network_cost
from placer.methods.exact.calls import Calls, Tie
from placer.methods.exact.variables import Linear, solver_form

__all__ = ["NetworkCost"]

IntArray = npt.NDArray[np.int64]

#: Per workload: area or place to its ties there, each as the workload at the other end and the pairs.
Tied = list[dict[int, list[tuple[int, list[IntVar]]]]]
#: More than any pod asks for.
LARGE = 2**62


class NetworkCost:
    """Adds to the model of ``calls`` what O3 needs.

    Parameters
    ----------
    calls
        Made with ``tight``; places where both ends of a call may be are single nodes.
    """

    def __init__(self, calls: Calls) -> None:
        self.calls, self.network, self.model = calls, calls.network, calls.model
        self.places = calls.variables.places
        self._inside: Tied = [defaultdict(list) for _ in calls.size]
        self._on: Tied = [defaultdict(list) for _ in calls.size]

    def value(self, constant: int) -> Linear:
        """Sum over calls and areas of cost times pairs, less what pairs on one node save, and ``constant``.

        Pairs of running pods are a constant, those of one that runs and a new one linear in the count of the new ones.
        """
        total = Linear(constant=constant + network_cost(self.network, ()))
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
        """Implied: beside each pod of a workload is only so much room for pods that it is tied to."""
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
        """int64, shape (workloads, resources): what each pod of a workload asks for at least."""
        requests = self.calls.dense.requests
        rows = [requests[list(each.classes)].min(axis=0, initial=LARGE) for each in self.network.workloads]
        return np.array(rows, dtype=np.int64).reshape(len(rows), requests.shape[1])
