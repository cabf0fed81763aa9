"""ResourceFlavors of Kueue: labels and tolerations that it adds to pods when it admits their workload.

Source: kueue ``pkg/podset`` and ``pkg/scheduler/flavorassigner``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from placer.kube.pod import TolerationEntry
from placer.kube.unread_kinds import kueue_queue
from placer.problem.findings import Finding, Findings, counted
from placer.problem.requests import pod_requests

if TYPE_CHECKING:
    from placer.kube.manifests import Objects
    from placer.problem.blueprints import Blueprint
    from placer.problem.instance import Policy

_HOST = "kubernetes.io/hostname"


class _Flavor(msgspec.Struct, rename="camel"):
    node_labels: dict[str, str] = {}
    tolerations: tuple[TolerationEntry, ...] = ()


class _Named(msgspec.Struct):
    name: str


class _ResourceGroup(msgspec.Struct, rename="camel"):
    covered_resources: tuple[str, ...] = ()
    flavors: tuple[_Named, ...] = ()


class _ClusterQueue(msgspec.Struct, rename="camel"):
    resource_groups: tuple[_ResourceGroup, ...] = ()


def with_flavors(objects: Objects, blueprints: Iterable[Blueprint], findings: list[Finding]) -> Iterator[Blueprint]:
    """Add what Kueue would add to pods of its queues, as far as only one flavor is possible; else note that none is."""
    unknown = set[str]()
    for each in blueprints:
        flavors = _flavors_of(objects.kueue, each)
        if flavors is None:
            unknown.add(f"{each.owner.kind} {each.owner.namespace}/{each.owner.name}")
        labels = {key: value for flavor in flavors or () for key, value in flavor.node_labels.items()}
        tolerations = tuple(added for flavor in flavors or () for added in flavor.tolerations)
        selector = {**labels, **each.node_selector}
        yield replace(each, node_selector=selector, tolerations=(*each.tolerations, *tolerations))
    if unknown:
        message = (
            f"Kueue adds labels and tolerations of a flavor to pods of {counted(unknown)} when it admits them: which "
            "is not certain here, and none is added"
        )
        findings.append(Finding("UnsupportedKind", "ResourceFlavor.kueue.x-k8s.io", message))


def _flavors_of(kueue: Mapping[tuple[str, str], Any], blueprint: Blueprint) -> list[_Flavor] | None:
    owner, spec = blueprint.owner, blueprint.template.spec
    queue = kueue_queue(owner.metadata.labels)
    if not queue or not blueprint.numbers:
        return []
    cluster = kueue.get(("LocalQueue", f"{owner.namespace}/{queue}"), {}).get("clusterQueue")
    asked = pod_requests(spec, None).keys()
    try:
        groups = msgspec.convert(kueue[("ClusterQueue", cluster)], _ClusterQueue).resource_groups
        used = [each for each in groups if not asked.isdisjoint(each.covered_resources)]
        if any(len(each.flavors) != 1 for each in used):
            return None
        found = [msgspec.convert(kueue[("ResourceFlavor", each.flavors[0].name)], _Flavor) for each in used]
    except (KeyError, msgspec.ValidationError):
        return None
    selected = spec.node_selector or {}
    fits = all(selected.get(key, value) == value for flavor in found for key, value in flavor.node_labels.items())
    return found if fits else None


def note_topologies(objects: Objects, policy: Policy, findings: Findings) -> None:
    """Note the Topologies of Kueue, whose levels are the tree only by the Policy."""
    for (kind, name), spec in sorted(objects.kueue.items()):
        levels = spec.get("levels") if kind == "Topology" else None
        labels = [each.get("nodeLabel") for each in levels or () if isinstance(each, dict)]
        keys = tuple(str(each) for each in reversed(labels) if each and each != _HOST)
        if kind == "Topology" and (objects.hyper_nodes or keys != policy.topology_keys):
            instead = f"Policy `topologyKeys: [{', '.join(keys)}]` makes a tree of its levels" if keys else ""
            instead = "HyperNodes are the tree" if objects.hyper_nodes else instead or "it has no level above nodes"
            findings.add("UnsupportedKind", f"Topology.kueue.x-k8s.io {name}", f"it is not read: {instead}")
