"""Fields that limit a pending pod and that no rule reads (``placer.kube.field_uses``)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from placer.instance.findings import Findings, counted
from placer.instance.keys import GroupKey
from placer.instance.problem import Instance, PodState
from placer.instance.requests import pod_requests
from placer.quantity import Resources, format_amount, from_nano

if TYPE_CHECKING:
    from placer.instance.expansion import Expansion
    from placer.instance.gangs import PodEntry
    from placer.kube.base import NamespacedObject, Quantities
    from placer.kube.pod import PodManifest
    from placer.kube.volcano import QueueManifest
    from placer.manifests import Objects

_SHARES = ("weight", "guarantee", "deserved", "priority")
_DISKS = {
    "aws_elastic_block_store": "awsElasticBlockStore",
    "azure_disk": "azureDisk",
    "cinder": "cinder",
    "gce_persistent_disk": "gcePersistentDisk",
    "iscsi": "iscsi",
    "rbd": "rbd",
}
#: Kind to the controller of its own, as ``spec.managedBy`` names it.
_OWN_CONTROLLERS = {"Job": "kubernetes.io/job-controller", "JobSet": "jobset.sigs.k8s.io/jobset-controller"}
#: How quotas spell requests, and the limits and counts that no pod asks for.
_REQUESTS, _NOT_ASKED = "requests.", ("limits.", "count/")


def note_ignored_fields(instance: Instance, objects: Objects, entries: Sequence[PodEntry], findings: Findings) -> None:
    """Note fields of pending pods, their groups and their queues that decide nothing."""
    _note_least_resources(instance, objects, entries, findings)
    asked = {name for pod in instance.pending for name in (pod.queue, *instance.queue_path(pod.queue)) if name}
    _note_queue_shares(asked, objects.queues, findings)
    _note_dequeueing(asked, objects.queues, findings)
    for pod in (entry.pod for entry in entries if entry.state is PodState.PENDING):
        for field, what in _of_pod(pod):
            findings.several("FieldIgnored", f"Pod {pod.namespace}/{pod.name}", f": {field} {what}")


def note_managed_elsewhere(made: Expansion, findings: Findings) -> None:
    """Note workloads whose pods other controllers make, and policies of parts of a set."""
    for owner in {id(each.owner): each.owner for each in made.blueprints}.values():
        subject = f"{owner.kind} {owner.namespace}/{owner.name}"
        for field, what in _of_workload(owner):
            findings.add("FieldIgnored", subject, f"{subject}: spec.{field} {what}")


def _of_workload(owner: NamespacedObject) -> Iterator[tuple[str, str]]:
    from placer.kube.apps import JobManifest
    from placer.kube.job_sets import JobSetManifest

    if not isinstance(owner, JobManifest | JobSetManifest):
        return
    managed = owner.spec.managed_by
    if managed and managed != _OWN_CONTROLLERS[owner.kind]:
        yield "managedBy", f"names {managed}, which may make no pods in this cluster: they are made all the same"
    for job in (owner.spec.replicated_jobs or ()) if isinstance(owner, JobSetManifest) else ():
        if job.scheduling is not None:
            yield f"replicatedJobs[{job.name}].scheduling", "decides nothing: spec.scheduling of the set does"


def _of_pod(pod: PodManifest) -> Iterator[tuple[str, str]]:
    name = pod.spec.runtime_class_name
    if name and pod.metadata.uid is None and not pod.spec.overhead:  # an API server writes them into the pods it admits
        yield (
            "spec.runtimeClassName",
            f"{name} decides nothing: overhead and node selector of its RuntimeClass are not read",
        )
    for volume in pod.spec.volumes or ():
        for attribute, field in _DISKS.items():
            if getattr(volume, attribute) is not None:
                yield f"spec.volumes[].{field}", "decides nothing: how many pods and nodes may use the disk is not read"


# ------------------------------------------------------------------------------------------------------------- groups


def _note_least_resources(
    instance: Instance, objects: Objects, entries: Iterable[PodEntry], findings: Findings
) -> None:
    least = dict(_least_resources(instance, objects))
    members: dict[GroupKey, list[Resources]] = defaultdict(list)
    for entry in entries if least else ():
        if entry.group in least:
            members[entry.group].append(pod_requests(entry.pod.spec))
    for key, wanted in least.items():
        more = list(_more(wanted, members[key]))
        if more:
            pods = f"{len(members[key]):,} pod{'' if len(members[key]) == 1 else 's'}"
            asked = f"{key}: spec.minResources asks for {more[0][0]}, its {pods} for {more[0][1]}"
            others = f" ({len(more) - 1} more likewise)" if len(more) > 1 else ""
            findings.add("FieldIgnored", str(key), f"{asked}{others}, and decides nothing: minMember does")


def _least_resources(instance: Instance, objects: Objects) -> Iterator[tuple[GroupKey, Quantities]]:
    from placer.instance.gangs import COSCHEDULING, VOLCANO

    by_api = ((VOLCANO, objects.pod_groups), (COSCHEDULING, objects.coscheduling_pod_groups))
    for api_group, written in by_api:
        for each in written:
            key = GroupKey(api_group, each.namespace, each.name)
            wanted = each.spec.min_resources if each.spec is not None else None
            if wanted and key in instance.groups and instance.groups[key].pending:
                yield key, wanted


def _more(wanted: Quantities, asked: Sequence[Resources]) -> Iterator[tuple[str, str]]:
    for name, nano in sorted(wanted.items()):
        resource = name.removeprefix(_REQUESTS)
        if resource.startswith(_NOT_ASKED):
            continue
        amount, total = from_nano(resource, nano), sum(each[resource] for each in asked)
        if amount > total:
            yield f"{resource} {format_amount(resource, amount)}", format_amount(resource, total)


# ------------------------------------------------------------------------------------------------------------- queues


def _note_queue_shares(asked: set[str], queues: Iterable[QueueManifest], findings: Findings) -> None:
    given = {(field, f"Queue {each.name}") for each in queues for field in _shares(each, each.name in asked)}
    if asked and given:
        subjects = {subject for _, subject in given}
        fields = [field for field in _SHARES if any(each == field for each, _ in given)]
        verb = "decides" if len(given) == 1 else "decide"
        what = f"{' and '.join(fields)} of {counted(subjects)} {verb} nothing yet"
        findings.add("QueueShareIgnored", min(subjects), f"{what}: priority of pods and capability do")


def _shares(queue: QueueManifest, asked: bool) -> Iterator[str]:
    spec = queue.spec
    if spec is None:
        return
    if _is_something(spec.guarantee.resource if spec.guarantee is not None else None):
        yield "guarantee"
    if asked:
        given = {"weight": spec.weight not in (None, 1), "deserved": _is_something(spec.deserved)}
        yield from (field for field, is_given in (*given.items(), ("priority", spec.priority)) if is_given)


def _is_something(amounts: Quantities | None) -> bool:
    return any((amounts or {}).values())


def _note_dequeueing(asked: set[str], queues: Iterable[QueueManifest], findings: Findings) -> None:
    named = [(each.name, each.spec.dequeue_strategy or "") for each in queues if each.spec is not None]
    strict = {f"Queue {name}" for name, strategy in named if name in asked and strategy.endswith("fifo")}
    if strict:
        message = f"{counted(strict)}: spec.dequeueStrategy fifo decides nothing: smaller groups pass those that wait"
        findings.add("FieldIgnored", min(strict), message)
