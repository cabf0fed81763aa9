"""NodeResourceTopologyMatch as a filter and a score, by the amounts that NUMA zones have available.

Without a cache period, the default, every pod sees the zones without the pods placed before it. With one those pods'
requests are taken off every zone that lists them (OverReserve), unless ``discardReservedNodes`` chooses a cache that
knows of no bound pod.

Source: scheduler-plugins ``pkg/noderesourcetopology`` (``plugin.go``, ``cache``, ``filter.go``, ``pluginhelpers.go``,
``numaresources.go``, ``score.go``, ``{least,most}_allocated.go``, ``balanced_allocation.go``, ``least_numa.go``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from placer.base.quantity import CPU, PODS, Resources
from placer.lab.policies.faults import ConfigReader
from placer.lab.policies.framework import BoolArray, ClusterState, FloatArray, IntArray, Task
from placer.problem import Node, Pod
from placer.problem.numa import NumaDemand, NumaNode, Qos, Stage

__all__ = ["NumaMatch"]


class NumaMatch:
    """Filter and score of the plug-in, by ``scoringStrategy``, ``cacheResyncPeriodSeconds`` and
    ``discardReservedNodes``.
    """

    def __init__(self, state: ClusterState, arguments: Mapping[str, Any], reader: ConfigReader) -> None:
        at = "pluginConfig[NodeResourceTopologyMatch].args"
        strategy = reader.mapping(arguments.get("scoringStrategy"), f"{at}.scoringStrategy")
        self.strategy = reader.text(strategy.get("type"), f"{at}.scoringStrategy.type", STRATEGIES[0], STRATEGIES)
        self.weights = reader.weights(strategy.get("resources"), f"{at}.scoringStrategy.resources")
        reader.rest(strategy, f"{at}.scoringStrategy.", ("type", "resources"))
        period = reader.integer(arguments.get("cacheResyncPeriodSeconds"), f"{at}.cacheResyncPeriodSeconds", 0)
        discards = reader.flag(arguments.get("discardReservedNodes"), f"{at}.discardReservedNodes")
        if discards:
            reader.remark(f"{at}.discardReservedNodes", "nodes are closed only during a binding, which takes no time")
        if discards and period:
            reader.remark(f"{at}.cacheResyncPeriodSeconds", "decides nothing with discardReservedNodes")
        zones = [None if node.numa is None else NodeZones.of(node, node.numa) for node in state.instance.nodes.values()]
        self._kinds: list[NodeZones | None] = []
        self._index: dict[NodeZones | None, int] = {}
        self._start = [self._number(each) for each in zones]
        self._kind: IntArray = np.array(self._start, dtype=np.int64)
        self._asks: dict[Ask, Ask] = {}
        self._ask_of: dict[int, Ask] = {}
        self._tables: dict[tuple[str, int], IntArray] = {}
        self._taken: dict[int, list[Task]] = defaultdict(list)
        if period and not discards:
            state.listeners.append(self._reserve)

    def _number(self, zones: NodeZones | None) -> int:
        if zones not in self._index:
            self._index[zones] = len(self._kinds)
            self._kinds.append(zones)
        return self._index[zones]

    def _ask(self, task: Task) -> Ask:
        if task.index not in self._ask_of:
            ask = ask_of(task.pod)
            self._ask_of[task.index] = self._asks.setdefault(ask, ask)
        return self._ask_of[task.index]

    def _reserve(self, task: Task, node: int, sign: int) -> None:
        if sign > 0:
            self._taken[node].append(task)
        else:
            self._taken[node].remove(task)
        zones = self._kinds[self._start[node]]
        if zones is not None:
            for each in self._taken[node]:
                zones = zones.less(self._ask(each).whole)
            self._kind[node] = self._number(zones)

    def _look_up(
        self, name: str, judge: Callable[[Ask, NodeZones | None], int], task: Task, nodes: IntArray
    ) -> IntArray:
        """Judge once for each pair of a kind of pod and a kind of node."""
        ask, kinds = self._ask(task), self._kind[nodes]
        table = self._tables.get((name, id(ask)))
        if table is None or len(table) < len(self._kinds):
            known = np.zeros(0, dtype=np.int64) if table is None else table
            table = np.concatenate((known, np.full(len(self._kinds) - len(known), -1, dtype=np.int64)))
            self._tables[name, id(ask)] = table
        for kind in np.unique(kinds[table[kinds] < 0]).tolist():
            table[kind] = judge(ask, self._kinds[kind])
        return table[kinds]

    def filter(self, task: Task, nodes: IntArray) -> BoolArray:
        """Where the pod can be aligned, or no NodeResourceTopology lists zones."""
        found: BoolArray = self._look_up("filter", _passes, task, nodes) == 1
        return found

    def score(self, task: Task, nodes: IntArray) -> FloatArray:
        """Score by the strategy."""
        return self._look_up("score", self._score, task, nodes).astype(np.float64)

    def _score(self, ask: Ask, zones: NodeZones | None) -> int:
        return score(self.strategy, ask, zones, self.weights)


def _passes(ask: Ask, zones: NodeZones | None) -> int:
    return int(zones is None or refusal(ask, zones) is None)


#: Names of the strategies; the first is the default.
STRATEGIES = ("LeastAllocated", "MostAllocated", "BalancedAllocation", "LeastNUMANodes")
#: A distance that is not given.
_FAR = 255


def score(strategy: str, ask: Ask, zones: NodeZones | None, weights: Mapping[str, int]) -> int:
    """Score of a node, 0 .. 100; weights of resources are 1 where not listed; ``zones`` is None without a
    NodeResourceTopology.
    """
    if not ask.guaranteed:
        return 100
    if zones is None:
        return 0
    if strategy == "LeastNUMANodes":
        return _least_zones(ask, zones)
    if zones.policy != "single-numa-node":
        return 0
    rooms = [{name: _units(name, have) for name, have in room} for room in zones.rooms]
    scores = [_worst(_PER_ZONE[strategy], asked, rooms, weights) for _, asked in _requests(ask, zones)]
    return sum(scores) // len(scores) if scores else 0


def _requests(ask: Ask, zones: NodeZones) -> Sequence[tuple[Stage, Resources]]:
    return ((Stage.APP, ask.whole),) if zones.scope == "pod" else ask.containers


#: Score of a zone for a request, both in whole units; with the weights of resources.
ZoneScore = Callable[[Mapping[str, int], Mapping[str, int], Mapping[str, int]], int]


def _worst(
    one: ZoneScore, asked: Mapping[str, int], rooms: Sequence[Mapping[str, int]], weights: Mapping[str, int]
) -> int:
    """It is not known which zone the kubelet takes."""
    units = {name: _units(name, amount) for name, amount in asked.items()}
    return min((found for room in rooms if (found := one(units, room, weights))), default=0)


def _units(name: str, amount: int) -> int:
    return -(-amount // 1000) if name == CPU else amount


def _mean(
    part: Callable[[int, int], int], asked: Mapping[str, int], room: Mapping[str, int], weights: Mapping[str, int]
) -> int:
    total = sum(weights.get(name, 1) for name in asked)
    have = {name: room.get(name, 0) for name in asked}
    shares = {n: 100 * part(have[n], r) // have[n] if 0 < have[n] >= r else 0 for n, r in asked.items()}
    return sum(each * weights.get(name, 1) for name, each in shares.items()) // total if total else 0


def _balanced(asked: Mapping[str, int], room: Mapping[str, int], _weights: Mapping[str, int]) -> int:
    """100 less the sample variance of the shares; of a single resource there is none (upstream leaves it undefined)."""
    shares = [amount / room[name] if room.get(name) else 1.0 for name, amount in asked.items()]
    if any(share > 1 for share in shares):
        return 0
    if len(shares) < 2:
        return 100
    mean = sum(shares) / len(shares)
    return int((1 - sum((share - mean) ** 2 for share in shares) / (len(shares) - 1)) * 100)


_PER_ZONE: Mapping[str, ZoneScore] = {
    "LeastAllocated": partial(_mean, lambda have, asked: have - asked),
    "MostAllocated": partial(_mean, lambda _have, asked: asked),
    "BalancedAllocation": _balanced,
}


def _least_zones(ask: Ask, zones: NodeZones) -> int:
    rooms = [dict(room) for room in zones.rooms]
    found: list[tuple[tuple[int, ...], bool]] = []
    for _, asked in _requests(ask, zones):
        if not _aligned(asked, rooms):
            continue
        subset = narrowest(asked, rooms, zones.costs)
        if subset is None:
            return 0
        found.append(subset)
        _drain(asked, rooms, subset[0])
    part, nearest = 100 // zones.most, all(each[1] for each in found)
    return 100 - max(len(each[0]) for each in found) * part + (part // 2 if nearest else 0) if found else 100


def narrowest(
    asked: Mapping[str, int], rooms: Sequence[Mapping[str, int]], costs: Sequence[Sequence[int | None]]
) -> tuple[tuple[int, ...], bool] | None:
    """The fewest zones that take a request, of those the nearest, the first of several; and whether no set of so many
    zones is nearer together. A distance of None counts as 255.
    """
    numbers = range(len(rooms))
    for size in range(1, len(rooms) + 1):
        fitting = [each for each in combinations(numbers, size) if _fits(asked, [rooms[zone] for zone in each])]
        if fitting:
            least = min(_distance(each, costs) for each in combinations(numbers, size))
            best = min(fitting, key=lambda each: _distance(each, costs))
            return best, _distance(best, costs) <= least
    return None


def _fits(asked: Mapping[str, int], rooms: Sequence[Mapping[str, int]]) -> bool:
    listed = all(name in room for room in rooms for name in asked)
    return listed and all(sum(room[name] for room in rooms) >= amount for name, amount in asked.items())


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


_HUGE_PAGES = "hugepages-"
_STORAGE = ("ephemeral-storage", "storage")


def is_native(resource: str) -> bool:
    return resource in (CPU, "memory", PODS, *_STORAGE) or resource.startswith((_HUGE_PAGES, "kubernetes.io/"))


def host_level(resource: str) -> bool:
    """Whether a resource that no zone lists is taken to be the node's as a whole."""
    return resource in _STORAGE or not is_native(resource)


def _always_fits(resource: str, guaranteed: bool) -> bool:
    """The kubelet aligns these for Guaranteed pods only."""
    return not guaranteed and (resource in (CPU, "memory") or resource.startswith(_HUGE_PAGES))


@dataclass(frozen=True, slots=True)
class Ask:
    """``containers``: init containers and sidecars first; ``whole``: the larger of the sum of the containers and the
    largest init container, with overhead.
    """

    qos: Qos
    containers: tuple[tuple[Stage, Resources], ...]
    whole: Resources

    @property
    def guaranteed(self) -> bool:
        return self.qos is Qos.GUARANTEED

    @property
    def unaligned(self) -> bool:
        return self.qos is Qos.BEST_EFFORT and all(is_native(name) for _, asked in self.containers for name in asked)


def ask_of(pod: Pod) -> Ask:
    """A pod that is neither Guaranteed nor asks for devices counts as one container: an instance has no others of
    it.
    """
    if pod.numa is None:
        asked = Resources({name: amount for name, amount in pod.requests.items() if name != PODS})
        qos = Qos.BURSTABLE if asked[CPU] or asked["memory"] else Qos.BEST_EFFORT
        return Ask(qos, ((Stage.APP, asked),), asked)
    containers = tuple((each.stage, each.requests) for each in pod.numa.containers)
    return Ask(pod.numa.qos, containers, _whole(pod.numa))


def _whole(demand: NumaDemand) -> Resources:
    apps, most = Resources(), dict[str, int]()
    for each in demand.containers:
        if each.stage is Stage.APP:
            apps += each.requests
        else:
            # A sidecar counts as what runs before the others: in the largest, not in the sum.
            most.update({name: max(most.get(name, 0), amount) for name, amount in each.requests.items()})
    larger = Resources({name: max(apps[name], most.get(name, 0)) for name in {**apps, **most}})
    return larger + demand.overhead


@dataclass(frozen=True, slots=True)
class NodeZones:
    """``rooms`` are per zone the amounts that it lists, zeros too; ``most`` is ``maxNUMANodes`` of the kubelet, at
    least 2.
    """

    policy: str
    scope: str
    ids: tuple[int, ...]
    rooms: tuple[tuple[tuple[str, int], ...], ...]
    allocatable: frozenset[str]
    costs: tuple[tuple[int | None, ...], ...]
    most: int = 8

    @classmethod
    def of(cls, node: Node, numa: NumaNode) -> NodeZones:
        rooms = tuple(tuple((name, zone.available[name]) for name in sorted(zone.lists)) for zone in numa.zones)
        costs = tuple(tuple(dict(zone.costs).get(other.name) for other in numa.zones) for zone in numa.zones)
        ids = tuple(zone.id for zone in numa.zones)
        return cls(numa.policy, numa.scope, ids, rooms, frozenset(node.allocatable), costs, numa.max_numa_nodes)

    def less(self, amounts: Mapping[str, int]) -> NodeZones:
        """OverReserve: down to 0."""
        rooms = tuple(tuple((name, max(0, have - amounts.get(name, 0))) for name, have in room) for room in self.rooms)
        return replace(self, rooms=rooms)


def fit(
    asked: Mapping[str, int], rooms: Sequence[Mapping[str, int]], allocatable: frozenset[str], guaranteed: bool
) -> int | None:
    """``rooms`` is per zone its listed amounts; cpu, memory and hugepages count only where ``guaranteed``."""
    wanted = {name: amount for name, amount in asked.items() if amount}
    if not allocatable.issuperset(wanted):
        return None
    names = _aligned(wanted, rooms)
    for index, room in enumerate(rooms):
        if all(n in room and (room[n] >= wanted[n] or _always_fits(n, guaranteed)) for n in names):
            return index
    return None


def _aligned(asked: Iterable[str], rooms: Iterable[Mapping[str, int]]) -> list[str]:
    listed = set[str]().union(*rooms)
    return [name for name in asked if name in listed or not host_level(name)]


_REFUSALS = {
    "pod": "cannot align pod",
    Stage.INIT: "cannot align init container",
    Stage.SIDECAR: "cannot align sidecar container",
}


def refusal(ask: Ask, zones: NodeZones) -> str | None:
    """In the plug-in's own words; None: it does not filter the node out."""
    if ask.unaligned or zones.policy != "single-numa-node":
        return None
    rooms = [dict(room) for room in zones.rooms]
    for stage, asked in _requests(ask, zones):
        found = fit(asked, rooms, zones.allocatable, ask.guaranteed)
        if found is None:
            return _REFUSALS.get("pod" if zones.scope == "pod" else stage, "cannot align container")
        if stage is Stage.APP:  # app containers take what they get from the lowest zone that fits
            _take(asked, rooms[found], ask.guaranteed)
    return None


def _take(asked: Mapping[str, int], room: dict[str, int], guaranteed: bool) -> None:
    for name, amount in asked.items():
        if name in room and not _always_fits(name, guaranteed):
            room[name] -= amount
