"""The exact model in which bound pods stay, are moved, or go (D1 to D3, ``models/exact.md``).

In the instance all of these wait (:func:`placer.search.preempt.lifting.lift`). A pod stands in it twice. A unit that
goes has the priority of its most urgent pod: pods that go are counted apart by unit.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ortools.sat.python import cp_model

from placer.arrays import Solution
from placer.problem import GroupKey
from placer.problem.disruption import Disruption, unit_priority
from placer.problem.placement import MAXIMISED
from placer.rules.calls import bandwidth
from placer.rules.neighbour_rules import pod_affinity
from placer.search.events import BoundFound, Emit, Improved, SearchOptions, SolverFault, TooLarge
from placer.search.exact.count_model import Linear, limited_solver, solver_form, value_at
from placer.search.exact.method import ExactModel, presolve_with_care, safe_bound
from placer.search.exact.variables import Bundle, ExactVariables
from placer.search.preempt.lifting import Lifted, LiftedGroup, LiftedPart, moved_key
from placer.search.preempt.plans import plan_of


@dataclass(frozen=True)
class _Counted:
    least: int
    policy: int
    whole: bool
    priority: int
    stays: dict[int, Linear]
    moves: dict[int, Linear]
    #: Class of copies to the classes of the pods that they are of.
    origins: dict[int, list[int]]
    sizes: dict[int, int]

    @property
    def size(self) -> int:
        return sum(self.sizes[index] for index in self.stays)

    @property
    def movable(self) -> bool:
        return sum(self.sizes[index] for index in self.moves) == self.size

    @property
    def staying(self) -> Linear:
        return Linear().plus(1, *self.stays.values())

    def gone(self, classes: Iterable[int]) -> Linear:
        row = Linear()
        for index in classes:
            row.constant += self.sizes[index]
            row.plus(-1, self.stays[index])
        return row


class DisturbanceRows:
    """Adds the rows of disturbing to a model of an instance in which all pods that may be disturbed wait.

    ``evicted`` and ``evicted_units`` are per priority, ``moved`` and ``moved_units`` in all.
    """

    def __init__(self, variables: ExactVariables, lifted: Lifted) -> None:
        self.variables, self.lifted = variables, lifted
        self.dense, self.model = variables.dense, variables.model
        self.weights = lifted.before.weights_of(lifted.before.pods[key] for key in lifted.pods)
        class_of = self.dense.class_of
        self.idle = {class_of[key]: class_of[copy] for key, copy in lifted.idle.items() if copy in class_of}
        self._active = self._active_of_groups()
        self.item_of = {index: item for item, each in enumerate(variables.bundles.items) for index in each.classes}
        self.evicted: dict[int, Linear] = defaultdict(Linear)
        self.evicted_units: dict[int, Linear] = defaultdict(Linear)
        self.moved, self.moved_units, self.moved_pods = Linear(), Linear(), Linear()
        self.gone: dict[int, Linear] = defaultdict(Linear)
        self.lost: dict[int, Linear] = defaultdict(Linear)
        self.gone_of_queues: dict[tuple[str, int], Linear] = defaultdict(Linear)
        #: Most pods of each priority that may go, of all and of such a queue.
        self.most: dict[int | tuple[str, int], int] = defaultdict(int)
        for group in lifted.groups:
            self._group(group)
        self._idle()
        self._budgets()
        self._licences()
        self._queues()
        if lifted.before.most_moves is not None:
            self._at_most(self.moved_pods, Linear(constant=lifted.before.most_moves))

    def _at_most(self, row: Linear, *others: Linear) -> None:
        whole = Linear().plus(1, row).plus(-1, *others)
        if whole.variables:
            self.model.add(solver_form(whole) <= -whole.constant)

    def _flag(self, value: Callable[[list[int]], int]) -> Linear:
        return Linear().add(1, self.variables.integer(1, value))

    # Units

    def _group(self, group: LiftedGroup) -> None:
        parts = [self._part(part) for part in group.parts]
        stays = Linear().plus(1, *(part.staying for part in parts))
        going_on = self._flag(partial(_any, stays)) if group.whole else Linear(constant=1)
        together = self._together(parts, going_on) if group.whole else Linear()
        kept = [self._keep_part(part, going_on, together) for part in parts]
        self._need(group, parts, kept, going_on)
        if group.whole:
            self.evicted_units[group.priority].plus(-1, going_on, together).constant += 1
            self.moved_units.plus(1, together)
        for part, each in zip(parts, kept, strict=True):
            self._part_values(group, part, going_on, each)
        if group.unit_size > 1:
            self._shares(group, parts)

    def _shares(self, group: LiftedGroup, parts: Sequence[_Counted]) -> None:
        moves, gone = _moves(parts), Linear().plus(1, *(part.gone(part.stays) for part in parts))
        self.evicted_units[group.priority].plus(1, self._units(gone.plus(-1, moves), group.unit_size))
        self.moved_units.plus(1, self._units(moves, group.unit_size))

    def _units(self, pods: Linear, most: int) -> Linear:
        if not pods.variables:
            return Linear()
        found = Linear().add(1, self.variables.integer(len(self.lifted.pods), partial(_share, pods, most)))
        self._at_most(pods, Linear().plus(most, found))
        return found

    def _together(self, parts: Sequence[_Counted], going_on: Linear) -> Linear:
        if not all(part.movable for part in parts):
            return Linear()
        moves = _moves(parts)
        together = self._flag(partial(_any_without, moves, (going_on,)))
        self._at_most(Linear().plus(1, together, going_on), Linear(constant=1))
        return together

    def _part(self, part: LiftedPart) -> _Counted:
        class_of, classes = self.dense.class_of, self.dense.classes
        stays = {index: self._placed(index) for index in dict.fromkeys(class_of[key] for key in part.pods)}
        origins: dict[int, dict[int, None]] = defaultdict(dict)
        for key in part.pods:
            copy = class_of.get(moved_key(key))
            if copy is not None:
                origins[copy][class_of[key]] = None
        moves = {index: self._placed(index) for index in origins}
        sizes = {index: classes[index].size for index in (*stays, *moves)}
        copied = {key: list(each) for key, each in origins.items()}
        priority = unit_priority(self.lifted.before, part.pods)
        return _Counted(part.least, part.policy, part.whole, priority, stays, moves, copied, sizes)

    def _placed(self, index: int) -> Linear:
        row = Linear().add(1, *self.variables.placed(self.item_of[index]))
        idle = self.idle.get(index)
        return row if idle is None else row.add(1, *self.variables.placed(self.item_of[idle]))

    def _keep_part(self, part: _Counted, going_on: Linear, together: Linear) -> tuple[Linear, Linear]:
        keep, move = going_on, Linear()
        if part.least and part.whole:
            keep = self._flag(partial(_any, part.staying))
            self._at_most(keep, going_on)
            if part.movable:
                moves = Linear().plus(1, *part.moves.values())
                move = self._flag(partial(_any_without, moves, (keep, together)))
                self._at_most(Linear().plus(1, keep, move), going_on)
        self._at_most(Linear().plus(part.least, keep), part.staying)
        for index, stays in part.stays.items():
            self._at_most(stays, Linear().plus(part.sizes[index], keep))
        for index, moves in part.moves.items():
            size = part.sizes[index]
            self._at_most(moves, part.gone(part.origins[index]))
            self._at_most(moves, Linear().plus(size, keep, together, move))
            self._at_most(Linear().plus(size, together, move), moves)
        return keep, move

    def _need(
        self, group: LiftedGroup, parts: Sequence[_Counted], kept: Sequence[tuple[Linear, Linear]], going_on: Linear
    ) -> None:
        """C5 for the pods that stay, without which the group goes as a whole."""
        if group.least:
            self._at_most(Linear().plus(group.least, going_on), *(part.staying for part in parts))
        for role, least in group.by_role.items():
            self._at_most(Linear().plus(least, going_on), *self._in_role(parts, role))
        for policy, least in group.by_policy.items():
            ready = (keep for part, (keep, _) in zip(parts, kept, strict=True) if part.policy == policy and part.least)
            self._at_most(Linear().plus(least, going_on), *ready)

    def _in_role(self, parts: Sequence[_Counted], role: str) -> list[Linear]:
        stays = (each for part in parts for each in part.stays.items())
        return [row for index, row in stays if self.dense.classes[index].role == role]

    # Values

    def _part_values(self, group: LiftedGroup, part: _Counted, going_on: Linear, kept: tuple[Linear, Linear]) -> None:
        keep, move = kept
        if part.least and part.whole:
            # A subgroup of a group that goes on is a unit.
            self.evicted_units[part.priority].plus(1, going_on).plus(-1, keep, move)
            self.moved_units.plus(1, move)
        copied = {index for origins in part.origins.values() for index in origins}
        for copy, origins in part.origins.items():
            self._pods(group, part, origins, part.moves[copy], going_on, keep)
        for index in part.stays.keys() - copied:
            self._pods(group, part, [index], Linear(), going_on, keep)

    def _pods(
        self,
        group: LiftedGroup,
        part: _Counted,
        origins: Sequence[int],
        moves: Linear,
        going_on: Linear,
        keep: Linear,
    ) -> None:
        first = self.lifted.before.pods[self.dense.classes[origins[0]].pods[0]]
        size = sum(part.sizes[index] for index in origins)
        gone = part.gone(origins)
        lost = Linear().plus(1, gone).plus(-1, moves)
        own = group.priority if group.goes_whole else first.unit_priority
        units = [each for each in _with_others(group, part, going_on, keep) if each[0] != own]
        queue, weight = self.lifted.before.keeping_queue(first), self.weights[first.key]
        for priority, row in self._by_unit(gone, own, units, size):
            self.most[priority] += size
            self.gone[priority].plus(1, row)
            if queue is not None:
                self.most[queue, priority] += size
                self.gone_of_queues[queue, priority].plus(1, row)
        for priority, row in self._by_unit(lost, own, units, size):
            self.lost[priority].plus(1, row)
            self.evicted[priority].plus(weight, row)
        self.moved.plus(weight, moves)
        self.moved_pods.plus(1, moves)
        if group.unit_size == 1:
            self.evicted_units[own].plus(1, self._alone(lost, keep, size))
            self.moved_units.plus(1, self._alone(moves, keep, size))

    def _by_unit(
        self, pods: Linear, own: int, units: Iterable[tuple[int, Linear]], size: int
    ) -> Iterator[tuple[int, Linear]]:
        alone = Linear().plus(1, pods)
        for priority, goes in units:
            row = Linear().add(1, self.variables.integer(size, partial(_where, pods, goes)))
            self._at_most(row, pods)
            self._at_most(row, Linear().plus(size, goes))
            self._at_most(Linear().plus(1, pods).plus(size, goes), Linear(constant=size).plus(1, row))
            alone.plus(-1, row)
            yield priority, row
        yield own, alone

    def _alone(self, pods: Linear, keep: Linear, size: int) -> Linear:
        if not keep.variables or not pods.variables:
            return pods
        alone = Linear().plus(1, pods).plus(size, keep)
        alone.constant -= size
        found = Linear().add(1, self.variables.integer(size, partial(_at_least_none, alone)))
        self._at_most(alone, found)
        return found

    # Budgets and priorities

    def _idle(self) -> None:
        for group in self.lifted.groups:
            active = None if group.waits_as is None else self._active.get(group.waits_as)
            if active is not None:
                copies = {self.idle[self.dense.class_of[key]] for part in group.parts for key in part.pods}
                for index in sorted(copies):
                    size = self.dense.classes[index].size
                    self._at_most(self._placed(index), Linear(constant=size).add(-size, active))

    def _budgets(self) -> None:
        for budget in self.lifted.before.budgets:
            row, seen = Linear(), set[int]()
            for key in budget.pods:
                index = self.dense.class_of.get(key)
                if index is not None and index not in seen:
                    seen.add(index)
                    row.constant += self.dense.classes[index].size
                    row.plus(-1, self._placed(index))
            self._at_most(row, Linear(constant=budget.allowed))

    def _licences(self) -> None:
        """D3; where lost nodes are repaired, any priority is a licence, and nothing is evicted."""
        admitted: dict[int, Linear] = defaultdict(Linear)
        for bundle, active in self._gangs():
            group = self.dense.groups[bundle.members[0]]
            if active is not None and group.need_weight:
                admitted[group.priority].add(1, active)
        for rows, moves in ((self.lost, False), (self.gone, True)):
            for priority, row in rows.items():
                most = self.most[priority]
                gainers = (each for level, each in admitted.items() if self._may_go(priority, level, moves=moves))
                self._at_most(row, Linear().plus(most, *gainers))
        for priority, row in self.gone.items():
            if not self.lifted.before.may_move:
                self._at_most(row, self.lost[priority])

    def _queues(self) -> None:
        before = self.lifted.before
        for (queue, priority), row in self.gone_of_queues.items():
            gainers = Linear()
            for bundle, active in self._gangs():
                group = self.dense.groups[bundle.members[0]]
                gains = group.need_weight and group.priority > priority
                if active is not None and gains and before.waiting_queue(before.groups[group.key]) == queue:
                    gainers.add(self.most[queue, priority], active)
            self._at_most(row, gainers)

    def _may_go(self, priority: int, gainer: int, *, moves: bool) -> bool:
        before = self.lifted.before
        if before.moves_only or not (moves or before.may_evict):
            return moves
        return gainer > priority - moves

    def _gangs(self) -> Iterable[tuple[Bundle, cp_model.IntVar | None]]:
        return zip(self.variables.bundles.gangs, self.variables.active, strict=False)

    def _active_of_groups(self) -> dict[GroupKey, cp_model.IntVar | None]:
        groups = self.dense.groups
        return {groups[member].key: active for bundle, active in self._gangs() for member in bundle.members}


def _with_others(group: LiftedGroup, part: _Counted, going_on: Linear, keep: Linear) -> Iterator[tuple[int, Linear]]:
    if group.whole:
        yield group.priority, Linear(constant=1).plus(-1, going_on)
    if part.least and part.whole:
        yield part.priority, Linear().plus(1, going_on).plus(-1, keep)


def _moves(parts: Iterable[_Counted]) -> Linear:
    return Linear().plus(1, *(row for part in parts for row in part.moves.values()))


def _any(row: Linear, values: list[int]) -> int:
    return int(value_at(row, values) > 0)


def _any_without(row: Linear, others: Sequence[Linear], values: list[int]) -> int:
    return int(value_at(row, values) > 0 and not any(value_at(other, values) for other in others))


def _share(row: Linear, most: int, values: list[int]) -> int:
    return -(-value_at(row, values) // most)


def _where(row: Linear, goes: Linear, values: list[int]) -> int:
    return value_at(row, values) if value_at(goes, values) else 0


def _at_least_none(row: Linear, values: list[int]) -> int:
    return max(0, value_at(row, values))


class DisturbingModel(ExactModel):
    """The exact model of an instance in which all that may be disturbed waits."""

    def __init__(self, lifted: Lifted, seconds: float = math.inf) -> None:
        super().__init__(lifted.dense, seconds=seconds)
        self.lifted = lifted
        rows, nothing = DisturbanceRows(self.variables, lifted), Linear()
        self.makers |= {
            "evicted": lambda priority: rows.evicted.get(priority or 0, nothing),
            "evictedUnits": lambda priority: rows.evicted_units.get(priority or 0, nothing),
            "moved": lambda _: rows.moved,
            "movedUnits": lambda _: rows.moved_units,
        }

    def admitted(self, solution: Solution) -> Solution | None:
        """As of any model; pods that stay are there before all new ones (C12), and new ones use no full link (C9)."""
        found = super().admitted(solution)
        attracted = self.dense.neighbours is not None and self.dense.neighbours.attractions
        if found is None or not (attracted or self.overloaded):
            return found
        outcome = Disruption(self.lifted.before, plan_of(self.lifted, found)).outcome
        return None if any(pod_affinity(outcome)) or any(bandwidth(outcome)) else found

    @property
    def overloaded(self) -> bool:
        """Whether links carry too much as it stands: the rows of the model let them."""
        return self.lifted.instance.network is not self.lifted.before.network

    def exclude(self, solution: Solution) -> bool:
        """As of any model; an order must have all pods first that stay."""
        neighbours = self.neighbours
        if self.overloaded:
            values = self.variables.encode(solution)
            self.variables.exclude(
                (Linear([each], [1]), values[each.index])
                for item, counts in zip(self.variables.bundles.items, self.variables.counts, strict=False)
                if item.classes[0] in self.dense.workload_of or neighbours is not None
                for each in counts.values()
            )
            return True
        unsure = neighbours is not None and neighbours.unsure
        excluded = super().exclude(solution)
        if neighbours is not None:
            neighbours.unsure = unsure
        return excluded


def search(lifted: Lifted, options: SearchOptions, emit: Emit) -> str:
    """Find the placement that disturbs least, value after value, and prove it.

    As :func:`placer.search.exact.method.search`; the hint is a solution of the lifted instance.
    """
    return _DisturbingSearch(lifted, options, emit).run()


class _DisturbingSearch:
    def __init__(self, lifted: Lifted, options: SearchOptions, emit: Emit) -> None:
        self.lifted, self.dense, self.options, self.emit = lifted, lifted.dense, options, emit
        self.deadline = options.deadline
        self.solution = options.hint or lifted.dense.solution(lifted.standing)
        self.reached: list[int] = []

    def run(self) -> str:
        try:
            self.model = DisturbingModel(self.lifted, self.deadline.left / 2)
        except TooLarge:
            return "finished"
        for criterion, (name, _) in enumerate(self.dense.criteria):
            if not self._decide(criterion):
                self.emit(Improved(self.solution, name))
                return "time"
            if name == self.lifted.last:
                break
            self.model.keep(criterion, self.reached[criterion])
        self.emit(Improved(self.solution, "proved"))
        return "proved"

    def _decide(self, criterion: int) -> bool:
        name = self.dense.criteria[criterion][0]
        value = self.model.aim(criterion)
        if not value.variables:
            return self._proved(criterion, value.constant)
        for _ in range(50):  # solutions that no order of pods admits are excluded one by one (C10, C12)
            if self.deadline.over:
                return False
            self.model.hint(self.solution)
            solver = limited_solver(
                seconds=self.deadline.left, num_workers=self.options.workers, random_seed=self.options.seed
            )
            presolve_with_care(solver)
            status = solver.solve(self.model.proto)
            if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
                if status != cp_model.UNKNOWN:
                    raise SolverFault(f"{solver.status_name(status)} while {name} is decided")
                return False
            found = self.model.read(list(solver.response_proto.solution))
            admitted = self.model.admitted(found)
            if admitted is None:
                self.model.exclude(found)
                continue
            self.solution = admitted
            bound = safe_bound(solver.best_objective_bound, name in MAXIMISED)
            return status == cp_model.OPTIMAL and self._proved(criterion, bound)
        return False

    def _proved(self, criterion: int, bound: int) -> bool:
        context = tuple(self.reached)
        self.reached.append(bound)
        if self.model.unsure:
            return False
        if self.lifted.complete:
            self.emit(BoundFound(criterion, bound, "exact", context))
        return True
