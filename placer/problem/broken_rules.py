"""Rules that bound pods break by themselves: findings, never an invalid instance (models/reading.md, "bound pods")."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final, TypeVar

from placer.base.quantity import format_amount
from placer.problem.communication import Dependency, Link, Network, Spread, far_and_near
from placer.problem.findings import Findings, counted
from placer.problem.instance import HostPort, Instance, NetworkTopology, Pod, PodState
from placer.problem.keys import Key, label_word
from placer.problem.neighbours import DomainUnit, Neighbours
from placer.problem.pod_index import CountedDomains, PodIndex, by_domain, domain_of, pairs_apart


def _broken_costs(instance: Instance) -> Iterator[tuple[str, str]]:
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


def _broken_links(instance: Instance) -> Iterator[tuple[str, str]]:
    network = instance.network
    if network is None:
        return
    used: Counter[Link] = Counter()
    bound, leaving, no_pods = instance.bound_spreads, instance.leaving_spreads, Spread(network)
    for key, dependency in _dependencies(instance):
        ends = ((key, dependency.origin), (key, dependency.destination))
        callers, callees = (bound.get(end, no_pods) + leaving.get(end, no_pods) for end in ends)
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


CODE: Final = "BoundPodsViolate"
#: Unit to the domains of its bound pods; None: none.
UnitPlaces = dict[DomainUnit, set[str | None]]


def note_broken_rules(instance: Instance, findings: Findings) -> None:
    """Note the rules that bound and terminating pods break by themselves."""
    standing: dict[str, list[Pod]] = defaultdict(list)
    for pod in instance.pods.values():
        if pod.node is not None and pod.state is not PodState.NOMINATED:
            standing[pod.node].append(pod)
    _capacity(instance, standing, findings)
    _host_ports(standing, findings)
    _tier_limits(instance, findings)
    places = _places(instance)
    _one_domain(places, findings)
    _exclusive(places, findings)
    _beside_exclusive_jobs(instance, findings)
    looks = (
        ("C8", _broken_costs),
        ("C9", _broken_links),
        ("C12", broken_affinity),
        ("C13", broken_anti_affinity),
        ("C14", broken_spread),
    )
    for rule, broken in looks:
        if rule not in instance.policy.rules_off:
            for subject, message in broken(instance):
                findings.add(CODE, subject, message)
    if "C11" not in instance.policy.rules_off:
        _queues(instance, (pod for pods in standing.values() for pod in pods), findings)


def _capacity(instance: Instance, standing: Mapping[str, Sequence[Pod]], findings: Findings) -> None:
    for name, pods in standing.items():
        node = instance.nodes.get(name)
        if node is None:
            continue
        amounts = _sums(pods)
        over = [
            f"{resource} {format_amount(resource, amount)} of {format_amount(resource, node.allocatable[resource])}"
            for resource, amount in sorted(amounts.items())
            if amount > node.allocatable[resource]
        ]
        if over:
            message = f"C2: pods bound to Node {name} request more than is allocatable: {', '.join(over)}"
            findings.add(CODE, f"Node {name}", message)


def _host_ports(standing: Mapping[str, Sequence[Pod]], findings: Findings) -> None:
    for name, pods in standing.items():
        open_ports: dict[tuple[str, int], list[tuple[HostPort, Key]]] = defaultdict(list)
        for pod in pods:
            for port in pod.host_ports:
                for other, holder in open_ports[port.protocol, port.port]:
                    if holder != pod.key and port.clashes(other):
                        what = f"{port.protocol} host port {port.port}"
                        message = f"C2: Pod {holder} and Pod {pod.key} both take {what} of Node {name}"
                        findings.add(CODE, f"Node {name}", message)
                open_ports[port.protocol, port.port].append((port, pod.key))


def _tier_limits(instance: Instance, findings: Findings) -> None:
    for key, group in instance.groups.items():
        if group.topology is not None:
            _tier_limit(instance, str(key), str(key), group.bound, group.topology, findings)
        for sub_group in group.sub_groups:
            topology = group.policies[sub_group.policy].topology
            if topology is not None:
                scope = f"subgroup {sub_group.name} of {key}"
                _tier_limit(instance, str(key), scope, sub_group.bound, topology, findings)


def _tier_limit(
    instance: Instance, subject: str, scope: str, bound: Sequence[Key], topology: NetworkTopology, findings: Findings
) -> None:
    if topology.limit is None or not bound:
        return
    tree = instance.topology
    nodes = [pod.node for pod in map(instance.pods.__getitem__, bound) if pod.node is not None]
    tier = tree.tier(tree.smallest_common(nodes))
    if tier > topology.limit:
        allowed = f"at most tier {topology.limit}" if topology.limit >= 0 else "no tier at all"
        message = f"C7: the bound pods of {scope} span tier {tier}, where {allowed} is allowed"
        findings.add(CODE, subject, message)


def _one_domain(places: UnitPlaces, findings: Findings) -> None:
    for unit, values in places.items():
        if len(values) > 1 or None in values:
            where = ", ".join(sorted("none" if value is None else label_word(value) for value in values))
            message = f"C7: the bound pods of {unit.name} are not in one domain of {unit.topology_key}, but in {where}"
            findings.add(CODE, unit.name, message)


def _exclusive(places: UnitPlaces, findings: Findings) -> None:
    holders: dict[tuple[str, str], set[str]] = defaultdict(set)
    for unit, values in places.items():
        for value in values if unit.exclusive else ():
            if value is not None:
                holders[unit.topology_key, value].add(unit.name)
    for (label, domain), names in holders.items():
        if len(names) > 1:
            message = (
                f"C15: {' and '.join(sorted(names))} are exclusive in {label} and run in {label}={label_word(domain)}"
            )
            findings.add(CODE, min(names), message)


def _beside_exclusive_jobs(instance: Instance, findings: Findings) -> None:
    there: dict[tuple[str, str], dict[bool, Pod]] = defaultdict(dict)
    for pod in instance.pods.values():
        for job in pod.neighbours.jobs if pod.state is PodState.BOUND else ():
            value = domain_of(instance.nodes, pod.node, job.topology_key)
            if value is not None:
                there[job.topology_key, value].setdefault(job.exclusive, pod)
    for (label, domain), pods in there.items():
        if len(pods) > 1:
            message = (
                f"C15: the Job of Pod {pods[True].key} is exclusive in {label}, and Pod {pods[False].key} of another "
                f"JobSet's Job runs in {label}={domain}, too"
            )
            findings.add(CODE, f"Pod {pods[True].key}", message)


def _places(instance: Instance) -> UnitPlaces:
    places: UnitPlaces = defaultdict(set)
    for pod in instance.pods.values():
        for unit in pod.neighbours.units if pod.state is PodState.BOUND else ():
            places[unit].add(domain_of(instance.nodes, pod.node, unit.topology_key))
    return places


def _queues(instance: Instance, standing: Iterable[Pod], findings: Findings) -> None:
    members: dict[str, list[Pod]] = defaultdict(list)
    for pod in standing:
        for queue in instance.queue_path(pod.queue):
            members[queue].append(pod)
    for name, pods in members.items():
        amounts = _sums(pods)
        over = [
            f"{resource} {format_amount(resource, amounts[resource])} of {format_amount(resource, limit)}"
            for resource, limit in sorted(instance.queues[name].capability.items())
            if amounts[resource] > limit
        ]
        if over:
            message = f"C11: bound pods in Queue {name} request more than its capability: {', '.join(over)}"
            findings.add(CODE, f"Queue {name}", message)


def _sums(pods: Iterable[Pod]) -> dict[str, int]:
    amounts: dict[str, int] = defaultdict(int)
    for pod in pods:
        for resource, amount in pod.requests.items():
            amounts[resource] += amount
    return amounts


Asked = TypeVar("Asked")
_node = attrgetter("node")


def _asking(
    instance: Instance, what: Callable[[Neighbours], Iterable[Asked]]
) -> tuple[dict[Asked, list[Pod]], PodIndex]:
    bound = [pod for pod in instance.pods.values() if pod.state is PodState.BOUND]
    asking: dict[Asked, list[Pod]] = defaultdict(list)
    for pod in bound:
        for each in what(pod.neighbours):
            asking[each].append(pod)
    return asking, PodIndex(bound, instance.namespaces)


def broken_affinity(instance: Instance) -> Iterator[tuple[str, str]]:
    """Bound pods in whose domain no bound pod matches all their terms."""
    asking, index = _asking(instance, lambda asked: [asked.affinity] if asked.affinity else [])
    for terms, pods in asking.items():
        matching = index.matching_all(term.pods for term in terms)
        for key in dict.fromkeys(term.topology_key for term in terms):
            alone = _outside(instance, key, pods, matching)
            if alone:
                who = counted({f"Pod {each}" for each in alone})
                yield f"Pod {alone[0]}", f"C12: no bound pod in its domain of {key} matches the pod affinity of {who}"


def _outside(instance: Instance, key: str, pods: Iterable[Pod], others: Iterable[Pod]) -> list[Key]:
    there = {domain_of(instance.nodes, pod.node, key) for pod in others} - {None}
    return sorted(pod.key for pod in pods if domain_of(instance.nodes, pod.node, key) not in there)


def broken_anti_affinity(instance: Instance) -> Iterator[tuple[str, str]]:
    """One per term and domain in which pods are together that it keeps apart."""
    asking, index = _asking(instance, lambda asked: asked.anti_affinity)
    meanings: dict[tuple[str, int], Mapping[str, list[Key]]] = {}  # of terms that mean the same pods
    for term, pods in asking.items():
        key, matched = term.topology_key, index.matching(term.pods)
        if (key, id(matched)) not in meanings:
            meanings[key, id(matched)] = by_domain(instance.nodes, key, matched, _node)
        having, meant = by_domain(instance.nodes, key, pods, _node), meanings[key, id(matched)]
        for value in sorted(having.keys() & meant.keys()):
            pairs = pairs_apart(having[value], meant[value])
            if pairs:
                first, what = min(having[value]), "1 pair" if pairs == 1 else f"{pairs} pairs"
                message = f"C13: required pod anti-affinity of Pod {first} and its like keeps {what} of bound pods"
                yield f"Pod {first}", f"{message} apart that are in one domain, {key}={label_word(value)}"


def broken_spread(instance: Instance) -> Iterator[tuple[str, str]]:
    """One per constraint of bound pods: their fullest domain, more than maxSkew beyond the emptiest."""
    asking, index = _asking(instance, lambda asked: asked.spread)
    domains = CountedDomains(instance.nodes, index, _node)
    for limit, pods in asking.items():
        counts = domains.counts(limit)
        fewest = min(counts.values(), default=0) if len(counts) >= limit.min_domains else 0
        mine = {str(domain_of(instance.nodes, pod.node, limit.topology_key)) for pod in pods} & counts.keys()
        most, domain = max(((counts[each], each) for each in mine), default=(0, ""))
        if most - fewest > limit.max_skew:
            first, where = min(pod.key for pod in pods), f"{limit.topology_key}={label_word(domain)}"
            message = f"{where} has {most} bound pods that the spread of Pod {first} and its like counts"
            yield f"Pod {first}", f"C14: {message}, {most - fewest} more than the fewest; maxSkew is {limit.max_skew}"
