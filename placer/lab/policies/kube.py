"""kube-scheduler: pod after pod, by priority and age; filters and scores of its own plug-ins, as a profile has them.

Preferences score every node alike: an instance has none of them, and says so (``PreferenceIgnored``).

Source: Kubernetes ``pkg/scheduler``, plug-ins ``queuesort``, ``noderesources``, ``tainttoleration``, ``nodeaffinity``,
``nodeunschedulable``, ``nodeports``; ``apis/config/v1/default_plugins.go``, ``framework/runtime/framework.go``
(``expandMultiPointPlugins``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any

import numpy as np

from placer.base.text import found_like
from placer.kube.base import NodeSelector
from placer.kube.manifests.faults import wrongs
from placer.kube.reader import Misfit, SchemaReader
from placer.lab.policies.faults import ConfigReader
from placer.lab.policies.framework import (
    ClusterState,
    Filter,
    FloatArray,
    IntArray,
    SchedulingCycle,
    Score,
    Settlement,
    Task,
    eligible,
)
from placer.lab.policies.neighbourhood import neighbour_filters
from placer.lab.policies.resources import balanced, least_allocated, most_allocated, scorer, to_capacity_ratio
from placer.problem import Term
from placer.problem.eligibility import node_terms

__all__ = ["KNOWN", "GangPlugin", "Order", "PodByPod", "Profile", "filters_of", "read_profile", "scores_of"]


#: Anything that knows which of two is first.
Order = Callable[[Task], Any]
_CPU_AND_MEMORY = {"cpu": 1, "memory": 1}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")


class GangPlugin:
    """The gang rule of a scheduler that tries pod after pod; in this base every pod is for itself."""

    def admits(self, _task: Task) -> bool:
        """Whether a pod is tried at all (PreFilter)."""
        return True

    def placed(self, task: Task) -> Settlement:
        """A pod found a node: who is bound (Permit)."""
        return Settlement(bind=(task,))

    def failed(self, _task: Task) -> Settlement:
        """A pod found none: who gives room back (PostFilter)."""
        return Settlement()

    def timed_out(self) -> Settlement | None:
        """The queue is empty: the first group that waits gives up; None: no group waits."""
        return None


class PodByPod:
    """The queue of kube-scheduler and one try per pod, the smallest key of ``order`` first.

    Once the queue is empty, groups that wait give up one after another, and pods that failed are tried again, until two
    rounds in a row bind no pod.
    """

    def __init__(
        self,
        state: ClusterState,
        step: SchedulingCycle,
        order: Order,
        gang: GangPlugin | None = None,
        post_filter: Callable[[Task], int | None] = lambda _: None,
    ) -> None:
        self.state = state
        self.post_filter = post_filter
        self.step = step
        self.order = order
        self.gang = gang or GangPlugin()
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
            if self._found is None:
                self._found = self.post_filter(unit)
            if self._found is not None:
                self.state.assume(unit, self._found)

    def settle(self, unit: Task | Settlement) -> Settlement:
        """Ask the gang rule; pods that give room back are tried again once the queue is empty."""
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


def filters_of(profile: Profile, state: ClusterState, reader: ConfigReader) -> list[Filter]:
    """Filters of upstream's own plug-ins that a profile has on.

    Taints, cordons and affinity are one row per pod (C3), which no profile can leave out in part.
    """
    found: list[Filter] = [eligible]
    if "NodeAffinity" in profile.filters:
        found += _added_affinity(state, profile.arguments.get("NodeAffinity", {}), reader)
    if "NodePorts" in profile.filters:
        found.append(state.ports_free)
    if "NodeResourcesFit" in profile.filters:
        found.append(_room(state, profile.arguments.get("NodeResourcesFit", {}), reader))
    return found + neighbour_filters(state, profile.filters)


def _added_affinity(state: ClusterState, arguments: Mapping[str, Any], reader: ConfigReader) -> list[Filter]:
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
    terms: tuple[Term, ...] = ()
    try:
        terms = node_terms(SchemaReader[NodeSelector](NodeSelector).read(json.dumps(added[_REQUIRED]).encode()))
    except Misfit as misfit:
        for inside, found, expected in wrongs(misfit):
            reader.note(f"{at}.{_REQUIRED}{inside and '.'}{inside}", found, expected)
    row = np.array([any(term.matches(node) for term in terms) for node in state.instance.nodes.values()], dtype=bool)
    return [lambda _task, nodes: row[nodes]]


def _room(state: ClusterState, arguments: Mapping[str, Any], reader: ConfigReader) -> Filter:
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
        return scorer(state, weights, partial(to_capacity_ratio, shape=shape), least=True)
    return scorer(state, weights, least_allocated if kind == "LeastAllocated" else most_allocated, least=True)


def _balance(state: ClusterState, weights: Mapping[str, int]) -> Callable[[Task, IntArray], FloatArray]:
    # The plug-in skips pods that request none of its resources.
    score = scorer(state, weights, balanced, least=False)
    return lambda task, nodes: (
        score(task, nodes) if any(task.pod.requests[name] for name in weights) else np.zeros(len(nodes))
    )


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
        "PodTopologySpread",
        "InterPodAffinity",
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
_REFUSED = (*("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "DynamicResources"),)
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
        "cache": "nothing is read again in one snapshot",
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

    ``permit`` are plug-ins that may make a pod wait; ``percentage`` 0: by the number of nodes.
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
    """Read one entry of ``profiles``; ``at`` is its path, and ends with a dot where it is not empty."""
    sets = _sets(reader.mapping(written.get("plugins"), f"{at}plugins"), reader, f"{at}plugins")
    everywhere = sets.get("multiPoint", _Set(None, reader, ""))
    multi = everywhere.kept(DEFAULT_WEIGHTS) | everywhere.enabled
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


def _sets(plugins: Mapping[str, Any], reader: ConfigReader, at: str) -> dict[str, _Set]:
    known = ("multiPoint", *_POINTS, *_OTHER_POINTS)
    for point in plugins:
        if point not in known:
            reader.fault(at, point, f"an extension point{found_like(point, known)}")
    return {point: _Set(plugins.get(point), reader, f"{at}.{point}") for point in plugins}


def _queue_sort(sorts: list[str], sets: Mapping[str, _Set], reader: ConfigReader, at: str) -> str:
    """Where only one that is not known orders the queue, PrioritySort stands for it."""
    unknown = [name for point in ("queueSort", "multiPoint") if point in sets for name in sets[point].unknown]
    if not sorts and unknown:
        reader.remark(at, f"PrioritySort orders the queue in place of {', '.join(unknown)}")
    elif len(sorts) != 1:
        reader.note(at, ", ".join(sorts) or "none", "exactly one queue sort plug-in")
    return sorts[0] if sorts else "PrioritySort"


def _remark_filters(profile: Profile, sets: Mapping[str, _Set], reader: ConfigReader, at: str) -> None:
    stay = [name for name in _ALWAYS_ON if name not in profile.filters]
    if stay:
        reader.remark(at, f"{', '.join(stay)} kept: taints, cordons and affinity are one filter here")
    off = set[str]().union(*(sets[point].disabled for point in ("multiPoint", "filter") if point in sets))
    refused = [name for name in _REFUSED if name in off]
    if refused:
        reader.remark(at, f"{', '.join(refused)} off or on: pods that ask for it remain pending")


def _remark_scores(sets: Mapping[str, _Set], reader: ConfigReader, at: str) -> None:
    for point in ("multiPoint", "score"):
        enabled = sets[point].enabled if point in sets else {}
        names = [name for name in _PREFERENCES if enabled.get(name)]
        if names:
            reader.remark(
                f"{at}.{point}", f"scores of {', '.join(names)} not mimicked: preferences score every node alike"
            )


def _remark_arguments(profile: Profile, reader: ConfigReader, at: str) -> None:
    for name, arguments in profile.arguments.items():
        place = f"{at}[{name}].args"
        if arguments and name in _HONOURED and name not in profile.plugins:
            reader.remark(place, f"decide nothing: the plug-in {name} is not on")
        else:
            reader.rest(arguments, f"{place}.", ("apiVersion", "kind", *_HONOURED.get(name, ())), _REASONS.get(name))


class _Set:
    def __init__(self, written: object, reader: ConfigReader, at: str) -> None:
        both = reader.mapping(written, at)
        enabled = dict(_named(both.get("enabled"), reader, f"{at}.enabled"))
        self.enabled = {name: weight for name, weight in enabled.items() if name in KNOWN}
        self.unknown = [name for name in enabled if name not in KNOWN]
        self.disabled = {name for name, _ in _named(both.get("disabled"), reader, f"{at}.disabled")}
        for name in self.unknown:
            reader.remark(f"{at}.enabled", f"the plug-in {name} is not mimicked{found_like(name, KNOWN)}")

    def kept(self, weights: Mapping[str, int]) -> dict[str, int]:
        return {} if "*" in self.disabled else {n: w for n, w in weights.items() if n not in self.disabled}


def _named(written: object, reader: ConfigReader, at: str) -> Iterator[tuple[str, int]]:
    for index, entry in enumerate(reader.items(written, at)):
        each = reader.mapping(entry, f"{at}[{index}]")
        name = _name(each, reader, f"{at}[{index}]")
        if name:
            yield name, reader.integer(each.get("weight"), f"{at}[{index}].weight", 0)


def _name(written: Mapping[str, Any], reader: ConfigReader, at: str) -> str:
    name = reader.text(written.get("name"), f"{at}.name")
    if not name and isinstance(written.get("name"), str | None):
        reader.fault(f"{at}.name", None, "the name of a plug-in")
    if name in _ALIASES:
        reader.remark(f"{at}.name", f"{name} is read as {_ALIASES[name]}")
    return _ALIASES.get(name, name)


def _at(point: str, multi: Mapping[str, int], own: _Set | None) -> dict[str, int]:
    found = multi if own is None else own.kept(multi) | own.enabled
    return {name: weight for name, weight in found.items() if name in _POINTS[point]}


def _arguments(written: object, reader: ConfigReader, at: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for index, entry in enumerate(reader.items(written, at)):
        each = reader.mapping(entry, f"{at}[{index}]")
        name = _name(each, reader, f"{at}[{index}]")
        arguments = reader.mapping(each.get("args"), f"{at}[{index}].args")
        if name and name not in KNOWN:
            reader.remark(f"{at}[{name}]", f"the plug-in is not mimicked{found_like(name, KNOWN)}")
        elif name:
            yield name, arguments
