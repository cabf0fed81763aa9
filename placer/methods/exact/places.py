"""Sets of nodes whose packing can be counted: what the model sees instead of single nodes.

Where one resource decides and the sizes asked of it divide one another (1, 2, 4, 8 GPUs), pods fit on a set of nodes
exactly if, for each size ``s``, all pods of at least ``s`` fit into the room counted in pieces of ``s``::

    sum over pods of size >= s of size  <=  sum over nodes of floor(room / s) * s

(Put the largest first: what they leave of a node is a multiple of the next size.) The nodes of such a set need no
names, and the symmetry between them is gone. Everywhere else a place is a single node.

Source: solver-notes on bounds for vector bin packing, "per-size counting".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from placer.dense import Dense

__all__ = ["Place", "make_places", "raw_fits"]

IntArray = npt.NDArray[np.int64]

#: How many pods that ask for nothing a node holds: more than there are.
UNLIMITED = 2**31


@dataclass(frozen=True)
class Place:
    """A node, or nodes of one leaf that are counted together.

    Parameters
    ----------
    nodes
        Their indices, ascending.
    leaf
        Their leaf domain, the virtual root for nodes in no HyperNode.
    unit
        What ``span`` counts them as.
    used
        Whether they were not empty before (O4).
    resource
        The resource that decides, by which packing is exact; None for a single node where every resource counts.
    sizes
        Distinct amounts asked of it, ascending, each a divisor of the next; empty where ``resource`` is None.
    """

    nodes: tuple[int, ...]
    leaf: int
    unit: int
    used: bool
    resource: int | None = None
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Counting:
    """A resource by which packing may be counted, and how much of each other one a unit of it takes along at most."""

    resource: int
    sizes: tuple[int, ...]
    along: tuple[Fraction, ...]

    def decides(self, room: Sequence[int]) -> bool:
        """Whether on a node with this room no other resource can run short first."""
        step = self.sizes[0]
        most = room[self.resource] // step * step
        return all(most * share <= other for share, other in zip(self.along, room, strict=True))


def raw_fits(dense: Dense, index: int) -> IntArray:
    """How many pods like those of a class each node holds: :meth:`Dense.fits` not cut at the size of the class."""
    pod_class = dense.classes[index]
    fits = dense.fits(index)
    asked = np.flatnonzero(pod_class.request)
    if pod_class.host_ports:
        return fits
    room: IntArray = np.full(len(dense.nodes), UNLIMITED, dtype=np.int64)
    if len(asked):
        room = (dense.free[:, asked] // pod_class.request[asked]).min(axis=1)
    if dense.numa is not None:
        room = np.minimum(room, dense.numa.most(index))
    return np.where(fits > 0, room, 0)


def make_places(dense: Dense, *, apart: bool = False) -> tuple[Place, ...]:
    """Divide the nodes on which anything fits into places, in tree order.

    Nodes of a place are eligible for the same pods, of the same leaf and network area, all used or all empty before;
    the empty ones hold equally many pods of each size, so that the least number of them that a set of pods needs can be
    counted too.

    Parameters
    ----------
    dense
        The instance.
    apart
        Whether nodes that two pods of a call could share are places of their own: pairs on one node count in O3.
    """
    members: dict[tuple[object, ...], list[int]] = {}
    signature = _signatures(dense)
    open_nodes = _where_anything_fits(dense)
    countings = {kind: _countings(dense, signature == kind) for kind in {int(signature[node]) for node in open_nodes}}
    area = np.zeros(len(dense.nodes), dtype=np.int64) if dense.network is None else dense.network.area
    single = _meeting(dense) if apart else np.zeros(len(dense.nodes), dtype=bool)
    if dense.numa is not None:
        single |= dense.numa.kind >= 0
    unit = dense.leaf_unit if any(scope.wanted for scope in dense.scopes) else dense.leaf
    decided: dict[tuple[int, ...], _Counting | None] = {}
    found: dict[tuple[object, ...], _Counting | None] = {}
    for node in open_nodes:
        kind, used = int(signature[node]), bool(dense.node_used[node])
        room = tuple(int(amount) for amount in dense.free[node])
        if (kind, *room) not in decided:
            decided[kind, *room] = next((each for each in countings[kind] if each.decides(room)), None)
        counting = None if single[node] else decided[kind, *room]
        if counting is None:
            key: tuple[object, ...] = ("alone", node)
        else:
            profile = () if used else tuple(room[counting.resource] // size for size in counting.sizes)
            key = (int(unit[node]), int(area[node]), kind, used, counting.resource, profile)
        members.setdefault(key, []).append(node)
        found[key] = counting
    places = [_place(dense, tuple(nodes), found[key]) for key, nodes in members.items()]
    return tuple(sorted(places, key=lambda place: place.nodes[0]))


def _meeting(dense: Dense) -> npt.NDArray[np.bool_]:
    """Nodes on which both ends of a call may be, one of them new: bool, shape (nodes,)."""
    found = np.zeros(len(dense.nodes), dtype=bool)
    if dense.network is not None:
        new, before = np.zeros((2, len(dense.network.workloads), len(dense.nodes)), dtype=bool)
        for number, workload in enumerate(dense.network.workloads):
            masks = sorted({dense.classes[index].mask for index in workload.classes})
            new[number] = dense.masks[masks].any(axis=0)
            before[number, [node for node, _, _ in workload.bound if node >= 0]] = True
        for call in dense.network.calls:
            one, other = call.origin, call.destination
            found |= (new[one] & (new[other] | before[other])) | (before[one] & new[other])
    return found


def _place(dense: Dense, nodes: tuple[int, ...], counting: _Counting | None) -> Place:
    first = nodes[0]
    leaf, unit, used = int(dense.leaf[first]), int(dense.leaf_unit[first]), bool(dense.node_used[first])
    if counting is None:
        return Place(nodes, leaf, unit, used)
    return Place(nodes, leaf, unit, used, counting.resource, counting.sizes)


def _signatures(dense: Dense) -> IntArray:
    """int64, shape (nodes,): nodes of one number are eligible for the same pods."""
    if not len(dense.masks):
        return np.zeros(len(dense.nodes), dtype=np.int64)
    return np.unique(dense.masks.T, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _where_anything_fits(dense: Dense) -> list[int]:
    shapes = {each.shape: index for index, each in enumerate(dense.classes)}
    fits = np.zeros(len(dense.nodes), dtype=bool)
    for index in shapes.values():
        fits |= dense.fits(index) > 0
    return [int(node) for node in np.flatnonzero(fits)]


def _countings(dense: Dense, nodes: npt.NDArray[np.bool_]) -> list[_Counting]:
    """Resources by which pods that fit on some of the nodes can be counted; none where host ports take part."""
    first = int(np.argmax(nodes))
    requests: dict[tuple[int, ...], None] = {}
    for index, pod_class in enumerate(dense.classes):
        request = tuple(int(amount) for amount in pod_class.request)
        if dense.masks[pod_class.mask, first] and (request not in requests or pod_class.host_ports):
            if not (dense.fits(index)[nodes] > 0).any():
                continue
            if pod_class.host_ports:
                return []
            requests[request] = None
    found = []
    for resource in range(len(dense.resources)):
        sizes = sorted({request[resource] for request in requests})
        if sizes and sizes[0] > 0 and all(b % a == 0 for a, b in pairwise(sizes)):
            along = tuple(
                max(Fraction(request[other], request[resource]) for request in requests)
                for other in range(len(dense.resources))
            )
            found.append(_Counting(resource, tuple(sizes), along))
    return found
