"""``placer topology show``: the domains of the tier tree, with the used and the free room of each."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from placer.base.errors import UsageError
from placer.base.quantity import Resources, format_amount
from placer.base.text import alike
from placer.problem import Finding, Instance, Node, TopologyTree

_NOTHING = Resources()
#: Findings about the tree itself, which are told before others.
_OF_TREE = ("HyperNode", "TierName", "NoHyperNodes")


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """Amounts of nodes, resource by resource: milli-cpu, bytes, counts.

    ``used``: by bound, terminating and nominated pods. ``free``: left on nodes that take pods; of an over-full node
    nothing. ``closed``: left on nodes that take none: not Ready, or cordoned.
    """

    used: Counter[str] = field(default_factory=Counter)
    free: Counter[str] = field(default_factory=Counter)
    closed: Counter[str] = field(default_factory=Counter)

    def add(self, node: Node, held: Resources) -> None:
        """Count a node in, of which pods hold some amounts."""
        left = self.free if node.ready and not node.unschedulable else self.closed
        for resource in {*node.allocatable, *held}:
            self.used[resource] += held[resource]
            left[resource] += max(0, node.allocatable[resource] - held[resource])

    def take(self, other: ResourceUse) -> None:
        """Count the nodes of another in."""
        self.used.update(other.used)
        self.free.update(other.free)
        self.closed.update(other.closed)

    @property
    def resources(self) -> tuple[str, ...]:
        """Names of all resources that some node has or some pod uses, sorted."""
        return tuple(sorted({*self.used, *self.free, *self.closed}))

    def share(self, resource: str) -> float:
        """Part of a resource that is used, 0.0 to 1.0; 0.0 where there is none of it."""
        whole = self.used[resource] + self.free[resource] + self.closed[resource]
        return self.used[resource] / whole if whole else 0.0


@dataclass(frozen=True, slots=True)
class DomainUse:
    """One domain of the tree, named as its HyperNode or by the path of labels.

    ``parent``: the next wider domain; None: the virtual root. ``depth``: domains above it. ``nodes``: those of the
    domains below included.
    """

    name: str
    tier: int
    tier_name: str
    parent: str | None
    depth: int
    nodes: int
    room: ResourceUse

    def as_dict(self) -> dict[str, Any]:
        """As plain values: quantities as Kubernetes writes them."""
        room = self.room
        return {
            "name": self.name,
            "tier": self.tier,
            "tierName": self.tier_name or None,
            "parent": self.parent,
            "nodes": self.nodes,
            "used": {name: format_amount(name, room.used[name]) for name in room.resources},
            "free": {name: format_amount(name, room.free[name]) for name in room.resources},
        }


@dataclass(frozen=True, slots=True)
class DomainReport:
    """The tier tree and its contents; ``outside``: the nodes in no domain; ``domains``: each before those below it."""

    whole: DomainUse
    outside: DomainUse
    domains: tuple[DomainUse, ...]
    findings: tuple[Finding, ...]

    def under(self, name: str) -> DomainReport:
        """The report on one domain and those below it; an absent one is a :class:`UsageError`."""
        start = next((index for index, each in enumerate(self.domains) if each.name == name), None)
        if start is None:
            near = alike(name, [each.name for each in self.domains])
            hint = f"; did you mean {near}?" if near else ""
            raise UsageError(f"--domain: found {name!r}, expected the name of a domain{hint}")
        end = start + 1
        while end < len(self.domains) and self.domains[end].depth > self.domains[start].depth:
            end += 1
        return replace(self, domains=self.domains[start:end])

    def cut(self, depth: int) -> DomainReport:
        """The report on the uppermost domains, of so many levels, at least 1."""
        top = min((each.depth for each in self.domains), default=0)
        return replace(self, domains=tuple(each for each in self.domains if each.depth < top + depth))

    def as_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "domains": [each.as_dict() for each in self.domains],
            "findings": [each.as_dict() for each in self.findings],
        }


def domains_of(instance: Instance) -> DomainReport:
    """Say what is used and free in each domain of an instance's tree."""
    tree = instance.topology
    rooms: dict[str | None, ResourceUse] = defaultdict(ResourceUse)
    nodes = Counter(map(tree.leaf.get, instance.nodes))
    for node in instance.nodes.values():
        rooms[tree.leaf.get(node.name)].add(node, instance.held.get(node.name, _NOTHING))
    outside = DomainUse("", tree.root_tier, "", None, 0, nodes[None], ResourceUse())
    outside.room.take(rooms[None])
    for hyper_node in sorted(tree.hyper_nodes.values(), key=lambda each: each.tier):
        rooms[hyper_node.parent].take(rooms[hyper_node.name])
        nodes[hyper_node.parent] += nodes[hyper_node.name]
    return DomainReport(
        whole=replace(outside, nodes=nodes[None], room=rooms[None]),
        outside=outside,
        domains=tuple(_ordered(tree, nodes, rooms)),
        findings=tuple(sorted(instance.findings, key=lambda each: not each.code.startswith(_OF_TREE))),
    )


def _ordered(
    tree: TopologyTree, nodes: Mapping[str | None, int], rooms: Mapping[str | None, ResourceUse]
) -> Iterator[DomainUse]:
    roots = [name for name, each in tree.hyper_nodes.items() if each.parent is None]
    waiting = [(name, 0) for name in _falling(roots)]
    while waiting:
        name, depth = waiting.pop()
        each = tree.hyper_nodes[name]
        yield DomainUse(name, each.tier, each.tier_name, each.parent, depth, nodes[name], rooms[name])
        waiting += [(child, depth + 1) for child in _falling(each.children)]


def _falling(names: Iterable[str]) -> list[str]:
    return sorted(names, key=natural, reverse=True)


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key by which numbers in names count by their size, ``leaf-2`` before ``leaf-10``."""
    parts = re.findall(r"\d+|\D+", name)
    key = tuple((0, int(part), "") if part.isdecimal() and len(part) < 100 else (1, 0, part) for part in parts)
    return (*key, (-1, 0, name))
