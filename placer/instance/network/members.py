"""Which pod is of which workload of which AppGroup: by its labels, else by who made it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from placer.instance.findings import Findings, counted
from placer.instance.network.app_groups import Application
from placer.instance.owners import controller
from placer.instance.pod import Key
from placer.kube.apps import ReplicaSetManifest
from placer.kube.base import OwnerReference
from placer.kube.pod import PodManifest

__all__ = ["APP_GROUP_LABEL", "WORKLOAD_LABEL", "Member", "count_members", "read_members"]

APP_GROUP_LABEL = "appgroup.diktyo.x-k8s.io"
WORKLOAD_LABEL = "appgroup.diktyo.x-k8s.io.workload"
_HASH = "pod-template-hash"
_ENDED = ("Succeeded", "Failed")


class Member(NamedTuple):
    """Where a pod belongs.

    Parameters
    ----------
    app_group
        Its AppGroup.
    workload
        Its workload there; None where it is of none that is known, so that it has no dependencies.
    field
        The field of the pod that says so.
    """

    app_group: Key
    workload: str | None
    field: str


def read_members(
    pods: Iterable[PodManifest],
    applications: Mapping[Key, Application],
    replica_sets: Iterable[ReplicaSetManifest],
    findings: Findings,
) -> dict[Key, Member]:
    """Find the workload of every pod that has not ended; a pod in no AppGroup is absent.

    Parameters
    ----------
    pods
        The pods of the input, whoever places them.
    applications
        The AppGroups there are.
    replica_sets
        The links from pods to Deployments; where one is missing, its name tells.
    findings
        Takes AppGroups and workloads that are not there, and AppGroups of one name that cannot be told apart.
    """
    reader = _Reader(applications, replica_sets, findings)
    found = {}
    for pod in pods:
        if pod.status is None or pod.status.phase not in _ENDED:
            member = reader.member(pod)
            if member is not None:
                found[Key(pod.namespace, pod.name)] = member
    reader.note_lost()
    return found


def count_members(pods: Iterable[PodManifest], members: Mapping[Key, Member]) -> Counter[Key]:
    """Count the pods of every AppGroup that are there to stay, whoever places them."""
    staying = (Key(each.namespace, each.name) for each in pods if each.metadata.deletion_timestamp is None)
    return Counter(members[key].app_group for key in staying if key in members)


class _Reader:
    """Looks pods up among the AppGroups."""

    def __init__(
        self, applications: Mapping[Key, Application], replica_sets: Iterable[ReplicaSetManifest], findings: Findings
    ) -> None:
        self._applications = applications
        self._findings = findings
        self._named: dict[str, list[Key]] = defaultdict(list)
        self._owners: dict[tuple[str, str], list[Key]] = defaultdict(list)
        for key, application in applications.items():
            self._named[key.name].append(key)
            for owner in application.owners:
                self._owners[owner].append(key)
        self._above = {
            (each.namespace, each.name): controller(each.metadata) for each in (replica_sets if self._owners else ())
        }
        self._ambiguous: dict[tuple[Key, ...], set[str]] = defaultdict(set)
        self._without: dict[Key, set[str]] = defaultdict(set)

    def member(self, pod: PodManifest) -> Member | None:
        """Where one pod belongs; None: in no AppGroup."""
        labels = pod.metadata.labels or {}
        name = labels.get(APP_GROUP_LABEL)
        if not name:
            return self._by_owner(pod) if self._owners else None
        if name not in self._named:
            self._findings.missing(f"AppGroup {name}", f"Pod {pod.namespace}/{pod.name}")
            return None
        key = self._choose(self._named[name], pod)
        if key is None:
            return None
        return Member(key, self._workload(self._applications[key], pod), f"metadata.labels[{APP_GROUP_LABEL}]")

    def _workload(self, application: Application, pod: PodManifest) -> str | None:
        """Workload of a pod whose label names the AppGroup: that of its other label, else that of its owner."""
        name = (pod.metadata.labels or {}).get(WORKLOAD_LABEL) or None
        if name is None:
            makers = (application.owners.get(maker) for maker in self._makers(pod))
            name = next((found[0] for found in makers if found is not None), None)
        elif name not in application.app_group.workloads:
            target = f"Workload {name} of AppGroup {application.app_group.key}"
            self._findings.missing(target, f"Pod {pod.namespace}/{pod.name}")
            return None
        if name is None and application.app_group.dependencies:
            self._without[application.app_group.key].add(f"Pod {pod.namespace}/{pod.name}")
        return name

    def _by_owner(self, pod: PodManifest) -> Member | None:
        for maker in self._makers(pod):
            keys = [key for key in self._owners.get(maker, ()) if self._may_own(key, maker, pod)]
            if keys:
                key = self._choose(keys, pod)
                if key is None:
                    return None
                return Member(key, self._applications[key].owners[maker][0], "metadata.ownerReferences")
        return None

    def _may_own(self, key: Key, maker: tuple[str, str], pod: PodManifest) -> bool:
        """Whether the AppGroup can mean this pod's owner: where it names a namespace, it is the pod's."""
        namespace = self._applications[key].owners[maker][1]
        return namespace is None or namespace == pod.namespace

    def _makers(self, pod: PodManifest) -> Iterator[tuple[str, str]]:
        """Kind and name of who made a pod, a ReplicaSet's Deployment before it; of a pod without owner its own."""
        owner = controller(pod.metadata)
        if owner is None:
            yield "Pod", pod.name
            return
        if owner.kind == "ReplicaSet":
            yield from self._above_replica_set(pod, owner)
        yield owner.kind, owner.name

    def _above_replica_set(self, pod: PodManifest, owner: OwnerReference) -> Iterator[tuple[str, str]]:
        """Who made the ReplicaSet; the Deployment that its name tells of where it is not in the instance."""
        key = (pod.namespace, owner.name)
        if key not in self._above:
            ending = (pod.metadata.labels or {}).get(_HASH) or owner.name.rpartition("-")[2]
            yield "Deployment", owner.name.removesuffix(f"-{ending}")
            return
        above = self._above[key]
        if above is not None:
            yield above.kind, above.name

    def _choose(self, keys: list[Key], pod: PodManifest) -> Key | None:
        """Of AppGroups that a pod may mean the one in its namespace, else the only one, else none."""
        if len(keys) == 1:
            return keys[0]
        own = [key for key in keys if key.namespace == pod.namespace]
        if len(own) == 1:
            return own[0]
        self._ambiguous[tuple(own or keys)].add(f"Pod {pod.namespace}/{pod.name}")
        return None

    def note_lost(self) -> None:
        """Note AppGroups that could not be told apart, and pods of no workload, once for all pods of an AppGroup."""
        for keys, pods in self._ambiguous.items():
            names = ", ".join(map(str, keys))
            message = f"{counted(pods)} may be of any of the AppGroups {names}, and so of none"
            self._findings.add("AppGroupAmbiguous", f"AppGroup {keys[0]}", message)
        for key, pods in self._without.items():
            message = (
                f"AppGroup {key}: neither the label {WORKLOAD_LABEL} nor the owner of {counted(pods)} says which "
                f"workload it is of, so that it has no dependencies"
            )
            self._findings.add("PodWithoutWorkload", min(pods), message)
