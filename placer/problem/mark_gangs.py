"""Gangs that marks of other systems declare (:mod:`placer.kube.marks`): names, minimums, refusals (C4, C5).

A mark that cannot be read makes its gang invalid, or its pod unsupported, since half a gang is worse than none. Source:
Koordinator ``apis/extension``; Kueue ``pkg/controller/jobs/pod``; YuniKorn ``k8shim pkg/cache``; Volcano
``pkg/controllers/podgroup``; Grove ``operator/api/common``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from placer.base.text import shown
from placer.kube import marks
from placer.kube.base import Metadata, controller
from placer.kube.marks import Place
from placer.problem.findings import Findings
from placer.problem.keys import GroupKey, Key
from placer.problem.pod_states import Maker, PodMakers, all_workloads, is_daemon

if TYPE_CHECKING:
    from placer.kube.manifests import Objects
    from placer.kube.pod import PodManifest
    from placer.kube.volcano import GangTopologySpec
    from placer.kube.workload_sets import JobSetManifest

T = TypeVar("T")

VOLCANO = "scheduling.volcano.sh"
#: Stand-ins for an API group in the keys of gangs that marks declare.
LIGHT, KOORDINATOR = "pod-group.scheduling.sigs.k8s.io", "gang.scheduling.koordinator.sh"
KUEUE, YUNIKORN, GROVE = "kueue.x-k8s.io", "yunikorn.apache.org", "scheduler.grove.io"

#: Annotations for which Volcano's controller makes a PodGroup that is more than its pods one by one.
VOLCANO_GANG = (marks.VOLCANO_GROUP_MINIMUM, marks.VOLCANO_TOPOLOGY_MODE, marks.VOLCANO_TOPOLOGY_TIER)
_LABELS = frozenset((marks.LIGHT_NAME, marks.KUEUE_GROUP, marks.GROVE_GANG))
_NOTES = frozenset(
    (
        *(marks.KOORDINATOR_GANG, marks.YUNIKORN_TASK_GROUP, marks.YUNIKORN_TASK_GROUPS),
        *VOLCANO_GANG,
    )
)
#: Marks that say how large a gang is, and so that there is one, with the mark that names it.
_NAMES = {
    marks.LIGHT_MINIMUM: (Place.LABEL, marks.LIGHT_NAME),
    marks.KOORDINATOR_MINIMUM: (Place.ANNOTATION, marks.KOORDINATOR_GANG),
    marks.KUEUE_TOTAL: (Place.ANNOTATION, marks.KUEUE_GROUP),
}
_NAMING = (
    (Place.LABEL, marks.LIGHT_NAME),
    (Place.ANNOTATION, marks.KOORDINATOR_GANG),
    (Place.LABEL, marks.KUEUE_GROUP),
    (Place.ANNOTATION, marks.YUNIKORN_TASK_GROUP),
    (Place.ANNOTATION, marks.KAI_GROUP),
    (Place.LABEL, marks.GROVE_GANG),
)
_ADDING = frozenset(
    (
        *(marks.KOORDINATOR_MATCH, marks.KOORDINATOR_MODE, marks.KOORDINATOR_GROUPS, marks.LIGHT_GROUPS),
        *(marks.LIGHT_MATCH, marks.KOORDINATOR_TOPOLOGY, *marks.SLICES),
    )
)
_LOOKED_AT = frozenset((*_NAMES, *(key for _, key in _NAMING), *_ADDING))
_APPLICATIONS = (
    (Place.LABEL, marks.YUNIKORN_APP_ID),
    (Place.ANNOTATION, marks.YUNIKORN_APP_ID),
    (Place.LABEL, marks.YUNIKORN_APPLICATION),
    (Place.ANNOTATION, marks.YUNIKORN_APPLICATION),
    (Place.LABEL, marks.SPARK_APPLICATION),
)
_GANG_ID = re.compile(r"[^/]+/[^/]+")
_NUMBER = re.compile(r"\+?[0-9]{1,12}")
_MOST = 2**31


class _TaskGroup(msgspec.Struct, rename="camel"):
    name: str
    min_member: int
    node_selector: object = None
    tolerations: object = None
    affinity: object = None

    @property
    def ignored(self) -> str:
        said = {"nodeSelector": self.node_selector, "tolerations": self.tolerations, "affinity": self.affinity}
        return " and ".join(field for field, value in said.items() if value)


class _Layer(msgspec.Struct, rename="camel"):
    strategy: str | None = None


class _GatherSpec(msgspec.Struct, rename="camel"):
    gather_strategy: list[_Layer] | None = None


class Bearer(NamedTuple):
    """An object that may bear marks, and its gang."""

    gang: GroupKey | None
    subject: str
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class MarkedGang:
    """A gang that marks of pods declare; the API group of ``key`` is a stand-in for the system.

    ``roles``: minimum per role. ``stated``: the mark of the minimum. ``invalid``: the mark that cannot be read.
    ``pods``: those that bear the mark and have not failed, sorted.
    """

    key: GroupKey
    min_member: int = 0
    roles: Mapping[str, int] = field(default_factory=dict)
    stated: str = ""
    invalid: str | None = None
    unsupported: str = ""
    pods: tuple[PodManifest, ...] = ()
    topology: GangTopologySpec | None = None


def gangs_named(metadata: Metadata, namespace: str) -> list[GroupKey]:
    """The gangs that the marks of a pod name, those that count first."""
    labels, notes = metadata.labels or {}, metadata.annotations or {}
    if _LABELS.isdisjoint(labels) and _NOTES.isdisjoint(notes):
        return []
    names = {
        LIGHT: labels.get(marks.LIGHT_NAME),
        KOORDINATOR: notes.get(marks.KOORDINATOR_GANG),
        KUEUE: labels.get(marks.KUEUE_GROUP),
        YUNIKORN: _application(metadata, namespace),
        VOLCANO: None if notes.keys().isdisjoint(VOLCANO_GANG) else _owner_group(metadata),
        GROVE: labels.get(marks.GROVE_GANG),
    }
    return [GroupKey(group, namespace, name) for group, name in names.items() if name]


def _application(metadata: Metadata, namespace: str) -> str | None:
    """YuniKorn has one application per namespace for pods that name none."""
    notes = metadata.annotations or {}
    if not (notes.get(marks.YUNIKORN_TASK_GROUP) or notes.get(marks.YUNIKORN_TASK_GROUPS) is not None):
        return None
    named = (_value(metadata, place, key) for place, key in _APPLICATIONS)
    return next(filter(None, named), f"yunikorn-{namespace}-autogen")


def _owner_group(metadata: Metadata) -> str:
    owner = controller(metadata)
    if owner is None or not owner.controller:
        return f"podgroup-{metadata.uid or f'pod-{metadata.name}'}"
    return f"podgroup-{owner.uid or f'{owner.kind.lower()}-{owner.name}'}"


def task_group(metadata: Metadata) -> str:
    """Role of a pod in the gang of its application."""
    return (metadata.annotations or {}).get(marks.YUNIKORN_TASK_GROUP, "")


def _value(metadata: Metadata, place: Place, key: str) -> str | None:
    values = metadata.labels if place is Place.LABEL else metadata.annotations
    return values.get(key) if values else None


def inherited_marks(objects: Objects, pods: Iterable[PodManifest]) -> tuple[PodManifest, ...]:
    """Give pods the marks of their owners, as Volcano's controller and KAI do."""
    written = [(maker, notes) for maker, _, notes in all_workloads(objects)]
    written += [(Maker.of(each), each.metadata.annotations or {}) for each in objects.replica_sets]
    stated = {maker: found for maker, notes in written if (found := _inherited(maker, notes))}
    for child, notes in _of_children(objects.job_sets):
        stated[child] = {**stated.get(child, {}), **_inherited(child, notes)}
    makers = PodMakers((*objects.replica_sets, *objects.jobs))
    return tuple(pods) if not stated else tuple(_inheriting(pod, stated, makers) for pod in pods)


_INHERITED = [mark for mark in marks.MARKS if mark.name in (marks.VOLCANO_GROUP_MINIMUM, *marks.KAI_TOPOLOGIES)]


def _inherited(maker: Maker, notes: Mapping[str, str]) -> dict[str, str]:
    names = (mark.name for mark in _INHERITED if not maker.read_as.isdisjoint(mark.on)) if notes else ()
    return {name: notes[name] for name in names if name in notes}


def _of_children(job_sets: Iterable[JobSetManifest]) -> Iterator[tuple[Maker, Mapping[str, str]]]:
    for job_set in job_sets:
        for replicated in job_set.spec.replicated_jobs or ():
            metadata = replicated.template.metadata
            notes = (metadata.annotations if metadata is not None else None) or {}
            for index in range(1 if replicated.replicas is None else replicated.replicas) if notes else ():
                yield Maker("batch", "Job", job_set.namespace, f"{job_set.name}-{replicated.name}-{index}"), notes


def _inheriting(pod: PodManifest, stated: Mapping[Maker, Mapping[str, str]], makers: PodMakers) -> PodManifest:
    notes = pod.metadata.annotations or {}
    found = dict[str, str]()
    for maker in makers.with_sets(pod):
        found.update(stated.get(maker, {}))
    if found.keys() <= notes.keys():
        return pod
    own = msgspec.structs.replace(pod.metadata, annotations={**found, **notes})
    return msgspec.structs.replace(pod, metadata=own)


# ------------------------------------------------------------------------------------------------ minimums of gangs


def read_marks(pods: Iterable[PodManifest], findings: Findings) -> Iterator[MarkedGang]:
    """Read every gang that marks of pods declare."""
    bearers: dict[GroupKey, list[PodManifest]] = {}
    for pod in pods:
        for key in gangs_named(pod.metadata, pod.namespace):
            if not is_daemon(pod.metadata):
                bearers.setdefault(key, []).append(pod)
    for key in sorted(bearers):
        yield _GangMarks(key, sorted(bearers[key], key=lambda pod: pod.name), findings).read()


class _GangMarks:
    def __init__(self, key: GroupKey, pods: Sequence[PodManifest], findings: Findings) -> None:
        self._key, self._all, self._findings = key, pods, findings
        self._pods = tuple(filter(_stands, pods))
        self._fault: str | None = None

    def read(self) -> MarkedGang:
        if self._key.api_group == GROVE:
            wanting = f"label {marks.GROVE_GANG}: {self._key.name}, and no PodGang of {GROVE} is read"
            return MarkedGang(self._key, max(1, len(self._pods)), unsupported=wanting, pods=self._pods)
        if self._key.api_group == YUNIKORN:
            return self._application()
        if self._key.api_group == VOLCANO:
            return self._owned()
        stated, least = self._minimum()
        return MarkedGang(self._key, least, stated=stated, invalid=self._fault, pods=self._pods)

    def _owned(self) -> MarkedGang:
        from placer.kube.volcano import GangTopologySpec

        values = {mark: self._stated(mark) for mark in VOLCANO_GANG}
        least = self._number(Place.ANNOTATION, marks.VOLCANO_GROUP_MINIMUM)
        topology = None
        if values[marks.VOLCANO_TOPOLOGY_MODE] or values[marks.VOLCANO_TOPOLOGY_TIER]:
            modes = {text.lower() for text in values[marks.VOLCANO_TOPOLOGY_MODE]}
            tier = self._number(Place.ANNOTATION, marks.VOLCANO_TOPOLOGY_TIER, pick=min)
            topology = GangTopologySpec(mode="soft" if modes == {"soft"} else "hard", highest_tier_allowed=tier)
        stated = next(mark for mark, texts in values.items() if texts)
        least = 1 if least is None else least
        return MarkedGang(self._key, least, stated=stated, invalid=self._fault, pods=self._pods, topology=topology)

    def _minimum(self) -> tuple[str, int]:
        group = self._key.api_group
        if group == LIGHT:
            return marks.LIGHT_MINIMUM, self._needed(Place.LABEL, marks.LIGHT_MINIMUM)
        if group == KUEUE:
            total = self._needed(Place.ANNOTATION, marks.KUEUE_TOTAL, least=1)
            fast = any((pod.metadata.annotations or {}).get(marks.KUEUE_FAST) == "true" for pod in self._pods)
            return (marks.KUEUE_FAST, 1) if fast else (marks.KUEUE_TOTAL, total)
        least = self._number(Place.ANNOTATION, marks.KOORDINATOR_MINIMUM)
        total = self._number(Place.ANNOTATION, marks.KOORDINATOR_TOTAL) or 0
        if total > len(self._pods):  # until they exist none of them is placed, as if all were needed
            return marks.KOORDINATOR_TOTAL, total
        return marks.KOORDINATOR_MINIMUM, 1 if least is None else least

    def _needed(self, place: Place, key: str, least: int = 0) -> int:
        found = self._number(place, key, least)
        if found is None and self._fault is None:
            self._fault = (
                f"{place.value} {key}: found on none of the pods of {self._key}, expected a number of at least {least}"
            )
        return found or 0

    def _number(self, place: Place, key: str, least: int = 0, pick: Callable[[Iterable[int]], int] = max) -> int | None:
        found: dict[int, str] = {}
        for pod in self._pods:
            text = _value(pod.metadata, place, key)
            if text is None:
                continue
            number = _number(text)
            if number is None or number < least:
                self._wrong(f"{place.value} {key}", pod, _quoted(text), f"a number of at least {least}")
                return None
            found.setdefault(number, f"Pod {pod.namespace}/{pod.name}")
        if len(found) > 1:
            which = "least" if pick is min else "largest"
            said = " and ".join(f"{number} ({found[number]})" for number in (max(found), min(found)))
            self._differ(key, said, which)
        return pick(found) if found else None

    def _application(self) -> MarkedGang:
        roles = self._roles(self._stated(marks.YUNIKORN_TASK_GROUPS))
        if self._fault is None:
            self._check_roles(roles)
        total = sum(roles.values())
        if total >= _MOST:
            self._fault = (
                f"annotation {marks.YUNIKORN_TASK_GROUPS}: found {total:,} pods, expected fewer than {_MOST:,}"
            )
        stated = f"minMember of all task groups in annotation {marks.YUNIKORN_TASK_GROUPS}"
        if self._fault is not None:
            return MarkedGang(self._key, stated=stated, invalid=self._fault, pods=self._pods)
        return MarkedGang(self._key, total, dict(sorted(roles.items())), stated, pods=self._pods)

    def _stated(self, key: str) -> dict[str, PodManifest]:
        texts: dict[str, PodManifest] = {}
        for pod in self._all:
            text = _value(pod.metadata, Place.ANNOTATION, key)
            if text is not None:
                texts.setdefault(text, pod)
        return texts

    def _check_roles(self, roles: Mapping[str, int]) -> None:
        for pod in self._pods:
            role = task_group(pod.metadata)
            if role and role not in roles:
                known = f"one of {', '.join(sorted(roles))}" if roles else "one"
                expected = f"{known} that an annotation {marks.YUNIKORN_TASK_GROUPS} of the application states"
                self._wrong(f"annotation {marks.YUNIKORN_TASK_GROUP}", pod, _quoted(role), expected)

    def _roles(self, texts: Mapping[str, PodManifest]) -> dict[str, int]:
        roles: dict[str, int] = {}
        stated = f"annotation {marks.YUNIKORN_TASK_GROUPS}"
        for text, pod in texts.items():
            try:
                entries = _decoded(text, list[_TaskGroup])
            except ValueError as error:
                found = f"{_quoted(text)} ({shown(str(error))})"
                self._wrong(stated, pod, found, "a JSON list of task groups, each with name and minMember")
                return {}
            for entry in entries:
                if not entry.name or entry.min_member < 0:
                    found = f"minMember {entry.min_member} of task group {_quoted(entry.name)}"
                    self._wrong(stated, pod, found, "a name and a number of at least 0")
                    return {}
                if entry.ignored:
                    message = (
                        f"{entry.ignored} of task group {shown(entry.name)} decides nothing: that of its pods does"
                    )
                    self._findings.add("FieldIgnored", str(self._key), f"{self._key}: {message}")
                least = roles.setdefault(entry.name, entry.min_member)
                if least != entry.min_member:
                    self._differ(f"minMember of task group {shown(entry.name)}", f"{least} and {entry.min_member}")
                    roles[entry.name] = max(least, entry.min_member)
        return roles

    def _wrong(self, mark: str, pod: PodManifest, found: str, expected: str) -> None:
        self._fault = f"{mark} of Pod {pod.namespace}/{pod.name}: found {found}, expected {expected}"

    def _differ(self, what: str, found: str, which: str = "largest") -> None:
        message = f"pods of {self._key} state {what} {found}, expected one number: the {which} counts"
        self._findings.add("MarksDisagree", str(self._key), message)


def _stands(pod: PodManifest) -> bool:
    failed = pod.status is not None and pod.status.phase == "Failed"
    return not failed and pod.metadata.deletion_timestamp is None


def _number(text: str) -> int | None:
    number = int(text) if _NUMBER.fullmatch(text) and text.isascii() else None
    return number if number is not None and number < _MOST else None


def _quoted(text: str) -> str:
    return repr(shown(text))


def _decoded(text: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(text.encode("utf-8", "replace"), type=kind)
    except RecursionError:
        raise ValueError("nested too deep") from None


# ------------------------------------------------------------------------------------------- marks that add to gangs


def added_refusals(bearers: Iterable[Bearer], gangs: Collection[GroupKey], findings: Findings) -> dict[GroupKey, str]:
    """Find the gangs, and others that they name, to which marks add more than is modelled, and why."""
    adding = [each for each in bearers if not _ADDING.isdisjoint(each.metadata.annotations or {})]
    for bearer in adding:
        for what, instead in _preferences(bearer.metadata):
            findings.several("PreferenceIgnored", bearer.subject, f" decides nothing{instead}", f"{what} of ")
    by_name: dict[Key, list[GroupKey]] = {}
    for key in gangs if adding else ():
        by_name.setdefault(Key(key.namespace, key.name), []).append(key)
    found: dict[GroupKey, str] = {}
    for bearer in adding:
        for gang, why in _refused(bearer, by_name):
            found.setdefault(gang, why)
    return found


def _refused(bearer: Bearer, by_name: Mapping[Key, Sequence[GroupKey]]) -> Iterator[tuple[GroupKey, str]]:
    """A gang of another namespace is not refused, since no tenant may keep another from its nodes."""
    if bearer.gang is None:
        return
    for mark, what, others in _added(bearer.metadata, Key(*bearer.gang[1:])):
        text = f"annotation {mark} of {bearer.subject}: {what}"
        yield bearer.gang, text
        near = (each for each in others if each.namespace == bearer.gang.namespace)
        yield from ((key, text) for each in near for key in by_name.get(each, ()))


def refusals_alone(metadata: Metadata) -> Iterator[str]:
    """Why a pod in no gang is refused by its marks."""
    labels, notes = metadata.labels or {}, metadata.annotations or {}
    if (_LOOKED_AT.isdisjoint(labels) and _LOOKED_AT.isdisjoint(notes)) or is_daemon(metadata):
        return
    yield from _nameless(metadata)
    yield from (f"annotation {mark}: {what}" for mark, what, _ in _added(metadata, None))


def _nameless(metadata: Metadata) -> Iterator[str]:
    for place, key in _NAMING:
        if _value(metadata, place, key) == "":
            yield f"{place.value} {key}: found '', expected the name of a gang"
    for key, (place, name) in _NAMES.items():
        where = Place.LABEL if key == marks.LIGHT_MINIMUM else Place.ANNOTATION
        if _value(metadata, where, key) is not None and _value(metadata, place, name) is None:
            yield f"{where.value} {key}: found no {name} with it, expected the name of a gang"


def _added(metadata: Metadata, own: Key | None) -> Iterator[tuple[str, str, tuple[Key, ...]]]:
    notes = metadata.annotations or {}
    match = marks.KOORDINATOR_MATCH if marks.KOORDINATOR_MATCH in notes else marks.LIGHT_MATCH
    if notes.get(match, "once-satisfied") not in ("once-satisfied", "waiting-and-running"):
        yield match, f"found {_quoted(notes[match])}, expected once-satisfied or waiting-and-running", ()
    for key in (marks.KOORDINATOR_GROUPS, marks.LIGHT_GROUPS):
        if key in notes:
            yield from ((key, what, others) for what, others in _together(notes[key], own))
    yield from ((marks.KOORDINATOR_TOPOLOGY, what, ()) for what in _required(notes))
    for key in marks.SLICES:
        if key in notes:
            yield key, f"{shown(notes[key])}, and slices are not modelled", ()


def _required(notes: Mapping[str, str]) -> Iterator[str]:
    strategies = _strategies(notes)
    if strategies is None:
        expected = "JSON with a list gatherStrategy of layers, each with a strategy"
        yield f"found {_quoted(notes[marks.KOORDINATOR_TOPOLOGY])}, expected {expected}"
        return
    asked = next((each for each in strategies if each != "PreferGather"), None)
    if asked == "MustGather":
        yield f"{asked}, and no ClusterNetworkTopology is read"
    elif asked is not None:
        yield f"found strategy {_quoted(asked)}, expected MustGather or PreferGather"


def _together(text: str, own: Key | None) -> Iterator[tuple[str, tuple[Key, ...]]]:
    try:
        names = _decoded(text, list[str])
    except ValueError:
        yield f"found {_quoted(text)}, expected a JSON list of namespace/name", ()
        return
    wrong = next((name for name in names if not _GANG_ID.fullmatch(name)), None)
    if wrong is not None:
        yield f"found {_quoted(text)}, expected namespace/name in place of {_quoted(wrong)}", ()
        return
    others = tuple(each for each in (Key(*name.split("/")) for name in names) if each != own)
    if others:
        yield f"{shown(text)}, and gangs that are admitted together are not modelled", others


def _strategies(notes: Mapping[str, str]) -> list[str] | None:
    text = notes.get(marks.KOORDINATOR_TOPOLOGY)
    if text is None:
        return []
    try:
        layers = _decoded(text, _GatherSpec).gather_strategy
    except ValueError:
        return None
    return None if layers is None else [each.strategy or "" for each in layers]


def _preferences(metadata: Metadata) -> Iterator[tuple[str, str]]:
    notes = metadata.annotations or {}
    mode = notes.get(marks.KOORDINATOR_MODE)
    if mode is not None and mode != "Strict":
        yield f"annotation {marks.KOORDINATOR_MODE} {_quoted(mode)}", ": the gang is placed whole all the same"
    strategies = _strategies(notes)
    if strategies and all(each == "PreferGather" for each in strategies):
        yield f"annotation {marks.KOORDINATOR_TOPOLOGY} with PreferGather", ""
