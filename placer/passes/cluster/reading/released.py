"""Pods that placer has released (``--enforce gates``), until their own scheduler has bound them.

A tenant can write the same affinity, and would have room held. So a digest of uid *and* node is recorded before
(:mod:`placer.passes.cluster.reading.gang_record`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from placer.passes.cluster.reading.gang_record import GangRecord, digests
from placer.passes.cluster.reading.snapshot import Snapshot
from placer.passes.cluster.reading.views import NODE_FIELD, PodView, read_view
from placer.problem import GroupKey, Key

__all__ = ["ReleasedPod", "mark", "released_pods"]

_NAMED = NODE_FIELD.encode()


class ReleasedPod(NamedTuple):
    """A pod that waits for its scheduler to bind it: its gang, its node, and whether that scheduler is placer."""

    gang: GroupKey
    node: str
    ours: bool


def mark(uid: str, node: str) -> str:
    """The text whose digest is recorded for a pod that is released for a node."""
    return f"{uid} {node}"


def released_pods(snapshot: Snapshot, record: Mapping[GroupKey, GangRecord]) -> dict[Key, ReleasedPod]:
    """Recorded pods that placer has released and that have no node yet."""
    gangs = {digest: key for key, each in record.items() for digest in each.pods}
    return dict(_released(snapshot, gangs)) if gangs else {}


def _released(snapshot: Snapshot, gangs: Mapping[bytes, GroupKey]) -> Iterator[tuple[Key, ReleasedPod]]:
    for item in snapshot.of_kind("Pod"):
        if _NAMED not in item:
            continue
        pod = read_view(item, PodView)
        node = pod.only_node
        if node is None or not pod.waits or pod.spec.scheduling_gates:
            continue
        (digest,) = digests([mark(pod.metadata.uid, node)])
        if digest in gangs:
            ours = pod.spec.scheduler_name == snapshot.scheduler_name
            yield pod.key, ReleasedPod(gangs[digest], node, ours)
