"""Workloads that call each other, and the network between the nodes, by index (C8, C9, O3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from placer.arrays.solution import BoolArray, IntArray
from placer.problem import Area, Dependency, Instance, Key, Link, Network

#: Node (-1: one that cannot take anything new), area and count of pods that are there before.
There = tuple[int, int, int]
#: Cost of a pair that nothing limits.
NO_LIMIT = 2**31 - 1


@dataclass(frozen=True)
class Workload:
    """Pods of one workload of the AppGroup number ``app``.

    ``classes``: of its pending pods; a class is of one workload. ``bound``: running pods, which count in C8, C9 and O3.
    ``leaving``: pods being deleted, which still use their links (C9).
    """

    app: int
    classes: tuple[int, ...]
    bound: tuple[There, ...] = ()
    leaving: tuple[There, ...] = ()


@dataclass(frozen=True)
class Call:
    """Every placed pod of ``origin`` calls every placed pod of ``destination``; both are indices of workloads.

    ``limit``: highest cost of a pair that is not in one area (C8). ``bandwidth``: of a pair on its link, in bit/s (C9).
    """

    origin: int
    destination: int
    limit: int
    bandwidth: int


@dataclass(frozen=True)
class DenseNetwork:
    """Areas of nodes, the cost of a call between two of them, and who calls whom.

    ``area``: int64, shape (nodes,). ``cost``, ``link``: int64, shape (areas, areas): from a node of one area to
    *another* node of the other; the limited link, -1: none. ``room``: per link the rest of its capacity, in bit/s, at
    least 0. ``calls``: those of which one end is pending. ``majority``: a pod has no more callees too far than near
    enough (C8).
    """

    area: IntArray
    cost: IntArray
    link: IntArray
    room: tuple[int, ...]
    workloads: tuple[Workload, ...]
    calls: tuple[Call, ...]
    majority: bool = False

    def near(self, limit: int) -> BoolArray:
        """Pairs of areas between which a call within ``limit`` may be: bool, shape (areas, areas)."""
        found: BoolArray = self.cost <= limit
        return found | np.eye(len(self.cost), dtype=bool)

    def at(self, nodes: IntArray) -> DenseNetwork:
        """The same over some of the nodes, in that order; pods on others keep their areas."""
        number = {int(node): position for position, node in enumerate(nodes)}

        def moved(there: tuple[There, ...]) -> tuple[There, ...]:
            return tuple((number.get(node, -1), area, count) for node, area, count in there)

        workloads = tuple(
            replace(each, bound=moved(each.bound), leaving=moved(each.leaving)) for each in self.workloads
        )
        return replace(self, area=self.area[nodes], workloads=workloads)

    def total_cost(self, places: Iterable[tuple[tuple[int, int], int]]) -> int:
        """O3 of a solution, as (class, node) and count: the sum over all placed pairs of these calls, running ones
        included.
        """
        on, areas = self._counted(places)
        total = 0
        for call in self.calls:
            callers, callees = areas[call.origin], areas[call.destination]
            # Most workloads are in few areas of many.
            here, there = np.flatnonzero(callers), np.flatnonzero(callees)
            total += int(callers[here] @ self.cost[np.ix_(here, there)] @ callees[there])
            mine, theirs = on[call.origin], on[call.destination]
            same = ((count * theirs[node], node) for node, count in mine.items() if node in theirs)
            total -= sum(pairs * int(self.cost[self.area[node], self.area[node]]) for pairs, node in same)
        return total

    def _counted(self, places: Iterable[tuple[tuple[int, int], int]]) -> tuple[list[Counter[int]], IntArray]:
        """Shapes: per workload by node, and int64 (workloads, areas)."""
        owner = {index: number for number, each in enumerate(self.workloads) for index in each.classes}
        on: list[Counter[int]] = [Counter() for _ in self.workloads]
        areas = np.zeros((len(self.workloads), len(self.cost)), dtype=np.int64)
        for number, each in enumerate(self.workloads):
            for node, area, count in each.bound:
                areas[number, area] += count
                if node >= 0:
                    on[number][node] += count
        for (index, node), count in places:
            if index in owner:
                on[owner[index]][node] += count
                areas[owner[index], self.area[node]] += count
        return on, areas


def read_network(
    instance: Instance, nodes: Sequence[str], workload_of: Mapping[tuple[Key, str], Sequence[int]]
) -> DenseNetwork | None:
    """The network as far as it concerns pods that can be placed; None where it concerns none.

    ``workload_of``: AppGroup and workload to the classes of its pending pods.
    """
    network = instance.network
    if network is None or not workload_of:
        return None
    return _NetworkReader(instance, network, nodes, workload_of).read()


class _NetworkReader:
    def __init__(
        self,
        instance: Instance,
        network: Network,
        nodes: Sequence[str],
        workload_of: Mapping[tuple[Key, str], Sequence[int]],
    ) -> None:
        self.instance, self.network, self.nodes = instance, network, nodes
        self.node_index = {name: index for index, name in enumerate(nodes)}
        self.areas: dict[Area, int] = {}
        self.area_of_node = [self._area(network.area(name)) for name in nodes]
        self.classes = workload_of
        self.calls = list(self._calls())
        named = dict.fromkeys((key, end) for key, each in self.calls for end in (each.origin, each.destination))
        self.number = {workload: index for index, workload in enumerate(named)}
        self.apps = {key: index for index, key in enumerate(dict.fromkeys(key for key, _ in self.calls))}

    def _calls(self) -> Iterator[tuple[Key, Dependency]]:
        for key, app in self.instance.app_groups.items():
            for each in app.dependencies:
                if not {(key, each.origin), (key, each.destination)}.isdisjoint(self.classes):
                    yield key, each

    def _area(self, area: Area) -> int:
        return self.areas.setdefault(area, len(self.areas))

    def read(self) -> DenseNetwork | None:
        if not self.calls:
            return None
        off = self.instance.policy.rules_off
        workloads = tuple(
            Workload(
                self.apps[workload[0]],
                tuple(self.classes.get(workload, ())),
                self._there(workload, leaving=False),
                self._there(workload, leaving=True),
            )
            for workload in self.number
        )
        calls = tuple(
            Call(
                self.number[key, each.origin],
                self.number[key, each.destination],
                NO_LIMIT if "C8" in off else each.max_network_cost,
                0 if "C9" in off else each.min_bandwidth or 0,
            )
            for key, each in self.calls
        )
        names = list(self.areas)
        cost = np.array([self.network.area_cost(a, b) for a in names for b in names], dtype=np.int64)
        link, room = self._links(names)
        return DenseNetwork(
            area=np.array(self.area_of_node, dtype=np.int64),
            # An instance without nodes has no areas.
            cost=cost.reshape(len(names), len(names)),
            link=link,
            room=room,
            workloads=workloads,
            calls=calls,
            majority=self.instance.policy.network_cost == "majority" and "C8" not in off,
        )

    def _there(self, workload: tuple[Key, str], *, leaving: bool) -> tuple[There, ...]:
        spreads = self.instance.leaving_spreads if leaving else self.instance.bound_spreads
        if workload not in spreads:
            return ()
        return tuple(
            (self.node_index.get(name, -1), self._area(self.network.area(name)), count)
            for name, count in sorted(spreads[workload].nodes.items())
        )

    def _links(self, names: Sequence[Area]) -> tuple[IntArray, tuple[int, ...]]:
        used = self._used() if self.network.capacities else Counter[Link]()
        number: dict[Link, int] = {}
        found = np.full((len(names), len(names)), -1, dtype=np.int64)
        for row, origin in enumerate(names):
            for column, destination in enumerate(names):
                link = self.network.link(origin, destination)
                if link is not None and link in self.network.capacities:
                    found[row, column] = number.setdefault(link, len(number))
        room = tuple(max(0, self.network.capacities[link] - used[link]) for link in number)
        return found, room

    def _used(self) -> Counter[Link]:
        used: Counter[Link] = Counter()
        bound, leaving = self.instance.bound_spreads, self.instance.leaving_spreads
        for key, app in self.instance.app_groups.items():
            for each in app.dependencies:
                ends = [Counter[Area](), Counter[Area]()]
                for end, name in zip(ends, (each.origin, each.destination), strict=True):
                    for spreads in (bound, leaving):
                        end.update(spreads[key, name].areas if (key, name) in spreads else {})
                for origin, callers in ends[0].items():
                    for destination, callees in ends[1].items():
                        link = self.network.link(origin, destination)
                        if link is not None:
                            used[link] += callers * callees * (each.min_bandwidth or 0)
        return used
