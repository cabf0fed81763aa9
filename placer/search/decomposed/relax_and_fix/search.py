"""Relax and fix, then fix and optimise: the search over steps of :mod:`leaf_program`.

First a few leaves at a time get the most items that they can hold while everything else still has room; loose pods are
never fixed. Then steps free the items of some leaves, or a whole gang with its home, and decide them again.

Source: Pochet and Wolsey, "Production Planning by Mixed Integer Programming" (2006), section 3.6: relax-and-fix;
Sahling et al., "Solving a multi-level capacitated lot sizing problem" (2009): fix-and-optimise.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, zip_longest
from threading import Event

from placer.arrays import Dense, Solution
from placer.base.deadline import Budget
from placer.base.grouping import grouped, slots_of
from placer.search.decomposed.relax_and_fix.leaf_program import PackingProgram
from placer.search.decomposed.relax_and_fix.packing_problem import (
    ANYWHERE,
    Content,
    HomedPods,
    ItemKind,
    PackedGang,
    PackingProblem,
    make_packing_problem,
)
from placer.search.decomposed.relax_and_fix.packing_state import PackingState
from placer.search.events import TooLarge

#: Deterministic time of a step.
STEP_WORK = 0.5

#: What a step counts as at least: it is built in a twentieth of a second.
LEAST_WORK = 0.02

#: Leaves of a step have about so many variables.
STEP_VARIABLES = 800

#: A larger pool is not looked at: a step would take seconds to build.
MOST_VARIABLES = 12_000


def relaxed_and_fixed(
    dense: Dense,
    solution: Solution,
    priority: int,
    stays: Iterable[int],
    budget: Budget,
    workers: int,
    seed: int,
) -> Solution | None:
    """Pack gangs of a priority, and of higher ones, again, by searches at once in different orders.

    Groups of lower priorities that ``stays`` does not name are left out. The solution may be worse; None: there is
    none.
    """
    problem = make_packing_problem(dense, solution, priority, stays)
    if problem is None:
        return None
    done, budgets = Event(), [Budget(budget.deadline, budget.work) for _ in range(workers)]
    searches = [_RelaxAndFix(problem, each, random.Random(seed + at), done) for at, each in enumerate(budgets)]
    with ThreadPoolExecutor(workers) as threads:
        found = [each for each in threads.map(_RelaxAndFix.run, searches) if each is not None]
    best = min(found, key=lambda state: state.unfixed, default=None)
    placed = None if best is None else searches[0].by_name(best)
    budget.spend(sum(each.spent for each in budgets))
    return placed


class _RelaxAndFix:
    """One search, until everything is fixed, by itself or by another one (``done``), or a limit is reached."""

    def __init__(self, problem: PackingProblem, budget: Budget, chance: random.Random, done: Event) -> None:
        self.problem, self.budget, self.chance, self._done = problem, budget, chance, done
        self._blamed = Counter[Content]()
        self._somewhere, self._impossible = set[ItemKind](), set[ItemKind]()

    @property
    def _over(self) -> bool:
        return self._done.is_set() or self.budget.over

    def run(self) -> PackingState | None:
        best: PackingState | None = None
        gangs = self._gangs(self.problem.gangs)
        while gangs is not None:
            best = self._packed(gangs)
            nowhere = self._nowhere(best)
            if self._over or not nowhere:
                break
            gangs = self._gangs([gang for gang in self.problem.gangs if nowhere.isdisjoint(_kinds(gang))])
        if best is not None and not best.unfixed:
            self._done.set()
        return best

    def _packed(self, gangs: Sequence[PackedGang]) -> PackingState:
        best, in_vain = self._attempt(gangs), 0
        while best.unfixed and in_vain < 6 and not self._over and not self._nowhere(best):
            state = self._attempt(gangs)
            in_vain = 0 if state.unfixed < best.unfixed else in_vain + 1
            best = state if state.unfixed < best.unfixed else best
        return best

    def _gangs(self, among: Sequence[PackedGang]) -> list[PackedGang] | None:
        try:
            state = PackingState(self.problem, among)
        except TooLarge:
            return None
        if self._too_large(state):
            return None
        choice = PackingProgram(state, among, optional=True)
        return choice.chosen() if self._solve(choice, 3.0) else None

    def _nowhere(self, state: PackingState) -> set[ItemKind]:
        for kind in sorted(+state.left):
            known = kind in self._somewhere or kind in self._impossible
            if not known and not self._fits_somewhere(kind, state):
                self._impossible.add(kind)
        return self._impossible & set(+state.left)

    def _fits_somewhere(self, kind: ItemKind, state: PackingState) -> bool:
        gang = next(gang for gang in state.gangs if kind in _kinds(gang))
        empty = PackingState(self.problem, [gang])
        known: set[tuple[tuple[int, int], ...]] = set()
        for leaf in self.problem.leaves:
            alike = tuple(sorted(empty.count(self.problem.leaves[leaf]).items()))
            if self._over or (kind.scope == ANYWHERE and alike in known):
                continue
            known.add(alike)
            program = PackingProgram(empty, [gang], [leaf])
            if self._solve(program, STEP_WORK) and program.holds(kind):
                self._somewhere.add(kind)
                return True
        return self._over  # nothing is said where there was no time to look

    def _attempt(self, gangs: Sequence[PackedGang]) -> PackingState:
        state = PackingState(self.problem, gangs)
        self._construct(state)
        return self._improve(state)

    def _too_large(self, state: PackingState) -> bool:
        parts = [part for part, _ in self.problem.homed.values()]
        homes = {home for part in parts for home in part.homes}
        counts = state.count(self.problem.room)
        columns = sum(len(state.fillings[kind]) for kind in counts) * (1 + len(homes))
        columns += sum(len(part.homes) for part in parts)
        return columns > MOST_VARIABLES or len(homes) > 128

    def _solve(self, program: PackingProgram, work: float, hint: Mapping[int, Counter[ItemKind]] | None = None) -> bool:
        seconds, left = self.budget.seconds, self.budget.work
        seed = self.chance.randrange(2**31)
        # what is fixed becomes a placement also when the time is over
        found = program.solve(max(1.0, seconds), max(LEAST_WORK, min(work, left)), seed, hint)
        self.budget.spend(max(LEAST_WORK, program.spent))
        return found

    def _construct(self, state: PackingState) -> None:
        in_vain = 0
        for leaves in self._batches(state):
            if not state.unfixed or self._over or in_vain == 8:
                return
            before = state.unfixed
            program = PackingProgram(state, state.gangs, leaves, blamed=self._blamed)
            if self._solve(program, STEP_WORK):
                program.fix()
            in_vain = in_vain + 1 if state.unfixed == before else 0

    def _batches(self, state: PackingState) -> list[list[int]]:
        tree = self.problem.dense.domains
        siblings = grouped(self.problem.leaves, lambda leaf: int(tree.parent[leaf]))
        parents = sorted(siblings)
        self.chance.shuffle(parents)
        found: list[list[int]] = []
        for parent in parents:
            batch: list[int] = []
            size = 0
            for leaf in siblings[parent]:
                more = self._columns(state, leaf, len(+state.left))
                if batch and size + more > STEP_VARIABLES:
                    found.append(batch)
                    batch, size = [], 0
                batch.append(leaf)
                size += more
            found.append(batch)
        return found

    def _columns(self, state: PackingState, leaf: int, items: int) -> int:
        kinds = state.count(self.problem.leaves[leaf])
        return items + sum(len(state.fillings[kind]) for kind in kinds)

    def _improve(self, state: PackingState) -> PackingState:
        best, idle = state, 0
        while best.unfixed and idle < 20 and not self._over:
            tried = state.copy()
            leaves = self._opened(tried)
            hint = tried.free(leaves)
            program = PackingProgram(tried, tried.gangs, leaves, blamed=self._blamed)
            if self._solve(program, 0.3, hint):
                program.fix()
                if self._missed(tried) <= self._missed(state):
                    state = tried
            idle += 1
            if state.unfixed < best.unfixed:
                best, idle = state, 0
            elif idle % 4 == 0:
                self._blamed.update({kind.content for kind in +state.left})
        return best

    def _missed(self, state: PackingState) -> int:
        worth = self.problem.worth_of
        return sum(many * (1 + self._blamed[kind.content]) * worth(kind) for kind, many in (+state.left).items())

    def _opened(self, state: PackingState) -> list[int]:
        """Some leaves where an item that is left may be, some anywhere, those with much room rather.

        A part that has a home may get another one: then nothing of it stays fixed.
        """
        kind = self.chance.choice(sorted(+state.left))
        inside = list(self.problem.leaves)
        if kind.scope != ANYWHERE:
            home = state.home.get(kind.scope)
            if home is None or self.chance.random() < 0.5:
                return self._rehomed(state, kind.scope)
            inside = self._leaves_of(home)
        open_room = {leaf: self._open_room(state, leaf) for leaf in self.problem.leaves}

        def drawn(leaves: Iterable[int]) -> list[int]:
            return sorted(leaves, key=lambda leaf: self.chance.random() * open_room[leaf], reverse=True)

        pairs = zip_longest(drawn(inside), drawn(open_room))
        return self._as_many_as_fit(state, dict.fromkeys(chain.from_iterable(pairs)))

    def _as_many_as_fit(self, state: PackingState, leaves: Iterable[int | None]) -> list[int]:
        found: list[int] = []
        size = 0
        for leaf in leaves:
            if leaf is None:
                continue
            size += self._columns(state, leaf, len(state.left))
            if found and size > STEP_VARIABLES:
                break
            found.append(leaf)
        return found

    def _rehomed(self, state: PackingState, scope: int) -> list[int]:
        state.free_part(scope)
        leaves = self._leaves_of(self.chance.choice(self.problem.homed[scope][0].homes))
        return self.chance.sample(leaves, min(16, len(leaves)))

    def _leaves_of(self, domain: int) -> list[int]:
        return [leaf for leaf in self.problem.leaves if self.problem.dense.domains.within(leaf, domain)]

    def _open_room(self, state: PackingState, leaf: int) -> int:
        volume = self.problem.volume
        nodes = state.count(self.problem.leaves[leaf])
        most = {
            kind: max(sum(count * volume[shape] for shape, count in filling) for filling in state.fillings[kind])
            for kind in nodes
        }
        return 1 + sum(many * most[kind] for kind, many in nodes.items())

    def by_name(self, state: PackingState) -> Solution | None:
        whole = state.whole_gangs()
        program = PackingProgram(state, [gang for gang, _ in whole])
        if not self._solve(program, 5.0):
            return None
        slots = slots_of((node, *each) for node, filling in sorted(program.filled()) for each in filling)
        homes = program.homes()
        found = Counter[tuple[int, int]]()
        tree, scopes, groups = self.problem.dense.domains, self.problem.dense.scopes, self.problem.dense.groups
        for gang, items in whole:
            for (_, classes), item in zip(gang.items, items, strict=True):
                self._deal(found, classes, slots_of(item.places))
        loose = [(part, scopes[groups[gang.group].scope].wanted) for gang, _ in whole for part in gang.parts]

        def order(pair: tuple[HomedPods, bool]) -> tuple[int, bool, int]:
            """Small homes first; then parts that should be near, larger ones first, are dealt neighbours."""
            home = homes.get(pair[0].scope, tree.root)
            return int(tree.end[home] - tree.begin[home]), not pair[1], -sum(pair[0].loose.values())

        for part, _ in sorted(loose, key=order):
            self._deal(found, part.loose_classes, self._taken(part, slots, homes.get(part.scope)))
        return Solution(Counter(self.problem.held) + found, self.problem.held.order)

    def _taken(self, part: HomedPods, slots: dict[int, list[int]], home: int | None) -> dict[int, list[int]]:
        places: dict[int, list[int]] = {}
        for shape, count in part.loose.items():
            begin = 0 if home is None else bisect_left(slots[shape], int(self.problem.dense.domains.begin[home]))
            places[shape] = slots[shape][begin : begin + count]
            del slots[shape][begin : begin + count]
        return places

    def _deal(self, found: Counter[tuple[int, int]], classes: Iterable[int], places: dict[int, list[int]]) -> None:
        for index in classes:
            nodes = places[self.problem.shape_of[index]]
            size = self.problem.dense.classes[index].size
            found.update((index, node) for node in nodes[:size])
            del nodes[:size]


def _kinds(gang: PackedGang) -> set[ItemKind]:
    return {kind for kind, _ in gang.items}
