"""TopologicalSort: pods of one AppGroup in the order of its workloads, all others by priority and age.

The order of the workloads is the one that the controller has stored; where it has not, the one that the AppGroup's
algorithm gives (the controller would fail to look it up where names are not selectors, and store the selectors' order).
A workload without any dependency has no place in it, and comes first. The comparison is that of the plug-in,
which is no order: of two pods with one place each is before the other, and priority counts between AppGroups only.

Source: scheduler-plugins ``pkg/networkaware/topologicalsort/topologicalsort.go``; diktyo-io/appgroup-controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from placer.instance import AppGroup, Key
from placer.instance.sorts import sort_workloads
from placer.policies.kube import priority_sort
from placer.policies.ledger import Ledger, Task

__all__ = ["Place", "TopologicalSort", "places"]

#: What the plug-in takes for a workload that the order does not have.
_NO_PLACE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Place:
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

    def __lt__(self, other: Place) -> bool:
        if self.app_group is not None and self.app_group == other.app_group:
            return self.place <= other.place
        return bool(self.rest < other.rest)


class TopologicalSort:
    """The queue's order.

    Parameters
    ----------
    ledger
        What is where.
    algorithm
        One of the six sorts, for every AppGroup, in place of what is stored; None: what each AppGroup says.
    """

    def __init__(self, ledger: Ledger, algorithm: str | None = None) -> None:
        groups = ledger.instance.app_groups.items()
        self._places = {key: _order(app_group, algorithm) for key, app_group in groups}

    def __call__(self, task: Task) -> Place:
        """Key of a pod."""
        app_group = task.pod.app_group
        order = self._places.get(app_group, {}) if app_group is not None else {}
        return Place(app_group, order.get(task.pod.workload or "", _NO_PLACE), priority_sort(task))


def _order(app_group: AppGroup, algorithm: str | None) -> Mapping[str, int]:
    if algorithm is None and app_group.order:
        return app_group.order
    return places(app_group, app_group.algorithm if algorithm is None else algorithm)


def places(app_group: AppGroup, algorithm: str) -> dict[str, int]:
    """Place of each workload that has a dependency; with workloads that call in a circle the place in the object."""
    calls: dict[str, list[str]] = {}
    for dependency in app_group.dependencies:
        calls.setdefault(dependency.origin, []).append(dependency.destination)
    tied = {name for origin, called in calls.items() for name in (origin, *called)}
    listed = [name for name in app_group.workloads if name in tied]
    order = sort_workloads(algorithm, listed, calls)
    if order.cycle:
        return {name: place for place, name in enumerate(app_group.workloads, 1)}
    return order.indices
