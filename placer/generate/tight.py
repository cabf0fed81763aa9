"""Leaves cut wholly into subgroups, and gangs put together of these: the hardest queues to place.

A leaf is full only if its subgroups come together again in sizes that add up; there are few loose pods to fill gaps
with.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from placer.generate.dice import Dice
from placer.generate.gang import Gang, Part, span
from placer.generate.ground import Ground, Kind
from placer.generate.options import GangMix, whole

__all__ = ["tight_gangs"]


class _Shape(NamedTuple):
    """What subgroups of one gang have in common: their kind of slot and their size."""

    kind: Kind
    size: int


class _Block(NamedTuple):
    """A subgroup, yet in no gang: its leaf, the nodes of its pods."""

    leaf: int
    nodes: tuple[int, ...]


def tight_gangs(ground: Ground, mix: GangMix) -> list[Gang]:
    """Cut a share of the leaves into subgroups, and all of these into gangs of the tiers above 1.

    Slots that no sum of subgroup sizes takes stay free.
    """
    pool = _cut_leaves(ground, mix)
    gangs: list[Gang] = []
    while pool:
        tier = ground.dice.weighted(range(2, ground.fabric.tiers + 1), _weights(mix))
        domain = _home(ground, pool, tier)
        gangs.append(Gang(tier, (_part(ground, mix, pool, (tier, domain), "worker"),)))
        if ground.dice.chance(mix.roles) and _shapes(ground, pool, tier, domain):
            second = _part(ground, mix, pool, (tier, domain), "driver")
            gangs[-1] = Gang(tier, (*gangs[-1].parts, second))
    return gangs


def _weights(mix: GangMix) -> list[float]:
    """Weights of the tiers above 1; where only tier 1 has a share, the highest one takes all."""
    above = list(mix.shares[1:])
    return above if sum(above) else [0.0] * (len(above) - 1) + [1.0]


def _cut_leaves(ground: Ground, mix: GangMix) -> dict[_Shape, list[_Block]]:
    pool: dict[_Shape, list[_Block]] = defaultdict(list)
    for leaf in range(ground.fabric.domains(1)):
        if ground.dice.chance(mix.tight):
            for kind, count in sorted(ground.counts[0][leaf].items()):
                for size in _sizes(count, mix.subgroup_sizes, ground.dice):
                    pool[_Shape(kind, size)].append(_Block(leaf, ground.take(1, leaf, (kind,), size)))
    return pool


def _sizes(count: int, sizes: tuple[int, ...], dice: Dice) -> list[int]:
    """Draw subgroup sizes that sum to ``count``, or to as much of it as they can."""
    reach = whole(count, sizes)
    left = max(total for total in range(count + 1) if reach[total])
    drawn: list[int] = []
    while left:
        drawn.append(dice.pick([size for size in sizes if size <= left and reach[left - size]]))
        left -= drawn[-1]
    return drawn


def _home(ground: Ground, pool: dict[_Shape, list[_Block]], tier: int) -> int:
    """Draw a domain in proportion to the subgroups that wait there."""
    shapes = sorted(pool)
    shape = ground.dice.weighted(shapes, [len(pool[shape]) for shape in shapes])
    return _domain(ground, tier, ground.dice.pick(pool[shape]))


def _domain(ground: Ground, tier: int, block: _Block) -> int:
    return ground.fabric.domain(tier, block.nodes[0])


def _shapes(ground: Ground, pool: dict[_Shape, list[_Block]], tier: int, domain: int) -> dict[_Shape, list[_Block]]:
    """Subgroups that wait in a domain."""
    found = {
        shape: [block for block in blocks if _domain(ground, tier, block) == domain] for shape, blocks in pool.items()
    }
    return {shape: blocks for shape, blocks in sorted(found.items()) if blocks}


def _part(ground: Ground, mix: GangMix, pool: dict[_Shape, list[_Block]], home: tuple[int, int], role: str) -> Part:
    """Take subgroups of one shape out of a domain: as many as a gang of that tier may have, or as there are."""
    tier, domain = home
    near = _shapes(ground, pool, tier, domain)
    weights = [len(blocks) * shape.size * shape.kind.gpus for shape, blocks in near.items()]
    shape = ground.dice.weighted(list(near), weights)
    low, high = span(mix, ground.fabric, tier, shape.kind.gpus)
    number = max(1, int(ground.dice.log_between(low, high + 0.999)) // shape.size)
    blocks = ground.dice.shuffled(near[shape])[:number]
    for block in blocks:  # equal ones may wait on one node, so each is taken once
        pool[shape].remove(block)
    if not pool[shape]:
        del pool[shape]
    kind = shape.kind
    selects = mix.node_types > 1 and ground.dice.chance(mix.selectors)
    return Part(
        role=role,
        gpus=kind.gpus,
        grade=kind.grade,
        node_type=kind.node_type if selects else None,
        blocks=tuple(block.nodes for block in blocks),
        sub_size=shape.size,
        sub_tier=1,
    )
