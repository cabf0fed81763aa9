"""What became of a gang: all of it, some, nothing; and the way back where some is not enough.

Judged is by what is known last: answers of the server, events since, kubelets that rejected.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

from placer.cluster.bind import pod_path
from placer.cluster.client import Unanswered, Writer
from placer.cluster.ledger import Ledger
from placer.cluster.plan import Batch, Bind
from placer.instance import GroupKey, Instance, Key
from placer.outcome import Outcome
from placer.placement import Placement

__all__ = ["Gang", "State", "Tried", "judge", "roll_back"]

#: Seconds between tries to delete a pod.
_PAUSES = (0.2, 0.5, 1.0)


@dataclass
class Tried:
    """A batch that went out, or was left.

    Parameters
    ----------
    batch
        Which.
    bound
        What the server said was bound.
    failed
        Other pods of it, with the reason of each.
    left
        Why nothing of it went out; empty where it did.
    """

    batch: Batch
    bound: list[Bind] = field(default_factory=list)
    failed: dict[Key, str] = field(default_factory=dict)
    left: str = ""


class State(Enum):
    """What became of a gang."""

    BOUND = "bound"  #: all of its bindings
    SHORT = "short"  #: not all, but it is ready
    HALF_BOUND = "halfBound"  #: some, and it is not ready
    ROLLED_BACK = "rolledBack"  #: what had been bound is deleted
    LEFT = "left"  #: nothing


@dataclass(frozen=True, slots=True)
class Gang:
    """A gang after the pass.

    Parameters
    ----------
    key
        Which.
    state
        See there.
    bound
        What was bound of it.
    missing
        Pods that were planned and are not bound, with the reason of each.
    reason
        Why it was left; empty unless LEFT.
    """

    key: GroupKey
    state: State
    bound: tuple[Bind, ...] = ()
    missing: dict[Key, str] = field(default_factory=dict)
    reason: str = ""


def judge(instance: Instance, ledger: Ledger, tried: Tried) -> Iterator[Gang]:
    """What became of each gang of a batch, after the last that is known of its pods."""
    if tried.left:
        for key in tried.batch.gangs:
            yield Gang(key, State.LEFT, reason=tried.left)
        return
    failed = dict(tried.failed)
    for pod, (node, reason) in ledger.rejected.items():
        failed[pod] = f"the kubelet of Node {node} rejected it ({reason})"
    made = {bind.pod for bind in tried.bound}
    bound = [
        bind
        for bind in tried.batch.bindings
        if bind.pod not in ledger.rejected and (bind.pod in made or ledger.is_bound(bind))
    ]
    for key in tried.batch.gangs:
        yield _gang(instance, key, tried.batch.bindings, bound, failed)


def _gang(
    instance: Instance, key: GroupKey, planned: Sequence[Bind], bound: Sequence[Bind], failed: dict[Key, str]
) -> Gang:
    here = [bind for bind in bound if _of(instance, bind) == key]
    there = {bind.pod for bind in here}
    missing = {
        bind.pod: failed.get(bind.pod, "it was not bound")
        for bind in planned
        if bind.pod not in there and _of(instance, bind) == key
    }
    if not missing:
        return Gang(key, State.BOUND, tuple(here))
    if not here:
        pod, reason = next(iter(missing.items()))
        return Gang(key, State.LEFT, missing=missing, reason=f"Pod {pod}: {reason}")
    outcome = Outcome(instance, Placement.of({bind.pod: bind.node for bind in here}))
    state = State.SHORT if outcome.ready(instance.groups[key]) else State.HALF_BOUND
    return Gang(key, state, tuple(here), missing)


def _of(instance: Instance, bind: Bind) -> GroupKey:
    return instance.pods[bind.pod].group or GroupKey("", *bind.pod)


def roll_back(server: Writer, gang: Gang) -> Gang:
    """Delete what this pass bound of a gang that is half-bound; what cannot be deleted stays reported as bound."""
    if gang.state is not State.HALF_BOUND:
        return gang
    deleted = [bind for bind in gang.bound if _delete(server, bind)]
    kept = tuple(bind for bind in gang.bound if bind not in deleted)
    missing = gang.missing | {bind.pod: "rolled back" for bind in deleted}
    return Gang(gang.key, State.HALF_BOUND if kept else State.ROLLED_BACK, kept, missing)


def _delete(server: Writer, bind: Bind) -> bool:
    """Whether a pod is deleted, or was already."""
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": bind.uid}}
    for pause in (*_PAUSES, 0.0):
        with suppress(Unanswered):
            answer = server.send("DELETE", pod_path(*bind.pod), body)
            if answer.status in (200, 202, 404, 409):  # 409: it has another uid, so ours is gone
                return True
            if answer.status < 500 and answer.status != 429:
                return False
        time.sleep(pause)
    return False
