"""Area and parts of each AppGroup, and how nodes hold the parts: one integer program (``models/decomposed.md``).

Nodes of an area with the same room are one kind, parts with the same request one size. The relaxation is nearly whole:
its bound is the sum of the cheapest splits wherever these can be packed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import NamedTuple, TypeAlias

import numpy as np

from placer.arrays import Dense, DenseNetwork, Solution
from placer.arrays.solution import IntArray
from placer.base.grouping import grouped
from placer.base.linear import ColumnSum, IntegerProgram
from placer.bounds.splits import CallingPods
from placer.search.exact.node_sets import maximal_fillings

#: Ways to lay out the nodes of an area; with more the program is not made.
MOST_FILLINGS = 3_000


#: An AppGroup, and the parts that it may be put together from: int64, shape (parts, types).
AppParts: TypeAlias = tuple[CallingPods, IntArray]


class _Size(NamedTuple):
    request: tuple[int, ...]
    masks: tuple[int, ...]


class _Use(NamedTuple):
    graph: CallingPods
    area: int
    part: IntArray
    size: _Size
    column: int


#: Equal nodes of an area: slots by size, and the column that counts nodes with them.
_EqualNodes: TypeAlias = tuple[int, list[int], list[tuple[dict[_Size, int], int]]]


class AreaProgram:
    """The program for some AppGroups and areas.

    ``free``: int64, shape (nodes, resources): room without these AppGroups. ``nodes``: area to its nodes.
    """

    def __init__(
        self,
        dense: Dense,
        network: DenseNetwork,
        free: IntArray,
        nodes: Mapping[int, IntArray],
        apps: Sequence[AppParts],
    ) -> None:
        self.dense, self.network, self.free, self.nodes = dense, network, free, nodes
        self.resources = _scarce(free[np.concatenate(list(nodes.values()))], [graph for graph, _ in apps])
        self.program, self.cuts = IntegerProgram(), ColumnSum()
        self.uses: list[_Use] = []
        self.kinds: list[_EqualNodes] = []
        for app in apps:
            self._put_together(app)

    def _put_together(self, app: AppParts) -> None:
        program, (graph, parts) = self.program, app
        lies = {area: program.column(1) for area in self.nodes}
        program.equal(dict.fromkeys(lies.values(), 1), 1)
        requests = (parts @ graph.requests)[:, self.resources].tolist()
        for area, here in lies.items():
            near = int(self.network.cost[area, area])
            self.cuts.add(near * graph.all_pairs, here)
            terms: list[dict[int, int]] = [{here: -many} for many in graph.counts.tolist()]
            for part, request, pairs in zip(parts, requests, graph.inside(parts).tolist(), strict=True):
                held = np.flatnonzero(part).tolist()
                column = program.column(int((graph.counts[held] // part[held]).min()))
                size = _Size(tuple(request), tuple(sorted({graph.masks[pod] for pod in held})))
                self.uses.append(_Use(graph, area, part, size, column))
                self.cuts.add(-near * pairs, column)
                for pod in held:
                    terms[pod][column] = int(part[pod])
            for row in terms:
                program.equal(row, 0)

    def solved(self, seconds: float) -> Solution | None:
        """Look for a solution; None where none is found, or nodes may be laid out in too many ways."""
        for area in self.nodes:
            if not self._lay_out(area):
                return None
        whole = range(len(self.program.upper))
        point = self.program.point(self.cuts, whole, seconds, nodes=100, gap=1e-3)
        return None if point is None else self._read([round(each) for each in point])

    def _lay_out(self, area: int) -> bool:
        uses = grouped(self.uses, attrgetter("area")).get(area, [])
        sizes = sorted({each.size for each in uses}, reverse=True)
        slots: dict[_Size, dict[int, int]] = {size: {} for size in sizes}
        for nodes in self._equal_nodes(area, sizes):
            found = self._fillings(nodes[0], sizes)
            if not found:
                return False
            columns = [self.program.column(len(nodes)) for _ in found]
            fillings = list(zip(found, columns, strict=True))
            for filling, column in fillings:
                for size, count in filling.items():
                    slots[size][column] = -count
            self.kinds.append((area, nodes, fillings))
            self.program.at_most(dict.fromkeys(columns, 1), len(nodes))
        for each in uses:
            slots[each.size][each.column] = 1
        for row in slots.values():
            self.program.at_most(row, 0)
        return True

    def _fillings(self, node: int, sizes: Sequence[_Size]) -> list[dict[_Size, int]]:
        room = tuple(self.free[node, self.resources].tolist())
        fitting = [size for size in sizes if any(size.request) and self.dense.masks[list(size.masks), node].all()]
        if not fitting:
            return [{}]
        # A room seldom comes again, so nothing is remembered.
        found = maximal_fillings.__wrapped__(room, tuple(size.request for size in fitting), MOST_FILLINGS)
        return [{size: count for size, count in zip(fitting, counts, strict=True) if count} for counts in found]

    def _equal_nodes(self, area: int, sizes: Sequence[_Size]) -> list[list[int]]:
        masks, nodes = sorted({mask for size in sizes for mask in size.masks}), self.nodes[area]
        rows = np.hstack([self.free[nodes][:, self.resources], self.dense.masks[masks][:, nodes].T])
        kind = {node: row.tobytes() for node, row in zip(nodes.tolist(), rows, strict=True)}
        return list(grouped(nodes.tolist(), kind.__getitem__).values())

    def _read(self, point: Sequence[int]) -> Solution:
        slots: dict[tuple[int, _Size], list[int]] = defaultdict(list)
        for area, nodes, fillings in self.kinds:
            left = iter(nodes)
            for many, column in fillings:
                for node in islice(left, point[column]):
                    for size, count in many.items():
                        slots[area, size] += [node] * count
        waiting: dict[tuple[int, ...], Iterator[int]] = {}
        found = Solution()
        for use in self.uses:
            for _ in range(point[use.column]):
                node = slots[use.area, use.size].pop()
                for pod in np.flatnonzero(use.part).tolist():
                    pods = waiting.setdefault(use.graph.classes[pod], self.dense.each_pod(use.graph.classes[pod]))
                    for _ in range(int(use.part[pod])):
                        index = next(pods)
                        found[index, node] = found.get((index, node), 0) + 1
        return found


def _scarce(room: IntArray, graphs: Sequence[CallingPods]) -> list[int]:
    """Resources except those of which every pod takes a smaller share of every node than of another one."""
    requests = np.unique(np.concatenate([graph.requests for graph in graphs]), axis=0)
    room = np.unique(room, axis=0)
    kept = [resource for resource in range(room.shape[1]) if requests[:, resource].any()]

    def first(one: int, other: int) -> bool:
        shares = np.outer(requests[:, other], room[:, one]) <= np.outer(requests[:, one], room[:, other])
        return bool(shares.all() and (requests[requests[:, one] == 0, other] == 0).all())

    for resource in tuple(kept)[::-1]:
        if any(first(one, resource) for one in kept if one != resource):
            kept.remove(resource)
    return kept
