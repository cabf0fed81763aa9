"""Pods that no node can tell apart, and nodes that no pod can tell apart: counting needs each of them once."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from placer.bounds.remembered import Remembered
from placer.bounds.usable import usable
from placer.dense import Dense

__all__ = ["BoolArray", "IntArray", "Shapes"]

#: So many sets of eligible shapes are told apart.
MOST_SETS = 48

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class Shapes:
    """Shapes of pods against kinds of nodes.

    A shape is a request, a weight, a row of eligibility and host ports; a kind is a row of free room, a column of
    eligibility and the host ports taken.

    Parameters
    ----------
    dense
        The instance.

    Attributes
    ----------
    of_class
        int64, shape (classes,): the shape of each class.
    request
        int64, shape (shapes, resources), scaled.
    weight
        int64, shape (shapes,): micro-nodes of one pod.
    mask
        int64, shape (shapes,): row of ``Dense.masks``.
    of_node
        int64, shape (nodes,): the kind of each node.
    free
        int64, shape (kinds, resources), scaled: room that pods can use (:mod:`placer.bounds.usable`).
    nodes
        int64, shape (kinds,): how many nodes are of the kind.
    allowed
        bool, shape (masks, kinds): eligibility.
    """

    def __init__(self, dense: Dense) -> None:
        self.dense = dense
        known: dict[tuple[object, ...], int] = {}
        of_class = [
            known.setdefault((one.request.tobytes(), one.weight, one.mask, one.host_ports), len(known))
            for one in dense.classes
        ]
        self.of_class: IntArray = np.array(of_class, dtype=np.int64)
        first = {shape: index for index, shape in reversed(list(enumerate(of_class)))}
        self._classes = [dense.classes[first[shape]] for shape in range(len(known))]
        self.request: IntArray = dense.requests[[first[shape] for shape in range(len(known))]]
        self.weight: IntArray = np.array([one.weight for one in self._classes], dtype=np.int64)
        self.mask: IntArray = np.array([one.mask for one in self._classes], dtype=np.int64)
        self._pods = sum(one.size for one in dense.classes)
        samples, of_node, self.nodes = _kinds(dense)
        self.of_node: IntArray = of_node
        self.allowed: BoolArray = dense.masks[:, samples]
        self.free: IntArray = self._usable(dense.free[samples])
        self._samples = samples
        self._fits = Remembered(self._fits_of)

    def _usable(self, free: IntArray) -> IntArray:
        """Kinds that admit pods of the same shapes are looked at together; all of them if that would be often."""
        sets = np.unique(self.allowed[self.mask], axis=1, return_inverse=True)[1].reshape(-1)
        sets = sets if sets.max(initial=0) < MOST_SETS else np.zeros_like(sets)
        for number in np.unique(sets):
            kinds = np.flatnonzero(sets == number)
            admitted = self.allowed[self.mask][:, kinds].any(axis=1)
            free[kinds] = usable(self.request[admitted], free[kinds])
        return free

    def fits(self, shape: int) -> IntArray:
        """How many pods of a shape a node of each kind holds alone, at most all pods: int64, shape (kinds,)."""
        return self._fits[shape]

    def _fits_of(self, shape: int) -> IntArray:
        one, request = self._classes[shape], self.request[shape]
        asked = np.flatnonzero(request)
        count = np.full(len(self.nodes), self._pods, dtype=np.int64)
        if len(asked):
            count = np.minimum(count, (self.free[:, asked] // request[asked]).min(axis=1))
        if one.host_ports:
            count = np.minimum(count, 1)
            for kind, node in enumerate(self._samples):
                taken = self.dense.ports.get(int(node), ())
                if any(port.clashes(other) for port in one.host_ports for other in taken):
                    count[kind] = 0
        count[~self.allowed[one.mask]] = 0
        return count

    def at_least(self, shapes: IntArray, least: int) -> BoolArray:
        """Whether a pod of each of some shapes takes the room of one of the shape ``least``: bool, shape (shapes,)."""
        found: BoolArray = (self.request[shapes] >= self.request[least]).all(axis=1)
        found &= self.mask[shapes] == self.mask[least]
        ports = self._classes[least].host_ports
        if ports:
            found &= [self._classes[shape].host_ports == ports for shape in shapes]
        return found

    @cached_property
    def most(self) -> IntArray:
        """How many pods of each shape all nodes hold: int64, shape (shapes,)."""
        return np.array([self.fits(shape) @ self.nodes for shape in range(len(self._classes))], dtype=np.int64)


def _kinds(dense: Dense) -> tuple[IntArray, IntArray, IntArray]:
    """One node of each kind, the kind of each node, and how many nodes each has."""
    ports = {taken: number for number, taken in enumerate(dict.fromkeys(dense.ports.values()), 1)}
    held = np.array([ports.get(dense.ports.get(node, ()), 0) for node in range(len(dense.nodes))], dtype=np.int64)
    columns = (
        np.ascontiguousarray(dense.free).view(np.uint8).reshape(len(dense.nodes), 8 * len(dense.resources)),
        np.packbits(dense.masks, axis=0).T,
        held[:, None].view(np.uint8),
    )
    rows = np.ascontiguousarray(np.concatenate(columns, axis=1))
    whole = rows.view(np.dtype((np.void, rows.shape[1]))).reshape(-1)
    _, samples, of_node, nodes = np.unique(whole, return_index=True, return_inverse=True, return_counts=True)
    return samples.astype(np.int64), of_node.reshape(-1).astype(np.int64), nodes.astype(np.int64)
