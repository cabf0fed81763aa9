"""Which kinds a server serves, and in which versions; what it only seems not to serve is an error.

A server that has just started lists groups of custom resources before it serves them, or serves them before it lists
them, so a kind that is not there and one that is not there *yet* look alike. Whether it is ready tells (``/readyz``
waits until all groups are registered), and so does each group's own list of resources. What is incomplete ends the
pass, and the next one asks again: a kind that is taken for absent would be one whose rules do not hold.

An absent kind is none of this: a cluster without Volcano has no HyperNodes. Where objects refer to one all the same, or
the kind is served in versions alone that are not read, what depends on it waits (``placer.instance.unread``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

import msgspec

from placer.cluster.reading.client import Forbidden, Server
from placer.errors import ClusterError
from placer.kube.kinds import BY_ATTRIBUTE, KindInfo
from placer.kube.marks import KAI_GROUP

__all__ = ["ServedKinds", "referred"]

#: Groups that every cluster has, of those that are asked for.
_BUILT_IN = ("apps", "scheduling.k8s.io")


class _ApiVersion(msgspec.Struct):
    version: str


class _ApiGroup(msgspec.Struct):
    name: str
    versions: list[_ApiVersion] | None = None


class _ApiGroupList(msgspec.Struct):
    groups: list[_ApiGroup] | None = None


class _ApiResource(msgspec.Struct):
    name: str


class _ApiResourceList(msgspec.Struct):
    resources: list[_ApiResource] | None = None


class ServedKinds:
    """The kinds of a server, as it lists them.

    Parameters
    ----------
    server
        Which is asked at once whether it is ready, and for its groups.

    Raises
    ------
    ClusterError
        It is not ready, or its list of groups lacks what every server has.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        with suppress(Forbidden):  # what it may not say is not asked for
            server.get("/readyz")
        answer = server.get("/apis")
        if answer.status != 200:
            raise ClusterError(f"/apis: found status {answer.status}, expected 200: is this an API server?")
        try:
            found = msgspec.json.decode(answer.text, type=_ApiGroupList).groups or ()
        except msgspec.DecodeError as error:
            raise ClusterError(f"/apis: found no list of groups: {error}") from error
        self._versions = {each.name: [version.version for version in each.versions or ()] for each in found}
        missing = [group for group in _BUILT_IN if group not in self._versions]
        if missing:
            raise ClusterError(f"/apis: found no group {missing[0]}, expected one in every cluster: it is not complete")
        self._resources: dict[str, frozenset[str]] = {}

    def places(self, info: KindInfo) -> Iterator[tuple[str, str]]:
        """Group and version under which to ask for a kind; of several versions the one that the server prefers."""
        for group in info.groups:
            if not group:
                yield group, info.versions[0]
                continue
            served = (each for each in self._versions.get(group, ()) if each in info.versions)
            version = next((each for each in served if self.serves(group, each, info.plural)), None)
            if version is not None:
                yield group, version

    def other_places(self, info: KindInfo) -> Iterator[tuple[str, str]]:
        """Group and version of a kind that is served in versions alone that are not read: the preferred one."""
        groups = {group for group, _ in self.places(info)}
        for group in info.groups:
            if group and group not in groups:
                others = (each for each in self._versions.get(group, ()) if each not in info.versions)
                version = next((each for each in others if self.serves(group, each, info.plural)), None)
                if version is not None:
                    yield group, version

    def serves(self, group: str, version: str, plural: str) -> bool:
        """Whether a version of a group, other than the core one, has a resource."""
        if version not in self._versions.get(group, ()):
            return False
        path = f"/apis/{group}/{version}"
        if path not in self._resources:
            answer = self._server.get(path)
            if answer.status != 200:
                raise ClusterError(f"{path}: found status {answer.status}, but /apis lists it: it is not complete yet")
            try:
                found = msgspec.json.decode(answer.text, type=_ApiResourceList).resources or ()
            except msgspec.DecodeError as error:
                raise ClusterError(f"{path}: found no list of resources: {error}") from error
            self._resources[path] = frozenset(each.name for each in found)
        return plural in self._resources[path]


#: Kind that objects refer to, and texts of which one stands in those that do, each after the kind of the object.
_REFERENCES: Mapping[str, tuple[tuple[str, bytes], ...]] = {
    "hyper_nodes": (("PodGroup", b'"networkTopology"'),),
    "queues": (
        ("PodGroup", b'"queue"'),
        ("Pod", b'"scheduling.volcano.sh/queue-name"'),
        ("Namespace", b'"scheduling.volcano.sh/queue-name"'),
    ),
    "pod_groups": (("Pod", b'"scheduling.k8s.io/group-name"'), ("Pod", b'"scheduling.volcano.sh/group-name"')),
    "coscheduling_pod_groups": (("Pod", b'/pod-group"'), ("Pod", b'"pod-group.scheduling.sigs.k8s.io"')),
    "kai_pod_groups": (("Pod", f'"{KAI_GROUP}"'.encode()),),
    "app_groups": (("Pod", b'"appgroup.diktyo.x-k8s.io"'),),
    "network_topologies": (("AppGroup", b'"dependencies"'),),
}


def referred(absent: Iterable[str], items: Iterable[bytes]) -> list[KindInfo]:
    """Find the absent kinds that objects may refer to: by the text of what is kept of them.

    Parameters
    ----------
    absent
        Attributes of ``manifests.Objects`` that hold the kinds.
    items
        Objects, as a snapshot keeps them.
    """
    texts = {each: _REFERENCES[each] for each in absent if each in _REFERENCES}
    kept = tuple(items) if texts else ()
    return [BY_ATTRIBUTE[each] for each, wanted in texts.items() if any(_refers(item, wanted) for item in kept)]


def _refers(item: bytes, wanted: Iterable[tuple[str, bytes]]) -> bool:
    """Whether an object is of one of some kinds, and has the text that goes with it."""
    return any(text in item and f'"kind":"{kind}"'.encode() in item for kind, text in wanted)
