"""The plug-ins NetworkOverhead (filter and score) and TopologicalSort (queue), by AppGroups and a NetworkTopology.

NetworkOverhead counts a pod's own dependencies on placed pods. A node is filtered out where more callees are too far
than near enough; an unknown cost is neither. TopologicalSort orders pods of one AppGroup by its workloads, all others
by priority and age. ``roots``, an argument of this policy alone, names the workloads taken first, where the controller
takes them in the random order of a Go map.

Without arguments of a plug-in its objects are placer's; with some, omitted ones have the plug-in's defaults. An object
that the plug-in would not find stops it there; here it does without, and says so.

Source: scheduler-plugins ``pkg/networkaware/{topologicalsort,networkoverhead}``, ``apis/config/v1/defaults.go``;
diktyo-io/appgroup-controller.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from placer.lab.policies.faults import ConfigReader
from placer.lab.policies.framework import BoolArray, ClusterState, FloatArray, IntArray, Task, priority_sort
from placer.problem import AppGroup, Dependency, Instance, Key, Link, Pod
from placer.problem.communication import REGION, REGION_LABEL, SAME_ZONE_COST, UNKNOWN_COST, ZONE, ZONE_LABEL
from placer.problem.network_objects import ALGORITHMS, DEFAULT_ALGORITHM, sort_workloads

__all__ = ["Overhead", "TopologicalSort", "normalised"]


#: Region and zone of a node, empty without a label.
NodeLocation = tuple[str, str]


class Overhead:
    """Filter and score of the plug-in, over pods that take and leave room."""

    def __init__(
        self, state: ClusterState, arguments: Mapping[str, Any] | None = None, reader: ConfigReader | None = None
    ) -> None:
        instance = state.instance
        reader = reader or ConfigReader("-", "NetworkOverhead")
        self._costs_known = find_costs(instance, arguments, reader)
        self._app_groups = find_app_groups(instance, "NetworkOverhead", arguments, reader)
        self._number = state.number
        nodes = instance.nodes.values()
        self.spots = [(n.labels.get(REGION_LABEL, ""), n.labels.get(ZONE_LABEL, "")) for n in nodes]
        self._kinds = sorted(set(self.spots))
        index = {spot: number for number, spot in enumerate(self._kinds)}
        self._kind = np.array([index[spot] for spot in self.spots], dtype=np.int64)
        self._costs = [_costs_from(spot, self._costs_known or {}) for spot in self._kinds]
        self._calls: dict[tuple[Key, str], list[Dependency]] = defaultdict(list)
        for key, app_group in instance.app_groups.items():
            for dependency in app_group.dependencies:
                self._calls[key, dependency.origin].append(dependency)
        self.placed: dict[Key, dict[str, Counter[int]]] = defaultdict(lambda: defaultdict(Counter))
        #: AppGroups with a pod on a node that is not there: the plug-in cannot look at their pods at all.
        self.broken: set[Key] = set()
        for pod in _standing(instance):
            self._stand(pod)
        state.listeners.append(self._hear)

    def _stand(self, pod: Pod) -> None:
        app_group, node = self._app_group(pod), self._number.get(pod.node or "")
        if app_group is not None and node is not None:
            self.placed[app_group][pod.workload or ""][node] += 1
        elif app_group is not None:
            self.broken.add(app_group)

    def _hear(self, task: Task, node: int, sign: int) -> None:
        app_group = self._app_group(task.pod)
        if app_group is not None:
            self.placed[app_group][task.pod.workload or ""][node] += sign

    def _app_group(self, pod: Pod) -> Key | None:
        return self._app_groups.get(pod.app_group) if pod.app_group is not None else None

    def filter(self, task: Task, nodes: IntArray) -> BoolArray:
        """Where not more is violated than satisfied."""
        if self._app_group(task.pod) in self.broken and self._own(task):
            return np.zeros(len(nodes), dtype=bool)
        satisfied, violated, _ = self.tally(task, nodes)
        return violated <= satisfied

    def score(self, task: Task, nodes: IntArray) -> FloatArray:
        """Sum of the costs of all calls to placed pods."""
        return self.tally(task, nodes)[2].astype(np.float64)

    def tally(self, task: Task, nodes: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Satisfied, violated and cost, shape (nodes,); zeros without AppGroup, own dependency or placed callee."""
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
        return satisfied[nodes], violated[nodes], cost[nodes]

    def _own(self, task: Task) -> Sequence[tuple[Dependency, Mapping[int, int]]]:
        app_group = self._app_group(task.pod)
        if self._costs_known is None or app_group is None or task.pod.workload is None:
            return ()
        placed = self.placed[app_group]
        return [(each, placed[each.destination]) for each in self._calls[app_group, task.pod.workload]]

    def _towards(self, dependency: Dependency, callee: int) -> IntArray:
        """Shape (kinds, 3): satisfied, violated and cost of one call."""
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
    if there == ("", ""):
        return 0, 1, UNKNOWN_COST
    if here == there:
        return 1, 0, SAME_ZONE_COST
    level = 1 if here[0] == there[0] else 0
    ends = here[level], there[level]
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
        if link == Link(REGION, spot[0], link.destination):
            regions[link.origin, link.destination] = cost
        elif link == Link(ZONE, spot[1], link.destination):
            zones[link.origin, link.destination] = cost
    return regions | zones


def _standing(instance: Instance) -> list[Pod]:
    pods = (pod for pod in instance.pods.values() if pod.app_group is not None and pod.node is not None)
    return [pod for pod in pods if pod.state.on_node]


_NAMESPACES = ("default",)
_NAME = "nt-default"
_LIST = "UserDefined"


def find_app_groups(
    instance: Instance, plugin: str, arguments: Mapping[str, Any] | None, reader: ConfigReader
) -> Mapping[Key, Key]:
    """A pod's AppGroup, as placer reads it, to the one that the plug-in finds; absent: none."""
    if arguments is None:
        return {key: key for key in instance.app_groups}
    at = f"pluginConfig[{plugin}].args.namespaces"
    namespaces = _namespaces(arguments, reader, at)
    known = instance.app_groups
    found = {key: seen for key in known if (seen := _first_of(namespaces, key.name, known)) is not None}
    waiting = {pod.app_group for pod in instance.pending}
    for key in known:
        if key in waiting and found.get(key) != key:
            told = f"{found[key]} counts" if key in found else "its pods count as pods without an AppGroup"
            reader.remark(at, f"AppGroup {key} is not looked for ({', '.join(namespaces)}): {told}")
    return found


def _first_of(namespaces: Sequence[str], name: str, known: Container[Key]) -> Key | None:
    return next((key for namespace in namespaces if (key := Key(namespace, name)) in known), None)


def find_costs(
    instance: Instance, arguments: Mapping[str, Any] | None, reader: ConfigReader
) -> Mapping[Link, int] | None:
    """None: there is no NetworkTopology."""
    network = instance.network
    if arguments is None:
        return None if network is None else network.costs
    at = "pluginConfig[NetworkOverhead].args"
    namespaces = _namespaces(arguments, reader, f"{at}.namespaces")
    name = reader.text(arguments.get("networkTopologyName"), f"{at}.networkTopologyName", _NAME)
    weights = reader.text(arguments.get("weightsName"), f"{at}.weightsName", _LIST)
    if network is None:
        return None
    key = _first_of(namespaces, name, instance.network_costs)
    if key is None:
        where = f"none of this name ({name}) in {', '.join(namespaces)}"
        reader.remark(f"{at}.networkTopologyName", f"{where}: {network.topology} is used")
        key = network.topology
    lists = instance.network_costs.get(key, {})
    if weights not in lists:
        unknown = "no cost between zones or regions is known"
        reader.remark(f"{at}.weightsName", f"NetworkTopology {key} has no list {weights}: {unknown}")
    return lists.get(weights, {})


def _namespaces(arguments: Mapping[str, Any], reader: ConfigReader, at: str) -> tuple[str, ...]:
    return reader.texts(arguments.get("namespaces"), at) or _NAMESPACES


#: What the plug-in takes for a workload that the order does not have.
_NO_PLACE = -1
#: Workloads of an order that a remark names.
_SHOWN = 16


@dataclass(frozen=True, slots=True, eq=False)
class QueuedPod:
    app_group: Key | None
    place: int
    rest: Any

    def __lt__(self, other: QueuedPod) -> bool:
        if self.app_group is not None and self.app_group == other.app_group:
            return self.place <= other.place
        return bool(self.rest < other.rest)


class TopologicalSort:
    """The queue's order; ``algorithm`` overrides the stored order and all arguments, empty: none."""

    def __init__(
        self, state: ClusterState, arguments: Mapping[str, Any] | None, reader: ConfigReader, algorithm: str = ""
    ) -> None:
        at, written = "pluginConfig[TopologicalSort].args", arguments or {}
        field = f"{at}.topologySortingAlgorithm"
        asked = reader.text(written.get("topologySortingAlgorithm"), field, "", tuple(ALGORITHMS))
        if algorithm and asked not in ("", algorithm):
            reader.remark(field, f"decides nothing: the name of the policy says {algorithm}")
        self._algorithm = algorithm or asked
        self._roots = reader.texts(written.get("roots"), f"{at}.roots")
        self._found = find_app_groups(state.instance, "TopologicalSort", arguments, reader)
        self._places = {key: self._order(app_group) for key, app_group in state.instance.app_groups.items()}
        waiting = {self._found.get(pod.app_group) for pod in state.instance.pending if pod.app_group is not None}
        for key, app_group in state.instance.app_groups.items():
            if key in waiting:
                self._tell_chance(app_group, reader)

    def __call__(self, task: Task) -> QueuedPod:
        """Key of a pod."""
        app_group = self._found.get(task.pod.app_group) if task.pod.app_group is not None else None
        order = self._places.get(app_group, {}) if app_group is not None else {}
        return QueuedPod(app_group, order.get(task.pod.workload or "", _NO_PLACE), priority_sort(task))

    def _sort(self, app_group: AppGroup) -> str | None:
        """None: its order is stored."""
        if not self._algorithm and not self._roots and app_group.order:
            return None
        written = self._algorithm or app_group.algorithm
        return written if written in ALGORITHMS else DEFAULT_ALGORITHM

    def _order(self, app_group: AppGroup) -> Mapping[str, int]:
        algorithm = self._sort(app_group)
        return app_group.order if algorithm is None else places(app_group, algorithm, self._roots)

    def _tell_chance(self, app_group: AppGroup, reader: ConfigReader) -> None:
        algorithm, order = self._sort(app_group), self._places[app_group.key]
        if algorithm is None or self._roots or not _by_chance(app_group, algorithm):
            return
        names = sorted(order, key=order.__getitem__)
        more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
        reader.remark(
            f"AppGroup {app_group.key}",
            f"{algorithm} takes the workloads in the random order of a Go map, so a published order is one of many. "
            f"Here it is that of the spec, which gives {' '.join(names[:_SHOWN])}{more}. "
            "status.topologyOrder, or roots among the arguments of TopologicalSort, gives another one",
        )


def _by_chance(app_group: AppGroup, algorithm: str) -> bool:
    """Tarjan's may be any order in which callers come before those they call, so it is certain where there is only one;
    Kahn's depends on the order of the workloads that none calls.
    """
    calls = {(each.origin, each.destination) for each in app_group.dependencies}
    if "Tarjan" not in algorithm:
        return len({origin for origin, _ in calls} - {destination for _, destination in calls}) > 1
    order = sorted((found := places(app_group, "TarjanSort")), key=found.__getitem__)
    return not sort_workloads("", order, _callees(app_group)).cycle and any(
        pair not in calls for pair in pairwise(order)
    )


def _callees(app_group: AppGroup) -> dict[str, list[str]]:
    calls: dict[str, list[str]] = defaultdict(list)
    for dependency in app_group.dependencies:
        calls[dependency.origin].append(dependency.destination)
    return calls


def places(app_group: AppGroup, algorithm: str, roots: Sequence[str] = ()) -> dict[str, int]:
    """With circular calls it is the place in the object. ``roots`` are taken first where the algorithm looks for a
    beginning.
    """
    calls = _callees(app_group)
    tied = {name for origin, called in calls.items() for name in (origin, *called)}
    listed = [name for name in app_group.workloads if name in tied]
    order = sort_workloads(algorithm, listed, calls, [name for name in roots if name in tied])
    if order.cycle:
        return {name: place for place, name in enumerate(app_group.workloads, 1)}
    return order.indices
