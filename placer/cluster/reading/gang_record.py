"""The record of the gangs that placer has begun to bind: by it the next pass knows what is half-bound by placer itself.

Which pods of a gang placer bound must be known for certain. Half-bound gangs come before every priority, and are rolled
back when they are never completed; a tenant that could make a gang look so would get ahead of all others, by a pod that
names its own node, or have pods deleted. Nothing that is written on pods and PodGroups can say it, since their owner
may write there too. So it is kept in a ConfigMap in placer's own namespace, which no tenant may write to.

It is written *before* the first binding of a pass, with every gang that the pass may leave half-bound: a pass that is
killed at any moment has recorded all that it has bound. What is recorded and was never bound gives nobody anything: a
pod's uid is given out by the API server, and a pod that is there gets a node by a binding only.

Of a pod 48 bits of a digest of its uid are kept, so that tens of thousands of gangs fit into one ConfigMap. They are
compared within one gang; who wants to hit one of 1,000 has to make 10^11 pods. What would not fit is not bound in that
pass: names of any length and number, which tenants choose, must not keep the record of all from being written.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import blake2b
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote

from placer.cluster.reading.client import Server
from placer.cluster.reading.views import Workload
from placer.errors import ClusterError
from placer.instance import GroupKey, Key

__all__ = [
    "MOST_BYTES",
    "GangRecord",
    "HeldRoom",
    "RecordedDisruption",
    "RecordedGangs",
    "RejectedWorkload",
    "Reservation",
    "ReservedPod",
    "UnansweredPods",
    "digests",
    "packed",
    "read_record",
    "record_bytes",
    "record_name",
    "record_path",
]

#: Bytes that gangs may take of one ConfigMap (1 MiB), beside what is remembered of workloads and pods.
MOST_BYTES = 650_000
#: Bytes of a digest; and those of a gang beside its digests and its name, at most, when they are packed.
_BYTES, _GANG_BYTES = 6, 16


@dataclass(frozen=True, slots=True)
class GangRecord:
    """What is recorded of a gang.

    Parameters
    ----------
    since
        When the first binding of it was about to go out; or when it last got new patience.
    pods
        Digests of the uids of those that placer has bound, or may have.
    rolled_back
        How often it was rolled back.
    until
        When it may be tried again after that; None: at once.
    """

    since: datetime
    pods: frozenset[bytes] = frozenset()
    rolled_back: int = 0
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class RejectedWorkload:
    """What is remembered of a workload that kubelets rejected (:mod:`placer.cluster.reading.rejections`).

    Parameters
    ----------
    nodes
        Whose kubelets, and when last; some of many.
    reason
        What the last one said.
    times
        How often it backed off.
    until
        When it may be tried again; None: it does not back off, its node cools down.
    """

    nodes: Mapping[str, datetime] = field(default_factory=dict)
    reason: str = ""
    times: int = 0
    until: datetime | None = None

    def __str__(self) -> str:
        return f"kubelets of {', '.join(f'Node {name}' for name in self.nodes)} rejected its pods ({self.reason})"


@dataclass(frozen=True, slots=True)
class HeldRoom:
    """Room that a pass has made, or was about to make.

    Parameters
    ----------
    made_by
        Identifier of the pass.
    pods
        Who is to have it: each pod's uid, and its node.
    victims
        Who goes for it, with the uid of each.
    since, until
        When it was begun, and when it is given to others.
    """

    made_by: str
    pods: Mapping[Key, tuple[str, str]]
    victims: Mapping[Key, str]
    since: datetime
    until: datetime


class ReservedPod(NamedTuple):
    """A pod that was moved: its uid and its controller's, the node where it goes, and what it was, as JSON."""

    uid: str
    owner: str
    node: str
    text: str


@dataclass(frozen=True, slots=True)
class Reservation:
    """Room that is kept for pods that go together, until they are made again
    (:mod:`placer.cluster.planning.reservations`).

    Parameters
    ----------
    made_by
        Identifier of the pass that moved them, or was about to.
    pods
        They.
    since, until
        When it was begun, and when it is given to others.
    """

    made_by: str
    pods: Mapping[Key, ReservedPod]
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class RecordedDisruption:
    """What passes have disturbed: the room that is held still, when how many pods were evicted within an hour, and the
    room that is kept for what was moved.
    """

    held: HeldRoom | None = None
    evictions: tuple[tuple[datetime, int], ...] = ()
    reservations: tuple[Reservation, ...] = ()

    def within(self, hour: timedelta, now: datetime) -> int:
        """How many pods were evicted since so long."""
        return sum(count for when, count in self.evictions if now - when < hour)


@dataclass(frozen=True, slots=True)
class UnansweredPods:
    """Pods that were bound and that no kubelet has answered for (:mod:`placer.cluster.reading.unanswered`).

    Parameters
    ----------
    version
        The resourceVersion of pods up to which all is known of them; empty where there are none.
    pods
        Digests of their uids.
    """

    version: str = ""
    pods: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class RecordedGangs:
    """The record as it was read: gangs, the ConfigMap's resourceVersion, empty where there is none, workloads, what was
    disturbed, and pods without an answer.
    """

    gangs: Mapping[GroupKey, GangRecord] = field(default_factory=dict)
    version: str = ""
    workloads: Mapping[Workload, RejectedWorkload] = field(default_factory=dict)
    disruption: RecordedDisruption = RecordedDisruption()
    unanswered: UnansweredPods = UnansweredPods()


def digests(uids: Iterable[str]) -> frozenset[bytes]:
    """What is kept of uids."""
    return frozenset(blake2b(uid.encode(), digest_size=_BYTES).digest() for uid in uids)


def record_bytes(key: GroupKey, pods: int) -> int:
    """What a gang takes of the record with so many pods, at most: names have 6 bits a character."""
    return _GANG_BYTES + (len(key.namespace) + len(key.name)) * 3 // 4 + _BYTES * pods


def record_name(lease: str) -> str:
    """What the ConfigMap beside a Lease is called."""
    return f"{lease}-gangs"


def record_path(namespace: str, name: str = "") -> str:
    """Where the record is; without a name, where it is made."""
    root = f"/api/v1/namespaces/{quote(namespace)}/configmaps"
    return f"{root}/{quote(name)}" if name else root


def read_record(server: Server, namespace: str, name: str) -> RecordedGangs:
    """Read the record.

    Parameters
    ----------
    server
        Where.
    namespace, name
        Of the ConfigMap; one that is not there records nothing.

    Raises
    ------
    Forbidden
        We may not read it.
    ClusterError
        It is none of ours, or the server does not answer.
    """
    path = record_path(namespace, name)
    answer = server.get(path)
    if answer.status != 200:
        return RecordedGangs()
    try:
        document = json.loads(answer.text)
        data = document.get("binaryData") or {}
        version = document["metadata"]["resourceVersion"]
        return RecordedGangs(_unpacked(data), version, _workloads(data), _disruption(data), _unanswered(data))
    except (ValueError, KeyError, TypeError, EOFError, OSError) as error:
        raise ClusterError(f"{path}: found {type(error).__name__} {error}, expected what placer wrote") from error


def packed(
    gangs: Mapping[GroupKey, GangRecord],
    workloads: Mapping[Workload, RejectedWorkload] = MappingProxyType({}),
    disruption: RecordedDisruption = RecordedDisruption(),
    unanswered: UnansweredPods = UnansweredPods(),
) -> dict[str, str]:
    """``binaryData`` of the ConfigMap: all but digests as JSON, gzipped; the digests one behind the other."""
    told = [
        {
            "group": [key.api_group, key.namespace, key.name],
            "since": each.since.isoformat(),
            "pods": len(each.pods),
            "rolledBack": each.rolled_back,
            "until": _time(each.until),
        }
        for key, each in sorted(gangs.items())
    ]
    rejected = [
        {
            "workload": key,
            "nodes": {name: _time(when) for name, when in each.nodes.items()},
            "reason": each.reason,
            "times": each.times,
            "until": _time(each.until),
        }
        for key, each in sorted(workloads.items())
    ]
    pods = b"".join(b"".join(sorted(each.pods)) for _, each in sorted(gangs.items()))
    found = {"gangs": _text(told), "pods": b64encode(pods).decode(), "rejected": _text(rejected)}
    if disruption != RecordedDisruption():
        found["disruption"] = _text(_disturbed(disruption))
    if unanswered.pods:
        found["unanswered"] = _text([{"version": unanswered.version, "pods": _joined(unanswered.pods)}])
    return found


def _joined(pods: Iterable[bytes]) -> str:
    """Digests one behind the other."""
    return b64encode(b"".join(sorted(pods))).decode()


def _split(pods: bytes) -> frozenset[bytes]:
    return frozenset(pods[place : place + _BYTES] for place in range(0, len(pods), _BYTES))


def _unanswered(data: Mapping[str, str]) -> UnansweredPods:
    told = _read_text(data["unanswered"]) if "unanswered" in data else []
    found = (UnansweredPods(each["version"], _split(b64decode(each["pods"]))) for each in told)
    return next(found, UnansweredPods())


def _disturbed(disruption: RecordedDisruption) -> list[dict[str, Any]]:
    """What was disturbed, as JSON: the times, then the room that is held, then what is kept for moved pods."""
    times: list[dict[str, Any]] = [{"when": _time(when), "pods": count} for when, count in disruption.evictions]
    held = disruption.held
    kept = [
        _written(each) | {"moved": [[*key, *pod] for key, pod in each.pods.items()]} for each in disruption.reservations
    ]
    if held is None:
        return times + kept
    room = {
        "pods": [[*key, *there] for key, there in held.pods.items()],
        "victims": [[*key, uid] for key, uid in held.victims.items()],
    }
    return [*times, _written(held) | room, *kept]


def _written(room: HeldRoom | Reservation) -> dict[str, Any]:
    return {"madeBy": room.made_by, "since": _time(room.since), "until": _time(room.until)}


def _kept(told: Mapping[str, Any]) -> Reservation:
    pods = {Key(space, name): ReservedPod(*rest) for space, name, *rest in told["moved"]}
    return Reservation(told["madeBy"], pods, *_span(told))


def _span(told: Mapping[str, Any]) -> tuple[datetime, datetime]:
    return datetime.fromisoformat(told["since"]), datetime.fromisoformat(told["until"])


def _disruption(data: Mapping[str, str]) -> RecordedDisruption:
    told = _read_text(data["disruption"]) if "disruption" in data else []
    evictions = tuple((datetime.fromisoformat(each["when"]), each["pods"]) for each in told if "when" in each)
    rooms = (
        HeldRoom(
            each["madeBy"],
            {Key(space, name): (uid, node) for space, name, uid, node in each["pods"]},
            {Key(space, name): uid for space, name, uid in each["victims"]},
            *_span(each),
        )
        for each in told
        if "victims" in each
    )
    return RecordedDisruption(next(rooms, None), evictions, tuple(_kept(each) for each in told if "moved" in each))


def _text(told: list[dict[str, Any]]) -> str:
    return b64encode(gzip.compress(json.dumps(told).encode(), mtime=0)).decode()


def _read_text(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(gzip.decompress(b64decode(text)))
    return found


def _time(when: datetime | None) -> str | None:
    return when.isoformat() if when is not None else None


def _read_time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text is not None else None


def _workloads(data: Mapping[str, str]) -> dict[Workload, RejectedWorkload]:
    return {
        Workload(*each["workload"]): RejectedWorkload(
            {name: datetime.fromisoformat(when) for name, when in each["nodes"].items()},
            each["reason"],
            each["times"],
            _read_time(each["until"]),
        )
        for each in (_read_text(data["rejected"]) if "rejected" in data else ())
    }


def _unpacked(data: Mapping[str, str]) -> dict[GroupKey, GangRecord]:
    if not data:
        return {}
    told = _read_text(data["gangs"])
    pods = b64decode(data["pods"])
    ends = accumulate((each["pods"] * _BYTES for each in told), initial=0)
    return {
        GroupKey(*each["group"]): GangRecord(
            datetime.fromisoformat(each["since"]),
            _split(pods[start:end]),
            each["rolledBack"],
            _read_time(each["until"]),
        )
        for each, (start, end) in zip(told, pairwise(ends), strict=True)
    }
