"""What must be moved for several equal groups that have to be in one domain each, by counting.

Every domain is asked what has to go there for one of them, for two, and so on; what goes from different domains are
different pods, so that the cheapest way to share the groups out among the domains is a bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from placer.problem import Group, Instance
from placer.problem.placement import Score, Value
from placer.search.preempt.domain_sets import alike
from placer.search.preempt.domains import DomainSearch

#: What goes: the weight of the pods, and of how many units they are at least.
_Price = tuple[int, Fraction]
_NOTHING: _Price = (0, Fraction(0))


def least_for_equal(instance: Instance, groups: Sequence[Group], search: DomainSearch) -> Score | None:
    """Say what is moved at least where some groups are all admitted; None: they are not equal, or may be anywhere.

    ``search``: for the first of them.
    """
    if len({alike(instance, group) for group in groups}) > 1 or not search.confined or groups[0].bound:
        return None
    spans = _spans(search)
    best: list[_Price | None] = [_NOTHING, *[None] * len(groups)]
    for names in search.domains():
        widest = max((spans.get(unit, 1) for unit in _units_on(search, names)), default=1)
        best = _with_domain(best, _prices(search, names, len(groups), widest))
    whole = best[-1]
    return None if whole is None else (Value("moved", whole[0]), Value("movedUnits", math.ceil(whole[1])))


def _units_on(search: DomainSearch, names: Sequence[str]) -> set[object]:
    pods = (pod for name in names for pod in search.contraction.members[name])
    return {pod.group or pod.key for pod in pods}


def _spans(search: DomainSearch) -> dict[object, int]:
    found: dict[object, int] = {}
    for names in search.domains():
        for unit in _units_on(search, names):
            found[unit] = found.get(unit, 0) + 1
    return found


def _prices(search: DomainSearch, names: Sequence[str], most: int, widest: int) -> list[_Price]:
    found = [_NOTHING]
    for count in range(1, most + 1):
        weight = search.counted(names, count)
        if weight is None:
            break
        found.append((weight, Fraction(weight > 0, widest)))
    return found


def _with_domain(best: Sequence[_Price | None], prices: Sequence[_Price]) -> list[_Price | None]:
    found: list[_Price | None] = list(best)
    for total in range(1, len(best)):
        for count, (weight, units) in enumerate(prices[1 : total + 1], 1):
            before = best[total - count]
            if before is not None:
                price = before[0] + weight, before[1] + units
                now = found[total]
                found[total] = price if now is None else min(now, price)
    return found
