"""NetworkOverhead: pods near to those that they call and that are placed already.

Only own outgoing dependencies count, and only towards pods that are bound; every pod counts as bound as soon as it is
placed. A node is filtered out where more callees are too far than near enough; an unknown cost is neither.

Source: scheduler-plugins ``pkg/networkaware/networkoverhead/networkoverhead.go``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from placer.instance import Dependency, Instance, Key, Link, Pod
from placer.instance.communication import REGION, REGION_LABEL, SAME_ZONE_COST, UNKNOWN_COST, ZONE, ZONE_LABEL
from placer.laboratory.policies.cluster_state import BoolArray, ClusterState, FloatArray, IntArray, Task
from placer.laboratory.policies.faults import ConfigReader
from placer.laboratory.policies.network_objects import find_app_groups, find_costs

__all__ = ["Overhead", "Tally", "normalised"]


class NodeLocation(NamedTuple):
    """Labels of a node, empty where it has none."""

    region: str
    zone: str


class Tally(NamedTuple):
    """What the plug-in counts for a pod on nodes; each int64, shape (nodes,)."""

    satisfied: IntArray
    violated: IntArray
    cost: IntArray


class Overhead:
    """Filter and score of the plug-in.

    Parameters
    ----------
    state
        What is where; pods that take and leave room are heard of.
    arguments
        Of the plug-in: ``namespaces``, ``networkTopologyName``, ``weightsName``; None: placer's own choice.
    reader
        Takes faults and remarks of the arguments; None: there are none.
    """

    def __init__(
        self, state: ClusterState, arguments: Mapping[str, Any] | None = None, reader: ConfigReader | None = None
    ) -> None:
        instance = state.instance
        reader = reader or ConfigReader("-", "NetworkOverhead")
        self._costs_known = find_costs(instance, arguments, reader)
        self._app_groups = find_app_groups(instance, "NetworkOverhead", arguments, reader)
        self._number = state.number
        nodes = instance.nodes.values()
        self.spots = [NodeLocation(n.labels.get(REGION_LABEL, ""), n.labels.get(ZONE_LABEL, "")) for n in nodes]
        self._kinds = sorted(set(self.spots))
        index = {spot: number for number, spot in enumerate(self._kinds)}
        self._kind = np.array([index[spot] for spot in self.spots], dtype=np.int64)
        self._costs = [_costs_from(spot, self._costs_known or {}) for spot in self._kinds]
        self._calls = _calls(instance)
        self.placed: dict[Key, dict[str, Counter[int]]] = defaultdict(lambda: defaultdict(Counter))
        #: AppGroups with a pod on a node that is not there: the plug-in cannot look at their pods at all.
        self.broken: set[Key] = set()
        for pod in _standing(instance):
            app_group, workload, node = self._app_group(pod), pod.workload or "", pod.node or ""
            if app_group is None:
                continue
            if node in self._number:
                self.placed[app_group][workload][self._number[node]] += 1
            else:
                self.broken.add(app_group)
        state.listeners.append(self._hear)

    def _hear(self, task: Task, node: int, sign: int) -> None:
        app_group = self._app_group(task.pod)
        if app_group is not None:
            self.placed[app_group][task.pod.workload or ""][node] += sign

    def _app_group(self, pod: Pod) -> Key | None:
        """The AppGroup that the plug-in finds for a pod."""
        return self._app_groups.get(pod.app_group) if pod.app_group is not None else None

    def filter(self, task: Task, nodes: IntArray) -> BoolArray:
        """Where not more is violated than satisfied."""
        if self._app_group(task.pod) in self.broken and self._own(task):
            return np.zeros(len(nodes), dtype=bool)
        tally = self.tally(task, nodes)
        return tally.violated <= tally.satisfied

    def cost(self, task: Task, nodes: IntArray) -> FloatArray:
        """Sum of the costs of all calls to placed pods."""
        return self.tally(task, nodes).cost.astype(np.float64)

    def tally(self, task: Task, nodes: IntArray) -> Tally:
        """Count for every node; zeros without AppGroup, own dependency or placed callee."""
        satisfied, violated, cost = (np.zeros(len(self.spots), dtype=np.int64) for _ in range(3))
        for dependency, callees in self._own(task):
            for callee, count in callees.items():
                if count:
                    by_kind = self._towards(dependency, callee) * count
                    near, far, price = by_kind[self._kind].T
                    satisfied += near
                    violated += far
                    cost += price
                    # On the same node nothing else counts.
                    satisfied[callee] += count - near[callee]
                    violated[callee] -= far[callee]
                    cost[callee] -= price[callee]
        return Tally(satisfied[nodes], violated[nodes], cost[nodes])

    def _own(self, task: Task) -> Sequence[tuple[Dependency, Mapping[int, int]]]:
        """Dependencies of a pod's workload with the placed pods of each callee."""
        app_group = self._app_group(task.pod)
        if self._costs_known is None or app_group is None or task.pod.workload is None:
            return ()
        placed = self.placed[app_group]
        return [(each, placed[each.destination]) for each in self._calls[app_group, task.pod.workload]]

    def _towards(self, dependency: Dependency, callee: int) -> IntArray:
        """Satisfied, violated and cost of one call from each kind of node, shape (kinds, 3)."""
        there = self.spots[callee]
        rows = [
            judge(here, there, costs, dependency.max_network_cost)
            for here, costs in zip(self._kinds, self._costs, strict=True)
        ]
        return np.array(rows, dtype=np.int64)


def judge(
    here: NodeLocation, there: NodeLocation, costs: Mapping[tuple[str, str], int], limit: int
) -> tuple[int, int, int]:
    """Satisfied, violated and cost of a call from one node to a pod on another node."""
    if not there.region and not there.zone:
        return 0, 1, UNKNOWN_COST
    if here == there:
        return 1, 0, SAME_ZONE_COST
    ends = (here.zone, there.zone) if here.region == there.region else (here.region, there.region)
    cost = costs.get(ends)
    if cost is None:
        return 0, 0, UNKNOWN_COST
    return (1, 0, cost) if cost <= limit else (0, 1, cost)


def normalised(costs: FloatArray) -> FloatArray:
    """Costs of all feasible nodes to scores: the least 100, the most 0; all 0 stays 0, all alike is 100."""
    least, most = costs.min(), costs.max()
    if most == 0:
        return costs
    if least == most:
        return np.full(len(costs), 100.0)
    scores: FloatArray = 100.0 - np.floor(100.0 * ((costs - least) / (most - least)))
    return scores


def _costs_from(spot: NodeLocation, known: Mapping[Link, int]) -> dict[tuple[str, str], int]:
    """Costs from a region and from a zone in one map, as the plug-in has it: of equal names the zone's entry counts."""
    regions, zones = dict[tuple[str, str], int](), dict[tuple[str, str], int]()
    for link, cost in known.items():
        if link == Link(REGION, spot.region, link.destination):
            regions[link.origin, link.destination] = cost
        elif link == Link(ZONE, spot.zone, link.destination):
            zones[link.origin, link.destination] = cost
    return regions | zones


def _calls(instance: Instance) -> dict[tuple[Key, str], list[Dependency]]:
    found: dict[tuple[Key, str], list[Dependency]] = defaultdict(list)
    for key, app_group in instance.app_groups.items():
        for dependency in app_group.dependencies:
            found[key, dependency.origin].append(dependency)
    return found


def _standing(instance: Instance) -> list[Pod]:
    """Pods of workloads that have a node, those that are being deleted included."""
    return [
        pod for pod in instance.pods.values() if pod.app_group is not None and pod.node is not None and pod.holds_queue
    ]
