"""Texts that controllers of KEP-260 and Volcano would write: pure functions from objects to a status or a spec.

Callers give the time; a result without news equals the text in the object. Unlike in the shipped controllers
(diktyo-io/appgroup-controller, 7c96ee2; diktyo-io/networktopology-controller, 5db810e; Volcano 1.15.1) the order of an
AppGroup is keyed by selector, of the present spec, and whole; lists of users keep every field; nodes are counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from placer.kube.apps import ReplicaSetManifest
from placer.kube.core import ConfigMapManifest
from placer.kube.pod import PodManifest
from placer.kube.scheduler_plugins import AppGroupManifest, AppGroupStatus, AppGroupWorkload
from placer.problem import Finding, Instance, Key, Link, Network, Node, Spread
from placer.problem.communication import REGION, REGION_LABEL, ZONE, ZONE_LABEL
from placer.problem.findings import Findings
from placer.problem.network_objects import (
    APP_GROUP_API,
    MILLISECOND,
    NETPERF_COSTS,
    areas_of,
    measured_costs,
    read_app_group_members,
    read_app_groups,
    read_measurements,
    sort_workloads,
    workload_name,
)
from placer.problem.pod_states import bound_at


def timestamp(time: datetime) -> str:
    """Write a time as Kubernetes does: UTC, whole seconds, rounded down; ValueError without a time zone."""
    if time.tzinfo is None:
        raise ValueError(f"time: found {time.isoformat()} without a time zone, expected one")
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


Document = Mapping[str, Any]


def app_group_statuses(
    app_groups: Iterable[AppGroupManifest],
    pods: Iterable[PodManifest],
    replica_sets: Iterable[ReplicaSetManifest],
    now: datetime,
) -> dict[Key, Document]:
    """Status of every AppGroup by namespace and name, sorted; ``app_groups`` and ``pods`` must be complete."""
    # The group in use wins over an older one.
    written = sorted(app_groups, key=lambda each: each.group == APP_GROUP_API)
    all_pods = list(pods)
    members = read_app_group_members(all_pods, read_app_groups(written, Findings()), replica_sets, Findings())
    inside: dict[Key, list[PodManifest]] = {Key(each.namespace, each.name): [] for each in written}
    for pod in all_pods:
        member = members.get(Key(pod.namespace, pod.name))
        if member is not None:
            inside[member[0]].append(pod)
    latest = {Key(each.namespace, each.name): each for each in written}
    return {key: app_group_status(latest[key], inside[key], now) for key in sorted(latest)}


def _runs(pod: PodManifest) -> bool:
    return pod.metadata.deletion_timestamp is None and pod.status is not None and pod.status.phase == "Running"


def app_group_status(app_group: AppGroupManifest, pods: Iterable[PodManifest], now: datetime) -> Document:
    """Status of one AppGroup with its pods; ``now`` has a time zone.

    ``scheduleStartTime`` is kept. ``topologyOrder`` is sorted by selector, as the TopologicalSort plugin searches it.
    """
    present = list(pods)
    before = app_group.status or AppGroupStatus()
    order = _topology_order(app_group)
    bound = (bound_at(pod) or now for pod in present if pod.spec.node_name)
    started = before.schedule_start_time or min(bound, default=None)
    calculated = before.topology_calculation_time if _is_same_order(before, order) else None
    status: dict[str, Any] = {
        "runningWorkloads": sum(map(_runs, present)),
        "topologyCalculationTime": timestamp(calculated or now),
        "topologyOrder": order,
    }
    return status if started is None else status | {"scheduleStartTime": timestamp(started)}


def _topology_order(app_group: AppGroupManifest) -> list[Document]:
    (application,) = read_app_groups([app_group], Findings()).values()
    calls: dict[str, list[str]] = {}
    for dependency in application.app_group.dependencies:
        calls.setdefault(dependency.origin, []).append(dependency.destination)
    found = sort_workloads(application.spec.topology_sorting_algorithm, application.app_group.workloads, calls)
    listed = (app_group.spec.workloads if app_group.spec is not None else None) or ()
    called = [each.workload for one in listed for each in one.dependencies or ()]
    references = {workload_name(each): each for each in [*called, *(one.workload for one in reversed(listed))]}
    return [{"workload": _document(references[name]), "index": index} for name, index in sorted(found.indices.items())]


def _document(workload: AppGroupWorkload) -> Document:
    fields = {
        "kind": workload.kind,
        "apiVersion": workload.api_version,
        "namespace": workload.namespace,
        "name": workload.name,
        "selector": workload.selector,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _is_same_order(before: AppGroupStatus, order: Iterable[Document]) -> bool:
    stands = {workload_name(each.workload): each.index for each in before.topology_order or ()}
    return stands == {entry["workload"].get("selector") or entry["workload"]["name"]: entry["index"] for entry in order}


CONSISTENT = "placer.dev/Consistent"
_MESSAGE = 1000


def hyper_node_statuses(written: Iterable[Document], instance: Instance, now: datetime) -> dict[str, dict[str, Any]]:
    """HyperNode to its status; ``written`` are the objects as JSON, ``now`` has a time zone.

    The condition ``placer.dev/Consistent`` has the code of the first finding, or ``BrokenBelow``.
    """
    tree, counts = instance.topology, Counter[str]()
    for each in tree.hyper_nodes.values():
        counts.update(dict.fromkeys(tree.paths[each.name], len(each.nodes)))
    found: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in sorted(instance.findings):
        found[finding.object].append(finding)
    statuses: dict[str, dict[str, Any]] = {}
    for document in written:
        name = document["metadata"]["name"]
        count = {"nodeCount": counts[name]} if name in tree.hyper_nodes else {}
        condition = _condition(found[f"HyperNode {name}"], is_whole=bool(count))
        statuses[name] = count | {"conditions": [_with_time(condition, document, now)]}
    return statuses


def _condition(findings: Iterable[Finding], *, is_whole: bool) -> dict[str, str]:
    said, reason = list(findings), ""
    if said:
        reason, message = said[0].code, "; ".join(each.message for each in said)[:_MESSAGE]
    elif not is_whole:
        reason, message = "BrokenBelow", "left out of the tree with a HyperNode below it, whose condition says why"
    else:
        return {"type": CONSISTENT, "status": "True", "reason": "Consistent", "message": ""}
    return {"type": CONSISTENT, "status": "False", "reason": reason, "message": message}


def _with_time(condition: dict[str, str], written: Document, now: datetime) -> dict[str, str]:
    conditions = (written.get("status") or {}).get("conditions") or ()
    before = next((each for each in conditions if each["type"] == CONSISTENT), None)
    kept = before is not None and before["status"] == condition["status"]
    since = before["lastTransitionTime"] if before is not None and kept else timestamp(now)
    return {**condition, "lastTransitionTime": since}


#: Names of the lists of topologies, origins and costs.
_SHIPPED = ("topologyList", "originList", "costList")
_PROPOSED = ("costList", "originCosts", "costs")
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
    lists, origin_lists, cost_lists = _PROPOSED if group == _PROPOSED_GROUP else _SHIPPED
    user, before = (dict(_entries(_named(written, name))) for name in ("UserDefined", NETPERF_COSTS))
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
            origin_lists: [{"origin": origin, cost_lists: entries} for origin, entries in found.items()],
        }
        for kind, found in origins.items()
        if found
    ]
    return {"name": NETPERF_COSTS, lists: topologies} if topologies else None


def _named(written: Document, name: str) -> Document | None:
    return next((each for each in (written.get("spec") or {}).get("weights") or () if each.get("name") == name), None)


def _entries(written: Document | None) -> Iterator[tuple[Link, Document]]:
    for topology in _either(written or {}, 0):
        kind = next((kind for kind, key in _KEYS.items() if key == topology.get("topologyKey")), None)
        for origin in _either(topology, 1) if kind is not None else ():
            for entry in _either(origin, 2):
                yield Link(kind or "", origin["origin"], entry["destination"]), entry


def _either(written: Document, level: int) -> list[Document]:
    shipped, proposed = (written.get(names[level]) for names in (_SHIPPED, _PROPOSED))
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
