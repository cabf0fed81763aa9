"""Bandwidth of each link that running pods take, counted anew."""

from __future__ import annotations

from collections import Counter

from placer.instance import Instance, Key, Link, Network, Spread
from placer.instance.network_topologies import areas_of


def allocated_bandwidth(instance: Instance) -> dict[Link, int]:
    """Link to the bit/s that pods with a node take, terminating ones included (C9)."""
    network = Network(Key("", ""), areas_of(instance.nodes))
    taken: Counter[Link] = Counter()
    for key, group in instance.app_groups.items():
        for dependency in group.dependencies:
            if dependency.min_bandwidth:
                callers, called = (
                    _spread(instance, network, key, each) for each in (dependency.origin, dependency.destination)
                )
                for origin, destination, pairs in callers.pairs(called):
                    link = network.link(origin, destination)
                    if link is not None and link.origin and link.destination:  # a zone without a name has no entry
                        taken[link] += dependency.min_bandwidth * pairs
    return dict(sorted(taken.items()))


def _spread(instance: Instance, network: Network, group: Key, workload: str) -> Spread:
    pods = instance.workload_pods.get((group, workload), ())
    return Spread(network, (pod.node for pod in pods if pod.state.on_node and pod.node is not None))
