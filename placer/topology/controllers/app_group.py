"""Status of an AppGroup: the order of its workloads, and its progress.

Unlike in the shipped controller (diktyo-io/appgroup-controller, 7c96ee2) the order is keyed by selector, of the present
spec, and whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from placer.kube.apps import ReplicaSetManifest
from placer.kube.pod import PodManifest
from placer.kube.scheduler_plugins import AppGroupManifest, AppGroupStatus, AppGroupWorkload
from placer.problem import Key
from placer.problem.app_groups import APP_GROUP_API, read_app_group_members, read_app_groups, workload_name
from placer.problem.findings import Findings
from placer.problem.workload_sorts import sort_workloads
from placer.topology.controllers.times import timestamp

Document = dict[str, Any]


def app_group_statuses(
    app_groups: Iterable[AppGroupManifest],
    pods: Iterable[PodManifest],
    replica_sets: Iterable[ReplicaSetManifest],
    now: datetime,
) -> dict[Key, Document]:
    """Status of every AppGroup by namespace and name, sorted; ``app_groups`` and ``pods`` must be complete."""
    # The group in use wins over an older one.
    written = sorted(app_groups, key=lambda each: each.group == APP_GROUP_API)
    all_pods = list(pods)
    members = read_app_group_members(all_pods, read_app_groups(written, Findings()), replica_sets, Findings())
    inside: dict[Key, list[PodManifest]] = {Key(each.namespace, each.name): [] for each in written}
    for pod in all_pods:
        member = members.get(Key(pod.namespace, pod.name))
        if member is not None:
            inside[member.app_group].append(pod)
    latest = {Key(each.namespace, each.name): each for each in written}
    return {key: app_group_status(latest[key], inside[key], now) for key in sorted(latest)}


def app_group_status(app_group: AppGroupManifest, pods: Iterable[PodManifest], now: datetime) -> Document:
    """Status of one AppGroup with its pods; ``now`` has a time zone.

    ``scheduleStartTime`` is kept. ``topologyOrder`` is sorted by selector, as the TopologicalSort plugin searches it.
    """
    present = list(pods)
    before = app_group.status or AppGroupStatus()
    order = _topology_order(app_group)
    started = before.schedule_start_time or min(filter(None, (_bound_at(pod, now) for pod in present)), default=None)
    calculated = before.topology_calculation_time if _is_same_order(before, order) else None
    status: Document = {
        "runningWorkloads": sum(_runs(pod) for pod in present),
        "topologyCalculationTime": timestamp(calculated or now),
        "topologyOrder": order,
    }
    return status if started is None else status | {"scheduleStartTime": timestamp(started)}


def _topology_order(app_group: AppGroupManifest) -> list[Document]:
    (application,) = read_app_groups([app_group], Findings()).values()
    calls: dict[str, list[str]] = {}
    for dependency in application.app_group.dependencies:
        calls.setdefault(dependency.origin, []).append(dependency.destination)
    found = sort_workloads(application.spec.topology_sorting_algorithm, application.app_group.workloads, calls)
    listed = (app_group.spec.workloads if app_group.spec is not None else None) or ()
    called = [each.workload for one in listed for each in one.dependencies or ()]
    references = {workload_name(each): each for each in [*called, *(one.workload for one in reversed(listed))]}
    return [{"workload": _document(references[name]), "index": index} for name, index in sorted(found.indices.items())]


def _document(workload: AppGroupWorkload) -> Document:
    fields = {
        "kind": workload.kind,
        "apiVersion": workload.api_version,
        "namespace": workload.namespace,
        "name": workload.name,
        "selector": workload.selector,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _bound_at(pod: PodManifest, now: datetime) -> datetime | None:
    if not pod.spec.node_name:
        return None
    status = pod.status
    conditions = (status.conditions if status is not None else None) or ()
    said = (each.last_transition_time for each in conditions if each.type == "PodScheduled" and each.status == "True")
    return next(said, None) or (status.start_time if status is not None else None) or now


def _is_same_order(before: AppGroupStatus, order: Iterable[Document]) -> bool:
    stands = {workload_name(each.workload): each.index for each in before.topology_order or ()}
    return stands == {entry["workload"].get("selector") or entry["workload"]["name"]: entry["index"] for entry in order}


def _runs(pod: PodManifest) -> bool:
    phase = pod.status.phase if pod.status is not None else None
    return phase == "Running" and pod.metadata.deletion_timestamp is None
