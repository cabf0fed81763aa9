"""Small instances written in a few lines, straight as values: no YAML between a test and the rule it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from placer.base.quantity import CPU, PODS, Resources
from placer.problem import (
    AppGroup,
    Constraints,
    Dependency,
    Group,
    GroupKey,
    HostPort,
    HyperNode,
    Instance,
    Key,
    Link,
    Network,
    NetworkTopology,
    Node,
    Pod,
    PodState,
    Policy,
    Queue,
    Requirement,
    SubGroup,
    SubGroupPolicy,
    Taint,
    Term,
    Toleration,
    TopologyTree,
)
from placer.problem.communication import REGION_LABEL, ZONE_LABEL
from placer.problem.neighbours import (
    NO_NEIGHBOURS,
    AffinityTerm,
    ChildJob,
    DomainUnit,
    Neighbours,
    PodSelector,
    SpreadLimit,
)
from placer.problem.network_objects import areas_of
from placer.problem.numa import NumaDemand, NumaNode, Stage

GPU = "nvidia.com/gpu"
VOLCANO = "scheduling.volcano.sh"
COSCHEDULING = "scheduling.x-k8s.io"
SPACE = "default"


def hard(tier: int | None = None) -> NetworkTopology:
    return NetworkTopology(hard=True, highest_tier=tier)


def soft(tier: int | None = None) -> NetworkTopology:
    return NetworkTopology(hard=False, highest_tier=tier)


def calls(text: str, cost: int = 0, bandwidth: int | None = None) -> Dependency:
    """A dependency, ``web>db``; its maxNetworkCost and its minBandwidth in bit/s."""
    origin, destination = text.split(">")
    return Dependency(origin, destination, cost, bandwidth)


def port(number: int, ip: str = "0.0.0.0", protocol: str = "TCP") -> HostPort:
    return HostPort(protocol, ip, number)


def means(*namespaces: str, **labels: str) -> PodSelector:
    """Pods of some namespaces, the usual one if none is named, that have some labels."""
    requirements = tuple(sorted(Requirement(key, "In", (value,)) for key, value in labels.items()))
    return PodSelector(namespaces or (SPACE,), None, requirements)


def near(key: str, *namespaces: str, **labels: str) -> Neighbours:
    """One term of pod affinity over a node label."""
    return Neighbours(affinity=(AffinityTerm(key, means(*namespaces, **labels)),))


def apart(key: str, *namespaces: str, **labels: str) -> Neighbours:
    """One term of pod anti-affinity over a node label."""
    return Neighbours(anti_affinity=(AffinityTerm(key, means(*namespaces, **labels)),))


def spread(key: str, skew: int = 1, least: int = 1, **labels: str) -> Neighbours:
    """A spread constraint over a node label; nodes count that have it, whatever the pod may use."""
    counted = Constraints(tolerations=(Toleration(operator="Exists"),))
    pods = means(**labels) if labels else PodSelector((SPACE,), None, None)
    return Neighbours(spread=(SpreadLimit(key, pods, skew, least, (key,), counted),))


def unit(name: str, key: str, *, exclusive: bool = False) -> Neighbours:
    """A unit that is in one domain of a node label, maybe one of its own."""
    return Neighbours(units=(DomainUnit(name, key, exclusive),))


def of_job(key: str, *, exclusive: bool = False, name: str = "") -> Neighbours:
    """A pod of a JobSet's Job where such Jobs are exclusive in a node label; its own may be, by a name."""
    units = (DomainUnit(name, key, exclusive=True),) if exclusive else ()
    return Neighbours(units=units, jobs=(ChildJob(key, exclusive),))


def both(*parts: Neighbours) -> Neighbours:
    """All that several ask for; nodes count for a spread that have the keys of all."""
    keys = tuple(sorted({limit.topology_key for part in parts for limit in part.spread}))
    return Neighbours(
        tuple(term for part in parts for term in part.affinity),
        tuple(term for part in parts for term in part.anti_affinity),
        tuple(replace(limit, keys=keys) for part in parts for limit in part.spread),
        tuple(each for part in parts for each in part.units),
        tuple(each for part in parts for each in part.jobs),
    )


@dataclass
class _Gang:
    """A group in the making; ``parts`` are its subgroups, in the order in which pods name them."""

    group: Group
    parts: dict[tuple[int, str], SubGroup] = field(default_factory=dict)


class World:
    """An instance in the making.

    Amounts are plain integers: GPUs and pods in pieces, cpu in milli-cpu. A node holds 4 GPUs and 110 pods, a pod asks
    for one GPU, unless said otherwise. Names of parents and members may be given in any order.
    """

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self.node_list: dict[str, Node] = {}
        self.domains: dict[str, tuple[int, tuple[str, ...]]] = {}
        self.gangs: dict[GroupKey, _Gang] = {}
        self.pods: dict[Key, Pod] = {}
        self.queues: dict[str, Queue] = {}
        self.app_groups: dict[Key, AppGroup] = {}
        self.network: Network | None = None

    def node(
        self,
        name: str,
        gpu: int = 4,
        *,
        cpu: int = 0,
        pods: int = 110,
        area: str = "",
        labels: Mapping[str, str] | None = None,
        taints: Iterable[str] = (),
        unschedulable: bool = False,
        ready: bool = True,
        numa: NumaNode | None = None,
    ) -> str:
        """Add a node; ``taints`` are keys of NoSchedule taints without a value, ``area`` is ``region/zone`` or less.

        What the zones of ``numa`` have is there besides.
        """
        room = Resources({GPU: gpu, CPU: cpu, PODS: pods})
        for zone in numa.zones if numa is not None else ():
            room += zone.allocatable
        places = zip((REGION_LABEL, ZONE_LABEL), area.split("/"), strict=False)
        labels = {**(labels or {}), **{label: name for label, name in places if name}}
        marks = tuple(Taint(key, "", "NoSchedule") for key in taints)
        self.node_list[name] = Node(name, room, labels, marks, unschedulable, ready, numa)
        return name

    def nodes(self, names: str, gpu: int = 4, *, cpu: int = 0, pods: int = 110, area: str = "") -> list[str]:
        """Add equal nodes, named in one string."""
        return [self.node(name, gpu, cpu=cpu, pods=pods, area=area) for name in names.split()]

    def hyper(self, name: str, tier: int, members: str) -> str:
        """Add a HyperNode; ``members`` are names of nodes and of HyperNodes in one string."""
        self.domains[name] = (tier, tuple(members.split()))
        return name

    def queue(
        self,
        name: str,
        *,
        parent: str | None = None,
        closed: bool = False,
        namespaces: frozenset[str] | None = None,
        **capability: int,
    ) -> str:
        """Add a queue for pods of some namespaces, None: any; ``capability`` in ``gpu``, ``cpu`` and ``pods``."""
        limits = {{"gpu": GPU}.get(resource, resource): amount for resource, amount in capability.items()}
        self.queues[name] = Queue(name, limits, parent, not closed, namespaces=namespaces)
        return name

    def links(self, kind: str, ends: str, cost: int | None, capacity: int | None = None) -> None:
        """Add a network if there is none, and a link to it: ``z1>z2`` in one direction, ``z1=z2`` in both.

        ``kind`` is ``zone`` or ``region``; a link without ``cost`` has a capacity only, as where it comes from another
        list.
        """
        one, other = ends.replace("=", ">").split(">")
        there = Link(kind, one, other)
        old = self.network or Network(Key(SPACE, "nt-default"))
        for link in (there, there.back) if "=" in ends else (there,):
            costs = {**old.costs, link: cost} if cost is not None else old.costs
            capacities = {**old.capacities, link: capacity} if capacity is not None else old.capacities
            old = replace(old, costs=costs, capacities=capacities)
        self.network = old

    def app_group(self, name: str, *dependencies: Dependency, namespace: str = SPACE) -> Key:
        """Add an AppGroup; its workloads are those that its dependencies name."""
        key = Key(namespace, name)
        ends = (end for each in dependencies for end in (each.origin, each.destination))
        self.app_groups[key] = AppGroup(key, tuple(dict.fromkeys(ends)), dependencies)
        return key

    def gang(
        self,
        name: str,
        least: int = 0,
        *,
        roles: Mapping[str, int] | None = None,
        topology: NetworkTopology | None = None,
        policies: Iterable[SubGroupPolicy] = (),
        queue: str | None = None,
        priority: int = 0,
        invalid: str | None = None,
        api_group: str = VOLCANO,
    ) -> GroupKey:
        """Add a PodGroup whose minMember is ``least``."""
        key = GroupKey(api_group, SPACE, name)
        group = Group(key, least, roles or {}, topology, tuple(policies), (), queue, priority, invalid=invalid)
        self.gangs[key] = _Gang(group)
        return key

    def finished(self, gang: GroupKey, *, role: str = "", part: str | None = None, policy: int = 0) -> None:
        """Let a member of the gang have succeeded before."""
        home = self.gangs[gang]
        roles = home.group.succeeded
        home.group = replace(home.group, succeeded={**roles, role: roles.get(role, 0) + 1})
        index = _part_index(home, part, policy)
        if index is not None:
            key = list(home.parts)[index]
            home.parts[key] = replace(home.parts[key], succeeded=home.parts[key].succeeded + 1)

    def pod(
        self,
        name: str,
        gang: GroupKey | None = None,
        gpu: int = 1,
        *,
        cpu: int = 0,
        part: str | None = None,
        policy: int = 0,
        role: str = "",
        queue: str | None = None,
        priority: int | None = None,
        selector: Mapping[str, str] | None = None,
        tolerates: Iterable[str] = (),
        not_on: Iterable[str] = (),
        ports: Iterable[HostPort] = (),
        unsupported: Iterable[str] = (),
        labels: Mapping[str, str] | None = None,
        asks: Neighbours = NO_NEIGHBOURS,
        daemon: bool = False,
        app: Key | None = None,
        workload: str | None = None,
        numa: NumaDemand | None = None,
        created: float = 0.0,
        state: PodState = PodState.PENDING,
        node: str | None = None,
    ) -> Key:
        """Add a pod: to a gang and one part of it, or alone; pending, unless ``state`` and ``node`` say otherwise.

        ``part`` names the subgroup within the gang's subgroup policy of index ``policy``; ``not_on`` names nodes that
        its required affinity excludes; ``priority`` is what it states, None: nothing; ``labels`` say what it is to
        others, ``asks`` what it asks of them; ``app`` and ``workload`` say whose calls it makes and takes. What the
        containers of ``numa`` ask for is requested besides.
        """
        key = Key(SPACE, name)
        if gang is None and state is PodState.PENDING:
            gang = GroupKey("", SPACE, name)
            self.gangs[gang] = _Gang(Group(gang, 1, queue=queue, priority=priority or 0))
        home = self.gangs.get(gang) if gang is not None and state is not PodState.NOMINATED else None
        self.pods[key] = Pod(
            SPACE,
            name,
            state,
            Resources({GPU: gpu, CPU: cpu, PODS: 1}) + _asked(numa),
            _constraints(selector or {}, tolerates, tuple(not_on)),
            tuple(ports),
            node,
            priority or 0,
            gang,
            _part_index(home, part, policy),
            role,
            queue if home is None else home.group.queue,
            created=created,
            daemon=daemon,
            app_group=app,
            workload=workload,
            numa=numa,
            labels=labels or {},
            neighbours=asks,
            unsupported=tuple(unsupported),
            running_priority=home.group.priority if home is not None and priority is None else None,
        )
        return key

    def pods_of(self, names: str, gang: GroupKey, gpu: int = 1, *, cpu: int = 0, part: str | None = None) -> list[Key]:
        """Add equal pending pods of a gang, named in one string."""
        return [self.pod(name, gang, gpu, cpu=cpu, part=part) for name in names.split()]

    def running(self, name: str, node: str, gang: GroupKey | None = None, gpu: int = 1, **more: object) -> Key:
        """Add a pod that runs on ``node``; ``more`` as in :meth:`pod`."""
        return self.pod(name, gang, gpu, state=PodState.BOUND, node=node, **more)  # type: ignore[arg-type]

    def instance(self) -> Instance:
        """The finished instance."""
        groups = {key: self._finished(gang) for key, gang in sorted(self.gangs.items())}
        tree = TopologyTree(self._hyper_nodes(), max((tier for tier, _ in self.domains.values()), default=0) + 1)
        nodes, pods = dict(sorted(self.node_list.items())), dict(sorted(self.pods.items()))
        network = None if self.network is None else replace(self.network, areas=areas_of(nodes))
        queues, app_groups = dict(sorted(self.queues.items())), dict(sorted(self.app_groups.items()))
        return Instance(nodes, pods, groups, tree, queues, self.policy, app_groups, network)

    def _finished(self, gang: _Gang) -> Group:
        """Hand a group the pods that name it."""
        members = [pod for pod in self.pods.values() if pod.group == gang.group.key]
        parts = []
        for index, part in enumerate(gang.parts.values()):
            pending, bound = _pending_and_bound(pod for pod in members if pod.sub_group == index)
            parts.append(replace(part, pending=pending, bound=bound))
        pending, bound = _pending_and_bound(members)
        return replace(gang.group, sub_groups=tuple(parts), pending=pending, bound=bound)

    def _hyper_nodes(self) -> dict[str, HyperNode]:
        parents = {member: name for name, (_, members) in self.domains.items() for member in members}
        return {
            name: HyperNode(
                name,
                tier,
                parent=parents.get(name),
                children=tuple(sorted(member for member in members if member in self.domains)),
                nodes=tuple(sorted(member for member in members if member in self.node_list)),
            )
            for name, (tier, members) in sorted(self.domains.items())
        }


def _asked(numa: NumaDemand | None) -> Resources:
    """What the containers of a pod request: all that stay, or an init container with the sidecars before it."""
    stays, most = Resources(), Resources()
    for each in numa.containers if numa is not None else ():
        here = stays + each.requests
        most = Resources({name: max(most[name], here[name]) for name in {**most, **here}})
        stays = stays if each.stage is Stage.INIT else here
    return most


def _pending_and_bound(pods: Iterable[Pod]) -> tuple[tuple[Key, ...], tuple[Key, ...]]:
    """Keys of the pending and of the bound pods, sorted; terminating ones count for nothing."""
    all_of = sorted(pods, key=lambda pod: pod.key)
    pending = tuple(pod.key for pod in all_of if pod.state is PodState.PENDING)
    return pending, tuple(pod.key for pod in all_of if pod.state is PodState.BOUND)


def _part_index(gang: _Gang | None, part: str | None, policy: int) -> int | None:
    """Index of the part within its gang; a part is made when a pod first names it."""
    if gang is None or part is None:
        return None
    name = f"{gang.group.policies[policy].name}-{part}"
    gang.parts.setdefault((policy, name), SubGroup(name, policy))
    return list(gang.parts).index((policy, name))


def _constraints(selector: Mapping[str, str], tolerates: Iterable[str], not_on: tuple[str, ...]) -> Constraints:
    tolerations = tuple(sorted(Toleration(key, "Exists") for key in tolerates))
    required = ((Term(fields=(Requirement("metadata.name", "NotIn", not_on),)),),) if not_on else ()
    return Constraints(tolerations, tuple(sorted(selector.items())), required)
