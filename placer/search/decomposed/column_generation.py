"""Column generation over fillings of nodes, for queues of independent pods on nodes that differ.

The linear relaxation over the known fillings prices pods, and a knapsack per kind of nodes finds fillings that are
worth more than such a node costs. Prices jump at first, so knapsacks are asked at prices between those of the program
and the best ones so far. Of the solution the whole parts are taken; the nodes that are left get whole numbers of
fillings.

Source: Gilmore and Gomory, "A Linear Programming Approach to the Cutting-Stock Problem" (1961, 1963); smoothing of
prices: Wentges, "Weighted Dantzig-Wolfe decomposition for linear mixed-integer programming" (1997).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from placer.arrays import Dense, Solution
from placer.arrays.solution import FloatArray, IntArray
from placer.base.deadline import Budget
from placer.base.linear import ColumnSum, IntegerProgram, Row
from placer.search.decomposed.node_fillings import Filling, FillingProblem, Pricing, make_filling_problem


def refilled(dense: Dense, solution: Solution, priority: int, budget: Budget, workers: int, seed: int) -> Solution:
    """Place the independent pods again, all nodes at once; the solution may be worse."""
    problem = make_filling_problem(dense, solution, priority)
    if problem is None:
        return solution
    with ThreadPoolExecutor(workers) as threads:
        search = _ColumnGeneration(problem, budget, threads, seed)
        search.generate()
        return search.rounded(dense)


@dataclass(frozen=True)
class _Master:
    """The relaxation over the known fillings, solved.

    ``prices`` is int64, worth of one more pod per shape; ``costs`` float64, worth of one more node per kind.
    """

    value: float
    prices: IntArray
    costs: FloatArray
    filled: FloatArray


class _ColumnGeneration:
    def __init__(self, problem: FillingProblem, budget: Budget, threads: ThreadPoolExecutor, seed: int) -> None:
        self.problem, self.budget, self.threads, self.seed = problem, budget, threads, seed
        # The rest is for whole numbers.
        self.generating = budget.deadline.part(0.85)
        self.pricing = Pricing(problem)
        self.fillings: list[Filling] = []
        self.known: set[tuple[int, bytes]] = set()
        for filling in problem.fillings:
            self._add(filling.kind, filling.pods)

    @property
    def _over(self) -> bool:
        return self.generating.over or self.budget.over

    def _add(self, kind: int, pods: IntArray) -> bool:
        key = (kind, pods.tobytes())
        if key in self.known or not pods.any():
            return False
        self.known.add(key)
        self.fillings.append(Filling(kind, pods))
        return True

    def generate(self) -> None:
        center, least = self._portions(), math.inf
        while not self._over:
            master = self.master(self.problem.size, self.problem.counts)
            if master is None:
                return
            new = False
            for smoothing in (0.7, 0.35, 0.0):
                prices = np.rint(smoothing * center + (1 - smoothing) * master.prices).astype(np.int64)
                new, bound = self._priced(prices, master, 1)
                if bound < least:
                    least, center = bound, prices
                if new or self._over:
                    break
            near = least - master.value <= 2e-4 * least
            if near or not (new or self._priced(master.prices, master, 4)[0]):
                return

    def _priced(self, prices: IntArray, master: _Master, effort: int) -> tuple[bool, float]:
        def ask(kind: int) -> tuple[int, IntArray, float]:
            bound, worth = self.pricing.relaxed(kind, prices)
            most = self.problem.most[:, kind]
            return bound, *self.pricing.best(kind, prices, most, worth, self.seed, effort)

        new = False
        bound = float(self.problem.size @ np.maximum(0, self.problem.gain - prices))
        for kind, (most, pods, work) in enumerate(self.threads.map(ask, range(len(self.problem.nodes)))):
            self.budget.spend(work)
            bound += len(self.problem.nodes[kind]) * most
            if master.prices @ pods > master.costs[kind] * (1 + 1e-9):
                new |= self._add(kind, pods)
        return new, bound

    def _portions(self) -> IntArray:
        problem = self.problem
        prices, worth = self._aggregated()
        left, nodes = problem.size.copy(), problem.counts
        portions = -(-nodes // 4)
        while nodes.any() and not self._over:
            kind = int(np.argmax(nodes))
            most = np.minimum(problem.most[:, kind], left)
            pods, work = self.pricing.best(kind, prices, most, worth[kind], self.seed)
            self.budget.spend(work)
            self._add(kind, pods)
            some = np.flatnonzero(pods)
            many = int(min(portions[kind], nodes[kind], *(left[some] // pods[some]))) if len(some) else int(nodes[kind])
            left -= many * pods
            nodes[kind] -= many
        return prices

    def _aggregated(self) -> tuple[IntArray, FloatArray]:
        """Prices of pods and of room where the nodes of a kind are one: int64 (shapes,), float64 (kinds, resources)."""
        problem, program = self.problem, IntegerProgram()
        shapes, kinds = problem.most.shape
        whole = problem.most * problem.counts
        placed = [program.column(size) for size in problem.size.tolist()]
        there = [
            {
                kind: program.column(min(placeable, int(whole[shape, kind])))
                for kind in np.flatnonzero(whole[shape]).tolist()
            }
            for shape, placeable in enumerate(problem.size.tolist())
        ]
        for column, on in zip(placed, there, strict=True):
            program.rows.append(Row.of({column: 1, **dict.fromkeys(on.values(), -1)}, 0))
        for kind, room in enumerate((problem.room * problem.counts[:, None]).tolist()):
            for resource, amount in enumerate(room):
                asked = {
                    on[kind]: int(problem.request[shape, resource]) for shape, on in enumerate(there) if kind in on
                }
                program.rows.append(Row.of(asked, amount))
        self._queue_rows(program, placed, np.zeros(shapes, dtype=np.int64))
        solved = program.maximum(dict(zip(placed, problem.gain.tolist(), strict=True)))
        prices, rest = np.maximum(0.0, np.array(solved.prices)), problem.room.size
        return np.rint(prices[:shapes]).astype(np.int64), prices[shapes : shapes + rest].reshape(kinds, -1)

    def _queue_rows(self, program: IntegerProgram, placed: Sequence[int], before: IntArray) -> None:
        """C11; ``before`` of each shape are placed already."""
        for amounts, room in self.problem.queues:
            taken = sum(amount * int(before[shape]) for shape, amount in amounts.items())
            program.rows.append(Row.of({placed[shape]: amount for shape, amount in amounts.items()}, room - taken))

    def _program(self, size: IntArray, nodes: IntArray) -> tuple[IntegerProgram, list[int], list[int]]:
        program = IntegerProgram()
        placed = [program.column(many) for many in size.tolist()]
        filled = [program.column(int(nodes[filling.kind])) for filling in self.fillings]
        offered: list[dict[int, int]] = [{} for _ in placed]
        kinds: list[dict[int, int]] = [{} for _ in range(len(nodes))]
        for filling, column in zip(self.fillings, filled, strict=True):
            kinds[filling.kind][column] = 1
            for shape in np.flatnonzero(filling.pods).tolist():
                offered[shape][column] = -int(filling.pods[shape])
        program.rows += [Row.of({column: 1, **terms}, 0) for column, terms in zip(placed, offered, strict=True)]
        program.rows += [Row.of(terms, many) for terms, many in zip(kinds, nodes.tolist(), strict=True)]
        self._queue_rows(program, placed, self.problem.size - size)
        return program, placed, filled

    def master(self, size: IntArray, nodes: IntArray) -> _Master | None:
        self.budget.spend(0.01)
        program, placed, filled = self._program(size, nodes)
        solved = program.maximum(dict(zip(placed, self.problem.gain.tolist(), strict=True)))
        if solved.point is None:
            return None
        point, prices = np.array(solved.point), np.maximum(0.0, np.array(solved.prices))
        shapes = len(placed)
        return _Master(
            float(point[:shapes] @ self.problem.gain),
            np.rint(prices[:shapes]).astype(np.int64),
            prices[shapes : shapes + len(nodes)],
            point[filled] if filled else np.zeros(0),
        )

    def rounded(self, dense: Dense) -> Solution:
        problem = self.problem
        master = self.master(problem.size, problem.counts)
        filled = (
            np.zeros(len(self.fillings), dtype=np.int64)
            if master is None
            else np.floor(master.filled + 1e-6).astype(np.int64)
        )
        pods = np.array([filling.pods for filling in self.fillings]).reshape(len(self.fillings), len(problem.size))
        kinds = np.array([filling.kind for filling in self.fillings], dtype=np.int64)
        left = np.maximum(0, problem.size - filled @ pods)
        nodes = problem.counts - np.bincount(kinds, weights=filled, minlength=len(problem.nodes)).astype(np.int64)
        program, placed, columns = self._program(left, nodes)
        worth = ColumnSum()
        for column, gain in zip(placed, problem.gain.tolist(), strict=True):
            worth.add(-gain, column)
        point = program.point(worth, columns, max(0.5, self.budget.seconds), nodes=100, gap=1e-4)
        if point is not None:
            filled = filled + np.rint([point[column] for column in columns]).astype(np.int64)
        return self._placed(dense, filled)

    def _placed(self, dense: Dense, filled: IntArray) -> Solution:
        """A filling may have more pods of a shape than there are, or than their queue takes."""
        problem, solution = self.problem, self.problem.held.copy()
        # Those that are bound first are at the end.
        pods = [list(dense.each_pod(classes))[::-1] for classes in problem.classes]
        room = [room for _, room in problem.queues]
        for node, shape, most in self._spots(filled):
            asked = [(row, amounts[shape]) for row, (amounts, _) in enumerate(problem.queues) if shape in amounts]
            some = min(most, len(pods[shape]), *(room[row] // amount for row, amount in asked))
            for row, amount in asked:
                room[row] -= amount * some
            for _ in range(some):
                index = pods[shape].pop()
                solution[index, node] = solution.get((index, node), 0) + 1
        return solution

    def _spots(self, filled: IntArray) -> Iterator[tuple[int, int, int]]:
        nodes = [iter(each.tolist()) for each in self.problem.nodes]
        for filling, many in zip(self.fillings, filled.tolist(), strict=True):
            for node in itertools.islice(nodes[filling.kind], many):
                for shape in np.flatnonzero(filling.pods).tolist():
                    yield node, shape, int(filling.pods[shape])
