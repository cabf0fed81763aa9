"""Status of AppGroups, NetworkTopologies and HyperNodes by server-side apply (docs/passes.md).

Only fields without another field manager are written, and only where one changes; differing fields of others are
reported, and so are refusals. The owners are in ``metadata.managedFields`` (Kubernetes, "Server-Side Apply"). A list
that is not declared a map is one field with its whole content, as ``spec.weights`` of a NetworkTopology. Nothing here
ends a pass.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from placer.base.errors import ClusterError
from placer.kube.kinds import BY_ATTRIBUTE, KindInfo
from placer.kube.manifests import Objects
from placer.passes.cluster.reading.client import APPLY, Writer, listed, server_time
from placer.passes.cluster.reading.paths import segment
from placer.passes.cluster.reading.served_kinds import ServedKinds
from placer.passes.cluster.reading.snapshot import Snapshot
from placer.problem import Instance, Key
from placer.topology.controllers import (
    allocated_bandwidth,
    app_group_statuses,
    hyper_node_statuses,
    network_topology_update,
)

__all__ = ["CONTROLLED", "FIELD_MANAGER", "ControllerReport", "field_update", "write_controlled"]

#: Who owns the fields that are written.
FIELD_MANAGER = "placer-controllers"
_WORKERS = 8
#: Seconds to wait for an answer: a pass that is to end waits for it too.
_PATIENCE = 5.0
#: Fields of an AppGroup's status.
_APP_GROUP_FIELDS = ("runningWorkloads", "scheduleStartTime", "topologyCalculationTime", "topologyOrder")
_WEIGHTS = ("spec", "weights")

Document = dict[str, Any]
Path = tuple[str, ...]
Wanted = dict[Path, Any]


@dataclass
class ControllerReport:
    """Number of written objects, fields left to others, findings, and refusals."""

    written: int = 0
    left: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Read:
    instance: Instance
    objects: Objects
    now: datetime
    findings: list[str]


def _app_groups(stored: Iterable[Document], read: _Read) -> Iterator[tuple[Document, Wanted]]:
    objects = read.objects
    statuses = app_group_statuses(objects.app_groups, objects.pods, objects.replica_sets, read.now)
    for each in stored:
        status = statuses.get(_key(each))
        if status is not None:  # else it is younger than the snapshot
            yield each, {("status", name): status.get(name) for name in _APP_GROUP_FIELDS}


def _network_topologies(stored: Iterable[Document], read: _Read) -> Iterator[tuple[Document, Wanted]]:
    maps = {Key(each.namespace, each.name): each for each in read.objects.config_maps}
    taken = allocated_bandwidth(read.instance)
    for each in stored:
        name = (each.get("spec") or {}).get("configmapName")
        if not name:  # its definition asks for a name where there is a spec, and for no spec
            read.findings.append(f"NetworkTopology {_key(each)}: spec.configmapName is missing: nothing is written")
            continue
        measured = maps.get(Key(_key(each).namespace, name))
        nodes = read.instance.nodes
        made = network_topology_update(each, nodes=nodes, config_map=measured, allocated=taken, now=read.now)
        read.findings.extend(map(str, made.findings))
        status: Wanted = {("status", field): made.status.get(field) for field in ("nodeCount", "weightCalculationTime")}
        if field_update(each, {_WEIGHTS: made.weights}).left:  # no costs are written, so their time stays
            status["status", "weightCalculationTime"] = (each.get("status") or {}).get("weightCalculationTime")
        # Applied without it, a name that is ours alone would go.
        yield each, {("spec", "configmapName"): name, _WEIGHTS: made.weights, **status}


def _hyper_nodes(stored: Iterable[Document], read: _Read) -> Iterator[tuple[Document, Wanted]]:
    there = list(stored)
    statuses = hyper_node_statuses(there, read.instance, read.now)
    for each in there:
        status = statuses[each["metadata"]["name"]]
        yield each, {("status", name): status.get(name) for name in ("nodeCount", "conditions")}


_Work = Callable[[Iterable[Document], _Read], Iterator[tuple[Document, Wanted]]]
#: Kind to its attribute in the table of kinds, the subresource that is written, and what is to be written.
_CONTROLLERS: Mapping[str, tuple[str, str, _Work]] = {
    "AppGroup": ("app_groups", "", _app_groups),
    "NetworkTopology": ("network_topologies", "", _network_topologies),
    "HyperNode": ("hyper_nodes", "/status", _hyper_nodes),
}
#: Kind to the group and the resource that are patched.
CONTROLLED = {
    kind: (BY_ATTRIBUTE[attribute].group, f"{BY_ATTRIBUTE[attribute].plural}{below}")
    for kind, (attribute, below, _) in _CONTROLLERS.items()
}


def write_controlled(
    server: Writer,
    kinds: Iterable[str],
    snapshot: Snapshot,
    instance: Instance,
    limit: float,
    stop: threading.Event,
) -> ControllerReport:
    """Write the fields of controllers.

    Parameters
    ----------
    kinds
        A kind that is not served has no objects.
    limit
        Seconds for all of it; the next pass writes the rest.
    """
    report, until = ControllerReport(), time.monotonic() + limit
    kept = tuple(item for kind in ("AppGroup", "Pod", "ReplicaSet", "ConfigMap") for item in snapshot.of_kind(kind))
    read = _Read(instance, replace(snapshot, items=kept).objects(), server_time(server), report.findings)
    for kind in sorted(set(kinds)):
        attribute, below, work = _CONTROLLERS[kind]
        try:
            wanted = list(work(_stored(server, BY_ATTRIBUTE[attribute]), read))
        except ClusterError as error:
            report.troubles.append(f"{kind}: {error}")
            continue
        with ThreadPoolExecutor(_WORKERS) as threads:
            more = threads.map(
                lambda each, info=BY_ATTRIBUTE[attribute], below=below: (
                    _write(server, info, below, *each)
                    if not stop.is_set() and time.monotonic() < until
                    else ControllerReport()
                ),
                wanted,
            )
        for one in more:
            report.written += one.written
            report.left += one.left
            report.troubles += one.troubles
    return report


def _stored(server: Writer, info: KindInfo) -> list[Document]:
    versions = [version for group, version in ServedKinds(server).places(info) if group == info.group]
    return [
        {**each, "apiVersion": f"{info.group}/{version}", "kind": info.kind}
        for version in versions
        for each in listed(server.get, f"/apis/{info.group}/{version}/{info.plural}", Document)
    ]


def _write(server: Writer, info: KindInfo, below: str, stored: Document, wanted: Wanted) -> ControllerReport:
    key, report = _key(stored), ControllerReport()
    subject = f"{info.kind} {key.namespace}/{key.name}" if info.namespaced else f"{info.kind} {key.name}"
    update = field_update(stored, wanted)
    report.left = [f"{subject}: {each}" for each in update.left]
    if update.document is None:
        return report
    space = f"namespaces/{segment(key.namespace)}/" if info.namespaced else ""
    path = f"/apis/{stored['apiVersion']}/{space}{info.plural}/{segment(key.name)}{below}"
    parameters = {"fieldManager": FIELD_MANAGER, "force": "false"}
    try:
        answer = server.send("PATCH", path, update.document, parameters=parameters, kind=APPLY, timeout=_PATIENCE)
    except ClusterError as error:  # the next pass finds it as it is
        report.troubles.append(f"{subject}: {error}")
        return report
    report.written = int(answer.status == 200)
    if answer.status != 200:
        hint = "; deploy/overlays/controllers gives the right" if answer.status == 403 else ""
        report.troubles.append(f"{subject}: {answer.status} {answer.message}{hint}")
    return report


def _key(stored: Document) -> Key:
    return Key(stored["metadata"].get("namespace", ""), stored["metadata"]["name"])


# ------------------------------------------------------------------------------------------------- fields and owners


class FieldUpdate(NamedTuple):
    """A configuration to apply, and fields left to others (:func:`field_update`)."""

    document: Document | None
    left: tuple[str, ...] = ()


def field_update(stored: Document, wanted: Wanted) -> FieldUpdate:
    """Compare fields with their wanted values.

    A field with its wanted value is left to its owner. A field that is to be removed is, where the controller alone
    owns it.

    Parameters
    ----------
    wanted
        Path of every field that the controller may write to its value; None: absent.

    Returns
    -------
    FieldUpdate
        The apply configuration, of the version that was read, or None where nothing changes; and differing fields of
        other owners, as ``PATH (MANAGER)``.
    """
    owners = {path: _owners(stored, path) for path in wanted}
    given = _given({path: value for path, value in wanted.items() if owners[path] <= {_OURS}})
    differs = _differing(stored, wanted)
    left = tuple(_left(path, owners[path]) for path in differs if path not in given)
    owned = {path for path, found in owners.items() if _OURS in found}
    is_kept = given.keys().isdisjoint(differs) and owned <= given.keys()
    return FieldUpdate(None if is_kept else _configuration(stored, given), left)


def _left(path: Path, owners: frozenset[tuple[str, str]]) -> str:
    return f"{'.'.join(path)} ({', '.join(sorted(name for name, _ in owners - {_OURS}))})"


def _differing(stored: Document, wanted: Wanted) -> list[Path]:
    return [path for path, value in _given(wanted).items() if _value(stored, path) != value]


def _given(wanted: Wanted) -> Wanted:
    return {path: value for path, value in wanted.items() if value is not None}


#: Name and operation: fields that somebody updates under our name are not ours to apply.
_OURS = (FIELD_MANAGER, "Apply")


def _owners(stored: Document, path: Path) -> frozenset[tuple[str, str]]:
    found = set()
    for entry in stored["metadata"].get("managedFields") or ():
        fields: Any = entry.get("fieldsV1") or {}
        for name in path:
            fields = fields.get(f"f:{name}") if fields is not None else None
        if fields is not None:
            found.add((entry.get("manager", ""), entry.get("operation", "")))
    return frozenset(found)


def _value(stored: Document, path: Path) -> Any:
    found: Any = stored
    for name in path:
        found = (found or {}).get(name)
    return found


def _configuration(stored: Document, given: Wanted) -> dict[str, Any]:
    names = ("name", "namespace", "resourceVersion")
    metadata = {name: stored["metadata"][name] for name in names if name in stored["metadata"]}
    document: dict[str, Any] = {"apiVersion": stored["apiVersion"], "kind": stored["kind"], "metadata": metadata}
    for (*above, name), value in given.items():
        inside = document
        for each in above:
            inside = inside.setdefault(each, {})
        inside[name] = value
    return document
