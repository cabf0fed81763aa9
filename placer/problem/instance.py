"""The problem by name: pods, gangs, queues, the policy, and the instance with all of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from placer.base.quantity import Resources
from placer.base.words import counted
from placer.problem.communication import AppGroup, Link, Network, Spread
from placer.problem.keys import GroupKey, Key
from placer.problem.neighbours import NO_NEIGHBOURS, Neighbours
from placer.problem.nodes import Constraints, Node, NodeMark, TopologyTree

if TYPE_CHECKING:
    from placer.problem.findings import Finding
    from placer.problem.numa import NumaDemand, NumaNode


class PodState(Enum):
    """Whether a pod is placer's to place, runs, is being deleted, or is nominated."""

    PENDING = "pending"  #: ours to place
    BOUND = "bound"  #: has a node and runs or will; keeps it (C1)
    TERMINATING = "terminating"  #: bound and being deleted: holds its room (C2, C9, C11), counts for nothing else
    NOMINATED = "nominated"  #: another scheduler's pending pod that holds its room on its nominated node (C2 only)

    @property
    def on_node(self) -> bool:
        """Whether the pod is on its node, running or being deleted."""
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
        taken = ((port, self._at.get((node, port.protocol, port.port), ())) for port in ports)
        return next((port for port, others in taken if any(map(port.clashes, others))), None)


#: Ends a protection's words where a mark of another system gives it.
BY_MARK = " protects it"


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that is pending for us, or that holds room.

    ``requests``: by the Kubernetes formula, ``pods: 1`` included. ``node``: None while pending. May name a node that is
    not in the instance. ``priority``: spec.priority, else its class, else the global default class, else 0. ``group``:
    for a pending pod without one the group of its own name. ``sub_group``: index into the group's ``sub_groups``.
    ``role``: ``volcano.sh/task-spec``; empty where absent. ``queue``: whose capability it counts against (C11).
    ``created``: seconds since the epoch; 0.0 where absent. ``daemon``: DaemonSet or static pod: does not make its node
    count as used (O4). ``workload``: None: it has no dependencies. ``unsupported``: fields that ask for more than is
    modelled (C4), as ``field: what``. ``protected``: why a bound pod is never disturbed (D2). ``never_preempts``: for
    other schedulers and passes that make room. ``text_bytes``: text by which its namespace's budget counts it.
    ``running_priority``: priority as a unit while it runs (D1), where that is another one.
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
        """Lower bound of the priority of the unit that it is of (D1)."""
        return self.priority if self.running_priority is None else self.running_priority

    @property
    def protecting_mark(self) -> str:
        """The mark of another system that protects it (D2)."""
        return self.protected.removesuffix(BY_MARK) if self.protected.endswith(BY_MARK) else ""


#: A limit below every tier, so that an unknown tierName admits nothing.
NO_TIER = -1


@dataclass(frozen=True, slots=True)
class NetworkTopology:
    """How near the pods of a scope must (hard) or should (soft) be.

    ``highest_tier``: None: not set; :data:`NO_TIER`: its ``tier_name`` is unknown or ambiguous.
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
    """One ``subGroupPolicy``: each set of pods is a gang of ``size`` (C6), ``min_sub_groups`` of which must be
    ready.
    """

    name: str
    size: int = 1
    min_sub_groups: int = 0
    topology: NetworkTopology | None = None


@dataclass(frozen=True, slots=True)
class SubGroup:
    """The pods of one policy that share the values of its ``matchLabelKeys``.

    ``name``: need not be unique. ``policy``: index into the group's ``policies``. ``succeeded``: those that count as
    placed.
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

    ``min_member``, ``min_task_member``: least placed pods, in all and per role (C5). ``sub_groups``: one entry per set
    that has a pod. ``priority``: compared in O1, higher first. ``created``: seconds since the epoch, for ties.
    ``pending``, ``bound``: sorted; unsupported pods are pending, terminating ones in neither. ``succeeded``: members
    that finished and count as placed, by role; ``finished``: all of them. ``min_resources``, ``class_priority``: for
    other schedulers. ``inqueue``: Volcano has let it in and runs none of it; for them, too. ``invalid``: why nothing of
    it may be placed (InvalidGroup). ``disrupted_whole``: its pods are disturbed together (D1). ``stated``:
    the mark of its pods that states ``min_member``.
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
    inqueue: bool = False
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


def groups_of_one(pods: Iterable[Pod]) -> dict[GroupKey, Group]:
    """Every :func:`group_of_one` of some pods."""
    return {group.key: group for group in map(group_of_one, pods) if group is not None}


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue and its limits on pods.

    ``capability``: an explicit 0 is a limit. ``weight``: for other schedulers. ``reclaimable``: False: its running pods
    go only for a more urgent group of it (D2). ``marks``: limits to nodes (C3). ``namespaces``: None: any.
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
    """How many of some bound pods may be disturbed at once (D2).

    ``kept``: how many must run; None: a status said ``allowed``. ``of_policy``: ``maxPods`` of the Policy.
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

    ``topology_keys``: node labels, nearest first, in place of HyperNodes. ``resource_weights``: not empty: O1 looks at
    these only, each share times its number. ``rules_off``: of C8, C9, C10, C11.
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
    """How many pods wait for a node and are not ours to place; each counts once."""

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

    ``groups``: every PodGroup, and one group per pending pod that names none. ``network``: None: C8, C9 and O3 do not
    apply. ``namespaces``: labels; a namespace without entry has its name as its only label. ``network_costs``: every
    NetworkTopology to its lists to costs of links: for other schedulers. ``digest``: SHA-256 of the text it was read
    from, or empty. ``skipped``: kinds that placer does not read, with counts. ``scheduler_name``: whose pending pods
    are ours; None: any scheduler's. ``schedulers``: scheduler to how many of our pending pods name it, the most first.
    ``budgets``: those that mean a bound pod, sorted; behind them ``maxPods`` of the Policy. ``moves_only``: units of
    any priority may be moved, none evicted (D3). ``beyond_budget``: pods that wait since their namespace exceeds its
    budget, and why. ``expanded``: workload without pods to how many pods were made for it that wait.
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
    expanded: Mapping[str, int] = field(default_factory=dict)
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
        sizes = ", ".join(counted(count, word) for count, word in counts if count or word != "HyperNode")
        findings = f"; {counted(len(self.findings), 'finding')}" if self.findings else ""
        waiting = f"{len(self.pending):,} of them pending in {counted(groups, 'group')}"
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
        """Node to the amounts that bound, terminating and nominated pods take."""
        sums: dict[str, dict[str, int]] = {}
        for pod in self.pods.values():
            if pod.node is not None:
                amounts = sums.setdefault(pod.node, {})
                for resource, amount in pod.requests.items():
                    amounts[resource] = amounts.get(resource, 0) + amount
        return {node: Resources(amounts) for node, amounts in sums.items()}

    @cached_property
    def allocatables(self) -> Mapping[Resources, int]:
        """Allocatable amounts to the number of their nodes."""
        return Counter(node.allocatable for node in self.nodes.values())

    @cached_property
    def domain_sizes(self) -> Mapping[str, int]:
        """HyperNode to the number of its nodes."""
        return Counter(name for node in self.nodes for name in self.topology.path(node))

    @cached_property
    def offered(self) -> frozenset[str]:
        """Resources that some node offers any of."""
        return frozenset(name for each in self.allocatables for name, amount in each.items() if amount > 0)

    def unoffered(self, pod: Pod) -> list[str]:
        """Resources that a pod asks for and no node offers."""
        return [name for name, amount in pod.requests.items() if amount > 0 and name not in self.offered]

    def keeping_held(self, **changes: Any) -> Instance:
        """Change fields that make no node hold more or less, so ``held`` need not be summed again."""
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
        for allocatable, nodes in self.allocatables.items():
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
        """AppGroup and workload to its pending, bound and terminating pods, sorted by key."""
        found: dict[tuple[Key, str], list[Pod]] = defaultdict(list)
        for pod in self.pods.values():
            if pod.app_group is not None and pod.workload is not None and pod.state is not PodState.NOMINATED:
                found[pod.app_group, pod.workload].append(pod)
        return {workload: tuple(pods) for workload, pods in found.items()}

    @cached_property
    def bound_spreads(self) -> Mapping[tuple[Key, str], Spread]:
        """AppGroup and workload to the nodes of its bound pods."""
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
        """The queue that all pods of a group wait in; None: none, or several."""
        names = {self.pods[key].queue for key in group.pending}
        return names.pop() if len(names) == 1 else None

    def closed_queue(self, queue: str | None, namespace: str | None) -> str | None:
        """The first queue from ``queue`` upwards that takes no new pods of a namespace (None: of any)."""
        return next((name for name in self.queue_path(queue) if self.queues[name].is_closed_to(namespace)), None)


_FOR_METHODS = (
    *("aligning_nodes", "average_shares", "bound_spreads", "closed_queue", "keeping_held", "keeping_queue"),
    *("leaving_spreads", "may_evict", "may_move", "most_moves", "moves_only", "need_weights", "queue_path"),
    *("waiting_queue", "weights_of", "workload_pods", "_spreads"),
)


def _weight(requests: Resources, shares: Mapping[str, Fraction]) -> int:
    largest = max((amount * shares[name] for name, amount in requests.items() if name in shares), default=Fraction(0))
    return max(1, largest.numerator // largest.denominator)
