"""C8 network cost and C9 bandwidth; pods are counted by workload and area."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from placer.problem import Link, Network
from placer.problem.communication import far_and_near
from placer.problem.findings import counted
from placer.problem.outcome import Outcome
from placer.problem.placement import Violation
from placer.rules.words import count_of


def network_cost(outcome: Outcome) -> Iterator[Violation]:
    """C8: each call of a dependency with maxNetworkCost m is on one node, in one zone, or costs ≤ m.

    The amount is the cost above m, summed over the pairs with a new pod.
    """
    network = outcome.instance.network
    if network is None:
        return
    if outcome.instance.policy.network_cost == "majority":
        yield from _majority(outcome, network)
        return
    for flow in outcome.flows:
        for origin, destination, pairs in flow.new_pairs():
            limit = flow.dependency.max_network_cost
            if not network.near(origin, destination, limit):
                cost = network.area_cost(origin, destination)
                subjects = (f"AppGroup {flow.app_group}", f"Dependency {flow.dependency}")
                message = (
                    f"{subjects[0]}: {flow.dependency} allows cost {limit}, and {count_of(pairs, 'new pair')} from "
                    f"{origin} to {destination} {'has' if pairs == 1 else 'have'} {cost}"
                )
                yield Violation("C8", subjects, pairs * (cost - limit), message)


def _majority(outcome: Outcome, network: Network) -> Iterator[Violation]:
    """C8 as the plugin reads it: of the pairs in which it is the caller, a pod has no more too far than near enough.

    A bound pod may keep the surplus that it has by bound pods alone. The amount is the surplus, summed over the pods.
    """
    for (app_group, workload), calls in outcome.calls().items():
        callers = calls[0].callers
        subjects = (f"AppGroup {app_group}", f"Workload {workload}")
        for area, count in callers.after.areas.items():
            bound = callers.before.areas[area]
            far, near = far_and_near(network, area, [(flow.dependency, flow.callees.after) for flow in calls])
            was_far, was_near = far_and_near(network, area, [(each.dependency, each.callees.before) for each in calls])
            for pods, surplus, kept in ((count - bound, far - near, 0), (bound, far - near, was_far - was_near)):
                if pods and surplus > max(0, kept):
                    message = (
                        f"{subjects[0]}: each of {count_of(pods, 'pod')} of {workload} in {area} has "
                        f"{count_of(far, 'callee')} too far and {near} near enough"
                    )
                    yield Violation("C8", subjects, pods * (surplus - max(0, kept)), message)


def bandwidth(outcome: Outcome) -> Iterator[Violation]:
    """C9: per link, the sum of minBandwidth over the placed pairs that use it is ≤ its capacity.

    Terminating pods count, too. The amount is the excess, in bit/s.
    """
    network = outcome.instance.network
    if network is None:
        return
    total, added = outcome.traffic(), defaultdict[Link, Counter[str]](Counter)
    for flow in outcome.flows:
        for link, pairs in outcome.on_links(flow.new_traffic()) if flow.dependency.min_bandwidth else ():
            user = f"{flow.dependency} of AppGroup {flow.app_group}"
            added[link][user] += pairs * (flow.dependency.min_bandwidth or 0)
    for link, users in sorted(added.items()):
        room, fresh = network.capacities.get(link), sum(users.values())
        if room is not None and fresh > 0 and total[link] > room:
            excess, topology = total[link] - room, f"NetworkTopology {network.topology}"
            message = (
                f"{topology}: {link} carries {total[link]} bit/s ({total[link] - fresh} before, {fresh} new, by "
                f"{counted(set(users))}) of {room}: {excess} too much"
            )
            yield Violation("C9", (topology, f"Link {link.origin} -> {link.destination}"), excess, message)
