"""Applications before they have a place: workloads, how many pods of which size, and who calls whom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from placer.generate.dice import Dice

__all__ = ["Application", "Call", "draw_applications"]

#: Sizes of a pod in units (half a core and 1 GiB), the small ones more often.
SIZES = (1, 1, 1, 2, 2, 4)
#: What a call may need, in Mbit/s.
BANDWIDTHS = (10, 20, 50, 100, 200)


class Call(NamedTuple):
    """One workload depends on another one; ``bandwidth`` is in Mbit/s, 0 where it says nothing of it."""

    caller: int
    called: int
    bandwidth: int


@dataclass(frozen=True)
class Application:
    """Workloads by number.

    Parameters
    ----------
    units
        Size of each workload's pods.
    replicas
        Number of each workload's pods.
    calls
        Each pair once, none in a circle; by caller, and by called one within.
    walk
        All workloads on a walk down the calls, so that neighbours on the walk mostly call each other.
    """

    units: tuple[int, ...]
    replicas: tuple[int, ...]
    calls: tuple[Call, ...]
    walk: tuple[int, ...]


def draw_applications(
    count: int, workloads: tuple[int, int], replicas: tuple[int, int], density: float, bandwidth: float, dice: Dice
) -> list[Application]:
    """Draw applications.

    Parameters
    ----------
    count
        How many.
    workloads, replicas
        Least and most workloads of an application, and pods of a workload.
    density
        Calls per workload; what makes every workload but one a called one is there in any case.
    bandwidth
        Share of the calls that need bandwidth.
    dice
        All chance.
    """
    return [_application(_between(workloads, dice), replicas, density, bandwidth, dice) for _ in range(count)]


def _between(span: tuple[int, int], dice: Dice) -> int:
    return span[0] + dice.below(span[1] - span[0] + 1)


def _application(size: int, replicas: tuple[int, int], density: float, bandwidth: float, dice: Dice) -> Application:
    parents = [dice.below(number) for number in range(1, size)]
    pairs = dict.fromkeys((parent, number) for number, parent in enumerate(parents, 1))
    wanted = min(round(density * size), size * (size - 1) // 2)
    while len(pairs) < wanted:
        one, two = sorted((dice.below(size), dice.below(size)))
        if one != two:
            pairs[one, two] = None
    numbers = dice.shuffled(range(size))  # so that the numbers tell nothing of the walk
    calls = sorted(
        Call(numbers[one], numbers[two], dice.pick(BANDWIDTHS) if dice.chance(bandwidth) else 0) for one, two in pairs
    )
    return Application(
        units=tuple(dice.pick(SIZES) for _ in range(size)),
        replicas=tuple(_between(replicas, dice) for _ in range(size)),
        calls=tuple(calls),
        walk=tuple(numbers[each] for each in _walk(parents)),
    )


def _walk(parents: list[int]) -> Iterator[int]:
    """Depth first down the tree in which workload ``i + 1`` is first called by ``parents[i]``."""
    below: list[list[int]] = [[] for _ in range(len(parents) + 1)]
    for number, parent in enumerate(parents, 1):
        below[parent].append(number)
    ahead = [0]
    while ahead:
        yield (here := ahead.pop())
        ahead += below[here][::-1]
