"""The record of gangs that placer has begun to bind, by which the next pass knows the half-bound ones.

These come before every priority and may be rolled back, so tenants must not be able to pretend one. So the record is a
ConfigMap in placer's own namespace, written *before* the first binding with every gang that a pass may leave half-
bound.

Uids and requests are kept as 48 bits of a digest, compared within one gang: to hit one of 1,000 takes 10^11 pods. Parts
that binding does not need are dropped where the whole is too long (:func:`fitted`). An unreadable part counts as
absent; the next write keeps it under another key.
"""

from __future__ import annotations

import gzip
import json
import time
import zlib
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import blake2b
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import Annotated, NamedTuple, TypeVar

import msgspec

from placer.base.errors import ClusterError
from placer.base.words import some
from placer.passes.cluster.reading.client import Server
from placer.passes.cluster.reading.paths import segment
from placer.passes.cluster.reading.views import WorkloadKey
from placer.problem import GroupKey, Key

__all__ = [
    "MOST_BYTES",
    "Ages",
    "GangRecord",
    "HeldRoom",
    "RecordedDisruption",
    "RecordedGangs",
    "RejectedWorkload",
    "Reservation",
    "ReservedPod",
    "UnansweredPods",
    "digests",
    "fitted",
    "mark",
    "packed",
    "read_record",
    "record_bytes",
    "record_name",
    "record_path",
    "record_troubles",
    "shape",
    "shapes_of",
]

T = TypeVar("T")

#: Bytes that gangs may take of one ConfigMap (1 MiB), beside what is remembered of workloads and pods.
MOST_BYTES = 650_000
#: Bytes that values and keys of a ConfigMap may take together, and a little less that is written: its metadata counts
#: with them for some servers.
_MOST_OF_ALL = 2**20 - 2**14
#: Most bytes of a part once it is unpacked: a megabyte of zeros takes a thousandth of it in the ConfigMap.
_MOST_UNPACKED = 2**25
#: How hard parts are packed: where a tenant writes near repeats, the most takes twenty times as long for little less.
_EFFORT = 4
#: How the key begins of what could not be read.
_APART = "unreadable-"
#: Parts that are read by themselves, and their keys in the ConfigMap.
_PARTS = {
    "gangs": ("gangs", "pods", "shapes"),
    "rejected": ("rejected",),
    "disruption": ("disruption",),
    "unanswered": ("unanswered",),
}
_DNS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-.")
#: Most characters of what is wrong with a part.
_LONGEST_TROUBLE = 200
#: Bytes of a digest, and of one with a count; and those of a gang beside these and its name, at most, when packed.
_BYTES, _SHAPE_BYTES, _GANG_BYTES = 6, 10, 20


@dataclass(frozen=True, slots=True)
class GangRecord:
    """The record of a gang."""

    since: datetime  #: time of its first binding, or of its last extension
    pods: frozenset[bytes] = frozenset()  #: digests of the uids of pods that placer bound, or may have
    rolled_back: int = 0  #: how often it was rolled back
    until: datetime | None = None  #: end of the back-off after that; None: there is none
    #: Pods that were to run when it was begun, at most so many of which come first; 0: the number of digests.
    size: int = 0
    #: Requests of these (:func:`shape`), with counts; empty: unknown.
    shapes: Mapping[bytes, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RejectedWorkload:
    """A workload that kubelets rejected (:mod:`placer.passes.cluster.reading.rejections`)."""

    #: Nodes of the kubelets, with the last time of each; some of many.
    nodes: Mapping[str, datetime] = field(default_factory=dict)
    reason: str = ""  #: the last one
    times: int = 0  #: how often it backed off
    until: datetime | None = None  #: end of the back-off; None: it does not back off, its node cools down

    def __str__(self) -> str:
        return f"kubelets of {', '.join(f'Node {name}' for name in self.nodes)} rejected its pods ({self.reason})"


#: By how much what is read may differ from what was written, and what is a jump of the server's clock.
_ROUNDED, _JUMP = timedelta(seconds=1), timedelta(seconds=5)


class Ages:
    """Ages of half-bound gangs by a steady clock, so that a jump of a server's clock rolls nothing back.

    Parameters
    ----------
    clock
        Seconds, which never decrease.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[GroupKey, tuple[float, set[datetime]]] = {}  # since when by the clock, and as recorded

    def steady(self, gangs: Mapping[GroupKey, GangRecord], now: datetime) -> dict[GroupKey, GangRecord]:
        """The record with the age of each gang by the steady clock, as far as it was seen before."""
        found, at = {}, self._clock()
        for key, each in gangs.items():
            began, told = self._seen.get(key, (0.0, set[datetime]()))
            if not any(abs(each.since - since) < _ROUNDED for since in told):
                began, told = at - (now - each.since).total_seconds(), set()
            since = now - timedelta(seconds=at - began)
            found[key] = replace(each, since=since) if abs(since - each.since) > _JUMP else each
            self._seen[key] = began, {each.since, found[key].since}
        self._seen = {key: self._seen[key] for key in found}
        return found


@dataclass(frozen=True, slots=True)
class HeldRoom:
    """Room that a pass has made, or was about to make."""

    made_by: str  #: identifier of the pass
    pods: Mapping[Key, tuple[str, str]]  #: pods that gain it, each with uid and node
    victims: Mapping[Key, str]  #: pods that leave for it, each with its uid
    #: The time for which it is held.
    since: datetime
    until: datetime
    #: Requests of ``pods`` (:func:`shape`), as far as they are known.
    shapes: Mapping[Key, bytes] = field(default_factory=dict)


class ReservedPod(NamedTuple):
    """A moved pod: its uid and its controller's, its next node, and its earlier object as JSON."""

    uid: str
    owner: str
    node: str
    text: str


@dataclass(frozen=True, slots=True)
class Reservation:
    """Room for moved pods until they are made again (:mod:`placer.passes.cluster.planning.reservations`)."""

    made_by: str  #: identifier of the pass that moved them, or was about to
    pods: Mapping[Key, ReservedPod]
    #: The time for which it is held.
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class RecordedDisruption:
    """Disruption by passes: room still held, evictions of the last hour, and room for moved pods."""

    held: HeldRoom | None = None
    evictions: tuple[tuple[datetime, int], ...] = ()
    reservations: tuple[Reservation, ...] = ()

    def within(self, hour: timedelta, now: datetime) -> int:
        """The number of pods evicted since so long."""
        return sum(count for when, count in self.evictions if now - when < hour)

    def of_others(self, identifier: str) -> RecordedDisruption:
        """Without the room that the pass with this identifier holds itself."""
        held = self.held if self.held is not None and self.held.made_by != identifier else None
        reserved = tuple(each for each in self.reservations if each.made_by != identifier)
        return RecordedDisruption(held, self.evictions, reserved)


@dataclass(frozen=True, slots=True)
class UnansweredPods:
    """Bound pods that no kubelet has answered for (:mod:`placer.passes.cluster.reading.rejections`)."""

    version: str = ""  #: the resourceVersion of pods up to which they were followed; empty where there are none
    pods: frozenset[bytes] = frozenset()  #: digests of their uids


@dataclass(frozen=True, slots=True)
class RecordedGangs:
    """The record as it was read or written."""

    gangs: Mapping[GroupKey, GangRecord] = field(default_factory=dict)  #: gangs that a pass may leave half-bound
    version: str = ""  #: the ConfigMap's resourceVersion; empty where there is none
    workloads: Mapping[WorkloadKey, RejectedWorkload] = field(default_factory=dict)  #: workloads that kubelets rejected
    disruption: RecordedDisruption = RecordedDisruption()
    unanswered: UnansweredPods = UnansweredPods()
    apart: Mapping[str, str] = field(default_factory=dict)  #: unreadable parts, by the key under which they are kept
    unread: tuple[str, ...] = ()  #: the reasons, for parts that were not kept before
    #: Entries that were left out at the last write for want of room, by part.
    dropped: Mapping[str, int] = field(default_factory=dict, compare=False)
    size: int = field(default=0, compare=False)  #: bytes of the whole


def digests(uids: Iterable[str]) -> frozenset[bytes]:
    """Digests of uids."""
    return frozenset(blake2b(uid.encode(), digest_size=_BYTES).digest() for uid in uids)


def mark(uid: str, node: str) -> str:
    """The text whose digest is recorded for a pod that is released for a node.

    A tenant can write the same affinity, and would have room held: so it has both uid and node.
    """
    return f"{uid} {node}"


def shape(requests: Mapping[str, int]) -> bytes:
    """A digest of the requests of a pod."""
    return blake2b(repr(sorted(requests.items())).encode(), digest_size=_BYTES).digest()


def shapes_of(requests: Iterable[Mapping[str, int]]) -> dict[bytes, int]:
    """Digests of the requests of pods, with counts."""
    return dict(Counter(map(shape, requests)))


def record_bytes(key: GroupKey, pods: int, shapes: int = 1) -> int:
    """Most bytes that a gang takes in the record; DNS names have 6 bits a character."""
    names = _packed_name(key.namespace) + _packed_name(key.name)
    return _GANG_BYTES + names + _BYTES * pods + _SHAPE_BYTES * shapes


def _packed_name(name: str) -> int:
    return len(name) * 3 // 4 if _DNS.issuperset(name) else len(msgspec.json.encode(name))


def record_name(lease: str) -> str:
    """The name of the ConfigMap for a Lease."""
    return f"{lease}-gangs"


def record_path(namespace: str, name: str = "") -> str:
    """The path of the record; without a name, that of its collection."""
    root = f"/api/v1/namespaces/{segment(namespace)}/configmaps"
    return f"{root}/{segment(name)}" if name else root


def read_record(server: Server, namespace: str, name: str) -> RecordedGangs:
    """Read the record; a ConfigMap that is not there records nothing.

    Raises
    ------
    Forbidden
        We may not read it.
    ClusterError
        The server does not answer, or not with a ConfigMap.
    """
    path = record_path(namespace, name)
    answer = server.get(path)
    if answer.status == 404:
        return RecordedGangs()
    if answer.status != 200:
        raise ClusterError(f"{path}: {answer.status} {answer.message}")
    try:
        document = json.loads(answer.text)
        parts = _ReadParts(path, document.get("binaryData") or {})
        version = document["metadata"]["resourceVersion"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ClusterError(f"{path}: found {type(error).__name__} {error}, expected a ConfigMap") from error
    return RecordedGangs(
        parts.read("gangs", _unpacked, {}),
        version,
        parts.read("rejected", _workloads, {}),
        parts.read("disruption", _disruption, RecordedDisruption()),
        parts.read("unanswered", _unanswered, UnansweredPods()),
        parts.apart,
        tuple(parts.unread),
        size=_bytes(parts.data),
    )


def record_troubles(record: RecordedGangs, namespace: str, name: str) -> list[str]:
    """Sentences about the unreadable parts of a record, and the keys that hold them."""
    keys = ", ".join(some(sorted(record.apart), len(_PARTS)))
    kept = f"ConfigMap {namespace}/{name}: found {keys}, which could not be read, expected that somebody looks at it"
    return [*record.unread, *([f"{kept} and deletes it"] if keys else ())]


class _ReadParts:
    def __init__(self, path: str, data: Mapping[str, str]) -> None:
        self._path, self.data = path, data
        self.apart = {key: text for key, text in data.items() if key.startswith(_APART)}
        self.unread: list[str] = []

    def read(self, part: str, read: Callable[[Mapping[str, str]], T], absent: T) -> T:
        try:
            return read(self.data)
        except (ValueError, KeyError, TypeError, EOFError, OSError, zlib.error, msgspec.MsgspecError) as error:
            found = f"{type(error).__name__} {error}"[:_LONGEST_TROUBLE]
            self.apart |= {f"{_APART}{key}": self.data[key] for key in _PARTS[part] if key in self.data}
            self.unread.append(f"{self._path}, key {part}: found {found}, expected a record that placer wrote")
            return absent


def _bytes(data: Mapping[str, str]) -> int:
    return sum(len(key) + len(text) // 4 * 3 for key, text in data.items())


def fitted(wanted: RecordedGangs) -> tuple[RecordedGangs, dict[str, str]]:
    """As much of a record as a ConfigMap takes, and its ``binaryData``; its gangs fit (:data:`MOST_BYTES`).

    Parts that binding does not need are dropped in the order of ``_LESS``. The larger half of a part goes first, so
    that others do not pay for the long entries of one tenant.
    """
    found, dropped = wanted, dict[str, int]()
    for part, less in _LESS.items():
        while _bytes(data := _data(found)) > _MOST_OF_ALL and (left := less(found)) is not None:
            found, count = left
            dropped[part] = dropped.get(part, 0) + count
    return replace(found, dropped=dropped, size=_bytes(data)), data


def _data(record: RecordedGangs) -> dict[str, str]:
    return packed(record.gangs, record.workloads, record.disruption, record.unanswered) | dict(record.apart)


#: A record with less of a part, and how many entries of it were left out; None: there is nothing of it.
_Less = tuple[RecordedGangs, int] | None


def _less_apart(record: RecordedGangs) -> _Less:
    return (replace(record, apart={}), len(record.apart)) if record.apart else None


def _less_rejected(record: RecordedGangs) -> _Less:
    by_size = sorted(record.workloads.items(), key=lambda each: len(msgspec.json.encode(_told_workload(*each))))
    left = dict(sorted(by_size[: len(by_size) // 2]))
    return (replace(record, workloads=left), len(by_size) - len(left)) if by_size else None


def _less_unanswered(record: RecordedGangs) -> _Less:
    pods = len(record.unanswered.pods)
    return (replace(record, unanswered=UnansweredPods()), pods) if pods else None


def _less_reserved(record: RecordedGangs) -> _Less:
    kept = record.disruption.reservations
    sizes = [sum(len(pod.text) for pod in each.pods.values()) for each in kept]
    smaller = sorted(sorted(range(len(kept)), key=lambda at: sizes[at])[: len(kept) // 2])
    left = replace(record.disruption, reservations=tuple(kept[at] for at in smaller))
    return (replace(record, disruption=left), len(kept) - len(smaller)) if kept else None


def _less_held(record: RecordedGangs) -> _Less:
    held = record.disruption.held
    return (replace(record, disruption=replace(record.disruption, held=None)), 1) if held is not None else None


#: What is left out first, and by which name it is counted.
_LESS: Mapping[str, Callable[[RecordedGangs], _Less]] = MappingProxyType(
    {
        "unreadable": _less_apart,
        "rejected": _less_rejected,
        "unanswered": _less_unanswered,
        "reservations": _less_reserved,
        "held": _less_held,
    }
)


def packed(
    gangs: Mapping[GroupKey, GangRecord],
    workloads: Mapping[WorkloadKey, RejectedWorkload] = MappingProxyType({}),
    disruption: RecordedDisruption = RecordedDisruption(),
    unanswered: UnansweredPods = UnansweredPods(),
) -> dict[str, str]:
    """``binaryData`` of the ConfigMap: gzipped JSON, and the digests in a row."""
    told = [
        _ToldGang(key, each.since, len(each.pods), each.rolled_back, each.until, each.size, len(each.shapes))
        for key, each in sorted(gangs.items())
    ]
    rejected = [_told_workload(key, each) for key, each in sorted(workloads.items())]
    pods = b"".join(b"".join(sorted(each.pods)) for _, each in sorted(gangs.items()))
    shapes = b"".join(
        digest + count.to_bytes(_SHAPE_BYTES - _BYTES)
        for _, each in sorted(gangs.items())
        for digest, count in sorted(each.shapes.items())
    )
    found = {"gangs": _text(told), "pods": b64encode(pods).decode(), "rejected": _text(rejected)}
    if shapes:
        found["shapes"] = b64encode(shapes).decode()
    if disruption != RecordedDisruption():
        found["disruption"] = _text(_disturbed(disruption))
    if unanswered.pods:
        found["unanswered"] = _text([_ToldUnanswered(unanswered.version, _joined(unanswered.pods))])
    return found


def _told_workload(key: WorkloadKey, each: RejectedWorkload) -> _ToldWorkload:
    return _ToldWorkload(key, dict(each.nodes), each.reason, each.times, each.until)


def _joined(pods: Iterable[bytes]) -> str:
    return b64encode(b"".join(sorted(pods))).decode()


def _split(pods: bytes) -> frozenset[bytes]:
    return frozenset(pods[place : place + _BYTES] for place in range(0, len(pods), _BYTES))


def _disturbed(disruption: RecordedDisruption) -> _ToldDisruption:
    held = disruption.held
    room = None
    if held is not None:
        shapes = tuple((key, each.hex()) for key, each in held.shapes.items())
        room = _ToldRoom(*_span(held), _items(held.pods), _items(held.victims), shapes)
    kept = (_ToldReservation(*_span(each), _items(each.pods)) for each in disruption.reservations)
    return _ToldDisruption(disruption.evictions, room, tuple(kept))


def _span(room: HeldRoom | Reservation) -> tuple[str, datetime, datetime]:
    return room.made_by, room.since, room.until


def _items(of: Mapping[Key, T]) -> tuple[tuple[Key, T], ...]:
    return tuple(of.items())


def _disruption(data: Mapping[str, str]) -> RecordedDisruption:
    if "disruption" not in data:
        return RecordedDisruption()
    told = _read_text(data["disruption"], _ToldDisruption)
    room = told.held
    held = None
    if room is not None:
        shapes = {key: bytes.fromhex(each) for key, each in room.shapes}
        held = HeldRoom(room.made_by, dict(room.pods), dict(room.victims), room.since, room.until, shapes)
    kept = tuple(Reservation(each.made_by, dict(each.moved), each.since, each.until) for each in told.reservations)
    for pod in (pod for each in kept for pod in each.pods.values()):
        msgspec.json.decode(pod.text, type=_PodText)
    return RecordedDisruption(held, told.evictions, kept)


def _unanswered(data: Mapping[str, str]) -> UnansweredPods:
    told = _read_text(data["unanswered"], list[_ToldUnanswered]) if "unanswered" in data else []
    return next((UnansweredPods(each.version, _split(b64decode(each.pods))) for each in told), UnansweredPods())


def _workloads(data: Mapping[str, str]) -> dict[WorkloadKey, RejectedWorkload]:
    told = _read_text(data["rejected"], list[_ToldWorkload]) if "rejected" in data else []
    return {each.workload: RejectedWorkload(each.nodes, each.reason, each.times, each.until) for each in told}


def _unpacked(data: Mapping[str, str]) -> dict[GroupKey, GangRecord]:
    if not data:
        return {}
    told = _read_text(data["gangs"], list[_ToldGang])
    pods = _parts(b64decode(data["pods"]), (each.pods * _BYTES for each in told))
    shapes = _parts(b64decode(data.get("shapes", "")), (each.shapes * _SHAPE_BYTES for each in told))
    return {
        each.group: GangRecord(each.since, _split(own), each.rolled_back, each.until, each.size, _counts(asked))
        for each, own, asked in zip(told, pods, shapes, strict=True)
    }


def _parts(text: bytes, sizes: Iterable[int]) -> list[bytes]:
    return [text[start:end] for start, end in pairwise(accumulate(sizes, initial=0))]


def _counts(shapes: bytes) -> dict[bytes, int]:
    places = range(0, len(shapes), _SHAPE_BYTES)
    parts = (shapes[place : place + _SHAPE_BYTES] for place in places)
    return {part[:_BYTES]: int.from_bytes(part[_BYTES:]) for part in parts}


def _text(told: object) -> str:
    return b64encode(gzip.compress(msgspec.json.encode(told), _EFFORT, mtime=0)).decode()


def _read_text(text: str, kind: type[T]) -> T:
    unpacked = zlib.decompressobj(wbits=31)  # of gzip
    found = unpacked.decompress(b64decode(text), _MOST_UNPACKED)
    if not unpacked.eof:
        raise ValueError(f"it ends too early, or is longer than {_MOST_UNPACKED:,} bytes")
    return msgspec.json.decode(found, type=kind)


# ------------------------------------------------------------------------- what is written, and checked when it is read

_Time = Annotated[datetime, msgspec.Meta(tz=True)]
_Count = Annotated[int, msgspec.Meta(ge=0)]


class _Told(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    pass


class _ToldGang(_Told):
    group: GroupKey
    since: _Time
    pods: _Count
    rolled_back: _Count
    until: _Time | None
    size: _Count = 0
    shapes: _Count = 0


class _ToldWorkload(_Told):
    workload: WorkloadKey
    nodes: dict[str, _Time]
    reason: str
    times: _Count
    until: _Time | None


class _ToldUnanswered(_Told):
    version: str
    pods: str


class _ToldRoom(_Told):
    made_by: str
    since: _Time
    until: _Time
    pods: tuple[tuple[Key, tuple[str, str]], ...]
    victims: tuple[tuple[Key, str], ...]
    shapes: tuple[tuple[Key, str], ...] = ()


class _ToldReservation(_Told):
    made_by: str
    since: _Time
    until: _Time
    moved: tuple[tuple[Key, ReservedPod], ...]


class _PodText(msgspec.Struct):
    metadata: dict[str, object]
    spec: dict[str, object]


class _ToldDisruption(_Told):
    evictions: tuple[tuple[_Time, _Count], ...]
    held: _ToldRoom | None
    reservations: tuple[_ToldReservation, ...]
