"""kube-scheduler: pod after pod, by priority and age; filters and scores of its own plug-ins.

Preferences (preferred affinity, PreferNoSchedule, ScheduleAnyway, images) score every node alike here: an instance does
not carry them, and says so (``PreferenceIgnored``).

Source: Kubernetes ``pkg/scheduler``, plug-ins ``queuesort``, ``noderesources``, ``tainttoleration``, ``nodeaffinity``,
``nodeunschedulable``, ``nodeports``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from placer.instance.eligibility import read_node_selector
from placer.laboratory.policies.cluster_state import ClusterState, FloatArray, IntArray, Task
from placer.laboratory.policies.faults import ConfigReader
from placer.laboratory.policies.loop import Settlement
from placer.laboratory.policies.profile import Profile
from placer.laboratory.policies.resources import (
    Allocation,
    balanced,
    least_allocated,
    most_allocated,
    to_capacity_ratio,
)
from placer.laboratory.policies.step import Filter, SchedulingCycle, Score

__all__ = ["GangPlugin", "NoGang", "Order", "PodByPod", "filters_of", "priority_sort", "scores_of"]

#: Anything that knows which of two is first.
Order = Callable[[Task], Any]
_CPU_AND_MEMORY = {"cpu": 1, "memory": 1}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")


def priority_sort(task: Task) -> tuple[int, float, tuple[str, str]]:
    """PrioritySort: higher priority, then older; of equal age as a list of all pods names them."""
    return -task.pod.priority, task.pod.created, task.key


class GangPlugin(Protocol):
    """The gang rule of a scheduler that tries pod after pod."""

    def admits(self, task: Task) -> bool:
        """Whether a pod is tried at all (PreFilter)."""

    def placed(self, task: Task) -> Settlement:
        """A pod found a node: who is bound (Permit)."""

    def failed(self, task: Task) -> Settlement:
        """A pod found none: who gives room back (PostFilter)."""

    def timed_out(self) -> Settlement | None:
        """The queue is empty: the first group that waits gives up; None: no group waits."""


class NoGang:
    """Every pod for itself."""

    def admits(self, _task: Task) -> bool:
        """Every pod is tried."""
        return True

    def placed(self, task: Task) -> Settlement:
        """It is bound."""
        return Settlement(bind=(task,))

    def failed(self, _task: Task) -> Settlement:
        """It stays pending."""
        return Settlement()

    def timed_out(self) -> Settlement | None:
        """No pod waits for others."""
        return None


class PodByPod:
    """The queue of kube-scheduler and one try per pod.

    Once the queue is empty, groups that wait give up one after another, and pods that failed are tried again, as long
    as that leads anywhere: until two rounds in a row bind no pod.

    Parameters
    ----------
    state
        What is where.
    step
        Filters and scores.
    order
        The queue's order: of two keys the smaller one is first.
    gang
        The gang rule.
    """

    def __init__(
        self, state: ClusterState, step: SchedulingCycle, order: Order, gang: GangPlugin | None = None
    ) -> None:
        self.state = state
        self.step = step
        self.order = order
        self.gang = gang or NoGang()
        self._queue: list[tuple[Any, int, Task]] = []
        self._failed: list[Task] = []
        self._found: int | None = None
        self._released = self._bound = False
        self._fruitless = 0
        self._push(state.tasks)

    def _push(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            heappush(self._queue, (self.order(task), task.index, task))

    def next(self) -> Task | Settlement | None:
        """The first pod of the queue; a group that gives up, where the queue is empty; None at the end."""
        if self._queue:
            return heappop(self._queue)[2]
        given_up = self.gang.timed_out()
        if given_up is not None:
            return given_up
        self._fruitless = 0 if self._bound else self._fruitless + 1
        if not self._released or self._fruitless == 2:
            return None
        again, self._failed = self._failed, []
        self._released = self._bound = False
        self._push(again)
        return self.next()

    def attempt(self, unit: Task | Settlement) -> None:
        """Look for a node for a pod."""
        self._found = None
        if isinstance(unit, Task) and self.gang.admits(unit):
            self._found = self.step.choose(unit, self.state.everywhere)
            if self._found is not None:
                self.state.assume(unit, self._found)

    def settle(self, unit: Task | Settlement) -> Settlement:
        """Ask the gang rule; who gives room back is tried again once the queue is empty."""
        if isinstance(unit, Settlement):
            settlement = unit
        elif self._found is not None:
            settlement = self.gang.placed(unit)
        else:
            self._failed.append(unit)
            settlement = self.gang.failed(unit)
        self._failed += settlement.release
        self._released |= bool(settlement.release)
        self._bound |= bool(settlement.bind)
        return settlement


# ------------------------------------------------------------------------------------------------------------ plug-ins


def filters_of(profile: Profile, state: ClusterState, reader: ConfigReader) -> list[Filter]:
    """Filters of upstream's own plug-ins that a profile has on.

    Taints, cordons and affinity are one row per pod (C3); a profile that leaves out a part of them leaves out none.
    """
    found: list[Filter] = [lambda task, nodes: task.eligible[nodes]]
    if "NodeAffinity" in profile.filters:
        found += _added_affinity(state, profile.arguments.get("NodeAffinity", {}), reader)
    if "NodePorts" in profile.filters:
        found.append(state.ports_free)
    if "NodeResourcesFit" in profile.filters:
        found.append(_room(state, profile.arguments.get("NodeResourcesFit", {}), reader))
    return found


def _added_affinity(state: ClusterState, arguments: Mapping[str, Any], reader: ConfigReader) -> list[Filter]:
    """The node affinity that a profile adds to every pod."""
    at = "pluginConfig[NodeAffinity].args.addedAffinity"
    added = reader.mapping(arguments.get("addedAffinity"), at)
    reader.rest(
        added,
        f"{at}.",
        (_REQUIRED,),
        {"preferredDuringSchedulingIgnoredDuringExecution": "preferences score every node alike"},
    )
    if added.get(_REQUIRED) is None:
        return []
    terms, wrongs = read_node_selector(added[_REQUIRED])
    for field, found, expected in wrongs:
        reader.note(f"{at}.{_REQUIRED}{field and '.'}{field}", found, expected)
    row = np.array([any(term.matches(node) for term in terms) for node in state.instance.nodes.values()], dtype=bool)
    return [lambda _task, nodes: row[nodes]]


def _room(state: ClusterState, arguments: Mapping[str, Any], reader: ConfigReader) -> Filter:
    """Room for what a pod requests, but for extended resources that the plug-in is told to ignore."""
    at = "pluginConfig[NodeResourcesFit].args"
    names = reader.texts(arguments.get("ignoredResources"), f"{at}.ignoredResources")
    groups = reader.texts(arguments.get("ignoredResourceGroups"), f"{at}.ignoredResourceGroups")
    ignored = [
        index
        for name, index in state.column.items()
        if _is_extended(name) and (name in names or name.partition("/")[0] in groups)
    ]
    for name in names:
        if not _is_extended(name):
            reader.remark(f"{at}.ignoredResources", f"{name} is no extended resource, so it counts")
    if not ignored:
        return state.fits
    return lambda task, nodes: state.fits(task, nodes, ignored)


def _is_extended(resource: str) -> bool:
    """Whether a resource is an extended one, by its name: only those can be ignored."""
    return "/" in resource and "kubernetes.io/" not in resource and not resource.startswith("requests.")


def scores_of(profile: Profile, state: ClusterState, reader: ConfigReader) -> list[Score]:
    """Scores of upstream's own plug-ins that a profile has on."""
    found = []
    if "NodeResourcesFit" in profile.scores:
        part = _fit(state, profile.arguments.get("NodeResourcesFit", {}), reader)
        found.append(Score("NodeResourcesFit", profile.scores["NodeResourcesFit"], part))
    if "NodeResourcesBalancedAllocation" in profile.scores:
        name = "NodeResourcesBalancedAllocation"
        resources = profile.arguments.get(name, {}).get("resources")
        weights = reader.weights(resources, f"pluginConfig[{name}].args.resources") or _CPU_AND_MEMORY
        found.append(Score(name, profile.scores[name], _balance(state, weights)))
    return found


def _fit(
    state: ClusterState, arguments: Mapping[str, Any], reader: ConfigReader
) -> Callable[[Task, IntArray], FloatArray]:
    at = "pluginConfig[NodeResourcesFit].args.scoringStrategy"
    strategy = reader.mapping(arguments.get("scoringStrategy"), at)
    kind = reader.text(strategy.get("type"), f"{at}.type", "LeastAllocated", _STRATEGIES)
    weights = reader.weights(strategy.get("resources"), f"{at}.resources") or _CPU_AND_MEMORY
    reader.rest(strategy, f"{at}.", ("type", "resources", "requestedToCapacityRatio"))
    if kind == "RequestedToCapacityRatio":
        ratio = reader.mapping(strategy.get("requestedToCapacityRatio"), f"{at}.requestedToCapacityRatio")
        shape = _shape(ratio.get("shape"), reader, f"{at}.requestedToCapacityRatio.shape")
        return lambda task, nodes: to_capacity_ratio(_part(state, task, nodes, weights), shape)
    score = least_allocated if kind == "LeastAllocated" else most_allocated
    return lambda task, nodes: score(_part(state, task, nodes, weights))


def _part(state: ClusterState, task: Task, nodes: IntArray, weights: Mapping[str, int]) -> Allocation:
    return Allocation.of(state, task, nodes, weights, least=True)


def _balance(state: ClusterState, weights: Mapping[str, int]) -> Callable[[Task, IntArray], FloatArray]:
    def of(task: Task, nodes: IntArray) -> FloatArray:
        if not any(task.pod.requests[name] for name in weights):
            return np.zeros(len(nodes))  # the plug-in skips pods that request none of its resources
        return balanced(Allocation.of(state, task, nodes, weights, least=False))

    return of


def _shape(written: object, reader: ConfigReader, at: str) -> Sequence[tuple[int, int]]:
    points = []
    for index, entry in enumerate(reader.items(written, at)):
        each = reader.mapping(entry, f"{at}[{index}]")
        utilization = reader.integer(each.get("utilization"), f"{at}[{index}].utilization", 0, 0, 100)
        points.append((utilization, reader.integer(each.get("score"), f"{at}[{index}].score", 0, 0, 10)))
    growing = all(one[0] < other[0] for one, other in pairwise(points))
    if not points or not growing:
        reader.fault(at, written, "points whose utilization grows, at least one")
        return [(0, 0), (100, 10)]
    return points
