"""Hearing everything that happens in a cluster, from its API server itself and whatever becomes of that."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import urllib3

from tests.cluster.server import ControlPlane

__all__ = ["heard"]

Listener = Callable[[str, Mapping[str, Any]], None]
_GONE = 410


class _Watch:
    """One list, and all that happens to it; a server that is away is waited for."""

    def __init__(self, control_plane: ControlPlane, path: str, listener: Listener, over: threading.Event) -> None:
        self._url, self._listener, self._over = control_plane.url + path, listener, over
        self._headers = {"Authorization": f"Bearer {control_plane.token}"}
        self._pool = urllib3.PoolManager(ca_certs=str(control_plane.certificate), retries=False)
        self._version = ""
        self._known: dict[str, Mapping[str, Any]] = {}  # by uid
        self.current = threading.Event()

    def run(self) -> None:
        while not self._over.is_set():
            try:
                if not self._version:
                    self._list()
                self._follow()
            except (urllib3.exceptions.HTTPError, OSError, ValueError):
                self._over.wait(0.2)

    def _list(self) -> None:
        answer = self._pool.request("GET", self._url, headers=self._headers, timeout=60)
        if answer.status != 200:
            raise ValueError(answer.status)
        found = json.loads(answer.data)
        there = {each["metadata"]["uid"]: each for each in found.get("items") or ()}
        for uid, gone in list(self._known.items()):
            if uid not in there:
                self._happened("DELETED", gone)
        for uid, each in there.items():
            if (
                self._known.get(uid, {}).get("metadata", {}).get("resourceVersion")
                != each["metadata"]["resourceVersion"]
            ):
                self._happened("MODIFIED" if uid in self._known else "ADDED", each)
        self._version = found["metadata"]["resourceVersion"]
        self.current.set()

    def _follow(self) -> None:
        parameters = f"?watch=true&allowWatchBookmarks=true&timeoutSeconds=600&resourceVersion={self._version}"
        timeout = urllib3.Timeout(connect=5, read=90)
        answer = self._pool.request(
            "GET", self._url + parameters, headers=self._headers, timeout=timeout, preload_content=False
        )
        try:
            if answer.status == _GONE:
                self._version = ""
                return
            if answer.status != 200:
                raise ValueError(answer.status)
            for line in self._lines(answer):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    self._version = ""
                    return
                self._version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._happened(event["type"], event["object"])
        finally:
            answer.close()

    def _lines(self, answer: Any) -> Iterator[bytes]:
        rest = b""
        for part in answer.stream(2**16):
            *lines, rest = (rest + part).split(b"\n")
            yield from lines
            if self._over.is_set():
                return

    def _happened(self, kind: str, item: Mapping[str, Any]) -> None:
        uid = item["metadata"]["uid"]
        if kind == "DELETED":
            self._known.pop(uid, None)
        else:
            self._known[uid] = item
        self._listener(kind, item)


@contextmanager
def heard(control_plane: ControlPlane, listeners: Mapping[str, Listener]) -> Iterator[None]:
    """Tell listeners everything that happens to lists, by their paths, as long as the block lasts."""
    over = threading.Event()
    watches = [_Watch(control_plane, path, listener, over) for path, listener in listeners.items()]
    for each in watches:
        threading.Thread(target=each.run, daemon=True).start()
    for each in watches:
        each.current.wait()
    try:
        yield
    finally:
        over.set()
