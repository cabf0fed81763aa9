"""What is asked in all against the room in all, by the fraction: amounts, and pieces of one size.

A group counts with the least that makes it ready; what cannot stand alone (:mod:`placer.bounds.alone`) counts nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placer.bounds.alone import Alone
from placer.bounds.rooms import Measure
from placer.bounds.shapes import BoolArray, IntArray

__all__ = ["MOST_SIZES", "Volume", "some_of"]

#: Sizes of one resource that are looked at one by one, evenly chosen where there are more.
MOST_SIZES = 32

#: Values of priorities whose least room is remembered.
MOST_TAKEN = 256

FloatArray = npt.NDArray[np.float64]


def some_of(sizes: IntArray, most: int = MOST_SIZES) -> list[int]:
    """Some of the sizes, evenly chosen, the largest among them."""
    found: list[int] = sizes[:: -(-len(sizes) // most) or 1].tolist()
    return [*found, int(sizes[-1])] if len(sizes) and found[-1] != sizes[-1] else found


@dataclass(frozen=True)
class _Items:
    """Things that are taken by the fraction.

    Parameters
    ----------
    weights
        int64, shape (items,).
    costs
        int64, shape (items, measures).
    asked
        Their weight if all of them could stand alone.
    """

    weights: IntArray
    costs: IntArray
    asked: int


class Volume:
    """Bounds on placed and on admitted weight by the one measure that says most.

    Parameters
    ----------
    alone
        What can be placed at most.
    """

    def __init__(self, alone: Alone) -> None:
        self.alone, self.shapes = alone, alone.shapes
        self._alive: BoolArray = np.zeros(len(self.shapes.weight), dtype=bool)
        self._alive[self.shapes.of_class[alone.sizes > 0]] = True
        self.measures = list(self._measures())
        self.room: IntArray = np.array(
            [int((alone.rooms.per_kind(measure) * self.shapes.nodes).sum()) for measure in self.measures],
            dtype=np.int64,
        )
        self._costs = alone.rooms.costs(self.measures, range(len(self.shapes.weight)))
        self._groups: dict[int, _Items] = {}
        self._pods: dict[int | None, _Items] = {}
        self._taken: dict[tuple[int, int], FloatArray] = {}

    def _measures(self) -> Iterable[Measure]:
        """Amounts of each resource, and pieces of those sizes that leave something over on some node."""
        masks = frozenset(self.shapes.mask[self._alive].tolist())
        if masks:
            for resource in range(self.shapes.request.shape[1]):
                yield Measure(resource, 1, masks)
                asked = np.unique(self.shapes.request[self._alive, resource])
                free = self.shapes.free[:, resource]
                for size in some_of(asked[asked > 1]):
                    if (free % size).any():
                        yield Measure(resource, size, masks)

    def admitted(self, priority: int, reached: Mapping[int, int]) -> tuple[int, str]:
        """Most need weight of groups of a priority, and the name of the argument.

        Parameters
        ----------
        priority
            Theirs.
        reached
            Placed weight that other priorities must have.
        """
        return self._most(self._groups_of(priority), reached)

    def placed(self, priority: int | None, reached: Mapping[int, int]) -> tuple[int, str]:
        """Most weight of pods of a priority (None: of all), and the name of the argument; as :meth:`admitted`."""
        return self._most(self._pods_of(priority), reached)

    def _groups_of(self, priority: int) -> _Items:
        if priority not in self._groups:
            dense = self.alone.dense
            kinds = [kind for kind in self.alone.kinds if kind.priority == priority and kind.need_weight]
            least = [kind.least(self._costs[kind.shapes]) * len(kind.members) for kind in kinds]
            weights = np.array([kind.need_weight * len(kind.members) for kind in kinds], dtype=np.int64)
            costs = np.array(least, dtype=np.int64).reshape(len(kinds), len(self.measures))
            asked = sum(group.need_weight for group in dense.groups if group.priority == priority)
            self._groups[priority] = _Items(weights, costs, asked)
        return self._groups[priority]

    def _pods_of(self, priority: int | None) -> _Items:
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
            self._pods[priority] = _Items(weights, self._costs[there] * count[there, None], asked)
        return self._pods[priority]

    def _most(self, items: _Items, reached: Mapping[int, int]) -> tuple[int, str]:
        """Most weight by the fraction: the least over measures of an LP with one row.

        Which measure says most is looked for with floats; what it says is then counted in integers.
        """
        total, room = int(items.weights.sum()), self.room.astype(np.float64)
        for priority, value in reached.items():
            room -= self._taken_by(priority, value)
        says = [_most_float(items.weights, column, max(0.0, r)) for column, r in zip(items.costs.T, room, strict=True)]
        if not says or min(says) >= total:
            return total, "volume" if total == items.asked else "counting"
        best = int(np.argmin(says))
        others = ((self._pods_of(priority), value) for priority, value in reached.items())
        left = int(self.room[best]) - sum(_least(other.weights, other.costs[:, best], value) for other, value in others)
        found = min(total, _most(items.weights, items.costs[:, best], max(0, left)))
        return found, "volume" if self.measures[best].size == 1 else "counting"

    def _taken_by(self, priority: int, value: int) -> FloatArray:
        """About the least that placed weight of a priority takes by each measure: float64, shape (measures,)."""
        if (priority, value) not in self._taken:
            if len(self._taken) >= MOST_TAKEN:
                self._taken.clear()
            items = self._pods_of(priority)
            taken = [_least_float(items.weights, column, value) for column in items.costs.T]
            self._taken[priority, value] = np.array(taken, dtype=np.float64)
        return self._taken[priority, value]


def _order(weights: IntArray, costs: IntArray) -> IntArray:
    """Items by falling weight per cost."""
    return np.argsort(costs / np.maximum(weights, 1e-9), kind="stable").astype(np.int64)


def _most_float(weights: IntArray, costs: IntArray, room: float) -> float:
    """About the most weight for so much cost."""
    if float(costs.sum()) <= room:
        return float(weights.sum())
    order = _order(weights, costs)
    return float(np.interp(room, np.append(0, np.cumsum(costs[order])), np.append(0, np.cumsum(weights[order]))))


def _least_float(weights: IntArray, costs: IntArray, value: int) -> float:
    """About the least cost of so much weight."""
    order = _order(weights, costs)
    return float(np.interp(value, np.append(0, np.cumsum(weights[order])), np.append(0, np.cumsum(costs[order]))))


def _most(weights: IntArray, costs: IntArray, room: int) -> int:
    """Most weight for so much cost.

    The price q of a unit of cost is the ratio of the item that fits in part. Any price at all gives a bound, the sum
    over items of max(0, weight - q cost) plus q room, so rounding in the ratios cannot make it wrong.
    """
    order = _order(weights, costs)
    split = order[min(int(np.searchsorted(np.cumsum(costs[order]), room, side="right")), len(order) - 1)]
    price, unit = int(weights[split]), int(costs[split])
    if not unit:
        return int(weights.sum())
    gains: npt.NDArray[np.object_] = weights.astype(object) * unit - costs.astype(object) * price
    return int((sum(gain for gain in gains if gain > 0) + price * room) // unit)


def _least(weights: IntArray, costs: IntArray, value: int) -> int:
    """Least cost of so much weight.

    With any price q of a unit of weight the cost is at least q value minus the sum over items of max(0, q weight -
    cost).
    """
    if not len(weights) or value <= 0:
        return 0
    order = _order(weights, costs)
    split = order[min(int(np.searchsorted(np.cumsum(weights[order]), value)), len(order) - 1)]
    price, unit = int(costs[split]), int(weights[split])
    losses: npt.NDArray[np.object_] = weights.astype(object) * price - costs.astype(object) * unit
    return max(0, -int(-(price * value - sum(loss for loss in losses if loss > 0)) // unit))
