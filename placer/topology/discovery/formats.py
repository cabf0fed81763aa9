"""A file that describes a fabric, of any format: its content tells which."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import replace
from typing import Any

from placer.base.errors import BadInstance, Fault, UsageError
from placer.base.text import shown
from placer.kube.base import DNS_SUBDOMAIN, LONGEST_NAME
from placer.kube.manifests import read_texts
from placer.kube.manifests.syntax import YamlError, documents, refusal
from placer.problem import TopologyTree
from placer.problem.findings import Findings, counted
from placer.topology.discovery.infiniband import discover_infiniband
from placer.topology.discovery.slurm import discover_topology_conf, discover_topology_yaml
from placer.topology.discovery.switches import Discovery, discover_graph

_INFINIBAND = re.compile(r'^\s*(?:switchguid=|caguid=|(?:Switch|Ca|Rt)\s+\d+\s+")', re.MULTILINE)
_CONF = re.compile(r"^\s*(?:SwitchName|BlockName|BlockSizes|RingName)\s*=", re.MULTILINE | re.IGNORECASE)
_EXPECTED = (
    "the output of ibnetdiscover, Slurm's topology.conf or topology.yaml, or files of topograph (these, its JSON, "
    "or its ConfigMap)"
)
#: Keys of the ConfigMap that topograph's Slinky engine writes.
_FILES = ("topology.yaml", "topology.conf")


def discover_file(path: str, nodes: Collection[str] | None = None, topology: str | None = None) -> Discovery:
    """Find the domains that a file describes; ``-`` is standard input.

    ``nodes``: those that count; None: not known. ``topology``: the one that counts, else :class:`UsageError`.
    :class:`BadInstance`: every fault of the file; it is of no format that is read; no host of it is a node.
    """
    texts = read_texts([path])
    if len(texts) != 1:
        raise BadInstance([Fault(path, None, "", "", f"{len(texts)} files", "one")])
    source, data = texts[0].name, bytes(texts[0].data)
    names = NodeNames(nodes)
    return with_nodes(_of_text(data.decode(), source, names, topology), names, source)


def _of_text(text: str, source: str, names: NodeNames, topology: str | None) -> Discovery:
    if _INFINIBAND.search(text) and not text.lstrip().startswith(("{", "-")):
        _no_choice(topology, source)
        return discover_infiniband(text, source, lambda host: names.node(host) is not None)
    if _CONF.search(text) and not re.search(r"^kind:\s*ConfigMap", text, re.MULTILINE):
        return discover_topology_conf(text, source, topology)
    return _of_document(_parsed(text, source), source, names, topology)


def _of_document(document: Any, source: str, names: NodeNames, topology: str | None) -> Discovery:
    if isinstance(document, list) and document:
        return discover_topology_yaml(document, source, topology)
    if isinstance(document, dict):
        if "instances" in document:
            _no_choice(topology, source)
            return discover_graph(document, source)
        for key, text in _files(document).items():
            return _of_text(text, f"{source}: {key}", names, topology)
    found = f"a {type(document).__name__}" if document is not None else "nothing"
    raise BadInstance([Fault(source, None, "", "", found, _EXPECTED)])


def _files(document: Mapping[str, Any]) -> dict[str, str]:
    data = document.get("data") if document.get("kind") == "ConfigMap" else None
    files = data if isinstance(data, dict) else {}
    return {key: files[key] for key in _FILES if isinstance(files.get(key), str)}


def _parsed(text: str, source: str) -> Any:
    try:
        if text.lstrip()[:1] in ("{", "["):
            refused = refusal(text.encode())
            if refused is not None:
                raise YamlError(*refused)
            return json.loads(text)
        found = ["".join(document.pieces) for document in documents(text.encode())]
    except (YamlError, ValueError, RecursionError) as error:
        told = error.found if isinstance(error, YamlError) else str(error)
        place = error.place if isinstance(error, YamlError) else ""
        raise BadInstance([Fault(source, None, "", place, shown(told, 200), _EXPECTED)]) from error
    whole = [json.loads(each) for each in found if each]
    return whole[0] if len(whole) == 1 else None


def _no_choice(topology: str | None, source: str) -> None:
    if topology is not None:
        raise UsageError(f"--topology: found {topology!r}, expected none, for {source} has one topology")


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
