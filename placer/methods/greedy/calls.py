"""Who calls whom, seen from each workload: what never changes of C8, C9 and O3 while the greedy runs."""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from placer.dense.network import Call, DenseNetwork

__all__ = ["BoolArray", "Calls", "IntArray", "Partner"]

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: More than a link may have, in its unit: sums of a few such still are 64-bit numbers.
MOST_ROOM = 2**50


class Partner(NamedTuple):
    """A dependency seen from one of its ends; all arrays have shape (areas, areas), my area first, then the other's.

    Parameters
    ----------
    other
        The workload at the other end; the same one where a workload calls itself, which then has two entries.
    calling
        Whether the other end is the caller.
    far
        bool: where the two areas are too far from each other (C8).
    cost
        What a pair costs that is not on one node.
    link
        The limited link it takes; -1: none.
    bandwidth
        What it takes of that, in the unit of :attr:`Calls.room`.
    """

    other: int
    calling: bool
    far: BoolArray
    cost: IntArray
    link: IntArray
    bandwidth: int


class Calls:
    """The network of an instance, arranged by workload.

    Parameters
    ----------
    network
        Of the instance.
    """

    def __init__(self, network: DenseNetwork) -> None:
        self.network = network
        self.area = network.area
        self.areas = len(network.cost)
        self._nodes = np.argsort(network.area, kind="stable")
        self._ends = np.searchsorted(network.area[self._nodes], np.arange(self.areas + 1))
        #: bit/s in the unit of links: the largest of which every call takes a whole number, so that sums stay small.
        self._unit = gcd(*(call.bandwidth for call in network.calls)) or 1
        #: int64, shape (links,): what the links have left for new pairs.
        self.room: IntArray = np.array([min(MOST_ROOM, each // self._unit) for each in network.room], dtype=np.int64)
        self._far: dict[int, tuple[BoolArray, BoolArray]] = {}
        self._cost = np.ascontiguousarray(network.cost.T)
        self._link = np.ascontiguousarray(network.link.T)
        partners: list[list[Partner]] = [[] for _ in network.workloads]
        for call in network.calls:
            for end, partner in self._seen_from_both(call):
                partners[end].append(partner)
        self.partners = [tuple(each) for each in partners]
        #: Per workload how often it calls itself.
        self.to_itself = [sum(p.other == w and not p.calling for p in each) for w, each in enumerate(self.partners)]
        #: Per workload the partners with whom it shares links.
        self.linked = [tuple(p for p in each if p.bandwidth and len(self.room)) for each in self.partners]

    def _seen_from_both(self, call: Call) -> tuple[tuple[int, Partner], tuple[int, Partner]]:
        network = self.network
        if call.limit not in self._far:
            far = ~network.near(call.limit)
            self._far[call.limit] = far, np.ascontiguousarray(far.T)
        far, back_far = self._far[call.limit]
        # A pair that takes more than any link has is as much too wide as one that takes a little more.
        bandwidth = min(call.bandwidth // self._unit, 1 + int(self.room.max(initial=0)))
        out = Partner(call.destination, False, far, network.cost, network.link, bandwidth)
        back = Partner(call.origin, True, back_far, self._cost, self._link, bandwidth)
        return (call.origin, out), (call.destination, back)

    def nodes_of(self, area: int) -> IntArray:
        """Nodes of an area, rising."""
        return self._nodes[self._ends[area] : self._ends[area + 1]]

    def apart(self, partner: Partner) -> bool:
        """Whether the two ends may never be in two areas (C8)."""
        return not self.network.majority and int(partner.far.sum()) == self.areas * (self.areas - 1)
