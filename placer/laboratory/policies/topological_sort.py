"""TopologicalSort: pods of one AppGroup in the order of its workloads, all others by priority and age.

The order of the workloads is the one that the controller has stored; where it has not, the one that the AppGroup's
algorithm gives (the controller would fail to look it up where names are not selectors, and store the selectors' order).
A workload without any dependency has no place in it, and comes first. The comparison is that of the plug-in,
which is no order: of two pods with one place each is before the other, and priority counts between AppGroups only.

The controller takes the workloads in the random order of a Go map. Where the order depends on that, and none is stored,
workloads are taken in the order of the spec, and it is said. ``roots``, an argument that only this policy has, names
those that are taken first, and so gives any order that the controller could: the rows of KEP-260's table too.

Source: scheduler-plugins ``pkg/networkaware/topologicalsort/topologicalsort.go``; diktyo-io/appgroup-controller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from placer.instance import AppGroup, Key
from placer.instance.workload_sorts import ALGORITHMS, DEFAULT_ALGORITHM, sort_workloads
from placer.laboratory.policies.cluster_state import ClusterState, Task
from placer.laboratory.policies.faults import ConfigReader
from placer.laboratory.policies.kube import priority_sort
from placer.laboratory.policies.network_objects import find_app_groups

__all__ = ["QueuedPod", "TopologicalSort", "places"]

#: What the plug-in takes for a workload that the order does not have.
_NO_PLACE = -1
#: Workloads of an order that a remark names.
_SHOWN = 16


@dataclass(frozen=True, slots=True, eq=False)
class QueuedPod:
    """A pod in the queue.

    Parameters
    ----------
    app_group
        Its AppGroup; None: in none.
    place
        Of its workload in the AppGroup's order, from 1.
    rest
        Key by priority and age.
    """

    app_group: Key | None
    place: int
    rest: Any

    def __lt__(self, other: QueuedPod) -> bool:
        if self.app_group is not None and self.app_group == other.app_group:
            return self.place <= other.place
        return bool(self.rest < other.rest)


class TopologicalSort:
    """The queue's order.

    Parameters
    ----------
    state
        What is where.
    arguments
        ``namespaces`` of the plug-in; ``topologySortingAlgorithm`` and ``roots``, which it does not have, in place of
        what AppGroups say. None: none are given.
    reader
        Takes faults and remarks.
    algorithm
        One of the six sorts, for every AppGroup, in place of what is stored and of the arguments; empty: none.
    """

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
        """The algorithm that orders an AppGroup; None: its order is stored."""
        if not self._algorithm and not self._roots and app_group.order:
            return None
        written = self._algorithm or app_group.algorithm
        return written if written in ALGORITHMS else DEFAULT_ALGORITHM

    def _order(self, app_group: AppGroup) -> Mapping[str, int]:
        algorithm = self._sort(app_group)
        return app_group.order if algorithm is None else places(app_group, algorithm, self._roots)

    def _tell_chance(self, app_group: AppGroup, reader: ConfigReader) -> None:
        """Say which of several orders this is."""
        algorithm, order = self._sort(app_group), self._places[app_group.key]
        if algorithm is None or self._roots or not _by_chance(app_group, algorithm):
            return
        names = sorted(order, key=order.__getitem__)
        more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
        reader.remark(
            f"AppGroup {app_group.key}",
            f"{algorithm} takes the workloads as a Go map has them, in another order each time, so that a published "
            f"order is one of many; here in that of the spec, which gives {' '.join(names[:_SHOWN])}{more}. "
            "status.topologyOrder, or roots among the arguments of TopologicalSort, gives another one",
        )


def _by_chance(app_group: AppGroup, algorithm: str) -> bool:
    """Whether the order depends on which workload is taken first.

    Tarjan's may be any order in which callers come before those they call, so it is certain where there is only one;
    Kahn's depends on the order of the workloads that none calls.
    """
    calls = {(each.origin, each.destination) for each in app_group.dependencies}
    if "Tarjan" not in algorithm:
        return len({origin for origin, _ in calls} - {destination for _, destination in calls}) > 1
    order = sorted((found := places(app_group, "TarjanSort")), key=found.__getitem__)
    return not sort_workloads("", order, _calls(app_group)).cycle and any(pair not in calls for pair in pairwise(order))


def _calls(app_group: AppGroup) -> dict[str, list[str]]:
    calls: dict[str, list[str]] = {}
    for dependency in app_group.dependencies:
        calls.setdefault(dependency.origin, []).append(dependency.destination)
    return calls


def places(app_group: AppGroup, algorithm: str, roots: Sequence[str] = ()) -> dict[str, int]:
    """Place of each workload that has a dependency; with workloads that call in a circle the place in the object.

    ``roots`` are taken first where the algorithm looks for a workload to begin with; others among them are left out.
    """
    calls = _calls(app_group)
    tied = {name for origin, called in calls.items() for name in (origin, *called)}
    listed = [name for name in app_group.workloads if name in tied]
    order = sort_workloads(algorithm, listed, calls, [name for name in roots if name in tied])
    if order.cycle:
        return {name: place for place, name in enumerate(app_group.workloads, 1)}
    return order.indices
