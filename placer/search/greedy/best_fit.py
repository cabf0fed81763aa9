"""Best fit: which domains a scope may use (C7) and in which order (O2), which leaves and nodes take equal pods."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from placer.arrays.solution import BoolArray, IntArray
from placer.search.greedy.state import STEP, GreedyState, Inside, PodBlock
from placer.search.greedy.unit_homes import in_homes, shared_units

#: More than calls of a pod cost.
NEVER = 2**40

#: Shape to pods of it.
Demand = Mapping[int, int]


def demand_of(state: GreedyState, blocks: Iterable[PodBlock]) -> dict[int, int]:
    """Pods of some blocks by shape."""
    found: dict[int, int] = defaultdict(int)
    for block in blocks:
        for index, count in block.items:
            found[state.layout.shape_of[index]] += count
    return found


def anchor(state: GreedyState, scope: int) -> int | None:
    """Smallest domain that holds what the scope has placed, before and now; None: nothing."""
    it = state.dense.scopes[scope]
    return state.dense.common((*it.bound, *state.nodes_of(it.classes)))


def _allowed(state: GreedyState, scope: int, outer: int) -> Inside:
    inside = state.layout.inside(outer, state.dense.scopes[scope].limit)
    held = anchor(state, scope)
    if held is None or not len(inside.domains):
        return inside
    tree = state.layout.domains
    keep = (tree.begin[inside.domains] <= tree.begin[held]) & (tree.end[inside.domains] >= tree.end[held])
    return inside.where(keep & (inside.tiers >= tree.tier[held]))


def tops(state: GreedyState, scope: int, outer: int) -> list[int]:
    """Highest domains in ``outer`` of which one must hold the whole scope, disjoint."""
    if outer == state.layout.domains.root and state.dense.scopes[scope].limit is None:
        return [outer]
    allowed = _allowed(state, scope, outer).domains.tolist()
    known, parent = set(allowed), state.layout.domains.parent
    return [domain for domain in allowed if domain == outer or int(parent[domain]) not in known]


def candidates(
    state: GreedyState, scope: int, outer: int, demand: Demand, blocks: Iterable[PodBlock] = ()
) -> Iterator[int]:
    """Domains in ``outer`` that could hold the demand, counting shape by shape.

    Lowest tier first (O2); within a tier the one with the cheapest calls (O3) from ``blocks``, then the one with least
    room left over, then most nodes in use (O4), then the one whose parent has least room. Between two of them the
    caller leaves the state as it was.
    """
    state.work += STEP
    inside = _allowed(state, scope, outer)
    begin, end = state.layout.slice_of(outer)
    for shape, count in demand.items():
        if len(inside.domains):
            state.work += end - begin
            inside = inside.where(inside.sums(state.hopes(shape)[begin:end]) >= count)
    if len(demand) > 1 and len(inside.domains):
        inside = inside.where(_together(state, demand, begin, end, inside))
    if len(inside.domains) <= 1:
        yield from inside.domains.tolist()
        return
    inside, costs = _called(state, blocks, inside, begin, end)
    if not len(inside.domains):
        return
    left, above = (inside.sums(state.price[begin:end], above=above) for above in (False, True))
    used = inside.sums(state.used[begin:end].astype(np.int64))
    yield from inside.domains[np.lexsort((above, -used, left, costs, inside.tiers))].tolist()


def _called(
    state: GreedyState, blocks: Iterable[PodBlock], inside: Inside, begin: int, end: int
) -> tuple[Inside, IntArray]:
    costs: IntArray = np.zeros(len(inside.domains), dtype=np.int64)
    communication = state.communication
    if communication is None:
        return inside, costs
    area = communication.calls.area[begin:end]
    for index, count in (item for block in blocks for item in block.items):
        workload = state.dense.workload_of.get(index)
        if workload is not None:
            able = state.able(index)[begin:end]
            least = inside.minima(np.where(able, communication.pull[workload][area], NEVER))
            keep = (inside.sums(able) >= count) & (least < NEVER)
            inside, costs = inside.where(keep), (costs + count * least)[keep]
            state.work += STEP + 4 * len(able)
    return inside, costs


def _together(state: GreedyState, demand: Demand, begin: int, end: int, inside: Inside) -> BoolArray:
    asked = sum(state.layout.shapes[shape].request * count for shape, count in demand.items())
    keep = np.ones(len(inside.domains), dtype=bool)
    for resource in np.flatnonzero(asked):
        keep &= inside.sums(state.room[resource, begin:end]) >= asked[resource]  # type: ignore[index]
        state.work += end - begin
    return keep


#: Distinct nodes and how many pods each gets.
Chosen = tuple[list[int], list[int]]

#: Added to what a choice leaves over where it opens something empty: more than all room of a node is worth.
OPENS = 2**40


def choose(
    state: GreedyState,
    shape: int,
    count: int,
    where: tuple[int, int],
    *,
    leaves: Collection[int] | None = None,
    reuse: bool = True,
) -> Chosen | None:
    """Choose nodes for pods of one shape; None: no room for ``count``.

    ``where``: first node and the one after the last. ``leaves``: those that the scope of the pods touches already, to
    keep its span small; None: span does not matter. ``reuse``: fill nodes in use before empty ones.
    """
    begin, end = where
    state.work += STEP // (1 if leaves is not None else 3)
    if state.tied(state.layout.shapes[shape].first):
        return choose_tied(state, shape, count, where, reuse=reuse)
    if count == 1 and not leaves:
        return _one(state, shape, begin, end, reuse)
    fit = state.fits(shape)[begin:end]
    state.work += 3 * len(fit)
    if int(fit.sum()) < count:
        return None
    if leaves is None:
        return _nodes(state, shape, fit, count, begin, reuse)
    return _leaf_by_leaf(state, shape, fit, count, begin, leaves, reuse)


def choose_tied(
    state: GreedyState, shape: int, count: int, where: tuple[int, int], *, reuse: bool = True, some: bool = False
) -> Chosen | None:
    """Choose nodes, as :func:`choose`, for pods that pods on other nodes let in or keep off (C12, C13, C14), one by
    one.

    ``some``: fewer pods will do, at least 1.
    """
    best: list[int] = []
    for home in _homes(state, shape, count, where):
        found = _in_turn(state, shape, count, (*where, home), reuse)
        best = max(best, found, key=len)
        if len(best) == count:
            break
    if not best or (len(best) < count and not some):
        return None
    counts = Counter(best)
    return list(counts), list(counts.values())


def _in_turn(
    state: GreedyState, shape: int, count: int, where: tuple[int, int, BoolArray | None], reuse: bool
) -> list[int]:
    begin, end, home = where
    index, mark = state.layout.shapes[shape].first, state.mark()
    found: list[int] = []
    while len(found) < count:
        chosen = _one(state, shape, begin, end, reuse, home)
        if chosen is None:
            break
        found += chosen[0]
        state.take(index, chosen[0], [1])
    state.undo(mark)
    return found


def _homes(state: GreedyState, shape: int, count: int, where: tuple[int, int]) -> Iterator[BoolArray | None]:
    """Where pods may go of which the first decides about the others: domains with room for all, the tightest first.

    bool, shape (nodes of ``where``,); None: anywhere, for all other pods.
    """
    index = state.layout.shapes[shape].first
    row = None if state.neighbours is None else state.neighbours.first_of(index)
    if row is None or state.dense.neighbours is None:
        yield None
        return
    begin, end = where
    domains = np.stack([state.dense.neighbours.domain[key][begin:end] for key in row.keys], axis=1)
    homes, of = np.unique(domains, axis=0, return_inverse=True)
    of = of.reshape(-1)
    rooms = np.bincount(of, weights=state.fits(shape)[begin:end], minlength=len(homes)).astype(np.int64)
    state.work += STEP + 4 * (end - begin)
    group = state.dense.classes[index].group
    asked = max(count, sum(state.left(each) for each in row.owners if state.dense.classes[each].group == group))
    order = np.lexsort((rooms, rooms < asked, rooms < count))
    for home in order[:12].tolist():
        if rooms[home] and homes[home].min() >= 0:
            yield of == home


def _one(
    state: GreedyState, shape: int, begin: int, end: int, reuse: bool, home: BoolArray | None = None
) -> Chosen | None:
    room = state.has_room(shape)[begin:end]
    room = room if home is None else room & home
    left = np.where(room, state.left_by(shape)[begin:end], 2 * OPENS)
    if reuse:
        left += np.where(state.used[begin:end], 0, OPENS // 2)
    state.work += 2 * len(room)
    best = int(left.argmin()) if len(left) else -1
    return ([begin + best], [1]) if best >= 0 and room[best] else None


def _nodes(state: GreedyState, shape: int, fit: IntArray, count: int, begin: int, reuse: bool) -> Chosen:
    places = np.flatnonzero(fit)
    able = fit[places]
    price = state.layout.shapes[shape].price
    room = state.price[begin + places]
    if state.even:
        counts = _level(room, able, max(1, price), count)
        return (begin + places[counts > 0]).tolist(), counts[counts > 0].tolist()
    opens = np.where(state.used[begin + places], 0, OPENS) if reuse else np.zeros(len(places), dtype=np.int64)
    left = room - np.minimum(able, count) * price + opens
    order = np.lexsort((places, -able, left))
    total = np.cumsum(able[order])
    last = int(np.searchsorted(total, count))
    chosen = order[: last + 1]
    counts = able[chosen]
    rest = count - (int(total[last - 1]) if last else 0)
    if rest < counts[-1] and last:
        others = order[last:]
        enough = others[able[others] >= rest]
        best = enough[np.lexsort((places[enough], room[enough] + opens[enough]))[0]]
        chosen = np.append(chosen[:-1], best)
    counts[-1] = rest
    return (begin + places[chosen]).tolist(), counts.tolist()


def _level(room: IntArray, able: IntArray, price: int, count: int) -> IntArray:
    def above(level: int) -> IntArray:
        found: IntArray = np.clip(-((level - room) // price), 0, able)
        return found

    low, high = int((room - able * price).min()), int(room.max())
    while high - low > 1:
        level = (low + high) // 2
        low, high = (level, high) if above(level).sum() >= count else (low, level)
    counts = above(low)
    counts[np.flatnonzero(counts > above(high))[: int(counts.sum()) - count]] -= 1
    return counts


def _leaf_by_leaf(
    state: GreedyState, shape: int, fit: IntArray, count: int, begin: int, touched: Collection[int], reuse: bool
) -> Chosen:
    layout = state.layout
    end = begin + len(fit)
    first, last = int(layout.leaf_number[begin]), int(layout.leaf_number[end - 1])
    begins = layout.leaf_begin[first : last + 2].copy()
    starts = begins[:-1] - begin
    able = np.add.reduceat(fit, starts)
    whole = np.zeros(len(able), dtype=bool)
    part: list[tuple[int, int]] = []
    for leaf in sorted(touched):
        if first <= leaf <= last and able[leaf - first] and count:
            taken = min(count, int(able[leaf - first]))
            if taken == able[leaf - first]:
                whole[leaf - first] = True
            else:
                part.append((leaf - first, taken))
            count -= taken
            able[leaf - first] = 0
    if count:
        room = np.add.reduceat(state.price[begin:end], starts)
        used = np.add.reduceat(state.used[begin:end].astype(np.int64), starts)
        full, rest = _leaves(able, room, -used, count)
        whole[full] = True
        part.append(rest)
    nodes: list[int] = []
    counts: list[int] = []
    if whole.any():
        places = np.flatnonzero(fit * np.repeat(whole, np.diff(begins)))
        nodes, counts = (begin + places).tolist(), fit[places].tolist()
    for leaf, taken in part:
        low, high = int(starts[leaf]), int(begins[leaf + 1]) - begin
        some = _nodes(state, shape, fit[low:high], taken, begin + low, reuse)
        nodes += some[0]
        counts += some[1]
    return nodes, counts


def _leaves(able: IntArray, room: IntArray, unused: IntArray, count: int) -> tuple[IntArray, tuple[int, int]]:
    order = np.lexsort((unused, room, -able))
    total = np.cumsum(able[order])
    whole = int(np.searchsorted(total, count))
    rest = count - (int(total[whole - 1]) if whole else 0)
    others = order[whole:]
    enough = others[able[others] >= rest]
    best = enough[np.lexsort((enough, able[enough], unused[enough], room[enough]))[0]]
    return order[:whole], (int(best), rest)


def place_equal(state: GreedyState, groups: Sequence[int], *, reuse: bool) -> list[int]:
    """Place as many as fit of groups that have one :meth:`~.state.GreedyLayout.lone_kind`, older ones first; give the
    others.
    """
    left = sorted(groups)
    items = [(state.dense.groups[left[0]].classes[0], len(left))]

    def attempt() -> bool:
        nonlocal left
        before, left = left, _place_equal(state, left, reuse=reuse)
        return len(left) < len(before)

    in_homes(state, shared_units(state, items), items, (0, len(state.price)), attempt, some=True)
    return left


def _place_equal(state: GreedyState, groups: Sequence[int], *, reuse: bool) -> list[int]:
    classes = [state.dense.groups[group].classes[0] for group in groups]
    shape = state.layout.shape_of[classes[0]]
    rows = state.dense.rows_of[classes[0]]
    count = min([len(classes), *(state.queue_room[row] // amount for row, amount in rows)])
    where = 0, len(state.price)
    if state.tied(classes[0]):
        chosen = choose_tied(state, shape, count, where, reuse=reuse, some=True) if count > 0 else None
        count = 0 if chosen is None else sum(chosen[1])
    else:
        if count > 1:
            count = min(count, int(state.fits(shape).sum()))
        chosen = choose(state, shape, count, where, reuse=reuse) if count > 0 else None
    if chosen is None:
        return list(groups)
    state.take_one_each(classes[:count], *chosen)
    return list(groups[count:])
