"""The action enqueue with the plug-in overcommit: which PodGroups a session lets in.

A PodGroup of which nothing runs waits outside. It is let in while its ``minResources``, with those of all that are in
and do not run yet, fit into what all nodes have, stretched by a factor, less what pods take. Others are not tried.

Source: Volcano ``pkg/scheduler/actions/enqueue/enqueue.go``, ``pkg/scheduler/plugins/overcommit/overcommit.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from placer.instance import Group, GroupKey
from placer.laboratory.policies.cluster_state import ClusterState
from placer.laboratory.policies.volcano.jobs import JobInfo
from placer.quantity import CPU, PODS, Resources

__all__ = ["Overcommit", "enqueue"]

#: Amounts nearer than this are the same.
_TOLERANCE = 0.1
_DEFAULT_FACTOR = 1.2
_NATIVE = (CPU, "memory", PODS, "ephemeral-storage")


@dataclass(frozen=True, slots=True)
class Overcommit:
    """Arguments of the plug-in.

    Parameters
    ----------
    factor
        How much more than there is may be asked for, 1 or more.
    factors
        The same for single resources.
    """

    factor: float = _DEFAULT_FACTOR
    factors: Mapping[str, float] = field(default_factory=dict)

    def of(self, resource: str) -> float:
        """The factor of a resource."""
        return self.factors.get(resource, self.factor)


def enqueue(
    jobs: Iterable[JobInfo],
    state: ClusterState,
    overcommit: Overcommit | None,
    order: Callable[[JobInfo], tuple[Any, ...]],
) -> set[GroupKey]:
    """Which jobs are in once the action has run.

    Jobs without pods are not known here, and so ask for nothing; what a PodGroup's status says of its phase neither.

    Parameters
    ----------
    jobs
        All that have pending pods, in queues that are there and open.
    state
        What is where.
    overcommit
        None: the plug-in is off, and all are let in.
    order
        Who is asked first.
    """
    if overcommit is None:
        return {job.group.key for job in jobs}
    idle = _idle(state, overcommit)
    asked = dict.fromkeys(idle, 0.0)
    for group in state.instance.groups.values():
        for name, amount in _reserved(group, state).items():
            asked[name] = asked.get(name, 0.0) + amount
    found = set()
    for job in sorted(jobs, key=order):
        least = {} if job.group.placed_before else _counted(job.group.min_resources)
        after = {name: asked.get(name, 0.0) + amount for name, amount in least.items()}
        if all(amount <= idle.get(name, 0.0) + _TOLERANCE for name, amount in after.items()):
            asked |= after
            found.add(job.group.key)
    return found


def _idle(state: ClusterState, overcommit: Overcommit) -> dict[str, float]:
    """What may be asked for of each resource; less than nothing where pods take more than the factor allows."""
    total, used = state.alloc.sum(axis=0).tolist(), state.used.sum(axis=0).tolist()
    rows = zip(state.resources, total, used, strict=True)
    return {name: there * overcommit.of(name) - taken for name, there, taken in rows}


def _reserved(group: Group, state: ClusterState) -> dict[str, int]:
    """What a PodGroup that runs has asked for and does not take yet."""
    if not group.bound or len(group.bound) < group.min_member:
        return {}
    pods = (state.instance.pods[key].requests for key in group.bound)
    taken = sum(pods, start=Resources())
    return {name: max(0, amount - taken[name]) for name, amount in _counted(group.min_resources).items()}


def _counted(least: Resources) -> dict[str, int]:
    """What of ``minResources`` counts: quotas such as ``requests.cpu`` and ``count/pods``, which the job controller
    writes beside it, do not.
    """
    return {
        name: amount
        for name, amount in least.items()
        if amount
        and (
            name in _NATIVE
            or name.startswith(("hugepages-", "attachable-volumes-"))
            or ("/" in name and not name.startswith(("requests.", "limits.", "count/")))
        )
    }
