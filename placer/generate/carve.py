"""Cut a full cluster into gangs: the gangs are known to fit because this is where they were cut from.

Every node is cut into *slots* (a pod each) whose GPUs sum to those of the node. Leaves may first be cut wholly into
subgroups (``tight``). Gangs limited to the wider tiers then
claim slots, largest first, leaf by leaf, each inside one domain of its tier; the leaves that remain are shared out
among gangs of tier 1. What is too small for a gang of its own goes to gangs of the next tier, so that no slot is
left.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from placer.generate.dice import Dice
from placer.generate.fabric import Fabric
from placer.generate.gang import Gang, Part, span
from placer.generate.ground import Ground, Kind, cut_nodes
from placer.generate.options import GangMix
from placer.generate.tight import tight_gangs

__all__ = ["carve"]


def carve(fabric: Fabric, mix: GangMix, dice: Dice, fill: float = 1.0) -> list[Gang]:
    """Cut the cluster into gangs.

    Parameters
    ----------
    fabric, mix
        The cluster and the shape of the gangs.
    dice
        All chance.
    fill
        Share of the nodes that is cut, above 0 to 1; every GPU of these is in exactly one pod, the others stay empty.

    Returns
    -------
    list of Gang
        In the order they were cut, pods without CPU and memory yet.
    """
    ground = cut_nodes(fabric, mix, dice, fill)
    gangs = [*(tight_gangs(ground, mix) if mix.tight else ()), *_wide_gangs(ground, mix)]
    for tier in range(1, fabric.tiers + 1):
        for domain in dice.shuffled(range(fabric.domains(tier))):
            gangs += _share_out(ground, mix, tier, domain)
    return gangs


def _draw_kinds(ground: Ground, mix: GangMix, counts: Counter[Kind], gpus: int | None = None) -> tuple[Kind, ...]:
    """Draw what pods a part has, in proportion to the free GPUs; several where it selects no node type."""
    kinds = sorted(kind for kind, count in counts.items() if count and gpus in (None, kind.gpus))
    chosen = ground.dice.weighted(kinds, [counts[kind] * kind.gpus for kind in kinds])
    if mix.node_types > 1 and ground.dice.chance(mix.selectors):
        return (chosen,)
    return tuple(kind for kind in kinds if (kind.gpus, kind.grade) == (chosen.gpus, chosen.grade))


def _wide_gangs(ground: Ground, mix: GangMix) -> list[Gang]:
    """Gangs of the tiers above 1, as many as their share of the GPUs asks for; the largest claim their slots first."""
    fabric, dice = ground.fabric, ground.dice
    total = sum(count * kind.gpus for kind, count in ground.all_free.items())
    wanted: list[tuple[int, int, tuple[Kind, ...]]] = []
    for tier in range(2, fabric.tiers + 1):
        room = mix.shares[tier - 1] * total
        while room > 0:
            kinds = _draw_kinds(ground, mix, ground.all_free)
            low, high = span(mix, fabric, tier, kinds[0].gpus)
            pods = int(dice.log_between(low, high + 0.999))
            room -= pods * kinds[0].gpus
            if room >= 0 or dice.chance(0.5):  # on average the share is met
                wanted.append((pods, tier, kinds))
    wanted.sort(key=lambda demand: (-demand[0] * demand[2][0].gpus, demand[1]))
    claimed = [_claim(ground, mix, tier, kinds, pods) for pods, tier, kinds in wanted]
    return [gang for gang in claimed if gang is not None]


def _claim(ground: Ground, mix: GangMix, tier: int, kinds: tuple[Kind, ...], pods: int) -> Gang | None:
    """Claim ``pods`` slots in a domain of a tier, in the fullest one as many as there are where no domain has so
    many.
    """
    fits = [(ground.free(tier, domain, kinds), domain) for domain in range(ground.fabric.domains(tier))]
    good = [domain for count, domain in fits if count >= pods]
    count, domain = max(fits) if not good else (pods, ground.dice.pick(good))
    low, _ = span(mix, ground.fabric, tier, kinds[0].gpus)
    return _gang(ground, mix, tier, domain, kinds, count) if count >= low else None


def _gang(ground: Ground, mix: GangMix, tier: int, domain: int, kinds: tuple[Kind, ...], pods: int) -> Gang:
    """Take the slots of a gang, in subgroups or not, with a second role or not."""
    first = _subgrouped(ground, mix, tier, domain, kinds, pods) if ground.dice.chance(mix.subgroups) else None
    if first is None:
        first = _part("worker", kinds, mix, (ground.take(tier, domain, kinds, pods),))
    gang = Gang(tier, (first,))
    counts = ground.counts[tier - 1][domain]
    if ground.dice.chance(mix.roles) and counts.total():
        other = _draw_kinds(ground, mix, counts)
        most = min(ground.free(tier, domain, other), max(1, len(first.nodes) // 4))
        nodes = ground.take(tier, domain, other, 1 + ground.dice.below(most))
        gang = replace(gang, parts=(first, _part("driver", other, mix, (nodes,))))
    return gang


def _part(role: str, kinds: tuple[Kind, ...], mix: GangMix, blocks: tuple[tuple[int, ...], ...]) -> Part:
    """Make a part; what differs between its kinds of slot is left open: the grade, the node type to select."""
    first = kinds[0]
    grade = first.grade if all(kind.grade == first.grade for kind in kinds) else 0
    return Part(role, first.gpus, grade, first.node_type if mix.node_types > 1 and len(kinds) == 1 else None, blocks)


def _subgrouped(
    ground: Ground, mix: GangMix, tier: int, domain: int, kinds: tuple[Kind, ...], pods: int
) -> Part | None:
    """Take a gang's slots in equal subgroups, each within the lowest tier where one fits; None where none fits."""
    size = ground.dice.pick(mix.subgroup_sizes)
    for sub_tier in range(1, tier + 1):
        blocks = _blocks(ground, tier, domain, kinds, (pods // size, size, sub_tier))
        if blocks:
            part = _part("worker", kinds, mix, blocks)
            return replace(part, sub_size=size, sub_tier=sub_tier if sub_tier < tier else 0)
    return None


def _blocks(
    ground: Ground, tier: int, domain: int, kinds: tuple[Kind, ...], shape: tuple[int, int, int]
) -> tuple[tuple[int, ...], ...]:
    """Take up to ``shape[0]`` blocks of ``shape[1]`` slots, each in one domain of tier ``shape[2]``."""
    number, size, sub_tier = shape
    blocks: list[tuple[int, ...]] = []
    for inner in ground.dice.shuffled(ground.fabric.below(tier, domain, sub_tier)):
        while len(blocks) < number and ground.free(sub_tier, inner, kinds) >= size:
            blocks.append(ground.take(sub_tier, inner, kinds, size))
    return tuple(blocks)


def _share_out(ground: Ground, mix: GangMix, tier: int, domain: int) -> list[Gang]:
    """Gangs out of all slots of a domain; on the highest tier nothing is left, on the others less than the least
    gang.
    """
    gangs: list[Gang] = []
    counts = ground.counts[tier - 1][domain]
    top = tier == ground.fabric.tiers
    for gpus in sorted({kind.gpus for kind in counts}, reverse=True):
        low, high = span(mix, ground.fabric, 1, gpus)
        floor = 1 if top else max(2, low)
        while sum(count for kind, count in counts.items() if kind.gpus == gpus) >= floor:
            kinds = _draw_kinds(ground, mix, counts, gpus)
            free = ground.free(tier, domain, kinds)
            if free < floor:  # of these too few, of all together enough
                kinds = tuple(sorted(kind for kind, count in counts.items() if count and kind.gpus == gpus))
                free = ground.free(tier, domain, kinds)
            pods = int(ground.dice.log_between(low, high + 0.999))
            pods = free if free - pods < floor and free <= high else min(pods, free)
            gangs.append(_gang(ground, mix, tier, domain, kinds, pods))
    return gangs
