"""The cluster's objects as an instance: paged lists, text in and text out.

Lists are taken one after another, those that pods refer to first and pods last, so what a pod names is there unless it
is younger than the list. Kinds that the cluster does not know are not there, which is no error; where objects refer to
one it is noted, and so is every object of a version that is not read (``served_kinds``). Nothing secret is asked for:
the only ConfigMaps are those that a NetworkTopology names.

A new node gets its pods of DaemonSets within seconds, and pods that fill it before keep them out. Where a DaemonSet
wants a pod on a node and none is, its room is held by a *placeholder pod*: it is in the snapshot alone, has no owner,
and is nominated to the node, as any pod that another scheduler is about to bind. It goes when the DaemonSet's pod
comes. A DaemonSet whose pods never come, for their size or a quota, would take a whole cluster so at no cost: room is
held for pods that fit an empty node, on nodes that are new, and on others for a DaemonSet that runs on most. Source:
Kubernetes ``pkg/controller/daemon`` (which nodes a DaemonSet wants, and what its pods tolerate beside what they say).
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property, partial
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from placer.cluster.reading.client import Forbidden, Server, Unlisted, listed, server_time, whole_list
from placer.cluster.reading.field_filter import list_reader, readable
from placer.cluster.reading.paths import is_name, segment
from placer.cluster.reading.served_kinds import ServedKinds, referred
from placer.cluster.reading.views import DaemonSetView, ObjectView, PodView, TopologyView, read_view
from placer.errors import ClusterError
from placer.instance import Key, Node
from placer.instance.eligibility import ConstraintsPool, too_long
from placer.instance.instance_builder import read_nodes
from placer.instance.pod_states import HOLD_GATE
from placer.instance.requests import pod_requests
from placer.kube.base import LONGEST_NAME, Metadata, controller
from placer.kube.core import NodeManifest
from placer.kube.kinds import BY_ATTRIBUTE, KindInfo
from placer.kube.pod import TERMINAL_PHASES, PodManifest, PodSpec
from placer.kube.unread_kinds import LIMITS, UnreadLimit
from placer.manifests import ENFORCED, NEVER_SET_ASIDE, SNAPSHOT, UNREADABLE, Objects, Text, split, validate

__all__ = [
    "LISTED",
    "TAINT",
    "VERSIONS",
    "Identity",
    "Lists",
    "Snapshot",
    "is_placeholder",
    "placeholder_for",
    "placeholders",
    "take",
    "whole_kind",
]

#: Annotation of the list that says at which resourceVersion each of the cluster's lists was.
VERSIONS = "placer.dev/resource-versions"
#: Taint of a node that cools down (:mod:`placer.cluster.reading.earlier_passes`), in the snapshot alone.
TAINT = "placer.dev/cooling-down"

_HOLD = HOLD_GATE.encode()
#: Least effort that packs well: the most takes three times as long for a tenth less.
_EFFORT = 4

#: What is listed, in this order. Workloads are not: in a cluster only pods count that exist.
LISTED = (
    "policies",
    "nodes",
    "node_resource_topologies",
    "hyper_nodes",
    "namespaces",
    "priority_classes",
    "queues",
    "pod_groups",
    "coscheduling_pod_groups",
    "upstream_pod_groups",
    "kai_pod_groups",
    "workloads",
    "app_groups",
    "network_topologies",
    "persistent_volumes",
    "persistent_volume_claims",
    "pod_disruption_budgets",
)


class Identity(NamedTuple):
    """Which pod it is, which version of it, whether it has the hold gate alone, and whether it is nominated with it."""

    uid: str
    resource_version: str
    on_hold: bool = False
    nominated: bool = False

    @classmethod
    def of(cls, item: bytes) -> tuple[Key, Identity]:
        """Read a pod's text: what it is called, and which it is."""
        pod = read_view(item, PodView if _HOLD in item else ObjectView)
        on_hold = isinstance(pod, PodView) and pod.is_on_hold
        nominated = isinstance(pod, PodView) and on_hold and bool(pod.status.nominated_node_name)
        return pod.key, cls(pod.metadata.uid, pod.metadata.resource_version, on_hold, nominated)


class Writable(Protocol):
    """What takes bytes: a file, packed or not."""

    def write(self, data: bytes, /) -> object:
        """Take some."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """What was in a cluster.

    Parameters
    ----------
    scheduler_name
        Whose pending pods are ours.
    items
        Each object as JSON text, only with the fields that placer reads.
    versions
        Resource (``pods``, ``podgroups.scheduling.volcano.sh``) to the resourceVersion of its list.
    counts
        Resource to how many of it there are.
    gates
        Whether pods that have the hold gate alone are ours (``--enforce gates``).
    """

    scheduler_name: str
    items: tuple[bytes, ...]
    versions: Mapping[str, str]
    counts: Mapping[str, int]
    gates: bool = False

    @cached_property
    def identities(self) -> Mapping[Key, Identity]:
        """Which pods there were."""
        return dict(map(Identity.of, self.of_kind("Pod")))

    def pod_texts(self, keys: Iterable[Key]) -> dict[Key, bytes]:
        """Text of some pods; one that is not there is absent."""
        wanted = frozenset(keys)
        found = ((read_view(item, ObjectView).key, item) for item in self.of_kind("Pod"))
        return {key: item for key, item in found if key in wanted}

    def of_kind(self, kind: str) -> Iterator[bytes]:
        """Text of the objects of a kind, of whichever group."""
        return (item for item in self.items if _is(item, kind))

    def without(self, kinds: Iterable[str]) -> Snapshot:
        """The same without all objects of some kinds."""
        apart = tuple(kinds)
        return replace(self, items=tuple(item for item in self.items if not any(_is(item, kind) for kind in apart)))

    def write(self, target: str | Path) -> None:
        """Write the snapshot to a file: ``.json``, or ``.json.gz``. The same snapshot gives the same bytes."""
        with open(target, "wb") as file:
            if str(target).endswith(".gz"):
                with gzip.GzipFile("", "wb", _EFFORT, file, mtime=0) as packed:
                    self.write_text(packed)
            else:
                self.write_text(file)

    def write_text(self, file: Writable) -> None:
        """Write the snapshot as a v1 List in JSON, one object a line."""
        notes = {SNAPSHOT: self.scheduler_name}
        if self.gates:
            notes[ENFORCED] = "gates"
        if self.versions:
            notes[VERSIONS] = json.dumps(dict(self.versions))
        head = json.dumps({"apiVersion": "v1", "kind": "List", "metadata": {"annotations": notes}})
        file.write(head[:-1].encode() + b', "items": [')
        for place, item in enumerate(self.items):
            file.write(b",\n" if place else b"\n")
            file.write(item)
        file.write(b"\n]}\n")

    def objects(self) -> Objects:
        """Read the objects, as reading the file gives them.

        Raises
        ------
        BadInstance
            With every fault of every object.
        """
        text = BytesIO()
        self.write_text(text)
        return validate(split([Text("cluster", text.getvalue())]), listed=True)


class Lists(Protocol):
    """Where lists come from: the server, page by page, or what is kept of them (:class:`Reflectors`)."""

    def __call__(
        self, path: str, info: KindInfo, api_version: str, watch: Callable[[int], None]
    ) -> tuple[Sequence[bytes], str]:
        """What is kept of each object of a list, and the resourceVersion of the list."""


def take(
    server: Server,
    scheduler_name: str = "placer",
    watch: Callable[[str, int], None] = lambda _, __: None,
    lists: Lists | None = None,
    *,
    gates: bool = False,
    served: ServedKinds | None = None,
) -> Snapshot:
    """Take a snapshot of a cluster.

    Parameters
    ----------
    server
        Where to ask.
    scheduler_name
        Whose pending pods are ours.
    watch
        Called after each page with the resource and the number of its objects so far.
    lists
        Gives the lists of the kinds; default: all are asked for.
    gates
        Whether pods that have the hold gate alone are ours.
    served
        Which kinds there are; default: it is asked for.

    Raises
    ------
    ClusterError
        The server does not answer or refuses.
    BadInstance
        An object has a field of a wrong type.
    """
    kinds = ServedKinds(server) if served is None else served
    taker = _Taker(server, watch, partial(whole_kind, server) if lists is None else lists, kinds)
    for attribute in LISTED:
        taker.take(BY_ATTRIBUTE[attribute])
    if taker.has("AppGroup"):  # a Deployment's pods belong to it through its ReplicaSets
        taker.take(BY_ATTRIBUTE["replica_sets"])
    taker.take_measurements()
    wanted = _daemon_sets(server)
    taker.take(BY_ATTRIBUTE["pods"])
    taker.hold_room(wanted)
    taker.note_absent()
    taker.note_limits()
    return Snapshot(
        scheduler_name=scheduler_name,
        items=tuple(taker.items),
        versions=taker.versions,
        counts=taker.counts,
        gates=gates,
    )


class _Taker:
    """Collects lists."""

    def __init__(self, server: Server, watch: Callable[[str, int], None], lists: Lists, served: ServedKinds) -> None:
        self._server, self._watch, self._lists = server, watch, lists
        self.items: list[bytes] = []
        self.versions: dict[str, str] = {}
        self.counts: dict[str, int] = {}
        self._served = served
        self._absent: list[str] = []

    def has(self, kind: str) -> bool:
        """Whether there is an object of a kind, of whichever group."""
        plurals = {info.plural for info in BY_ATTRIBUTE.values() if info.kind == kind}
        return any(count and name.partition(".")[0] in plurals for name, count in self.counts.items())

    def take(self, info: KindInfo) -> None:
        """List all objects of a kind, of each of its groups that the server has."""
        places = tuple(self._served.places(info))
        if not places:
            self._absent.append(info.attribute)
        self._take_unknown(info)
        for group, version in places:
            api_version = f"{group}/{version}" if group else version
            path = f"/apis/{api_version}/{info.plural}" if group else f"/api/{version}/{info.plural}"
            resource = f"{info.plural}.{group}" if group else info.plural
            items, self.versions[resource] = self._lists(path, info, api_version, partial(self._watch, resource))
            self.items += items
            self.counts[resource] = len(items)

    def _take_unknown(self, info: KindInfo) -> None:
        """Note the objects of a kind that is served in versions alone that are not read: they are there."""
        expected = f"{info.group}/{info.versions[0]}"
        for group, version in self._served.other_places(info):
            for each in listed(self._server.get, f"/apis/{group}/{version}/{info.plural}", ObjectView):
                if info.attribute in NEVER_SET_ASIDE:
                    raise ClusterError(
                        f"{info.kind} {each.metadata.name}: found {group}/{version}, expected {expected}"
                    )
                namespace = each.metadata.namespace if info.namespaced else ""
                wrong = f"apiVersion: found {group}/{version}, which is not read, expected {expected}"
                self.items.append(_unreadable(expected, info.kind, namespace, each.metadata.name, wrong))

    def note_absent(self) -> None:
        """Note the kinds that the server does not serve and that objects refer to."""
        for info in referred(self._absent, self.items):
            expected = f"{info.group}/{info.versions[0]}"
            wrong = f"found no such kind in the cluster, expected {expected}, which objects refer to"
            self.items.append(_unreadable(expected, info.kind, "", "*", wrong))

    def note_limits(self) -> None:
        """Note kinds that are not read and that limit pods: those that pods name, and those of whole namespaces."""
        for limit in LIMITS:
            marks = [json.dumps(each).encode() for each in limit.marks]
            is_named = any(mark in item for item in self.items if _is(item, "Pod") for mark in marks)
            if not limit.on_making and (is_named or limit.of_namespace):
                for group in limit.groups:
                    self._note_limit(limit, group)

    def _note_limit(self, limit: UnreadLimit, group: str) -> None:
        version = self._served.version_of(group, limit.plural)
        if version is None:
            return
        found = [("", "*")]
        if limit.of_namespace:
            with suppress(Forbidden):  # then it may limit any
                listing = listed(self._server.get, f"/apis/{group}/{version}/{limit.plural}", ObjectView)
                found = [(each.metadata.namespace, each.metadata.name) for each in listing]
        for namespace, name in found:
            metadata = {"namespace": namespace, "name": name}
            document = {"apiVersion": f"{group}/{version}", "kind": limit.kind, "metadata": metadata}
            self.items.append(msgspec.json.encode(document))

    def hold_room(self, wanted: Iterable[DaemonSetView]) -> None:
        """Add what holds room for pods of DaemonSets that are not there yet."""
        nodes = (item for item in self.items if _is(item, "Node"))
        pods = (item for item in self.items if _is(item, "Pod"))
        self.items += list(placeholders(wanted, nodes, pods, server_time(self._server)))

    def take_measurements(self) -> None:
        """Get the ConfigMaps that NetworkTopologies name."""
        info = BY_ATTRIBUTE["config_maps"]
        for namespace, name in sorted(self._measurements()):
            if not is_name(name):
                continue  # no ConfigMap has it, and a path could lead anywhere; the reference is a finding
            try:
                answer = self._server.get(f"/api/v1/namespaces/{segment(namespace)}/configmaps/{segment(name)}")
            except Forbidden:
                found = "found no right to read it, expected a Role in its namespace (deploy/measurements)"
                self.items.append(_unreadable("v1", "ConfigMap", namespace, name, found))
                continue
            if answer.status == 200:
                listed = b'{"metadata": {}, "items": [' + answer.text + b"]}"
                self.items += list_reader(info, "v1").read(listed).items or ()
                self.counts["configmaps"] = self.counts.get("configmaps", 0) + 1

    def _measurements(self) -> Iterator[tuple[str, str]]:
        for item in self.items:
            if _is(item, "NetworkTopology"):
                topology = read_view(item, TopologyView)
                if topology.measurements:
                    yield topology.metadata.namespace, topology.measurements


def whole_kind(
    server: Server, path: str, info: KindInfo, api_version: str, watch: Callable[[int], None]
) -> tuple[list[bytes], str]:
    """Ask for all pages of a list of a kind that the server says it has: what is kept of its objects, and its version.

    Parameters
    ----------
    server
        Where to ask.
    path
        Of the list.
    info, api_version
        The kind, and the version in which it is served there.
    watch
        Called after each page with the number of objects so far.

    Raises
    ------
    ClusterError
        The server does not answer or refuses, or does not know the list.
    """
    try:
        found = whole_list(server.get, path, list_reader(info, api_version).read, watch=watch)
    except Unlisted as error:
        if error.answer.status == 404:
            raise ClusterError(f"{path}: found status 404, but the server lists the kind") from error
        raise
    return [item for page in found for item in page.items or ()], found[0].metadata.resource_version


def _is(item: bytes, kind: str) -> bool:
    """Whether an object is of a kind: of what is kept apiVersion and kind come first."""
    return item.split(b'"kind":"', 1)[-1].startswith(f'{kind}"'.encode())


def _unreadable(api_version: str, kind: str, namespace: str, name: str, wrong: str) -> bytes:
    """What is kept of an object of which nothing can be read: what it is called, and why."""
    metadata = {"namespace": namespace, "name": name, "annotations": {UNREADABLE: wrong}}
    return msgspec.json.encode({"apiVersion": api_version, "kind": kind, "metadata": metadata})


# --------------------------------------------------------------------------------------------------------- DaemonSets

#: Its pods would be ours to place otherwise, should they name our scheduler.
_OTHER_SCHEDULER = "daemonset-controller"
_KIND = "DaemonSet"
#: What takes room, and what ports, of a pod's spec.
_ROOM = ("containers", "initContainers", "resources", "overhead", "hostNetwork")
#: Taints that the controller lets its pods tolerate; a node that is not Ready gets nothing from us anyhow.
_TOLERATED = ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
_TOLERATED_ON_HOST = "network-unavailable"
#: For how long a node is new.
_NEW = timedelta(minutes=10)


def _daemon_sets(server: Server) -> list[DaemonSetView]:
    """List the DaemonSets that are not being deleted."""
    found = list(listed(server.get, "/apis/apps/v1/daemonsets", DaemonSetView))
    return [each for each in found if each.metadata.deletion_timestamp is None]


def placeholders(
    wanted: Iterable[DaemonSetView], nodes: Iterable[bytes], pods: Iterable[bytes], now: datetime
) -> Iterator[bytes]:
    """Make the pods that hold room for those that are not there yet.

    Parameters
    ----------
    wanted
        DaemonSets.
    nodes, pods
        Of the cluster, as a snapshot keeps them.
    now
        When, by the server's clock.
    """
    ordered = sorted(wanted, key=lambda each: (each.metadata.namespace, each.metadata.name))
    if not ordered:
        return
    there = set(_there(pods))
    written_nodes = list(readable(BY_ATTRIBUTE["nodes"], nodes))
    by_name = read_nodes(written_nodes)
    new = {name: by_name[name] for name in _new_nodes(written_nodes, now)}
    for each in ordered:
        namespace, name, spec = each.metadata.namespace, each.metadata.name, each.pod_spec
        written = _foreseen(namespace, name, spec)
        if written is None:
            wrong = "spec.template.spec: found what cannot be read, or is too long, expected the spec of a pod"
            yield _unreadable("apps/v1", _KIND, namespace, name, wrong)
            continue
        held = {key: value for key, value in spec.items() if key in _ROOM}
        pod = msgspec.json.decode(_pod(namespace, name, held | {"schedulerName": _OTHER_SCHEDULER}))
        for node in _open_to(written.spec, by_name if each.is_running else new):
            if (Key(namespace, name), node) not in there:
                metadata = {"name": _name(name, node), "namespace": namespace}
                yield msgspec.json.encode(pod | {"metadata": metadata, "status": {"nominatedNodeName": node}})


def _foreseen(namespace: str, name: str, spec: dict[str, Any]) -> PodManifest | None:
    """A pod of a DaemonSet as its controller makes it; None where its spec is none, or longer than is looked at."""
    try:
        found = next(readable(BY_ATTRIBUTE["pods"], [_pod(namespace, name, _tolerant(spec))]), None)
    except (msgspec.ValidationError, TypeError):
        return None
    return None if found is None or any(too_long(found.spec)) else found


def _open_to(spec: PodSpec, nodes: Mapping[str, Node]) -> Iterator[str]:
    """Nodes that pods may run on, and would have room on were they empty."""
    constraints, requests = ConstraintsPool().of(spec), pod_requests(spec)
    for name, node in nodes.items():
        if constraints.admits(node) and requests.fits(node.allocatable):
            yield name


def _new_nodes(nodes: Iterable[NodeManifest], now: datetime) -> Iterator[str]:
    """Names of nodes that came a short while ago, or do not say when."""
    for node in nodes:
        since = node.metadata.creation_timestamp
        if since is None or now - since < _NEW:
            yield node.name


def placeholder_for(metadata: Metadata, namespace: str, node: str) -> Key | None:
    """The placeholder that a pod takes the place of when it is on a node; None for a pod of no DaemonSet."""
    owner = controller(metadata)
    return Key(namespace, _name(owner.name, node)) if owner is not None and owner.kind == _KIND else None


def is_placeholder(key: Key) -> bool:
    """Whether a pod is a placeholder; no name of a real one has a colon."""
    return ":" in key.name


def _name(daemon_set: str, node: str) -> str:
    name = f"{daemon_set}:{node}"
    return name if len(name) <= LONGEST_NAME else f":{hashlib.sha256(name.encode()).hexdigest()}"


def _there(pods: Iterable[bytes]) -> Iterator[tuple[Key, str]]:
    """DaemonSets and nodes on which they have a pod that has not ended."""
    for item in pods:
        if b'"DaemonSet"' in item:
            pod = read_view(item, PodView)
            for owner in pod.metadata.owner_references or ():
                if owner.kind == _KIND and pod.spec.node_name and pod.status.phase not in TERMINAL_PHASES:
                    yield Key(pod.metadata.namespace, owner.name), pod.spec.node_name


def _tolerant(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec with what the controller adds to it."""
    taints = (*_TOLERATED, _TOLERATED_ON_HOST) if spec.get("hostNetwork") else _TOLERATED
    added = [{"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoSchedule"} for taint in taints]
    return {**spec, "tolerations": [*(spec.get("tolerations") or ()), *added]}


def _pod(namespace: str, name: str, spec: dict[str, Any]) -> bytes:
    """A pod, with what a snapshot keeps of one."""
    pod = msgspec.json.encode({"metadata": {"name": name, "namespace": namespace}, "spec": spec})
    return list_reader(BY_ATTRIBUTE["pods"], "v1").object(pod)
