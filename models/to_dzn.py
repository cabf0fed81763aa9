"""An instance as data of ``placement.mzn``, straight from its names and without the arrays that the methods use.

``python models/to_dzn.py INSTANCE... > x.dzn`` reads what ``placer solve`` reads. Objects are numbered from 1 in the
order of the instance; a comment beside each array, or the array of names, says which number is which. Amounts of a
resource are counted in the greatest common divisor of what pending pods request of it, bandwidth in that of what
dependencies ask for, so that nothing is lost and the numbers stay small (Gecode counts up to 2^31).
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import gcd
from typing import TypeVar

import placer
from placer.instance import Area, Dependency, GroupKey, Instance, Key, Link, Network, Pod, PodState
from placer.placement import Placement

__all__ = ["dzn"]

T = TypeVar("T", bound=Hashable)


def dzn(instance: Instance) -> str:
    """Write the instance as MiniZinc data; ``level`` and ``kept`` are left to the caller.

    Parameters
    ----------
    instance
        Any instance; the model is meant for a dozen pods.
    """
    return "\n".join(_Writer(instance).lines()) + "\n"


class _Writer:
    """The sections of the data file, in the order of the model."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
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
        self.workload = _numbers(dict.fromkeys(ends))
        self.peers = [
            pod
            for name in self.workload
            for pod in instance.workload_pods.get(name, ())
            if pod.state is not PodState.PENDING
        ]
        there = list(instance.nodes)
        lost = sorted({pod.node or "" for pod in (*self.runs, *self.peers)} - set(there))
        self.node = _numbers([*there, *lost])
        self.lost = len(lost)
        self.areas = _numbers(dict.fromkeys(map(self.network.area, self.node)))
        self.domain = _numbers(instance.topology.hyper_nodes)
        self.queue = _numbers(instance.queues)
        self.group = _numbers(group.key for group in self.groups)
        self.sub = {key: number for number, (_, sub) in enumerate(self.subs, 1) for key in (*sub.pending, *sub.bound)}
        self.role = _numbers(sorted({pod.role for pod in (*self.pods, *self.runs)} | self._task_roles()))

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
            self._scopes,
            self._areas,
            self._links,
            self._workloads,
            self._calls,
            self._queues,
            self._levels,
        ):
            yield f"% {(section.__doc__ or '').splitlines()[0]}"
            yield from section()
            yield ""

    def _nodes(self) -> Iterator[str]:
        """Nodes and resources: what is left of each."""
        nodes = self.instance.nodes
        yield f"nodes = {len(nodes)};"
        yield f"lost = {self.lost};"
        yield _names("node_name", self.node)
        yield f"resources = {len(self.resources)};"
        yield _names("resource_name", [f"{name} in units of {self.units[name]}" for name in self.resources])
        yield _table("room", [[self._left(name, resource) for resource in self.resources] for name in nodes], nodes)

    def _left(self, node: str, resource: str) -> int:
        held = self.instance.held.get(node)
        left = self.instance.nodes[node].allocatable[resource] - (held[resource] if held is not None else 0)
        return left // self.units[resource]

    def _tree(self) -> Iterator[str]:
        """The tier tree; the last tier is that of the virtual root."""
        domains = self.instance.topology.hyper_nodes
        root = len(domains) + 1
        yield f"domains = {len(domains)};"
        yield _names("domain_name", domains)
        yield _numbers_row("tier", [*(each.tier for each in domains.values()), self.instance.topology.root_tier])
        yield _numbers_row("parent", [self.domain.get(each.parent or "", root) for each in domains.values()])
        yield _sets("members", ([self.node[name] for name in each.nodes] for each in domains.values()))

    def _groups(self) -> Iterator[str]:
        """Gangs; a pod in no group is one of its own."""
        yield f"groups = {len(self.groups)};"
        yield _names("group_name", self.group)
        yield _numbers_row("priority", (group.priority for group in self.groups))
        yield _numbers_row("invalid", (group.invalid is not None for group in self.groups))
        yield _numbers_row("min_member", (group.min_member for group in self.groups))
        yield _numbers_row("succeeded", (sum(group.succeeded.values()) for group in self.groups))

    def _task_roles(self) -> set[str]:
        return {role for group in self.groups for role in group.min_task_member}

    def _tasks(self) -> Iterator[str]:
        """Least pods per role of a group."""
        tasks = [(group, role, least) for group in self.groups for role, least in group.min_task_member.items()]
        yield f"tasks = {len(tasks)};"
        yield f"% roles: {', '.join(f'{number} {role!r}' for role, number in self.role.items())}"
        yield _numbers_row("task_group", (self.group[group.key] for group, _, _ in tasks))
        yield _numbers_row("task_role", (self.role[role] for _, role, _ in tasks))
        yield _numbers_row("task_least", (least for _, _, least in tasks))
        yield _numbers_row("task_succeeded", (group.succeeded.get(role, 0) for group, role, _ in tasks))

    def _sub_groups(self) -> Iterator[str]:
        """Subgroup policies, and the subgroups that they make."""
        number = {(group.key, index): place for place, (group, index) in enumerate(self.policies, 1)}
        rules = [group.policies[index] for group, index in self.policies]
        yield f"policies = {len(self.policies)};"
        yield _numbers_row("policy_group", (self.group[group.key] for group, _ in self.policies))
        yield _numbers_row("size", (rule.size for rule in rules))
        yield _numbers_row("min_sub_groups", (rule.min_sub_groups for rule in rules))
        yield f"subs = {len(self.subs)};"
        yield _names("sub_name", [f"{group.key} {sub.name}" for group, sub in self.subs])
        yield _numbers_row("sub_policy", (number[group.key, sub.policy] for group, sub in self.subs))
        yield _numbers_row("sub_succeeded", (sub.succeeded for _, sub in self.subs))

    def _pods(self) -> Iterator[str]:
        """Pending pods."""
        weights, instance = self.instance.weights, self.instance
        keys = [pod.key for pod in self.pods]
        owner = {key: self.group[group.key] for group in self.groups for key in group.pending}
        yield f"pods = {len(keys)};"
        yield _names("pod_name", keys)
        amounts = [[pod.requests[name] // self.units[name] for name in self.resources] for pod in self.pods]
        yield _table("request", amounts, keys)
        yield _numbers_row("weight", (weights[key] for key in keys))
        yield _numbers_row("pod_group", (owner[key] for key in keys))
        yield _numbers_row("pod_sub", (self.sub.get(key, 0) for key in keys))
        yield _numbers_row("pod_role", (self.role[pod.role] for pod in self.pods))
        nodes = instance.nodes.values()
        yield _sets(
            "eligible",
            ([self.node[node.name] for node in nodes if pod.constraints.refusal(node) is None] for pod in self.pods),
        )
        yield _numbers_row("refused", (bool(pod.unsupported) for pod in self.pods))
        yield _numbers_row("daemon", (pod.daemon for pod in self.pods))
        yield _numbers_row("twin", self._twins())

    def _twins(self) -> Iterator[int]:
        """Number of the last pod before that differs in its name alone; of lone pods, in its group's name too."""
        seen: dict[str, int] = {}
        for number, pod in enumerate(self.pods, 1):
            kind = repr(self._kind(pod))
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
        yield _sets(
            "port_taken",
            (sorted({self.node[other.node or ""] for other in holders if _clash(pod, other)}) for pod in self.pods),
        )
        pairs = combinations(enumerate(self.pods, 1), 2)
        found = [(first, second) for (first, pod), (second, other) in pairs if _clash(pod, other)]
        yield _table("clash", found, [f"{self.pods[a - 1].key} and {self.pods[b - 1].key}" for a, b in found], width=2)

    def _running(self) -> Iterator[str]:
        """Members of groups that run already, and nodes in use."""
        owner = {key: self.group[group.key] for group in self.groups for key in group.bound}
        yield f"runs = {len(self.runs)};"
        yield _names("run_name", [pod.key for pod in self.runs])
        yield _numbers_row("run_node", (self.node[pod.node or ""] for pod in self.runs))
        yield _numbers_row("run_group", (owner[pod.key] for pod in self.runs))
        yield _numbers_row("run_sub", (self.sub.get(pod.key, 0) for pod in self.runs))
        yield _numbers_row("run_role", (self.role[pod.role] for pod in self.runs))
        working = (pod for pod in self.instance.pods.values() if pod.state is PodState.BOUND and not pod.daemon)
        used = {self.node[pod.node or ""] for pod in working if pod.node in self.instance.nodes}
        yield f"used = {_set(sorted(used))};"

    def _scopes(self) -> Iterator[str]:
        """Groups and subgroups with a networkTopology."""
        asking = [(number, 0, group.topology) for number, group in enumerate(self.groups, 1)]
        asking += [(0, number, group.policies[sub.policy].topology) for number, (group, sub) in enumerate(self.subs, 1)]
        found = [(group, sub, asked) for group, sub, asked in asking if asked is not None]
        yield f"scopes = {len(found)};"
        yield _numbers_row("scope_group", (group for group, _, _ in found))
        yield _numbers_row("scope_sub", (sub for _, sub, _ in found))
        yield _numbers_row("limited", (asked.limit is not None for _, _, asked in found))
        yield _numbers_row("limit", (0 if asked.limit is None else asked.limit for _, _, asked in found))

    def _areas(self) -> Iterator[str]:
        """Zones and regions, and what calls cost between them; without a network all nodes are in one."""
        network = self.network
        costs = [[network.area_cost(one, other) for other in self.areas] for one in self.areas]
        yield f"areas = {len(self.areas)};"
        yield _names("area_name", self.areas)
        yield _numbers_row("area", (self.areas[network.area(name)] for name in self.node))
        yield _table("area_cost", costs, self.areas)

    def _links(self) -> Iterator[str]:
        """Links with a capacity, and what is left of it."""
        network = self.network
        links = _numbers(sorted(network.capacities))
        taken = [[network.link(one, other) for other in self.areas] for one in self.areas]
        used = self._bandwidth_used()
        yield f"bandwidth_binds = {_plain('C9' not in self.instance.policy.rules_off)};"
        yield f"links = {len(links)};"
        yield _names("link_name", links)
        yield _table("area_link", [[links.get(link, 0) if link else 0 for link in row] for row in taken], self.areas)
        yield _numbers_row(
            "link_room", ((network.capacities[link] - used[link]) // self.bandwidth_unit for link in links)
        )

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
        yield _names("workload_name", [f"{workload} of AppGroup {key}" for key, workload in self.workload])
        yield _numbers_row("pod_workload", map(self._workload_of, self.pods))
        yield f"peers = {len(self.peers)};"
        yield _names("peer_name", [pod.key for pod in self.peers])
        yield _numbers_row("peer_node", (self.node[pod.node or ""] for pod in self.peers))
        yield _numbers_row("peer_workload", map(self._workload_of, self.peers))
        yield _numbers_row("peer_leaves", (pod.state is PodState.TERMINATING for pod in self.peers))

    def _workload_of(self, pod: Pod) -> int:
        if pod.app_group is None or pod.workload is None:
            return 0
        return self.workload.get((pod.app_group, pod.workload), 0)

    def _calls(self) -> Iterator[str]:
        """Dependencies."""
        policy = self.instance.policy
        yield f"costs_bind = {_plain('C8' not in policy.rules_off)};"
        yield f"majority = {_plain(policy.network_cost == 'majority')};"
        yield f"calls = {len(self.calls)};"
        yield _numbers_row("caller", (self.workload[key, call.origin] for key, call in self.calls))
        yield _numbers_row("callee", (self.workload[key, call.destination] for key, call in self.calls))
        yield _numbers_row("max_cost", (call.max_network_cost for _, call in self.calls))
        yield _numbers_row(
            "bandwidth_of_pair", ((call.min_bandwidth or 0) // self.bandwidth_unit for _, call in self.calls)
        )

    def _queues(self) -> Iterator[str]:
        """Queues, and what is left of their capabilities."""
        queues = self.instance.queues
        limits = [
            (name, resource, most)
            for name, queue in queues.items()
            for resource, most in queue.capability.items()
            if resource in self.resources
        ]
        yield f"queues_bind = {_plain('C11' not in self.instance.policy.rules_off)};"
        yield f"queues = {len(queues)};"
        yield _names("queue_name", queues)
        yield _numbers_row("closed", (not queue.open for queue in queues.values()))
        yield _sets("pod_queues", ([self.queue[name] for name in self._path(pod)] for pod in self.pods))
        yield f"quotas = {len(limits)};"
        yield _numbers_row("quota_queue", (self.queue[name] for name, _, _ in limits))
        yield _numbers_row("quota_resource", (self.resources.index(resource) + 1 for _, resource, _ in limits))
        left = ((most - self._taken(name, resource)) // self.units[resource] for name, resource, most in limits)
        yield _numbers_row("quota", left)

    def _path(self, pod: Pod) -> tuple[str, ...]:
        return self.instance.queue_path(pod.queue)

    def _taken(self, queue: str, resource: str) -> int:
        """What running pods, those being deleted included, take of a queue."""
        holding = (PodState.BOUND, PodState.TERMINATING)
        pods = (pod for pod in self.instance.pods.values() if pod.state in holding and queue in self._path(pod))
        return sum(pod.requests[resource] for pod in pods)

    def _levels(self) -> Iterator[str]:
        """Values in the order they are compared."""
        values = placer.score(self.instance, Placement())
        yield f"levels = {len(values)};"
        yield f"level_value = [{', '.join(value.name for value in values)}];"
        yield _numbers_row("level_priority", (value.priority or 0 for value in values))


def _calls(instance: Instance) -> list[tuple[Key, Dependency]]:
    """Dependencies of all AppGroups; none without a network."""
    if instance.network is None:
        return []
    return [(key, call) for key, app_group in instance.app_groups.items() for call in app_group.dependencies]


def _clash(one: Pod, other: Pod) -> bool:
    """Whether a host port of one cannot be open beside one of the other."""
    return any(mine.clashes(theirs) for mine in one.host_ports for theirs in other.host_ports)


def _numbers(names: Iterable[T]) -> dict[T, int]:
    """Each name's number, from 1."""
    return {name: number for number, name in enumerate(names, 1)}


def _plain(value: int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _set(numbers: Iterable[int]) -> str:
    return f"{{{', '.join(map(str, numbers))}}}"


def _numbers_row(name: str, values: Iterable[int]) -> str:
    return f"{name} = [{', '.join(map(_plain, values))}];"


def _sets(name: str, values: Iterable[Iterable[int]]) -> str:
    return f"{name} = [{', '.join(map(_set, values))}];"


def _names(name: str, values: Iterable[object]) -> str:
    """Write an array of names, each with its number beside it."""
    lines = [f"  {json.dumps(str(value))}, % {number}" for number, value in enumerate(values, 1)]
    return "\n".join([f"{name} = [", *lines, "];"])


def _table(name: str, rows: Sequence[Sequence[int]], of: Iterable[object], width: int | None = None) -> str:
    """Write a table, a row a line, each with what it is about beside it."""
    columns = width if width is not None else max(map(len, rows), default=0)
    lines = [f"  {''.join(f'{value}, ' for value in row)}% {about}" for row, about in zip(rows, of, strict=True)]
    return "\n".join([f"{name} = array2d(1..{len(rows)}, 1..{columns}, [", *lines, "]);"])


if __name__ == "__main__":
    sys.stdout.write(dzn(placer.read(*sys.argv[1:])))
