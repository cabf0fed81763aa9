"""Fillings of nodes: the multisets of pods that one node can hold, and the best one for given prices of pods.

The queue is a cutting-stock problem: nodes of equal room are one kind of stock, pods of equal demands one kind of item,
a filling is a pattern, and :mod:`placer.search.decomposed.column_generation` asks for the best ones.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from placer.arrays import Dense, Solution
from placer.arrays.solution import FloatArray, IntArray
from placer.arrays.symmetry import partition_rows
from placer.base.grouping import grouped
from placer.base.linear import IntegerProgram, Row
from placer.search.exact.count_model import limited_solver


@dataclass(frozen=True)
class Filling:
    """Pods of each shape on a node of a kind; ``pods`` is int64, shape (shapes,)."""

    kind: int
    pods: IntArray


@dataclass(frozen=True)
class FillingProblem:
    """Independent pods by shape, and nodes by kind; arrays are int64.

    ``classes``: per shape, those that are bound first in front. ``size``, ``gain``: shape (shapes,): pods, placed ones
    included; worth of a placed one. ``request``: shape (shapes, resources). ``room``: shape (kinds, resources), of a
    node for these pods. ``most``: shape (shapes, kinds): pods on one node. ``queues``: per capability (C11) shape to
    the request of a pod, and the room. ``held``: pods that are placed and not decided again. ``fillings``: of nodes
    now.
    """

    classes: tuple[tuple[int, ...], ...]
    size: IntArray
    gain: IntArray
    request: IntArray
    nodes: tuple[IntArray, ...]
    room: IntArray
    most: IntArray
    queues: tuple[tuple[dict[int, int], int], ...]
    held: Solution
    fillings: tuple[Filling, ...]

    @property
    def counts(self) -> IntArray:
        """int64, shape (kinds,): nodes of each kind."""
        return np.array([len(nodes) for nodes in self.nodes], dtype=np.int64)


def independent(dense: Dense, group: int) -> bool:
    """Say whether each pod of a group may be placed or left without a look at the others, on any node with room."""
    gang = dense.groups[group]
    scope, classes = dense.scopes[gang.scope], [dense.classes[index] for index in gang.classes]
    if scope.wanted or any(each.tied for each in classes):
        return False
    alone = sum(each.size for each in classes) == 1
    apart = not gang.sub_groups and (alone or not (gang.short or gang.short_by_role))
    return apart and dense.workload_of.keys().isdisjoint(gang.classes)


def make_filling_problem(dense: Dense, solution: Solution, priority: int) -> FillingProblem | None:
    """Free all independent pods and hold the others; None: nothing to decide, or too many kinds of nodes.

    Pods of this priority count, those of a higher one count more and those of lower ones hardly.
    """
    groups = (dense.groups[group] for group in range(len(dense.groups)) if independent(dense, group))
    shapes = grouped(sorted(index for group in groups for index in group.classes), lambda index: _shape(dense, index))
    return _ProblemBuilder(dense, solution, priority, list(shapes.values())).problem() if shapes else None


def _shape(dense: Dense, index: int) -> tuple[object, ...]:
    one = dense.classes[index]
    return dense.groups[one.group].priority, one.request.tobytes(), one.mask, one.weight, tuple(dense.rows_of[index])


class _ProblemBuilder:
    def __init__(self, dense: Dense, solution: Solution, priority: int, shapes: list[list[int]]) -> None:
        self.dense, self.solution, self.priority, self.shapes = dense, solution, priority, shapes
        self.first = [classes[0] for classes in shapes]
        self.shape_of = {index: number for number, classes in enumerate(shapes) for index in classes}
        self.held = solution.only(lambda index, _: index not in self.shape_of)
        self.size = np.array(
            [sum(dense.classes[index].size for index in classes) for classes in shapes], dtype=np.int64
        )
        self.request = dense.requests[self.first]
        self.room = dense.free_beside(self.held)
        self.room[:, ~self.request.any(axis=0)] = 0  # what none of them asks for makes no kinds

    def problem(self) -> FillingProblem | None:
        masks = self.dense.masks[sorted({self.dense.classes[index].mask for index in self.first})]
        kinds = partition_rows(np.concatenate((self.room.view(np.uint8), np.packbits(masks, axis=0).T), axis=1))
        most = np.array([self._most(shape, kinds.first) for shape in range(len(self.first))], dtype=np.int64)
        useful = np.flatnonzero(most.any(axis=0))
        # each kind costs a knapsack in every round of prices
        if not 0 < len(useful) <= 64:
            return None
        kind = np.full(len(kinds.first), -1, dtype=np.int64)
        kind[useful] = np.arange(len(useful))
        kind = kind[kinds.of]
        return FillingProblem(
            classes=tuple(map(tuple, self.shapes)),
            size=self.size,
            gain=np.array([self._gain(index) for index in self.first], dtype=np.int64),
            request=self.request,
            nodes=tuple(np.flatnonzero(kind == number) for number in range(len(useful))),
            room=self.room[kinds.first[useful]],
            most=most[:, useful],
            queues=tuple(self._queues()),
            held=self.held,
            fillings=tuple(self._fillings(kind)),
        )

    def _gain(self, index: int) -> int:
        one = self.dense.classes[index]
        priority = self.dense.groups[one.group].priority
        return one.weight * (64 if priority == self.priority else 256 if priority > self.priority else 1)

    def _most(self, shape: int, nodes: IntArray) -> IntArray:
        asked, mask = np.flatnonzero(self.request[shape]), self.dense.masks[self.dense.classes[self.first[shape]].mask]
        count = np.full(len(nodes), self.size[shape])
        if len(asked):
            count = np.minimum(count, (self.room[nodes][:, asked] // self.request[shape, asked]).min(axis=1))
        found: IntArray = np.where(mask[nodes], np.maximum(count, 0), 0)
        return found

    def _queues(self) -> Iterator[tuple[dict[int, int], int]]:
        taken = self.dense.queued((index, count) for (index, _), count in self.held.items())
        for number, row in enumerate(self.dense.queue_rows):
            found = ((shape, dict(self.dense.rows_of[index]).get(number, 0)) for shape, index in enumerate(self.first))
            amounts = {shape: amount for shape, amount in found if amount}
            if amounts:
                yield amounts, row.room - taken[number]

    def _fillings(self, kind: IntArray) -> Iterator[Filling]:
        by_node: dict[int, Counter[int]] = defaultdict(Counter)
        for (index, node), count in self.solution.items():
            if index in self.shape_of:
                by_node[node][self.shape_of[index]] += count
        known = dict.fromkeys((int(kind[node]), tuple(sorted(pods.items()))) for node, pods in by_node.items())
        for number, pods in known:
            filling = np.zeros(len(self.shapes), dtype=np.int64)
            filling[[shape for shape, _ in pods]] = [count for _, count in pods]
            yield Filling(number, filling)


class Pricing:
    """Knapsacks: the filling of a kind of nodes that is worth most at given prices of pods.

    The relaxation of the knapsack prices room, and so says which shapes lose least; the solver chooses among these
    alone.
    """

    def __init__(self, problem: FillingProblem) -> None:
        self.problem = problem
        self.programs: dict[int, IntegerProgram] = {}

    def relaxed(self, kind: int, prices: IntArray) -> tuple[int, FloatArray]:
        """Upper bound of the worth of a filling, and prices of room of a node: float64, shape (resources,)."""
        program = self.programs.get(kind)
        if program is None:
            program = self.programs[kind] = self._program(kind)
        solved = program.maximum({shape: price for shape, price in enumerate(prices.tolist()) if price})
        return solved.bound, np.maximum(0.0, np.array(solved.prices))

    def _program(self, kind: int) -> IntegerProgram:
        program = IntegerProgram()
        program.upper = self.problem.most[:, kind].tolist()
        for resource, room in enumerate(self.problem.room[kind].tolist()):
            asked = {shape: amount for shape, amount in enumerate(self.problem.request[:, resource].tolist()) if amount}
            program.rows.append(Row.of(asked, room))
        return program

    def best(
        self, kind: int, prices: IntArray, most: IntArray, worth: FloatArray, seed: int, effort: int = 1
    ) -> tuple[IntArray, float]:
        """Find a filling of a kind of nodes: int64, shape (shapes,), and the deterministic time.

        ``worth`` is float64, prices of room per resource, which decide the shapes that are looked at; ``effort`` a
        factor for candidates and time.
        """
        cost = self.problem.request @ worth
        able = np.flatnonzero((most > 0) & (prices > 0))
        lost = (cost[able] - prices[able]) / np.maximum(cost[able], 1e-9)
        chosen = able[np.argsort(lost, kind="stable")[: 30 * effort]]
        filling = np.zeros(len(prices), dtype=np.int64)
        if not len(chosen):
            return filling, 0.0
        model = cp_model.CpModel()
        pods = [model.new_int_var(0, int(most[shape]), "") for shape in chosen]
        for resource, room in enumerate(self.problem.room[kind].tolist()):
            amounts = self.problem.request[chosen, resource].tolist()
            if any(amounts):
                model.add(cp_model.LinearExpr.weighted_sum(pods, amounts) <= room)
        model.maximize(cp_model.LinearExpr.weighted_sum(pods, prices[chosen].tolist()))
        solver = limited_solver(
            work=0.03 * effort, random_seed=seed, cp_model_probing_level=0, max_presolve_iterations=1
        )
        status = solver.solve(model)
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            filling[chosen] = [solver.value(each) for each in pods]
        return filling, float(solver.response_proto.deterministic_time)
