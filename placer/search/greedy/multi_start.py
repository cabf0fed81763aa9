"""Runs over all groups in several orders, then again with what was left out moved forward; the best answer is kept."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, takewhile
from math import inf
from typing import TypeVar

import numpy as np

from placer.arrays import Counts, Dense, Solution, score_solution
from placer.arrays.dense_neighbours import SpreadRow
from placer.base.deadline import NEVER, Budget, Deadline
from placer.base.grouping import grouped
from placer.problem.placement import MAXIMISED
from placer.search.greedy.backtrack import Effort, force
from placer.search.greedy.best_fit import place_equal
from placer.search.greedy.communicating import Way, place_communicating
from placer.search.greedy.gang_admission import Style, admit, admit_together, extend, place_app, ruin_and_recreate
from placer.search.greedy.local_search import move_pods
from placer.search.greedy.making_way import empty_nodes, make_way
from placer.search.greedy.state import STEP, GreedyLayout, GreedyState, running_sums
from placer.search.numa.ejection_chains import place_by_ejection_chains

T = TypeVar("T", int, float)

#: Sort key of a group within its priority: smaller is earlier.
SortKey = Callable[["Measures", int], tuple[float, ...]]


class Measures:
    """What orders look at, per group: sizes in prices, and how much of the largest domain allowed it needs."""

    def __init__(self, layout: GreedyLayout) -> None:
        self.layout, self.dense = layout, layout.dense
        #: First group of the AppGroup and priority of a group, or the group itself: such a block is placed as a whole.
        self.block = self._blocks()
        size = [self._price(group.classes) for group in self.dense.groups]
        self._sizes = size
        self.size = self._of_blocks(size, sum)
        largest = [
            max((layout.class_prices[index] for index in group.classes), default=0) for group in self.dense.groups
        ]
        self.largest_pod = self._of_blocks(largest, max)

    def _blocks(self) -> list[int]:
        first: dict[object, int] = {}
        found = []
        for index, group in enumerate(self.dense.groups):
            app = self.layout.app(index)
            found.append(index if app is None else first.setdefault((app, group.priority), index))
        return found

    def _of_blocks(self, values: list[T], together: Callable[[Iterable[T]], T]) -> list[T]:
        if self.layout.calls is None:
            return values
        members: dict[int, list[T]] = defaultdict(list)
        for block, value in zip(self.block, values, strict=True):
            members[block].append(value)
        of_block = {block: together(each) for block, each in members.items()}
        return [of_block[block] for block in self.block]

    def _price(self, classes: tuple[int, ...]) -> int:
        return sum(self.layout.class_prices[index] * self.dense.classes[index].size for index in classes)

    @cached_property
    def _most(self) -> dict[int, int]:
        tree = self.dense.domains
        total = running_sums(self.layout.prices(self.dense.free))
        rooms = total[tree.end] - total[tree.begin]
        return {int(tier): int(rooms[tree.tier <= tier].max()) for tier in np.unique(tree.tier)}

    def _part(self, scope: int, price: int) -> float:
        limit = self.dense.scopes[scope].limit
        tiers = [tier for tier in self._most if limit is None or tier <= limit]
        return price / max(1, self._most[max(tiers)]) if tiers else 2.0

    @cached_property
    def share(self) -> list[float]:
        """Share that each group, or its most demanding subgroup, needs of the roomiest domain within its limit."""
        found = []
        spread = {index for row in self._spreads for index in row.owners}
        for group, size in zip(self.dense.groups, self._sizes, strict=True):
            # Pods that are spread need room everywhere, which is there at first.
            parts = [self._part(group.scope, size), 1.0 if spread.intersection(group.classes) else 0.0]
            for sub in group.sub_groups:
                part = self.dense.sub_groups[sub]
                parts.append(self._part(part.scope, self._price(part.classes)))
            found.append(max(parts))
        return self._of_blocks(found, max)

    @cached_property
    def _spreads(self) -> Sequence[SpreadRow]:
        neighbours = self.dense.neighbours
        rows = () if neighbours is None else neighbours.spreads
        return [row for row in rows if neighbours is not None and not neighbours.single[row.key]]

    @cached_property
    def anchored(self) -> list[bool]:
        """Whether pods of its AppGroup run."""
        if self.layout.calls is None:
            return [False] * len(self.dense.groups)
        running = {each.app for each in self.layout.calls.network.workloads if each.bound}
        return [self.layout.app(index) in running for index in range(len(self.dense.groups))]

    @cached_property
    def depth(self) -> list[int]:
        """How many others each group has to come after, since it must be near them (C12)."""
        known = {} if self.dense.neighbours is None else self.dense.neighbours.depth
        found = [max((known.get(index, 0) for index in group.classes), default=0) for group in self.dense.groups]
        return self._of_blocks(found, max)

    @cached_property
    def tier(self) -> list[int]:
        """Tier limit of each group, the virtual root's where it has none."""
        top = int(self.dense.domains.tier[self.dense.domains.root])
        limits = [self.dense.scopes[group.scope].limit for group in self.dense.groups]
        return self._of_blocks([top if limit is None else limit for limit in limits], min)


def _by_calls(measures: Measures, group: int) -> tuple[float, ...]:
    """Where pods call each other: AppGroups of which some run already have least choice, then large ones."""
    return -measures.anchored[group], -measures.size[group]


#: Every order, as sort keys of the groups of one priority; ties: older first. The first places most where pods differ,
#: the second now and then; the others may place the same nearer.
ORDERS: tuple[SortKey, ...] = (
    lambda measures, group: (-measures.largest_pod[group], -measures.share[group]),
    lambda measures, group: (-measures.share[group], -measures.size[group]),
    lambda measures, group: (measures.tier[group], -measures.size[group]),
    lambda _, __: (),
)


def _run(
    layout: GreedyLayout, sequence: Sequence[int], style: Style, deadline: Deadline = NEVER
) -> tuple[GreedyState, list[int]]:
    state = GreedyState(layout, even=style.even)
    failed: list[int] = []
    groups = layout.dense.groups
    for _, level in groupby(sequence, key=lambda group: groups[group].priority):
        admitted: dict[int, None] = {}
        before = len(failed)
        for batch in _batches(layout, list(level)):
            if deadline.over:
                failed += set(batch) - admitted.keys()
            elif layout.app(batch[0]) is not None:
                ready, left = place_app(state, batch, style)
                admitted.update(dict.fromkeys(ready))
                failed += left
            elif layout.lone_kind(batch[0]) is not None:
                failed += place_equal(state, batch, reuse=style.reuse)
            else:
                failed += _admit(state, batch[0], style, admitted)
        found = make_way(state, failed[before:])
        admitted.update(dict.fromkeys(found))
        failed[before:] = [group for group in failed[before:] if group not in admitted]
        for group in deadline.each(admitted):
            extend(state, group, style)
    return state, failed


def _admit(state: GreedyState, group: int, style: Style, admitted: dict[int, None]) -> Sequence[int]:
    if group not in admitted:
        admitted.update(dict.fromkeys(admit_together(state, group, state.layout.followers.get(group, ()), style)))
    return () if group in admitted else (group,)


def _batches(layout: GreedyLayout, level: Sequence[int]) -> Iterator[list[int]]:
    for (app, kind), batch in groupby(level, key=lambda group: (layout.app(group), layout.lone_kind(group))):
        if app is None and kind is None:
            for group in batch:
                yield [group]
        else:
            yield list(batch)


#: Nodes looked at in all when groups are placed by trying everything (about 2 microseconds each).
LOOKS = 200_000

#: How a group is placed that found no place so far: every domain is tried.
THOROUGH = Style(tries=10**9, forward=10**9)


def complete(dense: Dense, solution: Solution, deadline: Deadline = NEVER, former: Solution | None = None) -> Solution:
    """Add whole pending groups, then optional pods, until nothing more fits, where ``placed`` is the policy's first
    level.

    ``former``: a solution that keeps all rules, of which ``solution`` has been made: groups of which nothing is placed
    are first put back where they were in it, each whole, where that is free.
    """
    if not dense.criteria or dense.criteria[0][0] != "admitted":
        return solution
    state, effort = GreedyState(GreedyLayout(dense), solution), Effort(deadline, LOOKS)
    majority = dense.network is not None and dense.network.majority
    by_priority = grouped(range(len(dense.groups)), lambda group: dense.groups[group].priority)
    places = grouped((former or Solution()).in_order(), lambda entry: dense.classes[entry[0]].group)
    before = -1
    # What is added can be a near callee of what was too far from all others.
    while before < 0 or (majority and before < sum(state.placed)):
        before = sum(state.placed)
        for priority in sorted(by_priority, reverse=True):
            _put_back(state, by_priority[priority], places)
            _add(state, by_priority[priority], effort, deadline)
    return state.solution()


#: A class, a node and how many pods of the class are there.
Entry = tuple[int, int, int]


def _put_back(state: GreedyState, level: Sequence[int], places: Mapping[int, Sequence[Entry]]) -> None:
    prices = state.layout.class_prices
    away = [
        group
        for group in level
        if group in places and not any(state.placed[index] for index in state.dense.groups[group].classes)
    ]
    for group in sorted(away, key=lambda group: -sum(prices[index] * count for index, _, count in places[group])):
        mark = state.mark()
        for index, node, count in places[group]:
            if min(int(state.able(index)[node]), state.queue_limit(index)) < count:
                state.undo(mark)
                break
            state.take(index, [node], [count])


def _add(state: GreedyState, level: Sequence[int], effort: Effort, deadline: Deadline) -> None:
    gangs = [group for group in level if not state.layout.is_lone(group)]
    for group in deadline.each(gangs):
        if not state.is_ready(group):
            squeeze_in(state, group, effort)
    _add_lone(state, [group for group in level if state.layout.is_lone(group)], effort, deadline)
    for group in deadline.each(filter(state.is_ready, gangs)):
        extend(state, group, THOROUGH)
        while state.layout.app(group) is not None and _squeeze(state, group, effort, more=True):
            extend(state, group, THOROUGH)


def _add_lone(state: GreedyState, groups: Sequence[int], effort: Effort, deadline: Deadline) -> None:
    equal: dict[object, list[int]] = defaultdict(list)
    communicating: dict[int, list[int]] = defaultdict(list)
    for group in groups:
        index = state.dense.groups[group].classes[0]
        app = state.layout.app(group)
        if state.left(index) and app is None:
            equal[state.layout.lone_kind(group)].append(group)
        elif state.left(index) and app is not None:
            communicating[app].append(index)
    for several in deadline.each(equal.values()):
        place_equal(state, several, reuse=True)
        _in_another_order(state, several, effort)
    for classes in deadline.each(communicating.values()):
        place_communicating(state, [(index, 1) for index in classes], Way((0, len(state.price))), whole=False)


def _in_another_order(state: GreedyState, lone: Sequence[int], effort: Effort) -> None:
    """Place pods on nodes whose kubelet refuses them as the last ones and admits them in another order (C10)."""
    for group in lone if state.zones is not None else ():
        gang = state.dense.groups[group]
        index = gang.classes[0]
        limited = state.dense.scopes[gang.scope].limit is not None
        if limited or not state.left(index) or state.queue_limit(index) < 1:
            continue
        for node in np.flatnonzero(state.able(index, zones=False)).tolist():
            effort.spend(LOOKS // 5)
            if effort.work < 0:
                return
            if state.zones is not None and state.zones.admits_any(index, node):
                state.take(index, [node], [1])
                break


def squeeze_in(state: GreedyState, group: int, effort: Effort) -> bool:
    """Make a group ready next to what is placed, by every way the greedy has."""
    return admit(state, group, THOROUGH) or _squeeze(state, group, effort, more=False)


def _squeeze(state: GreedyState, group: int, effort: Effort, *, more: bool) -> bool:
    if not any(state.left(index) for index in state.dense.groups[group].classes):
        return False
    mine = Effort(effort.deadline, effort.work // 4)
    found = force(state, group, mine, more=more)
    effort.spend(min(mine.spent, mine.most))
    effort.exhaustive &= mine.exhaustive
    return found


def greedy(
    dense: Dense,
    tell: Callable[[Solution], bool] | None = None,
    deadline: Deadline = NEVER,
    first: Deadline | None = None,
) -> Solution:
    """Place gangs one after the other, in several orders, and keep the best answer.

    ``tell``: called with the answer of each run that is better than those before it; it gives whether that is known to
    be the best, which is the answer then. ``deadline``: looked at between two groups; then the answer is the best so
    far, be it a part of the first run. ``first``: the same for the first run, where it may take longer. The answer
    keeps all rules; it is never worse than placing nothing, and without a deadline the same on every machine.
    """
    search = _GreedySearch(dense, tell, deadline, first or deadline)
    if dense.criteria and dense.criteria[0][0] not in MAXIMISED:
        search.offer(_cautious(dense, deadline), ties=True)
    search.orders()
    search.repairs()
    search.fewer_nodes()
    search.refinements()
    search.polish()
    return search.solution


@dataclass
class _Chain:
    sequence: list[int]
    style: Style
    left_out: set[int]
    in_part: set[int]
    rank: tuple[int, ...]


class _GreedySearch:
    def __init__(
        self, dense: Dense, tell: Callable[[Solution], bool] | None, deadline: Deadline, first: Deadline
    ) -> None:
        self.dense, self.tell = dense, tell
        self.deadline, self.first, self.began = deadline, first, time.monotonic()
        self.layout = GreedyLayout(dense)
        self.measures = Measures(self.layout)
        self.solution = Solution()
        self.rank = self._rank({})
        self.all_orders = ORDERS if dense.network is None else (_by_calls, *ORDERS)
        self.chains: list[_Chain] = []
        self.tried: set[tuple[tuple[int, ...], Style]] = set()
        self.work = self.last = self.limit = 0
        self.best = False  #: whether nothing is better

    def orders(self) -> None:
        elastic = any(self.layout.elastic(group) for group in range(len(self.dense.groups)))
        for style in [Style(whole=True), Style()] if elastic else [Style()]:
            for order in self.all_orders[:2]:
                chain = self._ordered(order, style)
                self.chains += [chain] if chain is not None else []

    def _ordered(self, order: SortKey, style: Style) -> _Chain | None:
        sequence = self._sequence(order) if self._may_run() else []
        return self._run(sequence, style) if sequence and not self._tried(sequence, style) else None

    def repairs(self) -> None:
        """Begin chains again with the groups they left out moved forward, the best chain first.

        Source: Joslin and Clements, "Squeaky Wheel" Optimization, JAIR 10 (1999).
        """
        for _ in range(16):  # each round begins every chain again
            self.chains.sort(key=lambda chain: chain.rank, reverse=True)
            for place, chain in enumerate(self.chains):
                if not (chain.left_out or chain.in_part) or not self._may_run():
                    return
                self.chains[place] = self._following(chain)

    def _following(self, chain: _Chain) -> _Chain:
        sequence = self._moved_forward(chain)
        return chain if self._tried(sequence, chain.style) else self._run(sequence, chain.style)

    def fewer_nodes(self) -> None:
        """Place all on some of the opened nodes, evenly: small pods find room next to large ones (O4)."""
        state, free, used = GreedyState(self.layout, self.solution), self.dense.free, self.dense.node_used
        opened = np.flatnonzero(state.used & ~used)
        if ("packedNodes", None) not in self.dense.criteria or not len(opened):
            return
        opened = opened[np.argsort(state.price[opened], kind="stable")]
        room = free[used].sum(axis=0) + free[opened].cumsum(axis=0)
        few = int((room < (free - state.free).sum(axis=0)).any(axis=1).sum()) + 1
        sequence, best = self._sequence(self.all_orders[0]), self.rank
        for _ in range(3):
            if few >= len(opened) or self.rank > best or not self._may_run():
                return
            kept = used.copy()
            kept[opened[:few]] = True
            layout = GreedyLayout(replace(self.dense, free=np.where(kept[:, None], free, 0)))
            self._run(sequence, Style(reuse=False, even=True), layout)
            few = (few + len(opened)) // 2

    def refinements(self) -> None:
        for order in self.all_orders:
            for style in (Style(), Style(reuse=False)):
                self._ordered(order, style)

    def polish(self) -> None:
        if self.best and any(name == "placed" for name, _ in self.dense.criteria):
            return  # nothing can be added either
        # Whatever else it counts, what is added to a maximal answer is never for the worse.
        self.solution = complete(self.dense, self.solution, self.deadline)
        self._gather()
        self._empty_nodes()
        if self.dense.network is None or self.deadline.over:
            return
        self.rank = self._rank(self.solution)
        state = GreedyState(self.layout, self.solution)
        limit = state.work + self._affordable(300 * 10**6)
        calling = sorted(self.dense.workload_of)
        move_pods(state, calling, limit)
        ruin_and_recreate(state, limit)
        move_pods(state, calling, limit)
        self.offer(complete(self.dense, state.solution(), self.deadline))

    def _gather(self) -> None:
        criteria = self.dense.criteria
        if self.dense.numa is None or not criteria or criteria[0][0] not in MAXIMISED or self.deadline.over:
            return
        found = place_by_ejection_chains(self.dense, self.solution, 0, Budget(self.deadline, 0.6))
        self.rank = self._rank(self.solution)
        self.offer(complete(self.dense, found, self.deadline))

    def _empty_nodes(self) -> None:
        rule_out = self.dense.neighbours is None or self.deadline.over
        if rule_out or ("packedNodes", None) not in self.dense.criteria:
            return
        state = GreedyState(self.layout, self.solution)
        if empty_nodes(state):
            self.rank = self._rank(self.solution)
            self.offer(state.solution())

    def _affordable(self, work: int) -> int:
        spent = time.monotonic() - self.began
        # Without a deadline nothing depends on the clock.
        return work if self.deadline.left == inf else min(work, int(self.work * self.deadline.left / max(spent, 1e-3)))

    def offer(self, solution: Solution, *, ties: bool = False) -> tuple[int, ...]:
        rank = self._rank(solution)
        if rank > self.rank or (ties and rank == self.rank):
            self.rank, self.solution = rank, solution
            self.best = self.tell is not None and self.tell(solution)
        return rank

    def _may_run(self) -> bool:
        return not self.tried or (not self.best and self.work + self.last <= self.limit and not self.deadline.over)

    def _tried(self, sequence: list[int], style: Style) -> bool:
        return (tuple(sequence), style) in self.tried

    def _sequence(self, order: SortKey) -> list[int]:
        measures, groups = self.measures, self.dense.groups
        sequence = sorted(
            range(len(groups)),
            key=lambda group: (-groups[group].priority, *order(measures, group), measures.block[group], group),
        )
        return self._admitted(sequence)

    def _admitted(self, sequence: list[int]) -> list[int]:
        """The same with groups that must be near others behind the last of these, which come as early as they did."""
        groups, depth, behind = self.dense.groups, self.measures.depth, self.layout.behind
        place = {group: number for number, group in enumerate(sequence)}
        for group in sorted(behind, key=lambda group: (-depth[group], place[group])):
            place.update({other: min(place[other], place[group]) for other in behind[group]})
        for group in sorted(behind, key=lambda group: depth[group]):
            place[group] = max(place[other] for other in behind[group])
        return sorted(sequence, key=lambda group: (-groups[group].priority, place[group], depth[group]))

    def _moved_forward(self, chain: _Chain) -> list[int]:
        """Halve the places of units with a group left out, and shorten those of units with optional pods left."""
        block, place = self.measures.block, dict[int, float]()
        left_out = {block[group] for group in chain.left_out}
        in_part = {block[group] for group in chain.in_part}
        for number, group in enumerate(chain.sequence):
            factor = 0.5 if block[group] in left_out else 0.8 if block[group] in in_part else 1.0
            place.setdefault(block[group], number * factor - (0.1 if factor < 1 else 0.0))
        groups = self.dense.groups
        return self._admitted(sorted(chain.sequence, key=lambda group: (-groups[group].priority, place[block[group]])))

    def _run(self, sequence: list[int], style: Style, layout: GreedyLayout | None = None) -> _Chain:
        deadline = self.deadline if self.tried else max(self.deadline, self.first, key=lambda each: each.at)
        self.tried.add((tuple(sequence), style))
        state, failed = _run(layout or self.layout, sequence, style, deadline)
        solution = state.solution()
        # Scoring looks at every group and every entry of the solution.
        self.last = 1 + state.work + STEP // 20 * (len(sequence) + len(solution))
        # About a second for 5,000 pods on as many nodes; three runs also where they take more, but for very long ones.
        self.limit = self.limit or max(120 * 10**6, min(3 * self.last, 600 * 10**6))
        self.work += self.last
        left_out = set(failed)
        groups = self.dense.groups
        in_part = {
            group
            for group in sequence
            if group not in left_out and any(state.left(index) for index in groups[group].classes)
        }
        return _Chain(sequence, style, left_out, in_part, self.offer(solution))

    def _rank(self, solution: Counts) -> tuple[int, ...]:
        criteria = zip(self.dense.criteria, score_solution(self.dense, solution), strict=True)
        return tuple(value if name in MAXIMISED else -value for (name, _), value in criteria)


def _cautious(dense: Dense, deadline: Deadline) -> Solution:
    before = [name for name, _ in takewhile(lambda each: each[0] not in MAXIMISED, dense.criteria)]
    groups: Sequence[int] = range(len(dense.groups))
    if "locality" in before:
        wanted = {dense.classes[index].group for each in dense.scopes if each.wanted for index in each.classes}
        groups = [group for group in groups if group not in wanted]
    if "packedNodes" in before:
        dense = replace(dense, free=np.where(dense.node_used[:, None], dense.free, 0))
    state, _ = _run(GreedyLayout(dense), groups, Style(), deadline)
    return state.solution()
