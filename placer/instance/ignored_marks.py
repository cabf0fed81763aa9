"""Marks that decide nothing: anywhere, on the wrong side, above the pods, on pods of their node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from placer.instance.gangs import GROUP_ANNOTATIONS, GROUP_LABELS
from placer.instance.mark_gangs import VOLCANO_GANG
from placer.instance.pod_makers import Maker, PodMakers, all_workloads
from placer.instance.pod_states import is_daemon
from placer.instance.queues import QUEUE_ANNOTATION
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

if TYPE_CHECKING:
    from collections.abc import Container

    from placer.codes import FindingCode
    from placer.instance.findings import Findings
    from placer.instance.problem import Instance
    from placer.kube.pod import PodManifest
    from placer.manifests import Objects

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
