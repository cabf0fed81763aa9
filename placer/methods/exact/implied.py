"""Rows that follow from the rules: they change no answer, but the bound is better and proofs are shorter.

All of them count in pieces: of a resource r in pieces of s, a pod is floor(request / s), a node floor(room / s), and
what fits on nodes fits in pieces. Per domain, a leaf or wider, and per measure (r, s):

* ``room``: what is placed in the domain is at most its room. Worth saying where places are single nodes.
* ``homes``: members whose home lies in the domain need room for all of their pods there; on literals alone.
* ``full``: where everything is placed, what is not in the domain is outside, and outside there is only so much room.
  In a cluster that is full to the brim these rows are equations; without them CP-SAT does not notice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placer.methods.exact.variables import Linear, Variables, solver_form

__all__ = ["Implied"]

#: A resource with more distinct sizes than this is counted in its own units only.
MOST_SIZES = 8


@dataclass(frozen=True)
class _Measure:
    """Pieces of one size of one resource: per item, per domain, and of all pods together."""

    items: tuple[int, ...]
    room: npt.NDArray[np.int64]
    asked: int


class Implied:
    """Adds implied rows to the model of ``variables``."""

    def __init__(self, variables: Variables) -> None:
        self.variables = variables
        self.items = variables.bundles.items
        self.measures = list(self._measures())
        self.domains = [int(domain) for domain in np.flatnonzero(variables.dense.domains.parent >= 0)]

    def _measures(self) -> Iterator[_Measure]:
        """Measures by which some domain could be too small."""
        dense = self.variables.dense
        here = np.zeros(len(dense.nodes), dtype=bool)
        here[[node for place in self.variables.places for node in place.nodes]] = True
        for resource in range(len(dense.resources)):
            sizes = sorted({request[resource] for request in self.variables.requests} - {0})
            for size in sizes if len(sizes) <= MOST_SIZES else [1]:
                items = tuple(request[resource] // size for request in self.variables.requests)
                asked = sum(each.total * pieces for each, pieces in zip(self.items, items, strict=True))
                sums = np.concatenate(([0], np.cumsum(np.where(here, dense.free[:, resource] // size, 0))))
                room = sums[dense.domains.end] - sums[dense.domains.begin]
                if (room[dense.domains.parent >= 0] < asked).any():
                    yield _Measure(items, room, asked)

    def rooms(self) -> None:
        """Sum over p in d of pieces(i) y[i, p] <= room(d), for domains with places that are single nodes."""
        single = {where.leaf for where in self.variables.places if where.resource is None}
        wanted = {domain for leaf in single for domain in self.variables.path(leaf)}
        for measure, rows in self._rows():
            for domain in wanted & rows.keys():
                self.variables.model.add(solver_form(rows[domain]) <= int(measure.room[domain]))

    def full(self) -> None:
        """Sum over p in d of pieces(i) y[i, p] >= pieces of all pods - room outside d.

        Only where all pods are placed.
        """
        root = self.variables.dense.domains.root
        for measure, rows in self._rows():
            slack = int(measure.room[root]) - measure.asked
            for domain, row in rows.items():
                least = int(measure.room[domain]) - slack
                if least > 0:
                    self.variables.model.add(solver_form(row) >= least)

    def _rows(self) -> Iterator[tuple[_Measure, dict[int, Linear]]]:
        """Per measure: domain to the pieces of all pods placed in it."""
        by_domain = [self.variables.by_domain(item) for item in range(len(self.items))]
        for measure in self.measures:
            rows: dict[int, Linear] = defaultdict(Linear)
            for pieces, counts in zip(measure.items, by_domain, strict=True):
                for domain, variables in counts.items() if pieces else ():
                    rows[domain].add(pieces, *variables)
            rows.pop(self.variables.dense.domains.root, None)
            yield measure, rows

    def homes(self) -> None:
        """Sum over members with a home in d of the pieces of all their pods <= room(d)."""
        pods = self._pods_by_home()
        for measure in self.measures:
            rows: dict[int, Linear] = defaultdict(Linear)
            for index, items in pods.items():
                bundle = self.variables.all[index]
                pieces = sum(self.items[item].total * measure.items[item] for item in items) // bundle.many
                for home, members in self.variables.homes[index].items() if pieces else ():
                    for domain in self.variables.path(home):
                        rows[domain].add(pieces, members)
            for domain in self.domains:
                if domain in rows:
                    self.variables.model.add(solver_form(rows[domain]) <= int(measure.room[domain]))

    def _pods_by_home(self) -> dict[int, list[int]]:
        """Bundle to the items that it brings to its home: each item with the innermost bundle that has one."""
        owner: dict[int, int] = {}
        for index, bundle in enumerate(self.variables.all):
            if self.variables.homes[index]:
                owner.update(dict.fromkeys(bundle.items, index))
        found: dict[int, list[int]] = defaultdict(list)
        for item, index in owner.items():
            bundle = self.variables.all[index]
            if bundle.whole and not self.variables.dense.scopes[bundle.scope].bound:
                found[index].append(item)
        return found
