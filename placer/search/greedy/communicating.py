"""Pods that call each other: areas first, by counting, then the nodes in them, with callers and callees on one node
(C8, C9, O3).

Depth-first search over colocation components, pods which some chain of calls keeps in one area, makes drafts; tabu
repair starts from them where all leave pods out.

Source: Glover, "Tabu Search, Part I", ORSA Journal on Computing 1 (1989).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placer.arrays.solution import BoolArray, IntArray
from placer.base.grouping import grouped
from placer.search.greedy.state import STEP, GreedyState
from placer.search.partial import Partner


@dataclass(frozen=True)
class _Lot:
    """Pods of one workload and shape that count in the same queues; ``classes`` names the class of each."""

    workload: int
    shape: int
    classes: tuple[int, ...]


class _AreaShare(NamedTuple):
    lot: int
    area: int
    pods: int


#: Lots that some chain of calls keeps in one area; the pods of a single lot may be in several.
Component = tuple[int, ...]


def lots_of(state: GreedyState, items: Iterable[tuple[int, int]]) -> list[_Lot]:
    """Sort pods that call and are called, given as (class, pods), into lots."""
    found: dict[tuple[int, int, object], list[int]] = defaultdict(list)
    for index, count in items:
        kind = state.dense.workload_of[index], state.layout.shape_of[index], state.dense.rows_of[index]
        found[kind] += [index] * count
    return [_Lot(workload, shape, tuple(classes)) for (workload, shape, _), classes in found.items()]


class _AreaRoom:
    """Pods to place (``lots``) on the nodes ``where``, and the room of areas: pods are counted by area alone."""

    def __init__(self, state: GreedyState, lots: Sequence[_Lot], where: tuple[int, int]) -> None:
        assert state.communication is not None
        self.state, self.lots, self.communication = state, lots, state.communication
        layout, (begin, end) = state.layout, where
        self.workloads = [lot.workload for lot in lots]
        #: int64, shape (lots, resources): what a pod asks for.
        self.request: IntArray = np.array([layout.shapes[lot.shape].request for lot in lots])
        self.price = [layout.shapes[lot.shape].price + 1 for lot in lots]
        self._area = self.communication.calls.area[begin:end]
        rows = [self._by_area(row) for row in state.room[:, begin:end]]
        #: int64, shape (areas, resources): what is left of each area, over all its nodes.
        self.free: IntArray = np.array(rows, dtype=np.int64).reshape(len(rows), self.communication.calls.areas).T.copy()
        kinds = {lot.shape: self._by_area(state.fits(lot.shape)[begin:end]) for lot in lots}
        #: int64, shape (lots, areas): how many more pods of its shape the nodes of an area take, were there no others.
        self.fits: IntArray = np.array([kinds[lot.shape] for lot in lots])
        #: Pods of each lot that stand nowhere.
        self.left = [len(lot.classes) for lot in lots]
        #: int64, shape (lots, areas): pods that stand there.
        self.counts: IntArray = np.zeros_like(self.fits)
        shapes = np.array([lot.shape for lot in lots])
        self._alike: BoolArray = shapes[:, None] == shapes
        state.work += STEP + len(self._area) * (len(rows) + len(kinds))

    def _by_area(self, amounts: IntArray) -> IntArray:
        sums = np.bincount(self._area, weights=amounts, minlength=self.communication.calls.areas)
        return np.rint(sums).astype(np.int64)

    def count_in(self, lot: int, area: int, count: int) -> None:
        self.state.work += STEP // 2
        self.communication.count_in(self.workloads[lot], area, count)
        self.free[area] -= self.request[lot] * count
        self.counts[lot, area] += count
        self.left[lot] -= count
        self.fits[self._alike[lot], area] -= count

    def stand(self, parts: Iterable[_AreaShare]) -> None:
        for lot, area, count in parts:
            self.count_in(lot, area, count)

    def clear(self) -> list[_AreaShare]:
        parts = [_AreaShare(lot, area, int(self.counts[lot, area])) for lot, area in np.argwhere(self.counts).tolist()]
        self.stand(_AreaShare(lot, area, -count) for lot, area, count in parts)
        return parts


class _AreaSearch:
    def __init__(self, ground: _AreaRoom) -> None:
        self.ground, self.communication = ground, ground.communication
        self.parts: list[tuple[_AreaShare, int]] = []
        self.urgent: dict[Component, int] = defaultdict(int)
        self.missing = self.cost = self.steps = 0
        #: What was found, best first: price of the pods left out, cost of the others, and where these stand.
        self.drafts: list[tuple[int, int, list[_AreaShare]]] = []

    def run(self) -> list[tuple[int, int, list[_AreaShare]]]:
        components = self._components()
        if not self._together(components):
            self._apart(components)
        return self.drafts

    def _components(self) -> list[Component]:
        lots = range(len(self.ground.lots))
        of_workload = grouped(lots, self.ground.workloads.__getitem__)
        component_of = {lot: {lot} for lot in lots}
        for workload, mine in of_workload.items():
            for partner in self.communication.calls.partners[workload]:
                if partner.other in of_workload and self.communication.calls.never_apart(partner):
                    joined = set().union(*(component_of[lot] for lot in (*mine, *of_workload[partner.other])))
                    component_of.update(dict.fromkeys(joined, joined))
        components = {tuple(sorted(component)) for component in component_of.values()}
        return sorted(components, key=lambda component: (-self._size(component), component))

    def _size(self, component: Component) -> int:
        return sum(self.ground.price[lot] * self.ground.left[lot] for lot in component)

    def _together(self, components: Sequence[Component]) -> bool:
        everything = tuple(lot for component in components for lot in component)
        for area, count in self._options(everything):
            if not count and self._place(everything, area, count):
                alone = all(set(self.communication.placed[each.other]) <= {area} for each in self._partners(everything))
                self._keep()
                self._take_back(len(everything))
                return alone
        return False

    def _partners(self, component: Component) -> Iterable[Partner]:
        return (each for lot in component for each in self.communication.calls.partners[self.ground.workloads[lot]])

    def _apart(self, components: Sequence[Component]) -> None:
        component, options = self._next(components)
        able = False
        for tried, (area, count) in enumerate(options):
            if tried >= 6 and self.drafts and not self.drafts[0][0]:
                return
            self.steps = 10 + 6 * len(components)
            able |= self._try(component, area, count, components)
        if not able:
            self._without(component, components, self._apart)

    def _without(
        self, component: Component, components: Sequence[Component], go_on: Callable[[Sequence[Component]], None]
    ) -> None:
        size, rest = self._size(component), [other for other in components if other != component]
        self.urgent[component] += 1
        self.missing += size
        if rest:
            go_on(rest)
        else:
            self._keep()
        self.missing -= size

    def _try(self, component: Component, area: int, count: int, components: Sequence[Component]) -> bool:
        if not self._place(component, area, count):
            return False
        rest = [other for other in components if other != component or any(self.ground.left[lot] for lot in component)]
        if rest:
            self._descend(rest)
        else:
            self._keep()
        self._take_back(len(component))
        return True

    def _descend(self, components: Sequence[Component]) -> None:
        if self.drafts and (self.missing, self.cost) >= self.drafts[0][:2]:
            return
        component, options = self._next(components)
        tried = 0
        for area, count in options:
            # With no steps left the way that is gone is still gone to its end.
            if tried and (tried == 3 or self.steps <= 0):
                return
            self.steps -= 1
            tried += self._try(component, area, count, components)
        if not tried:
            self._without(component, components, self._descend)

    def _next(self, components: Sequence[Component]) -> tuple[Component, list[tuple[int, int]]]:
        best: tuple[float, int, int] | None = None
        found: tuple[Component, list[tuple[int, int]]] = (), []
        for number, component in enumerate(components):
            options = self._options(component)
            if not options:
                return component, []
            pulled = max(int(self.communication.pull[self.ground.workloads[lot]].max()) for lot in component)
            key = (len(options) / (1 + self.urgent[component]), -pulled, number)
            if best is None or key < best:
                best, found = key, (component, options)
        return found

    def _options(self, component: Component) -> list[tuple[int, int]]:
        """Areas for a component, cheapest first.

        Each comes with 0; where none takes a single lot entirely, with as many pods of it as each takes.
        """
        ground, communication = self.ground, self.communication
        ground.state.work += STEP // 2 * len(component)
        need = sum(ground.request[lot] * ground.left[lot] for lot in component)
        able = np.ones(communication.calls.areas, dtype=bool)
        for lot in component:
            able &= (ground.fits[lot] > 0) & communication.near(ground.workloads[lot])
        whole = able & (ground.free >= need).all(axis=1)
        for lot in component:
            whole &= ground.fits[lot] >= ground.left[lot]
            # Whether the links carry the lot, if it were the only one.
            whole &= communication.carried_by_area(ground.workloads[lot]) >= ground.left[lot]
        pull = sum(communication.pull[ground.workloads[lot]] * ground.left[lot] for lot in component)
        found = np.flatnonzero(whole)
        order = found[np.lexsort((found, -ground.free[found].sum(axis=1), pull[found]))].tolist()
        options = [(area, 0) for area in order]
        return options if options or len(component) > 1 else self._some(component[0], able, pull)

    def _some(self, lot: int, able: BoolArray, pull: IntArray) -> list[tuple[int, int]]:
        ground, request = self.ground, self.ground.request[lot]
        counts = np.where(able, np.minimum(ground.fits[lot], ground.left[lot]), 0)
        for resource in np.flatnonzero(request):
            np.minimum(counts, ground.free[:, resource] // request[resource], out=counts)
        np.minimum(counts, self.communication.carried_by_area(ground.workloads[lot]), out=counts)
        found = np.flatnonzero(counts > 0)
        order = found[np.lexsort((found, -counts[found], pull[found]))].tolist()
        return [(area, int(counts[area])) for area in order]

    def _place(self, component: Component, area: int, count: int) -> bool:
        for done, lot in enumerate(component):
            if not self._add(_AreaShare(lot, area, count or self.ground.left[lot])):
                self._take_back(done)
                return False
        return True

    def _add(self, part: _AreaShare) -> bool:
        workload = self.ground.workloads[part.lot]
        step = 1 if self.communication.calls.network.majority else part.pods
        cost = 0
        for done in range(0, part.pods, step):
            near = self.communication.near(workload)[part.area]
            if not near or self.communication.carried(workload, part.area) < step:
                self.ground.count_in(part.lot, part.area, -done)
                return False
            cost += step * int(self.communication.pull[workload, part.area])
            self.ground.count_in(part.lot, part.area, step)
        self.cost += cost
        self.parts.append((part, cost))
        return True

    def _take_back(self, parts: int) -> None:
        for _ in range(parts):
            part, cost = self.parts.pop()
            self.ground.count_in(part.lot, part.area, -part.pods)
            self.cost -= cost

    def _keep(self) -> None:
        draft = (self.missing, self.cost, [part for part, _ in self.parts])
        if draft not in self.drafts:
            self.drafts = sorted([*self.drafts, draft], key=lambda each: each[:2])[:5]


#: What a broken pair counts, times how dear it is: at first DEAR, one more wherever no move is a gain; and what a unit
#: of O3 counts beside that. Whole numbers, so that comparisons never depend on rounding.
PAIR, DEAR, COST = 1000, 5, 15

#: More than anything counts.
NEVER = 2**62


def _tabu_repair(ground: _AreaRoom, drafts: Sequence[Sequence[_AreaShare]]) -> list[_AreaShare] | None:
    """Find areas for all pods, beginning with drafts that leave some out; None: not found.

    ``ground`` is as before in the end. Not for ``majority``.
    """
    sizes = np.array([len(lot.classes) for lot in ground.lots])
    if (ground.free.sum(axis=0) < sizes @ ground.request).any() or (ground.fits.sum(axis=1) < sizes).any():
        return None
    if (ground.fits > 0).any(axis=0).sum() < 2 or ground.fits.size * (1 + len(ground.communication.room)) > 10**6:
        return None
    for draft in drafts:
        ground.stand(draft)
        found = _TabuRepair(ground).run()
        parts = ground.clear()
        if found:
            return parts
    return None


class _TabuRepair:
    def __init__(self, ground: _AreaRoom) -> None:
        self.ground, self.communication = ground, ground.communication
        self.partners = [self.communication.calls.partners[workload] for workload in ground.workloads]
        self.lots_of = grouped(range(len(ground.lots)), ground.workloads.__getitem__)
        lots, areas = ground.fits.shape
        self.areas = np.arange(areas)
        asked = np.where(ground.request > 0, ground.request, np.iinfo(np.int64).max).min(axis=0)
        #: What counts as one broken pair: the least that a pod asks of a resource, and what a middling call takes of a
        #: link.
        self.unit = np.minimum(asked, ground.request.max(axis=0)).clip(1)
        widths = sorted(each.bandwidth for partners in self.partners for each in partners if each.bandwidth)
        self.width = widths[len(widths) // 2] if widths else 1
        #: How dear it is to break pairs of a lot, the room of an area, a link.
        self.of_lot, self.of_area, self.of_link = (
            np.full(size, DEAR) for size in ((lots, 1), areas, len(self.communication.room))
        )
        #: int64, shape (lots, areas, links + 1): what one more pod takes of each link.
        self.use = self._use()

    def _use(self) -> IntArray:
        use = np.zeros((*self.ground.fits.shape, len(self.communication.room) + 1), dtype=np.int64)
        for lot, workload in enumerate(self.ground.workloads):
            for each in self.communication.calls.linked[workload]:
                for there, pods in self.communication.held[each.other].items():
                    use[lot, self.areas, each.link[:, there]] += pods * each.bandwidth
        return use

    def run(self) -> bool:
        state = self.ground.state
        self._place_all()
        shut = np.zeros(self.ground.fits.shape, dtype=np.int64)
        for step in range(min(100, state.moves)):
            state.moves -= 1
            state.work += 6 * STEP
            if not self._broken():
                return True
            move = self._best(shut > step)
            if move is None:
                return False
            lot, origin, _ = move
            shut[lot, origin] = step + 10 + step % 3
        return not self._broken()

    def _place_all(self) -> None:
        ground = self.ground
        for lot in sorted(range(len(ground.lots)), key=lambda lot: (-ground.price[lot], lot)):
            for _ in range(ground.left[lot]):
                self._count(lot, int(self._gains(slice(lot, lot + 1))[0].argmin()), 1)

    def _count(self, lot: int, area: int, count: int) -> None:
        self.ground.count_in(lot, area, count)
        for each in self.partners[lot]:
            for other in self.lots_of.get(each.other, ()) if each.bandwidth else ():
                self.use[other, self.areas, each.link[area]] += count * each.bandwidth

    def _move(self, lot: int, origin: int, target: int) -> None:
        self._count(lot, origin, -1)
        self._count(lot, target, 1)

    def _best(self, shut: BoolArray) -> tuple[int, int, int] | None:
        into, out, breaking = self._gains(slice(None))
        gain = into[:, None, :] - out[:, :, None]
        gain[~(breaking & (self.ground.counts > 0))] = NEVER
        gain[np.broadcast_to(shut[:, None, :], gain.shape)] = NEVER
        gain[:, self.areas, self.areas] = NEVER
        close = np.argsort(gain, axis=None, kind="stable")[:4]
        before, least, best = self._broken(), NEVER, None
        for number in close[gain.ravel()[close] < NEVER].tolist():
            lot, rest = divmod(number, len(self.areas) ** 2)
            origin, target = divmod(rest, len(self.areas))
            pull = self.communication.pull[self.ground.workloads[lot]]
            self._move(lot, origin, target)
            after = self._broken() + COST * int(pull[target] - pull[origin])
            self._move(lot, target, origin)
            if after < least:
                least, best = after, (lot, origin, target)
        if best is not None:
            if least >= before:
                self._learn()
            self._move(*best)
        return best

    def _learn(self) -> None:
        """Let what is broken get dearer. Source: Morris, "The Breakout Method", AAAI 1993."""
        pairs = (self.communication.far[self.ground.workloads] * self.ground.counts).sum(axis=1)
        self.of_lot[pairs > 0] += 1
        self.of_area[(self.ground.free < 0).any(axis=1)] += 1
        self.of_link[self.communication.room < 0] += 1

    def _space(self, amounts: IntArray) -> IntArray:
        """What amounts of resources count, int64 of shape (..., resources) to shape (...)."""
        count: IntArray = -(-amounts * PAIR // self.unit).sum(axis=-1)
        return count

    def _jam(self, amounts: IntArray) -> IntArray:
        """What amounts beyond the capacity of links count, int64 of shape (..., links) to shape (...)."""
        count: IntArray = -(-amounts * PAIR // self.width) @ self.of_link
        return count

    def _broken(self) -> int:
        ground = self.ground
        pairs = PAIR * (self.of_lot * self.communication.far[ground.workloads] * ground.counts).sum()
        space = self.of_area @ self._space(np.maximum(0, -ground.free))
        places = DEAR * PAIR * np.maximum(0, -ground.fits).sum()
        return int(pairs + space + places + self._jam(np.maximum(0, -self.communication.room)))

    def _gains(self, lots: slice) -> tuple[IntArray, IntArray, BoolArray]:
        """Per lot and area what one more pod breaks and costs, what one less mends and saves, whether it mends any."""
        ground, room = self.ground, self.communication.room
        request, use, fits = ground.request[lots, None, :], self.use[lots, :, :-1], ground.fits[lots]
        pairs = PAIR * self.of_lot[lots] * self.communication.far[ground.workloads[lots]]
        over = np.maximum(0, -ground.free)
        more = self.of_area * self._space(np.maximum(0, request - ground.free) - over)
        less = self.of_area * self._space(over - np.maximum(0, -ground.free - request))
        jam = np.maximum(0, -room)
        busy = self._jam(np.maximum(0, use - room) - jam)
        calm = self._jam(jam - np.maximum(0, -room - use))
        into = pairs + more + busy + DEAR * PAIR * (fits <= 0)
        out = pairs + less + calm + DEAR * PAIR * (fits < 0)
        pull = COST * self.communication.pull[ground.workloads[lots]]
        return into + pull, out + pull, out > 0


@dataclass(frozen=True)
class Way:
    """How nodes are chosen.

    ``where``: first node and the one after the last. ``reuse``: fill nodes in use before empty ones. ``scope``: the one
    whose leaves shall be few (O2), before calls are cheap.
    """

    where: tuple[int, int]
    reuse: bool = True
    scope: int | None = None

    def best(self, state: GreedyState, nodes: IntArray) -> int:
        """The node of some to open: used ones first, then the one with least room."""
        opened = ~state.used[nodes] if self.reuse else np.zeros(len(nodes), dtype=bool)
        return int(nodes[np.lexsort((nodes, state.price[nodes], opened))[0]])

    def near(self, state: GreedyState, nodes: IntArray) -> IntArray:
        """Those of some nodes in leaves touched already; where none is, those in the leaf with most room."""
        if self.scope is None or not len(nodes):
            return nodes
        leaves = state.layout.leaf_number[nodes]
        keep = np.isin(leaves, list(state.touched_leaves(self.scope)))
        if not keep.any():
            keep = leaves == np.bincount(leaves, weights=state.price[nodes]).argmax()
        kept: IntArray = nodes[keep]
        return kept


def _fill(state: GreedyState, lots: Sequence[_Lot], parts: Sequence[_AreaShare], way: Way) -> list[int]:
    waiting = [list(reversed(lot.classes)) for lot in lots]
    by_area: dict[int, dict[int, int]] = defaultdict(dict)
    for part in parts:
        there = by_area[part.area]
        there[part.lot] = there.get(part.lot, 0) + part.pods
    for area, counts in by_area.items():
        mark, before = state.mark(), [list(left) for left in waiting]
        if not _AreaFilling(state, lots, waiting, area, way).place_all(counts):
            state.undo(mark)
            waiting = before
            _AreaFilling(state, lots, waiting, area, way).squeeze(counts)
    return [index for left in waiting for index in left]


class _AreaFilling:
    def __init__(self, state: GreedyState, lots: Sequence[_Lot], waiting: list[list[int]], area: int, way: Way) -> None:
        assert state.communication is not None
        self.state, self.communication, self.way = state, state.communication, way
        self.lots, self.waiting = lots, waiting
        self.shapes = [state.layout.shapes[lot.shape] for lot in lots]
        self.area, (self.begin, self.end) = area, way.where
        inside = self.communication.calls.nodes_of(area)
        self.nodes = inside[np.searchsorted(inside, self.begin) : np.searchsorted(inside, self.end)]
        self.left: dict[int, int] = {}

    def place_all(self, counts: dict[int, int]) -> bool:
        self.left = dict(counts)
        node = -1
        while self.left:
            lot = self._joining(node) if node >= 0 else None
            if lot is None:
                choice = self._neighbour() or self._opening()
                if choice is None:
                    return False
                lot, node = choice
            self._take(lot, node)
        return True

    def squeeze(self, counts: dict[int, int]) -> None:
        self.left = dict(counts)
        for lot in sorted(counts, key=lambda lot: (-self.shapes[lot].price, lot)):
            while lot in self.left:
                places = self.nodes[self.state.has_room(self.lots[lot].shape)[self.nodes]]
                if not len(places):
                    break
                saved = self.communication.saved(self.lots[lot].workload)
                node = min(places.tolist(), key=lambda node: (self.state.price[node], -saved.get(node, 0), node))
                self._take(lot, node)

    def _take(self, lot: int, node: int) -> None:
        if self.state.queue_limit(self.waiting[lot][-1]) < 1:
            del self.left[lot]
            return
        self.state.take(self.waiting[lot].pop(), [node], [1])
        self.left[lot] -= 1
        if not self.left[lot]:
            del self.left[lot]

    def _joining(self, node: int) -> int | None:
        best, found = (0, 0), None
        self.state.work += STEP // 10 * len(self.left)
        for lot in self.left:
            gain = self.communication.shared(self.lots[lot].workload, node)
            key = (gain, self.shapes[lot].price)
            if gain and key > best and self.state.takes(self.lots[lot].shape, node):
                best, found = key, lot
        return found

    def _neighbour(self) -> tuple[int, int] | None:
        best, found = (0, 0), None
        self.state.work += STEP // 5 * len(self.left)
        for lot in self.left:
            for node, gain in self.communication.saved(self.lots[lot].workload).items():
                key = (gain, -int(self.state.price[node]))
                inside = self.begin <= node < self.end and self.communication.calls.area[node] == self.area
                if inside and key > best and self.state.takes(self.lots[lot].shape, node):
                    best, found = key, (lot, node)
        return found

    def _opening(self) -> tuple[int, int] | None:
        coming: dict[int, int] = defaultdict(int)
        for lot, count in self.left.items():
            coming[self.lots[lot].workload] += count

        def wanted(lot: int) -> tuple[int, int]:
            partners = self.communication.calls.partners[self.lots[lot].workload]
            return sum(coming.get(each.other, 0) for each in partners), self.shapes[lot].price

        lot = max(self.left, key=wanted)
        node = self._node(lot)
        return None if node is None else (lot, node)

    def _node(self, lot: int) -> int | None:
        state = self.state
        state.work += STEP // 2
        places = self.way.near(state, self.nodes[state.has_room(self.lots[lot].shape)[self.nodes]])
        if not len(places):
            return None
        room = state.price[places]
        enough = places[room >= sum(self.shapes[lot].price * count for lot, count in self.left.items())]
        return self.way.best(state, enough) if len(enough) else int(places[room.argmax()])


def place_one(state: GreedyState, index: int, way: Way) -> bool:
    """Place one pod where it costs least (O3), then best fit; False where no node takes it."""
    communication, (begin, end) = state.communication, way.where
    assert communication is not None
    if state.queue_limit(index) < 1:
        return False
    workload = state.dense.workload_of[index]
    near = (communication.most(workload) > 0)[communication.calls.area[begin:end]]
    nodes = begin + np.flatnonzero(state.has_room(state.layout.shape_of[index])[begin:end] & near)
    state.work += STEP + 3 * (end - begin)
    if not len(nodes):
        return False
    nodes = way.near(state, nodes)
    costs = communication.added_cost(workload)[nodes]
    state.take(index, [way.best(state, nodes[costs == costs.min()])], [1])
    return True


def place_communicating(state: GreedyState, items: Sequence[tuple[int, int]], way: Way, *, whole: bool) -> list[int]:
    """Place pods that call and are called, (class, pods), under ``whole`` all or none; the classes of those without a
    place.
    """
    mark = state.mark()
    # What pods around them ask, and they of these, areas do not say.
    alone = [item for item in items if state.dense.classes[item[0]].neighbours >= 0]
    left = _place_by_area(state, lots_of(state, [item for item in items if item not in alone]), way, whole)
    ordered = sorted(alone, key=lambda item: state.depth(item[0]))
    left += [index for index in _each_pod(ordered) if not place_one(state, index, way)]
    if left and whole:
        state.undo(mark)
        return list(_each_pod(items))
    return left


def _each_pod(items: Iterable[tuple[int, int]]) -> Iterator[int]:
    return (index for index, count in items for _ in range(count))


def _place_by_area(state: GreedyState, lots: Sequence[_Lot], way: Way, whole: bool) -> list[int]:
    drafts = drafts_of(state, lots, way, whole) if lots else []
    return carry_out(state, lots, drafts[0], way) if drafts else [index for lot in lots for index in lot.classes]


def drafts_of(state: GreedyState, lots: Sequence[_Lot], way: Way, whole: bool) -> list[list[_AreaShare]]:
    """What may go where, best first; under ``whole`` only what finds an area for all."""
    ground = _AreaRoom(state, lots, way.where)
    drafts = _AreaSearch(ground).run()
    if drafts[0][0] and not ground.communication.calls.network.majority:
        repaired = _tabu_repair(ground, [parts for *_, parts in drafts])
        if repaired is not None:
            return [repaired]
    return [parts for missing, _, parts in drafts if not (missing and whole)]


def carry_out(state: GreedyState, lots: Sequence[_Lot], parts: Sequence[_AreaShare], way: Way) -> list[int]:
    """Choose nodes; pods that find none in their area may go anywhere. Give the classes of those that find none."""
    assert state.communication is not None
    mark, prices = state.mark(), state.layout.class_prices
    left = _fill(state, lots, parts, way)
    if left and not state.communication.balanced({lot.workload for lot in lots}):
        state.undo(mark)  # a callee that was near has found no node
        left = [index for lot in lots for index in lot.classes]
    left.sort(key=lambda index: (-prices[index], index))
    return [index for index in left if not place_one(state, index, way)]
