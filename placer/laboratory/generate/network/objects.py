"""The Kubernetes objects of a planted network: nodes, costs and their measurements, AppGroups, gangs, pods."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from placer.instance import Key
from placer.instance.workload_sorts import ALGORITHMS
from placer.laboratory.generate.jobs import GROUP, NAMESPACE
from placer.laboratory.generate.network.applications import GeneratedApplication, NetworkLimits, Planting
from placer.laboratory.generate.network.regions import REGION, ZONE, AreaLink, Racks, Regions
from placer.laboratory.generate.objects import Document, named, requests
from placer.laboratory.generate.random_source import RandomSource

__all__ = ["NetworkObjects", "write_objects"]

GROUP_LABEL = "appgroup.diktyo.x-k8s.io"
WORKLOAD_LABEL = "appgroup.diktyo.x-k8s.io.workload"
CONFIG_MAP = "netperf-metrics"
#: Milli-cores and MiB of one unit.
UNIT = (500, 1024)
#: Pods that a node may have at least, as kubelets allow by default.
PODS = 110


@dataclass(frozen=True)
class NetworkObjects:
    """Documents, each kind by name, and the node of every pod that does not run yet."""

    documents: list[Document]
    planted: dict[Key, str]


def write_objects(
    applications: Sequence[GeneratedApplication],
    planting: Planting,
    limits: NetworkLimits,
    regions: Regions,
    *,
    running: Sequence[float],
    gangs: Sequence[bool],
    rack_size: int,
    fill: float,
    source: RandomSource,
) -> NetworkObjects:
    """Write everything down.

    Parameters
    ----------
    applications, planting, limits, regions
        What was drawn.
    running
        By application, the share of its pods that run.
    gangs
        By application, whether its pods are one gang.
    rack_size
        Nodes per rack.
    fill
        How full the fullest node is, above 0 to 1.
    source
        Names, and which pods run.
    """
    racks = Racks(regions, rack_size)
    names = source.shuffled([named("app", number, len(applications)) for number in range(len(applications))])
    groups: list[Document] = []
    pods: list[Document] = []
    pod_groups: list[Document] = []
    planted: dict[Key, str] = {}
    for number, application in enumerate(applications):
        name, nodes = names[number], planting.nodes[number]
        groups.append(_app_group(name, application, limits.costs[number], source.pick(tuple(ALGORITHMS))))
        members = list(_pods(name, application, nodes, regions, gang=gangs[number]))
        going = set(source.shuffled(range(len(members)))[: math.ceil(running[number] * len(members))])
        for index, (pod, node) in enumerate(members):
            pods.append(pod)
            if index in going:
                pod["spec"]["nodeName"] = node
                pod["status"] = {"phase": "Running"}
            else:
                planted[Key(NAMESPACE, pod["metadata"]["name"])] = node
        if gangs[number]:
            tier = racks.tier(node for workload in nodes for node in workload)
            limit = tier if limits.tight_tiers[number] else min(tier + 1, racks.tiers)
            pod_groups.append(_pod_group(name, len(members), limit, bool(going)))
    documents = [
        *_by_name(_nodes(regions, math.ceil(planting.room / fill), max(PODS, planting.pods))),
        *_by_name(racks.documents() if any(gangs) else ()),
        _network_topology(regions, limits),
        _config_map(regions),
        *_by_name(groups),
        *_by_name(pod_groups),
        *_by_name(pods),
    ]
    return NetworkObjects(documents, dict(sorted(planted.items())))


def _by_name(documents: Iterator[Document] | Sequence[Document]) -> list[Document]:
    return sorted(documents, key=lambda document: str(document["metadata"]["name"]))


def _nodes(regions: Regions, room: int, pods: int) -> Iterator[Document]:
    amounts = requests(0, UNIT[0] * room, UNIT[1] * room) | {"pods": str(pods)}
    for number, name in enumerate(regions.nodes):
        zone = regions.zone(number)
        labels = {
            "kubernetes.io/hostname": name,
            REGION: regions.regions[regions.region(zone)],
            ZONE: regions.zones[zone],
        }
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "status": {
                "capacity": amounts,
                "allocatable": dict(amounts),
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            },
        }


def _network_topology(regions: Regions, limits: NetworkLimits) -> Document:
    lists = [
        {
            "topologyKey": key,
            "originList": [
                {
                    "origin": regions.name(key, origin),
                    "costList": [
                        {
                            "destination": regions.name(key, link.destination),
                            "networkCost": regions.costs[link],
                            "bandwidthCapacity": f"{limits.capacities[link]}M",
                        }
                        for link in links
                    ],
                }
                for origin, links in _by_origin(regions, key)
            ],
        }
        for key in (REGION, ZONE)
    ]
    return {
        "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
        "kind": "NetworkTopology",
        "metadata": {"name": "nt-default", "namespace": NAMESPACE},
        "spec": {
            "configmapName": CONFIG_MAP,
            "weights": [{"name": "UserDefined", "topologyList": lists}],
        },
    }


def _by_origin(regions: Regions, key: str) -> Iterator[tuple[int, list[AreaLink]]]:
    """Links of one kind by where they begin; origins and destinations by name."""
    links = [link for link in regions.costs if link.key == key]
    for origin in sorted({link.origin for link in links}, key=lambda number: regions.name(key, number)):
        there = [link for link in links if link.origin == origin]
        yield origin, sorted(there, key=lambda link: regions.name(key, link.destination))


def _config_map(regions: Regions) -> Document:
    """What netperf would measure between one pair of nodes of each link: its cost in milliseconds."""
    data = {}
    for link, cost in regions.costs.items():
        one, two = (_probe(regions, link.key, place) for place in (link.origin, link.destination))
        data[f"netperf.p90.latency.milliseconds.origin.{one}.destination.{two}"] = str(cost)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE},
        "data": dict(sorted(data.items())),
    }


def _probe(regions: Regions, key: str, place: int) -> str:
    zone = regions.zones_of(place)[0] if key == REGION else place
    return regions.nodes[regions.nodes_of(zone)[0]]


def _app_group(name: str, application: GeneratedApplication, limits: Sequence[int], algorithm: str) -> Document:
    count = len(application.units)
    calls = list(zip(application.calls, limits, strict=True))
    workloads: list[Document] = []
    for number in range(count):
        entry: Document = {"workload": _workload(name, number, count)}
        dependencies = [
            {"workload": _workload(name, call.called, count)}
            | ({"minBandwidth": f"{call.bandwidth}M"} if call.bandwidth else {})
            | {"maxNetworkCost": limit}
            for call, limit in calls
            if call.caller == number
        ]
        if dependencies:
            entry["dependencies"] = dependencies
        workloads.append(entry)
    return {
        "apiVersion": "appgroup.diktyo.x-k8s.io/v1alpha1",
        "kind": "AppGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "numMembers": sum(application.replicas),
            "topologySortingAlgorithm": algorithm,
            "workloads": workloads,
        },
    }


def _workload(name: str, number: int, count: int) -> Document:
    selector = named("w", number, count)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": f"{name}-{selector}",
        "namespace": NAMESPACE,
        "selector": selector,
    }


def _pods(
    name: str, application: GeneratedApplication, nodes: Sequence[Sequence[int]], regions: Regions, *, gang: bool
) -> Iterator[tuple[Document, str]]:
    """Every pod of an application, and the node that it was planted on."""
    for number, places in enumerate(nodes):
        selector = named("w", number, len(nodes))
        units = application.units[number]
        room = requests(0, UNIT[0] * units, UNIT[1] * units)
        for replica, node in enumerate(places):
            metadata: Document = {
                "name": f"{name}-{selector}-{replica}",
                "namespace": NAMESPACE,
                "labels": {GROUP_LABEL: name, WORKLOAD_LABEL: selector},
            }
            if gang:
                metadata["annotations"] = {GROUP: name}
            container = {
                "name": selector,
                "image": "example.com/service:1",
                "resources": {"requests": dict(room), "limits": dict(room)},
            }
            pod = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": metadata,
                "spec": {"schedulerName": "placer", "containers": [container]},
                "status": {"phase": "Pending"},
            }
            yield pod, regions.nodes[node]


def _pod_group(name: str, pods: int, tier: int, running: bool) -> Document:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"minMember": pods, "networkTopology": {"mode": "hard", "highestTierAllowed": tier}},
        "status": {"phase": "Running" if running else "Inqueue"},
    }
