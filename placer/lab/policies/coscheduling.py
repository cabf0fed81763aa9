"""Coscheduling: pods of a PodGroup hold their nodes until there are minMember of them.

PodGroups of any API group count. Source: scheduler-plugins ``pkg/coscheduling`` (``coscheduling.go``,
``core/core.go``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from placer.base.quantity import PODS
from placer.lab.policies.faults import ConfigReader
from placer.lab.policies.framework import ClusterState, Settlement, Task
from placer.lab.policies.kube import GangPlugin
from placer.problem import Group, GroupKey, PodState

__all__ = ["Coscheduling"]

#: Default of ``podGroupRejectPercentage``.
_REJECT_PERCENTAGE = 10


class Coscheduling(GangPlugin):
    """QueueSort, PreFilter, Permit, PostFilter and Unreserve of the plug-in.

    Of its arguments ``podGroupRejectPercentage`` decides here; a snapshot has no times.
    """

    def __init__(self, state: ClusterState, arguments: Mapping[str, Any], reader: ConfigReader) -> None:
        at = "pluginConfig[Coscheduling].args.podGroupRejectPercentage"
        self.percentage = reader.integer(arguments.get("podGroupRejectPercentage"), at, _REJECT_PERCENTAGE, 0, 100)
        self._groups = {key: group for key, group in state.instance.groups.items() if key.api_group}
        self._assigned = {key: len(group.bound) for key, group in self._groups.items()}
        self._members = {key: group.placed_before + len(group.pending) for key, group in self._groups.items()}
        for pod in state.instance.pods.values():
            if pod.group in self._groups and pod.state is PodState.TERMINATING:
                # By name: pods that are being deleted are members and assigned as long as they are there.
                self._assigned[pod.group] += 1
                self._members[pod.group] += 1
        self._state = state
        self._own = {key: state.requested(group.bound) for key, group in self._groups.items() if group.min_resources}
        state.listeners.append(self._hear)
        self._passed: set[GroupKey] = set()
        self._waiting: dict[GroupKey, list[Task]] = {}
        self._failed_at: dict[GroupKey, int] = {}
        self._clock = 0

    def order(self, task: Task) -> tuple[int, tuple[int, float], tuple[str, str]]:
        """Less: priority, then the last failure of the group, else its creation; then the pod's name."""
        group = self._group(task)
        if group is None:
            return -task.pod.priority, (0, task.pod.created), task.key
        failed = self._failed_at.get(group.key)
        return -task.pod.priority, (0, group.created) if failed is None else (1, failed), task.key

    def admits(self, task: Task) -> bool:
        """PreFilter: the group has minMember pods, placed or not, and all nodes together have its minResources free.

        One that is not there is let through, to Permit.
        """
        group = self._group(task)
        if group is None or group.invalid is not None:
            return True
        return self._members[group.key] >= group.min_member and self._has_room(group)

    def _has_room(self, group: Group) -> bool:
        """The group's own pods do not count; once there was room, it is not asked again."""
        if group.key not in self._own or group.key in self._passed:
            return True
        state = self._state
        least = state.row(group.min_resources)
        if PODS in state.column:
            least[state.column[PODS]] = group.min_member
        enough = bool((state.idle.sum(axis=0) + self._own[group.key] >= least)[least > 0].all())
        if enough:
            self._passed.add(group.key)
        return enough

    def _hear(self, task: Task, _node: int, sign: int) -> None:
        if task.pod.group in self._own:
            self._own[task.pod.group] += sign * task.request

    def placed(self, task: Task) -> Settlement:
        """Permit: with minMember assigned all that wait are bound, else this one waits with them."""
        group = self._group(task)
        if group is None:
            return Settlement(bind=(task,))
        if group.invalid is not None:
            return Settlement(release=(task,))
        self._assigned[group.key] += 1
        waiting = self._waiting.setdefault(group.key, [])
        waiting.append(task)
        if self._assigned[group.key] < group.min_member:
            return Settlement()
        return Settlement(bind=self._waiting.pop(group.key))

    def failed(self, task: Task) -> Settlement:
        """PostFilter: a group that lacks more than the percentage gives up, one that lacks less keeps waiting."""
        group = self._group(task)
        if group is None or group.invalid is not None:
            return Settlement()
        if not rejects(self.percentage, group.min_member, self._assigned[group.key]):
            return Settlement()
        return self._give_up(group.key)

    def timed_out(self) -> Settlement | None:
        """Unreserve: the group whose pods wait longest gives up."""
        return self._give_up(next(iter(self._waiting))) if self._waiting else None

    def _give_up(self, key: GroupKey) -> Settlement:
        waiting = self._waiting.pop(key, [])
        self._assigned[key] -= len(waiting)
        self._clock += 1
        self._failed_at[key] = self._clock
        return Settlement(release=waiting)

    def _group(self, task: Task) -> Group | None:
        return self._groups.get(task.pod.group) if task.pod.group is not None else None


def rejects(percentage: int, min_member: int, assigned: int) -> bool:
    """Whether a group that cannot place a pod gives up: it lacks more than ``percentage`` of minMember.

    Examples
    --------
    >>> rejects(10, 10, 9), rejects(10, 10, 8)
    (False, True)
    """
    return assigned < min_member and 100 * (min_member - assigned) > percentage * min_member
