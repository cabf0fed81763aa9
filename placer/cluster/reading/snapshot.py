"""The cluster's objects as an instance: paged lists, text in and text out.

Lists are taken one after another, those that pods refer to first and pods last, so what a pod names is there unless it
is younger than the list. Kinds that the cluster does not know are not there, which is no error. Room for pods that a
DaemonSet is about to have is held by pods that exist in the snapshot alone. Nothing secret is asked
for: the only ConfigMaps are those that a NetworkTopology names.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from placer.cluster.reading.client import Server, Unlisted, pages
from placer.cluster.reading.daemon_sets import daemon_sets, placeholders
from placer.cluster.reading.field_filter import list_reader
from placer.cluster.reading.views import DaemonSetView, ObjectView, Page, TopologyView
from placer.errors import ClusterError
from placer.instance import Key
from placer.kube import BY_ATTRIBUTE, KindInfo
from placer.manifests import SNAPSHOT, Objects, Text, split, validate

__all__ = ["VERSIONS", "Identity", "Snapshot", "take"]

#: Annotation of the list that says at which resourceVersion each of the cluster's lists was.
VERSIONS = "placer.dev/resource-versions"

#: How often a list is begun anew that took so long that the server forgot where we were.
_STARTS = 3
#: Least effort that packs well: the most takes three times as long for a tenth less.
_EFFORT = 4

#: What is listed, in this order. Workloads are not: in a cluster only pods count that exist.
_LISTED = (
    "policies",
    "nodes",
    "node_resource_topologies",
    "hyper_nodes",
    "namespaces",
    "priority_classes",
    "queues",
    "pod_groups",
    "coscheduling_pod_groups",
    "app_groups",
    "network_topologies",
    "persistent_volumes",
    "persistent_volume_claims",
)


class Identity(NamedTuple):
    """Which pod it is, and which version of it."""

    uid: str
    resource_version: str


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
    """

    scheduler_name: str
    items: tuple[bytes, ...]
    versions: Mapping[str, str]
    counts: Mapping[str, int]

    @cached_property
    def identities(self) -> Mapping[Key, Identity]:
        """Which pods there were."""
        pods = (msgspec.json.decode(item, type=ObjectView) for item in self.of_kind("Pod"))
        return {pod.key: Identity(pod.metadata.uid, pod.metadata.resource_version) for pod in pods}

    def pod_texts(self, keys: Iterable[Key]) -> dict[Key, bytes]:
        """Text of some pods; one that is not there is absent."""
        wanted = frozenset(keys)
        found = ((msgspec.json.decode(item, type=ObjectView).key, item) for item in self.of_kind("Pod"))
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
        return validate(split([Text("cluster", text.getvalue())]))


def take(
    server: Server, scheduler_name: str = "placer", watch: Callable[[str, int], None] = lambda _, __: None
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

    Raises
    ------
    ClusterError
        The server does not answer or refuses.
    BadInstance
        An object has a field of a wrong type.
    """
    taker = _Taker(server, watch)
    for attribute in _LISTED:
        taker.take(BY_ATTRIBUTE[attribute])
    if taker.has("AppGroup"):  # a Deployment's pods belong to it through its ReplicaSets
        taker.take(BY_ATTRIBUTE["replica_sets"])
    taker.take_measurements()
    wanted = daemon_sets(server)
    taker.take(BY_ATTRIBUTE["pods"])
    taker.hold_room(wanted)
    return Snapshot(
        scheduler_name=scheduler_name, items=tuple(taker.items), versions=taker.versions, counts=taker.counts
    )


class _Taker:
    """Collects lists."""

    def __init__(self, server: Server, watch: Callable[[str, int], None]) -> None:
        self._server, self._watch = server, watch
        self.items: list[bytes] = []
        self.versions: dict[str, str] = {}
        self.counts: dict[str, int] = {}
        answer = server.get("/apis")
        if answer.status != 200:
            raise ClusterError(f"/apis: found status {answer.status}, expected 200: is this an API server?")
        self._served = {
            group["name"]: [version["version"] for version in group.get("versions") or ()]
            for group in msgspec.json.decode(answer.text).get("groups") or ()
        }

    def has(self, kind: str) -> bool:
        """Whether there is an object of a kind, of whichever group."""
        plurals = {info.plural for info in BY_ATTRIBUTE.values() if info.kind == kind}
        return any(count and name.partition(".")[0] in plurals for name, count in self.counts.items())

    def take(self, info: KindInfo) -> None:
        """List all objects of a kind, of each of its groups that the server has."""
        for group, version in self._places(info):
            api_version = f"{group}/{version}" if group else version
            path = f"/apis/{api_version}/{info.plural}" if group else f"/api/{version}/{info.plural}"
            resource = f"{info.plural}.{group}" if group else info.plural
            found = self._pages(path, info, api_version, resource)
            if found:
                items = [item for page in found for item in page.items or ()]
                self.items += items
                self.versions[resource] = found[0].metadata.resource_version
                self.counts[resource] = len(items)

    def hold_room(self, wanted: Iterable[DaemonSetView]) -> None:
        """Add what holds room for pods of DaemonSets that are not there yet."""
        nodes = (item for item in self.items if _is(item, "Node"))
        pods = (item for item in self.items if _is(item, "Pod"))
        self.items += list(placeholders(wanted, nodes, pods))

    def take_measurements(self) -> None:
        """Get the ConfigMaps that NetworkTopologies name."""
        info = BY_ATTRIBUTE["config_maps"]
        for namespace, name in sorted(self._measurements()):
            answer = self._server.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}")
            if answer.status == 200:
                listed = b'{"metadata": {}, "items": [' + answer.text + b"]}"
                self.items += list_reader(info, "v1").read(listed).items or ()
                self.counts["configmaps"] = self.counts.get("configmaps", 0) + 1

    def _measurements(self) -> Iterator[tuple[str, str]]:
        for item in self.items:
            if _is(item, "NetworkTopology"):
                topology = msgspec.json.decode(item, type=TopologyView)
                if topology.measurements:
                    yield topology.metadata.namespace, topology.measurements

    def _places(self, info: KindInfo) -> Iterator[tuple[str, str]]:
        """Group and version under which to ask for a kind; of several versions the one that the server prefers."""
        for group in info.groups:
            if not group:
                yield group, info.versions[0]
                continue
            version = next((each for each in self._served.get(group, ()) if each in info.versions), None)
            if version is not None:
                yield group, version

    def _pages(self, path: str, info: KindInfo, api_version: str, resource: str) -> Sequence[Page[bytes]]:
        """All pages of a list; none where the server does not know the kind."""
        read = list_reader(info, api_version).read
        for _ in range(_STARTS):
            found: list[Page[bytes]] = []
            count = 0
            try:
                for page in pages(self._server.get, path, read):
                    found.append(page)
                    count += len(page.items or ())
                    self._watch(resource, count)
                return found
            except Unlisted as error:
                if error.answer.status == 404:
                    return ()
        raise ClusterError(f"{path}: the list took too long {_STARTS} times, the server forgot its pages (410)")


def _is(item: bytes, kind: str) -> bool:
    """Whether an object is of a kind: of what is kept apiVersion and kind come first."""
    return item.split(b'"kind":"', 1)[-1].startswith(f'{kind}"'.encode())
