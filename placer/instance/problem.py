"""The problem by name: nodes, pods, gangs, the tier tree, queues, the policy, and the instance that holds them all.

:class:`Constraints` is canonical and hashable, so pods of one template share one object (C3). Source: component-helpers
``scheduling/corev1/nodeaffinity`` and core/v1 ``Toleration.ToleratesTaint``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from placer.instance.communication import AppGroup, Link, Network, Spread
from placer.instance.keys import GroupKey, Key, label_word
from placer.quantity import Resources

if TYPE_CHECKING:
    from placer.instance.findings import Finding
    from placer.instance.numa.numa_values import NumaDemand, NumaNode

__all__ = [
    "ANY_SCHEDULER",
    "DEFAULT_OS",
    "LEVELS",
    "NAMESPACE_LABEL",
    "NO_NEIGHBOURS",
    "NO_TIER",
    "OS_LABEL",
    "AffinityTerm",
    "Constraints",
    "DisruptionBudget",
    "DomainUnit",
    "Group",
    "HostPort",
    "HyperNode",
    "Instance",
    "Neighbours",
    "NetworkTopology",
    "Node",
    "NodeMark",
    "Pod",
    "PodSelector",
    "PodState",
    "Policy",
    "Queue",
    "Requirement",
    "SetAside",
    "SpreadLimit",
    "SubGroup",
    "SubGroupPolicy",
    "Taint",
    "Term",
    "Toleration",
    "TopologyTree",
    "group_of_one",
]


OS_LABEL = "kubernetes.io/os"
DEFAULT_OS = "linux"
#: The API server labels every namespace with its name.
NAMESPACE_LABEL = "kubernetes.io/metadata.name"
UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
TOPOLOGY_POLICY = "topologyManagerPolicy"


@dataclass(frozen=True, slots=True, order=True)
class Taint:
    """``effect`` is NoSchedule or NoExecute (others keep no pod off)."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True, order=True)
class Toleration:
    """A toleration as written; empty ``key`` with Exists tolerates all, empty ``effect`` every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Whether a pod with this toleration may be on a node with ``taint``."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return bool(self.key) and self.value == taint.value


@dataclass(frozen=True, slots=True, order=True)
class Requirement:
    """One expression of a node selector: ``key operator values`` with In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, value: str | None) -> bool:
        """Whether a label of this value (None: absent) meets the requirement."""
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return self._compares(value)
        return False

    def _compares(self, value: str | None) -> bool:
        if value is None or len(self.values) != 1:
            return False
        try:
            label, bound = int(value), int(self.values[0])
        except ValueError:
            return False
        return label > bound if self.operator == "Gt" else label < bound


@dataclass(frozen=True, slots=True, order=True)
class Term:
    """A node selector term: all label ``expressions`` and ``fields`` (metadata.name) hold; empty: no match."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def matches(self, node: Node) -> bool:
        """Whether the node meets every requirement of this term."""
        if not self.expressions and not self.fields:
            return False
        if not all(requirement.holds(node.labels.get(requirement.key)) for requirement in self.expressions):
            return False
        return all(requirement.holds(node.field(requirement.key)) for requirement in self.fields)


@dataclass(frozen=True, slots=True, order=True)
class NodeMark:
    """A limit to nodes that is no part of a pod's spec: its queue or a mark of another system states it.

    Parameters
    ----------
    refusal
        Why a node is not eligible that the term does not match, in a few words.
    """

    refusal: str
    term: Term

    @property
    def asks_kubelet(self) -> bool:
        """Whether it limits the policy of a node's kubelet, as a NodeResourceTopology gives it."""
        return any(each.key == TOPOLOGY_POLICY for each in self.term.fields)


def _is_matched(terms: Iterable[Term], node: Node) -> bool:
    return any(term.matches(node) for term in terms)


#: How the keys of taints begin by which Kubernetes says how a node is.
_STATE_TAINTS = "node.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class Constraints:
    """What a pod asks of a node's own properties (C3); pairs and marks sorted.

    Parameters
    ----------
    required
        Of each entry at least one term must match: required node affinity, and one entry per bound volume with
        affinity.
    os
        Operating system whose kubelets alone admit the pod; empty: any.
    marks
        Limits by its queue and by marks of other systems; all must hold.
    """

    tolerations: tuple[Toleration, ...] = ()
    selector: tuple[tuple[str, str], ...] = ()
    required: tuple[tuple[Term, ...], ...] = ()
    os: str = ""
    marks: tuple[NodeMark, ...] = ()

    @property
    def os_terms(self) -> tuple[Term, ...]:
        """Terms of which one must match for the operating system; empty: any will do."""
        if not self.os:
            return ()
        labelled = Term((Requirement(OS_LABEL, "In", (self.os,)),))
        return (labelled, Term((Requirement(OS_LABEL, "DoesNotExist"),))) if self.os == DEFAULT_OS else (labelled,)

    def admits(self, node: Node) -> bool:
        """Whether a pod with these constraints may be bound to ``node`` (C3)."""
        return self.refusal(node) is None

    def refusal(self, node: Node) -> str | None:
        """Why the node is not eligible, in a few words; None where it is."""
        if not node.ready:
            return "node is not Ready"
        return self._repelled(node) or self.mismatch(node)

    def refusals(self, node: Node) -> list[str]:
        """Every reason why the node is not eligible, without taints that repeat one of them."""
        found = [] if node.ready else ["node is not Ready"]
        sound = replace(node, ready=True, taints=())
        found += [text for text in (self._repelled(sound),) if text is not None]
        for taint in node.taints:
            text = self._repelled(replace(sound, unschedulable=False, taints=(taint,)))
            if text is not None and not (found and taint.key.startswith(_STATE_TAINTS)):
                found.append(text)
        return [*found, *(text for text in (self.mismatch(node),) if text is not None)]

    def _repelled(self, node: Node) -> str | None:
        if node.unschedulable and not self._tolerated(Taint(UNSCHEDULABLE_TAINT, "", "NoSchedule")):
            return "node is unschedulable"
        taint = self.untolerated(node)
        if taint is not None:
            return f"untolerated taint {taint.key}{'=' + taint.value if taint.value else ''}:{taint.effect}"
        return None

    def untolerated(self, node: Node) -> Taint | None:
        """The first taint of a node that these tolerations do not tolerate."""
        return next((taint for taint in node.taints if not self._tolerated(taint)), None)

    def mismatch(self, node: Node) -> str | None:
        """The first label that the node lacks, in a few words."""
        for label, value in self.selector:
            if node.labels.get(label) != value:
                return f"node selector {label}={label_word(value)}"
        if not all(_is_matched(terms, node) for terms in self.required):
            return "required node affinity"
        if self.os and not _is_matched(self.os_terms, node):
            return f"operating system other than {self.os}"
        return next((each.refusal for each in self.marks if not each.term.matches(node)), None)

    def _tolerated(self, taint: Taint) -> bool:
        return any(toleration.tolerates(taint) for toleration in self.tolerations)


@dataclass(frozen=True, slots=True)
class Node:
    """A Kubernetes node.

    Parameters
    ----------
    allocatable
        Milli-cpu, bytes, counts; ``pods`` included.
    taints
        The NoSchedule and NoExecute ones only.
    ready
        False where a Ready condition says anything but True.
    numa
        Zones and the kubelet's policy (C10); None without a NodeResourceTopology.
    topology_policy
        That policy, where C10 is off, too; empty without a NodeResourceTopology.
    """

    name: str
    allocatable: Resources
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    numa: NumaNode | None = None
    topology_policy: str = ""

    def field(self, key: str) -> str | None:
        """The value of a field that terms name; None where there is none."""
        return self.name if key == "metadata.name" else self.topology_policy or None if key == TOPOLOGY_POLICY else None


class PodState(Enum):
    """Whether a pod is placer's to place, runs, is being deleted, or is nominated."""

    PENDING = "pending"  #: ours to place
    BOUND = "bound"  #: has a node and runs or will; keeps it (C1)
    TERMINATING = "terminating"  #: bound and being deleted: holds its room (C2, C9, C11), counts for nothing else
    NOMINATED = "nominated"  #: another scheduler's pending pod that holds its room on its nominated node (C2 only)

    @property
    def on_node(self) -> bool:
        """Whether the pod is on its node, running or being deleted, so that it takes what rules limit."""
        return self in (PodState.BOUND, PodState.TERMINATING)


class HostPort(NamedTuple):
    """A port taken on the node itself; ``ip`` 0.0.0.0 is every address."""

    protocol: str
    ip: str
    port: int

    def clashes(self, other: HostPort) -> bool:
        """Whether both cannot be open on one node."""
        same_port = self.protocol == other.protocol and self.port == other.port
        return same_port and (self.ip == other.ip or "0.0.0.0" in (self.ip, other.ip))


@dataclass(frozen=True, slots=True)
class PodSelector:
    """Which pods a term or a spread constraint means.

    Parameters
    ----------
    namespaces
        Names, sorted.
    namespace_requirements
        Labels by which further namespaces are meant; empty: all; None: no further ones.
    requirements
        Labels of a pod, ``matchLabelKeys`` and ``mismatchLabelKeys`` included; empty: every pod; None: no pod at all.
    """

    namespaces: tuple[str, ...]
    namespace_requirements: tuple[Requirement, ...] | None
    requirements: tuple[Requirement, ...] | None

    def matches(self, pod: Pod, namespace_labels: Mapping[str, Mapping[str, str]]) -> bool:
        """Whether a pod is meant; a namespace without entry has its name as its only label."""
        if self.requirements is None:
            return False
        if not all(each.holds(pod.labels.get(each.key)) for each in self.requirements):
            return False
        if pod.namespace in self.namespaces:
            return True
        if self.namespace_requirements is None:
            return False
        labels = {NAMESPACE_LABEL: pod.namespace, **namespace_labels.get(pod.namespace, {})}
        return all(each.holds(labels.get(each.key)) for each in self.namespace_requirements)


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """A required term of pod affinity (C12) or anti-affinity (C13).

    Nodes of one value of the label ``topology_key`` are one domain; a node without it is in none.
    """

    topology_key: str
    pods: PodSelector


@dataclass(frozen=True, slots=True)
class SpreadLimit:
    """A topology spread constraint with DoNotSchedule (C14) over the domains of the label ``topology_key``.

    Parameters
    ----------
    max_skew
        By how many pods a domain may exceed the one with the fewest, at least 1.
    min_domains
        With fewer domains the fewest is taken to be 0.
    keys
        Labels that a node needs to count at all: those of all the pod's constraints with DoNotSchedule.
    counted
        Further demands on nodes that count: tolerations under ``nodeTaintsPolicy: Honor``, node selector and required
        node
        affinity under ``nodeAffinityPolicy: Honor``.
    """

    topology_key: str
    pods: PodSelector
    max_skew: int
    min_domains: int
    keys: tuple[str, ...]
    counted: Constraints

    def counts(self, node: Node) -> bool:
        """Whether pods on a node count, and its domain with them."""
        if any(key not in node.labels for key in self.keys):
            return False
        return self.counted.mismatch(node) is None and self.counted.untolerated(node) is None


@dataclass(frozen=True, slots=True)
class DomainUnit:
    """Pods that must all be in one domain of a node label (C7 by label), maybe in one of their own (C15).

    Pods of one name and key are one unit; a node without the label is in no domain.

    Parameters
    ----------
    name
        For people: a PodGroup, a child Job of a JobSet, a replica or subgroup of a LeaderWorkerSet.
    exclusive
        Whether no other unit that is exclusive in the same key may have a pod in its domain.
    """

    name: str
    topology_key: str
    exclusive: bool = False

    def keeps_off(self, other: DomainUnit) -> bool:
        """Whether the two may not be in one domain (C15)."""
        alone = self.exclusive and other.exclusive
        return alone and self != other and self.topology_key == other.topology_key


@dataclass(frozen=True, slots=True)
class ChildJob:
    """A pod is of a JobSet's Job, over a node label in which such Jobs are exclusive (C15).

    ``exclusive``: the pod's own Job is, so no pod of one that is not may be in its domain.
    """

    topology_key: str
    exclusive: bool

    @property
    def opposite(self) -> ChildJob:
        """The pods that it keeps off."""
        return ChildJob(self.topology_key, not self.exclusive)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What a pod asks of the pods around it: C12, C13, C14, C7 by label, and C15. Shared between equal pods.

    Terms are sorted, each once. Of ``units`` at most one of a key is exclusive; ``jobs`` has one entry for each key.
    """

    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    spread: tuple[SpreadLimit, ...] = ()
    units: tuple[DomainUnit, ...] = ()
    jobs: tuple[ChildJob, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is asked."""
        return bool(self.affinity or self.anti_affinity or self.spread or self.units or self.jobs)


NO_NEIGHBOURS = Neighbours()


#: Ends a protection's words where a mark of another system gives it.
BY_MARK = " protects it"


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that is pending for us, or that holds room.

    Parameters
    ----------
    requests
        By the Kubernetes formula, ``pods: 1`` included.
    constraints
        Shared between equal pods.
    node
        Where it is bound or nominated to; None while pending. May name a node that is not in the instance.
    priority
        spec.priority, else its class, else the global default class, else 0.
    group
        The PodGroup that it names, or for a pending pod without one the group of its own name.
    sub_group
        Index into the group's ``sub_groups``; None where no policy takes it.
    role
        ``volcano.sh/task-spec``; empty where absent.
    queue
        Whose capability it counts against (C11); None: in no queue.
    created
        Seconds since the epoch; 0.0 where absent.
    daemon
        DaemonSet or static pod: does not make its node count as used (O4).
    app_group
        Namespace and name (C8, C9, O3).
    workload
        None where its AppGroup does not know it, so that it has no dependencies.
    numa
        C10; None where no kubelet would align anything of it, and in an instance without zones.
    unsupported
        Fields that ask for more than is modelled (C4), as ``field: what``; such a pod is never bound.
    protected
        Why a bound pod is never disturbed, whatever would be gained (D2); empty where it may be.
    never_preempts
        ``preemptionPolicy: Never`` of its upstream PodGroup, else of the pod; for other schedulers and passes that make
        room, since no rule looks at it.
    text_bytes
        Of its labels and annotations; no rule looks at it.
    running_priority
        Priority as a unit while it runs (D1), where that is not its own: it states none and its group has one, or the
        class
        of its group counts and is more.
    """

    namespace: str
    name: str
    state: PodState
    requests: Resources
    constraints: Constraints
    host_ports: tuple[HostPort, ...] = ()
    node: str | None = None
    priority: int = 0
    group: GroupKey | None = None
    sub_group: int | None = None
    role: str = ""
    queue: str | None = None
    created: float = 0.0
    daemon: bool = False
    app_group: Key | None = None
    workload: str | None = None
    numa: NumaDemand | None = None
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    neighbours: Neighbours = NO_NEIGHBOURS
    unsupported: tuple[str, ...] = ()
    protected: str = ""
    never_preempts: bool = False
    text_bytes: int = field(default=0, compare=False)
    running_priority: int | None = None

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return Key(self.namespace, self.name)

    @property
    def unit_priority(self) -> int:
        """Priority of the unit that it is alone; no unit that it is of has a lower one (D1)."""
        return self.priority if self.running_priority is None else self.running_priority

    @property
    def protecting_mark(self) -> str:
        """The mark of another system that protects it (D2); empty: none does."""
        return self.protected.removesuffix(BY_MARK) if self.protected.endswith(BY_MARK) else ""


#: A limit below every tier: what an unknown tierName admits (nothing).
NO_TIER = -1


@dataclass(frozen=True, slots=True)
class NetworkTopology:
    """How near the pods of a scope must (hard) or should (soft) be.

    Parameters
    ----------
    hard
        ``mode: hard``, also where mode is absent; soft never forbids.
    highest_tier
        ``highestTierAllowed``, or the tier of ``highestTierName``; None: neither is set; :data:`NO_TIER`: the name is
        unknown or ambiguous.
    tier_name
        ``highestTierName`` as written; empty: absent.
    """

    hard: bool
    highest_tier: int | None = None
    tier_name: str = ""

    @property
    def limit(self) -> int | None:
        """The tier that must not be exceeded (C7); None: no limit."""
        return self.highest_tier if self.hard else None

    @property
    def asked(self) -> str:
        """The limit as people read it."""
        if self.highest_tier == NO_TIER:
            if not self.tier_name:
                return "a tierName that admits nothing"
            what = "is not the name of one tier (the findings say why), so that it admits nothing"
            return f"tierName {self.tier_name}, which {what}"
        return f"highest tier {self.highest_tier}" + (f" ({self.tier_name})" if self.tier_name else "")


@dataclass(frozen=True, slots=True)
class SubGroupPolicy:
    """One ``subGroupPolicy`` of a PodGroup: every set of pods it makes is a gang of at least ``size`` (C6).

    ``size`` is at least 1; ``min_sub_groups`` of its subgroups must be ready (C5), 0: none in particular.
    """

    name: str
    size: int = 1
    min_sub_groups: int = 0
    topology: NetworkTopology | None = None


@dataclass(frozen=True, slots=True)
class SubGroup:
    """The pods of one policy that share the values of its ``matchLabelKeys``.

    Parameters
    ----------
    name
        Policy name and label values joined by ``-``: for people, since it need not be unique.
    policy
        Index into the group's ``policies``.
    pending
        Our pending pods, sorted.
    succeeded
        Members that finished and count as placed (Volcano only).
    """

    name: str
    policy: int
    pending: tuple[Key, ...] = ()
    bound: tuple[Key, ...] = ()
    succeeded: int = 0

    @property
    def placed_before(self) -> int:
        """Pods that count as placed before this placement."""
        return len(self.bound) + self.succeeded


@dataclass(frozen=True, slots=True)
class Group:
    """A gang: a PodGroup, or one pod in no group.

    Parameters
    ----------
    min_member
        Least placed pods (C5).
    min_task_member
        Least placed pods per role; empty where ``minMember`` is below their sum, since Volcano then checks none.
    topology
        For the whole group; ``locality: all`` of the Policy is applied already.
    sub_groups
        One entry per set that has a pod.
    queue
        None: in none.
    priority
        Compared in O1, higher first.
    created
        Seconds since the epoch, for ties.
    pending
        Our pending pods, sorted, unsupported ones included.
    bound
        Members that run and are not terminating.
    succeeded
        Members that finished and count as placed, by role (Volcano only).
    finished
        All members that succeeded, whether they count or not; no rule looks at it.
    min_resources
        ``minResources``; for other schedulers (``policies``), since no rule looks at it.
    class_priority
        Of its PodGroup's class; None: none. Other schedulers use it whatever the pods state.
    invalid
        Why nothing of it may be placed (InvalidGroup); None where the group is in order.
    disrupted_whole
        Its pods are disturbed together (``disruptionMode: all``), even where some alone would leave it ready (D1).
    stated
        The mark of its pods that states ``min_member``, for people; empty: a PodGroup does.
    """

    key: GroupKey
    min_member: int = 0
    min_task_member: Mapping[str, int] = field(default_factory=dict)
    topology: NetworkTopology | None = None
    policies: tuple[SubGroupPolicy, ...] = ()
    sub_groups: tuple[SubGroup, ...] = ()
    queue: str | None = None
    priority: int = 0
    created: float = 0.0
    pending: tuple[Key, ...] = ()
    bound: tuple[Key, ...] = ()
    succeeded: Mapping[str, int] = field(default_factory=dict)
    finished: tuple[Key, ...] = ()
    min_resources: Resources = field(default_factory=Resources)
    class_priority: int | None = None
    invalid: str | None = None
    disrupted_whole: bool = False
    stated: str = ""

    @property
    def topologies(self) -> tuple[NetworkTopology, ...]:
        """Limits of the whole group and of each of its policies."""
        asked = (self.topology, *(policy.topology for policy in self.policies))
        return tuple(each for each in asked if each is not None)

    @property
    def limited(self) -> bool:
        """Whether it, or a subgroup of it, may not leave a tier (C7)."""
        return any(each.limit is not None for each in self.topologies)

    @property
    def placed_before(self) -> int:
        """Pods that count as placed before this placement."""
        return len(self.bound) + sum(self.succeeded.values())

    @property
    def need(self) -> int:
        """How many of its pending pods the group needs at least (models/README.md, O1)."""
        by_role = sum(self.min_task_member.values())
        by_policy = sum(policy.min_sub_groups * policy.size for policy in self.policies)
        return max(0, max(self.min_member, by_role, by_policy) - self.placed_before)


def group_of_one(pod: Pod) -> Group | None:
    """The gang that a pending pod in no PodGroup is; None for any other pod."""
    if pod.group is None or pod.group.api_group:
        return None
    return Group(
        key=pod.group,
        min_member=1,
        queue=pod.queue,
        priority=pod.priority,
        created=pod.created,
        pending=(pod.key,),
    )


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue and its limits on pods.

    Parameters
    ----------
    capability
        Most that its pods may request, per resource listed (an explicit 0 is a limit), in units of
        :class:`~placer.quantity.Resources`.
    parent
        The queue whose capability binds too; None at the root, and where the parent is not there.
    weight
        Its share compared with others; for other schedulers (``policies``), since no rule looks at it.
    reclaimable
        False: what runs in it goes only for a group of the queue, of a higher priority (D2).
    marks
        Limits to the nodes of its pods, from itself or the nearest queue above that states any (C3).
    namespaces
        Those whose pods it takes; None: any.
    """

    name: str
    capability: Mapping[str, int]
    parent: str | None = None
    open: bool = True
    weight: int = 1
    reclaimable: bool = True
    marks: tuple[NodeMark, ...] = ()
    namespaces: frozenset[str] | None = None

    def is_closed_to(self, namespace: str | None) -> bool:
        """Whether it takes no new pods of a namespace; None: of any (C11)."""
        theirs = self.namespaces is not None and namespace is not None and namespace not in self.namespaces
        return not self.open or theirs


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """How many of some pods may be disturbed at once (D2).

    Parameters
    ----------
    pods
        The bound pods that it means.
    allowed
        The most that may be disturbed, at least 0.
    kept
        How many must run, counted from the pods that are there; None: a status said ``allowed``.
    of_policy
        The limit is ``maxPods`` of the Policy of that name, over all bound pods.
    """

    key: Key
    pods: frozenset[Key]
    allowed: int
    kept: int | None = None
    of_policy: bool = False

    def __str__(self) -> str:
        """``PodDisruptionBudget default/web``, or ``disruption.maxPods of Policy default``."""
        return f"disruption.maxPods of Policy {self.key.name}" if self.of_policy else f"PodDisruptionBudget {self.key}"

    def without(self, gone: Collection[Key]) -> DisruptionBudget:
        """The same where some of the pods run no more."""
        left = self.pods.difference(gone)
        return replace(self, pods=left, allowed=self.allowed if self.kept is None else max(0, len(left) - self.kept))


@dataclass(frozen=True, slots=True)
class HyperNode:
    """A network domain. Tiers grow from children to parents, and only the virtual root is above a root.

    ``children`` and ``nodes`` are sorted; a HyperNode with direct ``nodes`` is a *leaf HyperNode*.
    """

    name: str
    tier: int
    tier_name: str = ""
    parent: str | None = None
    children: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TopologyTree:
    """All sound HyperNodes and the virtual root above them; broken ones are findings.

    A node belongs to the lowest HyperNode that lists it (its *leaf*), and with it to all ancestors of that one.

    Parameters
    ----------
    hyper_nodes
        By name, sorted.
    root_tier
        1 + the highest tier of all HyperNode objects, those left out included; 1 without any.
    left_out
        Broken HyperNodes and their ancestors, sorted.
    """

    hyper_nodes: Mapping[str, HyperNode]
    root_tier: int = 1
    left_out: tuple[str, ...] = ()

    @cached_property
    def leaf(self) -> Mapping[str, str]:
        """Node to its leaf HyperNode; a node in no HyperNode is absent."""
        lowest: dict[str, str] = {}
        for hyper_node in sorted(self.hyper_nodes.values(), key=lambda h: -h.tier):
            lowest.update(dict.fromkeys(hyper_node.nodes, hyper_node.name))
        return lowest

    @cached_property
    def paths(self) -> Mapping[str, tuple[str, ...]]:
        """HyperNode to itself and its ancestors, lowest first, without the virtual root."""
        found: dict[str, tuple[str, ...]] = {}
        for hyper_node in sorted(self.hyper_nodes.values(), key=lambda h: -h.tier):
            above = found[hyper_node.parent] if hyper_node.parent is not None else ()
            found[hyper_node.name] = (hyper_node.name, *above)
        return found

    def path(self, node: str) -> tuple[str, ...]:
        """HyperNodes that hold the node, lowest first; empty where only the virtual root does."""
        leaf = self.leaf.get(node)
        return () if leaf is None else self.paths[leaf]

    def smallest_common(self, nodes: Iterable[str]) -> str | None:
        """Lowest HyperNode that holds all the nodes; None: the virtual root (also for no node at all)."""
        common: tuple[str, ...] | None = None
        for node in set(nodes):
            path = self.path(node)
            common = path if common is None else tuple(name for name in common if name in path)
            if not common:
                return None
        return common[0] if common else None

    def tier(self, hyper_node: str | None) -> int:
        """Tier of a HyperNode; None is the virtual root."""
        return self.root_tier if hyper_node is None else self.hyper_nodes[hyper_node].tier


#: O1..O4 in the default order.
LEVELS = ("placed", "locality", "networkCost", "packing")


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy object of an instance, defaults filled in.

    Parameters
    ----------
    levels
        In the order they are compared.
    network_cost
        ``all`` or ``majority`` (C8).
    network_topology, network_weights
        ``namespace/name`` of a NetworkTopology, and which list of it; None: as models/reading.md says.
    topology_keys
        Node labels, nearest first, that make the tree where no HyperNode is given.
    locality_all
        Every PodGroup without networkTopology wants soft locality.
    resource_weights
        Where not empty, O1 looks at these resources only, each share times its number.
    rules_off
        Rules (C8, C9, C10, C11) that this cluster does not know.
    gangs_of_owners
        Each JobSet, replica of a LeaderWorkerSet and Indexed Job is a gang though nothing says so.
    class_decides
        A PodGroup's class is its priority, whatever its pods state.
    evicts, moves
        A pass may evict pods of lower priority, or move pods, where a group is not admitted otherwise.
    """

    levels: tuple[str, ...] = LEVELS
    network_cost: str = "all"
    network_topology: str | None = None
    network_weights: str | None = None
    topology_keys: tuple[str, ...] = ()
    locality_all: bool = False
    resource_weights: Mapping[str, Fraction] = field(default_factory=dict)
    rules_off: frozenset[str] = frozenset()
    gangs_of_owners: bool = False
    class_decides: bool = False
    evicts: bool = False
    moves: bool = False


#: In place of a scheduler's name: pending pods of every scheduler are ours.
ANY_SCHEDULER = "*"


@dataclass(frozen=True, slots=True)
class SetAside:
    """How many pods wait for a node and are not ours to place; each counts once.

    ``other_schedulers`` has the most pods first and no gated ones; ``gated`` counts those of every scheduler.
    """

    other_schedulers: Mapping[str, int] = field(default_factory=dict)
    gated: int = 0

    def __str__(self) -> str:
        """In words, ``52 for volcano, 3 gated``; empty where nothing is set aside."""
        others = [f"{count:,} for {name}" for name, count in self.other_schedulers.items()]
        return ", ".join([*others, *([f"{self.gated:,} gated"] if self.gated else [])])


#: Weight of a pod that fills an average node (models/README.md, O1).
MICRO = 10**6


@dataclass(frozen=True)
class Instance:
    """The problem. Mappings by name or key are sorted by it unless their entry says otherwise.

    Parameters
    ----------
    pods
        Pending ones of ours, bound, terminating and nominated ones.
    groups
        Every PodGroup, and one group per pending pod that names none.
    app_groups
        AppGroups without pods included.
    network
        The NetworkTopology that decides; None: C8, C9 and O3 do not apply.
    namespaces
        Labels; a namespace without entry has its name as its only label.
    network_costs
        Every NetworkTopology to its lists, by name, to costs of links: for schedulers that choose another one.
    digest
        SHA-256 of the text it was read from, hexadecimal; empty where it was made otherwise.
    skipped
        Kinds that placer does not read, with counts.
    scheduler_name
        Whose pending pods are ours; None: any scheduler's.
    schedulers
        Scheduler to how many of our pending pods name it, the most first.
    of_cluster
        Whether it comes from a cluster (``placer snapshot``).
    absent_work
        Suspended and gated work: a sentence each.
    budgets
        Those that mean a bound pod, sorted by key; behind them ``maxPods`` of the Policy.
    may_evict, may_move
        D3; a user who asks by name may have both.
    moves_only
        Nothing may be evicted, and units of any priority may be moved (D3): to repair lost nodes or make wanted room.
    most_moves
        No placement may move more pods; None: any number.
    beyond_budget
        Pods that wait since their namespace exceeds its budget, and the words for it
        (:mod:`placer.instance.namespace_budget`).
    """

    nodes: Mapping[str, Node]
    pods: Mapping[Key, Pod]
    groups: Mapping[GroupKey, Group]
    topology: TopologyTree = field(default_factory=lambda: TopologyTree({}))
    queues: Mapping[str, Queue] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)
    app_groups: Mapping[Key, AppGroup] = field(default_factory=dict)
    network: Network | None = None
    network_costs: Mapping[Key, Mapping[str, Mapping[Link, int]]] = field(default_factory=dict)
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    digest: str = ""
    skipped: Mapping[str, int] = field(default_factory=dict)
    scheduler_name: str | None = None
    schedulers: Mapping[str, int] = field(default_factory=dict)
    of_cluster: bool = False
    set_aside: SetAside = field(default_factory=SetAside)
    absent_work: tuple[str, ...] = ()
    budgets: tuple[DisruptionBudget, ...] = ()
    may_evict: bool = True
    may_move: bool = True
    moves_only: bool = False
    most_moves: int | None = None
    beyond_budget: Mapping[Key, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Say in one line how large it is."""
        groups = sum(bool(group.pending) for group in self.groups.values())
        counts = ((len(self.nodes), "node"), (len(self.topology.hyper_nodes), "HyperNode"), (len(self.pods), "pod"))
        sizes = ", ".join(_counted(count, word) for count, word in counts if count or word != "HyperNode")
        findings = f"; {_counted(len(self.findings), 'finding')}" if self.findings else ""
        waiting = f"{len(self.pending):,} of them pending in {_counted(groups, 'group')}"
        return f"<Instance: {sizes}, {waiting}{findings}>"

    def __dir__(self) -> list[str]:
        """Names for readers, without those that only methods ask."""
        return [name for name in super().__dir__() if name not in _FOR_METHODS]

    @cached_property
    def pending(self) -> tuple[Pod, ...]:
        """Pods that are ours to place, sorted by key."""
        return tuple(pod for pod in self.pods.values() if pod.state is PodState.PENDING)

    @cached_property
    def held(self) -> Mapping[str, Resources]:
        """Node to the amounts that bound, terminating and nominated pods take; an untouched node is absent."""
        sums: dict[str, dict[str, int]] = {}
        for pod in self.pods.values():
            if pod.node is not None:
                amounts = sums.setdefault(pod.node, {})
                for resource, amount in pod.requests.items():
                    amounts[resource] = amounts.get(resource, 0) + amount
        return {node: Resources(amounts) for node, amounts in sums.items()}

    @cached_property
    def offered(self) -> frozenset[str]:
        """Resources that some node offers any of."""
        amounts = {node.allocatable for node in self.nodes.values()}
        return frozenset(name for allocatable in amounts for name, amount in allocatable.items() if amount > 0)

    def unoffered(self, pod: Pod) -> list[str]:
        """Resources that a pod asks for and no node offers, so only other nodes would let it run."""
        return [name for name, amount in pod.requests.items() if amount > 0 and name not in self.offered]

    def keeping_held(self, **changes: Any) -> Instance:
        """With fields changed that make no node hold more or less, so ``held`` need not be summed again."""
        found = replace(self, **changes)
        vars(found)["held"] = self.held
        return found

    @cached_property
    def weights(self) -> Mapping[Key, int]:
        """Weight of each pending pod in micro-nodes, at least 1 (models/README.md, O1)."""
        return self.weights_of(self.pending)

    def weights_of(self, pods: Iterable[Pod]) -> dict[Key, int]:
        """Weight in micro-nodes, of pending and running pods alike."""
        shares = self.average_shares
        cache: dict[Resources, int] = {}
        found = {}
        for pod in pods:
            if pod.requests not in cache:
                cache[pod.requests] = _weight(pod.requests, shares)
            found[pod.key] = cache[pod.requests]
        return found

    @cached_property
    def average_shares(self) -> Mapping[str, Fraction]:
        """Micro-nodes per unit of each resource that decides: 10^6 x k / total, times its number in the policy."""
        totals: dict[str, tuple[int, int]] = {}
        for allocatable, nodes in Counter(node.allocatable for node in self.nodes.values()).items():
            for resource, amount in allocatable.items():
                if amount > 0:
                    count, total = totals.get(resource, (0, 0))
                    totals[resource] = (count + nodes, total + nodes * amount)
        chosen = self.policy.resource_weights
        return {
            resource: MICRO * Fraction(count, total) * chosen.get(resource, Fraction(1))
            for resource, (count, total) in totals.items()
            if not chosen or resource in chosen
        }

    @cached_property
    def need_weights(self) -> Mapping[GroupKey, int]:
        """Least need of each group in micro-nodes: its share in ``admitted`` where it is ready."""
        return {
            key: sum(sorted(self.weights[pod] for pod in group.pending)[: group.need]) if group.pending else 0
            for key, group in self.groups.items()
        }

    @cached_property
    def priorities(self) -> tuple[int, ...]:
        """Distinct priorities of groups that have a pending pod, highest first."""
        return tuple(sorted({group.priority for group in self.groups.values() if group.pending}, reverse=True))

    @cached_property
    def workload_pods(self) -> Mapping[tuple[Key, str], tuple[Pod, ...]]:
        """AppGroup and workload to its pods, sorted by key: pending, bound and terminating ones; none: absent."""
        found: dict[tuple[Key, str], list[Pod]] = defaultdict(list)
        for pod in self.pods.values():
            if pod.app_group is not None and pod.workload is not None and pod.state is not PodState.NOMINATED:
                found[pod.app_group, pod.workload].append(pod)
        return {workload: tuple(pods) for workload, pods in found.items()}

    @cached_property
    def bound_spreads(self) -> Mapping[tuple[Key, str], Spread]:
        """AppGroup and workload to the nodes of its bound pods; absent: none bound, or no network."""
        return self._spreads(PodState.BOUND)

    @cached_property
    def leaving_spreads(self) -> Mapping[tuple[Key, str], Spread]:
        """The same of terminating pods, which hold bandwidth (C9) and count for nothing else."""
        return self._spreads(PodState.TERMINATING)

    def _spreads(self, state: PodState) -> dict[tuple[Key, str], Spread]:
        if self.network is None:
            return {}
        nodes = {
            workload: [pod.node for pod in pods if pod.state is state and pod.node is not None]
            for workload, pods in self.workload_pods.items()
        }
        return {workload: Spread(self.network, on) for workload, on in nodes.items() if on}

    @cached_property
    def aligning_nodes(self) -> Mapping[str, NumaNode]:
        """Zones of nodes whose kubelets refuse pods that they cannot align (C10), sorted by node."""
        if "C10" in self.policy.rules_off:
            return {}
        numa = {name: node.numa for name, node in self.nodes.items() if node.numa is not None}
        return {name: node for name, node in numa.items() if node.strict}

    def queue_path(self, queue: str | None) -> tuple[str, ...]:
        """The queue and its ancestors, as far as they are known; empty: no known queue."""
        path: list[str] = []
        while queue is not None and queue in self.queues and queue not in path:
            path.append(queue)
            queue = self.queues[queue].parent
        return tuple(path)

    def keeping_queue(self, pod: Pod) -> str | None:
        """The queue of a pod where it is not reclaimable (D2), else None."""
        queue = self.queues.get(pod.queue or "")
        return None if queue is None or queue.reclaimable else queue.name

    def waiting_queue(self, group: Group) -> str | None:
        """The queue that all pods of a group wait in; None: they wait in none, or in several."""
        names = {self.pods[key].queue for key in group.pending}
        return names.pop() if len(names) == 1 else None

    def closed_queue(self, queue: str | None, namespace: str | None) -> str | None:
        """The first queue from ``queue`` upwards that takes no new pods of a namespace (None: of any), else None."""
        return next((name for name in self.queue_path(queue) if self.queues[name].is_closed_to(namespace)), None)


_FOR_METHODS = (
    *("aligning_nodes", "average_shares", "bound_spreads", "closed_queue", "keeping_held", "keeping_queue"),
    *("leaving_spreads", "may_evict", "may_move", "most_moves", "moves_only", "need_weights", "queue_path"),
    *("waiting_queue", "weights_of", "workload_pods", "_spreads"),
)


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _weight(requests: Resources, shares: Mapping[str, Fraction]) -> int:
    largest = max((amount * shares[name] for name, amount in requests.items() if name in shares), default=Fraction(0))
    return max(1, largest.numerator // largest.denominator)
