"""The partial solution: what is placed on which node, the room that is left, and the way back to any earlier point."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from placer.arrays import Counts, Dense, Solution
from placer.arrays.model import ready
from placer.arrays.solution import BoolArray, IntArray
from placer.problem import HostPort
from placer.search.partial.neighbour_rooms import NeighbourRooms
from placer.search.partial.placed_calls import CallGraph, Communication
from placer.search.partial.zone_rooms import ZoneRooms


class Mobility(IntEnum):
    """Where a placed pod may be moved without a look at its group."""

    FIXED = 0
    LEAF = 1
    FREE = 2


class SharedRoom(NamedTuple):
    """What is left of queues, per row of ``Dense.queue_rows`` (C11), and of limited links, in bit/s (C9)."""

    queues: list[int]
    links: list[int]


class PartialSolution:
    """What is placed so far and the room that is left.

    Three pods of class 4 on node 7 and one on node 9 are ``where[4] == {7: 3, 9: 1}``, ``on[7] == {4: 3}`` and
    ``placed[4] == 4``; ``take(4, [7], [-1])`` takes one away, and so does ``undo`` to an earlier mark.

    ``calls``: call graph of another partial solution of the instance. ``zones``: whether kubelets' NUMA zones are
    replayed (C10). ``room``, ``free``: int64, shape (resources, nodes), and the same as (nodes, resources): left.
    ``used``: bool, shape (nodes,) (O4). ``queue_room``: per row of ``Dense.queue_rows`` (C11). ``on``: in the order in
    which classes came. ``ports``: of placed pods. ``communication``, ``zones``, ``neighbours``: None where no pod is
    concerned.
    """

    def __init__(self, dense: Dense, calls: CallGraph | None = None, *, zones: bool = True) -> None:
        self.dense = dense
        self.room: IntArray = dense.free.T.copy(order="C")
        self.free: IntArray = self.room.T
        self.used: BoolArray = dense.node_used.copy()
        self._busy = [0] * len(dense.nodes)
        self.queue_room = [row.room for row in dense.queue_rows]
        self.placed = [0] * len(dense.classes)
        self.where: dict[int, dict[int, int]] = defaultdict(dict)
        self.on: dict[int, dict[int, int]] = defaultdict(dict)
        self.ports: dict[int, list[HostPort]] = defaultdict(list)
        self._with_port: dict[tuple[str, int], Counter[int]] = defaultdict(Counter)
        if calls is None and dense.network is not None:
            calls = CallGraph(dense.network)
        self.communication = None if calls is None else Communication(calls)
        self.zones = ZoneRooms(dense.numa) if zones and dense.numa is not None else None
        kinds = [each.neighbours for each in dense.classes]
        self.neighbours = None if dense.neighbours is None else NeighbourRooms(dense.neighbours, kinds)
        self._log: list[tuple[int, int, int]] = []

    def take(self, index: int, nodes: Sequence[int], counts: Sequence[int]) -> None:
        """Place ``counts`` pods of a class on ``nodes``, distinct ones; take them away where negative."""
        for node, count in zip(nodes, counts, strict=True):
            self._enter(index, node, count)
        self._fill(index, nodes, counts)

    def _enter(self, index: int, node: int, count: int) -> None:
        self._log.append((index, node, count))
        self._count(index, node, count)
        if self.zones is not None:
            self.zones.take(index, node, count)

    def mark(self) -> int:
        """Return a point to come back to."""
        return len(self._log)

    def since(self, mark: int) -> list[tuple[int, int, int]]:
        """What was placed since ``mark``, as (class, node, pods); taken away: fewer than 0 pods."""
        return self._log[mark:]

    def undo(self, mark: int) -> None:
        """Take back everything since ``mark``."""
        while len(self._log) > mark:
            index, node, count = self._log.pop()
            self._count(index, node, -count)
            if self.zones is not None:
                self.zones.undo(index, node)
            self._fill(index, [node], [-count])

    @contextmanager
    def without(self, pods: Counts) -> Iterator[None]:
        """Take some placed pods away for the block."""
        mark = self.mark()
        for (index, node), count in pods.items():
            self.take(index, [node], [-count])
        try:
            yield
        finally:
            self.undo(mark)

    def _count(self, index: int, node: int, count: int) -> None:
        self.placed[index] += count
        self._count_on_node(index, node, count)
        for row, amount in self.dense.rows_of[index]:
            self.queue_room[row] -= amount * count
        if self.communication is not None and index in self.dense.workload_of:
            self.communication.take(self.dense.workload_of[index], node, count)
        if self.neighbours is not None:
            self.neighbours.take(index, node, count)

    def _count_on_node(self, index: int, node: int, count: int) -> None:
        pods = self.dense.classes[index]
        there, here = self.where[index], self.on[node]
        before = there.get(node, 0)
        now = before + count
        if now:
            there[node] = here[index] = now
        else:
            del there[node], here[index]
        if not pods.daemon and (before == 0 or now == 0):
            self._busy[node] += 1 if now else -1
            self.used[node] = self.dense.node_used[node] or self._busy[node] > 0
        for port in pods.host_ports:
            (self.ports[node].append if count > 0 else self.ports[node].remove)(port)
            self._with_port[port.protocol, port.port][node] += count

    def _fill(self, index: int, nodes: Sequence[int], counts: Sequence[int]) -> None:
        request = self.dense.classes[index].request
        if len(nodes) == 1:
            self.room[:, nodes[0]] -= request * counts[0]
        else:
            self.room[:, np.asarray(nodes)] -= request[:, None] * np.asarray(counts)

    def closes(self, index: int) -> bool:
        """Whether :meth:`close` may say anything of pods of a class."""
        pods = self.dense.classes[index]
        return bool(pods.host_ports) or self.zones is not None or pods.neighbours >= 0

    def tied(self, index: int) -> bool:
        """Whether a pod on one node changes how many of its class others take (C12 to C14)."""
        return self.dense.neighbours is not None and index in self.dense.neighbours.tied

    def depth(self, index: int) -> int:
        """How many others have to be there before pods of a class may be near them (C12)."""
        return 0 if self.dense.neighbours is None else self.dense.neighbours.depth.get(index, 0)

    def close(self, index: int, nodes: IntArray | None, counts: IntArray, *, zones: bool = True) -> None:
        """Lower counts of further pods of a class by every rule of one node that is not of resources, C3, C8 or C9.

        A rule of what may be together on a node goes here. ``nodes``: None: all. ``counts``: int64: how many fit by
        resources on each of them, at most 1 where the class has host ports; is changed.
        """
        for node in self._nodes_with(self.dense.classes[index].host_ports):
            counts[slice(node, node + 1) if nodes is None else nodes == node] = 0
        if self.neighbours is not None:
            self.neighbours.close(index, nodes, counts)
            if self.zones is not None and self.neighbours.attracted and not self.neighbours.lenient:
                self._close_shared(index, nodes, counts, self.neighbours.attracted)
        if zones and self.zones is not None:
            most = self.zones.most(index, nodes, int(counts.max(initial=0)))
            if most is not None:
                np.minimum(counts, most, out=counts)

    def ports_of(self, node: int) -> tuple[HostPort, ...]:
        """Host ports that are taken on a node."""
        return (*self.dense.ports.get(node, ()), *self.ports.get(node, ()))

    def _nodes_with(self, ports: Sequence[HostPort]) -> Iterator[int]:
        near: set[int] = set()
        for port in ports:
            near.update(self.dense.with_port.get((port.protocol, port.port), ()))
            near.update(node for node, count in self._with_port[port.protocol, port.port].items() if count)
        for node in near:
            if any(port.clashes(other) for port in ports for other in self.ports_of(node)):
                yield node

    def left(self, index: int) -> int:
        """Pods of a class that are not placed."""
        return self.dense.classes[index].size - self.placed[index]

    def shared_room(self) -> SharedRoom:
        """What queues and links have left now."""
        return SharedRoom(list(self.queue_room), [] if self.communication is None else self.communication.left())

    def queue_limit(self, index: int) -> int:
        """How many more pods of a class its queues allow (C11)."""
        rows = self.dense.rows_of[index]
        return min((self.queue_room[row] // amount for row, amount in rows), default=self.dense.classes[index].size)

    def nodes_of(self, classes: Iterable[int]) -> list[int]:
        """Nodes that have new pods of the classes."""
        return [node for index in classes if index in self.where for node in self.where[index]]

    def pods_of(self, workload: int) -> Counter[int]:
        """Node to new pods of a workload there."""
        assert self.dense.network is not None
        found: Counter[int] = Counter()
        for index in self.dense.network.workloads[workload].classes:
            found.update(self.where.get(index, {}))
        return found

    def is_ready(self, group: int) -> bool:
        """Whether a group is ready as things stand (C5)."""
        return ready(self.dense, group, {index: self.placed[index] for index in self.dense.groups[group].classes})

    def stands(self, workloads: Iterable[int]) -> bool:
        """Whether what holds only in the end does, of ``workloads`` that have changed: C8, an order (C10), and what was
        lenient.
        """
        balanced = self.communication is None or self.communication.balanced(workloads)
        rooms = self.neighbours
        if rooms is not None and rooms.lenient and not (rooms.even and self.dense.orderable(self._ordered())):
            return False
        return balanced and (self.zones is None or self.zones.stand)

    def _ordered(self) -> Solution:
        found = {(index, node): count for index, there in self.where.items() for node, count in there.items()}
        order = {} if self.zones is None else self.zones.order
        return Solution(found, {node: dict.fromkeys(classes) for node, classes in order.items()})

    def _close_shared(self, index: int, nodes: IntArray | None, counts: IntArray, near: frozenset[int]) -> None:
        """Close nodes on which a pod may need another before it (C12) that its kubelet needs after it (C10).

        Where the kubelet takes them in any order there is room for one more at a time.
        """
        for node in self.on if index in near else set(self.nodes_of(near)):
            if self._aligned(index, node) and any(self._aligned(each, node) for each in self.on[node].keys() - {index}):
                here, numa = slice(node, node + 1) if nodes is None else nodes == node, self.dense.numa
                free = numa is None or numa.in_any_order(
                    node, [*numa.pods(node, self.on[node].items()), numa.of(index, node)]
                )
                counts[here] = np.minimum(counts[here], int(free))

    def _aligned(self, index: int, node: int) -> bool:
        return self.dense.numa is not None and bool(self.dense.numa.of(index, node))

    def kinds(self, classes: Collection[int]) -> Callable[[int], tuple[object, ...]]:
        """A function of a node, equal where nodes are alike for any further pod of ``classes``, eligibility and place
        in the tree apart.
        """
        others = None if self.neighbours is None else self.neighbours.kinds(classes)

        def kind(node: int) -> tuple[object, ...]:
            ports = tuple(sorted(self.ports_of(node)))
            area = -1 if self.communication is None else int(self.communication.calls.area[node])
            zones = None if self.zones is None else self.zones.kind(node)
            return area, self.free[node].tobytes(), ports, zones, None if others is None else others(node)

        return kind

    def may_leave(self, index: int) -> bool:
        """Whether no pod that stays is refused because one of a class leaves (C10, C12, C14)."""
        return self.dense.classes[index].zones < 0 and self.dense.classes[index].neighbours < 0

    def mobility(self, index: int) -> Mobility:
        """Where a placed pod of a class may be moved by itself, rules of room and calls apart, so that C7 and O2 get no
        worse.
        """
        dense = self.dense
        if dense.classes[index].tied:
            return Mobility.FIXED
        tied = any(dense.scopes[scope].wanted for scope in dense.scopes_of(index))
        return Mobility.LEAF if tied else Mobility.FREE
