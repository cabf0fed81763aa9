"""How much of each link's bandwidth is taken by the pods that run.

Where this differs from the shipped controller (diktyo-io/networktopology-controller, 5db810e):

* Everything is counted anew from the pods that are there. The controller adds at every update of a pod and takes off
  from the wrong place, so that its number only grows; and since it never starts to look at AppGroups, it counts
  nothing at all.
* A dependency counts for all pairs of its pods, whichever of the two came last; the controller looks at a pod's own
  outgoing dependencies only.
"""

from __future__ import annotations

from collections import Counter

from placer.instance import Instance, Key, Link, Network, Spread
from placer.instance.network_topologies import areas_of

__all__ = ["allocated_bandwidth"]


def allocated_bandwidth(instance: Instance) -> dict[Link, int]:
    """Sum up what pods that have their node take of every link.

    Parameters
    ----------
    instance
        Its bound pods count, those being deleted too until they are gone (C9); pending ones do not. Which
        NetworkTopology decides does not matter: regions and zones are those of the nodes' labels.

    Returns
    -------
    dict
        Link to bit/s, sorted; a link that nothing is taken of is absent.
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
    """Where the pods of a workload are."""
    pods = instance.workload_pods.get((group, workload), ())
    return Spread(network, (pod.node for pod in pods if pod.state.on_node and pod.node is not None))
