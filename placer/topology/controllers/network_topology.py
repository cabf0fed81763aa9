"""Spec and status of a NetworkTopology: measured costs next to the user's lists, and the used bandwidth of links.

Unlike in the shipped controller (diktyo-io/networktopology-controller, 5db810e) the user's lists keep every field.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from placer.kube.core import ConfigMapManifest
from placer.problem import Finding, Instance, Key, Link, Network, Node, Spread
from placer.problem.communication import REGION, REGION_LABEL, ZONE, ZONE_LABEL
from placer.problem.network_topologies import MILLISECOND, NETPERF_COSTS, areas_of, measured_costs, read_measurements
from placer.topology.controllers.times import timestamp

_USER_DEFINED = "UserDefined"

Document = Mapping[str, Any]


class _Spelling(NamedTuple):
    topologies: str
    origins: str
    costs: str


_SHIPPED = _Spelling("topologyList", "originList", "costList")
_PROPOSED = _Spelling("costList", "originCosts", "costs")
#: The API group of KEP-260, whose objects have the KEP's names.
_PROPOSED_GROUP = "scheduling.sigs.x-k8s.io"
_KEYS = {REGION: REGION_LABEL, ZONE: ZONE_LABEL}


@dataclass(frozen=True, slots=True)
class NetworkTopologyUpdate:
    """The whole ``spec.weights`` and status to be written; ``findings`` are unusable measurements."""

    weights: list[Document]
    status: Document
    findings: tuple[Finding, ...] = ()


def network_topology_update(
    written: Document,
    *,
    nodes: Mapping[str, Node],
    config_map: ConfigMapManifest | None,
    allocated: Mapping[Link, int],
    now: datetime,
    percentile: int = 90,
    unit: int = MILLISECOND,
) -> NetworkTopologyUpdate:
    """Compute the lists and the status of a NetworkTopology.

    ``written``: as JSON. ``config_map``: None: measured costs do not change. ``unit``: microseconds that cost 1.
    """
    lists: list[Document] = list((written.get("spec") or {}).get("weights") or ())
    before = _named(written, NETPERF_COSTS)
    old = {link: entry["networkCost"] for link, entry in _entries(before)}
    costs: Mapping[Link, int] = old
    findings: tuple[Finding, ...] = ()
    if config_map is not None:
        measured = read_measurements(config_map, nodes, percentile)
        costs, findings = measured_costs(measured.latencies, areas_of(nodes), unit), measured.findings
    made = _list(costs, allocated, written)
    weights = [made if each is before else each for each in lists] + ([made] if before is None else [])
    status = _status(written, len(nodes), costs, old, now)
    return NetworkTopologyUpdate([each for each in weights if each is not None], status, findings)


def _status(
    written: Document, nodes: int, costs: Mapping[Link, int], old: Mapping[Link, int], now: datetime
) -> Document:
    """The time of calculation is that of the last costs that differ from those before."""
    calculated = (written.get("status") or {}).get("weightCalculationTime")
    if costs != old or (costs and calculated is None):
        calculated = timestamp(now)
    return {"nodeCount": nodes} | ({"weightCalculationTime": calculated} if calculated is not None else {})


def _list(costs: Mapping[Link, int], allocated: Mapping[Link, int], written: Document) -> Document | None:
    group = str(written.get("apiVersion") or "").rpartition("/")[0]
    names = _PROPOSED if group == _PROPOSED_GROUP else _SHIPPED
    user, before = (dict(_entries(_named(written, name))) for name in (_USER_DEFINED, NETPERF_COSTS))
    origins: dict[str, dict[str, list[Document]]] = {REGION: {}, ZONE: {}}
    for link in sorted(costs):
        entry = {**before.get(link, {}), "destination": link.destination, "networkCost": costs[link]}
        if "bandwidthCapacity" in user.get(link, {}):
            entry["bandwidthCapacity"] = user[link]["bandwidthCapacity"]
        entry["bandwidthAllocated"] = str(allocated.get(link, 0))
        origins[link.kind].setdefault(link.origin, []).append(entry)
    topologies = [
        {
            "topologyKey": _KEYS[kind],
            names.origins: [{"origin": origin, names.costs: entries} for origin, entries in found.items()],
        }
        for kind, found in origins.items()
        if found
    ]
    return {"name": NETPERF_COSTS, names.topologies: topologies} if topologies else None


def _named(written: Document, name: str) -> Document | None:
    return next((each for each in (written.get("spec") or {}).get("weights") or () if each.get("name") == name), None)


def _entries(written: Document | None) -> Iterator[tuple[Link, Document]]:
    for topology in _either(written or {}, "topologies"):
        kind = next((kind for kind, key in _KEYS.items() if key == topology.get("topologyKey")), None)
        for origin in _either(topology, "origins") if kind is not None else ():
            for entry in _either(origin, "costs"):
                yield Link(kind or "", origin["origin"], entry["destination"]), entry


def _either(written: Document, level: str) -> list[Document]:
    shipped, proposed = (written.get(getattr(names, level)) for names in (_SHIPPED, _PROPOSED))
    return list(proposed or () if shipped is None else shipped)


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
