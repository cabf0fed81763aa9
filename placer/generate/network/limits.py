"""Limits around a planted placement, tight or not, and what the placement costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from placer.generate.dice import Dice
from placer.generate.network.apps import BANDWIDTHS, Application
from placer.generate.network.land import Land, Link
from placer.generate.network.plant import Planting

__all__ = ["Limits", "draw_limits"]


@dataclass(frozen=True)
class Limits:
    """What is allowed.

    Parameters
    ----------
    costs
        By application and call, its maxNetworkCost.
    capacities
        Mbit/s of each link.
    tight_tiers
        By application, whether its tier limit, should it be a gang, leaves no room.
    network_cost
        Cost of the planted placement over all pairs (O3).
    """

    costs: tuple[tuple[int, ...], ...]
    capacities: Mapping[Link, int]
    tight_tiers: tuple[bool, ...]
    network_cost: int


def draw_limits(
    applications: Sequence[Application], planting: Planting, land: Land, tight: float, dice: Dice
) -> Limits:
    """Draw limits that the planted placement keeps.

    A tight cost is the largest one among the pairs of a call, 0 where all of them stay in a zone; a tight capacity is
    what the pairs need together, or what one small call needs where none goes over the link. Otherwise every known
    cost is allowed, and a link carries twice the need of the busiest one.
    """
    used = Counter[Link]()
    total = 0
    largest = max(land.costs.values(), default=0)
    costs: list[tuple[int, ...]] = []
    for application, nodes in zip(applications, planting.nodes, strict=True):
        allowed: list[int] = []
        for call in application.calls:
            pairs = [(one, two) for one in nodes[call.caller] for two in nodes[call.called]]
            links = Counter(link for pair in pairs if (link := land.link(*pair)) is not None)
            near = sum(one != two and land.link(one, two) is None for one, two in pairs)
            total += near + sum(land.costs[link] * count for link, count in links.items())
            used.update({link: call.bandwidth * count for link, count in links.items()})
            allowed.append(max((land.costs[link] for link in links), default=0) if dice.chance(tight) else largest)
        costs.append(tuple(allowed))
    ample = 2 * max(used.values(), default=0) + max(BANDWIDTHS)
    return Limits(
        costs=tuple(costs),
        capacities={
            link: max(used[link], min(BANDWIDTHS)) if dice.chance(tight) else ample for link in sorted(land.costs)
        },
        tight_tiers=tuple(dice.chance(tight) for _ in applications),
        network_cost=total,
    )
