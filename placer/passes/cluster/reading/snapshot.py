"""The cluster's objects as an instance: paged lists, text in and text out.

Pods are listed last, so that every object that a pod names is there unless it is younger. Absent kinds that objects
refer to, and unread versions, are noted. The only ConfigMaps are those that a NetworkTopology names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from gzip import GzipFile
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from placer.base.errors import ClusterError
from placer.kube.kinds import BY_ATTRIBUTE, KindInfo
from placer.kube.manifests import ENFORCED, NEVER_SET_ASIDE, SNAPSHOT, Objects, Text, split, validate
from placer.kube.unread_kinds import LIMITS, UnreadLimit
from placer.passes.cluster.reading.client import Forbidden, Server, Unlisted, listed, server_time, whole_list
from placer.passes.cluster.reading.daemon_sets import (
    DAEMON_SETS,
    DAEMON_SETS_PATH,
    daemon_room,
    new_nodes,
    trusted_namespaces,
)
from placer.passes.cluster.reading.field_filter import is_of_kind, list_reader, readable, unreadable, within_bytes
from placer.passes.cluster.reading.paths import is_name, segment
from placer.passes.cluster.reading.served_kinds import ServedKinds, referred
from placer.passes.cluster.reading.views import ObjectView, PodView, TopologyView, read_view
from placer.problem import Key
from placer.problem.instance_builder import KeptFacts, read_nodes
from placer.problem.pod_states import HOLD_GATE

__all__ = [
    "LISTED",
    "TAINT",
    "VERSIONS",
    "Identity",
    "Lists",
    "Snapshot",
    "take",
    "whole_kind",
]

#: Annotation of the list that says at which resourceVersion each of the cluster's lists was.
VERSIONS = "placer.dev/resource-versions"
#: Taint of a node that cools down (:mod:`placer.passes.cluster.reading.earlier_passes`), in the snapshot alone.
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
    """Uid and version of a pod, whether it has the hold gate alone, and whether it is then nominated."""

    uid: str
    resource_version: str
    on_hold: bool = False
    nominated: bool = False

    @classmethod
    def of(cls, item: bytes) -> tuple[Key, Identity]:
        """Name and identity of a pod, from its text."""
        pod = read_view(item, PodView if _HOLD in item else ObjectView)
        on_hold = isinstance(pod, PodView) and pod.is_on_hold
        nominated = isinstance(pod, PodView) and on_hold and bool(pod.status.nominated_node_name)
        return pod.key, cls(pod.metadata.uid, pod.metadata.resource_version, on_hold, nominated)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The objects of a cluster at one time."""

    scheduler_name: str  #: whose pending pods are ours
    items: tuple[bytes, ...]  #: JSON texts of the objects, with the fields that placer reads
    #: Resource (``pods``, ``podgroups.scheduling.volcano.sh``) to the resourceVersion of its list.
    versions: Mapping[str, str]
    counts: Mapping[str, int]  #: resource to the number of its objects
    gates: bool = False  #: whether pods that have the hold gate alone are ours (``--enforce gates``)
    #: Namespace to its coming pods of DaemonSets for which no room is held.
    no_room: Mapping[str, int] = field(default_factory=dict)
    #: Facts of objects that are kept between readings; None: none are.
    kept: KeptFacts | None = field(default=None, compare=False, repr=False)

    @cached_property
    def identities(self) -> Mapping[Key, Identity]:
        """Name to identity of every pod."""
        return dict(map(Identity.of, self.of_kind("Pod")))

    def pod_texts(self, keys: Iterable[Key]) -> dict[Key, bytes]:
        """Texts of those of some pods that are there."""
        wanted = frozenset(keys)
        found = ((read_view(item, ObjectView).key, item) for item in self.of_kind("Pod"))
        return {key: item for key, item in found if key in wanted}

    def of_kind(self, kind: str) -> Iterator[bytes]:
        """Texts of the objects of a kind, of any group."""
        return (item for item in self.items if is_of_kind(item, kind))

    def within(self, most: int) -> Snapshot:
        """The same with at most so many bytes of long texts of each namespace (:func:`within_bytes`)."""
        return replace(self, items=within_bytes(self.items, most))

    def without(self, kinds: Iterable[str]) -> Snapshot:
        """The snapshot without the objects of some kinds."""
        apart = tuple(kinds)
        return replace(
            self, items=tuple(item for item in self.items if not any(is_of_kind(item, kind) for kind in apart))
        )

    def write(self, target: str | Path) -> None:
        """Write the snapshot to a file, ``.json`` or ``.json.gz``; the same snapshot gives the same bytes."""
        with open(target, "wb") as file:
            if str(target).endswith(".gz"):
                with GzipFile("", "wb", _EFFORT, file, mtime=0) as packed:
                    self.write_text(packed)
            else:
                self.write_text(file)

    def write_text(self, file: BinaryIO | GzipFile) -> None:
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

    def text(self) -> Text:
        """The snapshot as the text of a file, to be read as an instance."""
        text = BytesIO()
        self.write_text(text)
        return Text("cluster", text.getvalue())

    def objects(self) -> Objects:
        """Read the objects, as from a file.

        Raises
        ------
        BadInstance
            With every fault of every object.
        """
        if self.kept is None:
            return validate(split([self.text()]), listed=True)
        return self.kept.objects.read(self.items, lambda items: replace(self, items=tuple(items)).text())


#: Source of lists: the server, page by page, or kept ones (:class:`Reflectors`). It gives filtered texts of the objects
#: of a list, and its resourceVersion.
Lists = Callable[[str, KindInfo, str, Callable[[int], None]], tuple[Sequence[bytes], str]]


def take(
    server: Server,
    scheduler_name: str = "placer",
    watch: Callable[[str, int], None] = lambda _, __: None,
    lists: Lists | None = None,
    *,
    gates: bool = False,
    served: ServedKinds | None = None,
    kept: KeptFacts | None = None,
) -> Snapshot:
    """Take a snapshot of a cluster.

    Raises
    ------
    ClusterError
        The server does not answer or refuses.
    BadInstance
        An object has a field of a wrong type.
    """
    if kept is not None:
        kept.forget_unused()
    kinds = ServedKinds(server) if served is None else served
    taker = _Taker(server, watch, partial(whole_kind, server) if lists is None else lists, kinds)
    for attribute in LISTED:
        taker.take(BY_ATTRIBUTE[attribute])
    if taker.has("AppGroup"):  # a Deployment's pods belong to it through its ReplicaSets
        taker.take(BY_ATTRIBUTE["replica_sets"])
    taker.take_measurements()
    wanted = taker.daemon_sets()
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
        no_room=taker.no_room,
        kept=kept,
    )


class _Taker:
    def __init__(self, server: Server, watch: Callable[[str, int], None], lists: Lists, served: ServedKinds) -> None:
        self._server, self._watch, self._lists = server, watch, lists
        self.items: list[bytes] = []
        self.versions: dict[str, str] = {}
        self.counts: dict[str, int] = {}
        self._served = served
        self._absent: list[str] = []
        self.no_room: Mapping[str, int] = {}

    def has(self, kind: str) -> bool:
        plurals = {info.plural for info in BY_ATTRIBUTE.values() if info.kind == kind}
        return any(count and name.partition(".")[0] in plurals for name, count in self.counts.items())

    def take(self, info: KindInfo) -> None:
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
        expected = f"{info.group}/{info.versions[0]}"
        for group, version in self._served.other_places(info):
            for each in listed(self._server.get, f"/apis/{group}/{version}/{info.plural}", ObjectView):
                if info.attribute in NEVER_SET_ASIDE:
                    raise ClusterError(
                        f"{info.kind} {each.metadata.name}: found {group}/{version}, expected {expected}"
                    )
                namespace = each.metadata.namespace if info.namespaced else ""
                wrong = f"apiVersion: found {group}/{version}, which is not read, expected {expected}"
                self.items.append(unreadable(expected, info.kind, namespace, each.metadata.name, wrong))

    def note_absent(self) -> None:
        for info in referred(self._absent, self.items):
            expected = f"{info.group}/{info.versions[0]}"
            wrong = f"found no such kind in the cluster, expected {expected}, which objects refer to"
            self.items.append(unreadable(expected, info.kind, "", "*", wrong))

    def note_limits(self) -> None:
        """Note unread kinds that limit pods: those that pods name, and those of whole namespaces."""
        for limit in LIMITS:
            marks = [json.dumps(each).encode() for each in limit.marks]
            is_named = any(mark in item for item in self.items if is_of_kind(item, "Pod") for mark in marks)
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

    def daemon_sets(self) -> Sequence[bytes]:
        return self._lists(DAEMON_SETS_PATH, DAEMON_SETS, "apps/v1", partial(self._watch, DAEMON_SETS.plural))[0]

    def hold_room(self, wanted: Iterable[bytes]) -> None:
        nodes = list(readable(BY_ATTRIBUTE["nodes"], (item for item in self.items if is_of_kind(item, "Node"))))
        new = new_nodes(nodes, server_time(self._server))
        pods = (item for item in self.items if is_of_kind(item, "Pod"))
        items, self.no_room = daemon_room(wanted, read_nodes(nodes), new, pods, trusted_namespaces(self.items))
        self.items += items

    def take_measurements(self) -> None:
        info = BY_ATTRIBUTE["config_maps"]
        for namespace, name in sorted(self._measurements()):
            if not is_name(name):
                continue  # no ConfigMap has it, and a path could lead anywhere; the reference is a finding
            try:
                answer = self._server.get(f"/api/v1/namespaces/{segment(namespace)}/configmaps/{segment(name)}")
            except Forbidden:
                found = "found no right to read it, expected a Role in its namespace (deploy/measurements)"
                self.items.append(unreadable("v1", "ConfigMap", namespace, name, found))
                continue
            if answer.status == 200:
                listed = b'{"metadata": {}, "items": [' + answer.text + b"]}"
                self.items += list_reader(info, "v1").read(listed).items or ()
                self.counts["configmaps"] = self.counts.get("configmaps", 0) + 1

    def _measurements(self) -> Iterator[tuple[str, str]]:
        for item in self.items:
            if is_of_kind(item, "NetworkTopology"):
                topology = read_view(item, TopologyView)
                if topology.measurements:
                    yield topology.metadata.namespace, topology.measurements


def whole_kind(
    server: Server, path: str, info: KindInfo, api_version: str, watch: Callable[[int], None]
) -> tuple[list[bytes], str]:
    """All pages of a list: filtered texts of its objects, and its version.

    Raises
    ------
    ClusterError
        The server does not answer or refuses, or does not know the list, although it serves the kind.
    """
    try:
        found = whole_list(server.get, path, list_reader(info, api_version).read, watch=watch)
    except Unlisted as error:
        if error.answer.status == 404:
            raise ClusterError(f"{path}: found status 404, but the server lists the kind") from error
        raise
    return [item for page in found for item in page.items or ()], found[0].metadata.resource_version
