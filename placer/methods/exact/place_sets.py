"""Places that are counted together where pods are pooled: those of one leaf on which the same pods may be.

Nodes of a place are either all empty or all used, and have the same ways to be filled; that is for the values that look
at it. The room of several places can be counted in one sum, as that of the nodes of each is (``node_sets``): in pieces
of every size, or by how many nodes are filled in each way. So each shape of pods needs one column for a leaf, and a
solver does not try in which of its places they are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from placer.dense import Dense
from placer.methods.exact.node_sets import NodeSet, Request
from placer.symmetry import grouped

__all__ = ["PlaceSet", "make_place_sets", "shared_out"]


@dataclass(frozen=True)
class PlaceSet:
    """Places that are counted together.

    Parameters
    ----------
    places
        Their numbers, ascending.
    nodes
        Indices of all their nodes.
    leaf, unit
        Their leaf domain, and what ``span`` counts them as.
    """

    places: tuple[int, ...]
    nodes: tuple[int, ...]
    leaf: int
    unit: int


def make_place_sets(dense: Dense, places: Sequence[NodeSet]) -> tuple[PlaceSet, ...]:
    """Put places together whose room can be counted in one sum, in the order of the first of each.

    Where pods of a DaemonSet may be each node is a place and a set of its own: they may be on nodes that stay empty and
    others may not, which no sum over both says.

    Parameters
    ----------
    dense
        The instance.
    places
        All of them.
    """

    def signature(number: int) -> Hashable:
        where = places[number]
        if where.alone:
            return number
        masks = dense.masks[:, where.nodes[0]].tobytes()
        return where.leaf, where.unit, where.resource, where.sizes, bool(where.fillings), masks

    return tuple(
        PlaceSet(
            tuple(numbers),
            tuple(node for number in numbers for node in places[number].nodes),
            places[numbers[0]].leaf,
            places[numbers[0]].unit,
        )
        for numbers in grouped(range(len(places)), signature).values()
    )


def shared_out(
    dense: Dense,
    places: Mapping[int, NodeSet],
    pods: Iterable[tuple[int, Request, int]],
    opened: Mapping[int, int],
    filled: Mapping[int, Sequence[int]],
) -> Iterator[tuple[int, int, int]]:
    """Give the pods of a set to its places.

    Parameters
    ----------
    dense
        The instance.
    places
        The places of the set by number.
    pods
        Item, request of each of its pods, and how many of them are there.
    opened
        Empty place to how many of its nodes may be filled; others may all be.
    filled
        Place to how many of its nodes are filled in each way, where ways are listed.

    Yields
    ------
    Item, place, and how many of its pods are there.
    """
    if len(places) == 1:
        yield from ((item, place, many) for item, _, many in pods for place in places)
    elif filled:
        yield from _by_filling(places, pods, filled)
    else:
        yield from _by_size(dense, places, pods, opened)


def _by_filling(
    places: Mapping[int, NodeSet], pods: Iterable[tuple[int, Request, int]], filled: Mapping[int, Sequence[int]]
) -> Iterator[tuple[int, int, int]]:
    """Place after place takes what its fillings have room for."""
    room = {
        (place, request): sum(
            nodes * filling[position] for nodes, filling in zip(filled[place], where.fillings, strict=True)
        )
        for place, where in places.items()
        for position, request in enumerate(where.requests)
    }
    for item, request, many in pods:
        left = many
        for place in places:
            taken = min(left, room.get((place, request), 0))
            if taken:
                room[place, request] -= taken
                left -= taken
                yield item, place, taken


def _by_size(
    dense: Dense, places: Mapping[int, NodeSet], pods: Iterable[tuple[int, Request, int]], opened: Mapping[int, int]
) -> Iterator[tuple[int, int, int]]:
    """The largest first, each on the node where it leaves least room: what counts fits."""
    resource = next(iter(places.values())).resource
    assert resource is not None
    nodes = {
        node: place for place, where in places.items() for node in where.nodes[: opened.get(place, len(where.nodes))]
    }
    room = {node: int(dense.free[node, resource]) for node in nodes}
    for item, request, many in sorted(pods, key=lambda each: (-each[1][resource], each[0])):
        size = request[resource]
        for _ in range(many):
            node = min((node for node, left in room.items() if left >= size), key=lambda node: (room[node], node))
            room[node] -= size
            yield item, nodes[node], 1
