"""One policy on one instance, with the configuration of a cluster's own scheduler where there is one."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from placer.base.deadline import NEVER, Deadline
from placer.base.errors import PlacerError, PolicyFailed, UsageError
from placer.base.text import found_like
from placer.kube.manifests.syntax import YamlError, documents
from placer.lab.policies.coscheduling import Coscheduling
from placer.lab.policies.default_preemption import DefaultPreemption
from placer.lab.policies.faults import ConfigReader
from placer.lab.policies.framework import (
    ClusterState,
    FloatArray,
    Scheduler,
    SchedulingCycle,
    Score,
    Settlement,
    Task,
    priority_sort,
    schedule,
)
from placer.lab.policies.kube import Order, PodByPod, Profile, filters_of, read_profile, scores_of
from placer.lab.policies.network_aware import Overhead, TopologicalSort, normalised
from placer.lab.policies.numa_match import NumaMatch
from placer.lab.policies.volcano.preemption import preempt
from placer.lab.policies.volcano.session import Session
from placer.lab.policies.volcano.settings import DEFAULT, DEFAULT_LABELS, FRAGMENT, read_settings
from placer.problem import GroupKey, Instance
from placer.problem.network_objects import ALGORITHMS
from placer.problem.placement import Placement, Step

__all__ = ["POLICIES", "PREEMPTING", "SORTED", "Mimicry", "mimic", "read_config", "run"]


#: Profiles of kube-scheduler without a configuration: as the plug-ins' own samples have them. The sample of
#: NetworkOverhead takes away the filter of NodeResourcesFit with its score; here only the score, as KEP-260 says.
PROFILES: Mapping[str, Mapping[str, Any]] = {
    "kube-default": {},
    "coscheduling": {
        "plugins": {
            "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
            "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
        }
    },
    "network-overhead": {
        "plugins": {
            "multiPoint": {"enabled": [{"name": "NetworkOverhead", "weight": 5}]},
            "queueSort": {"enabled": [{"name": "TopologicalSort"}], "disabled": [{"name": "*"}]},
            "score": {"disabled": [{"name": "NodeResourcesFit"}]},
        }
    },
    "numa-match": {"plugins": {"multiPoint": {"enabled": [{"name": "NodeResourceTopologyMatch"}]}}},
}
_VOLCANO: Mapping[str, Mapping[str, Any]] = {"volcano": DEFAULT, "volcano-labels": DEFAULT_LABELS}
#: Policies that evict what runs, and the policy that each is otherwise, whose configuration it goes by.
PREEMPTING: Mapping[str, str] = {"kube-preempt": "kube-default", "volcano-preempt": "volcano"}
POLICIES = ("as-is", *PROFILES, *_VOLCANO, *PREEMPTING)

#: A policy with one of the six sorts, whatever AppGroups and configuration say: ``network-overhead:TarjanSort``.
SORTED = tuple(f"network-overhead:{name}" for name in ALGORITHMS)


@dataclass(frozen=True, slots=True)
class Mimicry:
    """The bindings of a policy, which may break our rules; not ``ended``: the deadline cut it off.

    ``outside``: groups that Volcano's action enqueue does not let in, and so does not try.
    """

    placement: Placement
    notes: tuple[str, ...] = ()
    ended: bool = True
    outside: frozenset[GroupKey] = frozenset()


def run(
    instance: Instance, policy_name: str, *, seed: int = 0, arguments: Mapping[str, Any] | None = None
) -> Placement:
    """Place pods as another scheduler would: the placement of :func:`mimic`."""
    return mimic(instance, policy_name, seed=seed, arguments=arguments).placement


def mimic(
    instance: Instance,
    policy_name: str,
    *,
    seed: int = 0,
    arguments: Mapping[str, Any] | None = None,
    deadline: Deadline = NEVER,
) -> Mimicry:
    """Place pods as another scheduler would.

    Parameters
    ----------
    policy_name
        One of :data:`POLICIES` or :data:`SORTED`.
    seed
        Of its random choices. The same instance, seed and arguments give the same placement.
    arguments
        A profile of a KubeSchedulerConfiguration, or a volcano-scheduler.conf (:func:`read_config`). None: defaults.

    Raises
    ------
    UsageError
        There is no such policy.
    BadInstance
        With every fault of the arguments.
    PolicyFailed
        The policy broke down.
    """
    try:
        return _mimic(instance, policy_name, seed, arguments, deadline)
    except PlacerError:
        raise
    except Exception as error:  # others still answer where one policy does not
        raise PolicyFailed.of(policy_name, error) from error


def _mimic(
    instance: Instance, policy_name: str, seed: int, arguments: Mapping[str, Any] | None, deadline: Deadline
) -> Mimicry:
    _check_policy(policy_name)
    policy_name, _, algorithm = policy_name.partition(":")
    if policy_name == "as-is":
        return Mimicry(Placement())
    state, written = ClusterState(instance, seed), arguments
    reader = ConfigReader("arguments", policy_name)
    evicts = policy_name in PREEMPTING
    policy_name = PREEMPTING.get(policy_name, policy_name)
    if policy_name in _VOLCANO:
        session = Session(state, _VOLCANO[policy_name] if written is None else written, reader)
        placement, ended = schedule(session, deadline)
        if evicts and ended:
            more = Placement.of(preempt(session)).bindings
            placement = _evicting(Placement((*placement.bindings, *more)), state)
        return Mimicry(placement, tuple(reader.remarks), ended, session.outside)
    profile = read_profile(PROFILES[policy_name] if written is None else written, reader)
    scheduler = pod_by_pod(state, profile, reader, algorithm)
    reader.raise_any()
    if evicts:
        scheduler.post_filter = DefaultPreemption(state, scheduler.step)
    queue: Scheduler[Task | Settlement] = scheduler
    placement, ended = schedule(queue, deadline)
    return Mimicry(_evicting(placement, state), tuple(reader.remarks), ended)


def _check_policy(name: str) -> None:
    known = (*POLICIES, *SORTED)
    if name not in known:
        is_default = name in ("kube-scheduler", "default-scheduler")
        like = "; found like it: kube-default" if is_default else found_like(name, known)
        raise UsageError(f"policy: found {name}, expected one of {', '.join(known)}{like}")


def _evicting(placement: Placement, state: ClusterState) -> Placement:
    gone = tuple(state.evicted)
    steps = (Step(gone, tuple(binding.pod for binding in placement.bindings)),) if gone else ()
    return replace(placement, evictions=gone, steps=steps)


def pod_by_pod(state: ClusterState, profile: Profile, reader: ConfigReader, algorithm: str = "") -> PodByPod:
    """The reader takes the faults of the plug-ins' arguments, and remarks; ``algorithm`` is the sort of
    TopologicalSort.
    """
    filters, scores = filters_of(profile, state, reader), scores_of(profile, state, reader)
    gang: Coscheduling | None = None
    order: Order = priority_sort

    def add(name: str, plugin: Overhead | NumaMatch, normalise: Callable[[FloatArray], FloatArray] | None) -> None:
        if name in profile.filters:
            filters.append(plugin.filter)
        if name in profile.scores:
            scores.append(Score(name, profile.scores[name], plugin.score, normalise))

    if "NetworkOverhead" in profile.plugins:
        add("NetworkOverhead", Overhead(state, profile.arguments.get("NetworkOverhead"), reader), normalised)
    name = "NodeResourceTopologyMatch"
    if name in profile.plugins:
        add(name, NumaMatch(state, profile.arguments.get(name, {}), reader), None)
    if "Coscheduling" in profile.plugins:
        gang = Coscheduling(state, profile.arguments.get("Coscheduling", {}), reader)
    if gang is not None and profile.queue_sort == "Coscheduling":
        order = gang.order
    elif profile.queue_sort == "TopologicalSort":
        order = TopologicalSort(state, profile.arguments.get("TopologicalSort"), reader, algorithm)
    step = SchedulingCycle(state, filters, scores, profile.percentage)
    return PodByPod(state, step, order, gang if "Coscheduling" in profile.permit else None)


_DEFAULT = "default-scheduler"
_KUBE = "KubeSchedulerConfiguration"
_VERSIONS = tuple(f"kubescheduler.config.k8s.io/{version}" for version in ("v1", "v1beta3", "v1beta2"))
_VOLCANO_CONF = "volcano-scheduler.conf"
#: Fields of a KubeSchedulerConfiguration that are about how its process runs, and decide no placement.
_OPERATION = (
    *("apiVersion", "kind", "parallelism", "leaderElection", "clientConnection", "delayCacheUntilActive"),
    *("healthzBindAddress", "metricsBindAddress", "enableProfiling", "enableContentionProfiling"),
    *("podInitialBackoffSeconds", "podMaxBackoffSeconds"),
)
#: Plug-in to the policy that is about it; the first that a profile has counts.
_ABOUT = {
    "NetworkOverhead": "network-overhead",
    "TopologicalSort": "network-overhead",
    "NodeResourceTopologyMatch": "numa-match",
    "Coscheduling": "coscheduling",
}


def read_config(text: str | bytes, file: str = "-", *, scheduler_name: str | None = None) -> dict[str, dict[str, Any]]:
    """Read the configuration of a scheduler, YAML or JSON, or the ConfigMap of one.

    Parameters
    ----------
    scheduler_name
        Only the profile of this name; None: every profile.

    Returns
    -------
    dict
        Policy to its arguments, as :func:`mimic` takes them. Of several profiles for one policy it is that of the
        default scheduler, else the first, with the names of the others.

    Raises
    ------
    BadInstance
        Every fault. Sound parts that are not mimicked are remarked by the policy.
    """
    written = _parsed(text, file)
    if isinstance(written, Mapping) and written.get("kind") == "ConfigMap":
        written = _parsed(_content(written, ConfigReader(file, "ConfigMap")), file)
    if isinstance(written, Mapping) and ("profiles" in written or written.get("kind") == _KUBE):
        return _kube(written, ConfigReader(file, _KUBE), scheduler_name)
    reader = ConfigReader(file, _VOLCANO_CONF)
    if not isinstance(written, Mapping):
        # The form in which plug-ins are documented: a tier by itself, to be put among those that are there.
        written = {FRAGMENT: written}
    elif "tiers" not in written:
        reader.note("", ", ".join(written) or "nothing", f"a {_KUBE}, or a {_VOLCANO_CONF} with tiers")
    reader.raise_any()
    labels = read_settings(written, reader).keys is not None
    reader.raise_any()
    return {"volcano-labels" if labels else "volcano": dict(written)}


def _content(config_map: Mapping[str, Any], reader: ConfigReader) -> str:
    data = reader.mapping(config_map.get("data"), "data")
    key = _VOLCANO_CONF if _VOLCANO_CONF in data else next(iter(data), "")
    if not data or (len(data) > 1 and key != _VOLCANO_CONF):
        reader.note("data", ", ".join(data) or "nothing", f"one configuration, or {_VOLCANO_CONF}")
    text = reader.text(data.get(key), f"data[{key}]")
    reader.raise_any()
    return text


def _parsed(text: str | bytes, file: str) -> Mapping[str, Any] | list[Any]:
    reader = ConfigReader(file, "")
    values: list[Any] = []
    try:
        found = documents(text.encode() if isinstance(text, str) else text)
        values = [json.loads("".join(document.pieces)) for document in found if document.pieces]
    except YamlError as error:
        reader.note(error.place, error.found, error.expected)
    else:
        if len(values) != 1:
            reader.note("", f"{len(values)} documents", "one")
        elif not isinstance(values[0], Mapping) and not _is_tiers(values[0]):
            reader.fault("", values[0], "a mapping")
    reader.raise_any()
    parsed: Mapping[str, Any] | list[Any] = values[0]
    return parsed


def _is_tiers(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(tier, Mapping) for tier in value)


def _kube(written: Mapping[str, Any], reader: ConfigReader, scheduler_name: str | None) -> dict[str, dict[str, Any]]:
    if written.get("apiVersion", _VERSIONS[0]) not in _VERSIONS:
        reader.fault("apiVersion", written["apiVersion"], f"one of {', '.join(_VERSIONS)}")
    if written.get("kind", _KUBE) != _KUBE:
        reader.fault("kind", written["kind"], _KUBE)
    common = {key: value for key, value in written.items() if key not in (*_OPERATION, "profiles")}
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    names: list[str] = []
    for index, entry in enumerate(reader.items(written.get("profiles"), "profiles") or ({},)):
        at = f"profiles[{index}]"
        profile = reader.mapping(entry, at)
        names.append(reader.text(profile.get("schedulerName"), f"{at}.schedulerName", _DEFAULT))
        if scheduler_name in (None, names[-1]):
            whole = {**common, **profile, "schedulerName": names[-1]}
            found[_policy(_checked(whole, reader, at))].append(whole)
    if scheduler_name not in (None, *names):
        reader.note("profiles", ", ".join(names), f"a profile with schedulerName {scheduler_name}")
    reader.raise_any()
    return {policy: _chosen(profiles) for policy, profiles in found.items()}


def _chosen(profiles: list[dict[str, Any]]) -> dict[str, Any]:
    default = (each for each in profiles if each["schedulerName"] == _DEFAULT)
    chosen = next(default, profiles[0])
    others = [each["schedulerName"] for each in profiles if each is not chosen]
    return {**chosen, "profiles": others} if others else chosen


def _checked(profile: Mapping[str, Any], reader: ConfigReader, at: str) -> Profile:
    before = len(reader.faults)
    read = read_profile(profile, reader, f"{at}.")
    if len(reader.faults) == before:
        inner = ConfigReader(reader.file, reader.object)
        pod_by_pod(ClusterState(Instance({}, {}, {}), seed=0), read, inner)
        reader.take(inner, f"{at}.")
    return read


def _policy(profile: Profile) -> str:
    return next((policy for name, policy in _ABOUT.items() if name in profile.plugins), "kube-default")
