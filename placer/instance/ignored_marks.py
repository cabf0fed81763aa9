"""Marks that decide nothing where they stand: on the wrong side, above the pods, on pods that belong to their node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from placer.instance.gangs import GROUP_ANNOTATIONS, GROUP_LABELS
from placer.instance.pod_makers import Maker, PodMakers, all_workloads
from placer.instance.pod_states import is_daemon
from placer.instance.queues import QUEUE_ANNOTATION
from placer.kube.base import controller
from placer.kube.marks import (
    ANNOTATIONS_ONLY,
    FIELD_IGNORED,
    KAI_GROUP,
    LABELS_ONLY,
    MARKS,
    SHARES,
    Meaning,
    Place,
)
from placer.kube.unread_kinds import LIMITS

if TYPE_CHECKING:
    from collections.abc import Container

    from placer.instance.findings import Findings
    from placer.kube.pod import PodManifest
    from placer.manifests import Objects

__all__ = ["note_marks_above", "note_marks_ignored", "note_marks_of_daemons"]

_READ_HERE = [mark for mark in MARKS if "Pod" in mark.on and mark.place in (Place.LABEL, Place.ANNOTATION)]
#: Mark of pods to the kinds of other objects on which it is read, too.
_ELSEWHERE: dict[str, set[str]] = {key: set() for key in (*GROUP_ANNOTATIONS, *GROUP_LABELS, QUEUE_ANNOTATION)}
for _mark in _READ_HERE:
    _ELSEWHERE.setdefault(_mark.name, set()).update(_mark.on)
#: Marks of queues: what is not read of these is a finding of ``unread_kinds``, wherever they stand.
_QUEUES = frozenset(mark for limit in LIMITS for mark in limit.marks)
_UNREAD_NOTES = [mark.name for mark in _READ_HERE if mark.reading == FIELD_IGNORED]
_GANGS = [
    mark.name for mark in _READ_HERE if mark.meaning in (Meaning.GANG, Meaning.REFUSED) and mark.name not in SHARES
]
_OF_GANGS = frozenset(_GANGS).difference((KAI_GROUP,))


def note_marks_ignored(pods: Iterable[PodManifest], findings: Findings) -> None:
    """Note, once per key, marks of pods that decide nothing: on the wrong side, or anywhere."""
    for pod in pods:
        labels, notes = pod.metadata.labels or {}, pod.metadata.annotations or {}
        said = [f"label {key}, which is read as an annotation only," for key in labels.keys() & ANNOTATIONS_ONLY]
        said += [f"annotation {key}, which is read as a label only," for key in notes.keys() & LABELS_ONLY]
        said += [f"annotation {key}" for key in _UNREAD_NOTES if key in notes]
        for words in said:
            findings.several("FieldIgnored", f"Pod {pod.namespace}/{pod.name}", " decides nothing", f"{words} of ")


def _words(labels: Mapping[str, str], notes: Mapping[str, str], keys: Container[str]) -> Iterator[tuple[str, str]]:
    """The marks among labels and annotations: key, and what it is called."""
    for word, values in (("label", labels), ("annotation", notes)):
        yield from ((key, f"{word} {key}") for key in values if key in keys)


def note_marks_above(pods: Iterable[PodManifest], objects: Objects, findings: Findings) -> None:
    """Note, once per mark, workloads that bear a mark of pods which their ``pods`` lack, and where nothing reads it."""
    own = {
        maker: found
        for maker, labels, notes in all_workloads(objects)
        if (found := _unread_above(maker, _words(labels, notes, _ELSEWHERE)))
    }
    makers = PodMakers((*objects.replica_sets, *objects.jobs))
    for pod in pods if own else ():
        there = {**(pod.metadata.labels or {}), **(pod.metadata.annotations or {})}
        for maker in makers.with_sets(pod):
            for key, words in own.get(maker, ()):
                if key not in there:
                    where = " decides nothing: it is read in the metadata of pods, as spec.template states it"
                    findings.several("FieldIgnored", str(maker), where, f"{words} in the metadata of ")


def _unread_above(maker: Maker, marks: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Marks of a workload that neither decide nor are findings of their own; a Job of Volcano's has a group's, too."""
    kinds = {maker.kind, maker.marked_as} | ({"PodGroup"} if maker.group == "batch.volcano.sh" else set())
    return [(key, words) for key, words in marks if key not in _QUEUES and kinds.isdisjoint(_ELSEWHERE[key])]


def note_marks_of_daemons(pods: Iterable[PodManifest], findings: Findings) -> None:
    """Note marks of gangs on pods that are in none since they belong to their node, once per DaemonSet.

    Objects that such pods name are a finding of ``gangs``.
    """
    daemons = [pod for pod in pods if is_daemon(pod.metadata)]
    counts = Counter((_daemon(pod), words) for pod in daemons if (words := _of_gangs(pod)))
    for (maker, marks), count in counts.items():
        these = "" if maker.startswith("static") else f"{count:,} pod{'s' * (count > 1)} of "
        message = f"{marks} of {these}{maker}: in no gang, since each pod belongs to its node"
        findings.add("FieldIgnored", maker.removeprefix("static "), message)


def _of_gangs(pod: PodManifest) -> str:
    """The marks of gangs that a pod bears, in words; empty: none."""
    said = _words(pod.metadata.labels or {}, pod.metadata.annotations or {}, _OF_GANGS)
    return " and ".join(sorted(words for _, words in said))


def _daemon(pod: PodManifest) -> str:
    """The DaemonSet of a pod, or a static pod itself."""
    owner = controller(pod.metadata)
    if owner is not None and owner.kind == "DaemonSet":
        return f"DaemonSet {pod.namespace}/{owner.name}"
    return f"static Pod {pod.namespace}/{pod.name}"
