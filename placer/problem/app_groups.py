"""AppGroups: workloads, called by ``selector``, else by name (KEP-260), dependencies, and pods of workloads."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from placer.base.quantity import from_nano
from placer.kube.base import NamespacedObject, controller
from placer.kube.pod import TERMINAL_PHASES
from placer.problem.communication import AppGroup, Dependency
from placer.problem.findings import Findings, counted
from placer.problem.keys import Key
from placer.problem.pod_makers import PodMakers

if TYPE_CHECKING:
    from placer.kube.apps import ReplicaSetManifest
    from placer.kube.pod import PodManifest
    from placer.kube.scheduler_plugins import AppGroupManifest, AppGroupSpec, AppGroupWorkload

Written = TypeVar("Written", bound=NamespacedObject)


def only_one_each(written: Iterable[Written], kind: str, in_use: str, findings: Findings) -> dict[Key, Written]:
    """Keep one object of each name, sorted: of the API group ``in_use``, else the last by API group."""
    same: dict[Key, list[Written]] = defaultdict(list)
    for each in sorted(written, key=lambda each: (each.namespace, each.name, each.group != in_use, each.group)):
        same[Key(each.namespace, each.name)].append(each)
    return {key: _one(key, each, kind, in_use, findings) for key, each in same.items()}


def _one(key: Key, same: list[Written], kind: str, in_use: str, findings: Findings) -> Written:
    counts = same[0] if same[0].group == in_use else same[-1]
    others = sorted({each.group for each in same if each is not counts})
    if others:
        subject = f"{kind} {key}"
        rest = f"{', '.join(others)}, which {'is' if len(others) == 1 else 'are'} not read"
        message = f"{subject} is there under the API groups {counts.group}, which counts, and {rest}"
        findings.add("SeveralApiGroups", subject, message)
    return counts


APP_GROUP_API = "appgroup.diktyo.x-k8s.io"
#: Extended resource of a node; minBandwidth and bandwidthCapacity are counted in the same unit, bit/s.
BANDWIDTH = "network.aware.com/bandwidth"


@dataclass(frozen=True, slots=True)
class Application:
    """An AppGroup as read; ``owners``: kind and name of a workload to its own name and namespace."""

    app_group: AppGroup
    owners: Mapping[tuple[str, str], tuple[str, str | None]]
    spec: AppGroupSpec


def read_app_groups(written: Iterable[AppGroupManifest], findings: Findings) -> dict[Key, Application]:
    """Read AppGroups, sorted by key."""
    counting = only_one_each(written, "AppGroup", APP_GROUP_API, findings)
    return {key: _AppGroupReader(key, each, findings).read() for key, each in counting.items()}


class _AppGroupReader:
    def __init__(self, key: Key, written: AppGroupManifest, findings: Findings) -> None:
        from placer.kube.scheduler_plugins import AppGroupSpec

        self.key = key
        self.spec = spec = written.spec or AppGroupSpec()
        self.stored = (written.status.topology_order if written.status is not None else None) or ()
        self.findings = findings
        self.listed = spec.workloads or ()
        self.workloads = dict.fromkeys(workload_name(each.workload) for each in self.listed)
        self.by_reference: dict[tuple[str, str], str] = {}
        self.by_name: dict[str, str] = {}
        for each in self.listed:
            ref = each.workload
            self.by_reference.setdefault((ref.kind, ref.name), workload_name(ref))
            self.by_name.setdefault(ref.name, workload_name(ref))

    def read(self) -> Application:
        names = Counter(workload_name(each.workload) for each in self.listed)
        for name in sorted(name for name, times in names.items() if times > 1):
            message = f"AppGroup {self.key} lists workload {name} more than once; its dependencies are taken together"
            self.findings.add("WorkloadTwice", f"AppGroup {self.key}", message)
        dependencies = tuple(self._dependencies())
        called = dict.fromkeys(each.destination for each in dependencies)
        return Application(
            AppGroup(
                self.key,
                tuple(self.workloads | called),
                dependencies,
                self.spec.topology_sorting_algorithm or "",
                {workload_name(each.workload): each.index for each in self.stored if each.index is not None},
            ),
            {
                (each.workload.kind, each.workload.name): (workload_name(each.workload), each.workload.namespace)
                for each in reversed(self.listed)
            },
            self.spec,
        )

    def _dependencies(self) -> Iterator[Dependency]:
        unknown: dict[str, list[str]] = defaultdict(list)
        for each in self.listed:
            for called in each.dependencies or ():
                origin, destination = workload_name(each.workload), self._callee(called.workload)
                if destination not in self.workloads:
                    unknown[destination].append(origin)
                asked = called.min_bandwidth
                least = None if asked is None else from_nano(BANDWIDTH, asked)
                yield Dependency(origin, destination, called.max_network_cost or 0, least)
        for destination, origins in unknown.items():
            message = (
                f"AppGroup {self.key}: {', '.join(origins)} depends on {destination}, which is not among its workloads"
            )
            self.findings.add("UnknownReference", f"AppGroup {self.key}", message)

    def _callee(self, ref: AppGroupWorkload) -> str:
        name = workload_name(ref)
        if name in self.workloads:
            return name
        return self.by_reference.get((ref.kind, ref.name)) or self.by_name.get(ref.name) or name


def workload_name(ref: AppGroupWorkload) -> str:
    """Name of a workload in its AppGroup, and in the label of its pods."""
    return ref.selector or ref.name


APP_GROUP_LABEL = "appgroup.diktyo.x-k8s.io"
WORKLOAD_LABEL = "appgroup.diktyo.x-k8s.io.workload"


class AppGroupMember(NamedTuple):
    """``workload`` is None where the AppGroup does not know it."""

    app_group: Key
    workload: str | None


def read_app_group_members(
    pods: Iterable[PodManifest],
    applications: Mapping[Key, Application],
    replica_sets: Iterable[ReplicaSetManifest],
    findings: Findings,
) -> dict[Key, AppGroupMember]:
    """Find the workload of every pod in an AppGroup that has not ended."""
    reader = _WorkloadFinder(applications, replica_sets, findings)
    found = {}
    for pod in pods:
        if pod.status is None or pod.status.phase not in TERMINAL_PHASES:
            member = reader.member(pod)
            if member is not None:
                found[Key(pod.namespace, pod.name)] = member
    reader.note_lost()
    return found


def count_app_group_members(pods: Iterable[PodManifest], members: Mapping[Key, AppGroupMember]) -> Counter[Key]:
    """Pods of every AppGroup that have not ended and are not being deleted."""
    if not members:
        return Counter()
    staying = (Key(each.namespace, each.name) for each in pods if each.metadata.deletion_timestamp is None)
    return Counter(members[key].app_group for key in staying if key in members)


class _WorkloadFinder:
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
        self._pod_makers = PodMakers(replica_sets if self._owners else ())
        self._ambiguous: dict[tuple[Key, ...], set[str]] = defaultdict(set)
        self._without: dict[Key, set[str]] = defaultdict(set)

    def member(self, pod: PodManifest) -> AppGroupMember | None:
        labels = pod.metadata.labels or {}
        name = labels.get(APP_GROUP_LABEL)
        if not name:
            return self._by_owner(pod) if self._owners else None
        if name not in self._named:
            self._findings.missing(f"AppGroup {name}", f"Pod {pod.namespace}/{pod.name}")
            return None
        key = self._choose(self._named[name], pod)
        return None if key is None else AppGroupMember(key, self._workload(self._applications[key], pod))

    def _workload(self, application: Application, pod: PodManifest) -> str | None:
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

    def _by_owner(self, pod: PodManifest) -> AppGroupMember | None:
        for maker in self._makers(pod):
            spaces = ((key, self._applications[key].owners[maker][1]) for key in self._owners.get(maker, ()))
            keys = [key for key, namespace in spaces if namespace in (None, pod.namespace)]
            if keys:
                key = self._choose(keys, pod)
                return None if key is None else AppGroupMember(key, self._applications[key].owners[maker][0])
        return None

    def _makers(self, pod: PodManifest) -> Iterator[tuple[str, str]]:
        if controller(pod.metadata) is None:
            yield "Pod", pod.name
        yield from ((maker.kind, maker.name) for maker in self._pod_makers.of(pod))

    def _choose(self, keys: list[Key], pod: PodManifest) -> Key | None:
        if len(keys) == 1:
            return keys[0]
        own = [key for key in keys if key.namespace == pod.namespace]
        if len(own) == 1:
            return own[0]
        self._ambiguous[tuple(own or keys)].add(f"Pod {pod.namespace}/{pod.name}")
        return None

    def note_lost(self) -> None:
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
