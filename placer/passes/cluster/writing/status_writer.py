"""The status writer: conditions of pods, Events, status of PodGroups (docs/passes.md, Output). Nothing is written
twice.

Failed writes are reported and are no error of the pass. Since tenants read these texts, each reason has a text for its
Namespace (:meth:`placer.problem.result.Reason.told`), and all texts pass :class:`_OthersHidden` last. In a loop a
thread of its own writes while the next pass runs (:class:`Teller`): later news become one meanwhile. A condition names
the version of its pod, so that none is written to one bound meanwhile.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

import msgspec

from placer.base.codes import ConditionReason, EventReason
from placer.base.errors import ClusterError
from placer.base.text import legible, shown
from placer.base.words import counted
from placer.passes.cluster.planning.binding_plan import BindingPlan, PlannedBinding
from placer.passes.cluster.planning.gang_outcome import GAVE_WAY, GangOutcome, GangState
from placer.passes.cluster.planning.half_bound import in_turn
from placer.passes.cluster.reading.client import Response, Unlisted, Writer, listed, server_time
from placer.passes.cluster.reading.paths import is_name, segment
from placer.passes.cluster.reading.views import PodView
from placer.passes.cluster.writing.binding import patch_status
from placer.passes.cluster.writing.pod_group_status import PodGroupStatus, cause_in, write_upstream_pod_group_status
from placer.passes.cluster.writing.volcano_pod_groups import write_pod_group_status
from placer.problem import GroupKey, Instance, Key
from placer.problem.gangs import COSCHEDULING, KAI, UPSTREAM, VOLCANO
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement
from placer.problem.result import Result

if TYPE_CHECKING:
    from placer.passes.cluster.planning.scheduler_cache import Overfull
    from placer.passes.cluster.reading.earlier_passes import BackOff
    from placer.passes.cluster.reading.snapshot import Identity

__all__ = ["StatusNews", "StatusOptions", "StatusReport", "Teller", "status_news", "write_evicted", "write_news"]

T = TypeVar("T")

_WORKERS = 8
#: Seconds to wait for an answer: a pass that is to end waits for it too.
_PATIENCE = 5.0
#: Most bytes of an Event's note, of which a server takes 1,024; and most characters of what its name begins with, so
#: that there is room for the time behind it.
_NOTE, _BEGINNING = 1_000, 236
#: Parts of the time that may be over when conditions of pods are written, and when status of PodGroups is.
_CONDITIONS, _GROUPS = 0.7, 0.85
#: Events that come before all others.
_FIRST: frozenset[EventReason] = frozenset(("HalfBound", "RolledBack", "NodeOverfull"))
#: Most Events that wait until what passes before had to say is written; the latest are kept.
_MOST_EVENTS = 10_000
#: Most characters of a condition's message: names that it quotes may be of any length.
_MESSAGE = 4_000
#: What an Event says was done; of all others it was to find a node.
_ACTIONS: Mapping[EventReason, str] = {
    "Scheduled": "Binding",
    "Released": "Binding",
    "Preempted": "Preempting",
    "Defragmented": "Evicting",
    "NodeLost": "Evicting",
}
_GROUP_WRITERS = {VOLCANO: write_pod_group_status, UPSTREAM: write_upstream_pod_group_status}
#: What an Event is about, by the API group of the gang: apiVersion, and kind where it is no PodGroup.
_SUBJECTS = {
    "": ("v1", "Pod"),
    VOLCANO: (f"{VOLCANO}/v1beta1", "PodGroup"),
    COSCHEDULING: (f"{COSCHEDULING}/v1alpha1", "PodGroup"),
    UPSTREAM: (f"{UPSTREAM}/v1beta1", "PodGroup"),
    KAI: (f"{KAI}/v2alpha2", "PodGroup"),
    "batch": ("batch/v1", "Job"),
    "jobset.x-k8s.io": ("jobset.x-k8s.io/v1alpha2", "JobSet"),
    "leaderworkerset.x-k8s.io": ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
}


@dataclass(frozen=True, slots=True)
class StatusOptions:
    """Kinds of status to write, and seconds for all; the next pass writes the rest."""

    conditions: bool = True
    events: bool = True
    groups: bool = True
    limit: float = 20.0


@dataclass
class StatusReport:
    """Numbers of writes, and each trouble once."""

    conditions: int = 0
    events: int = 0
    groups: int = 0
    troubles: list[str] = field(default_factory=list)

    def and_then(self, later: StatusReport) -> StatusReport:
        """Both reports as one."""
        troubles = list(dict.fromkeys((*self.troubles, *later.troubles)))
        counts = (self.conditions + later.conditions, self.events + later.events, self.groups + later.groups)
        return StatusReport(*counts, troubles)


@dataclass(frozen=True, slots=True)
class _WaitingReason:
    reason: ConditionReason
    message: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", shown(self.message, _MESSAGE))


@dataclass(frozen=True, slots=True)
class StatusNews:
    """News of a pass: gangs of pods, why gangs wait, which come first, and texts that are written as they are."""

    groups: Mapping[Key, GroupKey]
    waits: Mapping[GroupKey, _WaitingReason]
    half_bound: frozenset[GroupKey]
    statuses: Mapping[GroupKey, PodGroupStatus]
    events: tuple[_Event, ...]
    nominated: Mapping[Key, Identity]

    def after(self, earlier: StatusNews) -> StatusNews:
        """Both as one; where only one can be written, the later."""
        statuses, events = {**earlier.statuses, **self.statuses}, (*earlier.events, *self.events)
        return replace(self, statuses=statuses, events=events[-_MOST_EVENTS:])


def status_news(
    result: Result,
    plan: BindingPlan,
    gangs: Sequence[GangOutcome],
    overfull: Iterable[Overfull],
    options: StatusOptions,
    backing_off: Mapping[Key, BackOff] = MappingProxyType({}),
    on_hold: Container[GroupKey] = frozenset(),
    nominated: Mapping[Key, Identity] = MappingProxyType({}),
) -> StatusNews:
    """The news of a pass.

    Parameters
    ----------
    backing_off
        Pods that were not tried, since their gang was rolled back or kubelets rejected their workload.
    on_hold
        Gangs of pods with the hold gate, whose own scheduler writes status of Kubernetes' PodGroups.
    nominated
        Pods with the hold gate that an earlier pass nominated, and that were not released.
    """
    hidden = _OthersHidden(result.instance)
    waits = _held_back(backing_off.values()) | _waits(result, plan, gangs) | _backing_off(backing_off.values())
    waits = hidden.in_all(waits)
    groups = {pod: each.group for pod, each in result.instance.pods.items() if each.group is not None}
    groups |= {pod: each.group for pod, each in backing_off.items()}
    half_bound = frozenset(gang.key for gang in gangs if gang.state is GangState.HALF_BOUND)
    statuses = filter(partial(_is_told, options, on_hold), _group_statuses(result, gangs, waits))
    said = _events(gangs, overfull, _pods_of_marks(groups)) if options.events else ()
    events = tuple(replace(each, note=hidden.told(each.note, each.namespace)) for each in said)
    return StatusNews(groups, waits, half_bound, {each.key: each for each in statuses}, events, nominated)


def write_news(
    server: Writer,
    scheduler_name: str,
    news: StatusNews,
    options: StatusOptions,
    is_over: Callable[[], bool],
    *,
    gates: bool = False,
) -> StatusReport:
    """Write the news of a pass."""
    writer = _StatusWriter(server, scheduler_name, options.limit, is_over, gates=gates)
    waits = news.waits
    changed = writer.conditions(news.groups, waits, news.half_bound) if options.conditions else set(waits)
    writer.withdraw(news.nominated)
    writer.groups(news.statuses.values())
    if options.events:
        pods, told = _pods_of_marks(news.groups), [key for key in waits if key in changed]
        failed = (_gang_event(key, "Warning", "FailedScheduling", waits[key].message, pods) for key in told)
        writer.events((*news.events, *failed))
    return writer.report


def write_evicted(
    server: Writer,
    scheduler_name: str,
    notes: Mapping[Key, tuple[EventReason, str]],
    identities: Mapping[Key, Identity],
    options: StatusOptions,
) -> StatusReport:
    """Write an Event of each evicted pod.

    Parameters
    ----------
    identities
        Their uids: another pod may have the name by now.
    """
    writer = _StatusWriter(server, scheduler_name, options.limit, lambda: False)
    if options.events:
        told = ((key, *note, identities[key].uid) for key, note in notes.items())
        writer.events(_Event("Normal", reason, note, "v1", "Pod", *key, uid) for key, reason, note, uid in told)
    return writer.report


# ------------------------------------------------------------------------------------------------ what is to be written


def _backing_off(pods: Iterable[BackOff]) -> dict[GroupKey, _WaitingReason]:
    return {
        each.group: _WaitingReason("SchedulerError", f"{each.why}; tried again at {each.until:%H:%M:%S} UTC")
        for each in pods
        if each.until is not None
    }


def _held_back(pods: Iterable[BackOff]) -> dict[GroupKey, _WaitingReason]:
    return {each.group: _WaitingReason("SchedulerError", each.why) for each in pods if each.until is None}


def _waits(result: Result, plan: BindingPlan, gangs: Iterable[GangOutcome]) -> dict[GroupKey, _WaitingReason]:
    found = {
        key: _WaitingReason("Unschedulable", f"{each.code}: {each.told(key.namespace)}")
        for key, each in result.reasons.items()
    }
    found |= {
        key: _WaitingReason("SchedulerError", f"left for the next pass: {why}") for key, why in plan.dropped.items()
    }
    for gang in gangs:
        if gang.state is GangState.LEFT and gang.reason != GAVE_WAY:
            found[gang.key] = _WaitingReason("SchedulerError", f"left for the next pass: {gang.reason}")
        elif gang.state is GangState.HALF_BOUND:
            found[gang.key] = _half_bound(result.instance, gang, found.get(gang.key))
        elif gang.missing:
            found[gang.key] = _WaitingReason("SchedulerError", f"{_counts(gang)}; {_first_missing(gang)}")
    return found


def _half_bound(instance: Instance, gang: GangOutcome, why: _WaitingReason | None) -> _WaitingReason:
    group = instance.groups.get(gang.key)
    run = len(gang.before) + len(gang.bound) if group is None else group.placed_before + len(gang.bound)
    need = f" of {group.placed_before + group.need}" if group is not None else ""
    since = f" since {gang.since:%H:%M:%S} UTC" if gang.since is not None else ""
    until = f", rolled back at {gang.until:%H:%M:%S} UTC unless it is complete" if gang.until is not None else ""
    lack = _first_missing(gang) if gang.missing else why.message if why is not None else gang.reason
    reason = why.reason if why is not None and not gang.missing else "SchedulerError"
    return _WaitingReason(reason, f"half-bound: {run}{need} run{since}{until}; {lack}")


def _first_missing(gang: GangOutcome) -> str:
    pod, why = next(iter(gang.missing.items()))
    return f"Pod {pod}: {why}"


def _counts(gang: GangOutcome) -> str:
    bound = len(gang.before) + len(gang.bound)
    return f"{bound} of {bound + len(gang.missing)} planned pods are bound"


def _group_statuses(
    result: Result, gangs: Iterable[GangOutcome], waits: Mapping[GroupKey, _WaitingReason]
) -> Iterator[PodGroupStatus]:
    instance = result.instance
    bound = {bind.pod: bind.node for gang in gangs for bind in gang.bound}
    outcome = Outcome(instance, Placement.of(bound))
    for key in _told_groups(instance, gangs):
        group = instance.groups[key]
        ready = outcome.ready(group)
        some = bool(group.bound or any(pod in bound for pod in group.pending))
        wait = waits.get(key)
        if wait is not None:
            yield PodGroupStatus(key, ready, some, wait.reason, wait.message)
        elif ready:
            yield PodGroupStatus(key, ready, some)


def _is_told(options: StatusOptions, on_hold: Container[GroupKey], status: PodGroupStatus) -> bool:
    if status.key.api_group == VOLCANO:
        return options.groups
    return options.conditions and status.key not in on_hold


def _told_groups(instance: Instance, gangs: Iterable[GangOutcome]) -> Iterator[GroupKey]:
    """PodGroups with a status that have waiting pods or are half-bound; a name that no object can have is none."""
    half_bound = {gang.key for gang in gangs if gang.state is GangState.HALF_BOUND}
    for key, group in instance.groups.items():
        told = key.api_group in _GROUP_WRITERS and is_name(key.name)
        if told and (group.pending or key in half_bound):
            yield key


@dataclass(frozen=True, slots=True)
class _Event:
    kind: str
    reason: EventReason
    note: str
    version: str
    subject: str
    namespace: str
    name: str
    uid: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "note", legible(self.note))


def _pods_of_marks(groups: Mapping[Key, GroupKey]) -> dict[GroupKey, Key]:
    found: dict[GroupKey, Key] = {}
    for pod, key in sorted(groups.items()):
        if key.api_group and key.api_group not in _SUBJECTS:
            found.setdefault(key, pod)
    return found


def _events(
    gangs: Iterable[GangOutcome], overfull: Iterable[Overfull], pods: Mapping[GroupKey, Key]
) -> Iterator[_Event]:
    for gang in gangs:
        yield from _given(gang, pods)
        if gang.state is GangState.HALF_BOUND and gang.bound:
            note = f"{_counts(gang)}; the next pass completes it first"
            yield _gang_event(gang.key, "Warning", "HalfBound", note, pods)
        if gang.state is GangState.ROLLED_BACK:
            note = f"it could not be completed; its pods are deleted: {gang.reason}"
            yield _gang_event(gang.key, "Warning", "RolledBack", note, pods)
    for each in overfull:
        yield _Event("Warning", "NodeOverfull", f"pods request too much: {each}", "v1", "Node", "default", each.node)


def _given(gang: GangOutcome, pods: Mapping[GroupKey, Key]) -> Iterator[_Event]:
    if released := [bind for bind in gang.bound if bind.by_release]:
        yield _gang_event(gang.key, "Normal", "Released", _released(gang.key, released), pods)
    if assigned := [bind for bind in gang.bound if not bind.by_release]:
        yield _gang_event(gang.key, "Normal", "Scheduled", _assigned(gang.key, assigned), pods)


def _gang_event(key: GroupKey, kind: str, reason: EventReason, note: str, pods: Mapping[GroupKey, Key]) -> _Event:
    workload, inside, name = key.name.partition("/")
    if key.api_group == UPSTREAM and inside:  # a gang inside a Workload is no object
        return _Event(kind, reason, f"{name}: {note}", f"{UPSTREAM}/v1alpha1", "Workload", key.namespace, workload)
    if key.api_group not in _SUBJECTS:  # a gang that only marks declare is no object
        return _Event(kind, reason, f"gang {key.name}: {note}", "v1", "Pod", *pods.get(key, key[1:]))
    version, subject = _SUBJECTS[key.api_group]
    return _Event(kind, reason, note, version, subject, key.namespace, key.name)


def _assigned(key: GroupKey, bound: Sequence[PlannedBinding]) -> str:
    if not key.api_group:
        return f"Successfully assigned {bound[0].pod} to {bound[0].node}"
    return f"Successfully assigned {counted(len(bound), 'pod')} to {_nodes(bound)}"


def _released(key: GroupKey, bound: Sequence[PlannedBinding]) -> str:
    if not key.api_group:
        return f"Released {bound[0].pod} for {bound[0].node}, where its scheduler binds it"
    return f"Released {counted(len(bound), 'pod')} for {_nodes(bound)}, where their scheduler binds them"


def _nodes(bound: Sequence[PlannedBinding]) -> str:
    return counted(len({bind.node for bind in bound}), "node")


def _event_name(subject: str) -> str:
    """A name of an Event; nothing of a text that no object can have as name.

    Examples
    --------
    >>> _event_name("train").startswith("train."), _event_name("../x").startswith("event."), len(_event_name("a" * 253))
    (True, True, 253)
    """
    beginning = subject[:_BEGINNING].rstrip(".-") if is_name(subject) else "event"
    return f"{beginning}.{time.time_ns():x}"


def _note(text: str) -> str:
    written = text.encode()
    return text if len(written) <= _NOTE else f"{written[:_NOTE].decode(errors='ignore')} ..."


def _says(pod: PodView, wait: _WaitingReason) -> bool:
    there = pod.scheduled
    if there is None or (there.status, there.reason) != ("False", _reason(pod, wait)):
        return False
    if pod.is_on_hold and pod.status.nominated_node_name:
        return False
    return cause_in(there.message) == cause_in(wait.message)


def _reason(pod: PodView, wait: _WaitingReason) -> ConditionReason:
    return "SchedulingGated" if pod.is_on_hold else wait.reason


class _OthersHidden:
    """Removes names of objects of other Namespaces from texts, last of all, so that no new sentence leaks any."""

    def __init__(self, instance: Instance) -> None:
        self._names: dict[str, dict[str, int | None]] = {namespace: {} for namespace in instance.namespaces}
        for app_group in instance.app_groups:
            self._names.setdefault(app_group.namespace, {})[app_group.name] = None
        for key, group in instance.groups.items():
            self._names.setdefault(key.namespace, {})[key.name] = group.priority
        for pod, each in instance.pods.items():
            self._names.setdefault(pod.namespace, {})[pod.name] = each.priority

    def in_all(self, waits: Mapping[GroupKey, _WaitingReason]) -> dict[GroupKey, _WaitingReason]:
        return {key: replace(wait, message=self.told(wait.message, key.namespace)) for key, wait in waits.items()}

    def told(self, text: str, namespace: str) -> str:
        parts, at = [], 0
        for found in _NAMESPACED.finditer(text):
            if found.start() >= at and found[1] != namespace:
                instead, end = self._instead(text, found)
                parts += [text[at : found.start()], instead] if end else []
                at = end or at
        return "".join([*parts, text[at:]])

    def _instead(self, text: str, found: re.Match[str]) -> tuple[str, int]:
        names = self._names.get(found[1])
        is_own = text.endswith(_OPERATORS, 0, found.start())
        if names is None and not is_own:
            return "", 0
        longest = max((each for each in names or () if text.startswith(each, found.end())), key=len, default="")
        end = max(found.end() + len(longest), _NAME.match(text, found.end()).end())  # type: ignore[union-attr]
        priority = (names or {}).get(text[found.end() : end])
        if priority is None and text[found.start() : end].replace("/", "").isdecimal():
            return "", 0  # so many of so many
        return "of another Namespace" + ("" if priority is None else f" (priority {priority})"), end


#: Namespace and slash, as objects are named; and what of the rest belongs to a name in any case.
_NAMESPACED = re.compile(r"(?<![\w./-])([a-z0-9]([a-z0-9-]*[a-z0-9])?)/")
_NAME = re.compile(r"([\w.:/-]*\w)?")
#: Objects of operators.
_OPERATORS = ("Lease ", "ConfigMap ")


# ------------------------------------------------------------------------------------------------------------ writing


class _StatusWriter:
    """Writes, several things at a time.

    There may be more to write than there is time. So half-bound gangs come first, then each namespace in turn, and
    conditions leave time for the rest.
    """

    def __init__(
        self, server: Writer, scheduler_name: str, limit: float, is_over: Callable[[], bool], *, gates: bool = False
    ) -> None:
        self._server, self._name, self._is_over, self._gates = server, scheduler_name, is_over, gates
        self._lock = threading.Lock()
        self._now = server_time(server)
        self._began, self._limit = time.monotonic(), limit
        self._instance = f"{scheduler_name}-{os.uname().nodename}"[:128]
        self._cleared: set[Key] = set()  #: pods with the hold gate that are nominated no more
        self.report = StatusReport()

    def conditions(
        self, groups: Mapping[Key, GroupKey], waits: Mapping[GroupKey, _WaitingReason], first: Container[GroupKey]
    ) -> set[GroupKey]:
        news = [(pod, wait, key) for pod, wait, key in self._waiting(groups, waits) if not _says(pod, wait)]
        work = in_turn(news, lambda each: each[2].namespace)
        work.sort(key=lambda each: each[2] not in first)
        written = self._each(lambda each: self._condition(each[0], each[1]), work, _CONDITIONS)
        self.report.conditions = sum(written)
        self._cleared |= {pod.key for (pod, _, _), done in zip(work, written, strict=True) if done and pod.is_on_hold}
        return {key for (_, _, key), done in zip(work, written, strict=True) if done}

    def _waiting(
        self, groups: Mapping[Key, GroupKey], waits: Mapping[GroupKey, _WaitingReason]
    ) -> Iterator[tuple[PodView, _WaitingReason, GroupKey]]:
        for pod in self._pending() if waits else ():
            gang = groups.get(pod.key)
            if gang is not None and gang in waits:
                yield pod, waits[gang], gang

    def withdraw(self, nominated: Mapping[Key, Identity]) -> None:
        """Remove nominations of pods that have not changed since; a written condition did so before.

        A pass that was killed within a release leaves them, and kube-scheduler holds room by them.
        """
        self._each(self._withdrawal, in_turn(nominated.items(), lambda each: each[0].namespace), _CONDITIONS)

    def _withdrawal(self, pod: tuple[Key, Identity]) -> bool:
        key, identity = pod
        if key in self._cleared:
            return True
        which = {"uid": identity.uid, "resourceVersion": identity.resource_version}
        answer = patch_status(self._server, key, which, {"nominatedNodeName": None})
        return self._fine(answer, "nominations of pods", gone=(404, 409))

    def groups(self, wanted: Iterable[PodGroupStatus]) -> None:
        now = self._now.strftime("%Y-%m-%dT%H:%M:%SZ")

        def write(each: PodGroupStatus) -> bool:
            return _GROUP_WRITERS[each.key.api_group](self._server, each, now)

        self.report.groups = sum(self._each(write, in_turn(wanted, lambda each: each.key.namespace), _GROUPS))

    def events(self, events: Iterable[_Event]) -> None:
        work = in_turn(events, attrgetter("namespace"))
        work.sort(key=lambda each: each.reason not in _FIRST)
        self.report.events = sum(self._each(self._event, work))

    def _pending(self) -> Iterator[PodView]:
        selector = "spec.nodeName=" + ("" if self._gates else f",spec.schedulerName={self._name}")

        def ask(path: str, parameters: Mapping[str, str]) -> Response:
            return self._server.send("GET", path, parameters=parameters, timeout=_PATIENCE)

        if self._is_over():
            return
        try:
            pods = listed(ask, "/api/v1/pods", PodView, selector)
            ours = (pod for pod in pods if pod.is_on_hold or pod.spec.scheduler_name == self._name)
            yield from takewhile(lambda _: not self._is_over(), ours)
        except Unlisted as error:
            self._fine(error.answer, "list of pods")
        except ClusterError as error:
            self._trouble(str(error))

    def _condition(self, pod: PodView, wait: _WaitingReason) -> bool:
        there = pod.scheduled
        since = there.last_transition_time if there is not None and there.status == "False" else None
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": _reason(pod, wait),
            "message": wait.message,
            "lastTransitionTime": since or self._now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        status: dict[str, object] = {"conditions": [condition]} | (
            {"nominatedNodeName": None} if pod.is_on_hold else {}
        )
        # A later pass may bind the pod before this is written: then it is not.
        which = {"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version}
        answer = patch_status(self._server, pod.key, which, status)
        return self._fine(answer, "conditions of pods", gone=(404, 409))

    def _event(self, event: _Event) -> bool:
        regarding = {"kind": event.subject, "name": event.name, "apiVersion": event.version}
        if event.subject != "Node":
            regarding["namespace"] = event.namespace
        if event.uid:
            regarding["uid"] = event.uid
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": _event_name(event.name), "namespace": event.namespace},
            "eventTime": self._now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": self._name,
            "reportingInstance": self._instance,
            "action": _ACTIONS.get(event.reason, "Scheduling"),
            "reason": event.reason,
            "type": event.kind,
            "regarding": regarding,
            "note": _note(event.note),
        }
        path = f"/apis/events.k8s.io/v1/namespaces/{segment(event.namespace)}/events"
        return self._fine(self._server.send("POST", path, body, timeout=_PATIENCE), "Events")

    def _fine(self, answer: Response, what: str, gone: tuple[int, ...] = ()) -> bool:
        if answer.status >= 300 and answer.status not in gone:
            self._trouble(f"{what}: {answer.status} {answer.message}")
        return answer.status < 300

    def _trouble(self, text: str) -> None:
        with self._lock:
            if text not in self.report.troubles:
                self.report.troubles.append(text)

    def _each(self, work: Callable[[T], bool], things: Sequence[T], part: float = 1.0) -> list[bool]:
        until = self._began + part * self._limit

        def one(thing: T) -> bool:
            if self._is_over():
                return False
            if time.monotonic() > until:
                self._trouble("there was no time to write everything; the next pass writes the rest")
                return False
            try:
                return work(thing)
            except (ClusterError, msgspec.DecodeError) as error:
                self._trouble(str(error))
                return False

        with ThreadPoolExecutor(_WORKERS) as threads:
            return list(threads.map(one, things))


# -------------------------------------------------------------------------------------------- while the next pass runs

#: Seconds after the end within which what is under way is written: as long as an answer is waited for, and a second.
_END = 6.0


class Teller:
    """Writes the news of passes."""

    def __init__(
        self,
        server: Callable[[], Writer],
        scheduler_name: str,
        options: StatusOptions,
        stop: threading.Event,
        *,
        gates: bool,
    ) -> None:
        self._server, self._name, self._options, self._gates = server, scheduler_name, options, gates
        self._stop = stop
        self._lost: Callable[[], str | None] = lambda: None
        self._changed = threading.Condition()
        self._waiting: tuple[StatusNews, Callable[[], str | None]] | None = None
        self._report = StatusReport()
        self._busy = self._closed = False
        self._thread: threading.Thread | None = None

    def tell(self, news: StatusNews, lost: Callable[[], str | None]) -> None:
        """Write news later, as long as ``lost`` gives None."""
        with self._changed:
            if self._closed:
                return
            self._waiting = (news if self._waiting is None else news.after(self._waiting[0]), lost)
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="teller", daemon=True)
                self._thread.start()

    def told(self, seconds: float) -> StatusReport:
        """The writes since the last call, once all is written or some seconds are over."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._busy or self._waiting), seconds)
            found, self._report = self._report, StatusReport()
            return found

    def close(self) -> None:
        """End; a write under way gets its answer, or is given up after seconds."""
        with self._changed:
            self._closed, self._waiting = True, None
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_END)

    def _is_over(self) -> bool:
        return self._closed or self._stop.is_set() or self._lost() is not None

    def _work(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._closed or self._waiting is not None)
                if self._waiting is None:
                    return
                (news, self._lost), self._waiting, self._busy = self._waiting, None, True
            try:
                report = write_news(self._server(), self._name, news, self._options, self._is_over, gates=self._gates)
            except Exception as error:  # as in a pass, a failed write is reported
                report = StatusReport(troubles=[f"{type(error).__name__}: {error}"])
            with self._changed:
                self._report = self._report.and_then(report)
