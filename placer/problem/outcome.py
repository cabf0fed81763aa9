"""The state once a placement is carried out: the ground that :mod:`placer.rules` and :mod:`placer.rules.scoring` share.

Only here stands which bindings count, which pods of a group are *placed*, and when a group is *ready*.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import NamedTuple

from placer.problem import (
    Area,
    Dependency,
    Group,
    HostPort,
    Instance,
    Key,
    Link,
    NetworkTopology,
    Node,
    Pod,
    PodState,
    Spread,
)
from placer.problem.neighbours import AffinityTerm, DomainUnit, SpreadLimit
from placer.problem.numa import TopologyManager
from placer.problem.placement import Placement
from placer.problem.pod_index import CountedDomains, PodIndex, domain_of
from placer.problem.what_if import in_states


class Scope(NamedTuple):
    """A group or subgroup with a topology; ``before`` and ``new``: nodes of its bound pods, and of those added."""

    subject: str
    topology: NetworkTopology
    before: tuple[str, ...]
    new: tuple[str, ...]


class Shortage(NamedTuple):
    """A condition of C5 that a group does not meet: how many pods are missing, and the sentence."""

    missing: int
    message: str


class Staff(NamedTuple):
    """Nodes of the pods of one workload: ``before`` and ``after`` the placement; terminating ones in ``held``,
    ``total``.
    """

    before: Spread
    after: Spread
    held: Spread
    total: Spread


class Flow(NamedTuple):
    """One dependency of an AppGroup with the pods of its two ends."""

    app_group: Key
    dependency: Dependency
    callers: Staff
    callees: Staff

    def new_pairs(self) -> Iterator[tuple[Area, Area, int]]:
        """Placed pairs with a new pod among the two: areas of caller and callee, and how many such pairs."""
        return _more(self.callers.before, self.callees.before, self.callers.after, self.callees.after)

    def new_traffic(self) -> Iterator[tuple[Area, Area, int]]:
        """Pairs with a new pod among the two that take bandwidth; the other one may be terminating."""
        return _more(self.callers.held, self.callees.held, self.callers.total, self.callees.total)


@dataclass(frozen=True)
class Outcome:
    """An instance with a placement laid over it.

    Of the placement only the first binding of each pending pod counts, to a node of the instance; C1 and C3 report the
    rest. ``undisturbed``: the problem with all that goes still in its place; None: nothing goes.
    """

    instance: Instance
    placement: Placement
    undisturbed: Instance | None = None

    @property
    def before(self) -> Instance:
        """The problem as it stands before anything is carried out."""
        return self.instance if self.undisturbed is None else self.undisturbed

    @cached_property
    def new(self) -> Mapping[Key, str]:
        """Pending pod to the node it gets, in plan order."""
        pods, nodes = self.instance.pods, self.instance.nodes
        return {
            key: node
            for key, node in self.placement.node_of.items()
            if key in pods and pods[key].state is PodState.PENDING and node in nodes
        }

    @cached_property
    def new_on(self) -> Mapping[str, Sequence[Pod]]:
        """Node name to the pods it gets, in plan order; nodes sorted by name."""
        found: dict[str, list[Pod]] = defaultdict(list)
        for key, node in self.new.items():
            found[node].append(self.instance.pods[key])
        return dict(sorted(found.items()))

    @cached_property
    def neighbours(self) -> PodIndex:
        """Finds pods among those that have a node, terminating ones included, and those that get one."""
        pods = self.instance.pods.values()
        return PodIndex((pod for pod in pods if pod.state.on_node or pod.key in self.new), self.instance.namespaces)

    def node_of(self, pod: Pod) -> str | None:
        """Name of the node that a pod is on, or gets."""
        return self.new.get(pod.key, pod.node)

    def domain_of(self, pod: Pod, key: str) -> str | None:
        """Value of a label of that node; None where there is none."""
        return domain_of(self.instance.nodes, self.node_of(pod), key)

    def runs(self, pod: Pod) -> bool:
        """Whether a pod is bound, or gets a node."""
        return pod.state is PodState.BOUND or pod.key in self.new

    @cached_property
    def _running(self) -> tuple[Pod, ...]:
        return tuple(filter(self.runs, self.instance.pods.values()))

    def unattracted(self) -> Iterator[tuple[str, list[Key]]]:
        """Keys, with running pods in whose domain of it no running pod matches all terms of their affinity (C12)."""
        asking: dict[tuple[AffinityTerm, ...], list[Pod]] = defaultdict(list)
        for pod in self._running:
            asking[pod.neighbours.affinity].append(pod)
        asking.pop((), None)
        for terms, pods in asking.items():
            matching = list(filter(self.runs, self.neighbours.matching_all(term.pods for term in terms)))
            for key in dict.fromkeys(term.topology_key for term in terms):
                there = {self.domain_of(pod, key) for pod in matching} - {None}
                alone = sorted(pod.key for pod in pods if self.domain_of(pod, key) not in there)
                if alone:
                    yield key, alone

    def spread_over(self, limit: SpreadLimit) -> tuple[Counter[str], int]:
        """Domains that a constraint counts (C14), with the pods counted in each, and the fewest."""
        counts = self._counted_domains.counts(limit)
        return counts, min(counts.values(), default=0) if len(counts) >= limit.min_domains else 0

    @cached_property
    def _counted_domains(self) -> CountedDomains:
        return CountedDomains(self.instance.nodes, self.neighbours, self.node_of)

    @cached_property
    def unit_places(self) -> Mapping[DomainUnit, Mapping[str | None, list[Key]]]:
        """Unit to its domains, None: nodes without its label, to its running pods there (C7 by label, C15)."""
        found: dict[DomainUnit, dict[str | None, list[Key]]] = {}
        for pod in self._running:
            for unit in pod.neighbours.units:
                value = self.domain_of(pod, unit.topology_key)
                found.setdefault(unit, defaultdict(list))[value].append(pod.key)
        return found

    def job_places(self) -> Mapping[tuple[str, str], tuple[list[Key], list[Key]]]:
        """Label and domain to running pods of JobSets' Jobs there: of exclusive ones, and of others (C15)."""
        found: dict[tuple[str, str], tuple[list[Key], list[Key]]] = defaultdict(lambda: ([], []))
        for pod in self._running:
            for job in pod.neighbours.jobs:
                value = self.domain_of(pod, job.topology_key)
                if value is not None:
                    found[job.topology_key, value][not job.exclusive].append(pod.key)
        return found

    def added(self, pending: Sequence[Key]) -> list[Key]:
        """Those of the pods that this placement adds."""
        return [key for key in pending if key in self.new]

    def common(self, topology: NetworkTopology | None, placed: Sequence[Key]) -> tuple[int | None, str | None]:
        """Tier and name of the smallest common HyperNode of pods with a node, where a topology is asked."""
        if topology is None or not placed:
            return None, None
        tree = self.instance.topology
        hyper_node = tree.smallest_common(self.new.get(key) or self.instance.pods[key].node or "" for key in placed)
        return tree.tier(hyper_node), hyper_node

    def scopes(self) -> Iterator[Scope]:
        """Every group and subgroup with a networkTopology (hard or soft), the group before its parts."""
        for group in self.instance.groups.values():
            if group.topology is not None:
                yield self._scope(str(group.key), group.topology, group.bound, group.pending)
            for part in group.sub_groups:
                topology = group.policies[part.policy].topology
                if topology is not None:
                    yield self._scope(sub_group_subject(group, part.name), topology, part.bound, part.pending)

    def _scope(self, subject: str, topology: NetworkTopology, bound: Sequence[Key], pending: Sequence[Key]) -> Scope:
        before = (self.instance.pods[key].node for key in bound)
        new = tuple(self.new[key] for key in self.added(pending))
        return Scope(subject, topology, tuple(node for node in before if node is not None), new)

    @cached_property
    def flows(self) -> tuple[Flow, ...]:
        """Every dependency with the pods of its ends, AppGroup by AppGroup; none without a NetworkTopology."""
        staff = self._staff()
        return tuple(
            Flow(key, each, staff[key, each.origin], staff[key, each.destination])
            for key, app_group in self.instance.app_groups.items()
            for each in app_group.dependencies
            if (key, each.origin) in staff and (key, each.destination) in staff
        )

    def calls(self) -> Mapping[tuple[Key, str], list[Flow]]:
        """AppGroup and workload to the flows that it begins."""
        found: dict[tuple[Key, str], list[Flow]] = defaultdict(list)
        for flow in self.flows:
            found[flow.app_group, flow.dependency.origin].append(flow)
        return found

    def traffic(self) -> Counter[Link]:
        """Link to the bit/s that pods use, terminating ones included (C9)."""
        found: Counter[Link] = Counter()
        for flow in self.flows:
            for link, pairs in self.on_links(flow.callers.total.pairs(flow.callees.total)):
                found[link] += pairs * (flow.dependency.min_bandwidth or 0)
        return found

    def on_links(self, pairs: Iterable[tuple[Area, Area, int]]) -> Iterator[tuple[Link, int]]:
        """The links of pairs of areas, with the number of the pairs; none within an area."""
        network = self.instance.network
        for origin, destination, count in pairs if network is not None else ():
            link = network.link(origin, destination) if network is not None else None
            if link is not None:
                yield link, count

    def carried_out(self) -> Instance:
        """The instance with every new pod bound to its node, and in its zones; the others still wait."""
        pods = self.instance.pods
        bound = {key: replace(pods[key], state=PodState.BOUND, node=node) for key, node in self.new.items()}
        return replace(in_states(self.instance, bound), nodes=self.nodes_after)

    @cached_property
    def nodes_after(self) -> Mapping[str, Node]:
        """The nodes, with the rest of their zones after new pods (C10)."""
        nodes = dict(self.instance.nodes)
        for name, node in self.instance.aligning_nodes.items():
            if name in self.new_on:
                manager = TopologyManager(node)
                for pod in self.new_on[name]:
                    if manager.admit(pod.numa).refusal:
                        manager.force(pod.numa)
                nodes[name] = replace(nodes[name], numa=manager.after())
        return nodes

    def _staff(self) -> dict[tuple[Key, str], Staff]:
        network = self.instance.network
        if network is None:
            return {}
        targets: dict[tuple[Key, str], list[str]] = defaultdict(list)
        for key, node in self.new.items():
            pod = self.instance.pods[key]
            if pod.app_group is not None and pod.workload is not None:
                targets[pod.app_group, pod.workload].append(node)
        bound, leaving = self.instance.bound_spreads, self.instance.leaving_spreads
        found, none_there = {}, Spread(network)
        for workload in {**bound, **leaving, **targets}:
            before, new = bound.get(workload, none_there), Spread(network, targets.get(workload, ()))
            held = before + leaving.get(workload, none_there)
            found[workload] = Staff(before, before + new, held, held + new)
        return found

    def shortages(self, group: Group) -> Iterator[Shortage]:
        """Conditions of C5 that the group does not meet (models/README.md); none where it is ready.

        Placed are the pods that are bound or succeeded before and those added.
        """
        new = self.added(group.pending)
        placed = group.placed_before + len(new)
        if placed < group.min_member:
            message = f"{placed} of minMember {group.min_member} placed ({group.placed_before} before, {len(new)} new)"
            yield Shortage(group.min_member - placed, message)
        yield from self._role_shortages(group, new)
        yield from self._sub_group_shortages(group)

    def _role_shortages(self, group: Group, new: Sequence[Key]) -> Iterator[Shortage]:
        if not group.min_task_member:
            return
        pods = self.instance.pods
        placed = Counter(group.succeeded)
        placed.update(pods[key].role for key in (*group.bound, *new))
        for role, least in sorted(group.min_task_member.items()):
            if placed[role] < least:
                yield Shortage(least - placed[role], f"{placed[role]} of minTaskMember {least} placed in role {role}")

    def _sub_group_shortages(self, group: Group) -> Iterator[Shortage]:
        for index, policy in enumerate(group.policies):
            missing = [
                max(0, policy.size - part.placed_before - len(self.added(part.pending)))
                for part in group.sub_groups
                if part.policy == index
            ]
            ready = missing.count(0)
            if ready < policy.min_sub_groups:
                # The cheapest way to what is missing: subgroups that lack least; of one not there, all its pods. Of
                # those that are not there a PodGroup may ask for 2^31, so they are counted and never listed.
                absent = policy.size * max(0, policy.min_sub_groups - len(missing))
                message = f"{ready} of minSubGroups {policy.min_sub_groups} ready in policy {policy.name}"
                yield Shortage(sum(sorted(missing)[: policy.min_sub_groups]) + absent, message)

    @cached_property
    def made_ready(self) -> tuple[Group, ...]:
        """Groups, single pods included, that this placement makes ready: ready after it, with a new pod, and before it
        not ready or without any placed pod. A pod that is moved is no new one.
        """
        before = Outcome(self.before, Placement())
        waited = (group for group in self.before.groups.values() if self.added(group.pending))
        return tuple(
            group
            for group in waited
            if self.ready(self.instance.groups[group.key]) and not (group.placed_before and before.ready(group))
        )

    def ready(self, group: Group) -> bool:
        """Whether the group is ready after the placement (C5); one that is not in order never is."""
        return group.invalid is None and not any(True for _ in self.shortages(group))

    def admitted(self, group: Group) -> bool:
        """Whether the group is ready with some pod."""
        return bool(group.placed_before or self.added(group.pending)) and self.ready(group)


def clashing_ports(pods: Iterable[Pod]) -> Iterator[tuple[Pod, HostPort, Pod, HostPort]]:
    """Host ports of pods on one node that clash with those of a pod before them (C2)."""
    holders: dict[tuple[str, int], list[tuple[int, Pod]]] = defaultdict(list)
    for position, pod in enumerate(pods):
        places = dict.fromkeys((port.protocol, port.port) for port in pod.host_ports)
        others = {at: other for each in places for at, other in holders[each]}
        for at in sorted(others):
            both = product(pod.host_ports, others[at].host_ports)
            yield from ((pod, mine, others[at], theirs) for mine, theirs in both if mine.clashes(theirs))
        for each in places:
            holders[each].append((position, pod))


def requested(pods: Iterable[Pod]) -> Counter[str]:
    """Sum of the pods' requests, per resource; equal requests are multiplied."""
    total: Counter[str] = Counter()
    for requests, count in Counter(pod.requests for pod in pods).items():
        for resource, amount in requests.items():
            total[resource] += count * amount
    return total


def pods_by_queue(instance: Instance, pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """Known queue to the pods that count against it."""
    own: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.queue is not None:
            own[pod.queue].append(pod)
    found: dict[str, list[Pod]] = defaultdict(list)
    for queue, members in own.items():
        for name in instance.queue_path(queue):
            found[name] += members
    return found


def _more(
    callers_before: Spread, callees_before: Spread, callers: Spread, callees: Spread
) -> Iterator[tuple[Area, Area, int]]:
    for origin, destination, pairs in callers.pairs(callees):
        more = pairs - callers_before.areas[origin] * callees_before.areas[destination]
        if more:
            yield origin, destination, more


def sub_group_subject(group: Group, name: str) -> str:
    """How a subgroup is named in a violation."""
    return f"SubGroup {group.key.namespace}/{group.key.name}/{name}"
