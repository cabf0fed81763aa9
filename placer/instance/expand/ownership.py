"""Which workloads have pods in the instance already."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from placer.instance.expand.blueprint import Blueprint
from placer.instance.owners import controller
from placer.instance.selectors import label_requirements, matches
from placer.kube.apps import ReplicaSetManifest
from placer.kube.base import Labels, LabelSelector, Metadata, NamespacedObject, OwnerReference
from placer.kube.pod import PodManifest

__all__ = ["Census", "owned_by"]

#: Labels that name the workload, by its kind and API group; Volcano sets its own as an annotation too.
_NAMING = {
    ("batch.volcano.sh", "Job"): ("volcano.sh/job-name",),
    ("batch", "Job"): ("batch.kubernetes.io/job-name", "job-name"),
}
_HASH = "pod-template-hash"

#: Namespace, API group, kind, name.
_Owner = tuple[str, str, str, str]


class Census:
    """The pods of an instance by who made them.

    A pod belongs to the controller among its owners, a ReplicaSet standing for its Deployment. Pods without any
    owner, as cleaned exports hold them, are told by the labels and names that controllers give.

    Parameters
    ----------
    pods
        All pods of the instance, those that have ended included.
    replica_sets
        The links between pods and Deployments; where one is missing, its name tells.
    """

    def __init__(self, pods: Iterable[PodManifest], replica_sets: Iterable[ReplicaSetManifest]) -> None:
        self._above = {(each.namespace, each.name): controller(each.metadata) for each in replica_sets}
        self._owned: dict[_Owner, set[str]] = defaultdict(set)
        self._orphans: dict[tuple[str, str], PodManifest] = {}
        self._by_label: set[tuple[str, str, str]] = set()
        self._by_stem: dict[tuple[str, str], list[Labels]] = defaultdict(list)
        seen: set[tuple[str, str, str, str, str, str]] = set()
        for pod in pods:
            owner = controller(pod.metadata)
            if owner is None:
                self._add_orphan(pod)
                continue
            ending = (pod.metadata.labels or {}).get(_HASH, "")
            key = (pod.namespace, owner.api_version, owner.kind, owner.name, owner.uid or "", ending)
            if key not in seen:  # pods of one template tell the same
                seen.add(key)
                self._add_owner(pod.namespace, owner, ending)

    def _add_owner(self, namespace: str, owner: OwnerReference, ending: str) -> None:
        """Note that an owner has a pod, and the Deployment above it where it is a ReplicaSet."""
        self._note(namespace, owner)
        if (_group(owner), owner.kind) == ("apps", "ReplicaSet"):
            above = self._above.get((namespace, owner.name))
            if above is not None:
                self._note(namespace, above)
            else:
                name = owner.name.removesuffix(f"-{ending or owner.name.rpartition('-')[2]}")
                self._owned[(namespace, "apps", "Deployment", name)].add("")

    def _note(self, namespace: str, owner: OwnerReference) -> None:
        self._owned[(namespace, _group(owner), owner.kind, owner.name)].add(owner.uid or "")

    def _add_orphan(self, pod: PodManifest) -> None:
        self._orphans[(pod.namespace, pod.name)] = pod
        labels = pod.metadata.labels or {}
        for source in (labels, pod.metadata.annotations or {}):
            for keys in _NAMING.values():
                self._by_label.update((pod.namespace, key, source[key]) for key in keys if key in source)
        stem = pod.name
        for _ in range(2):  # name-number, or name-hash-chance
            stem = stem.rpartition("-")[0]
            if stem:
                self._by_stem[(pod.namespace, stem)].append(labels)

    def has_pods(self, workload: NamespacedObject, selector: LabelSelector | None = None) -> bool:
        """Whether any pod belongs to a workload.

        Parameters
        ----------
        workload
            The workload.
        selector
            Of a Deployment or StatefulSet: what the labels of a pod without owners must meet; None: names say nothing.
        """
        key = (workload.namespace, workload.group, workload.kind, workload.name)
        uids, uid = self._owned.get(key, set()), workload.metadata.uid
        if uids and (not uid or uid in uids or "" in uids):
            return True
        naming = _NAMING.get((workload.group, workload.kind), ())
        if any((workload.namespace, label, workload.name) in self._by_label for label in naming):
            return True
        if selector is None:
            return False
        requirements = label_requirements(selector)
        found = self._by_stem.get((workload.namespace, workload.name), ())
        return any(matches(requirements, labels) for labels in found)

    def has_named(self, blueprint: Blueprint) -> bool:
        """Whether a pod without owners bears a name of the blueprint's and all labels of its template."""
        if not self._orphans:
            return False
        wanted = blueprint.template_labels.items()
        for _, name in blueprint.names():
            pod = self._orphans.get((blueprint.owner.namespace, name))
            if pod is not None and wanted <= (pod.metadata.labels or {}).items():
                return True
        return False


def _group(owner: OwnerReference) -> str:
    return owner.api_version.rpartition("/")[0]


def owned_by(metadata: Metadata, workload: NamespacedObject) -> bool:
    """Whether an object names a workload as the one that made it."""
    owner = controller(metadata)
    if owner is None or (_group(owner), owner.kind, owner.name) != (workload.group, workload.kind, workload.name):
        return False
    return not (owner.uid and workload.metadata.uid) or owner.uid == workload.metadata.uid
