"""An instance as data of ``placement.mzn``, straight from its names and without the arrays that the methods use.

``python models/to_dzn.py INSTANCE... > x.dzn`` reads what ``placer solve`` reads; with ``--disturbing`` first what runs
may be evicted and moved, as ``placer preempt`` has it. Objects are numbered from 1 in the
order of the instance; a comment beside each array, or the array of names, says which number is which. Amounts of a
resource are counted in the greatest common divisor of what pending pods request of it, bandwidth in that of what
dependencies ask for, so that nothing is lost and the numbers stay small (Gecode counts up to 2^31).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from math import gcd

from disruption_dzn import disruption_lines, may_go
from minizinc_text import names, numbered, numbers, one_set, plain, sets, table
from neighbours_dzn import neighbour_lines
from numa_dzn import numa_lines

import placer
from placer.problem import Area, Dependency, GroupKey, Instance, Key, Link, Network, Pod, PodState
from placer.problem.disruption import released
from placer.problem.placement import LOSSES, Placement, Value

__all__ = ["criteria", "dzn"]


def dzn(instance: Instance, *, disturbing: bool = False) -> str:
    """Write the instance as MiniZinc data; ``criterion`` and ``kept`` are left to the caller.

    Parameters
    ----------
    instance
        Any instance; the model is meant for a dozen pods.
    disturbing
        Whether what runs may be disturbed (D1 to D5).
    """
    return "\n".join(_Writer(instance, disturbing=disturbing).lines()) + "\n"


def criteria(instance: Instance, *, disturbing: bool = False) -> Iterator[Value]:
    """All values in the order they are compared, as they are where nothing is placed and nothing goes: with what each
    priority may lose, where something may be disturbed.
    """
    pods = (instance.pods[key] for key in (may_go(instance) if disturbing else ()))
    priorities = {pod.unit_priority for pod in pods}
    for value in placer.score(instance, Placement(), disturbing=disturbing):
        if value.name == "moved":
            yield from (Value(name, 0, each) for each in sorted(priorities, reverse=True) for name in LOSSES)
        yield value


class _Writer:
    """The sections of the data file, in the order of the model."""

    def __init__(self, before: Instance, *, disturbing: bool) -> None:
        self.before, self.disturbing = before, disturbing
        #: What may be disturbed waits in it, so that nothing else speaks of where it is.
        self.instance = instance = released(before, may_go(before) if disturbing else ())
        self.pods = list(instance.pending)
        self.groups = list(instance.groups.values())
        self.subs = [(group, sub) for group in self.groups for sub in group.sub_groups]
        self.policies = [(group, index) for group in self.groups for index in range(len(group.policies))]
        self.runs = [instance.pods[key] for group in self.groups for key in group.bound]
        self.resources = sorted({name for pod in self.pods for name, amount in pod.requests.items() if amount})
        self.units = {name: gcd(*(pod.requests[name] for pod in self.pods)) for name in self.resources}
        # Without a network nobody calls anybody, and one area is as good as any.
        self.network = instance.network or Network(Key("", ""), dict.fromkeys(instance.nodes, Area("", "")))
        self.calls = _calls(instance)
        self.bandwidth_unit = gcd(*(call.min_bandwidth or 0 for _, call in self.calls)) or 1
        ends = ((key, end) for key, call in self.calls for end in (call.origin, call.destination))
        self.workload = numbered(dict.fromkeys(ends))
        self.peers = [
            pod
            for name in self.workload
            for pod in instance.workload_pods.get(name, ())
            if pod.state is not PodState.PENDING
        ]
        there = list(instance.nodes)
        homes = (before.pods[pod.key] for pod in self.pods)
        lost = sorted({pod.node for pod in (*self.runs, *self.peers, *homes) if pod.node} - set(there))
        self.node = numbered([*there, *lost])
        self.lost = len(lost)
        self.areas = numbered(dict.fromkeys(map(self.network.area, self.node)))
        self.domain = numbered(instance.topology.hyper_nodes)
        self.queue = numbered(instance.queues)
        self.group = numbered(group.key for group in self.groups)
        self.sub = {key: number for number, (_, sub) in enumerate(self.subs, 1) for key in (*sub.pending, *sub.bound)}
        self.role = numbered(sorted({pod.role for pod in (*self.pods, *self.runs)} | self._task_roles()))

    def lines(self) -> Iterator[str]:
        """All data."""
        for section in (
            self._nodes,
            self._tree,
            self._groups,
            self._tasks,
            self._sub_groups,
            self._pods,
            self._ports,
            self._running,
            self._disrupted,
            self._scopes,
            self._areas,
            self._links,
            self._workloads,
            self._calls,
            self._zones,
            self._queues,
            self._neighbours,
            self._criteria,
        ):
            yield f"% {(section.__doc__ or '').splitlines()[0]}"
            yield from section()
            yield ""

    def _nodes(self) -> Iterator[str]:
        """Nodes and resources: what is left of each."""
        nodes = self.instance.nodes
        yield f"nodes = {len(nodes)};"
        yield f"lost = {self.lost};"
        yield names("node_name", self.node)
        yield f"resources = {len(self.resources)};"
        yield names("resource_name", [f"{name} in units of {self.units[name]}" for name in self.resources])
        yield table("room", [[self._left(name, resource) for resource in self.resources] for name in nodes], nodes)

    def _left(self, node: str, resource: str) -> int:
        held = self.instance.held.get(node)
        left = self.instance.nodes[node].allocatable[resource] - (held[resource] if held is not None else 0)
        return left // self.units[resource]

    def _tree(self) -> Iterator[str]:
        """The tier tree; the last tier is that of the virtual root."""
        domains = self.instance.topology.hyper_nodes
        root = len(domains) + 1
        yield f"domains = {len(domains)};"
        yield names("domain_name", domains)
        yield numbers("tier", [*(each.tier for each in domains.values()), self.instance.topology.root_tier])
        yield numbers("parent", [self.domain.get(each.parent or "", root) for each in domains.values()])
        yield sets("members", ([self.node[name] for name in each.nodes] for each in domains.values()))

    def _groups(self) -> Iterator[str]:
        """Gangs; a pod in no group is one of its own."""
        yield f"groups = {len(self.groups)};"
        yield names("group_name", self.group)
        yield numbers("priority", (group.priority for group in self.groups))
        yield numbers("invalid", (group.invalid is not None for group in self.groups))
        yield numbers("min_member", (group.min_member for group in self.groups))
        yield numbers("succeeded", (sum(group.succeeded.values()) for group in self.groups))

    def _task_roles(self) -> set[str]:
        return {role for group in self.groups for role in group.min_task_member}

    def _tasks(self) -> Iterator[str]:
        """Least pods per role of a group."""
        tasks = [(group, role, least) for group in self.groups for role, least in group.min_task_member.items()]
        yield f"tasks = {len(tasks)};"
        yield f"% roles: {', '.join(f'{number} {role!r}' for role, number in self.role.items())}"
        yield numbers("task_group", (self.group[group.key] for group, _, _ in tasks))
        yield numbers("task_role", (self.role[role] for _, role, _ in tasks))
        yield numbers("task_least", (least for _, _, least in tasks))
        yield numbers("task_succeeded", (group.succeeded.get(role, 0) for group, role, _ in tasks))

    def _sub_groups(self) -> Iterator[str]:
        """Subgroup policies, and the subgroups that they make."""
        number = {(group.key, index): place for place, (group, index) in enumerate(self.policies, 1)}
        rules = [group.policies[index] for group, index in self.policies]
        yield f"policies = {len(self.policies)};"
        yield numbers("policy_group", (self.group[group.key] for group, _ in self.policies))
        yield numbers("size", (rule.size for rule in rules))
        yield numbers("min_sub_groups", (rule.min_sub_groups for rule in rules))
        yield f"subs = {len(self.subs)};"
        yield names("sub_name", [f"{group.key} {sub.name}" for group, sub in self.subs])
        yield numbers("sub_policy", (number[group.key, sub.policy] for group, sub in self.subs))
        yield numbers("sub_succeeded", (sub.succeeded for _, sub in self.subs))

    def _pods(self) -> Iterator[str]:
        """Pending pods, and those that may be disturbed."""
        weights, instance = self.before.weights_of(self.before.pods[pod.key] for pod in self.pods), self.instance
        keys = [pod.key for pod in self.pods]
        owner = {key: self.group[group.key] for group in self.groups for key in group.pending}
        yield f"pods = {len(keys)};"
        yield names("pod_name", keys)
        amounts = [[pod.requests[name] // self.units[name] for name in self.resources] for pod in self.pods]
        yield table("request", amounts, keys)
        yield numbers("weight", (weights[key] for key in keys))
        yield numbers("pod_group", (owner[key] for key in keys))
        yield numbers("pod_sub", (self.sub.get(key, 0) for key in keys))
        yield numbers("pod_role", (self.role[pod.role] for pod in self.pods))
        nodes = instance.nodes.values()
        yield sets(
            "eligible",
            ([self.node[node.name] for node in nodes if pod.constraints.refusal(node) is None] for pod in self.pods),
        )
        yield numbers("refused", (bool(pod.unsupported) for pod in self.pods))
        yield numbers("daemon", (pod.daemon for pod in self.pods))
        yield numbers("twin", self._twins())

    def _twins(self) -> Iterator[int]:
        """Number of the last pod before that differs in its name alone; of lone pods, in its group's name too."""
        seen: dict[str, int] = {}
        for number, pod in enumerate(self.pods, 1):
            waits = self.before.pods[pod.key].state is PodState.PENDING
            kind = repr(self._kind(pod)) if waits else str(pod.key)
            yield seen.get(kind, 0)
            seen[kind] = number

    def _kind(self, pod: Pod) -> object:
        assert pod.group is not None
        bare = replace(pod, name="", created=0.0)
        group = self.instance.groups[pod.group]
        if group.key.api_group:
            return bare
        nobody = GroupKey("", "", "")
        return replace(bare, namespace="", group=nobody), replace(group, key=nobody, created=0.0, pending=())

    def _ports(self) -> Iterator[str]:
        """Host ports."""
        holders = [pod for pod in self.instance.pods.values() if pod.node in self.instance.nodes and pod.host_ports]
        yield sets(
            "port_taken",
            (sorted({self.node[other.node or ""] for other in holders if _clash(pod, other)}) for pod in self.pods),
        )
        pairs = combinations(enumerate(self.pods, 1), 2)
        found = [(first, second) for (first, pod), (second, other) in pairs if _clash(pod, other)]
        yield table("clash", found, [f"{self.pods[a - 1].key} and {self.pods[b - 1].key}" for a, b in found], width=2)

    def _running(self) -> Iterator[str]:
        """Members of groups that run already, and nodes in use."""
        owner = {key: self.group[group.key] for group in self.groups for key in group.bound}
        yield f"runs = {len(self.runs)};"
        yield names("run_name", [pod.key for pod in self.runs])
        yield numbers("run_node", (self.node[pod.node or ""] for pod in self.runs))
        yield numbers("run_group", (owner[pod.key] for pod in self.runs))
        yield numbers("run_sub", (self.sub.get(pod.key, 0) for pod in self.runs))
        yield numbers("run_role", (self.role[pod.role] for pod in self.runs))
        working = (pod for pod in self.before.pods.values() if pod.state is PodState.BOUND and not pod.daemon)
        used = {self.node[pod.node or ""] for pod in working if pod.node in self.instance.nodes}
        yield f"used = {one_set(sorted(used))};"

    def _disrupted(self) -> Iterator[str]:
        """What runs and may be disturbed."""
        return disruption_lines(self.before, self.pods, self.groups, self.node)

    def _scopes(self) -> Iterator[str]:
        """Groups and subgroups with a networkTopology."""
        asking = [(number, 0, group.topology) for number, group in enumerate(self.groups, 1)]
        asking += [(0, number, group.policies[sub.policy].topology) for number, (group, sub) in enumerate(self.subs, 1)]
        found = [(group, sub, asked) for group, sub, asked in asking if asked is not None]
        yield f"scopes = {len(found)};"
        yield numbers("scope_group", (group for group, _, _ in found))
        yield numbers("scope_sub", (sub for _, sub, _ in found))
        yield numbers("limited", (asked.limit is not None for _, _, asked in found))
        yield numbers("limit", (0 if asked.limit is None else asked.limit for _, _, asked in found))

    def _areas(self) -> Iterator[str]:
        """Zones and regions, and what calls cost between them; without a network all nodes are in one."""
        network = self.network
        costs = [[network.area_cost(one, other) for other in self.areas] for one in self.areas]
        yield f"areas = {len(self.areas)};"
        yield names("area_name", self.areas)
        yield numbers("area", (self.areas[network.area(name)] for name in self.node))
        yield table("area_cost", costs, self.areas)

    def _links(self) -> Iterator[str]:
        """Links with a capacity, and what is left of it."""
        network = self.network
        links = numbered(sorted(network.capacities))
        taken = [[network.link(one, other) for other in self.areas] for one in self.areas]
        used = self._bandwidth_used()
        yield f"bandwidth_binds = {plain('C9' not in self.instance.policy.rules_off)};"
        yield f"links = {len(links)};"
        yield names("link_name", links)
        yield table("area_link", [[links.get(link, 0) if link else 0 for link in row] for row in taken], self.areas)
        yield numbers("link_room", ((network.capacities[link] - used[link]) // self.bandwidth_unit for link in links))

    def _bandwidth_used(self) -> Counter[Link | None]:
        """What pods that have a node, those being deleted included, take of each link, pair by pair."""
        used: Counter[Link | None] = Counter()
        for key, call in self.calls:
            for one in self._peers_of(key, call.origin):
                for other in self._peers_of(key, call.destination):
                    areas = (self.network.area(pod.node or "") for pod in (one, other))
                    used[self.network.link(*areas)] += call.min_bandwidth or 0
        return used

    def _peers_of(self, app_group: Key, workload: str) -> list[Pod]:
        return [pod for pod in self.peers if (pod.app_group, pod.workload) == (app_group, workload)]

    def _workloads(self) -> Iterator[str]:
        """Workloads that call or are called, and their pods that have a node."""
        yield f"workloads = {len(self.workload)};"
        yield names("workload_name", [f"{workload} of AppGroup {key}" for key, workload in self.workload])
        yield numbers("pod_workload", map(self._workload_of, self.pods))
        yield f"peers = {len(self.peers)};"
        yield names("peer_name", [pod.key for pod in self.peers])
        yield numbers("peer_node", (self.node[pod.node or ""] for pod in self.peers))
        yield numbers("peer_workload", map(self._workload_of, self.peers))
        yield numbers("peer_leaves", (pod.state is PodState.TERMINATING for pod in self.peers))

    def _workload_of(self, pod: Pod) -> int:
        if pod.app_group is None or pod.workload is None:
            return 0
        return self.workload.get((pod.app_group, pod.workload), 0)

    def _calls(self) -> Iterator[str]:
        """Dependencies."""
        policy = self.instance.policy
        yield f"costs_bind = {plain('C8' not in policy.rules_off)};"
        yield f"majority = {plain(policy.network_cost == 'majority')};"
        yield f"calls = {len(self.calls)};"
        yield numbers("caller", (self.workload[key, call.origin] for key, call in self.calls))
        yield numbers("callee", (self.workload[key, call.destination] for key, call in self.calls))
        yield numbers("max_cost", (call.max_network_cost for _, call in self.calls))
        yield numbers("bandwidth_of_pair", ((call.min_bandwidth or 0) // self.bandwidth_unit for _, call in self.calls))

    def _zones(self) -> Iterator[str]:
        """NUMA zones, and what containers ask of them."""
        return numa_lines(self.instance, self.pods, self.node)

    def _queues(self) -> Iterator[str]:
        """Queues, and what is left of their capabilities."""
        queues = self.instance.queues
        limits = [
            (name, resource, most)
            for name, queue in queues.items()
            for resource, most in queue.capability.items()
            if resource in self.resources
        ]
        yield f"queues_bind = {plain('C11' not in self.instance.policy.rules_off)};"
        yield f"queues = {len(queues)};"
        yield names("queue_name", queues)
        taking = (self.instance.closed_queue(pod.queue, pod.namespace) for pod in self.pods)
        yield numbers("closed", (queue is not None for queue in taking))
        yield sets("pod_queues", ([self.queue[name] for name in self._path(pod)] for pod in self.pods))
        yield f"quotas = {len(limits)};"
        yield numbers("quota_queue", (self.queue[name] for name, _, _ in limits))
        yield numbers("quota_resource", (self.resources.index(resource) + 1 for _, resource, _ in limits))
        left = ((most - self._taken(name, resource)) // self.units[resource] for name, resource, most in limits)
        yield numbers("quota", left)

    def _path(self, pod: Pod) -> tuple[str, ...]:
        return self.instance.queue_path(pod.queue)

    def _taken(self, queue: str, resource: str) -> int:
        """What running pods, those being deleted included, take of a queue."""
        pods = (pod for pod in self.instance.pods.values() if pod.state.on_node and queue in self._path(pod))
        return sum(pod.requests[resource] for pod in pods)

    def _neighbours(self) -> Iterator[str]:
        """What pods ask of the pods around them."""
        return neighbour_lines(self.instance, self.pods, self.node)

    def _criteria(self) -> Iterator[str]:
        """Values in the order they are compared."""
        values = list(criteria(self.before, disturbing=self.disturbing))
        yield f"criteria = {len(values)};"
        yield f"criterion_value = [{', '.join(value.name for value in values)}];"
        yield numbers("criterion_priority", (value.priority or 0 for value in values))


def _calls(instance: Instance) -> list[tuple[Key, Dependency]]:
    """Dependencies of all AppGroups; none without a network."""
    if instance.network is None:
        return []
    return [(key, call) for key, app_group in instance.app_groups.items() for call in app_group.dependencies]


def _clash(one: Pod, other: Pod) -> bool:
    """Whether a host port of one cannot be open beside one of the other."""
    return any(mine.clashes(theirs) for mine in one.host_ports for theirs in other.host_ports)


if __name__ == "__main__":
    paths = [each for each in sys.argv[1:] if each != "--disturbing"]
    sys.stdout.write(dzn(placer.read(*paths), disturbing="--disturbing" in sys.argv))
