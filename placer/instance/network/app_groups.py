"""AppGroup objects to workloads and dependencies, shipped and as KEP-260 has them.

A workload is called by its ``selector``, which is what the label of its pods says; by its name where it has none. A
dependency that names its callee another way than the list of workloads does is led to the listed one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from placer.instance.findings import Findings
from placer.instance.network.api_groups import only_one_each
from placer.instance.network.model import AppGroup, Dependency
from placer.instance.pod import Key
from placer.kube import diktyo
from placer.quantity import from_nano

__all__ = ["BANDWIDTH", "GROUP", "Application", "read_app_groups", "workload_name"]

#: API group in use; should an AppGroup be there under an older group as well, the one under this group counts.
GROUP = "appgroup.diktyo.x-k8s.io"
#: Extended resource of a node; minBandwidth and bandwidthCapacity are counted in the same unit, bit/s.
BANDWIDTH = "network.aware.com/bandwidth"


@dataclass(frozen=True, slots=True)
class Application:
    """An AppGroup as read, with what only reading needs.

    Parameters
    ----------
    app_group
        What decides.
    owners
        Kind and name of a listed workload to its own name and the namespace that the object gives it, if any.
    spec
        The object's text.
    """

    app_group: AppGroup
    owners: Mapping[tuple[str, str], tuple[str, str | None]]
    spec: diktyo.AppGroupSpec


def read_app_groups(written: Iterable[diktyo.AppGroupManifest], findings: Findings) -> dict[Key, Application]:
    """Read AppGroups, sorted by namespace and name; what their lists cannot mean is a finding."""
    counting = only_one_each(written, "AppGroup", GROUP, findings)
    return {key: _Reader(key, each, findings).read() for key, each in counting.items()}


class _Reader:
    """Reads one AppGroup."""

    def __init__(self, key: Key, written: diktyo.AppGroupManifest, findings: Findings) -> None:
        self.key = key
        self.spec = spec = written.spec or diktyo.AppGroupSpec()
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
        self._note_twice()
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
                yield Dependency(
                    origin,
                    destination,
                    called.max_network_cost or 0,
                    None if asked is None else from_nano(BANDWIDTH, asked),
                )
        for destination, origins in unknown.items():
            message = (
                f"AppGroup {self.key}: {', '.join(origins)} depends on {destination}, which is not among its workloads"
            )
            self.findings.add("UnknownReference", f"AppGroup {self.key}", message)

    def _callee(self, ref: diktyo.AppGroupWorkload) -> str:
        """Name of the workload that a dependency means; the reference's own where no listed one fits."""
        name = workload_name(ref)
        if name in self.workloads:
            return name
        return self.by_reference.get((ref.kind, ref.name)) or self.by_name.get(ref.name) or name

    def _note_twice(self) -> None:
        names: Sequence[str] = [workload_name(each.workload) for each in self.listed]
        for name in sorted({name for name in names if names.count(name) > 1}):
            message = f"AppGroup {self.key} lists workload {name} more than once; its dependencies are taken together"
            self.findings.add("WorkloadTwice", f"AppGroup {self.key}", message)


def workload_name(ref: diktyo.AppGroupWorkload) -> str:
    """What a workload is called in its AppGroup, and by the label of its pods."""
    return ref.selector or ref.name
