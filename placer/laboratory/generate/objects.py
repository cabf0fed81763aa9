"""Kubernetes objects as plain dicts, with the fields that the API server would show of them and no more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from placer.laboratory.generate.fabric import NODE_TYPES, TIER_NAMES, Fabric

__all__ = [
    "GPU",
    "Document",
    "binding",
    "hyper_node",
    "hyper_nodes",
    "named",
    "node",
    "priority_class",
    "queue",
    "requests",
]

Document = dict[str, Any]
GPU = "nvidia.com/gpu"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def requests(gpus: int, cpu: int, memory: int) -> dict[str, str]:
    """Write GPUs, milli-cores and MiB as quantities."""
    amounts = {"cpu": f"{cpu}m" if cpu % 1000 else str(cpu // 1000), "memory": f"{memory}Mi"}
    return amounts | {GPU: str(gpus)} if gpus else amounts


def named(word: str, number: int, count: int) -> str:
    """Name the ``number``-th of ``count`` things so that names sort as numbers: ``node-007`` of 128."""
    return f"{word}-{number:0{len(str(max(count - 1, 0)))}d}"


def node(name: str, node_type: int, gpus: int, pods: int, domains: Sequence[str], spare: tuple[int, int]) -> Document:
    """Make a v1 Node.

    Parameters
    ----------
    name, node_type, gpus
        Its name, its kind and its GPUs.
    pods
        Most pods on it.
    domains
        Names of the domains above it, lowest first; they become labels ``placer.dev/leaf`` and so on.
    spare
        Milli-cores and MiB beyond the GPUs' share.
    """
    kind = NODE_TYPES[node_type]
    room = requests(gpus, kind.cpu * gpus + spare[0], kind.memory * gpus + spare[1]) | {"pods": str(pods)}
    labels = {"kubernetes.io/hostname": name, INSTANCE_TYPE: kind.name}
    tiers = TIER_NAMES[len(domains)]
    labels |= {f"placer.dev/{tier}": domain for tier, domain in zip(tiers, domains, strict=True)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": room,
            "allocatable": dict(room),
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def hyper_nodes(fabric: Fabric, nodes: Sequence[str], domains: Sequence[Sequence[str]]) -> Iterable[Document]:
    """Make the HyperNodes of a fabric, lowest tier first.

    Parameters
    ----------
    fabric
        The tree.
    nodes
        Name of each node.
    domains
        Name of each domain, by tier.
    """
    for tier in range(1, fabric.tiers + 1):
        for domain, name in enumerate(domains[tier - 1]):
            if tier == 1:
                members = [("Node", nodes[i]) for i in fabric.members(1, domain)]
            else:
                members = [("HyperNode", domains[tier - 2][i]) for i in fabric.below(tier, domain, tier - 1)]
            yield hyper_node(name, tier, TIER_NAMES[fabric.tiers][tier - 1], sorted(members))


def hyper_node(name: str, tier: int, tier_name: str, members: Iterable[tuple[str, str]]) -> Document:
    """Make a HyperNode; a member is its type and its name."""
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {
            "tier": tier,
            "tierName": tier_name,
            "members": [{"type": kind, "selector": {"exactMatch": {"name": member}}} for kind, member in members],
        },
    }


def priority_class(name: str, value: int) -> Document:
    """Make a PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "globalDefault": False,
    }


def queue(name: str, capability: Mapping[str, str]) -> Document:
    """Make an open Volcano Queue."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, "capability": dict(capability)},
        "status": {"state": "Open"},
    }


def binding(namespace: str, pod: str, target: str) -> Document:
    """Make a v1 Binding."""
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod, "namespace": namespace},
        "target": {"apiVersion": "v1", "kind": "Node", "name": target},
    }
