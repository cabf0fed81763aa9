"""A profile of kube-scheduler: which plug-ins, with which weights and arguments.

The default plug-ins are those of upstream; a profile adds and takes away, at ``multiPoint`` or at one extension point.

Source: Kubernetes ``pkg/scheduler/apis/config/v1/default_plugins.go``, ``pkg/scheduler/framework/runtime/framework.go``
(``expandMultiPointPlugins``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from placer.policies.faults import Reader

__all__ = ["DEFAULT_WEIGHTS", "KNOWN", "Profile", "read_profile"]

#: Plug-ins of upstream that are on by default, with their weights (0: no score).
DEFAULT_WEIGHTS: Mapping[str, int] = {
    "PrioritySort": 0,
    "NodeUnschedulable": 0,
    "NodeName": 0,
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodePorts": 0,
    "NodeResourcesFit": 1,
    "VolumeRestrictions": 0,
    "NodeVolumeLimits": 0,
    "VolumeBinding": 0,
    "VolumeZone": 0,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DefaultPreemption": 0,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "DefaultBinder": 0,
    "SchedulingGates": 0,
    "DynamicResources": 0,
}
#: Extension points that decide here, and who of the modelled plug-ins has them.
_POINTS: Mapping[str, tuple[str, ...]] = {
    "queueSort": ("PrioritySort", "Coscheduling", "TopologicalSort"),
    "filter": (
        "NodeUnschedulable",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "NetworkOverhead",
        "NodeResourceTopologyMatch",
    ),
    "score": (
        "NodeResourcesFit",
        "NodeResourcesBalancedAllocation",
        "NetworkOverhead",
        "NodeResourceTopologyMatch",
    ),
    "permit": ("Coscheduling",),
}
#: Extension points at which nothing here is decided: what stands there is taken as it is.
_OTHER_POINTS = ("preEnqueue", "preFilter", "postFilter", "preScore", "reserve", "preBind", "bind", "postBind")
_MODELLED = frozenset(name for names in _POINTS.values() for name in names)
#: Every plug-in whose presence is understood; of the others nobody here could say what they do.
KNOWN = frozenset(DEFAULT_WEIGHTS) | _MODELLED


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile, defaults filled in.

    Parameters
    ----------
    queue_sort
        The plug-in that orders the queue.
    filters
        Plug-ins that filter.
    scores
        Plug-ins that score, with their weights.
    permit
        Plug-ins that may make a pod wait.
    arguments
        Plug-in to its ``pluginConfig`` arguments.
    percentage
        ``percentageOfNodesToScore``, 0: by the number of nodes.
    """

    queue_sort: str
    filters: frozenset[str]
    scores: Mapping[str, int]
    permit: frozenset[str]
    arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    percentage: int = 0

    @property
    def plugins(self) -> frozenset[str]:
        """Every plug-in that decides something."""
        return self.filters | self.permit | {self.queue_sort, *self.scores}


def read_profile(written: Mapping[str, Any], reader: Reader, at: str = "") -> Profile:
    """Read one entry of ``profiles``.

    Parameters
    ----------
    written
        Plain values, as in a KubeSchedulerConfiguration.
    reader
        Takes the faults.
    at
        Path of the entry, for messages; ends with a dot where it is not empty.
    """
    plugins = reader.mapping(written.get("plugins"), f"{at}plugins")
    for point in plugins:
        if point != "multiPoint" and point not in _POINTS and point not in _OTHER_POINTS:
            reader.fault(f"{at}plugins", point, "an extension point")
    sets = {point: _Set(plugins.get(point), reader, f"{at}plugins.{point}") for point in plugins}
    everywhere = sets.get("multiPoint", _Set(None, reader, ""))
    multi = {} if everywhere.drops("*") else {n: w for n, w in DEFAULT_WEIGHTS.items() if not everywhere.drops(n)}
    multi |= everywhere.enabled
    points = {point: _at(point, multi, sets.get(point)) for point in _POINTS}
    sorts = list(points["queueSort"])
    if len(sorts) != 1:
        reader.note(f"{at}plugins.queueSort", ", ".join(sorts) or "none", "exactly one queue sort plug-in")
    percentage = reader.integer(written.get("percentageOfNodesToScore"), f"{at}percentageOfNodesToScore", 0, 0, 100)
    return Profile(
        queue_sort=sorts[0] if sorts else "PrioritySort",
        filters=frozenset(points["filter"]),
        scores={name: weight or 1 for name, weight in points["score"].items()},
        permit=frozenset(points["permit"]),
        arguments=dict(_arguments(written.get("pluginConfig"), reader, f"{at}pluginConfig")),
        percentage=percentage,
    )


class _Set:
    """``enabled`` and ``disabled`` of one extension point."""

    def __init__(self, written: object, reader: Reader, at: str) -> None:
        both = reader.mapping(written, at)
        self.enabled = dict(self._named(both.get("enabled"), reader, f"{at}.enabled"))
        self.disabled = {name for name, _ in self._named(both.get("disabled"), reader, f"{at}.disabled")}

    def drops(self, name: str) -> bool:
        return name in self.disabled

    @staticmethod
    def _named(written: object, reader: Reader, at: str) -> Iterator[tuple[str, int]]:
        for index, entry in enumerate(reader.items(written, at)):
            each = reader.mapping(entry, f"{at}[{index}]")
            name = reader.text(each.get("name"), f"{at}[{index}].name")
            wildcard = name == "*" and at.endswith("disabled")
            if name not in KNOWN and not wildcard:
                reader.fault(f"{at}[{index}].name", name or None, f"one of {', '.join(sorted(KNOWN))}")
            elif name:
                yield name, reader.integer(each.get("weight"), f"{at}[{index}].weight", 0)


def _at(point: str, multi: Mapping[str, int], own: _Set | None) -> dict[str, int]:
    """Plug-ins at one extension point: those of multiPoint that have it, less and more what is said for the point."""
    able = _POINTS[point]
    found = {
        name: weight
        for name, weight in multi.items()
        if name in able and not (own is not None and (own.drops("*") or own.drops(name)))
    }
    more = own.enabled if own is not None else {}
    return found | {name: weight for name, weight in more.items() if name in able}


def _arguments(written: object, reader: Reader, at: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for index, entry in enumerate(reader.items(written, at)):
        each = reader.mapping(entry, f"{at}[{index}]")
        name = reader.text(each.get("name"), f"{at}[{index}].name")
        if name not in KNOWN:
            reader.fault(f"{at}[{index}].name", name or None, f"one of {', '.join(sorted(KNOWN))}")
        elif name:
            yield name, reader.mapping(each.get("args"), f"{at}[{index}].args")
