"""AppGroups, NetworkTopologies and their pods as Kubernetes objects, in a line or two each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.support import Document, node, pod

APP, WORKLOAD = "appgroup.diktyo.x-k8s.io", "appgroup.diktyo.x-k8s.io.workload"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
KEP = "scheduling.sigs.x-k8s.io"


def ref(name: str, *, selector: bool = True, kind: str = "Deployment", **more: Any) -> dict[str, Any]:
    """Reference to a workload; as shipped its name is not its selector."""
    return {"kind": kind, "name": f"{name}-x", "selector": name, **more} if selector else {"kind": kind, "name": name}


def call(name: str, *, selector: bool = True, cost: int | None = 10, bandwidth: object = None) -> dict[str, Any]:
    """A dependency."""
    limits = {"maxNetworkCost": cost, "minBandwidth": bandwidth}
    return {
        "workload": ref(name, selector=selector),
        **{key: value for key, value in limits.items() if value is not None},
    }


def app_group(
    name: str = "shop",
    workloads: Mapping[str, Iterable[Any]] | None = None,
    *,
    namespace: str = "default",
    group: str = APP,
    listed: Iterable[Any] | None = None,
    **spec: Any,
) -> Document:
    """An AppGroup: workload to its dependencies, or entries as they are written."""
    entries = listed if listed is not None else [_entry(each, calls) for each, calls in (workloads or {}).items()]
    return {
        "apiVersion": f"{group}/v1alpha1",
        "kind": "AppGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"topologySortingAlgorithm": "KahnSort", **spec, "workloads": list(entries)},
    }


def _entry(name: str, calls: Iterable[Any]) -> dict[str, Any]:
    dependencies = [call(each) if isinstance(each, str) else each for each in calls]
    return {"workload": ref(name), **({"dependencies": dependencies} if dependencies else {})}


def costs(*links: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Origins with their costs; a link is origin, destination, cost and, if it has one, capacity."""
    found: dict[str, list[dict[str, Any]]] = {}
    for origin, destination, cost, *capacity in links:
        entry = {"destination": destination, "networkCost": cost}
        found.setdefault(origin, []).append(entry | ({"bandwidthCapacity": capacity[0]} if capacity else {}))
    return [{"origin": origin, "costList": entries} for origin, entries in found.items()]


def weights(name: str = "UserDefined", **lists: list[dict[str, Any]]) -> dict[str, Any]:
    """A list: ``zone``, ``region`` or a key with underscores to its origins."""
    keys = {"zone": ZONE, "region": REGION}
    topologies = [{"topologyKey": keys.get(key, key), "originList": origins} for key, origins in lists.items()]
    return {"name": name, "topologyList": topologies}


def network_topology(
    *lists: dict[str, Any], name: str = "nt-default", namespace: str = "default", group: str = ""
) -> Document:
    """A NetworkTopology."""
    return {
        "apiVersion": f"{group or 'networktopology.diktyo.x-k8s.io'}/v1alpha1",
        "kind": "NetworkTopology",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"configmapName": "netperf", "weights": list(lists)},
    }


def place(name: str, area: str = "r/z") -> Document:
    """A node in ``region/zone``, or in less."""
    return node(name, {label: value for label, value in zip((REGION, ZONE), area.split("/"), strict=False) if value})


def member(name: str, workload: str | None = None, app: str = "shop", **rest: Any) -> Document:
    """A pod of an AppGroup by its labels."""
    return pod(name, labels={APP: app, **({WORKLOAD: workload} if workload is not None else {})}, **rest)
