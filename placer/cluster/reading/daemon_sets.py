"""Room for pods of DaemonSets that are not there yet: a new node gets them within seconds, and pods that fill it before
keep them out.

Where a DaemonSet wants a pod on a node and none is, its room is held by a *placeholder pod*: it is in the snapshot
alone, has no owner, and is nominated to the node, as any pod that another scheduler is about to bind. It goes when the
DaemonSet's pod comes.

Source: Kubernetes ``pkg/controller/daemon`` (which nodes a DaemonSet wants, and what its pods tolerate beside what they
say).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from placer.cluster.reading.client import Server, Unlisted, pages
from placer.cluster.reading.field_filter import list_reader, readable
from placer.cluster.reading.views import DaemonSetView, Page, PodView
from placer.instance import Key
from placer.instance.build import read_nodes
from placer.instance.eligibility import ConstraintsPool
from placer.kube import BY_ATTRIBUTE
from placer.kube.base import Metadata, controller

__all__ = ["daemon_sets", "is_placeholder", "placeholder_for", "placeholders"]

#: Its pods would be ours to place otherwise, should they name our scheduler.
_OTHER_SCHEDULER = "daemonset-controller"
_KIND = "DaemonSet"
_LONGEST_NAME = 253
_ENDED = ("Succeeded", "Failed")
#: What takes room, and what ports, of a pod's spec.
_ROOM = ("containers", "initContainers", "resources", "overhead", "hostNetwork")
#: Taints that the controller lets its pods tolerate; a node that is not Ready gets nothing from us anyhow.
_TOLERATED = ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
_TOLERATED_ON_HOST = "network-unavailable"


def daemon_sets(server: Server) -> list[DaemonSetView]:
    """List the DaemonSets that are not being deleted; none where the server does not know them."""
    decode = msgspec.json.Decoder(Page[DaemonSetView]).decode
    try:
        found = [each for page in pages(server.get, "/apis/apps/v1/daemonsets", decode) for each in page.items or ()]
    except Unlisted as error:
        if error.answer.status == 404:
            return []
        raise
    return [each for each in found if each.metadata.deletion_timestamp is None]


def placeholders(wanted: Iterable[DaemonSetView], nodes: Iterable[bytes], pods: Iterable[bytes]) -> Iterator[bytes]:
    """Make the pods that hold room for those that are not there yet.

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
        pod = msgspec.json.decode(_pod(namespace, name, held | {"schedulerName": _OTHER_SCHEDULER}))
        for node in by_name:
            if (Key(namespace, name), node) not in there and constraints.admits(by_name[node]):
                metadata = {"name": _name(name, node), "namespace": namespace}
                yield msgspec.json.encode(pod | {"metadata": metadata, "status": {"nominatedNodeName": node}})


def placeholder_for(metadata: Metadata, namespace: str, node: str) -> Key | None:
    """The placeholder that a pod takes the place of when it is on a node; None for a pod of no DaemonSet."""
    owner = controller(metadata)
    return Key(namespace, _name(owner.name, node)) if owner is not None and owner.kind == _KIND else None


def is_placeholder(key: Key) -> bool:
    """Whether a pod is a placeholder; no name of a real one has a colon."""
    return ":" in key.name


def _name(daemon_set: str, node: str) -> str:
    name = f"{daemon_set}:{node}"
    return name if len(name) <= _LONGEST_NAME else f":{hashlib.sha256(name.encode()).hexdigest()}"


def _there(pods: Iterable[bytes]) -> Iterator[tuple[Key, str]]:
    """DaemonSets and nodes on which they have a pod that has not ended."""
    for item in pods:
        if b'"DaemonSet"' in item:
            pod = msgspec.json.decode(item, type=PodView)
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
    return list_reader(BY_ATTRIBUTE["pods"], "v1").object(pod)
