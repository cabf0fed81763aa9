"""A profile of kube-scheduler: which plug-ins, with which weights and arguments.

The default plug-ins are those of upstream; a profile adds and takes away, at ``multiPoint`` or at one extension point.
What it says and the policies do not mimic (plug-ins of others, preferences, arguments) is remarked, never dropped.

Source: Kubernetes ``pkg/scheduler/apis/config/v1/default_plugins.go``, ``pkg/scheduler/framework/runtime/framework.go``
(``expandMultiPointPlugins``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from placer.laboratory.policies.faults import ConfigReader

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
#: Every plug-in whose presence is understood; what the others do is not known here.
KNOWN = frozenset(DEFAULT_WEIGHTS) | _MODELLED
#: Names under which plug-ins are written that have another one: KEP-260 calls the score so.
_ALIASES: Mapping[str, str] = {"BalancedAllocation": "NodeResourcesBalancedAllocation"}
#: Filters that are one row per pod here (C3), so that none of them can be off alone.
_ALWAYS_ON = ("NodeUnschedulable", "TaintToleration", "NodeAffinity")
#: Filters of what placer does not model, or does not let a scheduler decide: pods that ask for it are not placed (C4).
_REFUSED = (
    *("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "DynamicResources"),
    *("PodTopologySpread", "InterPodAffinity"),
)
#: Plug-ins that score by preferences, which score every node alike here.
_PREFERENCES = ("TaintToleration", "NodeAffinity", "PodTopologySpread", "InterPodAffinity", "ImageLocality")
#: Keys of a profile that are read; ``profiles`` are others of the file for the same policy, ``read_config`` names them.
_KEYS = ("schedulerName", "plugins", "pluginConfig", "percentageOfNodesToScore", "profiles")

_NO_TIME = "no time passes in one snapshot"
_NO_EVICTION = "nothing is evicted"
#: Plug-in to the arguments of it that decide here; each is read where its plug-in is.
_HONOURED: Mapping[str, tuple[str, ...]] = {
    "NodeResourcesFit": ("scoringStrategy", "ignoredResources", "ignoredResourceGroups"),
    "NodeResourcesBalancedAllocation": ("resources",),
    "NodeAffinity": ("addedAffinity",),
    "NetworkOverhead": ("namespaces", "weightsName", "networkTopologyName"),
    "TopologicalSort": ("namespaces", "topologySortingAlgorithm", "roots"),
    "NodeResourceTopologyMatch": ("scoringStrategy", "cacheResyncPeriodSeconds", "discardReservedNodes"),
    "Coscheduling": ("podGroupRejectPercentage",),
}
#: Plug-in and argument to why it decides nothing here.
_REASONS: Mapping[str, Mapping[str, str]] = {
    "NodeResourceTopologyMatch": {
        "cache": "nothing is read anew in one snapshot",
        "preemptionMode": _NO_EVICTION,
    },
    "Coscheduling": dict.fromkeys(
        ("permitWaitingTimeSeconds", "podGroupBackoffSeconds", "deniedPGExpirationTimeSeconds"), _NO_TIME
    ),
    "DefaultPreemption": dict.fromkeys(
        ("minCandidateNodesPercentage", "minCandidateNodesAbsolute"),
        _NO_EVICTION,
    ),
    "InterPodAffinity": dict.fromkeys(
        ("hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"), "preferences score every node alike"
    ),
    "VolumeBinding": {"bindTimeoutSeconds": _NO_TIME},
    "DynamicResources": {"filterTimeout": _NO_TIME},
}


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


def read_profile(written: Mapping[str, Any], reader: ConfigReader, at: str = "") -> Profile:
    """Read one entry of ``profiles``.

    Parameters
    ----------
    written
        Plain values, as in a KubeSchedulerConfiguration.
    reader
        Takes the faults, and remarks of what is not mimicked.
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
    percentage = reader.integer(written.get("percentageOfNodesToScore"), f"{at}percentageOfNodesToScore", 0, 0, 100)
    profile = Profile(
        queue_sort=_queue_sort(list(points["queueSort"]), sets, reader, f"{at}plugins.queueSort"),
        filters=frozenset(points["filter"]),
        scores={name: weight or 1 for name, weight in points["score"].items()},
        permit=frozenset(points["permit"]),
        arguments=dict(_arguments(written.get("pluginConfig"), reader, f"{at}pluginConfig")),
        percentage=percentage,
    )
    reader.rest(written, at, _KEYS)
    others = reader.items(written.get("profiles"), f"{at}profiles")
    if others:
        reader.remark(f"{at}profiles", f"{', '.join(map(str, others))} not mimicked: one profile for each policy")
    _remark_filters(profile, sets, reader, f"{at}plugins.filter")
    _remark_scores(sets, reader, f"{at}plugins")
    _remark_arguments(profile, reader, f"{at}pluginConfig")
    return profile


def _queue_sort(sorts: list[str], sets: Mapping[str, _Set], reader: ConfigReader, at: str) -> str:
    """The plug-in that orders the queue; where only one that is not known can, PrioritySort stands for it."""
    unknown = [name for point in ("queueSort", "multiPoint") if point in sets for name in sets[point].unknown]
    if not sorts and unknown:
        reader.remark(at, f"PrioritySort orders the queue in place of {', '.join(unknown)}")
    elif len(sorts) != 1:
        reader.note(at, ", ".join(sorts) or "none", "exactly one queue sort plug-in")
    return sorts[0] if sorts else "PrioritySort"


def _remark_filters(profile: Profile, sets: Mapping[str, _Set], reader: ConfigReader, at: str) -> None:
    """Say which filters stay that a profile takes away."""
    stay = [name for name in _ALWAYS_ON if name not in profile.filters]
    if stay:
        reader.remark(at, f"{', '.join(stay)} kept: taints, cordons and affinity are one filter here")
    off = set[str]().union(*(sets[point].disabled for point in ("multiPoint", "filter") if point in sets))
    refused = [name for name in _REFUSED if name in off]
    if refused:
        reader.remark(at, f"{', '.join(refused)} off or on: pods that ask for it stay pending")


def _remark_scores(sets: Mapping[str, _Set], reader: ConfigReader, at: str) -> None:
    """Say which plug-ins with a weight have no score here."""
    for point in ("multiPoint", "score"):
        enabled = sets[point].enabled if point in sets else {}
        names = [name for name in _PREFERENCES if enabled.get(name)]
        if names:
            reader.remark(
                f"{at}.{point}", f"scores of {', '.join(names)} not mimicked: preferences score every node alike"
            )


def _remark_arguments(profile: Profile, reader: ConfigReader, at: str) -> None:
    """Say which arguments decide nothing here."""
    for name, arguments in profile.arguments.items():
        place = f"{at}[{name}].args"
        if arguments and name in _HONOURED and name not in profile.plugins:
            reader.remark(place, f"decide nothing: the plug-in {name} is not on")
        else:
            reader.rest(arguments, f"{place}.", ("apiVersion", "kind", *_HONOURED.get(name, ())), _REASONS.get(name))


class _Set:
    """``enabled`` and ``disabled`` of one extension point."""

    def __init__(self, written: object, reader: ConfigReader, at: str) -> None:
        both = reader.mapping(written, at)
        enabled = dict(_named(both.get("enabled"), reader, f"{at}.enabled"))
        self.enabled = {name: weight for name, weight in enabled.items() if name in KNOWN}
        self.unknown = [name for name in enabled if name not in KNOWN]
        self.disabled = {name for name, _ in _named(both.get("disabled"), reader, f"{at}.disabled")}
        for name in self.unknown:
            reader.remark(f"{at}.enabled", f"the plug-in {name} is not mimicked")

    def drops(self, name: str) -> bool:
        return name in self.disabled


def _named(written: object, reader: ConfigReader, at: str) -> Iterator[tuple[str, int]]:
    """Plug-ins of a list with their weights."""
    for index, entry in enumerate(reader.items(written, at)):
        each = reader.mapping(entry, f"{at}[{index}]")
        name = _name(each, reader, f"{at}[{index}]")
        if name:
            yield name, reader.integer(each.get("weight"), f"{at}[{index}].weight", 0)


def _name(written: Mapping[str, Any], reader: ConfigReader, at: str) -> str:
    """The name of a plug-in; empty with a fault where there is none."""
    name = reader.text(written.get("name"), f"{at}.name")
    if not name and isinstance(written.get("name"), str | None):
        reader.fault(f"{at}.name", None, "the name of a plug-in")
    if name in _ALIASES:
        reader.remark(f"{at}.name", f"{name} is read as {_ALIASES[name]}")
    return _ALIASES.get(name, name)


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


def _arguments(written: object, reader: ConfigReader, at: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for index, entry in enumerate(reader.items(written, at)):
        each = reader.mapping(entry, f"{at}[{index}]")
        name = _name(each, reader, f"{at}[{index}]")
        arguments = reader.mapping(each.get("args"), f"{at}[{index}].args")
        if name and name not in KNOWN:
            reader.remark(f"{at}[{name}]", "the plug-in is not mimicked")
        elif name:
            yield name, arguments
