"""Objects that cannot be read: a finding for each, and groups that depend on them wait (models/reading.md).

An object called ``*`` stands for all of a kind that a cluster does not serve.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from placer.kube.base import controller
from placer.kube.pod import TERMINAL_PHASES
from placer.problem.app_groups import APP_GROUP_LABEL
from placer.problem.eligibility import numa_marks
from placer.problem.findings import Findings
from placer.problem.gangs import COSCHEDULING, KAI, VOLCANO
from placer.problem.instance import Group, Pod, Queue
from placer.problem.keys import GroupKey, Key
from placer.problem.nodes import Node
from placer.problem.unsupported import claimed

if TYPE_CHECKING:
    from placer.kube.manifests import Objects, UnreadObject
    from placer.kube.pod import PodManifest
    from placer.problem.gangs import PodEntry

#: Name of what stands for all objects of a kind.
_ALL = "*"
#: API group of PodGroups to the sequence that holds them.
_GROUPS = {VOLCANO: "pod_groups", COSCHEDULING: "coscheduling_pod_groups", KAI: "kai_pod_groups"}


def note_unread(objects: Objects, findings: Findings) -> None:
    """Note every object that cannot be read."""
    for each in objects.unread:
        findings.unread.setdefault(each.label, set())
        findings.add("Unreadable", each.label, f"{_said(each.label)}, and its dependents wait: {each.wrong}")


def _said(label: str) -> str:
    kind, _, name = label.partition(" ")
    return f"no {kind} can be read" if name.rpartition("/")[2] == _ALL else f"{label} cannot be read"


def without_unread_room(nodes: Mapping[str, Node], objects: Objects) -> dict[str, Node]:
    """The nodes; one whose free room is not known is not ready."""
    unknown = set(_nodes_in_doubt(objects.unread))
    return {name: replace(node, ready=False) if name in unknown else node for name, node in nodes.items()}


def _nodes_in_doubt(unread: Iterable[UnreadObject]) -> Iterator[str]:
    for each in unread:
        if each.attribute == "node_resource_topologies":
            yield each.name
        elif each.attribute == "pods" and not each.holds_room:
            node = each.at("spec", "nodeName")
            if isinstance(node, str) and each.at("status", "phase") not in TERMINAL_PHASES:
                yield node


def hold_back(
    groups: Mapping[GroupKey, Group],
    pods: Mapping[Key, Pod],
    entries: Iterable[PodEntry],
    queues: Mapping[str, Queue],
    objects: Objects,
    findings: Findings,
    rules_off: Container[str] = (),
) -> dict[GroupKey, Group]:
    """Make groups invalid that depend on an unreadable object."""
    if not objects.unread:
        return dict(groups)
    manifests = {each.key: each.pod for each in entries}
    doubts = _Doubts(objects, queues, findings, rules_off)
    found = {}
    for key, group in groups.items():
        why = next(doubts.of(group, [(pods[pod], manifests[pod]) for pod in group.pending]), None)
        found[key] = replace(group, invalid=_said(why)) if why is not None and group.pending else group
    return found


class _Doubts:
    def __init__(
        self, objects: Objects, queues: Mapping[str, Queue], findings: Findings, rules_off: Container[str]
    ) -> None:
        self._queues, self._findings = queues, findings
        self._by_attribute: dict[str, list[UnreadObject]] = {}
        for each in objects.unread:
            self._by_attribute.setdefault(each.attribute, []).append(each)
        self._queues_matter = "C11" not in rules_off
        self._named_by = {subject: target for target, subjects in findings.unread.items() for subject in subjects}
        self._app_groups = [(each, _listed_names(each)) for each in self._by_attribute.get("app_groups", ())]
        self._borne = dict(_names_borne(self._by_attribute.get("pods", ())))
        # One that can be read is in use then, and text of another tenant decides nothing.
        self._network = [] if objects.network_topologies else list(self._all("network_topologies"))
        self._network += (each for by, each in self._named_by.items() if by.startswith(("NetworkTopology ", "Policy")))

    def of(self, group: Group, pods: Iterable[tuple[Pod, PodManifest]]) -> Iterator[str]:
        label = str(group.key)
        if label in self._findings.unread:
            yield label
        yield from self._named(label)
        yield from self._kind(_GROUPS.get(group.key.api_group, ""))
        yield from self._of_queue(group.queue)
        for borne in (self._borne.get(group.key[1:]), self._any("namespaces", group.key.namespace)):
            if borne is not None:
                yield borne
        if group.limited:
            yield from self._all("hyper_nodes")
        for pod, written in pods:
            yield from self._of_pod(pod, written)

    def _of_pod(self, pod: Pod, written: PodManifest) -> Iterator[str]:
        yield from self._named(f"Pod {pod.key}")
        if numa_marks(written):
            yield from self._kind("node_resource_topologies")
        yield from self._of_queue(pod.queue)
        for _, claim in claimed(written):
            label = f"PersistentVolumeClaim {claim}"
            if label in self._findings.unread:
                yield label
            yield from self._named(label)
        yield from self._of_app_group(pod, written)
        owner = controller(written.metadata)
        label = f"{owner.kind} {pod.namespace}/{owner.name}" if owner is not None else ""
        if label in self._findings.unread:
            yield label

    def _of_app_group(self, pod: Pod, written: PodManifest) -> Iterator[str]:
        labels = written.metadata.labels or {}
        if APP_GROUP_LABEL in labels:
            yield from self._kind("app_groups")
        yield from (each.label for each, listed in self._app_groups if _may_name(each, listed, pod, written))
        if pod.app_group is not None:
            yield from self._network

    def _of_queue(self, name: str | None) -> Iterator[str]:
        seen: set[str] = set()
        if name is not None and self._queues_matter:
            yield from self._kind("queues")
        while name is not None and name not in seen:
            seen.add(name)
            label = f"Queue {name}"
            if label in self._findings.unread:
                yield label
            yield from self._named(label)
            name = self._queues[name].parent if name in self._queues else None

    def _named(self, subject: str) -> Iterator[str]:
        if subject in self._named_by:
            yield self._named_by[subject]

    def _kind(self, attribute: str) -> Iterator[str]:
        return (each.label for each in self._by_attribute.get(attribute, ()) if each.name == _ALL)

    def _all(self, attribute: str) -> Iterator[str]:
        return (each.label for each in self._by_attribute.get(attribute, ()))

    def _any(self, attribute: str, name: str) -> str | None:
        return next((each.label for each in self._by_attribute.get(attribute, ()) if each.name == name), None)


def _listed_names(app_group: UnreadObject) -> frozenset[str] | None:
    entries = app_group.at("spec", "workloads")
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        return None
    workloads = [each.get("workload") for each in entries]
    names = {each.get("name") for each in workloads if isinstance(each, dict)}
    is_whole = all(isinstance(each, dict) and isinstance(each.get("name"), str) for each in workloads)
    return frozenset(map(str, names)) if is_whole else None


def _may_name(app_group: UnreadObject, listed: frozenset[str] | None, pod: Pod, written: PodManifest) -> bool:
    named, is_near = (written.metadata.labels or {}).get(APP_GROUP_LABEL), app_group.namespace == pod.namespace
    if named:
        return named == app_group.name and (is_near or pod.app_group is None)
    return is_near and (listed is None or not listed.isdisjoint(_makers(written)))


def _makers(pod: PodManifest) -> set[str]:
    owner = controller(pod.metadata)
    return {pod.name} if owner is None else {owner.name, owner.name.rpartition("-")[0]}


def _names_borne(pods: Iterable[UnreadObject]) -> Iterator[tuple[tuple[str, str], str]]:
    """Any of these texts may be the name of its group; a pod is a group of its own name, too."""
    for each in pods:
        if each.at("status", "phase") in TERMINAL_PHASES:
            continue
        yield (each.namespace, each.name), each.label
        for owner in each.at("metadata", "ownerReferences") or ():  # Volcano's controller calls its gang so
            if isinstance(owner, dict):
                yield (each.namespace, f"podgroup-{owner.get('uid')}"), each.label
        for place in ("labels", "annotations"):
            said = each.at("metadata", place)
            for value in said.values() if isinstance(said, dict) else ():
                if isinstance(value, str):
                    yield (each.namespace, value), each.label
