"""From a pod object, with its place in its group, to a pod of the instance."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from placer.instance.eligibility import ConstraintsPool, host_ports
from placer.instance.findings import Findings
from placer.instance.gangs import VOLCANO, created
from placer.instance.group import Group, GroupKey
from placer.instance.network.members import Member
from placer.instance.node import Node
from placer.instance.numa.demand import DemandPool
from placer.instance.owners import is_daemon
from placer.instance.pod import Key, Pod, PodState
from placer.instance.queues import Queues
from placer.instance.refusal import Refusals
from placer.instance.requests import pod_requests
from placer.instance.roster import Entry

__all__ = ["PodReader", "group_of_one", "node_of"]

_ON_NODE = (PodState.BOUND, PodState.TERMINATING)


@dataclass(frozen=True, slots=True)
class PodReader:
    """Reads pods; holds what their fields refer to.

    Parameters
    ----------
    nodes
        The nodes by name.
    gangs
        The PodGroups there are.
    groups
        The groups of PodGroups by key, those that stand in for absent ones included.
    sub_groups
        Index of a pod's subgroup in its group; a pod in none is absent.
    members
        Which pod is of which workload of which AppGroup.
    queues
        The queues, and who is in which.
    refusals
        What makes a pending pod unsupported.
    findings
        Takes references that lead nowhere.
    demands
        Reads what pods ask of NUMA zones; None: no node has any.
    pool
        Makes the constraints, shared between equal pods.
    """

    nodes: Mapping[str, Node]
    gangs: Container[GroupKey]
    groups: Mapping[GroupKey, Group]
    sub_groups: Mapping[Key, int]
    members: Mapping[Key, Member]
    queues: Queues
    refusals: Refusals
    findings: Findings
    demands: DemandPool | None = None
    pool: ConstraintsPool = field(default_factory=ConstraintsPool)

    def read(self, entry: Entry) -> Pod:
        """Make the pod of one entry."""
        pod, state = entry.pod, entry.state
        if state is None:
            raise ValueError(f"pod {entry.key} has ended")
        pending = state is PodState.PENDING
        member = self.members.get(entry.key)
        group = entry.group if entry.group in self.groups and state is not PodState.NOMINATED else None
        return Pod(
            namespace=entry.key.namespace,
            name=entry.key.name,
            state=state,
            requests=pod_requests(pod.spec, pod.status if state in _ON_NODE else None),
            constraints=self.pool.of(pod.spec, self.refusals.volumes.affinities(pod)),
            host_ports=host_ports(pod.spec),
            node=self._node(entry),
            priority=entry.priority,
            group=GroupKey("", *entry.key) if pending and group is None else group,
            sub_group=self.sub_groups.get(entry.key),
            role=entry.role,
            queue=None if state is PodState.NOMINATED else self._queue(entry, group),
            created=created(pod.metadata),
            daemon=is_daemon(pod.metadata),
            app_group=member.app_group if member is not None else None,
            workload=member.workload if member is not None else None,
            numa=self.demands.of(pod.spec) if self.demands is not None else None,
            unsupported=self.refusals.of(pod) if pending else (),
        )

    def _node(self, entry: Entry) -> str | None:
        """The node's name, as the node itself holds it; one that is not there is a finding of the pod that is on it."""
        name = node_of(entry)
        node = self.nodes.get(name) if name is not None else None
        if node is None:
            if name is not None and entry.state in _ON_NODE:
                self.findings.missing(f"Node {name}", f"Pod {entry.key}")
            return name
        return node.name

    def _queue(self, entry: Entry, group: GroupKey | None) -> str | None:
        if group is not None and group.api_group == VOLCANO and group in self.gangs:
            return self.groups[group].queue
        return self.queues.of_pod(entry.pod.metadata, f"Pod {entry.key}")


def node_of(entry: Entry) -> str | None:
    """Name of the node that a pod is on, or where another scheduler holds room for it."""
    pod = entry.pod
    if entry.state is PodState.NOMINATED and pod.status is not None:
        return pod.status.nominated_node_name
    return pod.spec.node_name or None


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
