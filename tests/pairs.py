"""C8, C9 and O3 once more, from the words of models/README.md: pod by pod and pair by pair, nodes by their labels, no
counting.

Nothing is shared with the code under test but the values of an instance: pods with their workload and node,
dependencies, and the entries of the network.
"""

from __future__ import annotations

from collections.abc import Iterator

from placer.problem import Dependency, Instance, Link, Network, Pod, PodState
from placer.problem.placement import Placement

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"


class Pairs:
    """An instance with a placement, which must be one that can be carried out."""

    def __init__(self, instance: Instance, placement: Placement) -> None:
        assert instance.network is not None
        self.instance = instance
        self.network: Network = instance.network
        self.node = {pod.key: pod.node for pod in instance.pods.values()} | dict(placement.node_of)
        self.new = set(placement.node_of)
        states = (PodState.PENDING, PodState.BOUND)
        self.placed = [pod for pod in instance.pods.values() if pod.state in states and self.node[pod.key] is not None]
        self.holding = [*self.placed, *(pod for pod in instance.pods.values() if pod.state is PodState.TERMINATING)]

    def network_cost(self) -> int:
        """O3."""
        return sum(self._cost(caller, callee) for _, caller, callee in self._pairs(self.placed))

    def cost_above_limits(self) -> int:
        """C8: how much new pairs cost above what their dependencies allow."""
        return sum(
            self._cost(caller, callee) - dependency.max_network_cost
            for dependency, caller, callee in self._pairs(self.placed)
            if (caller.key in self.new or callee.key in self.new) and not self._near(dependency, caller, callee)
        )

    def surplus(self) -> int:
        """C8 under ``majority``: how many more pairs are too far than near enough, caller by caller."""
        before = [pod for pod in self.placed if pod.key not in self.new]
        total = 0
        for pod in self.placed:
            kept = 0 if pod.key in self.new else max(0, self._more_far_than_near(pod, before))
            total += max(0, self._more_far_than_near(pod, self.placed) - kept)
        return total

    def bandwidth_above_capacity(self) -> dict[str, int]:
        """C9: link to what is above its capacity, where a new pair uses it."""
        used: dict[Link, int] = {}
        fresh = set()
        for dependency, caller, callee in self._pairs(self.holding):
            link = self._link(caller, callee)
            if link is not None and dependency.min_bandwidth:
                used[link] = used.get(link, 0) + dependency.min_bandwidth
                if caller.key in self.new or callee.key in self.new:
                    fresh.add(link)
        limits = self.network.capacities
        over = {link: used[link] - limits[link] for link in fresh if link in limits and used[link] > limits[link]}
        return {f"Link {link.origin} -> {link.destination}": amount for link, amount in over.items()}

    def _pairs(self, pods: list[Pod]) -> Iterator[tuple[Dependency, Pod, Pod]]:
        for key, app_group in self.instance.app_groups.items():
            for dependency in app_group.dependencies:
                for caller in pods:
                    for callee in pods:
                        ends = (caller.app_group, caller.workload), (callee.app_group, callee.workload)
                        if ends == ((key, dependency.origin), (key, dependency.destination)) and caller is not callee:
                            yield dependency, caller, callee

    def _place(self, pod: Pod) -> tuple[str, str, str]:
        """Node, region and zone."""
        name = self.node[pod.key] or ""
        node = self.instance.nodes.get(name)
        labels = node.labels if node is not None else {}
        return name, labels.get(REGION, ""), labels.get(ZONE, "")

    def _link(self, caller: Pod, callee: Pod) -> Link | None:
        (_, region, zone), (_, other_region, other_zone) = self._place(caller), self._place(callee)
        if not region or not other_region:
            return None
        if region != other_region:
            return Link("region", region, other_region)
        return Link("zone", zone, other_zone) if zone != other_zone else None

    def _cost(self, caller: Pod, callee: Pod) -> int:
        (node, region, zone), (other, other_region, other_zone) = self._place(caller), self._place(callee)
        if node == other:
            return 0
        if region and region == other_region and zone == other_zone:
            return 1
        link = self._link(caller, callee)
        return self.network.costs[link] if link is not None and link in self.network.costs else 100

    def _near(self, dependency: Dependency, caller: Pod, callee: Pod) -> bool:
        (node, region, zone), (other, other_region, other_zone) = self._place(caller), self._place(callee)
        together = node == other or (region != "" and region == other_region and zone == other_zone)
        return together or self._cost(caller, callee) <= dependency.max_network_cost

    def _more_far_than_near(self, caller: Pod, pods: list[Pod]) -> int:
        own = [(dependency, callee) for dependency, one, callee in self._pairs(pods) if one is caller]
        near = sum(self._near(dependency, caller, callee) for dependency, callee in own)
        return len(own) - 2 * near
