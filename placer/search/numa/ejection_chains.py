"""A walk from exchange to exchange: room is gathered in one zone until a pod that waits fits in.

Every other zone may end fuller, none overfull, and all placed pods are placed after every exchange.

Source: Glover, "Ejection chains, reference structures and alternating path methods", Discrete Applied Mathematics 65
(1996); here each link is feasible.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np

from placer.arrays import Dense, Solution
from placer.arrays.solution import BoolArray, FloatArray, IntArray
from placer.base.deadline import Budget
from placer.search.numa.zone_bins import SINGLE, Bundle, ZoneBins

#: What a look for an exchange counts as, in the deterministic time of steps; about half a millisecond.
EXCHANGE_WORK = 0.0003
#: Zones with room for a shortage that are looked at for an exchange.
GIVING = 48


def place_by_ejection_chains(dense: Dense, solution: Solution, seed: int, budget: Budget) -> Solution:
    """Place more pods by exchanging pods between NUMA zones.

    In the result nothing counts less in O1, and the pods of each node are in an order that its kubelet admits.
    """
    chains = _EjectionChains(dense, solution, seed)
    chains.run(budget)
    return chains.bins.ordered() or solution


class _EjectionChains:
    def __init__(self, dense: Dense, solution: Solution, seed: int) -> None:
        self.chance = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.bins = ZoneBins(dense, solution, self.chance)
        self.facts = self.bins.facts
        self.scale: FloatArray = np.maximum(self.bins.room.max(axis=0, initial=0), self.facts.asked.max(axis=0)) + 1.0
        self.looks = 0

    def run(self, budget: Budget) -> None:
        while self.bins.waiting and self.looks * EXCHANGE_WORK < budget.work and not budget.deadline.over:
            self.looks += 1
            if self.chance.random() < 0.2:
                self._replace_waiting()
            if self.bins.mixed and self.chance.random() < 0.3:
                self._swap()
            index = self._draw()
            zone = self._zone(index)
            if zone is not None:
                self._gather(index, zone)
        budget.spend(self.looks * EXCHANGE_WORK)

    def _draw(self) -> int:
        waiting = self.bins.waiting
        if self.chance.random() < 0.5:
            return self.chance.choice(waiting)
        return max(waiting, key=lambda index: (int(self.facts.worth[index]), self.chance.random()))

    def _lacking(self, index: int, room: IntArray) -> FloatArray:
        lacking: FloatArray = (np.maximum(0, self.facts.asked[index] - room) / self.scale).sum(axis=-1)
        return lacking

    def _zone(self, index: int) -> int | None:
        allowed = self.facts.allowed[self.facts.sort[index]][self.bins.node]
        zones = np.flatnonzero(allowed)
        if not len(zones):
            return None
        spread = self.chance.choice((0.1, 0.3, 1.0, 2.0))
        keys = self._lacking(index, self.bins.room[zones]) + spread * self.numbers.random(len(zones))
        return int(zones[int(keys.argmin())])

    def _gather(self, index: int, zone: int) -> bool:
        for _ in range(16):
            if (self.bins.room[zone] >= self.facts.asked[index]).all():
                return self.bins.replace(zone, (), (index,))
            self.looks += 1
            if not self._exchange(index, zone):
                return False
        return False

    def _exchange(self, index: int, zone: int) -> bool:
        mine = np.flatnonzero(self.bins.real[zone])[1:]
        zones, bundles = self._partners(index, zone)
        if not len(mine) or not len(zones):
            return False
        after = self._after(zone, mine, zones, bundles)
        lacking = np.where(self._possible(zone, mine, zones, after), self._lacking(index, after), np.inf)
        now = float(self._lacking(index, self.bins.room[zone]))
        return any(
            self.bins.exchange(self._bundle(zone, mine[one]), self._bundle(zones[other], bundles[other]))
            for one, other in self._best(lacking, now)
        )

    def _bundle(self, zone: int, number: int) -> Bundle:
        return self.bins.bundle(int(zone), int(number))

    def _partners(self, index: int, zone: int) -> tuple[IntArray, IntArray]:
        room, bins = self.bins.room, self.bins
        scarce = self.facts.asked[index] > room[zone]
        giving = np.flatnonzero((room[:, scarce] > 0).any(axis=1))
        if len(giving) > GIVING:
            giving = self.numbers.choice(giving, GIVING, replace=False)
        zones = np.unique(np.concatenate((giving, self.numbers.integers(len(room), size=24))))
        zones = zones[zones != zone]
        rows, bundles = np.nonzero(bins.real[zones])
        zones = zones[rows]
        node = int(bins.node[zone])
        able = self.facts.allowed[bins.sorts[zones, bundles], node].all(axis=1)
        return zones[able], bundles[able]

    def _after(self, zone: int, mine: IntArray, zones: IntArray, bundles: IntArray) -> IntArray:
        """Rest of a zone after each exchange: int64, shape (mine, others, resources)."""
        bins = self.bins
        gain = bins.asked[zone, mine][:, None] - bins.asked[zones, bundles][None]
        gain[:, bins.node[zones] == bins.node[zone], self.facts.zone_width :] = 0
        after: IntArray = bins.room[zone] + gain
        return after

    def _possible(self, zone: int, mine: IntArray, zones: IntArray, after: IntArray) -> BoolArray:
        """Which exchanges leave both zones, and their nodes, with no less than nothing: bool, shape (mine, others)."""
        bins, allowed = self.bins, self.facts.allowed
        gain = after - bins.room[zone]
        possible: BoolArray = (after >= 0).all(axis=-1) & (bins.room[zones] >= gain).all(axis=-1) & gain.any(axis=-1)
        for place in (0, 1):
            possible &= allowed[bins.sorts[zone, mine, place]][:, bins.node[zones]]
        return possible

    def _best(self, lacking: FloatArray, now: float) -> list[tuple[int, int]]:
        width = lacking.shape[1]
        helping = np.flatnonzero(lacking.reshape(-1) < now - 1e-9)
        if len(helping):
            order = helping[np.argsort(lacking.reshape(-1)[helping], kind="stable")[:3]]
        else:
            harmless = np.flatnonzero(lacking.reshape(-1) <= now + 0.8)
            order = self.numbers.choice(harmless, 1) if len(harmless) else harmless
        return [divmod(int(place), width) for place in order]

    def _replace_waiting(self) -> None:
        bins, facts = self.bins, self.facts
        index = self.chance.choice(bins.waiting)
        if not facts.lone[index]:
            return
        zones = np.unique(self.numbers.integers(len(bins.node), size=GIVING))
        zones = zones[facts.allowed[facts.sort[index]][bins.node[zones]]]
        found = []
        for zone, number in zip(*np.nonzero(bins.real[zones, SINGLE]), strict=True):
            placed = bins.pods[int(zones[zone])][int(number)]
            room = bins.room[zones[zone]] + facts.asked[placed]
            if facts.lone[placed] and facts.worth[placed] <= facts.worth[index] and (room >= facts.asked[index]).all():
                found.append((int(facts.worth[placed]), self._size(placed), int(zones[zone]), placed))
        if found:
            _, _, zone, placed = min(found)
            bins.replace(zone, (placed,), (index,))

    def _swap(self) -> None:
        bins = self.bins
        node = self.chance.choice(sorted(bins.mixed))
        fixed = [index for index in bins.order.get(node, ()) if not self.facts.takes_part(index, node)]
        if not fixed:
            return
        index, second = self.chance.choice(fixed), self.chance.choice(list(bins.order))
        for others in self._partners_of(index, node, second):
            left = self._more_fixed(index, node, others, second)
            if left > 0 or (left == 0 and self.chance.random() > 0.3):
                continue
            if self._have_room(index, node, others, second) and bins.swap(node, index, second, others):
                return

    def _more_fixed(self, index: int, node: int, others: Sequence[int], second: int) -> int:
        part = self.facts.takes_part
        return sum(part(each, second) - part(each, node) for each in others) - int(part(index, second))

    def _partners_of(self, index: int, node: int, second: int) -> Iterator[tuple[int, ...]]:
        if second == node:
            return
        pods = self.bins.order[second]
        yield from ((other,) for other in self.chance.sample(pods, len(pods)))
        units = self.facts.units(index, node)
        if len(units) == 2 and len(pods) > 1:
            width = self.facts.zone_width
            apart = np.abs(self.facts.asked[pods, None, :width] - units) / self.scale[:width]
            nearest = np.argsort(apart.sum(axis=-1) + 0.3 * self.numbers.random((len(pods), 2)) / 4, axis=0)
            for one, other in nearest[:3]:
                if one != other:
                    yield pods[one], pods[other]

    def _have_room(self, index: int, node: int, others: Sequence[int], second: int) -> bool:
        bins, facts, width = self.bins, self.facts, self.facts.zone_width
        if not all(facts.free(each, node) and facts.free(each, second) for each in (index, *others)):
            return False
        gain = facts.asked[index, width:] - facts.asked[list(others), width:].sum(axis=0)
        here, there = (bins.room[bins.first[each], width:] for each in (node, second))
        return bool((here + gain >= 0).all() and (there - gain >= 0).all())

    def _size(self, index: int) -> float:
        return 0.3 * self.chance.random() - float((self.facts.asked[index] / self.scale).sum())
