"""The kinds that a server serves, and their versions.

A server that has just started may not serve all custom resources yet, and a kind taken for absent would have no rules.
So an incomplete answer, by ``/readyz`` and each group's resources, ends the pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

import msgspec

from placer.base.errors import ClusterError
from placer.kube.kinds import BY_ATTRIBUTE, KindInfo
from placer.kube.marks import KAI_GROUP
from placer.passes.cluster.reading.client import Forbidden, Server

__all__ = ["ServedKinds", "referred"]

#: Groups that every cluster has, of those that are asked for.
_BUILT_IN = ("apps", "scheduling.k8s.io")


_NO_LIST = (msgspec.DecodeError, LookupError, TypeError, AttributeError)


def _each(entries: list[dict[str, str]] | None, key: str) -> list[str]:
    return [each[key] for each in entries or ()]


class ServedKinds:
    """The kinds of a server, as it lists them.

    Raises
    ------
    ClusterError
        It is not ready, or its list of groups lacks one that every server has.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        with suppress(Forbidden):  # what it may not say is not asked for
            server.get("/readyz")
        answer = server.get("/apis")
        if answer.status != 200:
            raise ClusterError(f"/apis: found status {answer.status}, expected 200: is this an API server?")
        try:
            groups = msgspec.json.decode(answer.text).get("groups") or ()
            self._versions = {each["name"]: _each(each.get("versions"), "version") for each in groups}
        except _NO_LIST as error:
            raise ClusterError(f"/apis: found no list of groups: {error}") from error
        missing = [group for group in _BUILT_IN if group not in self._versions]
        if missing:
            raise ClusterError(f"/apis: found no group {missing[0]}, expected one in every cluster: it is not complete")
        self._resources: dict[str, frozenset[str]] = {}

    def places(self, info: KindInfo) -> Iterator[tuple[str, str]]:
        """Group and version in which a kind is read; of several versions the one that the server prefers."""
        for group in info.groups:
            version = self._preferred(info, group, lambda each: each in info.versions) if group else info.versions[0]
            if version is not None:
                yield group, version

    def other_places(self, info: KindInfo) -> Iterator[tuple[str, str]]:
        """Group and preferred version of a kind that is served in unread versions alone."""
        groups = {group for group, _ in self.places(info)}
        for group in info.groups:
            version = self._preferred(info, group, lambda each: each not in info.versions)
            if version is not None and group not in groups:
                yield group, version

    def _preferred(self, info: KindInfo, group: str, among: Callable[[str], bool]) -> str | None:
        served = filter(among, self._versions.get(group, ()))
        return next((each for each in served if self.serves(group, each, info.plural)), None)

    def version_of(self, group: str, plural: str) -> str | None:
        """The version in which a group has a resource of an unread kind; None where it has none."""
        return next((each for each in self._versions.get(group, ()) if self.serves(group, each, plural)), None)

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
                self._resources[path] = frozenset(_each(msgspec.json.decode(answer.text).get("resources"), "name"))
            except _NO_LIST as error:
                raise ClusterError(f"{path}: found no list of resources: {error}") from error
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
    # Of Volcano's policies those that keep a pod off nodes without one.
    "node_resource_topologies": tuple(
        ("Pod", b'"volcano.sh/numa-topology-policy":"%s"' % policy) for policy in (b"restricted", b"single-numa-node")
    ),
}


def referred(absent: Iterable[str], items: Iterable[bytes]) -> list[KindInfo]:
    """Absent kinds that objects may refer to, by their texts."""
    texts = {each: _REFERENCES[each] for each in absent if each in _REFERENCES}
    kept = tuple(items) if texts else ()
    found = {
        each: any(text in item and f'"kind":"{kind}"'.encode() in item for item in kept for kind, text in wanted)
        for each, wanted in texts.items()
    }
    return [BY_ATTRIBUTE[each] for each, is_referred in found.items() if is_referred]
