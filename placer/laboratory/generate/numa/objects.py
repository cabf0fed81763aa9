"""The Kubernetes objects of filled nodes: Nodes, their NodeResourceTopology, Pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from placer.instance import Key
from placer.laboratory.generate.jobs import EPOCH, NAMESPACE
from placer.laboratory.generate.numa.fill import MEMORY_PER_CORE, FilledNode, FilledPod
from placer.laboratory.generate.objects import GPU, Document, named, requests
from placer.laboratory.generate.random_source import RandomSource
from placer.quantity import CPU, Resources

__all__ = ["NumaObjects", "write_objects"]

#: Pods that a node may have at least, as kubelets allow by default.
PODS = 110
#: Distance of a zone to itself and to another, as firmware tells them.
NEAR, FAR = 10, 21


@dataclass(frozen=True)
class NumaObjects:
    """Documents, each kind by name, and the node of every pod that does not run yet, in plan order."""

    documents: list[Document]
    planted: dict[Key, str]


def write_objects(filled: Sequence[FilledNode], in_order: float, running: float, source: RandomSource) -> NumaObjects:
    """Write everything down.

    Parameters
    ----------
    filled
        The nodes with their pods.
    in_order
        Share of nodes whose pods were created in the order in which they are admitted.
    running
        Share of each node's pods that run, those first in that order.
    source
        Names and ages.
    """
    names = source.shuffled([named("node", number, len(filled)) for number in range(len(filled))])
    count = sum(len(node.pods) for node in filled)
    pod_names = iter(source.shuffled([named("pod", number, count) for number in range(count)]))
    ages = iter(source.shuffled(range(count)))
    nodes: list[Document] = []
    zones: list[Document] = []
    pods: list[Document] = []
    planted: dict[Key, str] = {}
    for name, node in zip(names, filled, strict=True):
        runs = int(running * len(node.pods))
        nodes.append(_node(name, node))
        zones.append(_topology(name, node, node.after(runs)))
        seconds = [next(ages) for _ in node.pods]
        if source.chance(in_order):
            seconds.sort()
        for number, (pod, second) in enumerate(zip(node.pods, seconds, strict=True)):
            written = _pod(next(pod_names), pod, second)
            pods.append(written)
            if number < runs:
                written["spec"]["nodeName"] = name
                written["status"] = {"phase": "Running"}
            else:
                planted[Key(NAMESPACE, written["metadata"]["name"])] = name
    documents = [*sorted(nodes, key=_name), *sorted(zones, key=_name), *sorted(pods, key=_name)]
    return NumaObjects(documents, planted)


def _name(document: Document) -> str:
    return str(document["metadata"]["name"])


def _node(name: str, filled: FilledNode) -> Document:
    kind = filled.kind
    cores = kind.zones * kind.cores
    room = requests(kind.zones * kind.gpus, cores * 1000, cores * MEMORY_PER_CORE)
    room["pods"] = str(max(PODS, len(filled.pods)))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "capacity": room,
            "allocatable": dict(room),
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def _topology(name: str, filled: FilledNode, rooms: Sequence[Resources]) -> Document:
    kind = filled.kind
    total = requests(kind.gpus, kind.cores * 1000, kind.cores * MEMORY_PER_CORE)
    zones = [f"node-{number}" for number in range(kind.zones)]
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": name},
        "attributes": [
            {"name": "topologyManagerPolicy", "value": kind.policy},
            {"name": "topologyManagerScope", "value": kind.scope},
        ],
        "zones": [
            {
                "name": zone,
                "type": "Node",
                "costs": [{"name": other, "value": NEAR if other == zone else FAR} for other in zones],
                "resources": list(_resources(total, room)),
            }
            for zone, room in zip(zones, rooms, strict=True)
        ],
    }


def _resources(total: Mapping[str, str], room: Resources) -> Sequence[Document]:
    left = requests(0, room[CPU], room["memory"] >> 20) | {GPU: str(room[GPU])}
    return [
        {"name": name, "capacity": amount, "allocatable": amount, "available": left[name]}
        for name, amount in total.items()
    ]


def _pod(name: str, pod: FilledPod, second: int) -> Document:
    containers = []
    for number, part in enumerate(pod):
        room = requests(part.gpus, part.cores * 1000, part.memory)
        resources = {"requests": room, "limits": dict(room)}
        containers.append({"name": f"c{number}", "image": "example.com/job:1", "resources": resources})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "creationTimestamp": f"{EPOCH + timedelta(seconds=second):%Y-%m-%dT%H:%M:%SZ}",
        },
        "spec": {"schedulerName": "placer", "containers": containers},
        "status": {"phase": "Pending"},
    }
