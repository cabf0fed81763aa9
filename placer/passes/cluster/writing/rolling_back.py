"""A gang rolled back: the pods that passes bound of it are deleted, if it is still half-bound.

Each pod is deleted in the version that was read (``preconditions``), and read again where it has changed, so that a
released pod that its scheduler binds meanwhile is not mistaken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import filterfalse
from operator import attrgetter
from types import MappingProxyType

from placer.base.errors import ClusterError
from placer.kube.kinds import BY_ATTRIBUTE
from placer.passes.cluster.planning.binding_plan import PlannedBinding
from placer.passes.cluster.planning.gang_outcome import GangOutcome, GangState
from placer.passes.cluster.planning.half_bound import in_turn
from placer.passes.cluster.reading.client import Unanswered, Writer, whole_list
from placer.passes.cluster.reading.earlier_passes import instance_in
from placer.passes.cluster.reading.field_filter import list_reader
from placer.passes.cluster.reading.paths import segment
from placer.passes.cluster.reading.snapshot import Snapshot
from placer.passes.cluster.reading.views import PodView, read_view
from placer.passes.cluster.writing.binding import is_given, pod_path
from placer.problem import GroupKey, Key
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement

__all__ = ["roll_back", "roll_back_in_turn"]

#: How often a gang is read anew whose pods change while they are deleted.
_TIMES = 6
#: Seconds after which no further gang is rolled back in a pass: who has thousands of them must not hold up all others.
_SECONDS = 30.0
_WORKERS = 8


def roll_back(
    server: Writer, snapshot: Snapshot, gang: GangOutcome, only: Collection[Key] | None = None
) -> GangOutcome:
    """Delete the pods that placer bound of a gang; others remain reported as bound.

    Parameters
    ----------
    snapshot
        The decided one, which says that a pod belongs to the gang.
    only
        Released pods to delete if they still have no node, even if the gang is ready; None: all of ours.
    """
    try:
        return _RollBack(server, snapshot, gang, only).carried_out()
    except ClusterError as error:
        return replace(gang, reason=f"it could not be rolled back: {error}")


def roll_back_in_turn(
    server: Writer,
    snapshot: Snapshot,
    gangs: Iterable[GangOutcome],
    keys: Iterable[GroupKey],
    forbidden: Callable[[], str | None],
    alone: Mapping[GroupKey, Collection[Key]] = MappingProxyType({}),
) -> list[GangOutcome]:
    """Roll gangs back while there is time; the others are half-bound until the next pass.

    Parameters
    ----------
    alone
        Of gangs that are ready without some released pods: these, which alone are deleted.
    """
    until, found = time.monotonic() + _SECONDS, {gang.key: gang for gang in gangs}
    for key in in_turn(keys, attrgetter("namespace")):
        why = forbidden()
        if why is None and time.monotonic() > until:
            why = "there was no time for it in this pass"
        gang = found[key]
        found[key] = (
            roll_back(server, snapshot, gang, alone.get(key))
            if why is None
            else replace(gang, reason=f"not rolled back: {why}")
        )
    return list(found.values())


class _RollBack:
    def __init__(
        self, server: Writer, snapshot: Snapshot, gang: GangOutcome, only: Collection[Key] | None = None
    ) -> None:
        self._server, self._snapshot, self._gang, self._only = server, snapshot, gang, only
        ours = {bind.pod: bind for bind in (*gang.before, *gang.bound)}
        self._ours = {pod: bind for pod, bind in ours.items() if only is None or pod in only}
        self._begun = self._refused = False
        self._trouble = "its pods change all the time"

    def carried_out(self) -> GangOutcome:
        for _ in range(_TIMES):
            there, ready = self._look()
            if ready and not self._begun:
                return replace(self._gang, state=GangState.BOUND, missing={}, reason="it was completed meanwhile")
            if not there or self._refused:
                break
            self._delete(there)
        else:
            there, _ready = self._look()
        return self._outcome({bind.pod for bind, _ in there})

    def _look(self) -> tuple[list[tuple[PlannedBinding, str]], bool]:
        read = list_reader(BY_ATTRIBUTE["pods"], "v1").read
        path = f"/api/v1/namespaces/{segment(self._gang.key.namespace)}/pods"
        pods = [item for page in whole_list(self._server.get, path, read) for item in page.items or ()]
        others = self._snapshot.without(("Pod",)).items
        now = replace(self._snapshot, items=(*others, *pods), versions={}, counts={})
        instance = instance_in(now)
        group = instance.groups.get(self._gang.key)
        ready = group is not None and Outcome(instance, Placement()).ready(group)
        there, bound = list(_standing(now, self._ours)), _bound(now, self._ours)
        if self._only is None:
            return there, ready or (not self._gang.key.api_group and bool(bound))  # one pod is ready where it is bound
        left = [(bind, version) for bind, version in there if bind.pod not in bound]
        return left, not left

    def _delete(self, there: Sequence[tuple[PlannedBinding, str]]) -> None:
        with ThreadPoolExecutor(_WORKERS) as threads:
            for answer, text in threads.map(lambda each: _delete(self._server, *each), there):
                self._begun |= answer is True
                if answer is False:
                    self._refused, self._trouble = True, text

    def _outcome(self, left: set[Key]) -> GangOutcome:
        gang = self._gang
        gone = {pod: "rolled back" for pod in self._ours if pod not in left}
        stay = partial(filterfalse, lambda bind: bind.pod in gone)
        rest = replace(
            gang,
            bound=tuple(stay(gang.bound)),
            before=tuple(stay(gang.before)),
            waiting=tuple(stay(gang.waiting)),
            missing=gang.missing | gone,
        )
        if left:
            return replace(rest, reason=f"it could not be rolled back: {self._trouble}")
        return replace(rest, state=GangState.ROLLED_BACK)


def _standing(now: Snapshot, ours: dict[Key, PlannedBinding]) -> Iterator[tuple[PlannedBinding, str]]:
    for item in now.pod_texts(ours).values():
        pod = read_view(item, PodView)
        bind = ours[pod.key]
        if pod.metadata.uid == bind.uid and is_given(pod, bind) and pod.metadata.deletion_timestamp is None:
            yield bind, pod.metadata.resource_version


def _bound(now: Snapshot, ours: dict[Key, PlannedBinding]) -> set[Key]:
    pods = (read_view(item, PodView) for item in now.pod_texts(ours).values())
    return {pod.key for pod in pods if pod.spec.node_name}


def _delete(server: Writer, bind: PlannedBinding, version: str) -> tuple[bool | None, str]:
    """Whether a pod is gone or on its way, None where it is not as it was read, and why not."""
    preconditions = {"uid": bind.uid, "resourceVersion": version}
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
    try:
        answer = server.send("DELETE", pod_path(*bind.pod), body)
    except Unanswered as error:
        return None, str(error)
    if answer.status in (200, 202, 404):
        return True, ""
    refused = answer.status < 500 and answer.status not in (409, 429)
    return False if refused else None, f"{answer.status} {answer.message}"
