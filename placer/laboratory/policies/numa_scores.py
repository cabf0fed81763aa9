"""The four scores of NodeResourceTopologyMatch.

Source: scheduler-plugins ``pkg/noderesourcetopology`` (``score.go``, ``{least,most}_allocated.go``,
``balanced_allocation.go``, ``least_numa.go``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from placer.instance.numa import Stage
from placer.laboratory.policies.numa_zones import Ask, NodeZones, host_level
from placer.quantity import CPU

__all__ = ["STRATEGIES", "Subset", "narrowest", "score"]

#: Names of the strategies; the first is the default.
STRATEGIES = ("LeastAllocated", "MostAllocated", "BalancedAllocation", "LeastNUMANodes")
#: A distance that is not given.
_FAR = 255


def score(strategy: str, ask: Ask, zones: NodeZones | None, weights: Mapping[str, int]) -> int:
    """Score of a node, 0 .. 100.

    Parameters
    ----------
    strategy
        One of :data:`STRATEGIES`.
    ask
        The pod.
    zones
        The node; None: no NodeResourceTopology says what zones it has.
    weights
        Of resources, 1 where not listed.
    """
    if not ask.guaranteed:
        return 100
    if zones is None:
        return 0
    if strategy == "LeastNUMANodes":
        return _least_zones(ask, zones)
    if zones.policy != "single-numa-node":
        return 0
    one = _PER_ZONE[strategy]
    rooms = [{name: _units(name, have) for name, have in room} for room in zones.rooms]
    asks = [ask.whole] if zones.scope == "pod" else [asked for _, asked in ask.containers]
    scores = [_worst(one, asked, rooms, weights) for asked in asks]
    return sum(scores) // len(scores) if scores else 0


def _worst(
    one: Callable[[Mapping[str, int], Mapping[str, int], Mapping[str, int]], int],
    asked: Mapping[str, int],
    rooms: Sequence[Mapping[str, int]],
    weights: Mapping[str, int],
) -> int:
    """Least score of a zone that is not 0: it is not known which zone the kubelet takes."""
    units = {name: _units(name, amount) for name, amount in asked.items()}
    return min((found for room in rooms if (found := one(units, room, weights))), default=0)


def _units(name: str, amount: int) -> int:
    """Whole units: cores rounded up."""
    return -(-amount // 1000) if name == CPU else amount


def _mean(scores: Mapping[str, int], weights: Mapping[str, int]) -> int:
    total = sum(weights.get(name, 1) for name in scores)
    return sum(each * weights.get(name, 1) for name, each in scores.items()) // total if total else 0


def _least(asked: Mapping[str, int], room: Mapping[str, int], weights: Mapping[str, int]) -> int:
    have = {name: room.get(name, 0) for name in asked}
    return _mean({n: 100 * (have[n] - r) // have[n] if 0 < have[n] >= r else 0 for n, r in asked.items()}, weights)


def _most(asked: Mapping[str, int], room: Mapping[str, int], weights: Mapping[str, int]) -> int:
    have = {name: room.get(name, 0) for name in asked}
    return _mean({n: 100 * r // have[n] if 0 < have[n] >= r else 0 for n, r in asked.items()}, weights)


def _balanced(asked: Mapping[str, int], room: Mapping[str, int], _weights: Mapping[str, int]) -> int:
    """100 less the sample variance of the shares; of a single resource there is none (upstream leaves it undefined)."""
    shares = [amount / room[name] if room.get(name) else 1.0 for name, amount in asked.items()]
    if any(share > 1 for share in shares):
        return 0
    if len(shares) < 2:
        return 100
    mean = sum(shares) / len(shares)
    return int((1 - sum((share - mean) ** 2 for share in shares) / (len(shares) - 1)) * 100)


_PER_ZONE = {"LeastAllocated": _least, "MostAllocated": _most, "BalancedAllocation": _balanced}


# ------------------------------------------------------------------------------------------------------ LeastNUMANodes


class Subset(NamedTuple):
    """Zones that take a request together.

    Parameters
    ----------
    zones
        Their indices.
    nearest
        Whether no set of so many zones is nearer together.
    """

    zones: tuple[int, ...]
    nearest: bool


def _least_zones(ask: Ask, zones: NodeZones) -> int:
    rooms = [dict(room) for room in zones.rooms]
    asks = [(Stage.APP, ask.whole)] if zones.scope == "pod" else list(ask.containers)
    found = list(_subsets([dict(asked) for _, asked in asks], rooms, zones.costs))
    if None in found:
        return 0
    real = [each for each in found if each is not None and each.zones]
    if not real:
        return 100
    part = 100 // zones.most
    nearest = all(each.nearest for each in real)
    return 100 - max(len(each.zones) for each in real) * part + (part // 2 if nearest else 0)


def _subsets(
    asks: Sequence[Mapping[str, int]], rooms: list[dict[str, int]], costs: Sequence[Sequence[int | None]]
) -> Iterator[Subset | None]:
    """Zones of request after request, each taking what it gets zone by zone."""
    for asked in asks:
        if all(host_level(name) and not any(name in room for room in rooms) for name in asked):
            yield Subset((), True)
            continue
        found = narrowest(asked, rooms, costs)
        yield found
        if found is not None:
            _drain(asked, rooms, found.zones)


def narrowest(
    asked: Mapping[str, int], rooms: Sequence[Mapping[str, int]], costs: Sequence[Sequence[int | None]]
) -> Subset | None:
    """The fewest zones that take a request, of those that are as few the nearest; the first where there are several.

    Parameters
    ----------
    asked
        The request.
    rooms
        What each zone lists, in the order of the list.
    costs
        Distance from each zone to each zone; None counts as 255.
    """
    numbers = range(len(rooms))
    for size in range(1, len(rooms) + 1):
        sets = [each for each in combinations(numbers, size) if all(name in rooms[z] for z in each for name in asked)]
        fitting = [each for each in sets if all(sum(rooms[z][n] for z in each) >= r for n, r in asked.items())]
        if fitting:
            least = min(_distance(each, costs) for each in combinations(numbers, size))
            best = min(fitting, key=lambda each: _distance(each, costs))
            return Subset(best, _distance(best, costs) <= least)
    return None


def _distance(zones: Sequence[int], costs: Sequence[Sequence[int | None]]) -> float:
    pairs = [costs[one][other] for one in zones for other in zones]
    return sum(_FAR if each is None else each for each in pairs) / len(zones) ** 2


def _drain(asked: Mapping[str, int], rooms: list[dict[str, int]], zones: Sequence[int]) -> None:
    for name, amount in asked.items():
        left = amount
        for zone in zones:
            taken = min(left, rooms[zone].get(name, 0))
            if taken:
                rooms[zone][name] -= taken
                left -= taken
