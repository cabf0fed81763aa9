"""A session's knowledge: HyperNodes as arrays, jobs and their subjobs.

Above all roots stands the virtual top, which holds every node. Idle sums are those of the start, as Volcano keeps them
during a session (#6015); used sums follow every pod.

Source: Volcano ``pkg/scheduler/api`` (``job_info.go``, ``sub_job_info.go``, ``hyper_node_info.go``),
``pkg/scheduler/framework/session.go``, ``pkg/scheduler/plugins/gang``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from placer.base.quantity import PODS
from placer.problem import Group, Instance, Key, NetworkTopology, Pod, SubGroup

if TYPE_CHECKING:
    from placer.lab.policies.framework import ClusterState, IntArray, Task

__all__ = [
    "HyperNodesInfo",
    "JobInfo",
    "SubJob",
    "is_best_effort",
    "job_priority",
    "read_jobs",
    "required",
    "subjob_order",
    "task_order",
]


#: Name of the virtual top.
TOP = "<cluster-top-hypernode>"


class HyperNodesInfo:
    """The HyperNodes of an instance, by index; the virtual top comes last."""

    def __init__(self, state: ClusterState) -> None:
        tree = state.instance.topology
        names = [*tree.hyper_nodes, TOP]
        self.names = names
        self.number = {name: index for index, name in enumerate(names)}
        self.top = self.number[TOP]
        self.tier = [*(each.tier for each in tree.hyper_nodes.values()), max(1, tree.root_tier)]
        self.parent = [*(self.number[each.parent or TOP] for each in tree.hyper_nodes.values()), -1]
        self.max_tier, self.min_tier = self.tier[self.top], min(self.tier)
        #: HyperNodes that hold a node, lowest first, the top last.
        self.path = [[*(self.number[name] for name in tree.path(node)), self.top] for node in state.names]
        self._paths = [np.array(path, dtype=np.int64) for path in self.path]
        #: The HyperNode of a node at the lowest tier of all, -1 where it has none there.
        self.leaf: IntArray = np.array([self._at(path, self.min_tier) for path in self.path], dtype=np.int64)
        #: Nodes in a HyperNode, in the order in which the scheduler happens to hold them.
        self.nodes = self._members(state.everywhere.tolist())
        self.alloc = self._sums(state.alloc)
        self.used = self._sums(state.used)
        self.idle = self._sums(state.idle)
        self.future = self.idle + self._sums(state.releasing)
        self._by_tier: dict[int, IntArray] = {}
        state.listeners.append(self._hear)

    def _members(self, nodes: Iterable[int]) -> list[IntArray]:
        members: list[list[int]] = [[] for _ in self.names]
        for node in nodes:
            for domain in self.path[node]:
                members[domain].append(node)
        return [np.array(each, dtype=np.int64) for each in members]

    def _sums(self, rows: IntArray) -> IntArray:
        found: IntArray = np.array([rows[nodes].sum(axis=0) for nodes in self.nodes], dtype=np.int64)
        return found.reshape(len(self.nodes), rows.shape[1])

    def _at(self, path: Iterable[int], tier: int) -> int:
        return next((domain for domain in path if self.tier[domain] == tier), -1)

    def _hear(self, task: Task, node: int, sign: int) -> None:
        self.used[self._paths[node]] += sign * task.request

    def leave(self, node: int, request: IntArray) -> None:
        """Take the request of an evicted pod from a node and its HyperNodes."""
        self.used[self._paths[node]] -= request
        self.idle[self._paths[node]] += request
        self.future[self._paths[node]] += request

    def at_tier(self, tier: int) -> IntArray:
        """The HyperNode of every node at a tier, -1 where it has none there."""
        if tier not in self._by_tier:
            self._by_tier[tier] = np.array([self._at(path, tier) for path in self.path], dtype=np.int64)
        return self._by_tier[tier]

    def line(self, domain: int) -> list[int]:
        """A HyperNode and its ancestors up to the top."""
        found = [domain]
        while self.parent[found[-1]] >= 0:
            found.append(self.parent[found[-1]])
        return found

    def common(self, one: int | None, other: int | None) -> int | None:
        """Lowest common ancestor-or-self; of nothing and something the latter."""
        if one is None or other is None:
            return other if one is None else one
        line = self.line(one)
        return next(domain for domain in self.line(other) if domain in line)

    def smallest(self, nodes: Iterable[int]) -> int:
        """The lowest HyperNode that holds all the nodes."""
        paths = [self.path[node] for node in nodes]
        return next(domain for domain in paths[0] if all(domain in path for path in paths))

    def below(self, domain: int) -> list[int]:
        """A HyperNode and all that lie in it."""
        found = [domain]
        for each in found:
            found += (child for child, parent in enumerate(self.parent) if parent == each)
        return found


@dataclass(frozen=True, slots=True)
class Wanted:
    """Tier limit of a scope, soft made hard as at the start of a session; None: a networkTopology without a limit."""

    limit: int | None


@dataclass(slots=True, eq=False)
class SubJob:
    """Pods that are a gang within their job.

    Parameters
    ----------
    size
        Least pods (the whole job's, where the job has no policies).
    policy
        Index of the policy; None: the pods that no policy takes.
    wanted
        None: it has no networkTopology.
    match_index
        First value of the policy's keys as a number, 0 where it is none.
    tasks
        Its pending pods, in the order in which they are tried.
    total, request
        All its pods, running ones included; the sum of their requests, shape (resources,).
    running
        Node to its pods there; those that this session placed included.
    occupied, best_effort, pipelined
        Pods that count for the gang: placed or succeeded; pending without request; waiting for room.
    anchor
        HyperNode that its placed pods lie in; None: free.
    priority
        Highest of all its pods, at least 0.
    """

    uid: str
    size: int
    policy: int | None
    wanted: Wanted | None
    match_index: int = 0
    tasks: list[Task] = field(default_factory=list)
    total: int = 0
    request: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    running: Counter[int] = field(default_factory=Counter)
    occupied: int = 0
    best_effort: int = 0
    pipelined: int = 0
    anchor: int | None = None
    priority: int = 0


@dataclass(slots=True, eq=False)
class JobInfo:
    """A PodGroup.

    Parameters
    ----------
    wanted
        None: the whole job has no networkTopology.
    roles, roles_pipelined
        Role to pods that are placed or succeeded; that wait for room, or request nothing.
    anchor
        HyperNode that its placed pods lie in; None: free.
    failed
        Pods that found no node in this try, with their subjobs.
    """

    uid: str
    group: Group
    queue: str
    wanted: Wanted | None
    subjobs: list[SubJob]
    roles: Counter[str] = field(default_factory=Counter)
    roles_pipelined: Counter[str] = field(default_factory=Counter)
    anchor: int | None = None
    failed: dict[Task, SubJob] = field(default_factory=dict)

    @property
    def limit(self) -> int | None:
        """Highest tier of the whole job."""
        return self.wanted.limit if self.wanted is not None else None

    @property
    def searches(self) -> bool:
        """Whether HyperNodes are tried one by one for it: any limit, or policies."""
        limits = (each.wanted.limit for each in self.subjobs if each.wanted is not None)
        return bool(self.group.policies) or self.limit is not None or any(limit is not None for limit in limits)

    @property
    def has_topology(self) -> bool:
        """Whether anything of it has a networkTopology."""
        return self.wanted is not None or any(each.wanted is not None for each in self.subjobs)

    def subjob_ready(self, subjob: SubJob, *, pipelined: bool = False) -> bool:
        """Whether a subjob is a whole gang; without policies it is whether the job is."""
        if not self.group.policies:
            return self.ready(pipelined=pipelined)
        return subjob.occupied + subjob.best_effort + pipelined * subjob.pipelined >= subjob.size

    def ready(self, *, pipelined: bool = False) -> bool:
        """Whether the job may be bound; ``pipelined``: with pods that wait for room."""
        waiting = sum(each.pipelined for each in self.subjobs) if pipelined else 0
        placed = sum(each.occupied + each.best_effort for each in self.subjobs) + waiting
        if placed < self.group.min_member:
            return False
        roles = self.roles + self.roles_pipelined if pipelined else self.roles
        if any(roles[role] < least for role, least in self.group.min_task_member.items()):
            return False
        ready = filter(partial(self.subjob_ready, pipelined=pipelined), self.subjobs)
        return not self.group.policies or self._enough(ready)

    def _enough(self, subjobs: Iterable[SubJob]) -> bool:
        """Whether there are minSubGroups of every policy among some subjobs."""
        found = Counter(each.policy for each in subjobs)
        return all(found[index] >= policy.min_sub_groups for index, policy in enumerate(self.group.policies))

    def valid(self) -> bool:
        """Whether it has the pods and subjobs to become ready at all."""
        if self.group.invalid is not None or not self._enough(self.subjobs):
            return False
        there = Counter(self.roles)
        for subjob in self.subjobs:
            there.update(task.pod.role for task in subjob.tasks)
        enough = all(there[role] >= least for role, least in self.group.min_task_member.items())
        return enough and sum(there.values()) >= self.group.min_member

    def goes_on(self, subjob: SubJob) -> bool:
        """Whether other pods are tried after one found no node (NeedContinueAllocating)."""
        if self.group.min_member == sum(each.total for each in self.subjobs) or subjob.size >= subjob.total:
            return False
        if self.group.policies:
            return True
        return all(self.roles[role] >= self.group.min_task_member.get(role, 0) for role in self.failed_roles(subjob))

    def failed_roles(self, subjob: SubJob) -> set[str]:
        """Roles of which a pod of the subjob found no node in this try."""
        return {task.pod.role for task, where in self.failed.items() if where is subjob}

    def place(self, subjob: SubJob, task: Task, node: int, sign: int = 1) -> None:
        """Count a pod as placed, or (sign -1) as pending again."""
        subjob.occupied += sign
        subjob.running[node] += sign
        if not subjob.running[node]:
            # Tries leave no trace: scores go over all that is here.
            del subjob.running[node]
        self.roles[task.pod.role] += sign

    def pipeline(self, subjob: SubJob, task: Task, sign: int = 1) -> None:
        """Count a pod as waiting for room, or (sign -1) as pending again."""
        subjob.pipelined += sign
        self.roles_pipelined[task.pod.role] += sign


def is_best_effort(task: Task) -> bool:
    """Whether a pod requests nothing: it waits for the action backfill, and counts as placed for its gang."""
    return all(name == PODS for name in task.pod.requests)


def read_jobs(state: ClusterState, domains: HyperNodesInfo) -> list[JobInfo]:
    """Every group that has a pending pod, as a job; sorted by key."""
    return [_job(group, state, domains) for group in state.instance.groups.values() if group.pending]


def _job(group: Group, state: ClusterState, domains: HyperNodesInfo) -> JobInfo:
    instance = state.instance
    wanted = _wanted(group.topology, None, domains)
    uid = f"{group.key.namespace}/{group.key.name}"
    job = JobInfo(uid, group, group.queue or "default", wanted, [])
    for subjob, keys, succeeded in _parts(job, instance, domains):
        members = [instance.pods[key] for key in keys]
        _count_members(subjob, members, succeeded, state)
        _count_placed(subjob, [pod.node for pod in members if pod.node is not None], succeeded, state, domains)
        job.roles.update(pod.role for pod in members if pod.node is not None)
        job.roles_pipelined.update(task.pod.role for task in subjob.tasks if is_best_effort(task))
        job.anchor = domains.common(job.anchor, subjob.anchor)
        job.subjobs.append(subjob)
    job.roles.update(group.succeeded)
    return job


def _count_members(subjob: SubJob, members: Sequence[Pod], succeeded: int, state: ClusterState) -> None:
    subjob.tasks = sorted((state.task_of[pod.key] for pod in members if pod.key in state.task_of), key=task_order)
    subjob.best_effort = sum(map(is_best_effort, subjob.tasks))
    subjob.priority = max((0, *(pod.priority for pod in members)))
    subjob.total = len(members) + succeeded
    subjob.request = state.requested(pod.key for pod in members)


def _count_placed(
    subjob: SubJob, nodes: Sequence[str], succeeded: int, state: ClusterState, domains: HyperNodesInfo
) -> None:
    """A placed pod on a node that is not there leaves the subjob without anchor."""
    subjob.running = Counter(state.number[node] for node in nodes if node in state.number)
    subjob.occupied = len(nodes) + succeeded
    if subjob.wanted is not None and nodes and subjob.running.total() == len(nodes):
        subjob.anchor = domains.smallest(subjob.running)


def _parts(job: JobInfo, instance: Instance, domains: HyperNodesInfo) -> Iterator[tuple[SubJob, list[Key], int]]:
    group, succeeded = job.group, sum(job.group.succeeded.values())
    for (index, name), parts in _merged(group.sub_groups).items():
        policy = group.policies[index]
        asked = _wanted(policy.topology, job.wanted, domains)
        subjob = SubJob(f"{job.uid}/{name}", policy.size, index, asked, _match_index(name, policy.name))
        keys = [key for part in parts for key in (*part.pending, *part.bound)]
        there = sum(part.succeeded for part in parts)
        succeeded -= there
        yield subjob, keys, there
    left = [key for key in (*group.pending, *group.bound) if instance.pods[key].sub_group is None]
    if left or succeeded:
        yield SubJob(job.uid, 1 if group.policies else group.min_member, None, job.wanted), left, succeeded


def _merged(sub_groups: Iterable[SubGroup]) -> dict[tuple[int, str], list[SubGroup]]:
    merged: dict[tuple[int, str], list[SubGroup]] = defaultdict(list)
    for part in sub_groups:
        merged[part.policy, part.name].append(part)
    return merged


def _wanted(topology: NetworkTopology | None, job: Wanted | None, domains: HyperNodesInfo) -> Wanted | None:
    """Soft becomes hard up to the job's limit, else up to the top; hard with an unknown tier has no limit."""
    if topology is None:
        return None
    if not topology.hard:
        inherited = job.limit if job is not None else None
        return Wanted(domains.max_tier if inherited is None else inherited)
    tier = topology.highest_tier
    return Wanted(None if tier is None or tier < 0 else tier)


def _match_index(name: str, policy: str) -> int:
    value = name.removeprefix(policy).removeprefix("-").split("-")[0]
    return int(value) if value.isdecimal() else 0


def job_priority(group: Group) -> int:
    """Of the class that the PodGroup names, whatever its pods state; else of its pods."""
    return group.priority if group.class_priority is None else group.class_priority


def task_order(task: Task) -> tuple[int, int, float, Key]:
    """TaskOrderFn: priority, the number at the end of the name, age; then the name, for want of a uid."""
    parts = task.pod.name.split("-")
    number = int(parts[-1]) if len(parts) >= 3 and parts[-1].isdecimal() else -1
    return -task.pod.priority, number, task.pod.created, task.key


def subjob_order(job: JobInfo, subjob: SubJob) -> tuple[int, bool, int, str]:
    """SubJobOrderFn: priority, those that are not ready first, index, uid."""
    return -subjob.priority, job.subjob_ready(subjob), subjob.match_index, subjob.uid


def required(job: JobInfo) -> set[str]:
    """Subjobs that go before the rest: the first ones that are needed for minSubGroups."""
    missing: Mapping[int, int] = {
        index: policy.min_sub_groups - sum(job.subjob_ready(each) for each in job.subjobs if each.policy == index)
        for index, policy in enumerate(job.group.policies)
    }
    waiting = sorted((each for each in job.subjobs if not job.subjob_ready(each)), key=lambda s: subjob_order(job, s))
    found: set[str] = set()
    for index, count in missing.items():
        mine: Iterable[SubJob] = (each for each in waiting if each.policy == index)
        found.update(each.uid for each, _ in zip(mine, range(max(0, count)), strict=False))
    return found
