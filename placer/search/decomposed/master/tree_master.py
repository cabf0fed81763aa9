"""Answers of the master: a bound on ``locality`` or ``span``, and a placement that reaches it.

The placement comes from the exact model, with every home given except the leaf within a block.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

from ortools.sat.python import cp_model
from ortools.sat.python.cp_model import IntVar, LinearExpr

from placer.arrays import Dense, Solution
from placer.base.deadline import Deadline
from placer.bounds import NamedBound
from placer.search.decomposed.master.diving import Home, HomeLayout, dive
from placer.search.decomposed.master.measured import MeasuredInstance, measure_instance
from placer.search.decomposed.master.program import MasterProgram
from placer.search.events import TooLarge
from placer.search.exact.method import ExactModel
from placer.search.exact.variables import Bundle


def place(
    dense: Dense, layout: HomeLayout, values: Sequence[int], criterion: int, solver: cp_model.CpSolver, seconds: float
) -> Solution | None:
    """Find a placement with this layout; None where there is none, or where none was found.

    Values of ``criterion`` before ``locality`` and ``span`` are kept; the layout decides the others before it.
    """
    try:
        model = ExactModel(dense, seconds=seconds)
    except TooLarge:
        return None
    for before, (name, _) in enumerate(dense.criteria[:criterion]):
        if name not in ("locality", "span"):
            model.keep(before, values[before])
    model.fill()
    for index, bundle in enumerate(model.variables.all):
        _settle(model, index, bundle, layout[bundle.policy >= 0])
    model.aim(criterion)
    status = solver.solve(model.proto)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return model.read(list(solver.response_proto.solution))


def _settle(model: ExactModel, index: int, bundle: Bundle, homes_of: Mapping[int, Home]) -> None:
    homes = model.variables.homes[index]
    if not homes or any(member not in homes_of for member in bundle.members):
        return
    by_home: dict[Home, list[IntVar]] = defaultdict(list)
    for domain, variable in homes.items():
        by_home[_named(model.dense, domain)].append(variable)
    chosen = Counter[Home]()
    for member in bundle.members:
        home = _known(model, homes_of[member], by_home)
        if home is None:
            return
        chosen[home] += 1
    for home, variables in by_home.items():
        model.proto.add(LinearExpr.sum(variables) == chosen[home])


def _named(dense: Dense, domain: int) -> Home:
    leaf = domain in dense.leaf
    return (int(dense.domains.parent[domain]) if leaf else domain, leaf)


def _known(model: ExactModel, home: Home, known: Collection[Home]) -> Home | None:
    """The home, else the smallest known domain that holds it: where only the limit counts, there is no other."""
    above = ((domain, False) for domain in model.variables.paths[home[0]])
    return next((each for each in (home, *above) if each in known), None)


#: The values that it knows.
NAMES = ("locality", "span")


class TreeMaster:
    """The master of one instance; the values before must leave no pod out."""

    def __init__(self, dense: Dense) -> None:
        self.dense = dense
        self.measured: MeasuredInstance | None = measure_instance(dense)
        self.attempts = 0
        self.fruitless = 0
        self._bounds: dict[tuple[int, tuple[int, ...]], NamedBound | None] = {}

    @cached_property
    def sees_equal_blocks(self) -> bool:
        """Whether some domains right above leaves are equal, so that counting them together tells more than naming."""
        return self.measured is not None and len(self.measured.equal_blocks()) < len(self.measured.blocks)

    def knows(self, criterion: int) -> bool:
        """Whether it has an answer for a value."""
        return self.measured is not None and self.dense.criteria[criterion][0] in NAMES

    def bound(self, criterion: int, values: Sequence[int], deadline: Deadline) -> NamedBound | None:
        """Bound a value among the placements that equal ``values`` on those before it and place everything; None: no
        bound.
        """
        context = tuple(values[:criterion])
        if (criterion, context) not in self._bounds:
            least = self._least(criterion, values, deadline)
            self._bounds[criterion, context] = (
                None if least is None else NamedBound(criterion, least, "master", context)
            )
        return self._bounds[criterion, context]

    def _least(self, criterion: int, values: Sequence[int], deadline: Deadline) -> int | None:
        name = self.dense.criteria[criterion][0]
        if self.measured is None or name not in NAMES:
            return None
        try:
            master = MasterProgram(self.measured, self.measured.equal_blocks())
        except TooLarge:
            self.measured = None
            return None
        for before, most in self._targets(criterion, values).items():
            master.program.at_most(master.value(before), most)
        least = master.program.minimum(master.value(name), deadline.left)
        return None if least is None else least + self.measured.standing[NAMES.index(name)]

    def _targets(self, criterion: int, values: Sequence[int]) -> dict[str, int]:
        assert self.measured is not None
        standing = dict(zip(NAMES, self.measured.standing, strict=True))
        pairs = zip(self.dense.criteria[:criterion], values, strict=False)
        return {name: value - standing[name] for (name, _), value in pairs if name in NAMES}

    def propose(
        self, criterion: int, values: Sequence[int], deadline: Deadline, solver: cp_model.CpSolver
    ) -> Solution | None:
        """Look for a placement that is as good as the bound, on this value and the next one of the tree.

        :meth:`bound` must have been asked; ``deadline`` is without the time of the solver.
        """
        bound = self._bounds.get((criterion, tuple(values[:criterion])))
        if self.measured is None or bound is None or self.fruitless >= 2:
            return None
        reached = (*values[:criterion], bound.bound)
        targets, last = self._targets(criterion + 1, reached), criterion
        if criterion + 1 < len(self.dense.criteria) and self.dense.criteria[criterion + 1][0] in NAMES:
            further = self.bound(criterion + 1, reached, deadline)
            if further is not None:
                targets, last = self._targets(criterion + 2, (*reached, further.bound)), criterion + 1
        layout = dive(self.measured, targets, self.attempts, deadline)
        self.attempts += 1
        found = (
            None if layout is None or deadline.over else place(self.dense, layout, values, last, solver, deadline.left)
        )
        self.fruitless = self.fruitless + 1 if found is None else 0
        return found
