"""A gang that was cut from a cluster, and how large gangs are."""

from __future__ import annotations

from dataclasses import dataclass

from placer.generate.fabric import Fabric
from placer.generate.options import GangMix

__all__ = ["Gang", "Part", "span"]


@dataclass(frozen=True)
class Part:
    """Equal pods of a gang, and where they were cut from.

    Parameters
    ----------
    role
        Name of the role.
    gpus
        GPUs of a pod.
    grade
        1: rich in CPU and poor in memory, -1 the reverse, 0 neither.
    node_type
        The kind of node that its pods select; None where any will do.
    blocks
        Node numbers, a list per subgroup; one list where there are no subgroups.
    sub_size
        Pods per subgroup; 0: no subgroups.
    sub_tier
        Tier within which each subgroup lies, below that of the gang; 0: the subgroups have no limit of their own.
    cpu, memory
        Milli-cores and MiB that a pod asks for; :func:`~placer.generate.weigh.weigh` sets them.
    """

    role: str
    gpus: int
    grade: int
    node_type: int | None
    blocks: tuple[tuple[int, ...], ...]
    sub_size: int = 0
    sub_tier: int = 0
    cpu: int = 0
    memory: int = 0

    @property
    def nodes(self) -> tuple[int, ...]:
        """Node of each pod."""
        return tuple(node for block in self.blocks for node in block)


@dataclass(frozen=True)
class Gang:
    """A gang: its parts all lie in one domain of ``tier``."""

    tier: int
    parts: tuple[Part, ...]

    @property
    def pods(self) -> int:
        """Number of pods."""
        return sum(len(part.nodes) for part in self.parts)

    @property
    def gpus(self) -> int:
        """Number of GPUs."""
        return sum(len(part.nodes) * part.gpus for part in self.parts)


def span(mix: GangMix, fabric: Fabric, tier: int, gpus: int) -> tuple[int, int]:
    """Least and most pods of a gang of a tier: of tier 1 from a quarter of a leaf, of a wider one from what no child
    holds.

    The largest is 0.95 of the domain, of the core 0.54 of the domain below (Volcano's greedy was timed on such
    queues), and never more than half of the cluster, so that a small one holds several gangs too.
    """
    if mix.gang_pods:
        return mix.gang_pods[0], mix.gang_pods[1]
    per_node = mix.gpus / gpus
    if tier == 1:
        least, most = fabric.widths[0] / 4, float(fabric.widths[0])
    elif tier < fabric.tiers:
        least, most = fabric.widths[tier - 2] + 1, 0.95 * fabric.widths[tier - 1]
    else:
        least, most = fabric.widths[0] + 1, 0.54 * fabric.widths[tier - 2]
    high = max(1, round(min(most, fabric.nodes / 2) * per_node))
    return min(high, max(1, round(least * per_node))), high
