"""NUMA zones as NodeResourceTopologyMatch sees them: what is available, what a container asks, which zone takes it.

Source: scheduler-plugins ``pkg/noderesourcetopology`` (``filter.go``, ``pluginhelpers.go``, ``numaresources.go``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from placer.instance import Node, Pod
from placer.instance.numa import NumaDemand, NumaNode, Qos, Stage
from placer.quantity import CPU, PODS, Resources

__all__ = ["Ask", "NodeZones", "ask_of", "fit", "host_level", "is_native", "refusal"]

_HUGE_PAGES = "hugepages-"
_STORAGE = ("ephemeral-storage", "storage")


def is_native(resource: str) -> bool:
    """Whether Kubernetes itself knows the resource."""
    return resource in (CPU, "memory", PODS, *_STORAGE) or resource.startswith((_HUGE_PAGES, "kubernetes.io/"))


def host_level(resource: str) -> bool:
    """Whether a resource that no zone lists is taken to be the node's as a whole."""
    return resource in _STORAGE or not is_native(resource)


def _always_fits(resource: str, guaranteed: bool) -> bool:
    """Whether amounts do not matter: the kubelet aligns these for Guaranteed pods only."""
    return not guaranteed and (resource in (CPU, "memory") or resource.startswith(_HUGE_PAGES))


@dataclass(frozen=True, slots=True)
class Ask:
    """A pod as the plug-in sees it; equal ones are treated alike.

    Parameters
    ----------
    qos
        Quality of service class.
    containers
        Stage and requests, init containers and sidecars first.
    whole
        Effective request: the larger of the sum of the containers and the largest init container, with overhead.
    """

    qos: Qos
    containers: tuple[tuple[Stage, Resources], ...]
    whole: Resources

    @property
    def guaranteed(self) -> bool:
        """Whether cpu, memory and hugepages are aligned."""
        return self.qos is Qos.GUARANTEED

    @property
    def unaligned(self) -> bool:
        """Whether it asks for nothing that the plug-in looks at: BestEffort, without devices."""
        return self.qos is Qos.BEST_EFFORT and all(is_native(name) for _, asked in self.containers for name in asked)


def ask_of(pod: Pod) -> Ask:
    """What a pod asks.

    Of a pod that is neither Guaranteed nor asks for devices an instance has no containers: it counts as one container.
    """
    if pod.numa is None:
        asked = Resources({name: amount for name, amount in pod.requests.items() if name != PODS})
        qos = Qos.BURSTABLE if asked[CPU] or asked["memory"] else Qos.BEST_EFFORT
        return Ask(qos, ((Stage.APP, asked),), asked)
    containers = tuple((each.stage, each.requests) for each in pod.numa.containers)
    return Ask(pod.numa.qos, containers, _whole(pod.numa))


def _whole(demand: NumaDemand) -> Resources:
    apps, most = Resources(), dict[str, int]()
    for each in demand.containers:
        if each.stage is Stage.APP:
            apps += each.requests
        else:
            # A sidecar counts as what runs before the others: in the largest, not in the sum.
            most.update({name: max(most.get(name, 0), amount) for name, amount in each.requests.items()})
    larger = Resources({name: max(apps[name], most.get(name, 0)) for name in {**apps, **most}})
    return larger + demand.overhead


@dataclass(frozen=True, slots=True)
class NodeZones:
    """What the plug-in knows of a node.

    Parameters
    ----------
    policy, scope
        Of the kubelet.
    ids
        Of the zones, ascending.
    rooms
        Per zone the amounts of every resource that it lists, those of which it has 0 too.
    allocatable
        Resources that the node has any of.
    costs
        Per zone distance to each zone, by index; None: not given.
    most
        How many zones a node may have for the kubelet (``maxNUMANodes``), at least 2.
    """

    policy: str
    scope: str
    ids: tuple[int, ...]
    rooms: tuple[tuple[tuple[str, int], ...], ...]
    allocatable: frozenset[str]
    costs: tuple[tuple[int | None, ...], ...]
    most: int = 8

    @classmethod
    def of(cls, node: Node, numa: NumaNode) -> NodeZones:
        """Read a node."""
        rooms = tuple(tuple((name, zone.available[name]) for name in sorted(zone.lists)) for zone in numa.zones)
        costs = tuple(tuple(dict(zone.costs).get(other.name) for other in numa.zones) for zone in numa.zones)
        ids = tuple(zone.id for zone in numa.zones)
        return cls(numa.policy, numa.scope, ids, rooms, frozenset(node.allocatable), costs, numa.max_numa_nodes)

    def less(self, amounts: Mapping[str, int]) -> NodeZones:
        """Take amounts off every zone that lists them, down to 0 (OverReserve)."""
        rooms = tuple(tuple((name, max(0, have - amounts.get(name, 0))) for name, have in room) for room in self.rooms)
        return replace(self, rooms=rooms)


def fit(
    asked: Mapping[str, int], rooms: Sequence[Mapping[str, int]], allocatable: frozenset[str], guaranteed: bool
) -> int | None:
    """Index of the lowest zone that takes a request; None where none does.

    Parameters
    ----------
    asked
        The request; amounts of 0 are not looked at.
    rooms
        What each zone lists.
    allocatable
        What the node has at all.
    guaranteed
        Whether amounts of cpu, memory and hugepages matter.
    """
    left = list(range(len(rooms)))
    for name, amount in asked.items():
        if not amount:
            continue
        if name not in allocatable:
            return None
        listing = [index for index, room in enumerate(rooms) if name in room]
        if not listing and host_level(name):
            continue
        left = [
            index
            for index in left
            if name in rooms[index] and (rooms[index][name] >= amount or _always_fits(name, guaranteed))
        ]
    return left[0] if left else None


def refusal(ask: Ask, zones: NodeZones) -> str | None:
    """Why the plug-in filters a node out, in its own words; None where it does not."""
    if ask.unaligned or zones.policy != "single-numa-node":
        return None
    rooms = [dict(room) for room in zones.rooms]
    if zones.scope == "pod":
        found = fit(ask.whole, rooms, zones.allocatable, ask.guaranteed)
        return "cannot align pod" if found is None else None
    return next(_refused(ask, rooms, zones.allocatable), None)


def _refused(ask: Ask, rooms: list[dict[str, int]], allocatable: frozenset[str]) -> Iterator[str]:
    """Container after container, the app containers taking what they get from the lowest zone that fits."""
    words = {Stage.INIT: "cannot align init container", Stage.SIDECAR: "cannot align sidecar container"}
    for stage, asked in ask.containers:
        found = fit(asked, rooms, allocatable, ask.guaranteed)
        if found is None:
            yield words.get(stage, "cannot align container")
            return
        if stage is Stage.APP:
            for name, amount in asked.items():
                if name in rooms[found] and not _always_fits(name, ask.guaranteed):
                    rooms[found][name] -= amount
