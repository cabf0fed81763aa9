"""The cluster that is generated: nodes in a Clos fabric, and what each of them has."""

from __future__ import annotations

from dataclasses import dataclass

from placer.generate.dice import Dice
from placer.generate.options import GangMix

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
    """Nodes by number; domain ``d`` of tier ``t`` holds the nodes ``d * widths[t - 1]`` up to the next domain's first.

    Parameters
    ----------
    nodes
        Number of nodes.
    widths
        Nodes per domain of each tier, lowest first; the last one is ``nodes``.
    types
        Kind of each node, an index into :data:`NODE_TYPES`.
    """

    nodes: int
    widths: tuple[int, ...]
    types: tuple[int, ...]

    @property
    def tiers(self) -> int:
        """Number of tiers; the highest has one domain, the core."""
        return len(self.widths)

    def domains(self, tier: int) -> int:
        """Count the domains of a tier; the last of them may be smaller than the others."""
        return -(-self.nodes // self.widths[tier - 1])

    def domain(self, tier: int, node: int) -> int:
        """Return the domain of a node on a tier."""
        return node // self.widths[tier - 1]

    def below(self, tier: int, domain: int, lower: int) -> range:
        """Return the domains of tier ``lower`` that lie in a domain of ``tier``."""
        step = self.widths[tier - 1]
        first, end = domain * step, min(self.nodes, (domain + 1) * step)
        return range(first // self.widths[lower - 1], -(-end // self.widths[lower - 1]))


def build_fabric(nodes: int, mix: GangMix, dice: Dice) -> Fabric:
    """Lay out ``nodes`` nodes; kinds of nodes are mixed within every leaf."""
    widths = [mix.leaf_size, mix.leaf_size * mix.leaves_per_spine]
    if mix.spines_per_pod:
        widths.append(widths[-1] * mix.spines_per_pod)
    types = tuple(dice.below(mix.node_types) for _ in range(nodes))
    # The core is never narrower than what it stands above, also where the cluster does not fill one spine.
    return Fabric(nodes, (*widths, max(nodes, widths[-1])), types)
