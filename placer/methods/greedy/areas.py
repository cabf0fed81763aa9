"""In which areas pods that call each other shall stand: by counting, before any node is chosen (C8, C9, O3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placer.methods.greedy.state import STEP, State
from placer.methods.partial.communication import BoolArray, IntArray, Partner

__all__ = ["Ground", "Lot", "Part", "Spread", "lots_of"]

#: Areas tried for a knot; first areas tried once there is one from which everything was placed.
WIDTH, STARTS = 3, 6

#: Steps of the search from one first area: so many, and so many more per knot.
STEPS, STEPS_EACH = 10, 6

#: Unfinished answers that are remembered.
DRAFTS = 5


@dataclass(frozen=True)
class Lot:
    """Pods of one workload and shape that count in the same queues; ``classes`` names the class of each."""

    workload: int
    shape: int
    classes: tuple[int, ...]


class Part(NamedTuple):
    """So many pods of a lot in an area."""

    lot: int
    area: int
    pods: int


#: Lots that some chain of calls keeps in one area; the pods of a single lot may be in several.
Knot = tuple[int, ...]


def lots_of(state: State, items: Iterable[tuple[int, int]]) -> list[Lot]:
    """Sort pods that call and are called, given as (class, pods), into lots."""
    found: dict[tuple[int, int, object], list[int]] = defaultdict(list)
    for index, count in items:
        kind = state.dense.workload_of[index], state.layout.shape_of[index], state.dense.rows_of[index]
        found[kind] += [index] * count
    return [Lot(workload, shape, tuple(classes)) for (workload, shape, _), classes in found.items()]


class Ground:
    """Pods to place, and the room of areas: pods are counted in and out here, and as calls by the communication.

    Parameters
    ----------
    state
        What is placed.
    lots
        The pods.
    where
        First node and the one after the last.
    """

    def __init__(self, state: State, lots: Sequence[Lot], where: tuple[int, int]) -> None:
        assert state.communication is not None
        self.state, self.lots, self.communication = state, lots, state.communication
        layout, (begin, end) = state.layout, where
        area, areas = self.communication.calls.area[begin:end], self.communication.calls.areas
        self.workloads = [lot.workload for lot in lots]
        #: int64, shape (lots, resources): what a pod asks for.
        self.request: IntArray = np.array([layout.shapes[lot.shape].request for lot in lots])
        self.price = [layout.shapes[lot.shape].price + 1 for lot in lots]
        rows = [np.bincount(area, weights=row, minlength=areas) for row in state.room[:, begin:end]]
        #: int64, shape (areas, resources): what is left of each area, over all its nodes.
        self.free: IntArray = np.rint(np.array(rows).T).astype(np.int64)
        kinds = {
            lot.shape: np.bincount(area, weights=state.fits(lot.shape)[begin:end], minlength=areas) for lot in lots
        }
        #: int64, shape (lots, areas): how many more pods of its shape the nodes of an area take, were there no others.
        self.fits: IntArray = np.rint(np.array([kinds[lot.shape] for lot in lots])).astype(np.int64)
        #: Pods of each lot that stand nowhere.
        self.left = [len(lot.classes) for lot in lots]
        #: int64, shape (lots, areas): pods that stand there.
        self.counts: IntArray = np.zeros_like(self.fits)
        self._alike = [[n for n, other in enumerate(lots) if other.shape == lot.shape] for lot in lots]
        state.work += STEP + len(area) * (len(rows) + len(kinds))

    def count_in(self, lot: int, area: int, count: int) -> None:
        """Count pods of a lot into an area, or out of it where ``count`` is negative."""
        self.state.work += STEP // 2
        self.communication.count_in(self.workloads[lot], area, count)
        self.free[area] -= self.request[lot] * count
        self.counts[lot, area] += count
        self.left[lot] -= count
        self.fits[self._alike[lot], area] -= count

    def stand(self, parts: Iterable[Part]) -> None:
        """Count pods in."""
        for lot, area, count in parts:
            self.count_in(lot, area, count)

    def clear(self) -> list[Part]:
        """Count all pods out; return where they were."""
        parts = [Part(lot, area, int(self.counts[lot, area])) for lot, area in np.argwhere(self.counts).tolist()]
        self.stand(Part(lot, area, -count) for lot, area, count in parts)
        return parts


class Spread:
    """Depth first search over knots, the one with fewest areas to go to first.

    Parameters
    ----------
    ground
        The pods; as before in the end.
    """

    def __init__(self, ground: Ground) -> None:
        self.ground, self.communication = ground, ground.communication
        self.parts: list[tuple[Part, int]] = []
        self.urgent: dict[Knot, int] = defaultdict(int)
        self.missing = self.cost = self.steps = 0
        #: What was found, best first: price of the pods left out, cost of the others, and where these stand.
        self.drafts: list[tuple[int, int, list[Part]]] = []

    def run(self) -> list[tuple[int, int, list[Part]]]:
        """Look for areas; return the drafts."""
        knots = self._knots()
        if not self._together(knots):
            self._apart(knots)
        return self.drafts

    def _knots(self) -> list[Knot]:
        """Sort lots into knots, the dearest first."""
        lots = range(len(self.ground.lots))
        of_workload: dict[int, list[int]] = defaultdict(list)
        for lot in lots:
            of_workload[self.ground.workloads[lot]].append(lot)
        knot_of = {lot: {lot} for lot in lots}
        for workload, mine in of_workload.items():
            for partner in self.communication.calls.partners[workload]:
                if partner.other in of_workload and self.communication.calls.apart(partner):
                    joined = set().union(*(knot_of[lot] for lot in (*mine, *of_workload[partner.other])))
                    knot_of.update(dict.fromkeys(joined, joined))
        knots = {tuple(sorted(knot)) for knot in knot_of.values()}
        return sorted(knots, key=lambda knot: (-self._size(knot), knot))

    def _size(self, knot: Knot) -> int:
        return sum(self.ground.price[lot] * self.ground.left[lot] for lot in knot)

    def _together(self, knots: Sequence[Knot]) -> bool:
        """Find one area for everything; whether there is no reason to look further."""
        everything = tuple(lot for knot in knots for lot in knot)
        for area, count in self._options(everything):
            if not count and self._place(everything, area, count):
                alone = all(set(self.communication.placed[each.other]) <= {area} for each in self._partners(everything))
                self._keep()
                self._take_back(len(everything))
                return alone
        return False

    def _partners(self, knot: Knot) -> Iterable[Partner]:
        return (each for lot in knot for each in self.communication.calls.partners[self.ground.workloads[lot]])

    def _apart(self, knots: Sequence[Knot]) -> None:
        """Search from several first areas; knots that have none are left out."""
        knot, options = self._next(knots)
        able = False
        for tried, (area, count) in enumerate(options):
            if tried >= STARTS and self.drafts and not self.drafts[0][0]:
                return
            self.steps = STEPS + STEPS_EACH * len(knots)
            able |= self._try(knot, area, count, knots)
        if not able:
            self._without(knot, knots, self._apart)

    def _without(self, knot: Knot, knots: Sequence[Knot], go_on: Callable[[Sequence[Knot]], None]) -> None:
        """Go on without a knot."""
        size, rest = self._size(knot), [other for other in knots if other != knot]
        self.urgent[knot] += 1
        self.missing += size
        if rest:
            go_on(rest)
        else:
            self._keep()
        self.missing -= size

    def _try(self, knot: Knot, area: int, count: int, knots: Sequence[Knot]) -> bool:
        """Place a knot, or so many pods of a single lot, and go on with the others; False where it has no place."""
        if not self._place(knot, area, count):
            return False
        rest = [other for other in knots if other != knot or any(self.ground.left[lot] for lot in knot)]
        if rest:
            self._descend(rest)
        else:
            self._keep()
        self._take_back(len(knot))
        return True

    def _descend(self, knots: Sequence[Knot]) -> None:
        if self.drafts and (self.missing, self.cost) >= self.drafts[0][:2]:
            return
        knot, options = self._next(knots)
        tried = 0
        for area, count in options:
            # With no steps left the way that is gone is still gone to its end.
            if tried and (tried == WIDTH or self.steps <= 0):
                return
            self.steps -= 1
            tried += self._try(knot, area, count, knots)
        if not tried:
            self._without(knot, knots, self._descend)

    def _next(self, knots: Sequence[Knot]) -> tuple[Knot, list[tuple[int, int]]]:
        """The knot that is hardest to place, and where it may go."""
        best: tuple[float, int, int] | None = None
        found: tuple[Knot, list[tuple[int, int]]] = (), []
        for number, knot in enumerate(knots):
            options = self._options(knot)
            if not options:
                return knot, []
            pulled = max(int(self.communication.pull[self.ground.workloads[lot]].max()) for lot in knot)
            key = (len(options) / (1 + self.urgent[knot]), -pulled, number)
            if best is None or key < best:
                best, found = key, (knot, options)
        return found

    def _options(self, knot: Knot) -> list[tuple[int, int]]:
        """Areas for a knot, cheapest first, with 0; where none takes a single lot, with as many pods as each takes."""
        ground, communication = self.ground, self.communication
        ground.state.work += STEP // 2 * len(knot)
        need = sum(ground.request[lot] * ground.left[lot] for lot in knot)
        able = np.ones(communication.calls.areas, dtype=bool)
        for lot in knot:
            able &= (ground.fits[lot] > 0) & communication.near(ground.workloads[lot])
        whole = able & (ground.free >= need).all(axis=1)
        for lot in knot:
            whole &= ground.fits[lot] >= ground.left[lot]
            # Whether the links carry the lot, if it were the only one.
            whole &= communication.carried_by_area(ground.workloads[lot]) >= ground.left[lot]
        pull = sum(communication.pull[ground.workloads[lot]] * ground.left[lot] for lot in knot)
        found = np.flatnonzero(whole)
        order = found[np.lexsort((found, -ground.free[found].sum(axis=1), pull[found]))].tolist()
        options = [(area, 0) for area in order]
        return options if options or len(knot) > 1 else self._some(knot[0], able, pull)

    def _some(self, lot: int, able: BoolArray, pull: IntArray) -> list[tuple[int, int]]:
        """Areas for some pods of a lot, and how many each takes."""
        ground, request = self.ground, self.ground.request[lot]
        counts = np.where(able, np.minimum(ground.fits[lot], ground.left[lot]), 0)
        for resource in np.flatnonzero(request):
            np.minimum(counts, ground.free[:, resource] // request[resource], out=counts)
        np.minimum(counts, self.communication.carried_by_area(ground.workloads[lot]), out=counts)
        found = np.flatnonzero(counts > 0)
        order = found[np.lexsort((found, -counts[found], pull[found]))].tolist()
        return [(area, int(counts[area])) for area in order]

    def _place(self, knot: Knot, area: int, count: int) -> bool:
        """Place a knot, ``count`` pods of it where that is not 0; False, and nothing placed, where that fails."""
        for done, lot in enumerate(knot):
            if not self._add(Part(lot, area, count or self.ground.left[lot])):
                self._take_back(done)
                return False
        return True

    def _add(self, part: Part) -> bool:
        """Place pods of a lot, one by one where they may close the area to each other."""
        workload = self.ground.workloads[part.lot]
        step = 1 if self.communication.calls.network.majority else part.pods
        cost = 0
        for done in range(0, part.pods, step):
            near = self.communication.near(workload)[part.area]
            if not near or self.communication.carried(workload, part.area) < step:
                self.ground.count_in(part.lot, part.area, -done)
                return False
            cost += step * int(self.communication.pull[workload, part.area])
            self.ground.count_in(part.lot, part.area, step)
        self.cost += cost
        self.parts.append((part, cost))
        return True

    def _take_back(self, parts: int) -> None:
        """Undo the last parts."""
        for _ in range(parts):
            part, cost = self.parts.pop()
            self.ground.count_in(part.lot, part.area, -part.pods)
            self.cost -= cost

    def _keep(self) -> None:
        """Remember what stands now if it is among the best."""
        draft = (self.missing, self.cost, [part for part, _ in self.parts])
        if draft not in self.drafts:
            self.drafts = sorted([*self.drafts, draft], key=lambda each: each[:2])[:DRAFTS]
