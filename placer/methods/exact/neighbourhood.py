"""Neighbourhood search: a few leaves at a time are freed and decided again, exactly.

A greedy leaves room in pieces that no waiting gang fits; the global model sees too much at once. A step frees what is
new on about 64 nodes, chosen by chance and by how much room is stranded there, adds gangs that wait, and solves that
small model with everything else held fast. Beside the value it is after, a step moves what it can to some leaves
rather than others, so that stranded room gathers. Steps grow while they are solved to the end and shrink when they are
not.

Source: solver-notes, "From a greedy to a full placement".
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from ortools.sat.python import cp_model

from placer.dense import Dense, Solution, beats, score_solution
from placer.methods.exact.model import Model, SolverFault, TooLarge
from placer.methods.exact.restrict import Part, restrict
from placer.methods.exact.variables import Linear
from placer.placement import MAXIMISED

__all__ = ["Neighbourhoods", "Step"]

#: Deterministic time of a step; about a second.
STEP_WORK = 0.5
#: Nodes of the first step, and of the smallest and largest one.
FIRST, LEAST, MOST = 64, 16, 256
#: Leaves with more nodes than this are looked at in pieces.
CELL = 16
#: How near to the most that can be gathered is near enough, as a share of it.
GATHERED = 0.02
#: Groups that wait and take part in a step.
WAITING = 12

#: Asked before each step, with the deterministic time of those before: seconds and deterministic time that it may take,
#: infinite where nothing limits it; None: no more steps.
Step = Callable[[float], tuple[float, float] | None]


class Neighbourhoods:
    """Steps on one value, each from the solution of the last one.

    Parameters
    ----------
    dense
        The instance.
    level
        The value that is to get better; those before it never get worse.
    solution
        Where to start.
    seed
        Of the solver.
    chance
        Which leaves are chosen, and which groups that wait.

    Attributes
    ----------
    spent
        Deterministic time of all steps so far.
    """

    def __init__(self, dense: Dense, level: int, solution: Solution, seed: int, chance: random.Random) -> None:
        self.dense, self.level, self.solution, self.seed = dense, level, solution, seed
        self.values = score_solution(dense, solution)
        self.random = chance
        self.cells = _cells(dense)
        self.size = min(FIRST, max(LEAST, len(dense.nodes) // 2))
        self.spent = 0.0

    def run(self, step: Step, told: Callable[[Solution], bool]) -> None:
        """Make steps until ``step`` allows none or ``told``, which hears every better solution, says it is enough."""
        while (limits := step(self.spent)) is not None:
            spent = self.spent
            found = self._step(*limits)
            if found is not None:
                values = score_solution(self.dense, found)
                better = values[: self.level + 1] != self.values[: self.level + 1]
                self.solution, self.values = found, values
                if better and told(found):
                    return
            if self.spent == spent:
                # A step that cost nothing (nothing to decide) counts all the same, or there would be no end.
                self.spent += STEP_WORK / 100

    def _step(self, seconds: float, work: float) -> Solution | None:
        """One step; a solution that is no worse up to the level, or None."""
        waiting = self._waiting()
        nodes = self._nodes(waiting)
        part = restrict(self.dense, self.solution, nodes, frozenset(waiting))
        if not part.dense.classes:
            return None
        try:
            model = Model(part.dense, part.must, seconds / 2)
        except TooLarge:
            self.size = max(LEAST, self.size // 2)
            return None
        start = score_solution(part.dense, part.start)
        for before in range(self.level):
            model.keep(before, start[before])
        gather = self._gather(model) if self.dense.levels[self.level][0] in MAXIMISED else None
        model.aim(self.level, gather)
        model.hint(part.start)
        gap = 0.0 if gather is None else GATHERED * model.most(gather)
        found = self._solve(model, gap, seconds, min(work, STEP_WORK))
        return None if found is None else self._accepted(part, found)

    def _solve(self, model: Model, gap: float, seconds: float, work: float) -> Solution | None:
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = self.seed
        solver.parameters.absolute_gap_limit = gap
        solver.parameters.max_deterministic_time = work
        if seconds < math.inf:
            solver.parameters.max_time_in_seconds = seconds
        status = solver.solve(model.proto)
        self.spent += solver.response_proto.deterministic_time
        grown = self.size + CELL // 2 if status == cp_model.OPTIMAL else self.size - CELL // 2
        self.size = max(LEAST, min(MOST, grown))
        if status in (cp_model.INFEASIBLE, cp_model.MODEL_INVALID):
            raise SolverFault(
                f"{solver.status_name(status)} in a neighbourhood, where leaving all as it was is possible"
            )
        if status == cp_model.UNKNOWN:
            return None
        return model.read(list(solver.response_proto.solution))

    def _accepted(self, part: Part, found: Solution) -> Solution | None:
        solution = part.whole(found)
        values = score_solution(self.dense, solution)
        return None if beats(self.dense, self.values, values, self.level + 1) else solution

    def _gather(self, model: Model) -> Linear:
        """Placed weight, in thousandths of a node, worth more in some leaves than in others."""
        row, rank = Linear(), dict[int, int]()
        for item, counts in enumerate(model.variables.counts):
            worth = max(1, model.variables.first(item).weight // 1000)
            for place, variable in counts.items():
                leaf = model.variables.places[place].unit
                if leaf not in rank:
                    rank[leaf] = self.random.randrange(16, 24)
                row.add(worth * rank[leaf], variable)
        return row

    def _waiting(self) -> list[int]:
        """Groups of which something waits: of the priority that the value is about, else any."""
        placed = [0] * len(self.dense.classes)
        for (index, _), count in self.solution.items():
            placed[index] += count
        priority = self.dense.levels[self.level][1]
        waiting = [
            number
            for number, group in enumerate(self.dense.groups)
            if priority in (None, group.priority)
            and any(placed[index] < self.dense.classes[index].size for index in group.classes)
        ]
        return sorted(self.random.sample(waiting, min(WAITING, len(waiting))))

    def _nodes(self, waiting: Sequence[int]) -> npt.NDArray[np.bool_]:
        """Choose leaves: half of them where one gang that waits could live, the others anywhere."""
        worth = self._worth()
        inside = np.ones(len(self.cells), dtype=bool)
        if waiting:
            inside = self._near(self.random.choice(waiting))
        else:
            tree = self.dense.domains
            middle = self.random.choice(self.cells)[0]
            parent = tree.parent[self.dense.leaf[middle]]
            inside = np.array([bool(tree.begin[parent] <= cell[0] < tree.end[parent]) for cell in self.cells])
        chosen = np.zeros(len(self.dense.nodes), dtype=bool)
        for mask, size in ((inside, self.size // 2), (np.ones_like(inside), self.size)):
            # Weighted draws without repetition: the largest of u^(1/w) first.
            draws = [self.random.random() ** (1 / weight) for weight in worth]
            for number in sorted(range(len(self.cells)), key=lambda number: -draws[number]):
                if chosen.sum() >= size:
                    break
                if mask[number]:
                    chosen[list(self.cells[number])] = True
        return chosen

    def _near(self, group: int) -> npt.NDArray[np.bool_]:
        """Cells in one domain, drawn by chance, of those that the group or one of its subgroups is limited to."""
        scopes = [self.dense.groups[group].scope]
        scopes += [self.dense.sub_groups[sub].scope for sub in self.dense.groups[group].sub_groups]
        domains = next((tops for scope in scopes if (tops := self.dense.limit_domains(scope))), None)
        if domains is None:
            return np.ones(len(self.cells), dtype=bool)
        tree, domain = self.dense.domains, self.random.choice(domains)
        return np.array([bool(tree.begin[domain] <= cell[0] < tree.end[domain]) for cell in self.cells])

    def _worth(self) -> list[float]:
        """Weight of each cell in the draw: how much of what is short is stranded there, squared."""
        free = self.dense.free.astype(float)
        for (index, node), count in self.solution.items():
            free[node] -= count * self.dense.classes[index].request
        whole = np.maximum(self.dense.free.sum(axis=0), 1)
        if not free.shape[1]:
            return [1.0] * len(self.cells)
        scarce = int(np.argmin(free.sum(axis=0) / whole))
        stranded = np.array([free[list(cell), scarce].sum() for cell in self.cells])
        return [float(amount) for amount in 0.05 + (stranded / max(1.0, stranded.max(initial=0.0))) ** 2]


def _cells(dense: Dense) -> list[tuple[int, ...]]:
    """Nodes leaf by leaf, large leaves and nodes in no HyperNode in pieces."""
    by_leaf: dict[int, list[int]] = {}
    for node, leaf in enumerate(dense.leaf):
        by_leaf.setdefault(int(leaf), []).append(node)
    return [tuple(nodes[begin : begin + CELL]) for nodes in by_leaf.values() for begin in range(0, len(nodes), CELL)]
