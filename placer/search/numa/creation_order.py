"""Pods that are placed change places, so that kubelets admit them in the order in which they were created (C10).

Where the pods of a node work in that order they can be bound together; else one after the other. Pods of about one size
and of different age change places. Only pods on their own take part, so no value changes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np

from placer.arrays import Dense, Solution, score_solution
from placer.base.deadline import Deadline
from placer.search.numa.zone_bins import SINGLE, ZoneBins


def swap_towards_creation_order(
    dense: Dense, solution: Solution, created: Sequence[float], seed: int, deadline: Deadline
) -> Solution:
    """Exchange pods between nodes so that more nodes admit theirs by age; the values are the same.

    ``created`` is seconds per class; it ends at the deadline, or when enough was tried. The pods of each node get an
    order that its kubelet admits.
    """
    swaps = _SwapsByCreation(dense, solution, created, seed)
    swaps.run(deadline)
    found = swaps.bins.ordered()
    if found is None or score_solution(dense, found) != score_solution(dense, solution):
        return solution
    return found


class _SwapsByCreation:
    def __init__(self, dense: Dense, solution: Solution, created: Sequence[float], seed: int) -> None:
        self.dense, self.created, self.chance = dense, created, random.Random(seed)
        self.bins = ZoneBins(dense, solution, self.chance)
        self.numa, self.facts = self.bins.numa, self.bins.facts
        self.exchanged = np.array([self._alone(index) for index in range(len(dense.classes))], dtype=bool)
        asked = self.facts.asked[:, 0].tolist()
        #: Per order of pods of one age, the larger first and the smaller first: the place of each class.
        self.places = [[(age, sign * most) for age, most in zip(created, asked, strict=True)] for sign in (-1, 1)]
        self.refused = {node: self._refused(node, order) for node, order in self.bins.order.items()}
        self.bad = [node for node, count in self.refused.items() if count]

    def _alone(self, index: int) -> bool:
        one = self.dense.classes[index]
        wanted = self.dense.scopes[self.dense.groups[one.group].scope].wanted
        alone = bool(self.facts.lone[index]) and one.neighbours < 0
        return alone and not wanted and not one.daemon

    def run(self, deadline: Deadline) -> None:
        left = min(40_000, 400 * len(self.bad))
        while self.bad and left > 0 and not deadline.over:
            left -= 1
            node = self.chance.choice(self.bad)
            pods = [
                index for index in self.bins.order[node] if self.exchanged[index] and self.facts.takes_part(index, node)
            ]
            if pods:
                left -= self._try(node, self.chance.choice(pods))

    def _try(self, node: int, index: int) -> int:
        zone, bins = self.bins.zone_of(node, index), self.bins
        tried = 0
        for other, partner in self._partners(zone, index):
            second = int(bins.node[other])
            refused = self._refused_after(node, index, partner), self._refused_after(second, partner, index)
            change = sum(refused) - self.refused[node] - self.refused[second]
            tried += 1
            if change > 0 or (change == 0 and self.chance.random() > 0.3):
                continue
            if bins.exchange((zone, (index,)), (other, (partner,))):
                self.refused[node], self.refused[second] = refused
                self.bad = [each for each, count in self.refused.items() if count]
                break
        return tried

    def _partners(self, zone: int, index: int) -> Iterator[tuple[int, int]]:
        bins, facts = self.bins, self.facts
        node = int(bins.node[zone])
        zones = np.unique([self.chance.randrange(len(bins.node)) for _ in range(64)])
        zones = zones[bins.node[zones] != node]
        rows, numbers = np.nonzero(bins.real[zones, SINGLE])
        zones, numbers = zones[rows], 1 + numbers
        gain = facts.asked[index] - bins.asked[zones, numbers]
        fits = (bins.room[zone] + gain >= 0).all(axis=1) & (bins.room[zones] - gain >= 0).all(axis=1)
        fits &= facts.allowed[bins.sorts[zones, numbers, 0], node] & facts.allowed[facts.sort[index]][bins.node[zones]]
        places = np.flatnonzero(fits).tolist()
        for place in self.chance.sample(places, min(12, len(places))):
            other, (partner,) = bins.bundle(int(zones[place]), int(numbers[place]))
            if self.exchanged[partner]:
                yield other, partner

    def _refused_after(self, node: int, gone: int, come: int) -> int:
        return self._refused(node, [come if each == gone else each for each in self.bins.order[node]])

    def _refused(self, node: int, pods: Sequence[int]) -> int:
        admit, kind, worst = self.numa.kubelet(node).admit, int(self.numa.kind[node]), 0
        for places in self.places:
            state, count = self.numa.start[node], 0
            for index in sorted(pods, key=places.__getitem__):
                answer = admit(state, self.numa.units[index][kind])
                if answer is None:
                    count += 1
                else:
                    state = answer[0]
            worst = max(worst, count)
            if len({self.created[each] for each in pods}) == len(pods):
                break
        return worst
