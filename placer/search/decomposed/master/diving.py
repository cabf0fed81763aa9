"""Naming blocks one by one: each is filled in whole numbers while the others may still be counted in fractions.

Large things go first, those that can be shared out come last.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from placer.base.deadline import Deadline
from placer.base.linear import ColumnSum
from placer.search.decomposed.master.measured import EqualBlocks, MeasuredInstance
from placer.search.decomposed.master.program import CommonDomain, Key, MasterProgram, blocks_of

#: A domain, and whether it is one of its leaves that is meant.
Home = tuple[int, bool]


#: Group to home, and subgroup to home.
HomeLayout = tuple[dict[int, Home], dict[int, Home]]


def dive(measured: MeasuredInstance, targets: Mapping[str, int], attempt: int, deadline: Deadline) -> HomeLayout | None:
    """Find a layout that reaches the targets, or one that is as near as it comes; None: no time, or a block stays
    empty.

    ``targets``: limits without ``MeasuredInstance.standing``, the first ones count more. Another ``attempt`` leads to
    another layout; after the first one leaves are looked at one by one: slower, with less ``span``.
    """
    return _Dive(measured, targets, attempt, deadline).layout()


class _Dive:
    def __init__(
        self, measured: MeasuredInstance, targets: Mapping[str, int], attempt: int, deadline: Deadline
    ) -> None:
        self.measured, self.deadline, self.begin = measured, deadline, deadline.left
        self.aims = dict(targets)
        self.worth = _worth(measured, attempt)
        self.by_leaf = bool(attempt) and "span" in targets
        self.named: list[EqualBlocks] = []
        self.rest = measured.equal_blocks()
        self.known: dict[Key, int] = {}

    def layout(self) -> HomeLayout | None:
        here: dict[Key, int] = {}
        while self.rest:
            unit = self._next()
            found = self._filled(unit)
            self.named.append(unit)
            if found is None or self._hopeless():
                return None
            here = found
            self.known.update({key: value for key, value in here.items() if blocks_of(key) == unit.blocks})
        return _layout(self.measured, here)

    def _next(self) -> EqualBlocks:
        unit = max(self.rest, key=lambda each: (len(each.blocks), each.room))
        self.rest.remove(unit)
        if unit.blocks[1:]:
            self.rest.append(self.measured.unit(unit.blocks[1:]))
        return self.measured.unit(unit.blocks[:1])

    def _filled(self, unit: EqualBlocks) -> dict[Key, int] | None:
        cut = self.by_leaf and sum(bins for _, bins in unit.leaves) <= 8
        master = MasterProgram(self.measured, [*self.named, unit, *self.rest], self.known, unit if cut else None)
        share = max(1.0, 2 * self.deadline.left / (len(self.measured.blocks) - len(self.named)))
        whole = {*([] if self.rest else master.columns.values()), *master.whole(unit)}
        point = _fill(master, _large(master, unit, self.worth), whole, self.aims, share, self.deadline)
        return None if point is None else {key: round(point[column]) for key, column in master.columns.items()}

    def _hopeless(self) -> bool:
        pace = self.begin - self.deadline.left
        # After three blocks, where all would take three times the time at that pace: later ones take less.
        return len(self.named) == 3 and pace * len(self.measured.blocks) > 9 * self.begin


def _fill(
    master: MasterProgram,
    large: ColumnSum,
    whole: Collection[int],
    aims: dict[str, int],
    share: float,
    deadline: Deadline,
) -> list[float] | None:
    rows, first = len(master.program.rows), next(iter(aims))
    # How much more than the aims may be: of the first value parts of a thousand, rounded up; of the others as it is.
    for part, more in [*((0, each) for each in (0, 1, 2, 8)), *((each, 10**6) for each in (1, 4, 16, 64))]:
        for name, most in aims.items():
            master.program.at_most(master.value(name), most + (-(-part * most // 1000) if name == first else more))
        found = master.program.point(large, whole, min(share, deadline.left), nodes=1000, gap=0.3)
        if found is not None:
            values = {name: math.ceil(master.value(name).at(found.__getitem__) - 1e-6) for name in aims}
            aims.update({name: max(most, values[name]) for name, most in aims.items()})
            return found
        if deadline.over:
            break
        del master.program.rows[rows:]
    return None


def _large(master: MasterProgram, unit: EqualBlocks, worth: Sequence[float]) -> ColumnSum:
    total = ColumnSum()
    for key, column in master.columns.items():
        spot = key[-1]
        if not isinstance(spot, CommonDomain) or spot.level == 2 or spot.domains != unit.blocks:
            continue
        number = _number(key[0])
        kind = master.measured.kinds[number]
        if len(key) == 2:
            total.add(-round(worth[number] * kind.whole.volume**2), column)
        elif key[1] != spot:
            total.add(-round(worth[number] * kind.parts[_number(key[2])][0].volume ** 2), column)
    return total


def _worth(measured: MeasuredInstance, attempt: int) -> list[float]:
    chance = random.Random(attempt)
    return [100 * (1 + (chance.random() if attempt else 0.0)) for _ in measured.kinds]


def _number(field: object) -> int:
    assert isinstance(field, int)
    return field


def _layout(measured: MeasuredInstance, values: Mapping[Key, int]) -> HomeLayout:
    groups: dict[int, Home] = {}
    subs: dict[int, Home] = {}
    for number, kind in enumerate(measured.kinds):
        by_spot: dict[CommonDomain, list[int]] = defaultdict(list)
        for group, spot in zip(kind.members, _spots(values, (number,)), strict=True):
            groups[group] = _home(spot)
            by_spot[spot].append(group)
        of_part = measured.subs_of(number)
        for outer, here in by_spot.items():
            for index in range(len(kind.parts)):
                mine = [sub for group in here for sub in of_part[group][index]]
                spots = _spots(values, (number, outer, index)) if outer.level else [outer] * len(mine)
                subs.update((sub, _home(spot)) for sub, spot in zip(mine, spots, strict=True))
    return groups, subs


def _spots(values: Mapping[Key, int], prefix: tuple[object, ...]) -> list[CommonDomain]:
    found: list[CommonDomain] = []
    for key, value in values.items():
        if len(key) == len(prefix) + 1 and key[:-1] == prefix and isinstance(key[-1], CommonDomain):
            found += [key[-1]] * value
    return sorted(found)


def _home(spot: CommonDomain) -> Home:
    return spot.domains[0], spot.level == 0
