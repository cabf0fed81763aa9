"""The tier tree of HyperNodes, valid by construction (C7, O2, O4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

__all__ = ["HyperNode", "TopologyTree"]


@dataclass(frozen=True, slots=True)
class HyperNode:
    """A network domain.

    Parameters
    ----------
    name
        Its name.
    tier
        Lower is nearer; below its parent's.
    tier_name
        ``spec.tierName``; empty where absent.
    parent
        Name of the HyperNode it is a member of; None at a root (only the virtual root is above).
    children
        Names of its member HyperNodes, sorted.
    nodes
        Names of existing nodes that are direct members of it, sorted; a HyperNode with any is a *leaf HyperNode*.
    """

    name: str
    tier: int
    tier_name: str = ""
    parent: str | None = None
    children: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TopologyTree:
    """All sound HyperNodes and the virtual root above them.

    A node belongs to the lowest HyperNode that lists it (its *leaf*), and with it to all ancestors of that one. Tiers
    strictly grow towards the root. Broken HyperNodes are not here; they are findings.

    Parameters
    ----------
    hyper_nodes
        Name to HyperNode, sorted by name.
    root_tier
        Tier of the virtual root: 1 + the highest tier of all HyperNode objects, those left out included; 1 without any.
    left_out
        Names of the broken HyperNodes and of their ancestors, sorted.
    """

    hyper_nodes: Mapping[str, HyperNode]
    root_tier: int = 1
    left_out: tuple[str, ...] = ()

    @cached_property
    def leaf(self) -> Mapping[str, str]:
        """Node name to the name of its leaf HyperNode; a node in no HyperNode is absent."""
        lowest: dict[str, str] = {}
        for hyper_node in sorted(self.hyper_nodes.values(), key=lambda h: -h.tier):
            lowest.update(dict.fromkeys(hyper_node.nodes, hyper_node.name))
        return lowest

    @cached_property
    def paths(self) -> Mapping[str, tuple[str, ...]]:
        """HyperNode name to itself and its ancestors, lowest first (the virtual root left out)."""
        found: dict[str, tuple[str, ...]] = {}
        for hyper_node in sorted(self.hyper_nodes.values(), key=lambda h: -h.tier):
            above = found[hyper_node.parent] if hyper_node.parent is not None else ()
            found[hyper_node.name] = (hyper_node.name, *above)
        return found

    def path(self, node: str) -> tuple[str, ...]:
        """HyperNodes that hold the node, lowest first; empty where it lies only under the virtual root."""
        leaf = self.leaf.get(node)
        return () if leaf is None else self.paths[leaf]

    def smallest_common(self, nodes: Iterable[str]) -> str | None:
        """Lowest HyperNode that holds all the nodes; None is the virtual root (also for no node at all)."""
        common: tuple[str, ...] | None = None
        for node in set(nodes):
            path = self.path(node)
            common = path if common is None else tuple(name for name in common if name in path)
            if not common:
                return None
        return common[0] if common else None

    def tier(self, hyper_node: str | None) -> int:
        """Tier of a HyperNode; None is the virtual root."""
        return self.root_tier if hyper_node is None else self.hyper_nodes[hyper_node].tier
