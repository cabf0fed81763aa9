"""O4: nodes and domains that are no longer empty, for every model that counts pods at places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ortools.sat.python.cp_model import CpModel, IntVar, LinearExpr

from placer.arrays import Dense, Solution
from placer.base.linear import LinearExpression
from placer.search.exact.node_sets import NodeSet, Request, newly_filled

__all__ = ["PackingValues", "PodCount"]

Row: TypeAlias = LinearExpression[IntVar]


@dataclass(frozen=True)
class PodCount:
    """Number of pods with the same request at a place, at most ``most``, which is at least 1."""

    request: Request
    most: int
    variable: IntVar


class PackingValues:
    """The two values of O4 as rows of a model; their variables are made when one is asked for.

    ``there`` has the counts of pods per place, those of DaemonSets left out: they leave a node empty. ``fillings`` has
    the counts of nodes per way to fill one, where ways are listed.
    """

    def __init__(
        self,
        dense: Dense,
        model: CpModel,
        places: Sequence[NodeSet],
        there: Mapping[int, Sequence[PodCount]],
        fillings: Mapping[int, Sequence[IntVar]],
    ) -> None:
        self.dense, self.model, self.places, self.there, self.fillings = dense, model, places, there, fillings
        self.opened: dict[int, IntVar] = {}
        self.filled: dict[int, IntVar] = {}

    def hyper_nodes(self) -> Row:
        """O4: sum over empty domains of o[d]: nodes are filled only in opened leaves, o[parent] >= o[d]."""
        tree = self.dense.domains
        for place, filled in self._filled().items():
            where = self.places[place]
            if not tree.used[where.leaf] and where.leaf != tree.root:
                self.model.add(filled <= len(where.nodes) * self._opened(where.leaf))
        return Row().add(1, *self.opened.values())

    def nodes(self) -> Row:
        """O4: sum over empty places of u[p], how many of its nodes are filled."""
        return Row().add(1, *self._filled().values())

    def _opened(self, domain: int) -> IntVar:
        tree = self.dense.domains
        if domain not in self.opened:
            opened = self.opened[domain] = self.model.new_bool_var("")
            parent = int(tree.parent[domain])
            if parent != tree.root and not tree.used[parent]:
                self.model.add(opened <= self._opened(parent))
        return self.opened[domain]

    def _filled(self) -> dict[int, IntVar]:
        """A single node has room only if it is filled. On a counted place, per size s: sum over i with size(i) >= s of
        size(i) y[i, p] <= u[p] times the room of one node in pieces of s (its nodes hold equally many of each size).
        """
        if not self.filled:
            for place, counts in self.there.items():
                if not self.places[place].used:
                    many = len(self.places[place].nodes)
                    self.filled[place] = self.model.new_int_var(0, many, "")
                    self._fill(place, counts)
        return self.filled

    def _fill(self, place: int, counts: Sequence[PodCount]) -> None:
        where, filled = self.places[place], self.filled[place]
        if where.fillings:
            self._at_most(filled, 1, [(1, variable) for variable in self.fillings[place]])
        elif where.resource is None:
            for resource, amount in enumerate(self.dense.free[where.nodes[0]].tolist()):
                self._at_most(filled, amount, [(one.request[resource], one.variable) for one in counts])
            for one in counts:
                self._at_most(filled, one.most, [(1, one.variable)])
        for size in where.sizes:
            resource = where.resource or 0
            room = int(self.dense.free[where.nodes[0], resource])
            self._at_most(filled, room // size, [(one.request[resource] // size, one.variable) for one in counts])

    def encode(self, place_of: Mapping[int, int], solution: Solution, found: list[int]) -> None:
        """Set the variables made here, by index, for a solution; ``place_of`` is node to place."""
        opened: set[int] = set()
        for place, nodes in newly_filled(self.dense, place_of, solution).items():
            if place in self.filled:
                found[self.filled[place].index] = len(nodes)
                domain = self.places[place].leaf
                while domain >= 0:
                    opened.add(domain)
                    domain = int(self.dense.domains.parent[domain])
        for domain in opened & self.opened.keys():
            found[self.opened[domain].index] = 1

    def _at_most(self, filled: IntVar, each: int, counts: Iterable[tuple[int, IntVar]]) -> None:
        row = Row().add(-each, filled)
        for coefficient, variable in counts:
            row.add(coefficient, variable)
        self.model.add(LinearExpr.weighted_sum(row.variables, row.coefficients) <= 0)
