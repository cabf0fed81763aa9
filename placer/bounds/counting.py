"""Bounds by counting: sums of requests are compared with all room, by the fraction: amounts, and pieces of one size.

A group counts with the least that makes it ready. Room that higher priorities must take, by their values, is gone for
the others. Minimised values have bounds where every pod is placed that can be; numbers of nodes and HyperNodes also
where some wait.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

from placer.arrays import Dense, DenseScope
from placer.arrays.solution import BoolArray, FloatArray, IntArray
from placer.bounds.call_costs import CallCosts, standing_cost
from placer.bounds.standalone import ArrayCache, RoomMeasure, StandaloneLimits
from placer.problem.placement import MAXIMISED


@dataclass(frozen=True)
class NamedBound:
    """A number that no placement beats among those that equal ``context`` on the values before ``criterion``.

    ``criterion``: index into ``Dense.criteria``; None: the sum of placed weight. ``by``: name of the argument.
    """

    criterion: int | None
    bound: int
    by: str
    context: tuple[int, ...] = ()


#: Priority and placed weight of it, one after another.
Reached = tuple[tuple[int, int], ...]


def some_of(sizes: IntArray, most: int = 32) -> list[int]:
    """Some of the sizes, evenly chosen, the largest included."""
    found: list[int] = sizes[:: -(-len(sizes) // most) or 1].tolist()
    return [*found, int(sizes[-1])] if len(sizes) and found[-1] != sizes[-1] else found


@dataclass(frozen=True)
class _FractionalItems:
    """int64, ``weights`` (items,), ``costs`` (items, measures); ``most``: the weight that neighbours leave."""

    weights: IntArray
    costs: IntArray
    asked: int
    most: int


class _VolumeBounds:
    def __init__(self, alone: StandaloneLimits) -> None:
        self.alone, self.shapes = alone, alone.shapes
        self._alive: BoolArray = np.zeros(len(self.shapes.weight), dtype=bool)
        self._alive[self.shapes.of_class[alone.sizes > 0]] = True
        self.measures = list(self._measures())
        self.room: IntArray = np.array(
            [int((alone.rooms.per_kind(measure) * self.shapes.nodes).sum()) for measure in self.measures],
            dtype=np.int64,
        )
        self._costs = alone.rooms.costs(self.measures, range(len(self.shapes.weight)))
        self._groups: dict[int, _FractionalItems] = {}
        self._pods: dict[int | None, _FractionalItems] = {}
        self._costs_of: dict[tuple[int, int, int], int] = {}
        self._after: tuple[Reached, FloatArray] = (), self.room.astype(np.float64)

    def _measures(self) -> Iterable[RoomMeasure]:
        masks = frozenset(self.shapes.mask[self._alive].tolist())
        if masks:
            for resource in range(self.shapes.request.shape[1]):
                yield RoomMeasure(resource, 1, masks)
                asked = np.unique(self.shapes.request[self._alive, resource])
                free = self.shapes.free[:, resource]
                for size in some_of(asked[asked > 1]):
                    if (free % size).any():
                        yield RoomMeasure(resource, size, masks)

    def most_admitted(self, priority: int, reached: Mapping[int, int]) -> tuple[int, str]:
        """Most need weight of groups of a priority, and the argument; ``reached``: placed weight of others."""
        return self._most(self._groups_of(priority), reached)

    def most_placed(self, priority: int | None, reached: Mapping[int, int]) -> tuple[int, str]:
        return self._most(self._pods_of(priority), reached)

    def _groups_of(self, priority: int) -> _FractionalItems:
        if priority not in self._groups:
            dense = self.alone.dense
            groups = [each for each in self.alone.groups if each.priority == priority and each.need_weight]
            least = [each.least(self._costs[each.shapes]) * len(each.members) for each in groups]
            weights = np.array([each.need_weight * len(each.members) for each in groups], dtype=np.int64)
            costs = np.array(least, dtype=np.int64).reshape(len(groups), len(self.measures))
            asked = sum(group.need_weight for group in dense.groups if group.priority == priority)
            most = int(weights.sum()) - self.alone.neighbours.lost_needs(
                chain.from_iterable(each.members for each in groups)
            )
            self._groups[priority] = _FractionalItems(weights, costs, asked, most)
        return self._groups[priority]

    def _pods_of(self, priority: int | None) -> _FractionalItems:
        if priority not in self._pods:
            dense = self.alone.dense
            chosen = [
                index
                for index, one in enumerate(dense.classes)
                if priority is None or dense.groups[one.group].priority == priority
            ]
            count = np.zeros(len(self.shapes.weight), dtype=np.int64)
            np.add.at(count, self.shapes.of_class[chosen], self.alone.sizes[chosen])
            there = np.flatnonzero(count)
            weights = self.shapes.weight[there] * count[there]
            asked = sum(dense.classes[index].weight * dense.classes[index].size for index in chosen)
            most = int(weights.sum()) - self.alone.neighbours.lost(self.alone.sizes, priority)
            self._pods[priority] = _FractionalItems(weights, self._costs[there] * count[there, None], asked, most)
        return self._pods[priority]

    def _most(self, items: _FractionalItems, reached: Mapping[int, int]) -> tuple[int, str]:
        total, room = items.most, self._left(tuple(reached.items()))
        says = [_most_float(items.weights, column, max(0.0, r)) for column, r in zip(items.costs.T, room, strict=True)]
        if not says or min(says) >= total:
            return total, "volume" if total == items.asked else "counting"
        best = int(np.argmin(says))
        left = int(self.room[best]) - self._least_costs(reached, best)
        found = min(total, _most_weight(items.weights, items.costs[:, best], max(0, left)))
        return found, "volume" if self.measures[best].size == 1 else "counting"

    def fewest_bins(self, bins: _Bins, reached: Mapping[int, int]) -> int:
        taken = self.room - self._left(tuple(reached.items()))
        says = [bins.fewest_for(measure, float(asked)) for measure, asked in enumerate(taken)]
        if not any(says):
            return 0
        best = int(np.argmax(says))
        return bins.fewest_for(best, self._least_costs(reached, best))

    def _least_costs(self, reached: Mapping[int, int], measure: int) -> int:
        total = 0
        for priority, value in reached.items():
            if (priority, value, measure) not in self._costs_of:
                items = self._pods_of(priority)
                cost = _least_cost(items.weights, items.costs[:, measure], value)
                self._costs_of[priority, value, measure] = cost
            total += self._costs_of[priority, value, measure]
        return total

    def _left(self, reached: Reached) -> FloatArray:
        known, left = self._after
        if not reached or reached[: len(known)] != known:
            known, left = (), self.room.astype(np.float64)
        for priority, value in reached[len(known) :]:
            items = self._pods_of(priority)
            left = left - np.array([_least_float(items.weights, column, value) for column in items.costs.T])
        if reached:
            self._after = reached, left
        return left


def _order(weights: IntArray, costs: IntArray) -> IntArray:
    return np.argsort(costs / np.maximum(weights, 1e-9), kind="stable").astype(np.int64)


def _most_float(weights: IntArray, costs: IntArray, room: float) -> float:
    if float(costs.sum()) <= room:
        return float(weights.sum())
    order = _order(weights, costs)
    return float(np.interp(room, np.append(0, np.cumsum(costs[order])), np.append(0, np.cumsum(weights[order]))))


def _least_float(weights: IntArray, costs: IntArray, value: int) -> float:
    order = _order(weights, costs)
    return float(np.interp(value, np.append(0, np.cumsum(weights[order])), np.append(0, np.cumsum(costs[order]))))


def _most_weight(weights: IntArray, costs: IntArray, room: int) -> int:
    """Any price q of a unit of cost gives a bound, the sum over items of max(0, weight - q cost) plus q room, so
    rounding cannot make it wrong. The ratio of the item that fits in part is taken.
    """
    order = _order(weights, costs)
    split = order[min(int(np.searchsorted(np.cumsum(costs[order]), room, side="right")), len(order) - 1)]
    price, unit = int(weights[split]), int(costs[split])
    if not unit:
        return int(weights.sum())
    gains: npt.NDArray[np.object_] = weights.astype(object) * unit - costs.astype(object) * price
    return int((sum(gain for gain in gains if gain > 0) + price * room) // unit)


def _least_cost(weights: IntArray, costs: IntArray, value: int) -> int:
    """With any price q of a unit of weight the cost is at least q value minus the sum over items of max(0, q weight -
    cost).
    """
    if not len(weights) or value <= 0:
        return 0
    order = _order(weights, costs)
    split = order[min(int(np.searchsorted(np.cumsum(weights[order]), value)), len(order) - 1)]
    price, unit = int(costs[split]), int(weights[split])
    losses: npt.NDArray[np.object_] = weights.astype(object) * price - costs.astype(object) * unit
    return max(0, -int(-(price * value - sum(loss for loss in losses if loss > 0)) // unit))


@dataclass(frozen=True)
class _Bins:
    """Empty nodes or domains; int64, ``outside`` of shape (measures,): room elsewhere, ``inside`` of shape (measures,
    bins): room of the largest, of the two largest, and so on.
    """

    outside: IntArray
    inside: IntArray

    @classmethod
    def of(cls, whole: IntArray, rooms: IntArray) -> _Bins:
        return cls(whole - rooms.sum(axis=1), np.cumsum(-np.sort(-rooms, axis=1), axis=1))

    def fewest_for(self, measure: int, asked: float) -> int:
        sums, left = self.inside[measure], asked - int(self.outside[measure])
        return min(int(np.searchsorted(sums, left)) + 1, len(sums)) if left > 0 else 0


class _OpenedBounds:
    def __init__(self, volume: _VolumeBounds) -> None:
        self.volume, self.dense = volume, volume.alone.dense
        self._last: dict[str, tuple[dict[int, int] | None, int]] = {}

    def fewest_opened(self, name: str, reached: dict[int, int]) -> int:
        if self._last.get(name, (None, 0))[0] != reached:
            self._last[name] = reached, sum(self.volume.fewest_bins(bins, reached) for bins in self._bins[name])
        return self._last[name][1]

    @cached_property
    def _bins(self) -> dict[str, list[_Bins]]:
        alone, tree = self.volume.alone, self.dense.domains
        rooms = [alone.rooms.per_kind(measure)[alone.shapes.of_node] for measure in self.volume.measures]
        room = np.array(rooms, dtype=np.int64).reshape(len(rooms), len(self.dense.nodes))
        sums = np.concatenate((np.zeros((len(rooms), 1), dtype=np.int64), np.cumsum(room, axis=1)), axis=1)
        inner = ~tree.used & (np.arange(len(tree.tier)) != tree.root)
        tiers = [np.flatnonzero(inner & (tree.tier == tier)) for tier in np.unique(tree.tier[inner])]
        return {
            "packedNodes": [_Bins.of(sums[:, -1], room[:, ~self.dense.node_used])],
            "packedHyperNodes": [
                _Bins.of(sums[:, -1], sums[:, tree.end[each]] - sums[:, tree.begin[each]]) for each in tiers
            ],
        }


class _MinimisedBounds:
    def __init__(self, alone: StandaloneLimits) -> None:
        self.alone, self.dense = alone, alone.dense
        self.sizes: list[int] = alone.sizes.tolist()
        self.makers = {
            "locality": self._locality,
            "span": self._span,
            "networkCost": self._network_cost,
            "packedHyperNodes": self._packed_hyper_nodes,
            "packedNodes": self._packed_nodes,
        }
        self._found: dict[str, int] = {}
        self._held = ArrayCache[RoomMeasure](lambda measure: self.dense.domains.sums(self._fits(measure)))
        self._leaves = ArrayCache[RoomMeasure](lambda measure: self._per_unit(self._fits(measure)))
        self._taken: dict[tuple[tuple[int, int], ...], tuple[tuple[RoomMeasure, int], ...]] = {}

    def least(self, name: str) -> int:
        if name not in self._found:
            self._found[name] = self.makers[name]()
        return self._found[name]

    def _fits(self, measure: RoomMeasure) -> IntArray:
        found: IntArray = self.alone.rooms.per_kind(measure)[self.alone.shapes.of_node]
        return found

    def _per_unit(self, values: IntArray) -> IntArray:
        return np.bincount(self._units, weights=values).astype(np.int64)

    def _asked(self, scope: DenseScope) -> tuple[tuple[RoomMeasure, int], ...]:
        by_shape: Counter[int] = Counter()
        for index in scope.classes:
            by_shape[int(self.alone.shapes.of_class[index])] += self.sizes[index]
        key = tuple(sorted((shape, count) for shape, count in by_shape.items() if count))
        if key not in self._taken:
            shapes = [shape for shape, _ in key]
            measures = self.alone.measures(shapes)
            costs = self.alone.rooms.costs(measures, shapes)
            taken = (np.array([count for _, count in key], dtype=np.int64)[:, None] * costs).sum(axis=0)
            self._taken[key] = tuple(zip(measures, taken.tolist(), strict=True))
        return self._taken[key]

    def _locality(self) -> int:
        total = self.dense.constant_locality
        for number, scope in enumerate(self.dense.scopes):
            if scope.wanted:
                pods = len(scope.bound) + sum(self.sizes[index] for index in scope.classes)
                total += pods * self._lowest_tier(number, scope) if pods else 0
        return total

    def _lowest_tier(self, number: int, scope: DenseScope) -> int:
        tree = self.dense.domains
        able = np.ones(len(tree.tier), dtype=bool)
        for measure, asked in self._asked(scope):
            able &= self._held[measure] >= asked
        for asked, hosts in self.alone.neighbours.apart(scope, self.alone.sizes):
            able &= tree.sums(hosts) >= asked
        anchor = self.dense.anchor(number)
        if anchor is not None:
            able &= (tree.begin <= tree.begin[anchor]) & (tree.end >= tree.end[anchor])
            able &= tree.tier >= tree.tier[anchor]
        able[tree.root] = True
        return int(tree.tier[able].min())

    def _span(self) -> int:
        total = self.dense.constant_span
        for scope in self.dense.scopes:
            if scope.wanted:
                touched = np.unique(self._units[[node for node in scope.bound if node >= 0]])
                fewest = len(touched)
                for room, asked in self._by_unit(scope):
                    left = asked - int(room[touched].sum())
                    room[touched] = 0
                    fewest = max(fewest, len(touched) + _fewest_rooms(left, room))
                total += fewest + scope.lost_leaves
        return total

    def _by_unit(self, scope: DenseScope) -> Iterator[tuple[IntArray, int]]:
        for measure, asked in self._asked(scope):
            yield self._leaves[measure].copy(), asked
        for asked, hosts in self.alone.neighbours.apart(scope, self.alone.sizes):
            yield self._per_unit(hosts), asked

    @cached_property
    def _units(self) -> IntArray:
        found: IntArray = np.unique(self.dense.span_leaf, return_inverse=True)[1].reshape(-1).astype(np.int64)
        return found

    def _network_cost(self) -> int:
        network, standing = self.dense.network, standing_cost(self.dense)
        return standing + (sum(CallCosts(self.dense, network, self.sizes).by_app.values()) if network else 0)

    def _packed_nodes(self) -> int:
        used = self.dense.node_used
        return max(
            (_fewest_rooms(asked - int(room[used].sum()), room[~used]) for asked, room in self._measures()), default=0
        )

    def _packed_hyper_nodes(self) -> int:
        tree, total = self.dense.domains, 0
        inner = np.arange(len(tree.tier)) != tree.root
        for tier in np.unique(tree.tier[inner]):
            empty = np.flatnonzero((tree.tier == tier) & ~tree.used & inner)
            fewest = 0
            for asked, room in self._measures():
                inside = tree.sums(room)[empty]
                fewest = max(fewest, _fewest_rooms(asked - int(room.sum() - inside.sum()), inside))
            total += fewest
        return total

    def _measures(self) -> Iterator[tuple[int, IntArray]]:
        yield from self.alone.neighbours.apart(None, self.alone.sizes)
        yield from self.alone.neighbours.spread_out(self.alone.sizes)
        shapes = self.alone.shapes
        classes = [index for index, pod_class in enumerate(self.dense.classes) if not pod_class.daemon]
        sizes = np.array([self.sizes[index] for index in classes], dtype=np.int64)
        for resource in range(len(self.dense.resources)):
            asked, free = self.dense.requests[classes, resource], shapes.free[shapes.of_node, resource]
            yield int((asked * sizes).sum()), free
            steps = np.unique(asked[asked > 0])
            for size in some_of(steps):
                yield int(sizes[asked >= size].sum()), free // size


def _fewest_rooms(asked: int, rooms: IntArray) -> int:
    if asked <= 0:
        return 0
    sums = np.cumsum(np.sort(rooms)[::-1])
    return min(int(np.searchsorted(sums, asked)) + 1, len(rooms))


class CountingBounds:
    """Facts about an instance before any value is known."""

    def __init__(self, dense: Dense) -> None:
        self.dense = dense
        self.alone = StandaloneLimits(dense)

    @cached_property
    def asked(self) -> dict[int, int]:
        """Priority to the weight of its pods that can be placed."""
        found: dict[int, int] = defaultdict(int)
        for group, weight in zip(self.dense.groups, self._weights, strict=True):
            found[group.priority] += weight
        return found

    @cached_property
    def elastic(self) -> frozenset[int]:
        """Priorities with a group that can place more than ``admitted`` counts."""
        pairs = zip(self.dense.groups, self._weights, strict=True)
        return frozenset(group.priority for group, weight in pairs if weight > group.need_weight)

    @cached_property
    def _weights(self) -> list[int]:
        sizes, classes = self.alone.sizes.tolist(), self.dense.classes
        return [sum(classes[index].weight * sizes[index] for index in group.classes) for group in self.dense.groups]

    @cached_property
    def volume(self) -> _VolumeBounds:
        """Amounts and pieces in all."""
        return _VolumeBounds(self.alone)

    @cached_property
    def opened(self) -> _OpenedBounds | None:
        """None where daemons wait."""
        return None if any(one.daemon for one in self.dense.classes) else _OpenedBounds(self.volume)

    @cached_property
    def everything(self) -> _MinimisedBounds:
        """Minimised values where every pod is placed that can be."""
        return _MinimisedBounds(self.alone)


_last: list[CountingBounds] = []


def counting_of(dense: Dense) -> CountingBounds:
    """Facts of an instance; those of the last one are kept, since searches ask again."""
    for counting in _last:
        if counting.dense is dense:
            return counting
    found = CountingBounds(dense)
    _last[:] = [found]
    return found


def placed_before(criteria: Sequence[tuple[str, int | None]], values: Sequence[int]) -> dict[int, int]:
    """Placed weight per priority, as far as values before a criterion say it."""
    told = zip(criteria, values, strict=False)
    return {priority: value for (name, priority), value in told if name == "placed" and priority is not None}


def _given_bounds(counting: CountingBounds, values: Sequence[int]) -> Iterator[NamedBound]:
    dense = counting.dense
    priorities = {group.priority for group in dense.groups}
    seen: set[int] = set()
    for criterion, (name, priority) in enumerate(dense.criteria):
        before = tuple(values[:criterion])
        if priority is not None:
            yield from _left(counting, criterion, before)
            yield from _whole(counting, criterion, before)
            if name == "placed" and values[criterion] == counting.asked.get(priority, 0):
                seen.add(priority)
        elif name in counting.everything.makers and seen >= priorities:
            yield NamedBound(criterion, counting.everything.least(name), "counting", before)
        else:
            yield from _opened(counting, criterion, before)


def _opened(counting: CountingBounds, criterion: int, before: tuple[int, ...]) -> Iterator[NamedBound]:
    name, _ = counting.dense.criteria[criterion]
    if name in ("packedHyperNodes", "packedNodes") and counting.opened is not None:
        reached = placed_before(counting.dense.criteria, before)
        yield NamedBound(criterion, counting.opened.fewest_opened(name, reached), "counting", before)


def _left(counting: CountingBounds, criterion: int, before: tuple[int, ...]) -> Iterator[NamedBound]:
    name, priority = counting.dense.criteria[criterion]
    reached = placed_before(counting.dense.criteria, before)
    if priority is not None and any(reached.values()):
        most = counting.volume.most_admitted if name == "admitted" else counting.volume.most_placed
        bound, by = most(priority, reached)
        if bound < most(priority, {})[0]:
            yield NamedBound(criterion, bound, by, before)


def _whole(counting: CountingBounds, criterion: int, before: tuple[int, ...]) -> Iterator[NamedBound]:
    name, priority = counting.dense.criteria[criterion]
    follows = name == "placed" and criterion and counting.dense.criteria[criterion - 1] == ("admitted", priority)
    if follows and priority not in counting.elastic:
        yield NamedBound(criterion, before[-1], "counting", before)


def named_bounds(dense: Dense) -> tuple[NamedBound, ...]:
    """Bounds that hold for every placement: one per value, and one on the placed weight."""
    counting, found = counting_of(dense), []
    for criterion, (name, priority) in enumerate(dense.criteria):
        if priority is not None:
            most = counting.volume.most_admitted if name == "admitted" else counting.volume.most_placed
            bound, by = most(priority, {})
        else:
            bound, by = _standing(counting, name), "counting"
        found.append(NamedBound(criterion, bound, by))
    bound, by = counting.volume.most_placed(None, {})
    return (*found, NamedBound(None, bound, by))


def bounds_for(dense: Dense, values: Sequence[int]) -> tuple[NamedBound, ...]:
    """Bounds on each value among placements that equal ``values`` on those before it."""
    return (*named_bounds(dense), *_given_bounds(counting_of(dense), values))


def _standing(counting: CountingBounds, name: str) -> int:
    """New pods can only add to a value that is minimised."""
    dense = counting.dense
    if name == "networkCost":
        return standing_cost(dense)
    value = {"locality": dense.constant_locality, "span": dense.constant_span}.get(name, 0)
    for scope in dense.scopes if name in ("locality", "span") else ():
        common = dense.common(scope.bound)
        if scope.wanted and common is not None:
            leaves = {int(dense.span_leaf[node]) for node in scope.bound if node >= 0}
            value += (
                len(scope.bound) * int(dense.domains.tier[common])
                if name == "locality"
                else len(leaves) + scope.lost_leaves
            )
    return value


def weight_bound(dense: Dense, values: Sequence[int], bounds: Iterable[NamedBound]) -> NamedBound | None:
    """Bound the placed weight of every placement that is at least as good as the answer in hand; None: unknown.

    Those that are as good equal the answer on the proved values, from the first on, and keep the bound of the first
    that is not proved. The result is the least of the bound on the sum and the sum of the bounds on ``placed`` of each
    priority.

    ``values``: of the answer in hand; empty: of every placement. ``bounds``: all that were proved, for any answer.
    """
    placed = [criterion for criterion, (name, _) in enumerate(dense.criteria) if name == "placed"]
    if not placed:
        return None
    known = _ProvedLevels(dense, values, tuple(bounds))
    found = [bound for bound in known.bounds if bound.criterion is None]
    parts = [part for part in map(known.placed, placed) if part is not None]
    if len(parts) == len(placed):
        found.insert(0, NamedBound(None, sum(part.bound for part in parts), parts[-1].by))
    return min(found, key=lambda bound: bound.bound, default=None)


class _ProvedLevels:
    def __init__(self, dense: Dense, values: Sequence[int], bounds: tuple[NamedBound, ...]) -> None:
        self.dense, self.values, self.bounds = dense, tuple(values), bounds
        self.elastic = counting_of(dense).elastic if bounds else frozenset[int]()
        #: How many values, from the first on, every one of these placements has in common with the answer.
        self.proved = 0
        while self.proved < len(self.values) and self._met(self.proved):
            self.proved += 1

    def _met(self, criterion: int) -> bool:
        best = self.best(criterion)
        return best is not None and best.bound == self.values[criterion]

    def best(self, criterion: int) -> NamedBound | None:
        contexts = [()] if criterion > self.proved else [(), self.values[:criterion]]
        found = [bound for bound in self.bounds if bound.criterion == criterion and bound.context in contexts]
        sign = 1 if self.dense.criteria[criterion][0] in MAXIMISED else -1
        return min(found, key=lambda bound: sign * bound.bound, default=None)

    def placed(self, criterion: int) -> NamedBound | None:
        priority = self.dense.criteria[criterion][1]
        found = [self.best(criterion)]
        if priority not in self.elastic:
            found.append(self.best(self.dense.criteria.index(("admitted", priority))))
        return min((bound for bound in found if bound is not None), key=lambda bound: bound.bound, default=None)
