"""Pods that placer has released (``--enforce gates``), known again until their own scheduler has bound them.

Such a pod gets its node by a PATCH that names it in the required node affinity and takes the hold gate away. From then
on it waits for another scheduler, and looks like any pod that a tenant has written so. Who could make pods look
released would have room held for them, and get ahead of others. So before the PATCH goes out a digest of uid *and* node
is recorded (:mod:`placer.cluster.reading.gang_record`), where no tenant may write: who takes the gate away himself and
names a node has done what placer was about to do, or is not known here.

What is known counts as bound to its node: it holds its room, and its gang has it. A released pod that names placer
itself as its scheduler is bound by the pass that follows, before others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from placer.cluster.reading.gang_record import GangRecord, digests
from placer.cluster.reading.snapshot import Snapshot
from placer.cluster.reading.views import NODE_FIELD, PodView, read_view
from placer.instance import GroupKey, Key

__all__ = ["ReleasedPod", "mark", "released_pods"]

_NAMED = NODE_FIELD.encode()


class ReleasedPod(NamedTuple):
    """A pod that waits for its scheduler to bind it: its gang, its node, and whether that scheduler is placer."""

    gang: GroupKey
    node: str
    ours: bool


def mark(uid: str, node: str) -> str:
    """What is recorded, as a digest, of a pod that is about to be released for a node."""
    return f"{uid} {node}"


def released_pods(snapshot: Snapshot, record: Mapping[GroupKey, GangRecord]) -> dict[Key, ReleasedPod]:
    """Find the pods that placer has released and that have no node yet.

    Parameters
    ----------
    snapshot
        Of the cluster.
    record
        The gangs that placer has begun.
    """
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
