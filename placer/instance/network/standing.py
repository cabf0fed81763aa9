"""What bound pods break of C8 and C9 by themselves, as object and sentence."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from placer.instance.model import Instance
from placer.instance.network.model import Dependency, Link, Network
from placer.instance.network.spread import Spread, far_and_near
from placer.instance.pod import Key

__all__ = ["broken_costs", "broken_links"]

#: AppGroup and workload to where pods of it are.
Spreads = Mapping[tuple[Key, str], Spread]


def broken_costs(instance: Instance) -> Iterator[tuple[str, str]]:
    """Dependencies whose bound pods are too far from each other; under ``majority`` callers with more far than near."""
    network, bound = instance.network, instance.bound_spreads
    if network is None:
        return
    calls: dict[tuple[Key, str], list[tuple[Dependency, Spread]]] = defaultdict(list)
    for key, dependency in _dependencies(instance):
        caller, callee = (key, dependency.origin), (key, dependency.destination)
        if caller in bound and callee in bound:
            calls[caller].append((dependency, bound[callee]))
    for (key, workload), called in calls.items():
        callers = bound[key, workload]
        found = _mostly_far if instance.policy.network_cost == "majority" else _too_far
        for message in found(network, workload, callers, called):
            yield f"AppGroup {key}", f"C8: {message} of AppGroup {key}"


def _too_far(
    network: Network, _workload: str, callers: Spread, called: list[tuple[Dependency, Spread]]
) -> Iterator[str]:
    for dependency, callees in called:
        limit = dependency.max_network_cost
        costs = [
            (network.area_cost(origin, destination), pairs)
            for origin, destination, pairs in callers.pairs(callees)
            if not network.near(origin, destination, limit)
        ]
        if costs:
            count, worst = sum(pairs for _, pairs in costs), max(cost for cost, _ in costs)
            yield f"{count} of the bound pairs cost more than {limit}, up to {worst}, in {dependency}"


def _mostly_far(
    network: Network, workload: str, callers: Spread, called: list[tuple[Dependency, Spread]]
) -> Iterator[str]:
    count = 0
    for area, pods in callers.areas.items():
        far, near = far_and_near(network, area, called)
        count += pods if far > near else 0
    if count:
        yield f"{count} of the bound pods have more callees too far than near enough, in workload {workload}"


def broken_links(instance: Instance) -> Iterator[tuple[str, str]]:
    """Links that bound and terminating pods alone use beyond their capacity."""
    network = instance.network
    if network is None:
        return
    used: Counter[Link] = Counter()
    bound, leaving, nobody = instance.bound_spreads, instance.leaving_spreads, Spread(network)
    for key, dependency in _dependencies(instance):
        ends = ((key, dependency.origin), (key, dependency.destination))
        callers, callees = (bound.get(end, nobody) + leaving.get(end, nobody) for end in ends)
        for origin, destination, pairs in callers.pairs(callees):
            link = network.link(origin, destination)
            if link is not None:
                used[link] += pairs * (dependency.min_bandwidth or 0)
    for link, amount in sorted(used.items()):
        room = network.capacity(link)
        if room is not None and amount > room:
            message = f"C9: bound pods use {amount} bit/s of the {link}, whose bandwidthCapacity is {room}"
            yield f"NetworkTopology {network.topology}", message


def _dependencies(instance: Instance) -> Iterator[tuple[Key, Dependency]]:
    for key, app_group in instance.app_groups.items():
        for dependency in app_group.dependencies:
            yield key, dependency
