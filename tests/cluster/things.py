"""Objects as a real API server takes them, from the small ones of ``tests.support``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.support import Document, pod

__all__ = ["live_pod", "numa_topology", "of_a_job"]


def live_pod(name: str, *, scheduler: str = "placer", guaranteed: bool = False, **options: Any) -> Document:
    """A pod of ``tests.support.pod`` that a server accepts; ``guaranteed``: its limits are its requests."""
    found = {**pod(name, **options)}
    spec = dict(found["spec"])
    spec.setdefault("schedulerName", scheduler)
    spec["containers"] = [{"image": "example.com/main:1", **each} for each in spec["containers"]]
    if guaranteed:
        for each in spec["containers"]:
            each["resources"] = {"requests": each["resources"]["requests"], "limits": each["resources"]["requests"]}
    found["spec"] = spec
    return found


def of_a_job(name: str, **requests: object) -> Document:
    """A guaranteed pod that a Job made."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "poison", "uid": "1", "controller": True}
    made = live_pod(name, guaranteed=True, **requests)
    return {**made, "metadata": {**made["metadata"], "ownerReferences": [owner]}}


def numa_topology(node: str, *zones: Mapping[str, str], policy: str = "single-numa-node") -> Document:
    """The NodeResourceTopology of a node: what each zone has of each resource, all of it free."""
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": node},
        "attributes": [
            {"name": "topologyManagerPolicy", "value": policy},
            {"name": "topologyManagerScope", "value": "container"},
        ],
        "zones": [
            {
                "name": f"node-{number}",
                "type": "Node",
                "resources": [
                    {"name": name, "capacity": amount, "allocatable": amount, "available": amount}
                    for name, amount in zone.items()
                ],
            }
            for number, zone in enumerate(zones)
        ],
    }
