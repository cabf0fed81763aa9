"""Family ``network``: AppGroups over regions and zones, with limits that a planted placement is known to keep.

One step after the other: the regions with their zones, nodes and costs, applications without a place, a place for each
of their pods, limits around these places, and the Kubernetes objects that say all this.
"""

from __future__ import annotations

from dataclasses import dataclass

from placer.laboratory.generate.cluster import Generated
from placer.laboratory.generate.network.applications import draw_applications, draw_limits, plant
from placer.laboratory.generate.network.objects import write_objects
from placer.laboratory.generate.network.regions import draw_regions
from placer.laboratory.generate.options import FamilyOptions, listed, option
from placer.laboratory.generate.random_source import RandomSource

__all__ = ["NetworkOptions", "network"]


@dataclass(frozen=True, kw_only=True)
class NetworkOptions(FamilyOptions):
    """Options of ``network``."""

    app_groups: int = option(4, "number of AppGroups", 1, 10_000)
    workloads: tuple[int, ...] = option((5, 11), "workloads of an AppGroup: so many, or the least and the most", 1, 200)
    replicas: tuple[int, ...] = option((1, 3), "pods of a workload: so many, or the least and the most", 1, 100)
    calls: float = option(1.4, "dependencies per workload; every workload but the first is called at least once", 0, 10)
    regions: int = option(2, "number of regions", 1, 100)
    zones: int = option(2, "zones per region", 1, 100)
    nodes: int = option(16, "number of nodes, shared out evenly over the zones", 1, 100_000)
    wide: float = option(0.4, "share of AppGroups that are planted over two regions")
    apart: float = option(0.3, "share of workloads whose pods are planted in two zones, where it has several")
    bandwidth: float = option(0.7, "share of dependencies with a minBandwidth")
    tight: float = option(
        1.0, "share of costs, links and tiers whose limit leaves no room around the planted placement"
    )
    fill: float = option(0.9, "how full the fullest planted node is", 0.01)
    running: float = option(0.0, "share of AppGroups that run already, where they were planted")
    anchored: float = option(0.0, "share of AppGroups of which half runs already")
    gangs: float = option(0.0, "share of AppGroups that are one gang under a hard tier limit")
    rack_size: int = option(4, "nodes per rack, the HyperNodes of tier 1 (zones, regions and all are 2 to 4)", 1, 4096)

    def check(self) -> None:
        """Check what concerns more than one option."""
        zones = self.regions * self.zones
        self.demand(
            self.nodes >= zones, "nodes", f"{self.nodes}", f"at least {zones:,}, one for each zone of every region"
        )
        for name in ("workloads", "replicas"):
            span = getattr(self, name)
            good = len(span) == 1 or (len(span) == 2 and span[0] <= span[1])
            self.demand(good, name, listed(span), "one number, or two with the least one first")


def network(options: NetworkOptions) -> Generated:
    """Make AppGroups, and a cluster whose network they are known to fit.

    The planted placement has a node for every pending pod and keeps the room of the nodes, every maxNetworkCost, every
    bandwidthCapacity and every tier limit. Where limits are tight, the largest cost of a planted pair is what its
    dependency allows, the capacity of a link is what the planted pairs need of it, and the tier limit of a gang is the
    tier of the smallest HyperNode around it.

    Parameters
    ----------
    options
        See there.

    Returns
    -------
    Generated
        With the planted placement; its ``networkCostPlanted`` is O3 of everything planted, running pods included.
    """
    mix = options
    regions = draw_regions(mix.regions, mix.zones, mix.nodes, RandomSource(mix.seed, "land"))
    shape = (_span(mix.workloads), _span(mix.replicas), mix.calls, mix.bandwidth)
    applications = draw_applications(mix.app_groups, *shape, RandomSource(mix.seed, "applications"))
    planting = plant(applications, regions, (mix.wide, mix.apart), RandomSource(mix.seed, "places"))
    limits = draw_limits(applications, planting, regions, mix.tight, RandomSource(mix.seed, "limits"))
    source = RandomSource(mix.seed, "objects")
    shares = [1.0 if source.chance(mix.running) else 0.5 if source.chance(mix.anchored) else 0.0 for _ in applications]
    gangs = [source.chance(mix.gangs) for _ in applications]
    written = write_objects(
        applications,
        planting,
        limits,
        regions,
        running=shares,
        gangs=gangs,
        rack_size=mix.rack_size,
        fill=mix.fill,
        source=source,
    )
    pods = sum(sum(each.replicas) for each in applications)
    summary = {
        "nodes": mix.nodes,
        "regions": mix.regions,
        "zones": mix.regions * mix.zones,
        "appGroups": len(applications),
        "workloads": sum(len(each.replicas) for each in applications),
        "dependencies": sum(len(each.calls) for each in applications),
        "gangs": sum(gangs),
        "pods": pods,
        "podsRunning": pods - len(written.planted),
        "podsPlanted": len(written.planted),
        "networkCostPlanted": limits.network_cost,
    }
    return Generated(written.documents, written.planted, summary)


def _span(values: tuple[int, ...]) -> tuple[int, int]:
    return values[0], values[-1]
