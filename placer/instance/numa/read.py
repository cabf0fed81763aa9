"""NodeResourceTopology objects as they are read: the zones of a node, its kubelet's policy and scope (C10).

Policy and scope start at none and container. The first of the deprecated ``topologyPolicies`` sets them, then the
attributes do. Plain names there (``SingleNUMANode``, ``Restricted``) are the policy with the kubelet's default scope.
The two API versions, the seeds and the kubelet spell the names differently (``SingleNumaNode``, ``SingleNUMANode``,
``single-numa-node``); letters alone count, in either case. What is written and not known makes the policy unknown.
A zone is of type Node and called ``node-<id>``.

Source: k8stopologyawareschedwg/noderesourcetopology-api ``v1alpha2/types.go``; scheduler-plugins
``pkg/noderesourcetopology/nodeconfig/topologymanager.go``; KEP-119 "CRD API".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from placer.instance.findings import Findings
from placer.instance.numa.model import MAX_NUMA_NODES, POLICIES, SCOPES, STRICT, UNKNOWN, NumaNode, NumaZone
from placer.instance.problem import Node
from placer.kube.numa import NodeResourceTopologyManifest, ZoneEntry, ZoneResource
from placer.quantity import Resources, format_amount, from_nano

__all__ = ["CODE", "read_numa"]

CODE: Final = "NumaZones"

_POLICY, _SCOPE = "topologyManagerPolicy", "topologyManagerScope"
_SUFFIXES = {"": "container", "ContainerLevel": "container", "PodLevel": "pod"}
#: As they are said to people.
_OLD_NAMES = (
    "None",
    *(policy + suffix for policy in ("BestEffort", "Restricted", "SingleNUMANode") for suffix in _SUFFIXES),
)
_ZONE_NAME = re.compile(r"node-([0-9]{1,3})")
_MAX_NUMA_NODES = "topologyManagerMaxNUMANodes"
#: Those that are read, and one that says nothing here.
_ATTRIBUTES = (_POLICY, _SCOPE, _MAX_NUMA_NODES, "topologyManagerPolicyOptions")
#: What is above this counts as this.
_MAX_NUMA_NODES_READ = 1024
_KEEPS_OFF = "; no pod that would be aligned goes there"
_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
#: The kubelet counts zones in 64 bits.
_MOST_ZONES = 64


def _letters(name: str) -> str:
    """What all spellings of a policy or scope have in common."""
    return "".join(filter(str.isalpha, name)).lower()


_POLICY_NAMES = {
    _letters(policy + suffix): (policy, scope) for policy in POLICIES for suffix, scope in _SUFFIXES.items()
}
_SCOPE_NAMES = {scope + suffix: scope for scope in SCOPES for suffix in ("", "level")}


def read_numa(
    written: Iterable[NodeResourceTopologyManifest], nodes: Mapping[str, Node], findings: Findings
) -> dict[str, NumaNode]:
    """Read what the objects say of the nodes that are there, by name of the node."""
    found = {}
    for item in sorted(written, key=lambda each: each.name):
        node = nodes.get(item.name)
        if node is None:
            findings.missing(f"Node {item.name}", f"NodeResourceTopology {item.name}")
            continue
        reader = _Reader(item, findings)
        policy, scope = reader.settings()
        numa = NumaNode(policy, scope, reader.zones(), reader.max_numa_nodes())
        reader.check(numa, node.allocatable)
        found[node.name] = numa
    return found


class _Reader:
    """Reads one object and notes what in it cannot be as meant."""

    def __init__(self, item: NodeResourceTopologyManifest, findings: Findings) -> None:
        self.item, self.findings = item, findings
        self.subject = f"NodeResourceTopology {item.name}"

    def note(self, message: str) -> None:
        self.findings.add(CODE, self.subject, f"{self.subject}: {message}")

    def settings(self) -> tuple[str, str]:
        """Policy and scope of the kubelet; a scope that is not known makes a strict policy one that is not known."""
        attributes = {each.name: each.value or "" for each in self.item.attributes or ()}
        self._misspelt(attributes)
        old = (self.item.topology_policies or ("",))[0]
        policy, scope = _POLICY_NAMES.get(_letters(old), (UNKNOWN, "container")) if old else ("none", "container")
        if policy == UNKNOWN:
            self._unknown("topologyPolicies", old, _OLD_NAMES, "" if _POLICY in attributes else _KEEPS_OFF)
        if _POLICY in attributes:
            policy, _ = _POLICY_NAMES.get(_letters(attributes[_POLICY]), (UNKNOWN, ""))
            if policy == UNKNOWN:
                self._unknown(f"attribute {_POLICY}", attributes[_POLICY], POLICIES, _KEEPS_OFF)
        if _SCOPE in attributes:
            known = _SCOPE_NAMES.get(_letters(attributes[_SCOPE]))
            if known is None:
                self._unknown(f"attribute {_SCOPE}", attributes[_SCOPE], SCOPES, _KEEPS_OFF if policy in STRICT else "")
                return (UNKNOWN if policy in STRICT else policy), "container"
            scope = known
        return policy, scope

    def _misspelt(self, names: Iterable[str]) -> None:
        """Note attributes that are nearly one that is read: what they say of the kubelet would be lost unseen."""
        for name in names:
            if name not in _ATTRIBUTES and (near := get_close_matches(name, _ATTRIBUTES[:3], 1, 0.85)):
                self.note(f"attribute {name} is not known and is not read; the nearest is {near[0]}")

    def _unknown(self, field: str, found: str, known: Iterable[str], what: str) -> None:
        self.note(f"{field}: found {found}, expected one of {', '.join(known)}{what}")

    def max_numa_nodes(self) -> int:
        """``maxNUMANodes``: an integer above 1, of more than 1,024 so many."""
        found = MAX_NUMA_NODES
        for attribute in self.item.attributes or ():
            value = attribute.value or ""
            if attribute.name != _MAX_NUMA_NODES:
                continue
            if _INTEGER.fullmatch(value) and int(value) > 1:
                found = min(int(value), _MAX_NUMA_NODES_READ)
            else:
                self.note(f"attribute {attribute.name}: found {attribute.value}, expected an integer above 1")
        return found

    def zones(self) -> tuple[NumaZone, ...]:
        """The NUMA zones in the order of their ids; zones of other types (sockets, cores) are none."""
        found: dict[int, NumaZone] = {}
        for zone in self.item.zones or ():
            if not self._is_numa(zone):
                continue
            match = _ZONE_NAME.fullmatch(zone.name)
            number = int(match[1]) if match is not None else _MOST_ZONES
            if number >= _MOST_ZONES:
                self.note(f"zone {zone.name} is left out: expected node-<id> with an id of 0 to {_MOST_ZONES - 1}")
            elif number in found:
                self.note(f"zone {zone.name} is left out: zone {found[number].name} has the same id")
            else:
                found[number] = self._zone(number, zone)
        return tuple(zone for _, zone in sorted(found.items()))

    def _is_numa(self, zone: ZoneEntry) -> bool:
        """Whether a zone is of type Node; in letters of another case it is meant to be."""
        if zone.type is None or zone.type.lower() != "node":
            return False
        if zone.type != "Node":
            self.note(f"zone {zone.name}: found type {zone.type}, expected Node, as which it is read")
        return True

    def _zone(self, number: int, zone: ZoneEntry) -> NumaZone:
        parts: tuple[dict[str, int], dict[str, int], dict[str, int]] = ({}, {}, {})
        for resource in zone.resources or ():
            if resource.name in parts[0]:
                self.note(f"zone {zone.name} lists {resource.name} twice; the first counts")
                continue
            for part, amount in zip(parts, _amounts(resource), strict=True):
                part[resource.name] = amount
        capacity, allocatable, available = map(Resources, parts)
        costs = tuple(sorted((cost.name, cost.value) for cost in zone.costs or ()))
        return NumaZone(number, zone.name, capacity, available, allocatable, frozenset(parts[0]), costs)

    def _no_zones(self) -> None:
        types = sorted({zone.type or "none" for zone in self.item.zones or ()})
        there = f" (found type {', '.join(types)})" if types else ""
        what = f"so nothing is aligned, and C10 keeps no pod off Node {self.item.name}"
        self.note(f"no zone of type Node is read{there}, {what}")

    def check(self, numa: NumaNode, allocatable: Resources) -> None:
        """Note sums that the node does not have, zones that contradict themselves, and zones without cpu or memory."""
        if not numa.zones:
            self._no_zones()
        for zone in numa.zones:
            missing = [name for name in ("cpu", "memory") if name not in zone.lists]
            if missing:
                self.note(f"zone {zone.name} lists no {' and no '.join(missing)}")
            for name in sorted(zone.lists):
                amounts = [zone.capacity[name], zone.allocatable[name], zone.available[name]]
                if amounts != sorted(amounts, reverse=True):
                    said = (format_amount(name, amount) for amount in amounts)
                    found = ", ".join(map(" ".join, zip(("capacity", "allocatable", "available"), said, strict=True)))
                    self.note(f"zone {zone.name}: found {name} {found}, expected none above the one before")
        over = list(_beyond(numa.zones, allocatable))
        if over:
            self.note(f"its zones have more allocatable than Node {self.item.name}: {', '.join(over)}")


def _amounts(resource: ZoneResource) -> tuple[int, int, int]:
    """Capacity, allocatable and available; one that is left out is the next one that is there, ``available`` first
    what is allocatable.
    """
    capacity, allocatable, available = resource.capacity, resource.allocatable, resource.available
    if allocatable is None:
        allocatable = capacity if capacity is not None else available or 0
    if available is None:
        available = allocatable
    if capacity is None:
        capacity = allocatable
    return (
        from_nano(resource.name, capacity),
        from_nano(resource.name, allocatable),
        from_nano(resource.name, available),
    )


def _beyond(zones: Sequence[NumaZone], allocatable: Resources) -> Iterator[str]:
    """Resources of which all zones together have more than the node, with both amounts."""
    for name in sorted(frozenset().union(*(zone.lists for zone in zones))):
        total = sum(zone.allocatable[name] for zone in zones)
        if total > allocatable[name]:
            yield f"{name} {format_amount(name, total)} of {format_amount(name, allocatable[name])}"
