"""How much of each link's bandwidth running pods take.

Differences from the shipped controller (diktyo-io/networktopology-controller, 5db810e):

* Everything is counted from the pods that are there. The controller adds at every update of a pod and subtracts in the
  wrong place, so its number only grows; and since it never starts to look at AppGroups, it counts nothing at all.
* A dependency counts for all pairs of its pods; the controller looks at the outgoing dependencies of a pod only.
"""

from __future__ import annotations

from collections import Counter

from placer.instance import Instance, Key, Link, Network, Spread
from placer.instance.network_topologies import areas_of

__all__ = ["allocated_bandwidth"]


def allocated_bandwidth(instance: Instance) -> dict[Link, int]:
    """Link to the bit/s that pods with a node take, sorted; an unused link is absent.

    Pods being deleted count until they are gone (C9), pending ones do not. Regions and zones come from the nodes'
    labels, whichever NetworkTopology decides.
    """
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
