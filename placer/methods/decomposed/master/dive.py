"""Naming blocks one by one: each is filled in whole numbers while the others may still be counted in fractions.

The relaxation is so near the truth that this seldom costs anything: what is left when the last block is named has the
value that was aimed for. Large things go first, what can be shared out stays for the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from placer.methods.decomposed.master.flow import paths
from placer.methods.decomposed.master.kinds import Ground, Unit
from placer.methods.decomposed.master.model import Key, Master, Spot, blocks_of
from placer.methods.decomposed.master.program import Sum

__all__ = ["Layout", "dive"]

#: How many nodes of its tree the solver may look at to fill one block, and how near is near enough: another filling
#: is as good, only a smaller one may cost something later.
NODES, NEAR = 4000, 0.1


@dataclass(frozen=True)
class Layout:
    """Where everything has its smallest common domain.

    Parameters
    ----------
    groups
        Group to domain.
    sub_groups
        Subgroup to domain.
    """

    groups: Mapping[int, int]
    sub_groups: Mapping[int, int]


def dive(ground: Ground, targets: Mapping[str, int], power: float, left: Callable[[], float]) -> Layout | None:
    """Find a layout that reaches the targets, or one that is as near as it comes.

    Parameters
    ----------
    ground
        The instance.
    targets
        ``locality`` and ``span`` to what they may be at most, without ``Ground.standing``; the first ones count more.
    power
        How much larger things are preferred: items count as their volume to this power.
    left
        Seconds that are left.

    Returns
    -------
    Layout or None
        None where time ran out, or where no block can be filled.
    """
    known: dict[Key, int] = {}
    fillings: dict[tuple[int, int], list[list[int]]] = {}
    named: list[Unit] = []
    rest, aims = ground.units(), dict(targets)
    while rest:
        unit = max(rest, key=lambda each: (len(each.blocks), each.room))
        rest.remove(unit)
        if unit.blocks[1:]:
            rest.append(ground.unit(unit.blocks[1:]))
        unit = ground.unit(unit.blocks[:1])
        master = Master(ground, [*named, unit, *rest], known)
        point = _fill(master, unit, aims, power, left, last=not rest)
        if point is None:
            return None
        for (each, room), flow in master.flows.items():
            if each == unit:
                fillings[unit.blocks[0], room] = paths(flow, point)
        named.append(unit)
        here = {key: round(point[column]) for key, column in master.columns.items()}
        known.update({key: value for key, value in here.items() if blocks_of(key) == unit.blocks})
    return _Named(ground, here, fillings).layout()


def _fill(
    master: Master, unit: Unit, aims: dict[str, int], power: float, left: Callable[[], float], *, last: bool
) -> list[float] | None:
    """Fill one block; where that cannot be with the values aimed for, these are given up as far as they must be."""
    whole = set(master.columns.values()) | master.whole(unit) if last else master.whole(unit)
    rows = len(master.program.rows)
    for name, most in aims.items():
        master.program.at_most(master.value(name), most)
    found = master.program.point(_large(master, unit, power), whole, left(), NODES, NEAR)
    if found is not None or left() <= 0:
        return found
    del master.program.rows[rows:]
    for name in aims:
        found = master.program.point(master.value(name), whole, left(), NODES, 0.0)
        if found is None:
            return None
        aims[name] = math.ceil(sum(found[c] * k for c, k in master.value(name).merged().items()) - 1e-6)
        master.program.at_most(master.value(name), aims[name])
    return found


def _large(master: Master, unit: Unit, power: float) -> Sum:
    """What lies in the block as a whole, negative, larger things more than in proportion."""
    total = Sum()
    for key, column in master.columns.items():
        spot = key[-1]
        if not isinstance(spot, Spot) or spot.level == 2 or spot.domains != unit.blocks:
            continue
        kind = master.ground.kinds[_number(key[0])]
        if len(key) == 2:
            total.add(-round(100 * kind.whole.volume**power), column)
        elif key[1] != spot:
            total.add(-round(100 * kind.parts[_number(key[2])][0].volume ** power), column)
    return total


def _number(field: object) -> int:
    assert isinstance(field, int)
    return field


class _Named:
    """Gives groups and subgroups their domains when all blocks are named."""

    def __init__(self, ground: Ground, values: Mapping[Key, int], fillings: Mapping[tuple[int, int], list[list[int]]]):
        self.ground, self.values = ground, values
        self.slots: dict[tuple[int, int], list[int]] = {}
        for (block, room), bins in fillings.items():
            leaves = [leaf for leaf in ground.leaves[block] if int(ground.room[leaf]) == room]
            for leaf, items in zip(leaves, bins, strict=True):
                for volume in items:
                    self.slots.setdefault((block, volume), []).append(leaf)

    def layout(self) -> Layout:
        groups: dict[int, int] = {}
        subs: dict[int, int] = {}
        for number, kind in enumerate(self.ground.kinds):
            spots = self._spots((number,))
            for group, spot in zip(kind.members, spots, strict=True):
                groups[group] = self._domain(spot, kind.whole.volume)
            for spot in dict.fromkeys(spots):
                here = [group for group, each in zip(kind.members, spots, strict=True) if each == spot]
                subs.update(self._parts(number, spot, here, groups))
        return Layout(groups, subs)

    def _spots(self, prefix: tuple[object, ...]) -> list[Spot]:
        """A spot per thing, from the columns whose key is the prefix and a spot."""
        found: list[Spot] = []
        for key, value in self.values.items():
            if len(key) == len(prefix) + 1 and key[:-1] == prefix and isinstance(key[-1], Spot):
                found += [key[-1]] * value
        return sorted(found)

    def _parts(self, number: int, outer: Spot, groups: Sequence[int], homes: Mapping[int, int]) -> dict[int, int]:
        """Domains of the subgroups of groups at one spot."""
        kind, found = self.ground.kinds[number], {}
        of_part = self.ground.subs_of(number)
        for index, (part, count) in enumerate(kind.parts):
            spots = [] if outer.level == 0 else self._spots((number, outer, index))
            for position, group in enumerate(groups):
                mine = [outer] * count if outer.level == 0 else spots[position * count : (position + 1) * count]
                for sub, spot in zip(of_part[group][index], mine, strict=True):
                    found[sub] = homes[group] if spot == outer else self._domain(spot, part.volume)
        return found

    def _domain(self, spot: Spot, volume: int) -> int:
        domain = spot.domains[0]
        if spot.level:
            return domain
        if not volume:
            return self.ground.leaves[domain][0]
        return self.slots[domain, volume].pop()
