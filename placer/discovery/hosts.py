"""Hosts of a fabric and the nodes that they are: by name in small letters, with or without a domain behind it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import replace

from placer.discovery.switches import Discovery
from placer.errors import BadInstance, Fault
from placer.instance import TopologyTree
from placer.instance.findings import Findings, counted
from placer.kube.base import DNS_SUBDOMAIN, LONGEST_NAME
from placer.legible import shown


class NodeNames:
    """Which node a host is; ``nodes`` None: not known."""

    def __init__(self, nodes: Collection[str] | None) -> None:
        self.nodes = None if nodes is None else frozenset(nodes)
        self._short: dict[str, list[str]] = defaultdict(list)
        for node in sorted(nodes or ()):
            self._short[node.partition(".")[0]].append(node)

    def node(self, host: str) -> str | None:
        """Name of the node that a host is; None: of none."""
        name = host.lower()
        if self.nodes is None:
            return name if len(name) <= LONGEST_NAME and DNS_SUBDOMAIN.fullmatch(name) else None
        if name in self.nodes:
            return name
        alike = self._short.get(name.partition(".")[0], [])
        return alike[0] if len(alike) == 1 and ("." not in name or "." not in alike[0]) else None


def with_nodes(found: Discovery, names: NodeNames, source: str) -> Discovery:
    """Put nodes in the place of hosts; :class:`BadInstance`: one is in two domains, or none in any."""
    nodes: dict[str, set[str]] = {}
    strangers: set[str] = set()
    for name, domain in found.tree.hyper_nodes.items():
        made = {host: names.node(host) for host in domain.nodes}
        nodes[name] = {node for node in made.values() if node is not None}
        strangers.update(f"host {shown(host)}" for host, node in made.items() if node is None)
    homes = _homes(nodes)
    _refuse(homes, strangers, source)
    findings = _told(strangers, (names.nodes or frozenset()) - homes.keys(), source)
    findings.update(found.findings)
    return replace(found, tree=_replaced(found.tree, nodes), findings=findings.all())


def _homes(nodes: Mapping[str, Set[str]]) -> dict[str, set[str]]:
    homes: dict[str, set[str]] = defaultdict(set)
    for name, found in nodes.items():
        for node in found:
            homes[node].add(name)
    return homes


def _refuse(homes: Mapping[str, Set[str]], strangers: set[str], source: str) -> None:
    faults = [
        Fault(source, None, f"Node {node}", "", f"it as hosts on {', '.join(sorted(where))}", "one switch")
        for node, where in sorted(homes.items())
        if len(where) > 1
    ]
    if not homes:
        told = f"{counted(strangers)}, none of them a node" if strangers else "no host on any switch"
        faults = [Fault(source, None, "", "", told, "hosts that are nodes")]
    if faults:
        raise BadInstance(faults)


def _told(strangers: set[str], outside: Iterable[str], source: str) -> Findings:
    findings = Findings()
    if strangers:
        what = "is no node" if len(strangers) == 1 else "are no nodes"
        findings.add("HostUnknown", min(strangers), f"{counted(strangers)} of {source} {what}, and left out")
    without = {f"Node {each}" for each in outside}
    if without:
        findings.add("NodeNotInFabric", min(without), f"{counted(without)}: no host of {source}, so in no domain")
    return findings


def _replaced(tree: TopologyTree, nodes: Mapping[str, Set[str]]) -> TopologyTree:
    kept = {name for leaf, found in nodes.items() if found for name in tree.paths[leaf]}
    made = {
        name: replace(
            each,
            nodes=tuple(sorted(nodes[name])),
            children=tuple(child for child in each.children if child in kept),
        )
        for name, each in tree.hyper_nodes.items()
        if name in kept
    }
    return TopologyTree(made, root_tier=1 + max((each.tier for each in made.values()), default=0))
