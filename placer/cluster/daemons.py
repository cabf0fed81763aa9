"""Room for pods of DaemonSets that are not there yet: a new node gets them within seconds, and whoever fills it before
keeps them out.

Where a DaemonSet wants a pod on a node and none is, its room is held by a *stand-in*: in the snapshot alone, a pod of
nobody's that is nominated to the node, as any pod that somebody else is about to bind. It goes when the pod comes.

Source: Kubernetes ``pkg/controller/daemon`` (which nodes a DaemonSet wants, and what its pods tolerate beside what they
say).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from placer.cluster.client import Server
from placer.cluster.kept import pages_of, readable
from placer.errors import ClusterError
from placer.instance import Key
from placer.instance.build import read_nodes
from placer.instance.eligibility import ConstraintsPool
from placer.kube import BY_ATTRIBUTE
from placer.kube.base import Metadata, controller

__all__ = ["DaemonSet", "daemon_sets", "is_stand_in", "stand_in_for", "stand_ins"]

#: Its pods would be ours to place otherwise, should they name our scheduler.
_NOBODY = "daemonset-controller"
_KIND = "DaemonSet"
_PAGE = 500
_LONGEST_NAME = 253
_ENDED = ("Succeeded", "Failed")
#: What takes room, and what ports, of a pod's spec.
_ROOM = ("containers", "initContainers", "resources", "overhead", "hostNetwork")
#: Taints that the controller lets its pods tolerate; a node that is not Ready gets nothing from us anyhow.
_TOLERATED = ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
_TOLERATED_ON_HOST = "network-unavailable"


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = "default"
    deletion_timestamp: str | None = None


class _Template(msgspec.Struct):
    spec: dict[str, Any]


class _Spec(msgspec.Struct):
    template: _Template


class DaemonSet(msgspec.Struct):
    """A DaemonSet, in part."""

    metadata: _Metadata
    spec: _Spec


class _ListMetadata(msgspec.Struct):
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _ListMetadata = msgspec.field(default_factory=_ListMetadata)
    items: list[DaemonSet] | None = None


def daemon_sets(server: Server) -> list[DaemonSet]:
    """List the DaemonSets that are not being deleted."""
    found: list[DaemonSet] = []
    token = ""
    while True:
        asked = {"limit": str(_PAGE)} | ({"continue": token} if token else {})
        answer = server.get("/apis/apps/v1/daemonsets", asked)
        if answer.status == 404:
            return []
        if answer.status != 200:
            raise ClusterError(f"/apis/apps/v1/daemonsets: {answer.status}")
        page = msgspec.json.decode(answer.text, type=_Page)
        found += (each for each in page.items or () if each.metadata.deletion_timestamp is None)
        token = page.metadata.continue_
        if not token:
            return found


def stand_ins(wanted: Iterable[DaemonSet], nodes: Iterable[bytes], pods: Iterable[bytes]) -> Iterator[bytes]:
    """Make the pods that hold room for those that are not there.

    Parameters
    ----------
    wanted
        DaemonSets.
    nodes, pods
        Of the cluster, as a snapshot keeps them.
    """
    ordered = sorted(wanted, key=lambda each: (each.metadata.namespace, each.metadata.name))
    if not ordered:
        return
    there = set(_there(pods))
    by_name = read_nodes(readable(BY_ATTRIBUTE["nodes"], nodes))
    for each in ordered:
        namespace, name, spec = each.metadata.namespace, each.metadata.name, each.spec.template.spec
        written = BY_ATTRIBUTE["pods"].read(_pod(namespace, name, _tolerant(spec)))
        constraints = ConstraintsPool().of(written.spec)
        held = {key: value for key, value in spec.items() if key in _ROOM}
        pod = msgspec.json.decode(_pod(namespace, name, held | {"schedulerName": _NOBODY}))
        for node in by_name:
            if (Key(namespace, name), node) not in there and constraints.admits(by_name[node]):
                metadata = {"name": _name(name, node), "namespace": namespace}
                yield msgspec.json.encode(pod | {"metadata": metadata, "status": {"nominatedNodeName": node}})


def stand_in_for(metadata: Metadata, namespace: str, node: str) -> Key | None:
    """The stand-in that a pod takes the place of when it is on a node; None for a pod of no DaemonSet."""
    owner = controller(metadata)
    return Key(namespace, _name(owner.name, node)) if owner is not None and owner.kind == _KIND else None


def is_stand_in(key: Key) -> bool:
    """Whether a pod is none; no name of a real one has a colon."""
    return ":" in key.name


def _name(daemon_set: str, node: str) -> str:
    name = f"{daemon_set}:{node}"
    return name if len(name) <= _LONGEST_NAME else f":{hashlib.sha256(name.encode()).hexdigest()}"


class _Owner(msgspec.Struct):
    kind: str = ""
    name: str = ""


class _Owned(msgspec.Struct, rename="camel"):
    namespace: str = "default"
    owner_references: list[_Owner] | None = None


class _Place(msgspec.Struct, rename="camel"):
    node_name: str | None = None


class _Status(msgspec.Struct):
    phase: str | None = None


class _Pod(msgspec.Struct):
    metadata: _Owned
    spec: _Place
    status: _Status = msgspec.field(default_factory=_Status)


def _there(pods: Iterable[bytes]) -> Iterator[tuple[Key, str]]:
    """DaemonSets and nodes on which they have a pod that has not ended."""
    for item in pods:
        if b'"DaemonSet"' in item:
            pod = msgspec.json.decode(item, type=_Pod)
            for owner in pod.metadata.owner_references or ():
                if owner.kind == _KIND and pod.spec.node_name and pod.status.phase not in _ENDED:
                    yield Key(pod.metadata.namespace, owner.name), pod.spec.node_name


def _tolerant(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec with what the controller adds to it."""
    taints = (*_TOLERATED, _TOLERATED_ON_HOST) if spec.get("hostNetwork") else _TOLERATED
    added = [{"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoSchedule"} for taint in taints]
    return {**spec, "tolerations": [*(spec.get("tolerations") or ()), *added]}


def _pod(namespace: str, name: str, spec: dict[str, Any]) -> bytes:
    """A pod, with what a snapshot keeps of one."""
    pod = msgspec.json.encode({"metadata": {"name": name, "namespace": namespace}, "spec": spec})
    (item,) = pages_of(BY_ATTRIBUTE["pods"], "v1").read(b'{"items":[' + pod + b"]}").items
    return item
