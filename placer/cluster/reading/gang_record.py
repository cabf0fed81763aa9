"""The record of the gangs that placer has begun to bind: by it the next pass knows what is half-bound by placer itself.

Which pods of a gang placer bound must be known for certain. Half-bound gangs come before every priority, and are rolled
back when they are never completed; a tenant that could make a gang look so would get ahead of all others, by a pod that
names its own node, or have pods deleted. Nothing that is written on pods and PodGroups can say it, since their owner
may write there too. So it is kept in a ConfigMap in placer's own namespace, which no tenant may write to.

It is written *before* the first binding of a pass, with every gang that the pass may leave half-bound: a pass that is
killed at any moment has recorded all that it has bound. What is recorded and was never bound gives nobody anything: a
pod's uid is given out by the API server, and a pod that is there gets a node by a binding only.

Of a pod 48 bits of a digest of its uid are kept, so that 150,000 pods, more than Kubernetes supports, fit into one
ConfigMap. They are compared within one gang; who wants to hit one of 1,000 has to make 10^11 pods.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from itertools import accumulate, pairwise
from typing import Any
from urllib.parse import quote

from placer.cluster.reading.client import Server
from placer.errors import ClusterError
from placer.instance import GroupKey

__all__ = ["MOST_PODS", "GangRecord", "RecordedGangs", "digests", "packed", "read_record", "record_name", "record_path"]

#: Most pods of which digests fit into one ConfigMap (1 MiB), beside what is said of their gangs.
MOST_PODS = 150_000
_BYTES = 6


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
class RecordedGangs:
    """The record as it was read: gangs, and the resourceVersion of the ConfigMap, empty where there is none."""

    gangs: Mapping[GroupKey, GangRecord] = field(default_factory=dict)
    version: str = ""


def digests(uids: Iterable[str]) -> frozenset[bytes]:
    """What is kept of uids."""
    return frozenset(blake2b(uid.encode(), digest_size=_BYTES).digest() for uid in uids)


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
        return RecordedGangs(_unpacked(document.get("binaryData") or {}), document["metadata"]["resourceVersion"])
    except (ValueError, KeyError, TypeError, EOFError, OSError) as error:
        raise ClusterError(f"{path}: found {type(error).__name__} {error}, expected what placer wrote") from error


def packed(gangs: Mapping[GroupKey, GangRecord]) -> dict[str, str]:
    """``binaryData`` of the ConfigMap: all but digests as JSON, gzipped; the digests one behind the other."""
    told = [
        {
            "group": [key.api_group, key.namespace, key.name],
            "since": each.since.isoformat(),
            "pods": len(each.pods),
            "rolledBack": each.rolled_back,
            "until": each.until.isoformat() if each.until is not None else None,
        }
        for key, each in sorted(gangs.items())
    ]
    pods = b"".join(b"".join(sorted(each.pods)) for _, each in sorted(gangs.items()))
    text = gzip.compress(json.dumps(told).encode(), mtime=0)
    return {"gangs": b64encode(text).decode(), "pods": b64encode(pods).decode()}


def _unpacked(data: Mapping[str, str]) -> dict[GroupKey, GangRecord]:
    if not data:
        return {}
    told: list[dict[str, Any]] = json.loads(gzip.decompress(b64decode(data["gangs"])))
    pods = b64decode(data["pods"])
    ends = accumulate((each["pods"] * _BYTES for each in told), initial=0)
    return {
        GroupKey(*each["group"]): GangRecord(
            datetime.fromisoformat(each["since"]),
            frozenset(pods[place : place + _BYTES] for place in range(start, end, _BYTES)),
            each["rolledBack"],
            datetime.fromisoformat(each["until"]) if each["until"] is not None else None,
        )
        for each, (start, end) in zip(told, pairwise(ends), strict=True)
    }
