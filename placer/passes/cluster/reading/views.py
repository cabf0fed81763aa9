"""Views of Kubernetes objects: the few fields of each that the cluster's code looks at, as msgspec reads them.

The parser skips the rest, since there are as many events of a watch as bindings. Rules use ``placer.kube`` instead.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from hashlib import blake2b
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from placer.problem import Key
from placer.problem.gangs import GROUP_ANNOTATIONS
from placer.problem.pod_states import HOLD_GATE

__all__ = [
    "NODE_FIELD",
    "OF_THE_POD",
    "DaemonSetCounts",
    "DaemonSetView",
    "KubeletAnswer",
    "ListMetadata",
    "MetadataView",
    "ObjectView",
    "Page",
    "PodView",
    "Rejection",
    "TopologyView",
    "WorkloadKey",
    "is_rejection",
    "read_view",
]

Item = TypeVar("Item")
View = TypeVar("View", bound="ObjectView")

#: ``status.reason`` of pods that a kubelet did not admit for a feature that they alone ask of it: their author chooses
#: it, and the node takes all others.
OF_THE_POD = frozenset(
    (
        "AppArmor",
        "InitContainerRestartPolicyForbidden",
        "PodFeatureUnsupported",
        "PodLevelResourcesNotSupported",
        "PodOSNotSupported",
        "PodOSSelectorNodeLabelDoesNotMatch",
        "SMTAlignmentError",
        "SupplementalGroupsPolicyNotSupported",
        "SysctlForbidden",
    )
)
#: All such reasons beside OutOfRESOURCE. Source: Kubernetes ``pkg/kubelet`` (lifecycle, cm, eviction, sysctl,
#: nodeshutdown, volume manager).
_REASONS = OF_THE_POD.union(
    (
        "InvalidNodeInfo",
        "NodeAffinity",
        "NodeName",
        "NodePorts",
        "NodeShutdown",
        "TaintToleration",
        "TopologyAffinityError",
        "UnexpectedAdmissionError",
        "UnexpectedPredicateFailureType",
        "UnknownReason",
        "VolumeAttachmentLimitExceeded",
    )
)
#: The field of a Node that ``matchFields`` may ask for.
NODE_FIELD = "metadata.name"
#: Most characters of a kind and of a name; references to owners and annotations are not held to that by the server.
_LONGEST_KIND, _LONGEST_NAME = 63, 253
#: Most bytes of a reason, which a kubelet may make as long as an object: it is recorded, and a label of metrics.
_LONGEST_REASON = 63
#: How the message begins of every pod that a kubelet since Kubernetes 1.27 did not admit, whatever the reason.
_REJECTED = "Pod was rejected:"


def _short(text: str, most: int) -> str:
    """A text that an author may make as long as they like, or its digest where no name is so long."""
    return text if len(text) <= most else blake2b(text.encode(), digest_size=16).hexdigest()


def is_rejection(reason: str | None, message: str | None = None) -> bool:
    """Whether a failed pod was not admitted, by the reason and message of its status.

    Examples
    --------
    >>> is_rejection("OutOfcpu"), is_rejection("TopologyAffinityError"), is_rejection("Evicted"), is_rejection(None)
    (True, True, False, False)
    >>> is_rejection("Evicted", "Pod was rejected: The node had condition: [MemoryPressure]")
    True
    """
    if message is not None and message.startswith(_REJECTED):
        return True
    return reason is not None and (reason.startswith("OutOf") or reason in _REASONS)


class KubeletAnswer(Enum):
    """Answer of a kubelet to a pod that was bound to its node."""

    NOTHING = "nothing yet"
    ADMITTED = "admitted"
    REJECTED = "rejected"


class WorkloadKey(NamedTuple):
    """The maker of pods: their controller, else the gang that they name, else their namespace.

    Rejections are remembered by it, since pods are made again under other names.
    """

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name or '*'}"


@dataclass(frozen=True, slots=True)
class Rejection:
    """A pod, by its ``uid``, that a kubelet did not admit."""

    workload: WorkloadKey
    node: str
    reason: str
    when: datetime
    uid: str = ""


class ListMetadata(msgspec.Struct, rename="camel"):
    """Version of a list, and the token of its next page."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, Generic[Item]):
    """A page of a list: its items are views, or JSON texts."""

    metadata: ListMetadata = msgspec.field(default_factory=ListMetadata)
    items: list[Item] | None = None


class OwnerView(msgspec.Struct):
    """An entry of ``ownerReferences``."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class MetadataView(msgspec.Struct, rename="camel"):
    """Metadata of any object, in part."""

    name: str = ""
    namespace: str = "default"
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None
    owner_references: list[OwnerView] | None = None


class ObjectView(msgspec.Struct):
    """Any object, by its kind and metadata."""

    kind: str = ""
    metadata: MetadataView = msgspec.field(default_factory=MetadataView)

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return Key(self.metadata.namespace, self.metadata.name)


def read_view(text: bytes | msgspec.Raw, shape: type[View]) -> View:
    """Read a view of an object; a field that is null counts as absent, as for the API server.

    Raises
    ------
    msgspec.DecodeError
        The text is no JSON, or a field has another type than in the view.

    Examples
    --------
    >>> read_view(b'{"metadata": {"name": "a", "ownerReferences": [{"name": null}]}}', ObjectView).key
    Key(namespace='default', name='a')
    """
    try:
        return msgspec.json.decode(text, type=shape)
    except msgspec.ValidationError:
        return msgspec.convert(_without_nulls(msgspec.json.decode(text)), shape)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value if inner is not None] if isinstance(value, list) else value


class ConditionView(msgspec.Struct, rename="camel"):
    """A condition of a pod's status; its time is a text, since it is written back."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


def _only_names(term: dict[str, Any]) -> set[str]:
    """Nodes that a term of a node selector names as its only one; with two of them it matches none."""
    fields = [each for each in term.get("matchFields") or () if each.get("key") == NODE_FIELD]
    values: list[list[str]] = [each.get("values") or [] for each in fields if each.get("operator") == "In"]
    return {each[0] for each in values if len(each) == 1}


class PodSpecView(msgspec.Struct, rename="camel"):
    """A pod's spec, in part."""

    scheduler_name: str | None = None
    node_name: str | None = None
    scheduling_gates: list[dict[str, str]] | None = None
    affinity: dict[str, Any] | None = None


class PodStatusView(msgspec.Struct, rename="camel"):
    """A pod's status, in part."""

    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    start_time: str | None = None
    conditions: list[ConditionView] | None = None
    nominated_node_name: str | None = None


class PodView(ObjectView):
    """A pod, in part."""

    spec: PodSpecView = msgspec.field(default_factory=PodSpecView)
    status: PodStatusView = msgspec.field(default_factory=PodStatusView)

    @property
    def is_on_hold(self) -> bool:
        """Whether the hold gate alone keeps it from its scheduler."""
        return {each.get("name") for each in self.spec.scheduling_gates or ()} == {HOLD_GATE}

    @property
    def waits(self) -> bool:
        """Whether it has no node and may get one."""
        fresh = self.status.phase in (None, "", "Pending") and self.metadata.deletion_timestamp is None
        return fresh and not self.spec.node_name

    @property
    def only_node(self) -> str | None:
        """The single node that its required node affinity names; None where there is none, or a choice."""
        affinity = (self.spec.affinity or {}).get("nodeAffinity") or {}
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
        terms = filter(None, required.get("nodeSelectorTerms") or ())
        names = [_only_names(each) for each in terms if each.get("matchExpressions") or each.get("matchFields")]
        return min(set.intersection(*names), default=None) if names else None

    @property
    def kubelet_answer(self) -> KubeletAnswer:
        """A kubelet fails a pod that it rejects, and gives any other a start time."""
        if self.status.phase == "Failed" and is_rejection(self.status.reason, self.status.message):
            return KubeletAnswer.REJECTED
        started = self.status.start_time is not None or self.status.phase not in (None, "", "Pending")
        return KubeletAnswer.ADMITTED if started else KubeletAnswer.NOTHING

    @property
    def controller(self) -> OwnerView | None:
        """The controller among its owners, else the first owner."""
        owners = self.metadata.owner_references or ()
        return next((each for each in owners if each.controller), owners[0] if owners else None)

    @property
    def workload(self) -> WorkloadKey:
        """The workload that made it."""
        metadata, owner = self.metadata, self.controller
        notes = metadata.annotations or {}
        if owner is not None:
            return WorkloadKey(metadata.namespace, _short(owner.kind, _LONGEST_KIND), _short(owner.name, _LONGEST_NAME))
        group = next((notes[key] for key in GROUP_ANNOTATIONS if notes.get(key)), "")
        return WorkloadKey(metadata.namespace, "PodGroup" if group else "Pod", _short(group, _LONGEST_NAME))

    @property
    def rejection(self) -> Rejection | None:
        """Its rejection by a kubelet; at an unknown time it counts as long ago."""
        if self.kubelet_answer is not KubeletAnswer.REJECTED or not self.spec.node_name:
            return None
        when = self.scheduled_at or datetime.min.replace(tzinfo=UTC)
        reason = (self.status.reason or "Failed").encode()[:_LONGEST_REASON].decode(errors="ignore")
        return Rejection(self.workload, self.spec.node_name, reason, when, self.metadata.uid)

    @property
    def scheduled(self) -> ConditionView | None:
        """The condition ``PodScheduled``."""
        return next((each for each in self.status.conditions or () if each.type == "PodScheduled"), None)

    @property
    def scheduled_at(self) -> datetime | None:
        """The time at which it got its node: of a rejected pod that of the rejection, or shortly before."""
        condition = self.scheduled
        texts = (self.status.start_time, condition.last_transition_time if condition is not None else None)
        found = []
        for text in filter(None, texts):
            with suppress(msgspec.ValidationError):  # a kubelet may write the year 0, which a server takes
                found.append(msgspec.convert(text, datetime))
        return max(found, default=None)


class DaemonSetCounts(msgspec.Struct, rename="camel"):
    """The status of a DaemonSet, in part."""

    desired_number_scheduled: int = 0
    number_ready: int = 0
    observed_generation: int = 0


class DaemonSetView(ObjectView):
    """A DaemonSet, in part."""

    status: DaemonSetCounts = msgspec.field(default_factory=DaemonSetCounts)

    @property
    def may_want_pods(self) -> bool:
        """Whether its controller wants a pod of it, or has not seen it yet."""
        return self.status.desired_number_scheduled > 0 or self.status.observed_generation == 0


class TopologyView(ObjectView):
    """A NetworkTopology, in part: the ConfigMap with its measurements, in either spelling."""

    spec: dict[str, Any] | None = None

    @property
    def measurements(self) -> str | None:
        """Name of the ConfigMap."""
        spec = self.spec or {}
        return spec.get("configmapName") or spec.get("configMapName")
