"""NodeResourceTopology objects: zones of a node, its kubelet's policy and scope, and stale amounts (C10).

Attributes decide before the deprecated ``topologyPolicies``; only letters of a name count. Exporters write the object
up to a minute after a pod has got its zones. Pods beyond its fingerprint (a hash over the pods' sorted hashes), or
bound after its writing, are let in here. Likely sets are tried: all pods on the node, and all but the last one, two,
... up to :data:`MOST_BEYOND`.

Source: noderesourcetopology-api ``v1alpha2``; scheduler-plugins ``pkg/noderesourcetopology``; KEP-119; podfingerprint
v001; XXH64.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from math import inf
from typing import TYPE_CHECKING, Final

from placer.base.quantity import Resources, format_amount, from_nano
from placer.kube.pod import TERMINAL_PHASES, Container, PodManifest, PodSpec, ResourceRequirements
from placer.problem.findings import Findings
from placer.problem.nodes import Node
from placer.problem.numa import (
    HUGE_PAGES,
    MAX_NUMA_NODES,
    SCOPES,
    STRICT,
    TOPOLOGY_MANAGER_POLICIES,
    UNKNOWN,
    NumaContainer,
    NumaDemand,
    NumaNode,
    NumaZone,
    Qos,
    Stage,
    TopologyManager,
    is_device,
)
from placer.problem.pod_states import bound_at
from placer.problem.requests import container_requests, is_sidecar

if TYPE_CHECKING:
    from placer.kube.scheduler_plugins import NodeResourceTopologyManifest, ZoneEntry, ZoneResource

FINDING_CODE: Final = "NumaZones"

_POLICY, _SCOPE = "topologyManagerPolicy", "topologyManagerScope"
_SUFFIXES = {"": "container", "ContainerLevel": "container", "PodLevel": "pod"}
_OLD_NAMES = (
    "None",
    *(policy + suffix for policy in ("BestEffort", "Restricted", "SingleNUMANode") for suffix in _SUFFIXES),
)
_ZONE_NAME = re.compile(r"node-([0-9]{1,3})")
_MAX_NUMA_NODES = "topologyManagerMaxNUMANodes"
_ATTRIBUTES = (_POLICY, _SCOPE, _MAX_NUMA_NODES, "topologyManagerPolicyOptions")
_MAX_NUMA_NODES_READ = 1024
_KEEPS_OFF = "; no pod that would be aligned goes there"
_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
#: The kubelet counts zones in 64 bits.
_MOST_ZONES = 64


def _letters(name: str) -> str:
    return "".join(filter(str.isalpha, name)).lower()


_POLICY_NAMES = {
    _letters(policy + suffix): (policy, scope)
    for policy in TOPOLOGY_MANAGER_POLICIES
    for suffix, scope in _SUFFIXES.items()
}
_SCOPE_NAMES = {scope + suffix: scope for scope in SCOPES for suffix in ("", "level")}


def is_known_setting(text: str) -> bool:
    """Whether a text is a policy or a scope, in any spelling."""
    letters = _letters(text)
    return letters in _POLICY_NAMES or letters in _SCOPE_NAMES


def read_numa(
    written: Iterable[NodeResourceTopologyManifest], nodes: Mapping[str, Node], findings: Findings
) -> dict[str, NumaNode]:
    """NUMA zones by node, of nodes that are there."""
    found = {}
    for item in sorted(written, key=lambda each: each.name):
        node = nodes.get(item.name)
        if node is None:
            findings.missing(f"Node {item.name}", f"NodeResourceTopology {item.name}")
            continue
        reader = _TopologyReader(item, findings)
        policy, scope = reader.settings()
        numa = NumaNode(policy, scope, reader.zones(), reader.max_numa_nodes())
        reader.check(numa, node.allocatable)
        found[node.name] = numa
    return found


def _note(item: NodeResourceTopologyManifest, message: str, findings: Findings) -> None:
    subject = f"NodeResourceTopology {item.name}"
    findings.add(FINDING_CODE, subject, f"{subject}: {message}")


class _TopologyReader:
    def __init__(self, item: NodeResourceTopologyManifest, findings: Findings) -> None:
        self.item, self.findings = item, findings
        self.attributes = {each.name: each.value or "" for each in item.attributes or ()}

    def note(self, message: str) -> None:
        _note(self.item, message, self.findings)

    def settings(self) -> tuple[str, str]:
        attributes = self.attributes
        self._misspelt(attributes)
        policy, scope = self._old_settings("" if _POLICY in attributes else _KEEPS_OFF)
        if _POLICY in attributes:
            policy, _ = _POLICY_NAMES.get(_letters(attributes[_POLICY]), (UNKNOWN, ""))
            if policy == UNKNOWN:
                self._unknown(f"attribute {_POLICY}", attributes[_POLICY], TOPOLOGY_MANAGER_POLICIES, _KEEPS_OFF)
        if _SCOPE not in attributes:
            return policy, scope
        known = _SCOPE_NAMES.get(_letters(attributes[_SCOPE]))
        if known is not None:
            return policy, known
        self._unknown(f"attribute {_SCOPE}", attributes[_SCOPE], SCOPES, _KEEPS_OFF if policy in STRICT else "")
        return (UNKNOWN if policy in STRICT else policy), "container"

    def _old_settings(self, what: str) -> tuple[str, str]:
        old = (self.item.topology_policies or ("",))[0]
        if not old:
            return "none", "container"
        known = _POLICY_NAMES.get(_letters(old))
        if known is None:
            self._unknown("topologyPolicies", old, _OLD_NAMES, what)
        return known or (UNKNOWN, "container")

    def _misspelt(self, names: Iterable[str]) -> None:
        """Attributes that are nearly one that is read would be lost unseen."""
        for name in names:
            if name not in _ATTRIBUTES and (near := get_close_matches(name, _ATTRIBUTES[:3], 1, 0.85)):
                self.note(f"attribute {name} is not known and is not read; the nearest is {near[0]}")

    def _unknown(self, field: str, found: str, known: Iterable[str], what: str) -> None:
        self.note(f"{field}: found {found}, expected one of {', '.join(known)}{what}")

    def max_numa_nodes(self) -> int:
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
        over = list(_above_allocatable(numa.zones, allocatable))
        if over:
            self.note(f"its zones have more allocatable than Node {self.item.name}: {', '.join(over)}")


def _amounts(resource: ZoneResource) -> tuple[int, int, int]:
    capacity: int | None = resource.capacity
    allocatable: int | None = resource.allocatable
    available: int | None = resource.available
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


def _above_allocatable(zones: Sequence[NumaZone], allocatable: Resources) -> Iterator[str]:
    for name in sorted(frozenset().union(*(zone.lists for zone in zones))):
        total = sum(zone.allocatable[name] for zone in zones)
        if total > allocatable[name]:
            yield f"{name} {format_amount(name, total)} of {format_amount(name, allocatable[name])}"


# ------------------------------------------------------------------------------------------------------------ staleness

#: A snapshot drops managedFields and keeps the time of the last write in this annotation.
UPDATED = "placer.dev/updated"

_ATTRIBUTE = "nodeTopologyPodsFingerprint"
_METHOD = "nodeTopologyPodsFingerprintMethod"
_ANNOTATION = "topology.node.k8s.io/fingerprint"
_ALL_PODS, _EXCLUSIVE = "all", "with-exclusive-resources"
MOST_BEYOND = 40


@dataclass(frozen=True, slots=True)
class _BoundPod:
    namespace: str
    name: str
    at: float
    created: float
    demand: NumaDemand | None

    @property
    def age(self) -> tuple[float, float, str, str]:
        return self.at, self.created, self.namespace, self.name

    def holds_zones(self, lists: frozenset[str]) -> bool:
        if self.demand is None:
            return False
        staying = [each for each in self.demand.containers if each.stage is not Stage.INIT]
        devices = any(is_device(name) and name in lists for each in staying for name in each.requests)
        return devices or self.demand.qos is Qos.GUARANTEED


def caught_up(
    numa: Mapping[str, NumaNode],
    written: Iterable[NodeResourceTopologyManifest],
    pods: Iterable[PodManifest],
    demands: DemandPool,
    findings: Findings,
) -> dict[str, NumaNode]:
    """Bring ``available`` of every node up to date with the ``pods`` that have a node."""
    aligning = {name: node for name, node in numa.items() if node.policy not in ("none", UNKNOWN) and node.zones}
    standing, ended = _by_node(pods, aligning, demands)
    items = {item.name: item for item in written}
    found = dict(numa)
    for name, node in aligning.items():
        if standing[name]:
            unknown = _not_counted(items[name], node, standing[name], ended[name], findings)
            found[name] = _without(node, name, unknown, findings)
    return found


def _by_node(
    pods: Iterable[PodManifest], nodes: Mapping[str, NumaNode], demands: DemandPool
) -> tuple[dict[str, list[_BoundPod]], dict[str, list[_BoundPod]]]:
    standing: dict[str, list[_BoundPod]] = defaultdict(list)
    ended: dict[str, list[_BoundPod]] = defaultdict(list)
    for pod in pods:
        node = pod.spec.node_name
        if node in nodes and node is not None:
            over = pod.status is not None and pod.status.phase in TERMINAL_PHASES
            (ended if over else standing)[node].append(_bound_pod(pod, demands))
    for members in standing.values():
        members.sort(key=lambda each: each.age)
    return standing, ended


def _bound_pod(pod: PodManifest, demands: DemandPool) -> _BoundPod:
    created = pod.metadata.creation_timestamp
    bound = bound_at(pod) or created
    at, made = (each.timestamp() if each is not None else 0.0 for each in (bound, created))
    return _BoundPod(pod.namespace, pod.name, at, made, demands.of(pod.spec))


def _not_counted(
    item: NodeResourceTopologyManifest,
    node: NumaNode,
    standing: Sequence[_BoundPod],
    ended: Sequence[_BoundPod],
    findings: Findings,
) -> list[_BoundPod]:
    attributes = {each.name: each.value for each in item.attributes or ()}
    fingerprint = attributes.get(_ATTRIBUTE) or (item.metadata.annotations or {}).get(_ANNOTATION)
    if fingerprint:
        beyond = _last_bound(fingerprint, attributes.get(_METHOD), node, standing, ended)
        if beyond is not None:
            return beyond
        what = f"its pod fingerprint {fingerprint} is not that of the pods on the node, nor of those bound earlier"
        _note(item, what, findings)
    written = max(_written_at(item, findings), default=inf)
    return [pod for pod in standing if pod.at > written]


def _written_at(item: NodeResourceTopologyManifest, findings: Findings) -> list[float]:
    times = [each.time.timestamp() for each in item.metadata.managed_fields or () if each.time is not None]
    written = (item.metadata.annotations or {}).get(UPDATED)
    if written is None:
        return times
    try:
        moment = datetime.fromisoformat(written)
        if moment.tzinfo is None:
            raise ValueError(written)
        return [*times, moment.timestamp()]
    except ValueError:
        expected = "a time such as 2026-01-31T12:00:00Z"
        _note(item, f"annotation {UPDATED}: found {written}, expected {expected}", findings)
        return times


def _last_bound(
    fingerprint: str, method: str | None, node: NumaNode, standing: Sequence[_BoundPod], ended: Sequence[_BoundPod]
) -> list[_BoundPod] | None:
    if not fingerprint.startswith(FINGERPRINT_PREFIX):
        return None
    for rest, counted in _countings(method, node, standing, ended):
        hashes = [pod_hash(pod.namespace, pod.name) for pod in (*rest, *counted)]
        for beyond in range(min(len(counted), MOST_BEYOND) + 1):
            if sign(hashes[: len(hashes) - beyond]) == fingerprint:
                return counted[len(counted) - beyond :]
    return None


def _countings(
    method: str | None, node: NumaNode, standing: Sequence[_BoundPod], ended: Sequence[_BoundPod]
) -> Iterator[tuple[list[_BoundPod], list[_BoundPod]]]:
    holding = [[pod for pod in pods if pod.holds_zones(node.lists)] for pods in (standing, ended)]
    ways = {_ALL_PODS: (list(standing), list(ended)), _EXCLUSIVE: (holding[0], holding[1])}
    told: list[tuple[list[_BoundPod], list[_BoundPod]]] = []
    for counted, over in [ways[method]] if method in ways else ways.values():
        for rest in ([], over):
            if (rest, counted) not in told:
                told.append((rest, counted))
                yield rest, counted


def _without(node: NumaNode, name: str, pods: Sequence[_BoundPod], findings: Findings) -> NumaNode:
    manager = TopologyManager(node)
    for pod in pods:
        refusal = manager.admit(pod.demand).refusal
        if refusal:
            message = f"C10: Node {name} would refuse Pod {pod.namespace}/{pod.name}, which is bound to it: {refusal}"
            findings.add("BoundPodsViolate", f"Node {name}", message)
            manager.force(pod.demand)
    return manager.after() if pods else node


# ---------------------------------------------------------------------------------------------------------- fingerprint

FINGERPRINT_PREFIX = "pfp0v001"

_64_BITS = (1 << 64) - 1
_PRIMES = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def pod_hash(namespace: str, name: str) -> int:
    """Hash one pod, 64 bits."""
    return xxh64(name.encode(), xxh64(namespace.encode()))


def sign(pods: Iterable[int]) -> str:
    """Make the fingerprint of a set of pods from their hashes."""
    return f"{FINGERPRINT_PREFIX}{xxh64(b''.join(each.to_bytes(8, 'little') for each in sorted(pods))):016x}"


def xxh64(text: bytes, seed: int = 0) -> int:
    """Hash some bytes with XXH64."""
    first, second, third, fourth, fifth = _PRIMES
    at = 0
    if len(text) >= 32:
        lanes = [seed + first + second, seed + second, seed, seed - first]
        while at + 32 <= len(text):
            lanes = [_round(lane, _word(text, at + 8 * index, 8)) for index, lane in enumerate(lanes)]
            at += 32
        total = sum(_rotated(lane & _64_BITS, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            total = ((total ^ _round(0, lane)) * first + fourth) & _64_BITS
    else:
        total = seed + fifth
    total = (total + len(text)) & _64_BITS
    while at + 8 <= len(text):
        total = (_rotated(total ^ _round(0, _word(text, at, 8)), 27) * first + fourth) & _64_BITS
        at += 8
    if at + 4 <= len(text):
        total = (_rotated(total ^ (_word(text, at, 4) * first & _64_BITS), 23) * second + third) & _64_BITS
        at += 4
    for byte in text[at:]:
        total = _rotated(total ^ (byte * fifth & _64_BITS), 11) * first & _64_BITS
    total = (total ^ total >> 33) * second & _64_BITS
    total = (total ^ total >> 29) * third & _64_BITS
    return total ^ total >> 32


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _PRIMES[1]) & _64_BITS, 31) * _PRIMES[0] & _64_BITS


def _word(text: bytes, at: int, size: int) -> int:
    return int.from_bytes(text[at : at + size], "little")


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _64_BITS


_QOS_RESOURCES = ("cpu", "memory")


class DemandPool:
    """Reads demands; pods of one template share one object."""

    def __init__(self) -> None:
        self._by_spec: dict[object, NumaDemand | None] = {}

    def of(self, spec: PodSpec) -> NumaDemand | None:
        """Demands on zones; None where the pod is not Guaranteed and asks for no device."""
        written = _written(spec)
        if written not in self._by_spec:
            self._by_spec[written] = _demand(spec)
        return self._by_spec[written]


def qos_class(spec: PodSpec) -> Qos:
    """Quality of service class of a pod."""
    stated = [spec.resources] if _pod_level(spec) else [each.resources for each, _ in _containers(spec)]
    if not any(_has_qos_resource(each) for each in stated):
        return Qos.BEST_EFFORT
    return Qos.GUARANTEED if all(map(_guaranteed, stated)) else Qos.BURSTABLE


def _has_qos_resource(resources: ResourceRequirements | None) -> bool:
    if resources is None:
        return False
    parts = (resources.requests or {}, resources.limits or {})
    return any(part.get(name) for part in parts for name in _QOS_RESOURCES)


def _guaranteed(resources: ResourceRequirements | None) -> bool:
    limits = (resources.limits if resources is not None else None) or {}
    requests = container_requests(resources)
    return all(limits.get(name) and limits[name] == requests.get(name) for name in _QOS_RESOURCES)


def _containers(spec: PodSpec) -> Iterator[tuple[Container, Stage]]:
    for each in spec.init_containers or ():
        yield each, Stage.SIDECAR if is_sidecar(each) else Stage.INIT
    for each in spec.containers or ():
        yield each, Stage.APP


def _pod_level(spec: PodSpec) -> bool:
    if spec.resources is None:
        return False
    parts = (spec.resources.requests or {}, spec.resources.limits or {})
    return any(name in _QOS_RESOURCES or name.startswith(HUGE_PAGES) for part in parts for name in part)


def _demand(spec: PodSpec) -> NumaDemand | None:
    containers = tuple(
        NumaContainer(each.name or "", stage, Resources.from_nano(dict(container_requests(each.resources))))
        for each, stage in _containers(spec)
    )
    demand = NumaDemand(qos_class(spec), containers, Resources.from_nano(spec.overhead or {}), _pod_level(spec))
    devices = any(is_device(name) for each in demand.containers for name in each.requests)
    return demand if demand.qos is Qos.GUARANTEED or devices else None


def _written(spec: PodSpec) -> object:
    containers = tuple((each.name, stage, _stated(each.resources)) for each, stage in _containers(spec))
    return containers, _stated(spec.resources), frozenset((spec.overhead or {}).items())


def _stated(resources: ResourceRequirements | None) -> object:
    if resources is None:
        return None
    return frozenset((resources.requests or {}).items()), frozenset((resources.limits or {}).items())
