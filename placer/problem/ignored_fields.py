"""Fields and marks that limit a pending pod and that no rule reads (``docs/hooks/field_uses.py``, ``marks``)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from placer.base.quantity import Resources, format_amount, from_nano
from placer.kube.base import LEFT_OUT, controller
from placer.kube.marks import (
    ANNOTATIONS_ONLY,
    KAI_GROUP,
    KAI_TOPOLOGIES,
    LABELS_ONLY,
    MARKS,
    SHARES,
    Meaning,
    Place,
    decide_nothing,
)
from placer.kube.unread_kinds import LIMITS
from placer.problem.findings import Findings, counted
from placer.problem.gangs import GROUP_ANNOTATIONS, GROUP_LABELS
from placer.problem.instance import Instance, PodState
from placer.problem.keys import GroupKey
from placer.problem.mark_gangs import VOLCANO_GANG
from placer.problem.pod_makers import Maker, PodMakers, all_workloads
from placer.problem.pod_states import is_daemon
from placer.problem.queues import QUEUE_ANNOTATION
from placer.problem.requests import pod_requests

if TYPE_CHECKING:
    from collections.abc import Container

    from placer.base.codes import FindingCode
    from placer.kube.base import NamespacedObject, Quantities
    from placer.kube.manifests import Objects
    from placer.kube.pod import PodManifest
    from placer.kube.volcano import QueueManifest
    from placer.problem.expansion import Expansion
    from placer.problem.findings import Findings
    from placer.problem.gangs import PodEntry
    from placer.problem.instance import Instance

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
    from placer.kube.apps import JobSpec
    from placer.kube.job_sets import JobSetSpec

    spec = getattr(owner, "spec", None)
    if not isinstance(spec, JobSpec | JobSetSpec):
        return
    managed = spec.managed_by
    if managed and managed != _OWN_CONTROLLERS[owner.kind]:
        yield "managedBy", f"names {managed}, which may make no pods in this cluster: they are made all the same"
    for job in (spec.replicated_jobs or ()) if isinstance(spec, JobSetSpec) else ():
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
    from placer.problem.gangs import COSCHEDULING, VOLCANO

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


_READ_HERE = [mark for mark in MARKS if "Pod" in mark.on and mark.place in (Place.LABEL, Place.ANNOTATION)]
_CODES: tuple[FindingCode, ...] = ("FieldIgnored", "PreferenceIgnored")
#: Mark of pods to the kinds of other objects on which it is read, too.
_ELSEWHERE: dict[str, set[str]] = {key: set() for key in (*GROUP_ANNOTATIONS, *GROUP_LABELS, QUEUE_ANNOTATION)}
for _mark in _READ_HERE:
    if not _mark.reading.startswith(_CODES):
        _ELSEWHERE.setdefault(_mark.name, set()).update(_mark.on)
#: Findings of ``unread_kinds`` cover these marks wherever they stand.
_QUEUES = frozenset(mark for limit in LIMITS for mark in (*limit.marks, *limit.plain_marks))
_NOTES_ONLY = ANNOTATIONS_ONLY | {QUEUE_ANNOTATION}
_GANGS = [
    mark.name
    for mark in _READ_HERE
    if mark.meaning in (Meaning.GANG, Meaning.REFUSED) and mark.name not in (*SHARES, *KAI_TOPOLOGIES)
]
_OF_GANGS = frozenset(_GANGS).difference((KAI_GROUP, *VOLCANO_GANG))


def note_marks_ignored(pods: Iterable[PodManifest], findings: Findings) -> None:
    """Note, once per key, marks of pods that decide nothing, and text left out."""
    for pod in pods:
        name, notes = f"Pod {pod.namespace}/{pod.name}", pod.metadata.annotations or {}
        if LEFT_OUT in notes:
            findings.several("FieldIgnored", name, " decides nothing", "text beyond 64 KiB of ")
        for _, words in _ignored(pod.metadata.labels or {}, notes):
            findings.several("FieldIgnored", name, " decides nothing", f"{words} of ")


def note_marks_around(instance: Instance, objects: Objects, findings: Findings) -> None:
    """Note marks of nodes and of queues that no rule reads."""
    asked = {pod.queue for pod in instance.pending}
    others = (*objects.nodes, *(each for each in objects.queues if each.name in asked)) if asked else ()
    for each in others:
        for _, words in decide_nothing(each.kind, each.metadata.labels, each.metadata.annotations):
            findings.several("FieldIgnored", f"{each.kind} {each.name}", " decides nothing", f"{words} of ")


def _ignored(labels: Mapping[str, str], notes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield from ((key, f"label {key}, which is read as an annotation only,") for key in labels.keys() & _NOTES_ONLY)
    yield from ((key, f"annotation {key}, which is read as a label only,") for key in notes.keys() & LABELS_ONLY)
    yield from decide_nothing("Pod", labels, notes)


def _words(labels: Mapping[str, str], notes: Mapping[str, str], keys: Container[str]) -> Iterator[tuple[str, str]]:
    for word, values in (("label", labels), ("annotation", notes)):
        yield from ((key, f"{word} {key}") for key in values if key in keys)


def note_marks_above(pods: Iterable[PodManifest], objects: Objects, findings: Findings) -> None:
    """Note workloads with a mark that their ``pods`` lack, and where nothing reads it."""
    own = {
        maker: found
        for maker, labels, notes in all_workloads(objects)
        if (found := [*_unread_above(maker, labels, notes)])
    }
    makers = PodMakers((*objects.replica_sets, *objects.jobs))
    for pod in pods if own else ():
        there = {**(pod.metadata.labels or {}), **(pod.metadata.annotations or {})}
        for maker in makers.with_sets(pod):
            for key, code, before, after in own.get(maker, ()):
                if key not in there:
                    findings.several(code, str(maker), f" decides nothing{after}", before)


def _unread_above(
    maker: Maker, labels: Mapping[str, str], notes: Mapping[str, str]
) -> Iterator[tuple[str, FindingCode, str, str]]:
    told = set(_QUEUES)
    preferences = decide_nothing("Pod", labels, notes, "PreferenceIgnored")
    for code, found in zip(_CODES, (_ignored(labels, notes), preferences), strict=True):
        for key, words in found:
            if key not in _QUEUES:
                told.add(key)
                yield key, code, f"{words} of ", ""
    elsewhere = ": it is read in the metadata of pods, as spec.template states it"
    for key, words in _words(labels, notes, _ELSEWHERE):
        if key not in told and maker.read_as.isdisjoint(_ELSEWHERE[key]):
            yield key, "FieldIgnored", f"{words} in the metadata of ", elsewhere


def note_marks_of_daemons(pods: Iterable[PodManifest], findings: Findings) -> None:
    """Note marks of gangs on pods that belong to their node, once per DaemonSet."""
    daemons = [pod for pod in pods if is_daemon(pod.metadata)]
    counts = Counter((_daemon(pod), words) for pod in daemons if (words := _of_gangs(pod)))
    for (maker, marks), count in counts.items():
        these = "" if maker.startswith("static") else f"{count:,} pod{'s' * (count > 1)} of "
        message = f"{marks} of {these}{maker}: in no gang, since each pod belongs to its node"
        findings.add("FieldIgnored", maker.removeprefix("static "), message)


def _of_gangs(pod: PodManifest) -> str:
    said = _words(pod.metadata.labels or {}, pod.metadata.annotations or {}, _OF_GANGS)
    return " and ".join(sorted(words for _, words in said))


def _daemon(pod: PodManifest) -> str:
    owner = controller(pod.metadata)
    if owner is not None and owner.kind == "DaemonSet":
        return f"DaemonSet {pod.namespace}/{owner.name}"
    return f"static Pod {pod.namespace}/{pod.name}"
