"""ResourceFlavors of Kueue: labels and tolerations that it adds to pods when it admits their workload.

Source: kueue ``pkg/podset`` and ``pkg/scheduler/flavorassigner``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

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

#: Labels of nodes, and tolerations.
_Added: TypeAlias = "tuple[Mapping[str, str], tuple[TolerationEntry, ...]]"


def with_flavors(objects: Objects, blueprints: Iterable[Blueprint], findings: list[Finding]) -> Iterator[Blueprint]:
    """Add what Kueue would add to pods of its queues, as far as only one flavor is possible; else note that none is."""
    unknown = set[str]()
    for each in blueprints:
        added = _added_to(each, objects.kueue)
        if added is None:
            unknown.add(f"{each.owner.kind} {each.owner.namespace}/{each.owner.name}")
        labels, tolerations = added or ({}, ())
        selector = {**labels, **each.node_selector}
        yield replace(each, node_selector=selector, tolerations=(*each.tolerations, *tolerations))
    if unknown:
        message = (
            f"Kueue adds labels and tolerations of a flavor to pods of {counted(unknown)} when it admits them: which "
            "is not certain here, and none is added"
        )
        findings.append(Finding("UnsupportedKind", "ResourceFlavor.kueue.x-k8s.io", message))


def _added_to(blueprint: Blueprint, kueue: Mapping[tuple[str, str], Any]) -> _Added | None:
    owner, spec = blueprint.owner, blueprint.template.spec
    queue = kueue_queue(owner.metadata.labels)
    if not queue or not blueprint.numbers:
        return {}, ()
    try:
        labels, tolerations = _of_flavors(kueue, f"{owner.namespace}/{queue}", pod_requests(spec, None).keys())
    except (KeyError, TypeError, ValueError, msgspec.ValidationError):  # absent, of another form, or not only one
        return None
    selected = {**labels, **(spec.node_selector or {})}
    return (labels, tolerations) if labels.items() <= selected.items() else None


def _of_flavors(kueue: Mapping[tuple[str, str], Any], queue: str, asked: Set[str]) -> _Added:
    cluster = kueue["LocalQueue", queue]["clusterQueue"]
    groups = msgspec.convert(kueue["ClusterQueue", cluster]["resourceGroups"], list[dict[str, list[Any]]])
    used = [each["flavors"] for each in groups if not asked.isdisjoint(each["coveredResources"])]
    flavors = [kueue["ResourceFlavor", each["name"]] for (each,) in used]
    labels = msgspec.convert([each.get("nodeLabels") or {} for each in flavors], list[dict[str, str]])
    added = [each.get("tolerations") or () for each in flavors]
    tolerations = msgspec.convert(added, list[tuple[TolerationEntry, ...]])
    return dict(chain(*(each.items() for each in labels))), tuple(chain(*tolerations))


def note_topologies(objects: Objects, policy: Policy, findings: Findings) -> None:
    """Note the Topologies of Kueue, whose levels are the tree only by the Policy."""
    for (kind, name), spec in sorted(objects.kueue.items()):
        keys = _topology_keys(spec) if kind == "Topology" else policy.topology_keys
        if keys == policy.topology_keys and not (objects.hyper_nodes and kind == "Topology"):
            continue
        instead = f"Policy `topologyKeys: [{', '.join(keys)}]` makes a tree of its levels"
        instead = "HyperNodes are the tree" if objects.hyper_nodes else instead
        findings.add("UnsupportedKind", f"Topology.kueue.x-k8s.io {name}", f"it is not read: {instead}")


def _topology_keys(spec: Mapping[str, Any]) -> tuple[str, ...]:
    levels = spec.get("levels")
    known = [each for each in reversed(levels) if isinstance(each, dict)] if isinstance(levels, list) else []
    labels = (each.get("nodeLabel") for each in known)
    return tuple(str(each) for each in labels if each and each != _HOST)
