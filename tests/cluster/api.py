"""Plain HTTP to the tests' API server: objects in and out as JSON, many at a time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import urllib3
import yaml

from tests.support import Document
from tests.waiting import wait_until

__all__ = ["Api", "Refused", "definitions"]

#: Requests under way at once.
MANY = 16
#: Seconds that something may take which normally takes a few.
PATIENCE = 300.0

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#: (apiVersion, kind) to resource and whether it lives in a namespace; of others ``create`` asks the server.
_Resource = tuple[str, bool]


class Refused(Exception):
    """The server said no."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Api:
    """A client with the rights of a token.

    Parameters
    ----------
    url, certificate, token
        Of the server.
    """

    def __init__(self, url: str, certificate: Path, token: str) -> None:
        self.url = url
        self._headers = {"Authorization": f"Bearer {token}"}
        self._pool = urllib3.PoolManager(maxsize=MANY, ca_certs=str(certificate), retries=False, timeout=60)
        self._known: dict[str, dict[str, _Resource]] = {}
        self._installed: set[str] = set()  #: definitions that were seen to be served, and not removed since
        self._wiped: list[tuple[str, dict[str, Any]]] = []  #: of which everything is deleted; empty: to be asked for

    # ----------------------------------------------------------------------------------------------------- requests

    def call(self, method: str, path: str, body: object = None, kind: str = "application/json") -> dict[str, Any]:
        """Ask for something below the server's root.

        Raises
        ------
        Refused
            The answer is no success.
        """
        headers = self._headers | ({"Content-Type": kind} if body is not None else {})
        data = json.dumps(body).encode() if body is not None else None
        end = time.monotonic() + PATIENCE
        answer = self._pool.request(method, self.url + path, headers=headers, body=data)
        while answer.status == 429 and time.monotonic() < end:  # a server that has just begun wants a little time
            time.sleep(0.1)
            answer = self._pool.request(method, self.url + path, headers=headers, body=data)
        if answer.status >= 400:
            raise Refused(answer.status, answer.data.decode("utf-8", "replace"))
        found: dict[str, Any] = json.loads(answer.data)
        return found

    def flow_schema(self, path: str) -> str:
        """The uid of the FlowSchema by which a request waits; nothing where none does."""
        answer = self._pool.request("GET", self.url + path, headers=self._headers)
        return str(answer.headers.get("X-Kubernetes-PF-FlowSchema-UID", ""))

    def get(self, path: str) -> dict[str, Any]:
        return self.call("GET", path)

    def items(self, path: str) -> list[dict[str, Any]]:
        """Items of a list, whole."""
        found: list[dict[str, Any]] = self.get(path).get("items") or []
        return found

    def patch(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return self.call("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path: str, uid: str | None = None) -> None:
        """Delete at once, as a kubelet does when a pod has ended; what is not there is deleted already.

        With a ``uid`` nothing happens to another object of the same name.
        """
        body: dict[str, Any] = {"gracePeriodSeconds": 0}
        if uid is not None:
            body["preconditions"] = {"uid": uid}
        try:
            self.call("DELETE", path, body)
        except Refused as refusal:
            if refusal.status != 404 and not (uid is not None and refusal.status == 409):
                raise

    def each(self, work: Callable[[Any], Any], things: Iterable[Any]) -> list[Any]:
        """Do something with many things, several at a time; answers in their order."""
        with ThreadPoolExecutor(MANY) as threads:
            return list(threads.map(work, things))

    # ------------------------------------------------------------------------------------------------------ objects

    def path(self, document: Mapping[str, Any], *, named: bool = True) -> str:
        """Where an object is, or with ``named`` False where it is created."""
        version, kind = document["apiVersion"], document["kind"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if kind not in self._known.get(version, {}):
            self._known[version] = {
                each["kind"]: (each["name"], each["namespaced"])
                for each in self.get(root)["resources"]
                if "/" not in each["name"]
            }
        plural, namespaced = self._known[version][kind]
        metadata = document["metadata"]
        place = f"{root}/namespaces/{metadata.get('namespace', 'default')}" if namespaced else root
        return f"{place}/{plural}/{metadata['name']}" if named else f"{place}/{plural}"

    def create(self, *documents: Document) -> list[dict[str, Any]]:
        """Create objects with their status; namespaces that are not there yet come first."""
        namespaces = {each["metadata"].get("namespace", "default") for each in documents}
        self.make_namespaces(
            *(namespaces - {each["metadata"]["name"] for each in documents if each["kind"] == "Namespace"})
        )
        for each in documents:
            self.path(each, named=False)  # fills what is known before threads read it
        return self.each(self._create, documents)

    def make_namespaces(self, *names: str) -> None:
        """Make namespaces that are not there yet."""
        for name in sorted(set(names) - {each["metadata"]["name"] for each in self.items("/api/v1/namespaces")}):
            self.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def _create(self, document: Document) -> dict[str, Any]:
        made = self.call("POST", self.path(document, named=False), document)
        status = document.get("status")
        if not status or made.get("status") == status:
            return made
        try:
            return self.patch(f"{self.path(made)}/status", {"status": status})
        except Refused as refusal:
            if refusal.status != 404:  # a kind without a status of its own takes it with the rest
                raise
            return made

    def bind(self, namespace: str, pod: str, node: str) -> None:
        """Bind a pod as a scheduler does."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
        self.call("POST", f"/api/v1/namespaces/{namespace}/pods/{pod}/binding", body)

    # ----------------------------------------------------------------------------------- custom resource definitions

    def install(self, files: Sequence[Path]) -> None:
        """Create custom resource definitions that are not there, and wait until their objects are served."""
        every = [each for file in files for each in definitions(file)]
        documents = [each for each in every if each["metadata"]["name"] not in self._installed]
        for document in documents:
            if all(self._served(document)):
                continue  # a server takes a while to refuse a definition as large as those of Volcano
            try:
                self.call("POST", _DEFINITIONS, document)
            except Refused as refusal:
                if refusal.status != 409:
                    raise
        for document in documents:
            self.wait_for(document, served=True)

    def uninstall(self, *names: str) -> None:
        """Remove custom resource definitions, by default all, and wait until nothing of them is served."""
        documents = [each for each in self.items(_DEFINITIONS) if not names or each["metadata"]["name"] in names]
        for document in documents:
            self.delete(f"{_DEFINITIONS}/{document['metadata']['name']}")
        for document in documents:
            self.wait_for(document, served=False)
        self._known.clear()

    def wait_for(self, definition: Mapping[str, Any], *, served: bool) -> None:
        """Wait until a custom resource definition is served, or is not any more and can be made anew."""
        name = definition["metadata"]["name"]
        self._installed.discard(name)
        self._wiped.clear()
        wait_until(
            lambda: all(each is served for each in self._served(definition)), f"{name} {'served' if served else 'gone'}"
        )
        if served:
            self._installed.add(name)

    def _served(self, definition: Mapping[str, Any]) -> Iterator[bool]:
        """Whether a definition is there, and each version of it is served."""
        spec = definition["spec"]
        versions = (each["name"] for each in spec["versions"] if each["served"])
        yield self._has(definition["metadata"]["name"])
        yield from (self._serves(f"/apis/{spec['group']}/{each}", spec["names"]["plural"]) for each in versions)

    def _has(self, name: str) -> bool:
        try:
            self.get(f"{_DEFINITIONS}/{name}")
        except Refused:
            return False
        return True

    def _serves(self, root: str, plural: str) -> bool:
        """Whether a resource is both announced and answered for."""
        try:
            announced = any(each["name"] == plural for each in self.get(root)["resources"])
            self.get(f"{root}/{plural}?limit=1")
        except Refused:
            return False
        return announced

    # ----------------------------------------------------------------------------------------------------- clean-up

    def wipe(self) -> None:
        """Delete every object that tests make; namespaces stay, since no controller is there that would finish them."""
        for group, kind in self._kinds():
            found = self.items(f"{group}/{kind['name']}")
            ours = [item for item in found if not item["metadata"]["name"].startswith("system-")]
            paths = [self._of(group, kind, item) for item in ours]
            self.each(
                self._released,
                [path for path, item in zip(paths, ours, strict=True) if "finalizers" in item["metadata"]],
            )
            self.each(self.delete, paths)

    def _kinds(self) -> list[tuple[str, dict[str, Any]]]:
        """Where kinds that tests make are, and what the server says of them; the same until definitions change."""
        if not self._wiped:
            for versions in (["/api/v1"], *self._groups()):
                served = ((version, each) for version in versions for each in self._resources(version))
                wiped = (
                    (version, each)
                    for version, each in served
                    if "/" not in each["name"] and each["kind"] in _WIPED and "delete" in each["verbs"]
                )
                # A kind that is served in several versions is wiped in one.
                self._wiped += {each["name"]: (version, each) for version, each in wiped}.values()
        return self._wiped

    def _resources(self, version: str) -> list[dict[str, Any]]:
        """The kinds of a version; none where its definition has just been taken away, and the server still names it."""
        try:
            found: list[dict[str, Any]] = self.get(version)["resources"]
        except Refused as refusal:
            if refusal.status != 404:
                raise
            return []
        return found

    def _released(self, path: str) -> None:
        """Take away what holds an object that is being deleted: no controller is there that would."""
        self.patch(path, {"metadata": {"finalizers": None}})

    def _groups(self) -> list[list[str]]:
        """Where the versions of each group are; not all kinds are served in the one that the server prefers."""
        return [
            [f"/apis/{each['groupVersion']}" for each in group["versions"]] for group in self.get("/apis")["groups"]
        ]

    @staticmethod
    def _of(group: str, resource: Mapping[str, Any], item: Mapping[str, Any]) -> str:
        metadata = item["metadata"]
        place = f"{group}/namespaces/{metadata['namespace']}" if resource["namespaced"] else group
        return f"{place}/{resource['name']}/{metadata['name']}"


@cache
def definitions(file: Path) -> list[Document]:
    """Custom resource definitions of a file; those of Volcano take more than a second to read."""
    return [each for each in yaml.safe_load_all(file.read_text()) if each]


#: Kinds of which everything is deleted between tests.
_WIPED = frozenset(
    (
        "Pod",
        "Node",
        "ConfigMap",
        "PersistentVolumeClaim",
        "PersistentVolume",
        "PodGroup",
        "CompositePodGroup",
        "Workload",
        "Queue",
        "HyperNode",
        "AppGroup",
        "NetworkTopology",
        "NodeResourceTopology",
        "Job",
        "Deployment",
        "StatefulSet",
        "PodDisruptionBudget",
        "ReplicaSet",
        "DaemonSet",
        "PriorityClass",
        "Policy",
        "Event",
        "Lease",
    )
)
