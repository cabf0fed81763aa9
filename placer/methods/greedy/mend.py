"""Pods for which no area was found are put where they break least, then pods are moved until nothing is broken.

Source: Glover, "Tabu Search, Part I", ORSA Journal on Computing 1 (1989): the best move is made even where it is no
gain, and pods do not go back for some steps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from placer.methods.greedy.areas import Ground, Part
from placer.methods.greedy.state import STEP
from placer.methods.partial.communication import BoolArray, IntArray

__all__ = ["mend"]

#: Moves made at most from one draft, steps for which pods do not go back, and moves looked at closely.
MOVES, TENURE, CLOSE = 100, 10, 4

#: What a broken pair counts, times how dear it is: at first DEAR, one more wherever no move is a gain; and what a unit
#: of O3 counts beside that. Whole numbers, so that comparisons never depend on rounding.
PAIR, DEAR, COST = 1000, 5, 15

#: More than anything counts.
NEVER = 2**62

#: Most entries of the table of links.
ENTRIES = 10**6


def mend(ground: Ground, drafts: Sequence[Sequence[Part]]) -> list[Part] | None:
    """Find areas for all pods, beginning with drafts that leave some out; None where it does not come to that.

    ``ground`` is as before in the end. Not for ``majority``.
    """
    sizes = np.array([len(lot.classes) for lot in ground.lots])
    if (ground.free.sum(axis=0) < sizes @ ground.request).any() or (ground.fits.sum(axis=1) < sizes).any():
        return None
    if (ground.fits > 0).any(axis=0).sum() < 2 or ground.fits.size * (1 + len(ground.communication.room)) > ENTRIES:
        return None
    for draft in drafts:
        ground.stand(draft)
        found = _Mend(ground).run()
        parts = ground.clear()
        if found:
            return parts
    return None


class _Mend:
    """One search, from where pods stand now."""

    def __init__(self, ground: Ground) -> None:
        self.ground, self.communication = ground, ground.communication
        self.partners = [self.communication.calls.partners[workload] for workload in ground.workloads]
        self.lots_of: dict[int, list[int]] = defaultdict(list)
        for lot, workload in enumerate(ground.workloads):
            self.lots_of[workload].append(lot)
        lots, areas = ground.fits.shape
        self.areas = np.arange(areas)
        asked = np.where(ground.request > 0, ground.request, np.iinfo(np.int64).max).min(axis=0)
        #: What counts as one broken pair: the least that a pod asks of a resource, and what a middling call takes of a
        #: link.
        self.unit = np.minimum(asked, ground.request.max(axis=0)).clip(1)
        widths = sorted(each.bandwidth for partners in self.partners for each in partners if each.bandwidth)
        self.width = widths[len(widths) // 2] if widths else 1
        #: How dear it is to break pairs of a lot, the room of an area, a link.
        self.of_lot, self.of_area, self.of_link = (
            np.full(size, DEAR) for size in ((lots, 1), areas, len(self.communication.room))
        )
        #: int64, shape (lots, areas, links + 1): what one more pod takes of each link.
        self.use = np.zeros((lots, areas, len(self.communication.room) + 1), dtype=np.int64)
        for lot, partners in enumerate(self.partners):
            for each in partners:
                for there, pods in self.communication.held[each.other].items() if each.bandwidth else ():
                    self.use[lot, self.areas, each.link[:, there]] += pods * each.bandwidth

    def run(self) -> bool:
        """Place what is left and move pods; whether nothing is broken in the end."""
        state = self.ground.state
        self._place_all()
        shut = np.zeros(self.ground.fits.shape, dtype=np.int64)
        for step in range(min(MOVES, state.moves)):
            state.moves -= 1
            state.work += 6 * STEP
            if not self._broken():
                return True
            move = self._best(shut > step)
            if move is None:
                return False
            lot, origin, _ = move
            shut[lot, origin] = step + TENURE + step % 3
        return not self._broken()

    def _place_all(self) -> None:
        """Put what stands nowhere where it breaks least, the largest first."""
        ground = self.ground
        for lot in sorted(range(len(ground.lots)), key=lambda lot: (-ground.price[lot], lot)):
            for _ in range(ground.left[lot]):
                self._count(lot, int(self._gains(slice(lot, lot + 1))[0].argmin()), 1)

    def _count(self, lot: int, area: int, count: int) -> None:
        self.ground.count_in(lot, area, count)
        for each in self.partners[lot]:
            for other in self.lots_of[each.other] if each.bandwidth else ():
                self.use[other, self.areas, each.link[area]] += count * each.bandwidth

    def _move(self, lot: int, origin: int, target: int) -> None:
        self._count(lot, origin, -1)
        self._count(lot, target, 1)

    def _best(self, shut: BoolArray) -> tuple[int, int, int] | None:
        """Make the move, of a pod that is part of what is broken, which leaves least broken, then costs least."""
        into, out, breaking = self._gains(slice(None))
        gain = into[:, None, :] - out[:, :, None]
        gain[~(breaking & (self.ground.counts > 0))] = NEVER
        gain[np.broadcast_to(shut[:, None, :], gain.shape)] = NEVER
        gain[:, self.areas, self.areas] = NEVER
        close = np.argsort(gain, axis=None, kind="stable")[:CLOSE]
        before, least, best = self._broken(), NEVER, None
        for number in close[gain.ravel()[close] < NEVER].tolist():
            lot, rest = divmod(number, len(self.areas) ** 2)
            origin, target = divmod(rest, len(self.areas))
            pull = self.communication.pull[self.ground.workloads[lot]]
            self._move(lot, origin, target)
            after = self._broken() + COST * int(pull[target] - pull[origin])
            self._move(lot, target, origin)
            if after < least:
                least, best = after, (lot, origin, target)
        if best is not None:
            if least >= before:
                self._learn()
            self._move(*best)
        return best

    def _learn(self) -> None:
        """Let what is broken get dearer. Source: Morris, "The Breakout Method", AAAI 1993."""
        pairs = (self.communication.far[self.ground.workloads] * self.ground.counts).sum(axis=1)
        self.of_lot[pairs > 0] += 1
        self.of_area[(self.ground.free < 0).any(axis=1)] += 1
        self.of_link[self.communication.room < 0] += 1

    def _space(self, amounts: IntArray) -> IntArray:
        """What amounts of resources count, int64 of shape (..., resources) to shape (...)."""
        count: IntArray = -(-amounts * PAIR // self.unit).sum(axis=-1)
        return count

    def _jam(self, amounts: IntArray) -> IntArray:
        """What amounts beyond the capacity of links count, int64 of shape (..., links) to shape (...)."""
        count: IntArray = -(-amounts * PAIR // self.width) @ self.of_link
        return count

    def _broken(self) -> int:
        """How much is broken: pairs too far, room of areas and nodes, links."""
        ground = self.ground
        pairs = PAIR * (self.of_lot * self.communication.far[ground.workloads] * ground.counts).sum()
        space = self.of_area @ self._space(np.maximum(0, -ground.free))
        places = DEAR * PAIR * np.maximum(0, -ground.fits).sum()
        return int(pairs + space + places + self._jam(np.maximum(0, -self.communication.room)))

    def _gains(self, lots: slice) -> tuple[IntArray, IntArray, BoolArray]:
        """Per lot and area what one more pod breaks and costs, what one less mends and saves, whether it mends any."""
        ground, room = self.ground, self.communication.room
        request, use, fits = ground.request[lots, None, :], self.use[lots, :, :-1], ground.fits[lots]
        pairs = PAIR * self.of_lot[lots] * self.communication.far[ground.workloads[lots]]
        over = np.maximum(0, -ground.free)
        more = self.of_area * self._space(np.maximum(0, request - ground.free) - over)
        less = self.of_area * self._space(over - np.maximum(0, -ground.free - request))
        jam = np.maximum(0, -room)
        busy = self._jam(np.maximum(0, use - room) - jam)
        calm = self._jam(jam - np.maximum(0, -room - use))
        into = pairs + more + busy + DEAR * PAIR * (fits <= 0)
        out = pairs + less + calm + DEAR * PAIR * (fits < 0)
        pull = COST * self.communication.pull[ground.workloads[lots]]
        return into + pull, out + pull, out > 0
