"""The cluster that is generated: nodes in a Clos fabric, and what each of them has."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from placer.laboratory.generate.options import GangMix
from placer.laboratory.generate.random_source import RandomSource

__all__ = ["NODE_TYPES", "TIER_NAMES", "Fabric", "NodeType", "build_fabric"]

#: Names of the tiers, lowest first, by their number.
TIER_NAMES = {3: ("leaf", "spine", "core"), 4: ("leaf", "spine", "pod", "core")}


@dataclass(frozen=True, slots=True)
class NodeType:
    """A kind of node; CPU in milli-cores, memory in MiB, both per GPU of the node."""

    name: str
    cpu: int
    memory: int


NODE_TYPES = (
    NodeType("balanced", 16_000, 128 * 1024),
    NodeType("cpu-rich", 24_000, 192 * 1024),
    NodeType("memory-rich", 12_000, 256 * 1024),
)


@dataclass(frozen=True)
class Fabric:
    """Nodes by number, in an order in which every domain is a range of them.

    Parameters
    ----------
    starts
        First node of each domain, by tier, lowest first; the highest tier has one domain, the core. A domain starts
        where one of every lower tier does.
    types
        Kind of each node, an index into :data:`NODE_TYPES`.
    """

    starts: tuple[tuple[int, ...], ...]
    types: tuple[int, ...]

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.types)

    @property
    def tiers(self) -> int:
        """Number of tiers."""
        return len(self.starts)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Nodes of the largest domain of each tier, lowest first."""
        return tuple(max(end - start for start, end in pairwise((*starts, self.nodes))) for starts in self.starts)

    def domains(self, tier: int) -> int:
        """Count the domains of a tier."""
        return len(self.starts[tier - 1])

    def domain(self, tier: int, node: int) -> int:
        """Return the domain of a node on a tier."""
        return bisect_right(self.starts[tier - 1], node) - 1

    def members(self, tier: int, domain: int) -> range:
        """Return the nodes of a domain."""
        starts = self.starts[tier - 1]
        return range(starts[domain], starts[domain + 1] if domain + 1 < len(starts) else self.nodes)

    def below(self, tier: int, domain: int, lower: int) -> range:
        """Return the domains of tier ``lower`` that lie in a domain of ``tier``."""
        nodes = self.members(tier, domain)
        return range(self.domain(lower, nodes[0]), self.domain(lower, nodes[-1]) + 1)


def build_fabric(nodes: int, mix: GangMix, source: RandomSource) -> Fabric:
    """Lay out ``nodes`` nodes in domains of equal size, the last ones as large as is left.

    Kinds of nodes are mixed within every leaf.
    """
    widths = [mix.leaf_size, mix.leaf_size * mix.leaves_per_spine]
    if mix.spines_per_pod:
        widths.append(widths[-1] * mix.spines_per_pod)
    starts = [tuple(range(0, nodes, width)) for width in widths]
    return Fabric((*starts, (0,)), tuple(source.below(mix.node_types) for _ in range(nodes)))
