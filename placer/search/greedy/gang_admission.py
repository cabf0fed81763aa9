"""Gangs and the AppGroups that they make up: one gang, all that makes it ready or nothing (C5, C6, C7, C11), then its
optional pods; an AppGroup as a whole; ruin and recreate over AppGroups (C8, C9, O3).

Source: Schrimpf, Schneider, Stamm-Wilbrandt and Dueck, "Record Breaking Optimization Results Using the Ruin and
Recreate Principle", Journal of Computational Physics 159 (2000).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from placer.arrays import DenseGroup
from placer.search.greedy.best_fit import anchor, candidates, choose, choose_tied, demand_of, tops
from placer.search.greedy.communicating import Way, carry_out, drafts_of, lots_of, place_communicating, place_one
from placer.search.greedy.local_search import move_pods
from placer.search.greedy.state import GreedyState, PodBlock, running_sums
from placer.search.greedy.unit_homes import by_home, in_homes, shared_units


@dataclass(frozen=True)
class Style:
    """How a gang is placed.

    ``whole``: try all pods of an elastic gang first. ``reuse``: fill nodes in use before empty ones (O4). ``even``:
    fill the emptiest nodes first. ``tries``: domains tried per tier and scope. ``forward``: how often a subgroup that
    found no place is moved to the front, and the whole gang is tried again.
    """

    whole: bool = False
    reuse: bool = True
    even: bool = False
    tries: int = 32
    forward: int = 4


def admit(state: GreedyState, group: int, style: Style) -> bool:
    """Make a group ready of which nothing new is placed; False, and nothing placed, without a place."""
    needed, whole = state.layout.needed(group), state.layout.whole(group)
    if needed is None:
        return False
    elastic = state.layout.elastic(group)
    if (style.whole or not elastic) and _place(state, group, whole, style):
        return True
    return elastic and _place(state, group, needed, style)


def admit_together(state: GreedyState, group: int, followers: Sequence[int], style: Style) -> Sequence[int]:
    """Make a group ready where groups that must be near it find room, too (C12), the first ones where not all do; give
    those that were made ready.
    """
    blocks = state.layout.whole(group) if style.whole else state.layout.needed(group)
    for count in range(len(followers), 0, -1) if blocks is not None else ():
        near = followers[:count]
        if _place(state, group, blocks or (), style, near):
            return [group, *near]
    return [group] if admit(state, group, style) else []


def _place(
    state: GreedyState, group: int, blocks: Sequence[PodBlock], style: Style, followers: Sequence[int] = ()
) -> bool:
    gang = state.dense.groups[group]
    if not _queues_allow(state, blocks):
        return False
    mark = state.mark()
    domains = candidates(state, gang.scope, state.layout.domains.root, demand_of(state, blocks), blocks)
    items = [item for block in blocks for item in block.items]
    units = shared_units(state, items)

    def attempt() -> bool:
        placed = _place_blocks(state, gang, blocks, domain, style) is None
        placed = placed and all(admit(state, each, style) for each in followers)
        if not placed:
            state.undo(mark)
        return placed

    for domain in _first_of_each_tier(state, domains, style.tries):
        if in_homes(state, units, items, state.layout.slice_of(domain), attempt):
            return True
    return False


def _first_of_each_tier(state: GreedyState, domains: Iterable[int], tries: int) -> Iterator[int]:
    tier = state.layout.domains.tier
    seen: dict[int, int] = {}
    for domain in domains:
        number = int(tier[domain])
        seen[number] = seen.get(number, 0) + 1
        if seen[number] <= tries:
            yield domain


def _queues_allow(state: GreedyState, blocks: Sequence[PodBlock]) -> bool:
    if not state.queue_room:
        return True
    asked: dict[int, int] = {}
    for block in blocks:
        for index, count in block.items:
            for row, amount in state.dense.rows_of[index]:
                asked[row] = asked.get(row, 0) + amount * count
    return all(amount <= state.queue_room[row] for row, amount in asked.items())


def _place_blocks(
    state: GreedyState, gang: DenseGroup, blocks: Sequence[PodBlock], domain: int, style: Style
) -> PodBlock | None:
    """Place blocks in a domain, the hardest first; one that fails moves to the front and all is tried again.

    Returns
    -------
    None where all are placed; else the block that failed, with some of the others placed.
    """
    order = sorted(blocks, key=partial(_hardness, state))
    mark = state.mark()
    for _ in range(1 + min(len(blocks), style.forward)):
        failed = next((block for block in order if not _place_block(state, gang, block, domain, style)), None)
        if failed is None or failed is order[0]:
            return failed
        state.undo(mark)
        order.remove(failed)
        order.insert(0, failed)
    return failed


def _hardness(state: GreedyState, block: PodBlock) -> tuple[int, int, int, int]:
    depth = max((state.depth(index) for index, _ in block.items), default=0)
    price = sum(state.layout.class_prices[index] * count for index, count in block.items)
    top = int(state.layout.domains.tier.max())
    if block.sub_group < 0:
        return depth, top + 1, -price, block.sub_group
    limit = state.dense.scopes[state.dense.sub_groups[block.sub_group].scope].limit
    return depth, top if limit is None else limit, -price, block.sub_group


def _place_block(state: GreedyState, gang: DenseGroup, block: PodBlock, domain: int, style: Style) -> bool:
    if block.sub_group >= 0:
        scope = state.dense.sub_groups[block.sub_group].scope
        if state.dense.scopes[scope].wanted:
            domains = candidates(state, scope, domain, demand_of(state, (block,)), (block,))
            return any(
                pack(state, block.items, inner, scope, style)
                for inner in _first_of_each_tier(state, domains, style.tries)
            )
    wanted = state.dense.scopes[gang.scope].wanted
    return pack(state, block.items, domain, gang.scope if wanted else None, style)


def pack(state: GreedyState, items: Sequence[tuple[int, int]], domain: int, scope: int | None, style: Style) -> bool:
    """Place classes in a domain, all or nothing; ``scope``: the one whose leaves shall be few."""
    mark = state.mark()
    where = state.layout.slice_of(domain)
    for bunch in by_home(state, items):
        attempt = partial(_pack, state, bunch, domain, scope, style)
        if not in_homes(state, shared_units(state, bunch), bunch, where, attempt):
            state.undo(mark)
            return False
    return True


def _pack(state: GreedyState, items: Sequence[tuple[int, int]], domain: int, scope: int | None, style: Style) -> bool:
    mark = state.mark()
    communicating = [item for item in items if item[0] in state.dense.workload_of]
    way = Way(state.layout.slice_of(domain), style.reuse, scope)
    if communicating and place_communicating(state, communicating, way, whole=True):
        return False
    silent = [item for item in items if item[0] not in state.dense.workload_of]
    for index, count in sorted(silent, key=lambda item: state.depth(item[0])):
        if count > state.queue_limit(index) or not _choose(state, index, count, domain, scope, style):
            state.undo(mark)
            return False
    return True


def _choose(state: GreedyState, index: int, count: int, domain: int, scope: int | None, style: Style) -> bool:
    leaves = None if scope is None else state.touched_leaves(scope)
    shape = state.layout.shape_of[index]
    chosen = choose(state, shape, count, state.layout.slice_of(domain), leaves=leaves, reuse=style.reuse)
    if chosen is not None:
        state.take(index, *chosen)
    return chosen is not None


def extend(state: GreedyState, group: int, style: Style) -> None:
    """Place optional pods of a ready group: subgroups whole or at their size, other pods one by one."""
    gang = state.dense.groups[group]
    if not any(state.left(index) for index in gang.classes):
        return
    for sub in gang.sub_groups:
        if not _has_started(state, sub):
            _start_sub_group(state, gang, sub, style)
    for index in sorted(gang.classes, key=lambda index: (-state.layout.class_prices[index], index)):
        sub = state.dense.classes[index].sub_group
        if state.left(index) and (sub < 0 or _has_started(state, sub)):
            _fill(state, index, style)


def _has_started(state: GreedyState, sub: int) -> bool:
    part = state.dense.sub_groups[sub]
    return not part.short or any(state.placed[index] for index in part.classes)


def _start_sub_group(state: GreedyState, gang: DenseGroup, sub: int, style: Style) -> None:
    part = state.dense.sub_groups[sub]
    prices = state.layout.class_prices
    dearest = sorted(part.classes, key=lambda index: (-prices[index], index))
    whole = tuple((index, state.left(index)) for index in dearest)
    outers = tops(state, gang.scope, state.layout.domains.root)
    for outer in outers:
        block = PodBlock(sub, whole)
        for domain in candidates(state, part.scope, outer, demand_of(state, (block,)), (block,)):
            if pack(state, whole, domain, part.scope, style):
                return
    for outer in outers:
        for domain in tops(state, part.scope, outer):
            if any(_at_least(state, order, domain, part.short, style) for order in (dearest, dearest[::-1])):
                return


def _at_least(state: GreedyState, classes: Sequence[int], domain: int, least: int, style: Style) -> bool:
    mark = state.mark()
    for index in classes:
        _place_some(state, index, domain, None, style)
    if sum(state.placed[index] for index in classes) >= least:
        return True
    state.undo(mark)
    return False


def _place_some(state: GreedyState, index: int, domain: int, scope: int | None, style: Style) -> None:
    before, items = state.placed[index], [(index, state.left(index))]

    def attempt() -> bool:
        _place_at_home(state, index, domain, scope, style)
        return state.placed[index] > before

    in_homes(state, shared_units(state, items), items, state.layout.slice_of(domain), attempt, some=True)


def _place_at_home(state: GreedyState, index: int, domain: int, scope: int | None, style: Style) -> None:
    begin, end = state.layout.slice_of(domain)
    if state.communication is not None and index in state.dense.workload_of:
        while state.left(index) and place_one(state, index, Way((begin, end), style.reuse, scope)):
            pass
        return
    shape, count = state.layout.shape_of[index], min(state.left(index), state.queue_limit(index))
    if state.tied(index):
        chosen = choose_tied(state, shape, count, (begin, end), reuse=style.reuse, some=True) if count > 0 else None
        if chosen is not None:
            state.take(index, *chosen)
        return
    count = min(count, int(state.fits(shape)[begin:end].sum()))
    if count > 0:
        _choose(state, index, count, domain, scope, style)


def _fill(state: GreedyState, index: int, style: Style) -> None:
    scopes = state.dense.scopes_of(index)
    wanted = [scope for scope in scopes if state.dense.scopes[scope].wanted]
    for domain in _nearest_first(state, scopes, index):
        _place_some(state, index, domain, wanted[-1] if wanted else None, style)
        if not state.left(index):
            return


def _nearest_first(state: GreedyState, scopes: list[int], index: int) -> Iterator[int]:
    root = state.layout.domains.root
    for outer in _roomiest_first(state, tops(state, scopes[0], root), index):
        inner = [outer] if len(scopes) == 1 else _roomiest_first(state, tops(state, scopes[1], outer), index)
        for top in inner:
            before = state.placed[index]
            yield from _upward(state, scopes[-1], top, index)
            limited = any(state.dense.scopes[scope].limit is not None for scope in scopes)
            if limited and state.placed[index] > before:  # what is placed now ties the scopes to this domain
                return


def _upward(state: GreedyState, scope: int, top: int, index: int) -> Iterator[int]:
    """From where the scope is up to ``top``; where it is nowhere, first the lowest domain that takes all pods."""
    if state.dense.scopes[scope].wanted:
        domain = anchor(state, scope)
        if domain is None:
            block = PodBlock(state.dense.classes[index].sub_group, ((index, state.left(index)),))
            yield from islice(candidates(state, scope, top, demand_of(state, (block,)), (block,)), 1)
        else:
            tree = state.layout.domains
            inside = set(state.layout.inside(top).domains.tolist())
            while domain in inside and domain != top:
                yield domain
                domain = int(tree.parent[domain])
    yield top


def _roomiest_first(state: GreedyState, domains: list[int], index: int) -> list[int]:
    if len(domains) < 2:
        return domains
    fit = running_sums(state.able(index))
    tree = state.layout.domains
    return sorted(domains, key=lambda domain: (int(fit[tree.begin[domain]] - fit[tree.end[domain]]), domain))


def place_app(state: GreedyState, groups: Sequence[int], style: Style) -> tuple[list[int], list[int]]:
    """Place groups of one AppGroup: gangs, then all lone pods together; those made ready, and the others."""
    layout = state.layout
    ready: list[int] = []
    failed: list[int] = []
    for group in groups:
        if not layout.is_lone(group):
            (ready if admit(state, group, style) else failed).append(group)
    items = [(state.dense.groups[group].classes[0], 1) for group in groups if layout.is_lone(group)]
    left = place_communicating(state, items, Way((0, len(state.price)), style.reuse), whole=False) if items else []
    return ready, failed + [state.dense.classes[index].group for index in left]


def ruin_and_recreate(state: GreedyState, limit: int) -> None:
    """Place more of AppGroups, then cheaper, up to ``GreedyState.work`` of ``limit``."""
    _RuinAndRecreate(state, limit).run()


class _RuinAndRecreate:
    def __init__(self, state: GreedyState, limit: int) -> None:
        assert state.communication is not None
        self.state, self.communication, self.limit = state, state.communication, limit
        #: AppGroup to its groups, and to their classes.
        self.groups: dict[int, list[int]] = defaultdict(list)
        for group in range(len(state.dense.groups)):
            app = state.layout.app(group)
            if app is not None:
                self.groups[app].append(group)
        self.classes = {
            app: [index for group in groups for index in state.dense.groups[group].classes]
            for app, groups in self.groups.items()
        }

    def run(self) -> None:
        apps = [app for app in self.groups if self._movable(app)]
        for app in list(filter(self._left, apps)):
            for others in [[], *([other] for other in self._neighbours(app))]:
                self._more([app, *others])
        for app in apps:
            if self.state.work <= self.limit and all(map(self.state.layout.is_lone, self.groups[app])):
                self._cheaper(app)

    def _movable(self, app: int) -> bool:
        """Whether a node that its pods leave never refuses those that stay (C10)."""
        return all(self.state.may_leave(index) for index in self.classes[app])

    def _left(self, app: int) -> bool:
        return any(self.state.left(index) for index in self.classes[app])

    def _neighbours(self, app: int) -> list[int]:
        here = {area for workload in self._workloads([app]) for area in self.communication.placed[workload]}
        shared = {other: self._pods_in(other, here) for other in self.groups if other != app and self._movable(other)}
        placed = [other for other in shared if any(self.state.placed[index] for index in self.classes[other])]
        return sorted(placed, key=lambda other: (-shared[other], other))[:8]

    def _pods_in(self, app: int, areas: Collection[int]) -> int:
        placed = (self.communication.placed[workload].items() for workload in self._workloads([app]))
        return sum(pods for there in placed for area, pods in there if not areas or area in areas)

    def _workloads(self, apps: Sequence[int]) -> set[int]:
        of = self.state.dense.workload_of
        return {of[index] for app in apps for index in self.classes[app] if index in of}

    def _placed(self, apps: Sequence[int]) -> tuple[int, ...]:
        placed: dict[int, int] = defaultdict(int)
        for index in (index for app in apps for index in self.classes[app]):
            pods = self.state.dense.classes[index]
            placed[self.state.dense.groups[pods.group].priority] += pods.weight * self.state.placed[index]
        return tuple(placed[priority] for priority in sorted(placed, reverse=True))

    def _clear(self, app: int) -> None:
        for index in self.classes[app]:
            for node, count in list(self.state.where.get(index, {}).items()):
                self.state.take(index, [node], [-count])

    def _more(self, apps: Sequence[int]) -> None:
        if not self._left(apps[0]) or self.state.work > self.limit:
            return
        before, mark = self._placed(apps), self.state.mark()
        for app in apps:
            self._clear(app)
        for app in apps:
            groups = sorted(self.groups[app], key=lambda group: -self.state.dense.groups[group].priority)
            admitted, _ = place_app(self.state, groups, Style())
            for group in admitted:
                extend(self.state, group, Style())
        self._judge(apps, mark, better=self._placed(apps) > before)

    def _cheaper(self, app: int) -> None:
        items = [(index, self.state.placed[index]) for index in self.classes[app] if self.state.placed[index]]
        if not items:
            return
        before, mark = (self._placed([app]), -self.communication.cost), self.state.mark()
        self._clear(app)
        place_cheaply(self.state, items, self.limit)
        self._judge([app], mark, better=(self._placed([app]), -self.communication.cost) > before)

    def _judge(self, apps: Sequence[int], mark: int, *, better: bool) -> None:
        if not better or not self.communication.balanced(self._workloads(apps)):
            self.state.undo(mark)


def place_cheaply(state: GreedyState, items: Sequence[tuple[int, int]], limit: int) -> None:
    """Place pods again that all had a place, in the cheapest way at hand (O3); nothing if not all have one."""
    assert state.communication is not None
    way, mark, lots = Way((0, len(state.price))), state.mark(), lots_of(state, items)
    best: tuple[int, list[tuple[int, int, int]]] | None = None
    for parts in drafts_of(state, lots, way, whole=True):
        if not carry_out(state, lots, parts, way):
            move_pods(state, {index for index, _ in items}, limit)
            if best is None or state.communication.cost < best[0]:
                best = state.communication.cost, state.since(mark)
        state.undo(mark)
    for index, node, count in best[1] if best is not None else ():
        state.take(index, [node], [count])
