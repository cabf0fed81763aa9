"""The cheapest split of an AppGroup: its pods in parts, each for one node, so that the fewest calls are between parts.

The calls that it cuts on the widest nodes, each at the least cost between two nodes, are a bound on ``networkCost``.
Equal pods of one workload are counted (a *type*), so a part is a vector of counts; only connected parts are listed:

    maximise    sum over parts of pairs(part) * uses(part)
    subject to  sum over parts of part[type] * uses(part) <= pods of the type

Its linear relaxation is solved by column generation over the list. A part *loses* the difference between the prices of
its pods and the calls inside; the losses of a split sum to its distance from the relaxation. So a search over parts of
small losses finds the cheapest splits and proves them. Losses are whole numbers.

Source: Johnson, Mehrotra and Nemhauser, "Min-cut clustering" (1993).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from placer.arrays import Call, Dense, DenseNetwork
from placer.arrays.solution import BoolArray, FloatArray, IntArray
from placer.base.deadline import Budget
from placer.base.grouping import grouped
from placer.base.linear import IntegerProgram, Row
from placer.bounds.call_costs import CallCosts, standing_cost

#: With more connected parts than this an AppGroup is not looked at.
MOST_PARTS = 60_000

#: Kinds of nodes of which none is wider than another; with more, one that is as wide as all of them stands for them.
MOST_KINDS = 8

MOST_STEPS = 3_000

PARTS_AT_ONCE = 60

#: Deterministic time that a linear program, a step of the search, and a listed part count as.
PROGRAM_WORK, STEP_WORK, PART_WORK = 2e-3, 4e-5, 3e-6


@dataclass(frozen=True)
class CallingPods:
    """Pending pods of an AppGroup by type, and who calls whom.

    ``classes``: per type those of one workload, request and mask. ``counts``: int64, shape (types,). ``requests``:
    int64, shape (types, resources). ``calls``: int64, shape (types, types): how often each pod of the first calls each
    of the second.
    """

    classes: tuple[tuple[int, ...], ...]
    counts: IntArray
    requests: IntArray
    masks: tuple[int, ...]
    calls: IntArray

    @property
    def signature(self) -> tuple[object, ...]:
        """Equal where the splits are."""
        return self.counts.tobytes(), self.requests.tobytes(), self.masks, self.calls.tobytes()

    @cached_property
    def all_pairs(self) -> int:
        """Calls between all pods, of a pod to itself included."""
        return int(self.counts @ self.calls @ self.counts)

    def only(self, types: IntArray) -> CallingPods:
        """The pods of some types."""
        numbers = types.tolist()
        return CallingPods(
            tuple(self.classes[each] for each in numbers),
            self.counts[types],
            self.requests[types],
            tuple(self.masks[each] for each in numbers),
            self.calls[np.ix_(types, types)],
        )

    def inside(self, parts: IntArray) -> IntArray:
        """Calls inside of each part, int64; ``parts``: shape (parts, types)."""
        found: IntArray = ((parts @ self.calls) * parts).sum(axis=1)
        return found


def _make_calling_pods(dense: Dense, classes: Sequence[int], calls: Iterable[Call]) -> CallingPods:
    def kind(index: int) -> tuple[int, bytes, int]:
        one = dense.classes[index]
        return dense.workload_of[index], one.request.tobytes(), one.mask

    types = grouped(classes, kind)
    members = [tuple(each) for each in types.values()]
    workloads = grouped(range(len(types)), [workload for workload, _, _ in types].__getitem__)
    matrix = np.zeros((len(members), len(members)), dtype=np.int64)
    for call in calls:
        matrix[np.ix_(workloads.get(call.origin, []), workloads.get(call.destination, []))] += 1
    return CallingPods(
        tuple(members),
        np.array([sum(dense.classes[index].size for index in each) for each in members], dtype=np.int64),
        dense.requests[[each[0] for each in members]],
        tuple(mask for _, _, mask in types),
        matrix,
    )


@dataclass(frozen=True)
class WidestNodes:
    """Kinds of nodes of which none is wider than another: a part that fits on none of them fits nowhere.

    ``room``: int64, shape (kinds, resources); ``eligible``: bool, shape (masks, kinds).
    """

    room: IntArray
    eligible: BoolArray

    @classmethod
    def of(cls, dense: Dense) -> WidestNodes:
        """The widest nodes of an instance."""
        nodes = np.unique(np.hstack([dense.free, dense.masks.T.astype(np.int64)]), axis=0)
        nodes = nodes[np.argsort(-nodes.sum(axis=1), kind="stable")]
        resources, kept = len(dense.resources), nodes[:0]
        for node in nodes:
            if not np.any((kept >= node).all(axis=1)):
                kept = np.vstack([kept, node])
            if len(kept) > MOST_KINDS:
                kept = nodes.max(axis=0, keepdims=True)
                break
        return cls(kept[:, :resources], kept[:, resources:].T.astype(bool))

    def hold(self, graph: CallingPods, parts: IntArray) -> BoolArray:
        """Parts that fit on a node: bool, shape (parts,)."""
        asked = parts @ graph.requests
        refused = (parts > 0) @ ~self.eligible[list(graph.masks)]
        fits = np.all(np.less_equal(asked[:, None, :], self.room), axis=2)
        found: BoolArray = np.any(fits & ~refused, axis=1)
        return found


@dataclass(frozen=True)
class Splits:
    """The connected parts of an AppGroup, their losses, and the cheapest split.

    ``parts``: int64, shape (parts, types). ``losses``: int64, shape (parts,), at least 0, in ``unit`` to a call.
    ``slack``: sum of the losses of a split that cuts ``least`` calls. ``cheapest``: rows of ``parts`` of one; None
    where the search was cut short. ``work``: deterministic time.
    """

    graph: CallingPods
    parts: IntArray
    losses: IntArray
    slack: int
    unit: int
    least: int
    cheapest: tuple[int, ...] | None
    work: float

    @cached_property
    def pairs(self) -> IntArray:
        """Calls inside of each part: int64, shape (parts,)."""
        return self.graph.inside(self.parts)

    def parts_within(self, extra: int) -> IntArray:
        """The parts of all splits that cut at most ``extra`` calls beyond the least."""
        return self.parts[self.losses <= self.slack + extra * self.unit]


def find_splits(graph: CallingPods, widest: WidestNodes) -> Splits | None:
    """Find the cheapest split; None: too many parts, or a pod fits nowhere."""
    parts = _connected_parts(graph, widest)
    if parts is None or not parts.any(axis=0).all():
        return None
    pairs = graph.inside(parts)
    prices, programs = _prices(graph, parts, pairs)
    whole, unit = _whole(prices, parts, pairs)
    losses, worth = parts @ whole - pairs * unit, int(whole @ graph.counts)
    most, steps, cheapest = worth // unit, 0, None
    while cheapest is None:
        search = _CoverSearch(parts, losses, MOST_STEPS - steps)
        cheapest = next(search.covers(graph.counts, worth - most * unit), None)
        steps += search.steps
        if search.cut_short:
            break
        most -= cheapest is None
    work = PROGRAM_WORK * programs + STEP_WORK * steps + PART_WORK * len(parts)
    return Splits(graph, parts, losses, worth - most * unit, unit, graph.all_pairs - most, cheapest, work)


def least_cuts(graph: CallingPods, widest: WidestNodes) -> tuple[int, float]:
    """Bound the calls that a split cuts by its workloads in two halves, drawn by the second eigenvector of the
    Laplacian; and the work.

    A split cuts at least as many calls within each half as a split of that half alone.
    """
    if len(graph.counts) == 1:
        return 0, 0.0
    weight = (graph.calls + graph.calls.T) * np.outer(graph.counts, graph.counts)
    order = np.argsort(np.linalg.eigh(np.diag(weight.sum(axis=1)) - weight)[1][:, 1].round(9), kind="stable")
    middle, cuts, work = len(order) // 2, 0, 0.0
    for half in (order[:middle], order[middle:]):
        part = graph.only(np.sort(half))
        found = find_splits(part, widest)
        least, spent = least_cuts(part, widest) if found is None else (found.least, found.work)
        cuts += least
        work += spent + (PART_WORK * MOST_PARTS if found is None else 0)
    return cuts, work


def _connected_parts(graph: CallingPods, widest: WidestNodes) -> IntArray | None:
    """int64, shape (parts, types); None: too many. Each but a single pod is a smaller one and a pod connected to it by
    a call.
    """
    beside = (graph.calls + graph.calls.T) > 0
    found = np.eye(len(graph.counts), dtype=np.int64)
    found = found[widest.hold(graph, found)]
    listed, total = [found], len(found)
    while len(found):
        near = found @ beside > 0
        grown = [found[:0]]
        for pod, step in enumerate(np.eye(len(graph.counts), dtype=np.int64)):
            larger = found[near[:, pod] & (found[:, pod] < graph.counts[pod])] + step
            grown.append(larger[widest.hold(graph, larger)])
        found = _distinct(np.vstack(grown), graph.counts)
        listed.append(found)
        total += len(found)
        if total > MOST_PARTS:
            return None
    return np.vstack(listed)


def _distinct(parts: IntArray, counts: IntArray) -> IntArray:
    if math.prod((counts + 1).tolist()) >= 2**62:
        found: IntArray = np.unique(parts, axis=0)
        return found
    radix = np.concatenate([[1], np.cumprod(counts + 1)[:-1]])
    return parts[np.unique(parts @ radix, return_index=True)[1]]


def _prices(graph: CallingPods, parts: IntArray, pairs: IntArray) -> tuple[FloatArray, int]:
    chosen = list(dict.fromkeys([*range(len(graph.counts)), *np.argsort(-pairs, kind="stable")[:PARTS_AT_ONCE]]))
    # No row lets a part be used more often than this; a bound that were met would have a price of its own.
    unbounded = 2 * int(graph.counts.max())
    programs = 0
    while True:
        programs += 1
        program = IntegerProgram()
        for _ in chosen:
            program.column(unbounded)
        for pod, many in zip(parts[chosen].T.tolist(), graph.counts.tolist(), strict=True):
            program.rows.append(Row.of(dict(enumerate(pod)), many))
        solved = program.maximum(dict(enumerate(pairs[chosen].tolist())))
        prices = np.maximum(0.0, np.array(solved.prices))
        gain = pairs - parts @ prices
        gain[chosen] = 0
        missing = np.flatnonzero(gain > 1e-7)
        if not len(missing):
            return prices, programs
        chosen += missing[np.argsort(-gain[missing], kind="stable")[:PARTS_AT_ONCE]].tolist()


#: Prices are fractions of this, unless they are fractions of a small common denominator.
FINE = 2**20


def _whole(prices: FloatArray, parts: IntArray, pairs: IntArray) -> tuple[IntArray, int]:
    for most in (60, 1000):
        simple = [Fraction(price).limit_denominator(most) for price in prices.tolist()]
        unit = math.lcm(*(price.denominator for price in simple))
        whole = np.array([int(price * unit) for price in simple], dtype=np.int64) if unit <= FINE else None
        if whole is not None and (parts @ whole >= pairs * unit).all():
            return whole, unit
    whole = np.ceil(prices * FINE).astype(np.int64)
    return whole + max(0, int((pairs * FINE - parts @ whole).max())), FINE


class _CoverSearch:
    """Ways to put pods together from parts, by depth-first search of at most ``most`` steps.

    ``parts``: int64, shape (parts, types); ``losses``: int64, shape (parts,), at least 0.
    """

    def __init__(self, parts: IntArray, losses: IntArray, most: int) -> None:
        self.order = np.argsort(losses, kind="stable")
        self.parts, self.losses = parts[self.order], losses[self.order]
        self.most, self.steps = most, 0

    @property
    def cut_short(self) -> bool:
        return self.steps > self.most

    def covers(self, counts: IntArray, budget: int) -> Iterator[tuple[int, ...]]:
        """The ways whose losses sum to at most ``budget``, as rows of the parts."""
        chosen: list[int] = []
        ahead = [self._choices(counts, np.arange(len(self.parts)), budget)]
        while ahead:
            choice = next(ahead[-1], None)
            if choice is None:
                ahead.pop()
                del chosen[-1:]
                continue
            part, left, candidates, rest = choice
            chosen.append(part)
            if left.any():
                ahead.append(self._choices(left, candidates, rest))
            else:
                yield tuple(int(self.order[each]) for each in chosen)
                chosen.pop()

    def _choices(
        self, left: IntArray, candidates: IntArray, budget: int
    ) -> Iterator[tuple[int, IntArray, IntArray, int]]:
        self.steps += 1
        if self.cut_short:
            return
        fits = (self.losses[candidates] <= budget) & (self.parts[candidates] <= left).all(axis=1)
        candidates = candidates[fits]
        holds, pods = self.parts[candidates] > 0, np.flatnonzero(left)
        scarcest = pods[np.argmin(holds[:, pods].sum(axis=0))]
        for part in candidates[holds[:, scarcest]].tolist():
            yield part, left - self.parts[part], candidates, budget - int(self.losses[part])
            # All ways with this part have been seen.
            candidates = candidates[candidates != part]


class AppGroupSplits:
    """The splits of all AppGroups of an instance; equal AppGroups are looked at once.

    ``classes``: AppGroup to those of its pending pods; ``spent``: deterministic time so far.
    """

    def __init__(self, dense: Dense, network: DenseNetwork) -> None:
        self.dense, self.network = dense, network
        self.classes: dict[int, list[int]] = {}
        for each in network.workloads:
            self.classes.setdefault(each.app, []).extend(each.classes)
        self.spent = 0.0
        self._calls = grouped(network.calls, lambda call: network.workloads[call.origin].app)
        self._graphs: dict[int, CallingPods] = {}
        self._splits: dict[tuple[object, ...], Splits | None] = {}
        self._least: dict[tuple[object, ...], int] = {}

    @cached_property
    def widest(self) -> WidestNodes:
        """The widest nodes of the instance."""
        return WidestNodes.of(self.dense)

    def graph(self, app: int) -> CallingPods:
        """Pending pods of an AppGroup, and who calls whom."""
        if app not in self._graphs:
            self._graphs[app] = _make_calling_pods(self.dense, self.classes[app], self._calls[app])
        return self._graphs[app]

    def of(self, app: int) -> Splits | None:
        """Splits of an AppGroup, as :func:`find_splits` finds them."""
        graph = self.graph(app)
        if graph.signature not in self._splits:
            found = self._splits[graph.signature] = find_splits(graph, self.widest)
            self.spent += PART_WORK * MOST_PARTS if found is None else found.work
        return self._splits[graph.signature]

    def least(self, app: int) -> int:
        """Fewest calls of an AppGroup's pending pods between two nodes."""
        graph, splits = self.graph(app), self.of(app)
        if splits is not None:
            return splits.least
        if graph.signature not in self._least:
            self._least[graph.signature], work = least_cuts(graph, self.widest)
            self.spent += work
        return self._least[graph.signature]

    def cost_bound(self, budget: Budget) -> tuple[int, bool]:
        """Bound ``networkCost`` of placements of every pod, and say whether all AppGroups were looked at."""
        costs = CallCosts(self.dense, self.network, [one.size for one in self.dense.classes])
        total, looked_at = standing_cost(self.dense), True
        for app in self.classes:
            looked_at, before = looked_at and not budget.over, self.spent
            total += costs.with_cuts(app, self.least(app) if looked_at else 0)
            budget.spend(self.spent - before)
        return total, looked_at
