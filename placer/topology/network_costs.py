"""``placer topology costs``: the costs that decide, as matrices, and those that measurements would give."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.base.errors import BadInstance, Fault, UsageError
from placer.problem import Area, Finding, Key, Link
from placer.problem.communication import REGION, UNKNOWN_COST, ZONE
from placer.problem.findings import Findings
from placer.problem.instance_builder import make_instance, read_nodes, read_policy
from placer.problem.network_objects import (
    MILLISECOND,
    NETWORK_TOPOLOGY_API,
    find_config_map,
    measured_costs,
    only_one_each,
    read_measurements,
    read_network,
)
from placer.problem.notices import note_ignored, note_network
from placer.topology.controllers import allocated_bandwidth

if TYPE_CHECKING:
    from placer.kube.manifests import Objects


@dataclass(frozen=True, slots=True)
class Matrix:
    """Costs of all calls between places (``names``, sorted) of one kind, ``region`` or ``zone`` of a ``region``."""

    kind: str
    region: str
    names: tuple[str, ...]
    entries: Mapping[tuple[str, str], int]

    def cost(self, origin: str, destination: str) -> int | None:
        """Cost of a call: 1 within a zone, 100 without an entry; None within a region, where zones decide."""
        if origin == destination:
            return 1 if self.kind == ZONE else None
        return self.entries.get((origin, destination), UNKNOWN_COST)

    def known(self, origin: str, destination: str) -> bool:
        """Whether an entry says the cost, or the places are one."""
        return origin == destination or (origin, destination) in self.entries

    def as_dict(self) -> dict[str, Any]:
        """As plain values: every cost by origin and destination, and which of them no entry says."""
        pairs = [(one, two) for one in self.names for two in self.names if self.cost(one, two) is not None]
        costs: dict[str, dict[str, int | None]] = {name: {} for name in self.names}
        for one, two in pairs:
            costs[one][two] = self.cost(one, two)
        region = {"region": self.region or None} if self.kind == ZONE else {}
        return {**region, "costs": costs, "unknown": [list(pair) for pair in pairs if not self.known(*pair)]}


@dataclass(frozen=True, slots=True)
class Measured:
    """Costs from the measurements of a ConfigMap; ``unit`` in microseconds; regions, then the zones of each."""

    percentile: int
    unit: int
    matrices: tuple[Matrix, ...]


@dataclass(frozen=True, slots=True)
class CostReport:
    """A NetworkTopology, and the list of it that decides (``weights``).

    ``capacities``, ``allocated``: in bit/s; a link without is absent. ``measured``: None: there is no such ConfigMap.
    """

    topology: Key
    weights: str | None
    lists: tuple[str, ...]
    matrices: tuple[Matrix, ...]
    capacities: Mapping[Link, int]
    allocated: Mapping[Link, int]
    config_map: Key | None
    measured: Measured | None
    findings: tuple[Finding, ...]

    def as_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        config_map, measured = self.config_map, self.measured
        return {
            "networkTopology": self.topology._asdict(),
            "weights": self.weights,
            "unknownCost": UNKNOWN_COST,
            **_matrices_as_dict(self.matrices),
            "links": [
                link._asdict()
                | {"bandwidthCapacity": self.capacities.get(link), "bandwidthAllocated": self.allocated.get(link, 0)}
                for link in sorted({*self.capacities, *self.allocated})
            ],
            "configMap": config_map and config_map._asdict(),
            "measured": measured
            and {
                "percentile": measured.percentile,
                "microsecondsPerCost": measured.unit,
                **_matrices_as_dict(measured.matrices),
            },
            "findings": [each.as_dict() for each in self.findings],
        }


def _matrices_as_dict(matrices: Iterable[Matrix]) -> dict[str, Any]:
    regions, *zones = matrices
    return {"regions": regions.as_dict(), "zones": [each.as_dict() for each in zones]}


def read_costs(*paths: str | Path, percentile: int = 90, unit: int = MILLISECOND) -> CostReport:
    """Read the costs that decide in an instance.

    ``paths`` as :func:`placer.problem.reading.read` takes them; ``percentile`` of the measurements; ``unit``:
    microseconds that cost 1, at least 1, else :class:`UsageError`. Without a NetworkTopology :class:`BadInstance`.
    """
    from placer.kube.manifests import load

    return costs_of(load(paths), ", ".join(map(str, paths)), percentile=percentile, unit=unit)


def costs_of(objects: Objects, name: str, *, percentile: int = 90, unit: int = MILLISECOND) -> CostReport:
    """The same of objects; ``name`` is their source, for messages."""
    if not 0 <= percentile <= 100:
        raise UsageError(f"percentile: found {percentile}, expected a number from 0 to 100")
    if unit < 1:
        raise UsageError(f"unit: found {unit}, expected microseconds, at least 1")
    findings = Findings()
    note_ignored(objects, findings)
    policy, nodes = read_policy(objects.policies), read_nodes(objects.nodes)
    network = read_network(objects.network_topologies, policy, nodes, findings, objects.config_maps)
    if network is None:
        raise BadInstance([Fault(name, None, "NetworkTopology", "", "none", "at least one")])
    note_network(network, {}, findings)
    counting = only_one_each(objects.network_topologies, "NetworkTopology", NETWORK_TOPOLOGY_API, Findings())
    chosen = counting[network.topology]
    lists = tuple(each.name for each in (chosen.spec.weights if chosen.spec is not None else None) or ())
    config_map, named = find_config_map(chosen, objects.config_maps)
    measured = None
    if config_map is not None:
        read = read_measurements(config_map, nodes, percentile)
        findings.update(read.findings)
        costs = measured_costs(read.latencies, network.areas, unit)
        measured = Measured(percentile, unit, _matrices(network.areas.values(), costs))
    return CostReport(
        topology=network.topology,
        weights=network.weights,
        lists=lists,
        matrices=_matrices(network.areas.values(), network.costs),
        capacities=network.capacities,
        allocated=allocated_bandwidth(make_instance(objects)),
        config_map=named,
        measured=measured,
        findings=findings.all(),
    )


def _matrices(areas: Iterable[Area], costs: Mapping[Link, int]) -> tuple[Matrix, ...]:
    homes: dict[str, set[str]] = defaultdict(set)
    for area in areas:
        if area.region:
            homes[area.region].update({area.zone} - {""})
    regions = {*homes, *_ends(costs, REGION)}
    seen = set[str]().union(*homes.values())
    homes[""] = _ends(costs, ZONE) - seen
    inside = [(region, homes[region]) for region in sorted(homes, key=lambda region: (not region, region))]
    return (
        _matrix(REGION, "", sorted(regions), costs),
        *(_matrix(ZONE, region, sorted(zones), costs) for region, zones in inside if zones),
    )


def _ends(costs: Mapping[Link, int], kind: str) -> set[str]:
    return {end for link in costs if link.kind == kind for end in (link.origin, link.destination)}


def _matrix(kind: str, region: str, names: Sequence[str], costs: Mapping[Link, int]) -> Matrix:
    links = {(one, two): Link(kind, one, two) for one in names for two in names if one != two}
    return Matrix(kind, region, tuple(names), {pair: costs[link] for pair, link in links.items() if link in costs})
