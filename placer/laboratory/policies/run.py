"""One policy on one instance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from placer.errors import UsageError
from placer.instance import Instance
from placer.instance.workload_sorts import ALGORITHMS
from placer.laboratory.policies.cluster_state import ClusterState, Task
from placer.laboratory.policies.coscheduling import Coscheduling
from placer.laboratory.policies.faults import ConfigReader
from placer.laboratory.policies.kube import Order, PodByPod, filters_of, priority_sort, scores_of
from placer.laboratory.policies.loop import Scheduler, Settlement, schedule
from placer.laboratory.policies.network_overhead import Overhead, normalised
from placer.laboratory.policies.numa_match import NumaMatch
from placer.laboratory.policies.profile import Profile, read_profile
from placer.laboratory.policies.step import SchedulingCycle, Score
from placer.laboratory.policies.topological_sort import TopologicalSort
from placer.laboratory.policies.volcano import DEFAULT, DEFAULT_LABELS, Session
from placer.placement import Placement

__all__ = ["POLICIES", "PROFILES", "SORTED", "Mimicry", "mimic", "run"]

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
POLICIES = ("as-is", *PROFILES, *_VOLCANO)

#: A policy with one of the six sorts, whatever AppGroups and configuration say: ``network-overhead:TarjanSort``.
SORTED = tuple(f"network-overhead:{name}" for name in ALGORITHMS)


@dataclass(frozen=True, slots=True)
class Mimicry:
    """What a policy binds.

    Parameters
    ----------
    placement
        Pods to nodes in the order in which they are bound. It may break rules of ours.
    notes
        What its configuration says and is not mimicked, or is read in one of several ways, each with its field.
    """

    placement: Placement
    notes: tuple[str, ...] = ()


def run(
    instance: Instance, policy_name: str, *, seed: int = 0, arguments: Mapping[str, Any] | None = None
) -> Placement:
    """Place pods as another scheduler would: the placement of :func:`mimic`."""
    return mimic(instance, policy_name, seed=seed, arguments=arguments).placement


def mimic(
    instance: Instance, policy_name: str, *, seed: int = 0, arguments: Mapping[str, Any] | None = None
) -> Mimicry:
    """Place pods as another scheduler would, and say what of it is not mimicked.

    Parameters
    ----------
    instance
        The problem. Pods that ask for what is not modelled (C4) stay pending under every policy.
    policy_name
        One of :data:`POLICIES` or :data:`SORTED`.
    seed
        Of its random choices: ties, and where a search that looks at part of the nodes begins. The same instance, seed
        and arguments give the same placement.
    arguments
        The policy's configuration as plain values: a profile of a KubeSchedulerConfiguration, or the whole of a
        volcano-scheduler.conf (:func:`placer.laboratory.policies.config.read_config` reads both). None: the defaults.

    Returns
    -------
    Mimicry
        The placement, and notes.

    Raises
    ------
    UsageError
        There is no such policy.
    BadInstance
        The arguments are not as they should be; every fault, with object, field, found and expected.
    """
    if policy_name not in POLICIES and policy_name not in SORTED:
        raise UsageError(f"policy: found {policy_name}, expected one of {', '.join((*POLICIES, *SORTED))}")
    policy_name, _, algorithm = policy_name.partition(":")
    if policy_name == "as-is":
        return Mimicry(Placement())
    state, written = ClusterState(instance, seed), arguments
    reader = ConfigReader("arguments", policy_name)
    if policy_name in _VOLCANO:
        session = Session(state, _VOLCANO[policy_name] if written is None else written, reader)
        return Mimicry(schedule(session), tuple(reader.remarks))
    profile = read_profile(PROFILES[policy_name] if written is None else written, reader)
    scheduler: Scheduler[Task | Settlement] = pod_by_pod(state, profile, reader, algorithm)
    reader.raise_any()
    return Mimicry(schedule(scheduler), tuple(reader.remarks))


def pod_by_pod(state: ClusterState, profile: Profile, reader: ConfigReader, algorithm: str = "") -> PodByPod:
    """kube-scheduler with the plug-ins of a profile.

    Parameters
    ----------
    state
        What is where.
    profile
        The plug-ins.
    reader
        Takes the faults of their arguments, and remarks.
    algorithm
        The one of the six sorts that TopologicalSort goes by; empty: as its arguments or the AppGroups say.
    """
    filters, scores = filters_of(profile, state, reader), scores_of(profile, state, reader)
    if "NetworkOverhead" in profile.filters or "NetworkOverhead" in profile.scores:
        overhead = Overhead(state, profile.arguments.get("NetworkOverhead"), reader)
        if "NetworkOverhead" in profile.filters:
            filters.append(overhead.filter)
        if "NetworkOverhead" in profile.scores:
            scores.append(Score("NetworkOverhead", profile.scores["NetworkOverhead"], overhead.cost, normalised))
    name = "NodeResourceTopologyMatch"
    if name in profile.plugins:
        match = NumaMatch(state, profile.arguments.get(name, {}), reader)
        if name in profile.filters:
            filters.append(match.filter)
        if name in profile.scores:
            scores.append(Score(name, profile.scores[name], match.score))
    gang = None
    if "Coscheduling" in profile.plugins:
        gang = Coscheduling(state, profile.arguments.get("Coscheduling", {}), reader)
    orders: dict[str, Order] = {"PrioritySort": priority_sort}
    if gang is not None:
        orders["Coscheduling"] = gang.order
    if profile.queue_sort == "TopologicalSort":
        arguments = profile.arguments.get("TopologicalSort")
        orders["TopologicalSort"] = TopologicalSort(state, arguments, reader, algorithm)
    step = SchedulingCycle(state, filters, scores, profile.percentage)
    return PodByPod(state, step, orders[profile.queue_sort], gang if "Coscheduling" in profile.permit else None)
