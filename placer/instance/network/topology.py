"""The NetworkTopology and list that decide, as costs and capacities of links (models/reading.md, C8 and C9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from placer.instance.findings import Findings
from placer.instance.network.api_groups import only_one_each
from placer.instance.network.app_groups import BANDWIDTH
from placer.instance.network.model import (
    REGION,
    REGION_LABEL,
    UNKNOWN_COST,
    ZONE,
    ZONE_LABEL,
    Area,
    Link,
    Network,
    areas_of,
)
from placer.instance.network.netperf import NETPERF_COSTS, find_config_map, read_measurements
from placer.instance.node import Node
from placer.instance.pod import Key
from placer.instance.policy import Policy
from placer.kube import diktyo
from placer.kube.core import ConfigMapManifest
from placer.quantity import from_nano

__all__ = ["read_cost_lists", "read_network"]

#: API group in use; should a NetworkTopology be there under an older group as well, the one under this group counts.
GROUP = "networktopology.diktyo.x-k8s.io"
_DEFAULT_NAME = "nt-default"
_DEFAULT_LIST = "UserDefined"
_KINDS = {ZONE_LABEL: ZONE, REGION_LABEL: REGION}


def read_network(
    written: Iterable[diktyo.NetworkTopologyManifest],
    policy: Policy,
    nodes: Mapping[str, Node],
    findings: Findings,
    config_maps: Iterable[ConfigMapManifest] = (),
) -> Network | None:
    """Read the network of an instance.

    Parameters
    ----------
    written
        The NetworkTopologies, in any order.
    policy
        May name one, and one of its lists.
    nodes
        Their labels say in which zone and region they are.
    findings
        Takes a choice that is not clear, names that lead nowhere, and entries that cannot be as meant.
    config_maps
        Where the policy chooses the list of measured costs, what was measured counts: 90th percentiles, in
        milliseconds, as the ConfigMap that the NetworkTopology names has them.

    Returns
    -------
    Network or None
        None where there is no NetworkTopology at all.
    """
    counting = only_one_each(written, "NetworkTopology", GROUP, findings).values()
    chosen = _chosen(sorted(counting, key=lambda each: (each.name, each.namespace)), policy.network_topology, findings)
    if chosen is None:
        return None
    key = Key(chosen.namespace, chosen.name)
    lists = (chosen.spec.weights if chosen.spec is not None else None) or ()
    areas = areas_of(nodes)
    costs = _measured(chosen, config_maps, areas, findings) if policy.network_weights == NETPERF_COSTS else {}
    if costs:
        weights = next((each for each in lists if each.name == NETPERF_COSTS), None)
        if weights is not None and _costs(weights, key, findings) != costs:
            message = f"NetworkTopology {key}: its list {NETPERF_COSTS} is not what its ConfigMap says, which counts"
            findings.add("NetperfListDiffers", f"NetworkTopology {key}", message)
    else:
        weights = _list(lists, policy.network_weights, key, findings)
        costs = _costs(weights, key, findings) if weights is not None else {}
    name = NETPERF_COSTS if weights is None and costs else weights.name if weights is not None else None
    user = next((each for each in lists if each.name == _DEFAULT_LIST), None)
    capacities = _capacities(user) | _capacities(weights)
    if not lists and not costs:
        subject = f"NetworkTopology {key}"
        message = f"{subject} has no lists (spec.weights): every link costs {UNKNOWN_COST} and none has a capacity"
        findings.add("NetworkTopologyEmpty", subject, message)
    return Network(key, areas, costs, capacities, name)


def _measured(
    chosen: diktyo.NetworkTopologyManifest,
    config_maps: Iterable[ConfigMapManifest],
    areas: Mapping[str, Area],
    findings: Findings,
) -> dict[Link, int]:
    """What the measurements of a NetworkTopology come to; empty where there are none."""
    config_map, named = find_config_map(chosen, config_maps)
    if config_map is None:
        lists = (chosen.spec.weights if chosen.spec is not None else None) or ()
        if named is not None and all(each.name != NETPERF_COSTS for each in lists):
            findings.missing(f"ConfigMap {named}", f"NetworkTopology {chosen.namespace}/{chosen.name}")
        return {}
    from placer.instance.network.measured import measured_costs  # networkx, which few instances need

    measured = read_measurements(config_map, areas)
    findings.update(measured.findings)
    return measured_costs(measured.latencies, areas)


def read_cost_lists(
    written: Iterable[diktyo.NetworkTopologyManifest],
    nodes: Mapping[str, Node],
    config_maps: Sequence[ConfigMapManifest] = (),
) -> dict[Key, dict[str, dict[Link, int]]]:
    """Read every list of every NetworkTopology: object to list to costs; what is wrong with them is not told here.

    The list of measured costs that no controller has written yet is the one that it would write.
    """
    quiet = Findings()
    found: dict[Key, dict[str, dict[Link, int]]] = {}
    for each in only_one_each(written, "NetworkTopology", GROUP, quiet).values():
        key = Key(each.namespace, each.name)
        lists = (each.spec.weights if each.spec is not None else None) or ()
        found[key] = {weights.name: _costs(weights, key, quiet) for weights in lists}
        if config_maps and NETPERF_COSTS not in found[key]:
            measured = _measured(each, config_maps, areas_of(nodes), quiet)
            found[key] |= {NETPERF_COSTS: measured} if measured else {}
    return found


def _chosen(
    written: Sequence[diktyo.NetworkTopologyManifest], named: str | None, findings: Findings
) -> diktyo.NetworkTopologyManifest | None:
    """The one that the policy names, else ``nt-default``, else the only one, else the first by name."""
    if named is not None:
        found = [each for each in written if f"{each.namespace}/{each.name}" == named]
        if found:
            return found[0]
        findings.missing(f"NetworkTopology {named}", "Policy")
    likely = [each for each in written if each.name == _DEFAULT_NAME] or written
    if not likely:
        return None
    if len(likely) > 1:
        names = ", ".join(f"{each.namespace}/{each.name}" for each in likely)
        subject = f"NetworkTopology {likely[0].namespace}/{likely[0].name}"
        message = f"{subject} counts, the first by name of {names}: no Policy says which"
        findings.add("NetworkTopologyAmbiguous", subject, message)
    return likely[0]


def _list(lists: Sequence[diktyo.CostList], named: str | None, key: Key, findings: Findings) -> diktyo.CostList | None:
    """The list that the policy names, else ``UserDefined``, else the first; None where there is none."""
    if named is not None:
        found = next((each for each in lists if each.name == named), None)
        if found is not None:
            return found
        findings.missing(f"Weights {named} of NetworkTopology {key}", "Policy")
    return next((each for each in lists if each.name == _DEFAULT_LIST), lists[0] if lists else None)


def _entries(weights: diktyo.CostList | None) -> Iterable[tuple[Link, diktyo.Cost]]:
    """Links of a list with their entries, in the order of the text."""
    for topology in (weights.topologies if weights is not None else None) or ():
        kind = _KINDS.get(topology.topology_key)
        for origin in (topology.origins or ()) if kind is not None else ():
            for cost in origin.costs or ():
                yield Link(kind or "", origin.origin, cost.destination), cost


def _costs(weights: diktyo.CostList, key: Key, findings: Findings) -> dict[Link, int]:
    """Costs of a list; of two entries for one link the later one counts, as in the plugin."""
    subject = f"NetworkTopology {key}"
    for topology_key in sorted({each.topology_key for each in weights.topologies or ()} - set(_KINDS)):
        message = (
            f"{subject}: topologyKey {topology_key} is neither {ZONE_LABEL} nor {REGION_LABEL}, its costs are unused"
        )
        findings.add("TopologyKeyUnknown", subject, message)
    found: dict[Link, int] = {}
    for link, cost in _entries(weights):
        if found.setdefault(link, cost.network_cost) != cost.network_cost:
            message = f"{subject}: the {link} has two costs, the later one counts"
            findings.add("LinkTwice", subject, message)
        found[link] = cost.network_cost
    return found


def _capacities(weights: diktyo.CostList | None) -> dict[Link, int]:
    """Capacities of a list in bit/s; what is finer than that is rounded up, as the API server does."""
    return {
        link: from_nano(BANDWIDTH, cost.bandwidth_capacity)
        for link, cost in _entries(weights)
        if cost.bandwidth_capacity is not None
    }
