"""The network of a part of an instance: pods that stay run there, and links have left what they do not take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from placer.dense import Call, DenseNetwork, Solution, Workload
from placer.methods.decomposed.incumbent_state import IncumbentState
from placer.methods.exact.calls import surplus_of

__all__ = ["PartNetwork"]

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PartNetwork:
    """Workloads of the part and their partners, on its nodes.

    Parameters
    ----------
    standing
        The whole instance, and a solution of it that keeps all rules.
    nodes
        int64: nodes of the part, ascending.
    freed
        What is free again.
    class_number
        Class of the whole instance to that of the part.
    slack
        Whether the part may use what the links have left; else only what its own pods had of them.
    """

    standing: IncumbentState
    nodes: IntArray
    freed: Solution
    class_number: Mapping[int, int]
    slack: bool

    @property
    def whole(self) -> DenseNetwork:
        """Of the whole instance, which has one."""
        assert self.standing.dense.network is not None
        return self.standing.dense.network

    @cached_property
    def mine(self) -> frozenset[int]:
        """Workloads, by their number in the whole instance, that the part decides about."""
        owner = self.standing.dense.workload_of
        return frozenset(owner[index] for index in self.class_number if index in owner)

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """Calls that they make and take; with ``majority`` all calls of those who make one of these."""
        found = [call for call in self.whole.calls if call.origin in self.mine or call.destination in self.mine]
        if self.whole.majority:
            origins = {call.origin for call in found}
            found = [call for call in self.whole.calls if call.origin in origins]
        return tuple(found)

    @cached_property
    def number(self) -> dict[int, int]:
        """Workload of the whole instance to that of the part."""
        ends = dict.fromkeys(end for call in self.calls for end in (call.origin, call.destination))
        return {workload: number for number, workload in enumerate(ends)}

    @cached_property
    def stays(self) -> dict[int, Counter[int]]:
        """Workload to node to its new pods that stay there."""
        found = {workload: self.standing.pods_of(workload) for workload in self.number}
        for (index, node), count in self.freed.items():
            workload = self.standing.dense.workload_of.get(index)
            if workload is not None:
                found[workload][node] -= count
        return {workload: +here for workload, here in found.items()}

    @cached_property
    def areas(self) -> dict[int, int]:
        """Area of the whole instance to that of the part: where its nodes are, and where partners are."""
        there = {int(area) for area in self.whole.area[self.nodes]}
        for workload in self.number:
            one = self.whole.workloads[workload]
            there.update(area for _, area, _ in (*one.bound, *one.leaving))
            there.update(int(self.whole.area[node]) for node in self.stays[workload])
        return {area: number for number, area in enumerate(sorted(there))}

    def network(self) -> DenseNetwork | None:
        """The network of the part; None where it decides about nobody who calls or is called."""
        if self.standing.dense.network is None or not self.calls:
            return None
        kept = np.array(list(self.areas), dtype=np.int64)
        link = self.whole.link[np.ix_(kept, kept)]
        links = np.unique(link[link >= 0])
        rooms = self._rooms()
        return replace(
            self.whole,
            area=np.array([self.areas[int(area)] for area in self.whole.area[self.nodes]], dtype=np.int64),
            cost=self.whole.cost[np.ix_(kept, kept)],
            link=np.where(link >= 0, np.searchsorted(links, link), -1),
            room=tuple(rooms[int(each)] for each in links),
            workloads=tuple(self._workload(workload) for workload in self.number),
            calls=tuple(
                replace(call, origin=self.number[call.origin], destination=self.number[call.destination])
                for call in self.calls
            ),
        )

    def _workload(self, index: int) -> Workload:
        one = self.whole.workloads[index]
        node_number = {int(node): position for position, node in enumerate(self.nodes)}
        there: Counter[tuple[int, int]] = Counter()
        for node, area, count in one.bound:
            there[node_number.get(node, -1), self.areas[area]] += count
        for node, count in self.stays[index].items():
            there[node_number.get(node, -1), self.areas[int(self.whole.area[node])]] += count
        leaving = ((node_number.get(node, -1), self.areas[area], count) for node, area, count in one.leaving)
        return replace(
            one,
            classes=tuple(self.class_number[each] for each in one.classes if each in self.class_number),
            bound=tuple((node, area, count) for (node, area), count in sorted(there.items())),
            leaving=tuple(leaving),
        )

    def _rooms(self) -> list[int]:
        """What the part may take of each link."""
        communication = self.standing.communication
        assert communication is not None
        mine: Counter[tuple[int, int]] = Counter()
        for (index, node), count in self.freed.items():
            workload = self.standing.dense.workload_of.get(index)
            if workload is not None:
                mine[workload, node] += count
        freed = communication.freed(mine)
        if not self.slack:
            return freed
        used = communication.used()
        return [room - used[link] + freed[link] for link, room in enumerate(self.whole.room)]

    def surplus(self) -> dict[tuple[int, int], int]:
        """With ``majority``: workload and area of the part to how many more callees may be too far than near enough.

        For new callers that stay there 0, for running ones what they have by running callees alone.
        """
        if self.standing.dense.network is None or not self.whole.majority:
            return {}
        bound = np.zeros((len(self.whole.workloads), len(self.whole.cost)), dtype=np.int64)
        for number, workload in enumerate(self.whole.workloads):
            for _, area, count in workload.bound:
                bound[number, area] += count
        found = {}
        for origin in {call.origin for call in self.calls}:
            mine = [call for call in self.whole.calls if call.origin == origin]
            new = {int(self.whole.area[node]) for node in self.stays[origin]}
            for area in {*new, *np.flatnonzero(bound[origin]).tolist()}:
                most = 0 if area in new else max(0, surplus_of(self.whole, bound, mine, area))
                found[self.number[origin], self.areas[area]] = most
        return found

    def apps(self) -> frozenset[int]:
        """AppGroups that the part decides about."""
        return frozenset(self.whole.workloads[workload].app for workload in self.mine)
