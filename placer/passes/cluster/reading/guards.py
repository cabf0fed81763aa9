"""Limits of passes to some namespaces and nodes, written into the snapshot so that ``solve`` decides the same.

A pod in another namespace gets a scheduling gate. Another node gets a taint, named in reasons, and is not ready, since
a pod may tolerate any taint. Pods bound there count as before. Nothing of this is written to the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from placer.kube.manifests.label_selectors import matches, parse_label_selector
from placer.passes.cluster.reading.earlier_passes import Change, changed
from placer.passes.cluster.reading.snapshot import Snapshot
from placer.passes.cluster.reading.views import ObjectView, PodView, read_view
from placer.problem import Key

__all__ = ["OTHER_NAMESPACE", "OTHER_NODES", "Guards", "guarded"]

#: Scheduling gate of our pods in other namespaces, and taint of other nodes, in the snapshot alone.
OTHER_NAMESPACE = "placer.dev/other-namespace"
OTHER_NODES = "placer.dev/other-nodes"


@dataclass(frozen=True, slots=True)
class Guards:
    """The namespaces and nodes that a pass may touch."""

    namespaces: frozenset[str] = frozenset()  #: namespaces whose pods it places; empty: all
    node_selector: str = ""  #: labels of the nodes that it binds to, in the syntax of kubectl; empty: all

    def admits(self, namespace: str) -> bool:
        """Whether a pass may touch objects of a namespace."""
        return not self.namespaces or namespace in self.namespaces


def guarded(snapshot: Snapshot, guards: Guards) -> Snapshot:
    """Write the limits of a pass into a snapshot; the same object without limits."""
    return changed(snapshot, dict([*_gated(snapshot, guards), *_closed(snapshot, guards)]))


def _gated(snapshot: Snapshot, guards: Guards) -> Iterator[tuple[tuple[str, Key], Change]]:
    for item in snapshot.of_kind("Pod") if guards.namespaces else ():
        pod = read_view(item, PodView)
        ours = pod.spec.scheduler_name == snapshot.scheduler_name or (snapshot.gates and pod.is_on_hold)
        if ours and not pod.spec.node_name and not guards.admits(pod.metadata.namespace):
            yield ("Pod", pod.key), _gate


def _closed(snapshot: Snapshot, guards: Guards) -> Iterator[tuple[tuple[str, Key], Change]]:
    tests = parse_label_selector(guards.node_selector) if guards.node_selector else ()
    for item in snapshot.of_kind("Node") if tests else ():
        node = read_view(item, ObjectView)
        if not matches(tests, node.metadata.labels or {}):
            yield ("Node", node.key), _close


def _gate(pod: dict[str, Any]) -> None:
    pod["spec"]["schedulingGates"] = [*(pod["spec"].get("schedulingGates") or ()), {"name": OTHER_NAMESPACE}]


def _close(node: dict[str, Any]) -> None:
    spec, status = dict(node.get("spec") or {}), dict(node.get("status") or {})
    spec["taints"] = [*(spec.get("taints") or ()), {"key": OTHER_NODES, "effect": "NoSchedule"}]
    others = [each for each in status.get("conditions") or () if each.get("type") != "Ready"]
    status["conditions"] = [*others, {"type": "Ready", "status": "False"}]
    node["spec"], node["status"] = spec, status
