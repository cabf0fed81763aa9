"""C10 a second time, from the words of the rule and with no thought of speed: dictionaries, sets, all permutations.

Shares nothing with :mod:`placer.problem.numa` but the values that it is asked about.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, groupby, permutations, product

from placer.problem.numa import NumaDemand, NumaNode, Qos, Stage

#: What the zones have left, in the order of their ids.
Rooms = list[dict[str, int]]


def rooms_of(node: NumaNode) -> Rooms:
    return [dict(zone.available) for zone in node.zones]


def admitted(node: NumaNode, rooms: Rooms, demand: NumaDemand | None) -> tuple[Rooms, set[str]] | None:
    """The zones after a pod and the names of those it gets; None where the kubelet refuses it."""
    if demand is None or node.policy == "none":
        return rooms, set()
    used: set[str] = set()
    had: list[dict[str, int]] = [{} for _ in rooms]  # what init containers had, of what nobody else has used again
    for need, take, ends in _things(node, demand):
        if need:
            bound = {index for index, each in enumerate(had) if any(each.get(name) for name in need)}
            zones = _zones(node, rooms, need, bound)
            if zones is None:
                return None
            used |= {node.zones[index].name for index in zones}
            had = _reusable(had, rooms, _taken(rooms, zones, need), ends=ends)
            rooms = _taken(rooms, zones, take)
    return rooms, used


def _reusable(had: Rooms, before: Rooms, after: Rooms, *, ends: bool) -> Rooms:
    """Cpus and devices that are there to be used again once a container got what it needs."""
    found = []
    for each, full, rest in zip(had, before, after, strict=True):
        still = dict(each)
        for name in full:
            part = full[name] - rest[name]
            alone = name != "memory" and not name.startswith("hugepages-")
            still[name] = max(each.get(name, 0), part if alone else 0) if ends else max(each.get(name, 0) - part, 0)
        found.append(still)
    return found


def replayed(node: NumaNode, demands: Sequence[NumaDemand | None]) -> list[set[str] | None]:
    """Zones of each pod, in this order; None for one that is refused, which takes nothing."""
    rooms, found = rooms_of(node), list[set[str] | None]()
    for demand in demands:
        answer = admitted(node, rooms, demand)
        found.append(None if answer is None else answer[1])
        rooms = rooms if answer is None else answer[0]
    return found


def works(node: NumaNode, demands: Sequence[NumaDemand | None]) -> bool:
    return None not in replayed(node, demands)


def some_order(node: NumaNode, demands: Sequence[NumaDemand | None]) -> tuple[int, ...] | None:
    """Positions in the first order that works, of all there are; None where none does."""

    def extended(order: tuple[int, ...], rooms: Rooms) -> tuple[int, ...] | None:
        if len(order) == len(demands):
            return order
        tried = []
        for index, demand in enumerate(demands):
            if index not in order and demand not in tried:
                tried.append(demand)
                answer = admitted(node, rooms, demand)
                found = None if answer is None else extended((*order, index), answer[0])
                if found is not None:
                    return found
        return None

    return extended((), rooms_of(node))


def any_order(node: NumaNode, demands: Sequence[NumaDemand | None]) -> bool:
    return all(works(node, order) for order in permutations(demands))


def creation_order(node: NumaNode, demands: Sequence[NumaDemand | None], created: Sequence[float]) -> bool:
    """Whether every order works in which nobody comes before somebody older."""
    ages = sorted(range(len(demands)), key=lambda index: created[index])
    layers = [list(permutations(same)) for _, same in groupby(ages, key=lambda index: created[index])]
    return all(works(node, [demands[index] for layer in choice for index in layer]) for choice in product(*layers))


def _things(node: NumaNode, demand: NumaDemand) -> list[tuple[dict[str, int], dict[str, int], bool]]:
    """What is aligned at once: what must be there, what stays taken, and whether it is for an init container alone."""
    if node.scope == "container":
        things = []
        for each in demand.containers:
            need = _aligned(node, demand, dict(each.requests))
            ends = each.stage is Stage.INIT
            things.append((need, {} if ends else need, ends))
        return things
    # The pod as a whole: every moment of its life, and in the end everything that stays.
    need, stays = dict[str, int](), dict[str, int]()
    for each in demand.containers:
        for name, amount in _aligned(node, demand, dict(each.requests)).items():
            need[name] = max(need.get(name, 0), stays.get(name, 0) + amount)
            if each.stage is not Stage.INIT:
                stays[name] = stays.get(name, 0) + amount
    overhead = {name: demand.overhead[name] for name in need}
    return [
        (
            {name: amount + overhead[name] for name, amount in need.items()},
            {name: stays.get(name, 0) + overhead[name] for name in need},
            False,
        )
    ]


def _aligned(node: NumaNode, demand: NumaDemand, asked: dict[str, int]) -> dict[str, int]:
    listed = {name for zone in node.zones for name in zone.lists}
    found = {}
    for name, amount in asked.items():
        if name not in listed or name in ("ephemeral-storage", "storage", "pods"):
            continue
        native = name in ("cpu", "memory") or name.startswith("hugepages-")
        if native and (demand.qos is not Qos.GUARANTEED or demand.pod_level):
            continue
        if name == "cpu" and amount % 1000:
            continue
        found[name] = amount
    return found


def _zones(node: NumaNode, rooms: Rooms, need: dict[str, int], bound: set[int]) -> tuple[int, ...] | None:
    """The zones that the kubelet takes, ``bound`` ones and lowest first; None where it refuses, or may: its policy is
    not known.
    """

    def suits(zones: tuple[int, ...]) -> bool:
        return bound <= set(zones) and _holds(rooms, zones, need)

    if node.policy == "unknown":
        return None
    if node.policy == "single-numa-node":
        return next(filter(suits, _sets(node, 1)), None)
    capacity = [dict(zone.capacity) for zone in node.zones]
    widths = {_width(node, capacity, {name: amount}) for name, amount in need.items()}
    if len(widths) == 1 and 0 not in widths:
        for zones in filter(suits, _sets(node, min(widths))):
            return zones
    if node.policy == "restricted":
        return None
    every = _every_set(node)
    return next(filter(suits, every), every[-1])


def _width(node: NumaNode, capacity: Rooms, need: dict[str, int]) -> int:
    """Fewest zones whose capacity could hold it; 0: all could not."""
    wide_enough = (len(zones) for zones in _every_set(node) if _holds(capacity, zones, need))
    return next(wide_enough, 0)


def _every_set(node: NumaNode) -> list[tuple[int, ...]]:
    """Sets of any size, small ones first."""
    return [zones for width in range(1, len(node.zones) + 1) for zones in _sets(node, width)]


def _sets(node: NumaNode, width: int) -> list[tuple[int, ...]]:
    """Sets of so many zones, as the kubelet orders them: as numbers with a bit per zone id."""
    sets = combinations(range(len(node.zones)), width)
    return sorted(sets, key=lambda zones: sum(2 ** node.zones[index].id for index in zones))


def _holds(rooms: Rooms, zones: tuple[int, ...], need: dict[str, int]) -> bool:
    return all(sum(rooms[index].get(name, 0) for index in zones) >= amount for name, amount in need.items())


def _taken(rooms: Rooms, zones: tuple[int, ...], take: dict[str, int]) -> Rooms:
    """Drained in zone order."""
    after = [dict(room) for room in rooms]
    for name, amount in take.items():
        for index in sorted(zones):
            part = min(amount, after[index].get(name, 0))
            after[index][name] = after[index].get(name, 0) - part
            amount -= part
    return after
