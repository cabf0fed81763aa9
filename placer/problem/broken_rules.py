"""Rules that bound pods break by themselves: findings, never an invalid instance (models/reading.md, "bound pods")."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from placer.base.quantity import format_amount
from placer.problem.communication import Network, far_and_near
from placer.problem.findings import Findings, counted
from placer.problem.instance import Instance, Pod, PodState
from placer.problem.keys import Key, label_word
from placer.problem.neighbours import SpreadLimit
from placer.problem.outcome import Flow, Outcome, clashing_ports, pods_by_queue, requested
from placer.problem.placement import Placement
from placer.problem.pod_index import by_domain, owners_of_terms, pairs_apart

#: Subject and message of a finding.
Broken = Iterator[tuple[str, str]]


def note_broken_rules(instance: Instance, findings: Findings) -> None:
    """Note the rules that bound and terminating pods break by themselves."""
    outcome = Outcome(instance, Placement())
    looks = (
        *(("C2", _capacity), ("C2", _host_ports), ("C7", _tier_limits), ("C7", _one_domain), ("C15", _exclusive)),
        *(("C15", _beside_exclusive_jobs), ("C8", _costs), ("C9", _links), ("C12", _affinity), ("C13", _anti_affinity)),
        *(("C14", _spread), ("C11", _queues)),
    )
    for rule, broken in looks:
        if rule not in instance.policy.rules_off:
            for subject, message in broken(outcome):
                findings.add("BoundPodsViolate", subject, f"{rule}: {message}")


def _standing(instance: Instance) -> Iterator[Pod]:
    return (pod for pod in instance.pods.values() if pod.state.on_node)


def _by_node(instance: Instance) -> dict[str, list[Pod]]:
    found: dict[str, list[Pod]] = defaultdict(list)
    for pod in _standing(instance):
        found[pod.node or ""].append(pod)
    return found


def _capacity(outcome: Outcome) -> Broken:
    for name, pods in _by_node(outcome.instance).items():
        node = outcome.instance.nodes.get(name)
        if node is not None:
            sums = requested(pods)
            over = _over(sums, {resource: node.allocatable[resource] for resource in sums})
            if over:
                yield f"Node {name}", f"pods bound to Node {name} request more than is allocatable: {over}"


def _over(sums: Mapping[str, int], most: Mapping[str, int]) -> str:
    return ", ".join(
        f"{resource} {format_amount(resource, sums[resource])} of {format_amount(resource, limit)}"
        for resource, limit in sorted(most.items())
        if sums[resource] > limit
    )


def _host_ports(outcome: Outcome) -> Broken:
    for name, pods in _by_node(outcome.instance).items():
        for pod, port, other, _ in clashing_ports(pods):
            what = f"{port.protocol} host port {port.port}"
            yield f"Node {name}", f"Pod {other.key} and Pod {pod.key} both take {what} of Node {name}"


def _tier_limits(outcome: Outcome) -> Broken:
    for key, group in outcome.instance.groups.items():
        scopes = [(str(key), group.bound, group.topology)]
        scopes += [
            (f"subgroup {part.name} of {key}", part.bound, group.policies[part.policy].topology)
            for part in group.sub_groups
        ]
        for scope, bound, topology in scopes:
            limit = None if topology is None else topology.limit
            tier, _ = outcome.common(topology, bound)
            if limit is not None and tier is not None and tier > limit:
                allowed = f"at most tier {limit}" if limit >= 0 else "no tier at all"
                yield str(key), f"the bound pods of {scope} span tier {tier}, where {allowed} is allowed"


def _one_domain(outcome: Outcome) -> Broken:
    for unit, places in outcome.unit_places.items():
        if len(places) > 1 or None in places:
            where = ", ".join(sorted("none" if value is None else label_word(value) for value in places))
            what = f"are not in one domain of {unit.topology_key}, but in {where}"
            yield unit.name, f"the bound pods of {unit.name} {what}"


def _exclusive(outcome: Outcome) -> Broken:
    for (label, domain), units in outcome.exclusive_units().items():
        names = sorted({unit.name for unit in units})
        if len(names) > 1:
            what = f"are exclusive in {label} and run in {label}={label_word(domain)}"
            yield names[0], f"{' and '.join(names)} {what}"


def _beside_exclusive_jobs(outcome: Outcome) -> Broken:
    for (label, domain), (alone, others) in outcome.job_places().items():
        if alone and others:
            rest = f"and Pod {others[0]} of another JobSet's Job runs in {label}={domain}, too"
            yield f"Pod {alone[0]}", f"the Job of Pod {alone[0]} is exclusive in {label}, {rest}"


def _costs(outcome: Outcome) -> Broken:
    network = outcome.instance.network
    if network is None:
        return
    found = _mostly_far if outcome.instance.policy.network_cost == "majority" else _too_far
    for (key, _), calls in outcome.calls().items():
        for message in found(network, calls):
            yield f"AppGroup {key}", f"{message} of AppGroup {key}"


def _too_far(network: Network, calls: Sequence[Flow]) -> Iterator[str]:
    for flow in calls:
        limit = flow.dependency.max_network_cost
        costs = [
            (network.area_cost(origin, destination), pairs)
            for origin, destination, pairs in flow.callers.before.pairs(flow.callees.before)
            if not network.near(origin, destination, limit)
        ]
        if costs:
            count, worst = sum(pairs for _, pairs in costs), max(cost for cost, _ in costs)
            yield f"{count} of the bound pairs cost more than {limit}, up to {worst}, in {flow.dependency}"


def _mostly_far(network: Network, calls: Sequence[Flow]) -> Iterator[str]:
    called = [(flow.dependency, flow.callees.before) for flow in calls]
    count = 0
    for area, pods in calls[0].callers.before.areas.items():
        far, near = far_and_near(network, area, called)
        count += pods if far > near else 0
    if count:
        workload = calls[0].dependency.origin
        yield f"{count} of the bound pods have more callees too far than near enough, in workload {workload}"


def _links(outcome: Outcome) -> Broken:
    network = outcome.instance.network
    if network is None:
        return
    for link, amount in sorted(outcome.traffic().items()):
        room = network.capacities.get(link)
        if room is not None and amount > room:
            message = f"bound pods use {amount} bit/s of the {link}, whose bandwidthCapacity is {room}"
            yield f"NetworkTopology {network.topology}", message


def _queues(outcome: Outcome) -> Broken:
    instance = outcome.instance
    for name, pods in pods_by_queue(instance, _standing(instance)).items():
        over = _over(requested(pods), instance.queues[name].capability)
        if over:
            yield f"Queue {name}", f"bound pods in Queue {name} request more than its capability: {over}"


def _affinity(outcome: Outcome) -> Broken:
    for key, alone in outcome.unattracted():
        who = counted({f"Pod {each}" for each in alone})
        yield f"Pod {alone[0]}", f"no bound pod in its domain of {key} matches the pod affinity of {who}"


def _anti_affinity(outcome: Outcome) -> Broken:
    """One per term and domain in which pods are together that it keeps apart."""
    nodes, node_of = outcome.instance.nodes, outcome.node_of
    meanings: dict[tuple[str, int], Mapping[str, list[Key]]] = {}  # of terms that mean the same pods
    for term, pods in owners_of_terms(_bound(outcome.instance)).items():
        key, matched = term.topology_key, outcome.neighbours.matching(term.pods)
        if (key, id(matched)) not in meanings:
            meanings[key, id(matched)] = by_domain(nodes, key, filter(outcome.runs, matched), node_of)
        having, meant = by_domain(nodes, key, pods, node_of), meanings[key, id(matched)]
        for value in sorted(having.keys() & meant.keys()):
            pairs = pairs_apart(having[value], meant[value])
            if pairs:
                first, what = min(having[value]), "1 pair" if pairs == 1 else f"{pairs} pairs"
                message = f"required pod anti-affinity of Pod {first} and its like keeps {what} of bound pods"
                yield f"Pod {first}", f"{message} apart that are in one domain, {key}={label_word(value)}"


def _bound(instance: Instance) -> Iterator[Pod]:
    return (pod for pod in instance.pods.values() if pod.state is PodState.BOUND)


def _spread(outcome: Outcome) -> Broken:
    """One per constraint of bound pods: their fullest domain, more than maxSkew beyond the emptiest."""
    limits: dict[SpreadLimit, list[Pod]] = defaultdict(list)
    for pod in _bound(outcome.instance):
        for limit in pod.neighbours.spread:
            limits[limit].append(pod)
    for limit, pods in limits.items():
        counts, fewest = outcome.spread_over(limit)
        mine: Iterable[str] = {str(outcome.domain_of(pod, limit.topology_key)) for pod in pods} & counts.keys()
        most, domain = max(((counts[each], each) for each in mine), default=(0, ""))
        if most - fewest > limit.max_skew:
            first, where = min(pod.key for pod in pods), f"{limit.topology_key}={label_word(domain)}"
            message = f"{where} has {most} bound pods that the spread of Pod {first} and its like counts"
            yield f"Pod {first}", f"{message}, {most - fewest} more than the fewest; maxSkew is {limit.max_skew}"
