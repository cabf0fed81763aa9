"""Runs in several orders, then again with what was left out moved forward; the best answer is kept."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from placer.dense import Dense, Solution, score_solution
from placer.methods.greedy.again import place_again
from placer.methods.greedy.complete import complete
from placer.methods.greedy.gang import Style
from placer.methods.greedy.layout import Layout
from placer.methods.greedy.moves import move_pods
from placer.methods.greedy.orders import CALLS, ORDERS, Measures, Order
from placer.methods.greedy.run import run
from placer.methods.greedy.state import STEP, State
from placer.methods.numa.ejection_chains import place_by_ejection_chains
from placer.placement import MAXIMISED

__all__ = ["greedy"]

#: Work of all runs together, in the unit of ``State.work``: about one second for 5,000 pods on as many nodes.
WORK = 120 * 10**6

#: A few runs are made even where they take more, up to the most work; beyond that there is the first run alone.
FEW_RUNS, MOST_WORK = 3, 600 * 10**6

#: Work of moving pods that call each other and placing their AppGroups again, in all.
POLISH = 300 * 10**6

#: Deterministic time of exchanging pods between NUMA zones; about a second.
GATHERING = 0.6

#: Rounds of repairs at most; each round begins every chain again.
ROUNDS = 16

#: Rounds without a better answer after which a chain places by best fit alone, leaves of a gang few or not.
PATIENCE = 3


def greedy(dense: Dense, seed: int = 0, deadline: float | None = None) -> Solution:
    """Place gangs one after the other, in several orders, and keep the best answer.

    Parameters
    ----------
    dense
        The instance.
    seed
        Part of every method's call; the greedy draws nothing.
    deadline
        ``time.monotonic()`` after which no further run is begun; the first one always ends. Without it the same
        instance gives the same answer on every machine.

    Returns
    -------
    Solution
        Keeps all rules; never worse than placing nothing; maximal while ``placed`` is the policy's first level.
    """
    del seed
    search = _Search(dense, deadline)
    if dense.levels and dense.levels[0][0] not in MAXIMISED:
        search.offer(_cautious(dense), ties=True)
    search.orders()
    search.repairs()
    search.refinements()
    search.polish()
    return search.solution


@dataclass
class _Chain:
    """Runs that follow from one another: the last sequence, and the groups it left out, entirely or in part."""

    sequence: list[int]
    style: Style
    left_out: set[int]
    in_part: set[int]
    rank: tuple[int, ...]
    stalled: int = 0


class _Search:
    """The best answer so far, and the work it took."""

    def __init__(self, dense: Dense, deadline: float | None) -> None:
        self.dense, self.deadline = dense, deadline
        self.layout = Layout(dense)
        self.measures = Measures(self.layout)
        self.solution: Solution = {}
        self.rank = self._rank({})
        self.all_orders = ORDERS if dense.network is None else (CALLS, *ORDERS)
        self.chains: list[_Chain] = []
        self.tried: set[tuple[tuple[int, ...], Style]] = set()
        self.work = self.last = self.limit = 0

    def orders(self) -> None:
        """Run the orders that place most; where gangs are elastic also by as few pods as they need."""
        elastic = any(self.layout.elastic(group) for group in range(len(self.dense.groups)))
        for style in [Style(whole=True), Style()] if elastic else [Style()]:
            for order in self.all_orders[:2]:
                sequence = self._sequence(order) if self._may_run() else []
                if sequence and not self._tried(sequence, style):
                    self.chains.append(self._run(sequence, style))

    def repairs(self) -> None:
        """Begin chains again with the groups they left out moved forward, the best chain first.

        Source: Joslin and Clements, "Squeaky Wheel" Optimization, JAIR 10 (1999).
        """
        for _ in range(ROUNDS):
            self.chains.sort(key=lambda chain: chain.rank, reverse=True)
            for place, chain in enumerate(self.chains):
                if not (chain.left_out or chain.in_part) or not self._may_run():
                    return
                self.chains[place] = self._following(chain)

    def _following(self, chain: _Chain) -> _Chain:
        """Run a chain once more; it stays as it is where that has been tried before."""
        style = replace(chain.style, few=not chain.style.few) if chain.stalled == PATIENCE else chain.style
        sequence = self._moved_forward(chain)
        if self._tried(sequence, style):
            chain.stalled += 1
            return chain
        following = self._run(sequence, style)
        if following.rank <= chain.rank:
            following.stalled = chain.stalled + 1
        return following

    def refinements(self) -> None:
        """Try the other orders and styles, for nearer and tighter placements of the same pods."""
        for order in self.all_orders:
            for style in (Style(), Style(reuse=False)):
                sequence = self._sequence(order) if self._may_run() else []
                if sequence and not self._tried(sequence, style):
                    self._run(sequence, style)

    def polish(self) -> None:
        """Add what still fits; where pods call each other also place again, and move, what that makes better."""
        # Whatever else it counts, what is added to a maximal answer is never for the worse.
        self.solution = complete(self.dense, self.solution)
        self._gather()
        if self.dense.network is None or (self.deadline is not None and time.monotonic() > self.deadline):
            return
        self.rank = self._rank(self.solution)
        state = State(self.layout, self.solution)
        limit = state.work + POLISH
        calling = sorted(self.dense.workload_of)
        move_pods(state, calling, limit)
        place_again(state, limit)
        move_pods(state, calling, limit)
        self.offer(complete(self.dense, state.solution()))

    def _gather(self) -> None:
        """Exchange pods between NUMA zones for those that found room in none; what is placed stays placed."""
        levels = self.dense.levels
        if self.dense.numa is None or not levels or levels[0][0] not in MAXIMISED:
            return
        seconds = inf if self.deadline is None else max(0.0, self.deadline - time.monotonic())
        found, _ = place_by_ejection_chains(self.dense, self.solution, 0, GATHERING, seconds)
        self.rank = self._rank(self.solution)
        self.offer(complete(self.dense, found))

    def offer(self, solution: Solution, *, ties: bool = False) -> tuple[int, ...]:
        """Keep the solution if it is better than the best so far, or as good with ``ties``; return its rank."""
        rank = self._rank(solution)
        if rank > self.rank or (ties and rank == self.rank):
            self.rank, self.solution = rank, solution
        return rank

    def _may_run(self) -> bool:
        """Whether there is work left for a run like the last one; the clock matters only to who asked for it."""
        if not self.work:
            return True
        in_time = self.deadline is None or time.monotonic() < self.deadline
        return in_time and self.work + self.last <= self.limit

    def _tried(self, sequence: list[int], style: Style) -> bool:
        return (tuple(sequence), style) in self.tried

    def _sequence(self, order: Order) -> list[int]:
        groups = self.dense.groups
        key = order.key
        return sorted(
            range(len(groups)),
            key=lambda group: (-groups[group].priority, *key(self.measures, group), self.measures.unit[group], group),
        )

    def _moved_forward(self, chain: _Chain) -> list[int]:
        """Halve the places of units with a group left out, and shorten those of units with optional pods left."""
        unit, place = self.measures.unit, dict[int, float]()
        left_out = {unit[group] for group in chain.left_out}
        in_part = {unit[group] for group in chain.in_part}
        for number, group in enumerate(chain.sequence):
            factor = 0.5 if unit[group] in left_out else 0.8 if unit[group] in in_part else 1.0
            place.setdefault(unit[group], number * factor - (0.1 if factor < 1 else 0.0))
        groups = self.dense.groups
        return sorted(chain.sequence, key=lambda group: (-groups[group].priority, place[unit[group]]))

    def _run(self, sequence: list[int], style: Style) -> _Chain:
        self.tried.add((tuple(sequence), style))
        state, failed = run(self.layout, sequence, style)
        solution = state.solution()
        # Scoring looks at every group and every entry of the solution.
        self.last = 1 + state.work + STEP // 20 * (len(sequence) + len(solution))
        self.limit = self.limit or max(WORK, min(FEW_RUNS * self.last, MOST_WORK))
        self.work += self.last
        left_out = set(failed)
        groups = self.dense.groups
        in_part = {
            group
            for group in sequence
            if group not in left_out and any(state.left(index) for index in groups[group].classes)
        }
        return _Chain(sequence, style, left_out, in_part, self.offer(solution))

    def _rank(self, solution: Solution) -> tuple[int, ...]:
        """The values, more being better on every one."""
        levels = zip(self.dense.levels, score_solution(self.dense, solution), strict=True)
        return tuple(value if name in MAXIMISED else -value for (name, _), value in levels)


def _cautious(dense: Dense) -> Solution:
    """Place only what cannot make worse the values that come before the placed pods in the policy."""
    names = [name for name, _ in dense.levels]
    before = names[: next((place for place, name in enumerate(names) if name in MAXIMISED), len(names))]
    groups: Sequence[int] = range(len(dense.groups))
    if "locality" in before:
        groups = [group for group in groups if not any(_wanted(dense, group))]
    if "packedNodes" in before:
        dense = replace(dense, free=np.where(dense.node_used[:, None], dense.free, 0))
    state, _ = run(Layout(dense), groups, Style())
    return state.solution()


def _wanted(dense: Dense, group: int) -> Iterable[bool]:
    """Whether each scope of the group counts in ``locality``."""
    gang = dense.groups[group]
    yield dense.scopes[gang.scope].wanted
    yield from (dense.scopes[dense.sub_groups[sub].scope].wanted for sub in gang.sub_groups)
