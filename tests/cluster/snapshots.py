"""Snapshots without a server: from documents, as lists of a server would give them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from placer.kube.kinds import KINDS
from placer.kube.manifests import read_texts, split
from placer.passes.cluster.reading.client import Response
from placer.passes.cluster.reading.field_filter import list_reader
from placer.passes.cluster.reading.snapshot import Snapshot
from tests.support import Document

__all__ = ["ListServer", "documents_in", "kept", "snapshot_of"]


def documents_in(*paths: str) -> list[dict[str, Any]]:
    """All objects of some files, each whole."""
    return [json.loads(bytes(raw.text)) for raw in split(read_texts(paths))]


def kept(document: Document) -> dict[str, Any]:
    """What a snapshot keeps of an object."""
    (item,) = _items([document])
    found: dict[str, Any] = json.loads(item)
    return found


def snapshot_of(documents: Iterable[Document], scheduler_name: str = "placer") -> Snapshot:
    """A snapshot of objects, in their order."""
    return Snapshot(scheduler_name=scheduler_name, items=tuple(_items(documents)), versions={}, counts={})


def _items(documents: Iterable[Document]) -> Iterable[bytes]:
    for document in documents:
        version = document["apiVersion"]
        info = KINDS[version.rpartition("/")[0], document["kind"]]
        text = json.dumps({"metadata": {}, "items": [document]}).encode()
        yield from list_reader(info, version).read(text).items


class ListServer:
    """A server that has lists, in pages of so many, and answers what it is told to before that.

    Parameters
    ----------
    lists
        Path of a list to its objects; others that every server has are empty, and of any other it knows nothing.
    page
        Most objects of a page; fewer than are asked for.
    """

    def __init__(self, lists: Mapping[str, list[Document]], page: int = 500) -> None:
        self.lists, self.page = lists, page
        self.asked: list[str] = []
        self.first: list[Response] = []  #: answers to questions for further pages, before the right ones

    def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Response:
        self.asked.append(path)
        if path in ("/readyz", "/apis"):
            return _answer({"groups": self._groups()})
        if path in self._resources():
            return _answer({"resources": [{"name": name} for name in self._resources()[path]]})
        if path not in self.lists and path not in _BUILT_IN:
            return Response(404, b"{}")
        begin = int((parameters or {}).get("continue", "0"))
        if begin and self.first:
            return self.first.pop(0)
        items = self.lists.get(path, [])
        if parameters is None:
            return _answer(items[0])
        end = min(begin + self.page, begin + int(parameters["limit"]))
        metadata = {"resourceVersion": "7"} | ({"continue": str(end)} if end < len(items) else {})
        return _answer({"metadata": metadata, "items": items[begin:end]})

    def _groups(self) -> list[dict[str, Any]]:
        found: dict[str, list[dict[str, str]]] = {}
        for path in (*self.lists, *_BUILT_IN):
            if path.startswith("/apis/"):
                group, version = path.split("/")[2:4]
                versions = found.setdefault(group, [])
                if {"version": version} not in versions:
                    versions.append({"version": version})
        return [{"name": name, "versions": versions} for name, versions in found.items()]

    def _resources(self) -> dict[str, list[str]]:
        """Path of each group and version to its resources."""
        found: dict[str, list[str]] = {}
        for path in (*self.lists, *_BUILT_IN):
            root, _, plural = path.rpartition("/")
            found.setdefault(root, []).append(plural)
        return found


#: Lists that every server has.
_BUILT_IN = (
    *(f"/api/v1/{name}" for name in ("nodes", "namespaces", "persistentvolumes", "persistentvolumeclaims", "pods")),
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    *(f"/apis/apps/v1/{name}" for name in ("daemonsets", "replicasets")),
)


def _answer(value: object) -> Response:
    return Response(200, json.dumps(value).encode())
