"""Kubernetes objects as plain dicts, with the fields that the API server would show of them and no more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from placer.lab.generate.random_source import RandomSource
from placer.problem import Key
from placer.problem.placement import Placement

__all__ = [
    "GPU",
    "GROUP",
    "NAMESPACE",
    "Document",
    "Generated",
    "binding",
    "by_name",
    "created",
    "disruption_budget",
    "hyper_node",
    "most_pods",
    "named",
    "names_by_chance",
    "node_object",
    "plant_pod",
    "pod_group",
    "pod_object",
    "priority_class",
    "queue",
    "requests",
    "run_on",
    "running_shares",
]

Document = dict[str, Any]
GPU = "nvidia.com/gpu"
GROUP = "scheduling.k8s.io/group-name"
NAMESPACE = "default"
#: Creation time of the first job or pod; each is a second younger than the one before it.
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Generated:
    """A generated instance.

    Parameters
    ----------
    planted
        Pod to node of a placement that is known to keep every rule; None: unknown.
    summary
        Name to number, in the order to print.
    least
        The placement with its evictions and moves, where pods have to leave: no other one disturbs less.
    """

    documents: list[Document]
    planted: Mapping[Key, str] | None
    summary: Mapping[str, int]
    least: Placement | None = None


def requests(gpus: int, cpu: int, memory: int) -> dict[str, str]:
    """Write GPUs, milli-cores and MiB as quantities."""
    amounts = {"cpu": f"{cpu}m" if cpu % 1000 else str(cpu // 1000), "memory": f"{memory}Mi"}
    return amounts | {GPU: str(gpus)} if gpus else amounts


def named(word: str, number: int, count: int) -> str:
    """Name the ``number``-th of ``count`` things so that names sort as numbers: ``node-007`` of 128."""
    return f"{word}-{number:0{len(str(max(count - 1, 0)))}d}"


def names_by_chance(word: str, count: int, source: RandomSource) -> tuple[str, ...]:
    """Names of ``count`` things, which say nothing of their order."""
    return tuple(source.shuffled([named(word, number, count) for number in range(count)]))


def running_shares(count: int, running: float, anchored: float, source: RandomSource) -> list[float]:
    """Draw the share of each group that runs: all of it, half of it, nothing."""
    return [1.0 if source.chance(running) else 0.5 if source.chance(anchored) else 0.0 for _ in range(count)]


def by_name(documents: Iterable[Document]) -> list[Document]:
    """Sort objects of one kind."""
    return sorted(documents, key=lambda document: str(document["metadata"]["name"]))


def created(second: int) -> str:
    """Write a creation time, RFC 3339."""
    return f"{_EPOCH + timedelta(seconds=second):%Y-%m-%dT%H:%M:%SZ}"


def most_pods(there: int) -> str:
    """Write how many pods a node takes: the default of kubelets, or ``there``."""
    return str(max(110, there))


def node_object(name: str, labels: Mapping[str, str], room: Mapping[str, str]) -> Document:
    """Make a v1 Node that is ready."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {
            "capacity": dict(room),
            "allocatable": dict(room),
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def pod_object(name: str, kind: str, containers: Iterable[tuple[str, Mapping[str, str]]], **metadata: Any) -> Document:
    """Make a pending v1 Pod of Guaranteed containers, each a name and its requests; ``kind`` is of its image."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, **metadata},
        "spec": {
            "schedulerName": "placer",
            "containers": [
                {
                    "name": container,
                    "image": f"example.com/{kind}:1",
                    "resources": {"requests": dict(room), "limits": dict(room)},
                }
                for container, room in containers
            ],
        },
        "status": {"phase": "Pending"},
    }


def run_on(document: Document, target: str) -> None:
    """Let a pending Pod run on a node."""
    document["spec"]["nodeName"] = target
    document["status"] = {"phase": "Running"}


def plant_pod(document: Document, target: str, runs: bool, planted: dict[Key, str]) -> Document:
    """Let a pending Pod run on the node that it was planted on, or note that node."""
    if runs:
        run_on(document, target)
    else:
        planted[Key(NAMESPACE, document["metadata"]["name"])] = target
    return document


def pod_group(name: str, spec: Document, running: bool, **metadata: Any) -> Document:
    """Make a Volcano PodGroup; ``running``: some of its pods run."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE, **metadata},
        "spec": spec,
        "status": {"phase": "Running" if running else "Inqueue"},
    }


def hyper_node(name: str, tier: int, tier_name: str, members: Sequence[tuple[str, str]]) -> Document:
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


def disruption_budget(name: str, namespace: str, labels: Mapping[str, str], allowed: int) -> Document:
    """Make a PodDisruptionBudget of the pods with some labels."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"maxUnavailable": allowed, "selector": {"matchLabels": dict(labels)}},
        "status": {"disruptionsAllowed": allowed},
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
