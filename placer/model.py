"""A builder for small experiments: nodes, racks, pods and gangs in a few lines, as Kubernetes objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from placer.api import read, solve
from placer.kube.manifests import dump
from placer.problem import Instance
from placer.problem.result import Result

#: A Kubernetes object as a dict.
Document = dict[str, Any]
#: An amount: a number, or a quantity such as ``500m`` or ``64Gi``.
Amount = int | float | str

_GPU = "nvidia.com/gpu"
_PODS = 110  #: of a node, as kubelets have it by default


class Model:
    """A small cluster and its queue, built step by step.

    Each method adds Kubernetes objects to :attr:`documents` and returns those that a caller may want to change: dicts
    that count as they are when the model is solved.

    Examples
    --------
    >>> import placer
    >>> model = placer.Model()
    >>> for name in ("rack-1", "rack-2"):
    ...     _ = model.add_rack(name, nodes=2, cpu=32, gpus=8)
    >>> _ = model.add_pods("notebook", 1, gpus=4, node="rack-1-0")
    >>> _ = model.add_gang("train", 2, gpus=8, tier=1)
    >>> result = model.solve(method="greedy")
    >>> [(str(each.pod), each.node) for each in result.bindings]
    [('default/train-0', 'rack-2-0'), ('default/train-1', 'rack-2-1')]
    """

    def __init__(self) -> None:
        self.documents: list[Mapping[str, Any]] = []

    def add(self, *objects: Mapping[str, Any]) -> None:
        """Add objects that there is no method for, such as a Queue or a Policy."""
        self.documents += objects

    def add_node(
        self,
        name: str,
        *,
        cpu: Amount | None = None,
        memory: Amount | None = None,
        gpus: int | None = None,
        resources: Mapping[str, Amount] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Document:
        """Add a node that is Ready.

        ``cpu``, ``memory``, ``gpus``: cores, bytes and ``nvidia.com/gpu``. ``labels``: besides the one of its name.
        """
        found = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
            "status": {
                "allocatable": {"pods": str(_PODS), **_amounts(cpu, memory, gpus, resources)},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        self.add(found)
        return found

    def add_rack(self, name: str, nodes: int | Iterable[str] = 1, *, tier: int = 1, **node: Any) -> Document:
        """Add a HyperNode of a ``tier`` (1: the nearest), with nodes or other racks in it.

        ``nodes``: how many are made, ``NAME-0`` and so on, as ``node`` (:meth:`add_node`) states; or names of racks or
        nodes.
        """
        if isinstance(nodes, int):
            nodes = [str(self.add_node(f"{name}-{number}", **node)["metadata"]["name"]) for number in range(nodes)]
        racks = {each["metadata"]["name"] for each in self.documents if each["kind"] == "HyperNode"}
        members = [
            {"type": "HyperNode" if each in racks else "Node", "selector": {"exactMatch": {"name": each}}}
            for each in nodes
        ]
        found = {
            "apiVersion": "topology.volcano.sh/v1alpha1",
            "kind": "HyperNode",
            "metadata": {"name": name},
            "spec": {"tier": tier, "members": members},
        }
        self.add(found)
        return found

    def add_pods(
        self,
        name: str,
        count: int = 1,
        *,
        cpu: Amount | None = None,
        memory: Amount | None = None,
        gpus: int | None = None,
        resources: Mapping[str, Amount] | None = None,
        priority: int = 0,
        node: str | None = None,
        namespace: str = "default",
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> list[Document]:
        """Add equal pods, ``NAME-0`` and so on, of a controller, so that those that run may be evicted and moved.

        ``node``: where they run; None: they wait.
        """
        amounts = _amounts(cpu, memory, gpus, resources)
        spec = {"priority": priority, "containers": [{"name": "main", "resources": {"requests": amounts}}]}
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": True}
        metadata = {"namespace": namespace, "labels": dict(labels or {}), "annotations": dict(annotations or {})}
        found: list[Document] = [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"{name}-{number}", **metadata, "ownerReferences": [owner]},
                "spec": {**spec, **({} if node is None else {"nodeName": node})},
                "status": {"phase": "Pending" if node is None else "Running"},
            }
            for number in range(count)
        ]
        self.add(*found)
        return found

    def add_gang(
        self,
        name: str,
        count: int,
        *,
        min_member: int | None = None,
        tier: int | None = None,
        queue: str | None = None,
        namespace: str = "default",
        **pod: Any,
    ) -> Document:
        """Add a PodGroup of Volcano with its pods, ``NAME-0`` and so on; ``pod`` as :meth:`add_pods` takes it.

        ``min_member``: least pods; default: all. ``tier``: the highest under one HyperNode of which all of them must
        be.
        """
        spec: Document = {"minMember": count if min_member is None else min_member}
        spec |= {} if queue is None else {"queue": queue}
        spec |= {} if tier is None else {"networkTopology": {"mode": "hard", "highestTierAllowed": tier}}
        found = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": namespace},
            "spec": spec,
        }
        self.add(found)
        named = {"scheduling.k8s.io/group-name": name, **(pod.pop("annotations", None) or {})}
        self.add_pods(name, count, namespace=namespace, annotations=named, **pod)
        return found

    def instance(self, **reading: Any) -> Instance:
        """The instance that the objects state; ``reading`` as :func:`placer.read` takes it."""
        return read(self, **reading)

    def solve(self, **options: Any) -> Result:
        """Decide where the pods that wait go; ``options`` as :func:`placer.solve` takes them."""
        return solve(self.instance(), **options)

    def save(self, path: str | Path) -> None:
        """Write the objects, ``.yaml`` or ``.json``, for the commands to read."""
        dump(self.documents, path)


def _amounts(
    cpu: Amount | None, memory: Amount | None, gpus: int | None, resources: Mapping[str, Amount] | None
) -> dict[str, str]:
    named = {"cpu": cpu, "memory": memory, _GPU: gpus, **(resources or {})}
    return {name: str(amount) for name, amount in named.items() if amount is not None}
