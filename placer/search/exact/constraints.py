"""Rules about groups, subgroups and queues as constraints; ``models/exact.md`` has the formulas of all rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from ortools.sat.python.cp_model import IntVar

from placer.arrays.solution import IntArray
from placer.search.exact.count_model import Linear, solver_form
from placer.search.exact.variables import Bundle, ExactVariables, Reach


class ExactConstraints:
    """Rules about bundles and their items, each a method under the name of its function in :mod:`placer.rules`.

    C3 is in the variables: a count exists only where the pods may be. C4: such pods are not in the arrays at all.
    """

    def __init__(self, variables: ExactVariables) -> None:
        self.variables = variables
        self.dense, self.model = variables.dense, variables.model
        self.items, self.requests = variables.bundles.items, variables.requests
        self._parts: dict[int, list[tuple[Bundle, IntVar | None]]] = defaultdict(list)
        active = variables.active[len(variables.bundles.gangs) :]
        for part, ready in zip(variables.bundles.parts, active, strict=True):
            self._parts[part.gang].append((part, ready))

    def once(self) -> None:
        """C1: of an item no more pods are placed than there are."""
        for index, item in enumerate(self.items):
            if len(self.variables.counts[index]) > 1:
                self.variables.at_most(Linear().add(1, *self.variables.placed(index)), item.total)

    def gang(self) -> None:
        """C5: a group that is not ready gets nothing. Ready: enough pods in all, per role, and ready subgroups per
        policy.
        """
        for index, bundle in enumerate(self.variables.bundles.gangs):
            active = self.variables.active[index]
            if active is not None:
                self._gate(bundle, active)
                if not bundle.whole:
                    self._ready(bundle, index, active)

    def _ready(self, bundle: Bundle, index: int, active: IntVar) -> None:
        group = self.dense.groups[bundle.members[0]]
        self._at_least(bundle.items, bundle.least, active)
        for role, short in group.short_by_role:
            self._at_least([item for item in bundle.items if self.variables.first(item).role == role], short, active)
        for policy, short in group.short_by_policy:
            row = Linear().add(-short, active)
            for part, ready in self._parts[index]:
                if part.policy == policy and ready is not None:
                    row.add(1, ready)
            self.model.add(solver_form(row) >= 0)

    def subgroup(self) -> None:
        """C6: a subgroup gets its size or nothing: as C5 for each kind, and the ready ones are enough for the group."""
        for index, gang in enumerate(self.variables.bundles.gangs):
            above = self.variables.active[index]
            for part, active in self._parts[index]:
                if active is not None:
                    self._gate(part, active)
                    if not part.whole:
                        self._at_least(part.items, part.least, active)
                    if above is not None:
                        row = solver_form(Linear().add(1, active).add(-part.many, above))
                        self.model.add(row == 0 if gang.whole else row <= 0)

    def tier_limit(self) -> None:
        """C7: all pods of a member lie in one home. Its rows say where O2 counts."""
        for index, bundle in enumerate(self.variables.all):
            homes = self.variables.homes[index]
            if bundle.reach is Reach.FREE or not homes:
                continue
            self._one_home(index, bundle)
            if bundle.reach is Reach.LEAF:
                self._leaf_homes(bundle, homes)
            else:
                self._tree_homes(bundle, homes)

    def _one_home(self, index: int, bundle: Bundle) -> None:
        row = Linear().add(1, *self.variables.homes[index].values())
        active = self.variables.active[index]
        if self.dense.scopes[bundle.scope].bound:
            self.model.add(solver_form(row) == 1)
        elif bundle.whole and active is not None:
            self.model.add(solver_form(row.add(-1, active)) == 0)
        else:
            self.variables.at_most(row, bundle.many)

    def _leaf_homes(self, bundle: Bundle, homes: dict[int, IntVar]) -> None:
        for item in bundle.items:
            by_leaf = self.variables.by_leaf(item)
            for domain, members in homes.items():
                row = Linear().add(1, *by_leaf.get(domain, ())).add(-self.items[item].total // bundle.many, members)
                self.model.add(solver_form(row) == 0)

    def _tree_homes(self, bundle: Bundle, homes: dict[int, IntVar]) -> None:
        for item in bundle.items:
            each = self.items[item]
            for leaf, counts in self.variables.by_leaf(item).items():
                most = min(each.total, int(each.fits[self._slice(leaf)].sum()))
                above = [homes[domain] for domain in self.variables.paths[leaf] if domain in homes]
                self.model.add(solver_form(Linear().add(1, *counts).add(-most, *above)) <= 0)
            if bundle.whole and not self.dense.scopes[bundle.scope].bound:
                self._all_at_home(item, homes)

    def _all_at_home(self, item: int, homes: dict[int, IntVar]) -> None:
        inner: dict[int, list[IntVar]] = defaultdict(list)
        for home, chosen in homes.items():
            for domain in self.variables.paths[home]:
                inner[domain].append(chosen)
        for domain, counts in self.variables.by_domain(item).items():
            if domain in homes and domain != self.dense.domains.root:
                row = Linear().add(1, *counts).add(-self.items[item].total, *inner[domain])
                self.model.add(solver_form(row) >= 0)

    def queue(self) -> None:
        """C11: the pods in a queue take at most the room of its capability."""
        for limit in self.dense.queue_rows:
            row, members = Linear(), set(limit.classes)
            for item, each in enumerate(self.items):
                if each.classes[0] in members:
                    row.add(self.requests[item][limit.resource], *self.variables.placed(item))
            self.variables.at_most(row, limit.room)

    # Rows that several rules share

    def _gate(self, bundle: Bundle, active: IntVar) -> None:
        for item in bundle.items:
            row = Linear().add(1, *self.variables.placed(item))
            row.add(-self.items[item].total // bundle.many, active)
            if bundle.whole:
                self.model.add(solver_form(row) == 0)
            else:
                self.model.add(solver_form(row) <= 0)

    def _at_least(self, items: Sequence[int], least: int, active: IntVar) -> None:
        if least:
            row = Linear().add(-least, active)
            for item in items:
                row.add(1, *self.variables.placed(item))
            self.model.add(solver_form(row) >= 0)

    def _slice(self, domain: int) -> slice:
        return slice(int(self.dense.domains.begin[domain]), int(self.dense.domains.end[domain]))


@dataclass(frozen=True)
class _PieceMeasure:
    items: tuple[int, ...]
    room: IntArray
    asked: int


class Implied:
    """Adds rows to the model that follow from the rules: the bound is better and proofs are shorter.

    All of them count in pieces: of a resource r in pieces of s, a pod is floor(request / s), a node floor(room / s).
    """

    def __init__(self, variables: ExactVariables) -> None:
        self.variables = variables
        self.items = variables.bundles.items
        self.measures = list(self._measures())
        self.domains = [int(domain) for domain in np.flatnonzero(variables.dense.domains.parent >= 0)]

    def _measures(self) -> Iterator[_PieceMeasure]:
        dense = self.variables.dense
        here = np.zeros(len(dense.nodes), dtype=bool)
        here[[node for place in self.variables.places for node in place.nodes]] = True
        for resource in range(len(dense.resources)):
            sizes = sorted({request[resource] for request in self.variables.requests} - {0})
            for size in sizes if len(sizes) <= 8 else [1]:
                items = tuple(request[resource] // size for request in self.variables.requests)
                asked = sum(each.total * pieces for each, pieces in zip(self.items, items, strict=True))
                room = dense.domains.sums(np.where(here, dense.free[:, resource] // size, 0))
                if (room[dense.domains.parent >= 0] < asked).any():
                    yield _PieceMeasure(items, room, asked)

    def rooms(self) -> None:
        """Sum over p in d of pieces(i) y[i, p] <= room(d), for domains with places that are single nodes."""
        single = {where.leaf for where in self.variables.places if where.alone}
        wanted = {domain for leaf in single for domain in self.variables.paths[leaf]}
        for measure, rows in self._rows():
            for domain in wanted & rows.keys():
                self.variables.model.add(solver_form(rows[domain]) <= int(measure.room[domain]))

    def full(self) -> None:
        """Sum over p in d of pieces(i) y[i, p] >= pieces of all pods - room outside d, where all pods are placed.

        In a cluster that is full to the brim these rows are equations, which CP-SAT does not notice by itself.
        """
        root = self.variables.dense.domains.root
        for measure, rows in self._rows():
            slack = int(measure.room[root]) - measure.asked
            for domain, row in rows.items():
                least = int(measure.room[domain]) - slack
                if least > 0:
                    self.variables.model.add(solver_form(row) >= least)

    def _rows(self) -> Iterator[tuple[_PieceMeasure, dict[int, Linear]]]:
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
                    for domain in self.variables.paths[home]:
                        rows[domain].add(pieces, members)
            for domain in self.domains:
                if domain in rows:
                    self.variables.model.add(solver_form(rows[domain]) <= int(measure.room[domain]))

    def _pods_by_home(self) -> dict[int, list[int]]:
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
