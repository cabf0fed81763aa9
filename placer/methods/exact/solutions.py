"""Between solutions by class and node, and values of the model's variables: both ways."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from ortools.sat.python.cp_model import IntVar

from placer.dense import Solution
from placer.dense.score import ready
from placer.methods.exact.bundles import Bundle, Reach
from placer.methods.exact.places import Place
from placer.methods.exact.variables import Variables

__all__ = ["decode", "encode"]


def encode(variables: Variables, solution: Solution) -> list[int]:
    """Value of every variable of the model for a solution that keeps all rules: a complete hint."""
    return _Encoder(variables, solution).values()


def decode(variables: Variables, values: Sequence[int]) -> Solution:
    """Solution that the values of the variables mean: pods of places put on nodes, pods of bundles given to members."""
    return _Decoder(variables, values).solution()


class _Encoder:
    def __init__(self, variables: Variables, solution: Solution) -> None:
        self.variables, self.dense = variables, variables.dense
        self.found = [0] * variables.size
        self.place_of = {node: place for place, where in enumerate(variables.places) for node in where.nodes}
        self.counts: dict[int, dict[int, int]] = defaultdict(dict)
        for (index, node), count in solution.items():
            self.counts[index][node] = self.counts[index].get(node, 0) + count
        self.totals = {index: sum(at.values()) for index, at in self.counts.items()}

    def values(self) -> list[int]:
        for item, by_place in enumerate(self.variables.counts):
            for index in self.variables.bundles.items[item].classes:
                for node, count in self.counts.get(index, {}).items():
                    self._add(by_place[self.place_of[node]], count)
        for index, bundle in enumerate(self.variables.all):
            self._bundle(index, bundle)
        self._packing()
        for variable, value in self.variables.derived:
            self.found[variable.index] = value(self.found)
        return self.found

    def _add(self, variable: IntVar, amount: int) -> None:
        self.found[variable.index] += amount

    def _bundle(self, index: int, bundle: Bundle) -> None:
        active, homes = self.variables.active[index], self.variables.homes[index]
        nodes: list[int] = []
        for position, member in enumerate(bundle.members):
            classes = self._classes(bundle, position)
            nodes = [node for each in classes for node in self.counts.get(each, ())]
            if active is not None and self._active(bundle, member, classes):
                self._add(active, 1)
            if homes and (nodes or self.dense.scopes[bundle.scope].bound):
                self._home(index, bundle, nodes, sum(self.totals.get(each, 0) for each in classes))
        if bundle.reach is Reach.TREE:
            for unit in {self.variables.places[self.place_of[node]].unit for node in nodes}:
                touched = self.variables.touched.get((index, unit))
                if touched is not None:
                    self._add(touched, 1)

    def _classes(self, bundle: Bundle, position: int) -> list[int]:
        """Classes of one member; of a group those of its subgroups too."""
        if bundle.policy < 0:
            return list(self.dense.groups[bundle.members[position]].classes)
        return list(self.dense.sub_groups[bundle.members[position]].classes)

    def _active(self, bundle: Bundle, member: int, classes: Iterable[int]) -> bool:
        if bundle.policy < 0:
            return ready(self.dense, member, self.totals)
        return sum(self.totals.get(index, 0) for index in classes) >= bundle.least

    def _home(self, index: int, bundle: Bundle, nodes: list[int], pods: int) -> None:
        bound = self.dense.scopes[bundle.scope].bound
        common = self.dense.common([*bound, *nodes])
        assert common is not None
        homes = self.variables.homes[index]
        home = next(domain for domain in self.variables.path(common) if domain in homes)
        self._add(homes[home], 1)
        spread = self.variables.spread.get((index, int(self.dense.domains.tier[home])))
        if spread is not None:
            self._add(spread, pods + len(bound))

    def _packing(self) -> None:
        filled: dict[int, set[int]] = defaultdict(set)
        for index, at in self.counts.items():
            if not self.dense.classes[index].daemon:
                for node in at:
                    filled[self.place_of[node]].add(node)
        opened: set[int] = set()
        for place, nodes in filled.items():
            if place in self.variables.filled:
                self._add(self.variables.filled[place], len(nodes))
                opened.update(self.variables.path(self.variables.places[place].leaf))
        for domain in opened & self.variables.opened.keys():
            self._add(self.variables.opened[domain], 1)


class _Decoder:
    def __init__(self, variables: Variables, values: Sequence[int]) -> None:
        self.variables, self.dense, self.values = variables, variables.dense, values
        self.items = variables.bundles.items

    def solution(self) -> Solution:
        nodes = self._nodes()
        found: Solution = {}
        owned = {item for part in self.variables.bundles.parts for item in part.items}
        for bundle in self.variables.all:
            items = [item for item in bundle.items if bundle.policy >= 0 or item not in owned]
            for index, node in self._shared_out(bundle, {item: nodes[item] for item in items}):
                found[index, node] = found.get((index, node), 0) + 1
        return found

    def _nodes(self) -> dict[int, list[int]]:
        """Per item the node of each of its placed pods, ascending."""
        at: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for item, counts in enumerate(self.variables.counts):
            for place, variable in counts.items():
                count = self.values[variable.index]
                if count:
                    at[place].append((item, count))
        nodes: dict[int, list[int]] = defaultdict(list)
        for place, counts_there in at.items():
            for item, node in self._packed(self.variables.places[place], counts_there):
                nodes[item].append(node)
        for each in nodes.values():
            each.sort()
        return nodes

    def _packed(self, place: Place, counts: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Put the pods of a place on its nodes, the largest first, each where it leaves least room: what counts
        fits.
        """
        if place.resource is None:
            yield from ((item, place.nodes[0]) for item, count in counts for _ in range(count))
            return
        resource = place.resource
        room = {node: int(self.dense.free[node, resource]) for node in place.nodes}
        for item, count in sorted(counts, key=lambda pair: (-self.variables.requests[pair[0]][resource], pair[0])):
            size = self.variables.requests[item][resource]
            for _ in range(count):
                node = min((node for node, left in room.items() if left >= size), key=lambda node: (room[node], node))
                room[node] -= size
                yield item, node

    def _shared_out(self, bundle: Bundle, nodes: dict[int, list[int]]) -> Iterator[tuple[int, int]]:
        """Class and node of each pod: members are filled one after another, home by home."""
        for item, where in nodes.items():
            each = self.items[item]
            ordered = where if bundle.reach is not Reach.LEAF else sorted(where, key=self._leaf_then_node)
            yield from ((each.classes[number // each.size], node) for number, node in enumerate(ordered))

    def _leaf_then_node(self, node: int) -> tuple[int, int]:
        return int(self.dense.leaf[node]), node
