"""Kubelets for nodes that are not there: they admit bound pods as real ones do, and report.

Of the pods that reach a kubelet together it looks at the oldest first; those of one second come in any order with a
real one, by name from the end here. Each must find room for its requests, its host
ports and its NUMA zones beside what runs; one that does not becomes ``Failed`` with the kubelet's reason and holds
nothing. Zones are handed out by the replay of the Topology Manager (``placer.problem.numa``).

Source: Kubernetes ``pkg/kubelet/lifecycle/predicate.go`` (reasons and messages), ``pkg/kubelet/kubelet.go`` (order).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from placer.base.quantity import Resources
from placer.kube.pod import PodManifest
from placer.problem import Node
from placer.problem.node_resource_topology import DemandPool
from placer.problem.numa import TopologyManager
from placer.problem.requests import pod_requests
from tests.cluster.api import Api, Refused
from tests.cluster.background import at_work
from tests.support import Document, instance_of, objects_of

__all__ = ["Admission", "Impatient", "Kubelets", "Rejection"]

#: Host address, protocol and port; the address 0.0.0.0 stands for all of them.
_Port = tuple[str, str, int]
_EVERYWHERE = "0.0.0.0"


@dataclass(frozen=True)
class Rejection:
    """Why a pod may not run: as ``status.reason`` and ``status.message`` say it."""

    reason: str
    message: str


@dataclass
class Admission:
    """What one kubelet knows of its node.

    Parameters
    ----------
    node
        The node, with its zones if it has any.
    manager
        Its Topology Manager; None without zones that it aligns to.
    """

    node: Node
    manager: TopologyManager | None = None
    used: dict[str, Resources] = field(default_factory=dict)
    ports: dict[str, frozenset[_Port]] = field(default_factory=dict)
    taken: dict[str, list[dict[str, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._demands = DemandPool()

    @classmethod
    def of(cls, node: Document, topology: Document | None = None) -> Admission:
        """Read a node and its NodeResourceTopology."""
        instance = instance_of(node, *([topology] if topology is not None else []))
        name = node["metadata"]["name"]
        zones = instance.aligning_nodes.get(name)
        return cls(instance.nodes[name], None if zones is None else TopologyManager(zones))

    def batch(self, pods: Iterable[Document]) -> dict[str, Rejection | None]:
        """Let pods come together, oldest first; uid to the rejection, None of those that run."""
        by_name = sorted(pods, key=lambda each: str(each["metadata"]["name"]), reverse=True)
        ordered = sorted(by_name, key=lambda each: each["metadata"].get("creationTimestamp") or "")
        return {each["metadata"]["uid"]: self.admit(each) for each in ordered}

    def admit(self, document: Document) -> Rejection | None:
        """Let one pod come; None: it runs. One that runs already is not asked again."""
        (pod,) = objects_of({"apiVersion": "v1", "kind": "Pod", **document}).pods
        uid = document["metadata"]["uid"]
        if uid in self.used:
            return None
        requests, ports = pod_requests(pod.spec), _ports(pod)
        refused = self._zones(pod) or self._room(requests) or self._host_ports(ports)
        if refused is None:
            self.used[uid], self.ports[uid] = requests, ports
            if self.manager is not None:
                before = [dict(room) for room in self.manager.left]
                assert not self.manager.admit(self._demands.of(pod.spec)).refusal
                self.taken[uid] = [
                    {name: amount - left[name] for name, amount in room.items()}
                    for room, left in zip(before, self.manager.left, strict=True)
                ]
        return refused

    def end(self, uid: str) -> None:
        """A pod is over: what it held is free."""
        self.used.pop(uid, None)
        self.ports.pop(uid, None)
        if self.manager is not None and uid in self.taken:
            for room, taken in zip(self.manager.left, self.taken.pop(uid), strict=True):
                room.update({name: room[name] + amount for name, amount in taken.items()})

    def _zones(self, pod: PodManifest) -> Rejection | None:
        if self.manager is None:
            return None
        if not TopologyManager(self.manager.after()).admit(self._demands.of(pod.spec)).refusal:
            return None
        return Rejection("TopologyAffinityError", "Resources cannot be allocated with Topology locality")

    def _room(self, requests: Resources) -> Rejection | None:
        for resource, amount in sorted(requests.items()):
            used = sum(each[resource] for each in self.used.values())
            there = self.node.allocatable[resource]
            if amount and used + amount > there:
                detail = f"resource: {resource}, requested: {amount}, used: {used}, capacity: {there}"
                return Rejection(f"OutOf{resource}", f"Node didn't have enough {detail}")
        return None

    def _host_ports(self, ports: frozenset[_Port]) -> Rejection | None:
        taken = [port for each in self.ports.values() for port in each]
        if any(_clash(one, other) for one in ports for other in taken):
            message = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
            return Rejection("NodePorts", message)
        return None


class Kubelets:
    """The kubelets of all nodes that were added, at an API server.

    Parameters
    ----------
    api
        The server.

    Examples
    --------
    >>> kubelets = Kubelets(api)  # doctest: +SKIP
    >>> kubelets.add(node("n1"))  # doctest: +SKIP
    >>> with kubelets.running():  # doctest: +SKIP
    ...     api.bind("default", "train-0", "n1")
    """

    def __init__(self, api: Api) -> None:
        self.api = api
        self.admissions: dict[str, Admission] = {}
        self.rejected: dict[str, Rejection] = {}  #: by NAMESPACE/NAME

    def add(self, *nodes: Document, topologies: Sequence[Document] = ()) -> None:
        """Create nodes, and the NodeResourceTopology objects of some of them."""
        by_name = {each["metadata"]["name"]: each for each in topologies}
        self.api.create(*nodes, *topologies)
        for node in nodes:
            name = node["metadata"]["name"]
            self.admissions[name] = Admission.of(node, by_name.get(name))

    def step(self) -> int:
        """Every kubelet looks once at what is new on its node: batches are admitted, deleted pods end.

        Returns
        -------
        int
            How many pods were admitted, rejected or ended.
        """
        coming: dict[str, list[dict[str, Any]]] = defaultdict(list)
        staying: dict[str, set[str]] = defaultdict(set)
        going: list[dict[str, Any]] = []
        for pod in self.api.items("/api/v1/pods"):
            node, phase = pod["spec"].get("nodeName"), pod["status"].get("phase")
            if node not in self.admissions:
                continue
            if pod["metadata"].get("deletionTimestamp"):
                going.append(pod)
            elif phase not in ("Succeeded", "Failed"):
                staying[node].add(pod["metadata"]["uid"])
                if phase == "Pending":
                    coming[node].append(pod)
        for node, admission in self.admissions.items():
            for uid in set(admission.used) - staying[node]:
                admission.end(uid)
        self.api.each(lambda pod: self.api.delete(_path(pod), pod["metadata"]["uid"]), going)
        answers = {node: self.admissions[node].batch(pods) for node, pods in coming.items()}
        self.api.each(
            lambda pair: self._report(*pair),
            [(pod, answers[node][pod["metadata"]["uid"]]) for node, pods in coming.items() for pod in pods],
        )
        return len(going) + sum(map(len, coming.values()))

    def running(self, every: float = 0.05) -> AbstractContextManager[None]:
        """Let all kubelets work in the background for as long as a ``with`` block lasts."""
        return at_work(self.step, every)

    def _report(self, pod: Mapping[str, Any], rejection: Rejection | None) -> None:
        metadata = pod["metadata"]
        status: dict[str, Any]
        if rejection is not None:
            self.rejected[f"{metadata['namespace']}/{metadata['name']}"] = rejection
            status = {
                "phase": "Failed",
                "reason": rejection.reason,
                "message": f"Pod was rejected: {rejection.message}",
            }
        else:
            ready = {"type": "Ready", "status": "True"}
            scheduled = [each for each in pod["status"].get("conditions") or () if each["type"] == "PodScheduled"]
            status = {"phase": "Running", "conditions": [*scheduled, ready]}
        try:
            self.api.patch(f"{_path(pod)}/status", {"metadata": {"uid": metadata["uid"]}, "status": status})
        except Refused as refusal:
            if refusal.status not in (404, 409):  # deleted meanwhile, or another pod has its name
                raise


class Impatient(Kubelets):
    """Kubelets beside controllers that delete at once what failed."""

    def _report(self, pod: Mapping[str, Any], rejection: Rejection | None) -> None:
        super()._report(pod, rejection)
        if rejection is not None:
            self.api.delete(_path(pod), pod["metadata"]["uid"])


def _path(pod: Mapping[str, Any]) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _ports(pod: PodManifest) -> frozenset[_Port]:
    containers = (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))
    return frozenset(
        (port.host_ip or _EVERYWHERE, port.protocol or "TCP", port.host_port)
        for container in containers
        for port in container.ports or ()
        if port.host_port
    )


def _clash(one: _Port, other: _Port) -> bool:
    return one[1:] == other[1:] and (one[0] == other[0] or _EVERYWHERE in (one[0], other[0]))
