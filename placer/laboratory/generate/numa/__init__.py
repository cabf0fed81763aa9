"""Family ``numa``: nodes of several NUMA zones, filled with Guaranteed pods in an order that the kubelet admits.

One step after the other: each zone of a node is cut into parts; parts become containers, and containers pods; the pods
are put into an order and the kubelet is replayed, and a pod that it would refuse is taken apart; the Kubernetes objects
that say all this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from placer.laboratory.generate.cluster import Generated
from placer.laboratory.generate.numa.fill import FilledNode, NodeShape, Shares, fill, least
from placer.laboratory.generate.numa.objects import write_objects
from placer.laboratory.generate.options import FamilyOptions, listed, option, whole
from placer.laboratory.generate.random_source import RandomSource

__all__ = ["NumaOptions", "numa"]


@dataclass(frozen=True, kw_only=True)
class NumaOptions(FamilyOptions):
    """Options of ``numa``."""

    nodes: int = option(16, "number of nodes", 1, 100_000)
    zones: tuple[int, ...] = option((2, 4, 8), "NUMA zones a node may have", 1, 8)
    cores: int = option(24, "cores per zone, each with 4 GiB of memory", 1, 512)
    gpus: int = option(2, "GPUs per zone", 0, 64)
    pod_cores: tuple[int, ...] = option((2, 3, 4, 6, 8, 12), "cores a container may ask for", 1, 512)
    fill: float = option(0.95, "how full every zone is at least, of cores and of memory", 0.01)
    uneven: float = option(0.3, "how far the memory of a pod strays from its share of cores", 0, 0.9)
    pod_scope: float = option(0.5, "share of nodes whose kubelet aligns pods as a whole, not container by container")
    restricted: float = option(0.0, "share of nodes with policy restricted; the others have single-numa-node")
    wide: float = option(0.5, "share of restricted nodes with a pod that fills two zones")
    pairs: float = option(0.3, "share of pods with two containers")
    in_order: float = option(0.5, "share of nodes whose pods are admitted in the order of their creation")
    running: float = option(0.0, "share of each node's pods that run already, those bound first")

    def check(self) -> None:
        """Check what concerns more than one option."""
        self.demand(bool(self.zones), "zones", "an empty list", "at least one number")
        self.demand(bool(self.pod_cores), "pod_cores", "an empty list", "at least one size")
        low = least(self.fill, self.cores)
        fits = any(whole(self.cores, self.pod_cores)[low:])
        self.demand(fits, "pod_cores", listed(self.pod_cores), f"sizes that sum to {low} to {self.cores} cores, a zone")


def numa(options: NumaOptions) -> Generated:
    """Make nodes with NUMA zones, and a queue that is known to fit.

    Every zone is cut into parts, so nearly all of its cores and memory and all of its GPUs are planted. Where the
    kubelet aligns containers one by one, a pod's two containers may come from two zones.

    Parameters
    ----------
    options
        See there.

    Returns
    -------
    Generated
        With the planted placement of all pending pods, node by node in an order in which the kubelet admits them.
    """
    mix = options
    shares = Shares(mix.pod_cores, mix.fill, mix.uneven, mix.wide, mix.pairs)
    kinds, source = RandomSource(mix.seed, "nodes"), RandomSource(mix.seed, "pods")
    filled = [fill(_kind(mix, kinds), shares, source) for _ in range(mix.nodes)]
    written = write_objects(filled, mix.in_order, mix.running, RandomSource(mix.seed, "objects"))
    return Generated(written.documents, written.planted, _summary(mix, filled, len(written.planted)))


def _kind(mix: NumaOptions, source: RandomSource) -> NodeShape:
    policy = "restricted" if source.chance(mix.restricted) else "single-numa-node"
    scope = "pod" if source.chance(mix.pod_scope) else "container"
    return NodeShape(source.pick(mix.zones), mix.cores, mix.gpus, policy, scope)


def _summary(mix: NumaOptions, filled: Sequence[FilledNode], planted: int) -> dict[str, int]:
    pods = [pod for node in filled for pod in node.pods]
    zones = sum(node.kind.zones for node in filled)
    return {
        "nodes": mix.nodes,
        "zones": zones,
        "cores": zones * mix.cores,
        "coresPlanted": sum(part.cores for pod in pods for part in pod),
        "gpus": zones * mix.gpus,
        "pods": len(pods),
        "podsOfTwoContainers": sum(len(pod) > 1 for pod in pods),
        "podsRunning": len(pods) - planted,
        "podsPlanted": planted,
    }
