"""The problem by name: pods, gangs, queues, the policy, and the instance that holds them and all nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from placer.instance.communication import AppGroup, Link, Network, Spread
from placer.instance.keys import GroupKey, Key
from placer.instance.neighbours import NO_NEIGHBOURS, Neighbours
from placer.instance.nodes import TopologyTree
from placer.quantity import Resources

if TYPE_CHECKING:
    from placer.instance.findings import Finding
    from placer.instance.nodes import Constraints, Node, NodeMark
    from placer.instance.numa.numa_values import NumaDemand, NumaNode


class PodState(Enum):
    """Whether a pod is placer's to place, runs, is being deleted, or is nominated."""

    PENDING = "pending"  #: ours to place
    BOUND = "bound"  #: has a node and runs or will; keeps it (C1)
    TERMINATING = "terminating"  #: bound and being deleted: holds its room (C2, C9, C11), counts for nothing else
    NOMINATED = "nominated"  #: another scheduler's pending pod that holds its room on its nominated node (C2 only)

    @property
    def on_node(self) -> bool:
        """Whether the pod is on its node, running or being deleted, so that it takes amounts that rules limit."""
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


class TakenPorts:
    """Host ports that pods hold on nodes; one that clashes is found by its number."""

    def __init__(self) -> None:
        self._at: dict[tuple[str, str, int], list[HostPort]] = defaultdict(list)

    def take(self, node: str, ports: Iterable[HostPort]) -> None:
        """Add the ports of a pod."""
        for port in ports:
            self._at[node, port.protocol, port.port].append(port)

    def give_back(self, node: str, ports: Iterable[HostPort]) -> None:
        """Remove the ports of a pod that holds them."""
        for port in ports:
            self._at[node, port.protocol, port.port].remove(port)

    def clash(self, node: str, ports: Iterable[HostPort]) -> HostPort | None:
        """The first of some ports that cannot be opened on a node; None: all can."""
        return next((port for port in ports if self._is_taken(node, port)), None)

    def _is_taken(self, node: str, port: HostPort) -> bool:
        return any(port.clashes(other) for other in self._at.get((node, port.protocol, port.port), ()))


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
        Text by which its namespace's budget counts it; no rule looks at it.
    running_priority
        Priority as a unit while it runs (D1), where that is not its own: it states none and its group has one, or the
        class of its group counts and is more.
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


#: A limit below every tier, so that an unknown tierName admits nothing.
NO_TIER = -1


@dataclass(frozen=True, slots=True)
class NetworkTopology:
    """How near the pods of a scope must (hard) or should (soft) be.

    ``hard``: ``mode: hard``, also where mode is absent; soft never forbids. ``highest_tier``: ``highestTierAllowed``,
    or the tier of ``highestTierName``; None: neither is set; :data:`NO_TIER`: the name is unknown or ambiguous.
    ``tier_name``: ``highestTierName`` as written; empty: absent.
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

    ``name``: policy name and label values joined by ``-``: for people, since it need not be unique. ``policy``: index
    into the group's ``policies``. ``pending``: our pending pods, sorted. ``succeeded``: members that finished and count
    as placed (Volcano only).
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
        False: its running pods go only for a group of the queue, of a higher priority (D2).
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

    ``pods``: the bound pods that it means. ``allowed``: the most that may be disturbed, at least 0. ``kept``: how many
    must run, counted from the pods that are there; None: a status said ``allowed``. ``of_policy``: the limit is
    ``maxPods`` of the Policy of that name, over all bound pods.
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
