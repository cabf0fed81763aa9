"""What of a pod is looked at in every event of a watch: little, since there are as many events as bindings."""

from __future__ import annotations

from enum import Enum

import msgspec

from placer.cluster.cooling import is_rejection
from placer.instance import Key

__all__ = ["Glance", "Said"]


class Said(Enum):
    """What a kubelet said of a pod."""

    NOTHING = "nothing yet"
    ADMITTED = "admitted"
    REJECTED = "rejected"


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = "default"
    uid: str = ""
    deletion_timestamp: str | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str | None = None


class _Status(msgspec.Struct, rename="camel"):
    phase: str | None = None
    reason: str | None = None
    start_time: str | None = None


class Glance(msgspec.Struct):
    """A pod, in part."""

    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return Key(self.metadata.namespace, self.metadata.name)

    @property
    def said(self) -> Said:
        """The kubelet's answer: it fails a pod that it rejects, and gives any other a start time."""
        if self.status.phase == "Failed" and is_rejection(self.status.reason):
            return Said.REJECTED
        started = self.status.start_time is not None or self.status.phase not in (None, "", "Pending")
        return Said.ADMITTED if started else Said.NOTHING
