"""From HyperNode objects to the tier tree; what is broken is left out and named (models/reading.md, "broken tree").

Left out, with all their ancestors, are HyperNodes on a cycle, with two parents, sharing a node with one that is neither
above nor below them, or with a tier that is not above their child's. What then remains is a forest in which tiers grow
towards the roots.
"""

from __future__ import annotations

import graphlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from placer.instance.findings import Findings
from placer.instance.members import Members, read_members
from placer.instance.node import Node
from placer.instance.topology import HyperNode, TopologyTree
from placer.kube import volcano

__all__ = ["read_tree"]


@dataclass(frozen=True)
class _Memberships:
    """Memberships between HyperNodes that exist, downwards and upwards; names in order."""

    children: Mapping[str, Sequence[str]]
    parents: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, names: Iterable[str], members: Mapping[str, Members]) -> _Memberships:
        children = {name: sorted(members[name].children) for name in names}
        parents: dict[str, list[str]] = {name: [] for name in children}
        for name, below in children.items():
            for child in below:
                parents[child].append(name)
        return cls(children, parents)

    def above(self, names: Set[str]) -> set[str]:
        """All ancestors of some HyperNodes; of those on a cycle, they themselves too."""
        found: set[str] = set()
        frontier = list(names)
        while frontier:
            new = set(self.parents[frontier.pop()]) - found
            found |= new
            frontier.extend(new)
        return found

    def cycles(self) -> Iterator[list[str]]:
        """Sets of HyperNodes that contain each other, each in order."""
        try:
            graphlib.TopologicalSorter(self.children).prepare()
        except graphlib.CycleError:
            import networkx as nx  # takes half a second, and cycles are rare

            edges = [(name, child) for name, below in self.children.items() for child in below]
            for component in nx.strongly_connected_components(nx.DiGraph(edges)):
                circle = sorted(component)
                if len(circle) > 1 or circle[0] in self.children[circle[0]]:
                    yield circle


def read_tree(
    hyper_nodes: Sequence[volcano.HyperNodeManifest], nodes: Mapping[str, Node], findings: Findings
) -> TopologyTree:
    """Build the tree of all sound HyperNodes.

    Parameters
    ----------
    hyper_nodes
        The objects, in any order.
    nodes
        The nodes that members are looked for in.
    findings
        Takes one finding for each thing that is broken.
    """
    tiers = {each.name: each.spec.tier for each in sorted(hyper_nodes, key=lambda each: each.name)}
    members = read_members(hyper_nodes, nodes, findings)
    between = _Memberships.of(tiers, members)
    cyclic = _cycles(between, findings)
    broken = cyclic | _two_parents(between, findings) | _overlaps(between, members, findings)
    broken |= _tier_order(between, tiers, cyclic, findings)
    left_out = broken | between.above(broken)
    tier_names = {each.name: each.spec.tier_name or "" for each in hyper_nodes}
    sound = {
        name: HyperNode(
            name=name,
            tier=tier,
            tier_name=tier_names[name],
            parent=next((parent for parent in between.parents[name] if parent not in left_out), None),
            children=tuple(sorted(members[name].children)),
            nodes=tuple(sorted(members[name].nodes)),
        )
        for name, tier in tiers.items()
        if name not in left_out
    }
    return TopologyTree(sound, root_tier=1 + max(tiers.values(), default=0), left_out=tuple(sorted(left_out)))


def _cycles(between: _Memberships, findings: Findings) -> set[str]:
    broken: set[str] = set()
    for circle in between.cycles():
        findings.add("HyperNodeCycle", f"HyperNode {circle[0]}", f"{_listed(circle)} contain each other in a cycle")
        broken.update(circle)
    return broken


def _two_parents(between: _Memberships, findings: Findings) -> set[str]:
    broken: set[str] = set()
    for name, parents in between.parents.items():
        if len(parents) > 1:
            message = f"HyperNode {name} is a member of {len(parents)} parents: {_listed(parents)}"
            findings.add("HyperNodeTwoParents", f"HyperNode {name}", message)
            broken.add(name)
    return broken


def _tier_order(between: _Memberships, tiers: Mapping[str, int], cyclic: Set[str], findings: Findings) -> set[str]:
    broken: set[str] = set()
    for name, tier in tiers.items():
        # Tiers around a cycle cannot grow: that is said once, as a cycle.
        judged = (child for child in between.children[name] if not {name, child} <= cyclic)
        children = sorted(child for child in judged if tiers[child] >= tier)
        if children:
            below = ", ".join(f"{child} (tier {tiers[child]})" for child in children)
            message = f"HyperNode {name} has tier {tier}, which is not above that of its members {below}"
            findings.add("HyperNodeTierOrder", f"HyperNode {name}", message)
            broken.add(name)
    return broken


def _overlaps(between: _Memberships, members: Mapping[str, Members], findings: Findings) -> set[str]:
    """HyperNodes that list one node and lie side by side, not one above the other."""
    listing: dict[str, set[str]] = defaultdict(set)
    for name, each in members.items():
        for node in each.nodes:
            listing[node].add(name)
    shared: dict[frozenset[str], list[str]] = defaultdict(list)
    for node, names in listing.items():
        if len(names) > 1:
            shared[frozenset(names)].append(node)
    above = {name: between.above({name}) for owners in shared for name in owners}
    broken: set[str] = set()
    for owners, nodes in shared.items():
        beside = _side_by_side(owners, above)
        if beside:
            message = f"{_listed(beside)} share {_nodes(sorted(nodes))}, but do not lie one above the other"
            findings.add("HyperNodeOverlap", f"HyperNode {beside[0]}", message)
            broken.update(beside)
    return broken


def _side_by_side(names: Set[str], above: Mapping[str, Set[str]]) -> list[str]:
    """Those of the names that are neither above nor below one of the others."""
    related = dict.fromkeys(names, 0)
    for name in names:
        # On a cycle two are above each other: that counts once, from the one that comes first by name.
        for other in above[name] & names:
            if other != name and not (name in above[other] and other < name):
                related[name] += 1
                related[other] += 1
    return sorted(name for name, count in related.items() if count < len(names) - 1)


def _nodes(names: Sequence[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"Node {names[0]}{more}"


def _listed(names: Sequence[str]) -> str:
    """Name HyperNodes; of many the first few and their number."""
    shown = ", ".join(names[:8])
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f"HyperNode{'s' if len(names) > 1 else ''} {shown}{more}"
