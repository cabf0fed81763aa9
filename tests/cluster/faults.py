"""What goes wrong in tests of faults, at the moment when it must: others in the cluster, and what must be told then.

After each fault: no gang half-bound without being reported, nothing bound twice, no node over-full by our doing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from placer.passes.cluster import Client, PlannedBinding
from placer.passes.cluster.reading.client import Response
from placer.passes.cluster.writing.plan_execution import execute_plan
from placer.problem import Key
from tests.cluster.api import PATIENCE, Api
from tests.cluster.proxy import Rule, Spoil
from tests.cluster.things import live_pod
from tests.support import Document

__all__ = [
    "PODS",
    "at_first_binding",
    "at_first_binding_change_lease",
    "before_bindings",
    "half_bound",
    "recreate",
    "refusing",
    "steal",
]

PODS = "/api/v1/namespaces/default/pods"


def half_bound(told: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["group"]: each for each in told["incomplete"] if each["state"] == "halfBound"}


def refusing(*pods: str) -> Rule:
    """Bindings of some pods are not allowed."""
    return lambda _method, path, _times: (
        Spoil(403) if path.endswith("/binding") and path.split("/")[-2] in pods else None
    )


def before_bindings(monkeypatch: pytest.MonkeyPatch, work: Callable[[Any], None]) -> None:
    """Do something after the plan is made; ``work`` gets the cache, to wait until it has heard of it."""

    def work_first(client: Any, cache: Any, *rest: Any) -> Any:
        work(cache)
        return execute_plan(client, cache, *rest)

    monkeypatch.setattr("placer.passes.scheduling_pass.execute_plan", work_first)


def at_first_binding(monkeypatch: pytest.MonkeyPatch, work: Callable[[str], object], pod: str = "") -> None:
    """Do something when the first binding (of a pod) is about to go out: too late for any cache."""
    really, todo = Client.send, [work]

    def send(self: Client, method: str, path: str, *rest: Any, **options: Any) -> Response:
        if path.endswith(f"{pod}/binding") and todo:
            todo.pop()(path)
        return really(self, method, path, *rest, **options)

    monkeypatch.setattr(Client, "send", send)


def at_first_binding_change_lease(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Change the Lease when the first binding is about to go out; none does before the leader has read it anew."""
    really, lock, changed, heard = Client.send, threading.Lock(), threading.Event(), threading.Event()

    def send(self: Client, method: str, path: str, *rest: Any, **options: Any) -> Response:
        if path.endswith("/binding"):
            with lock:
                if not changed.is_set():
                    change()
                    changed.set()
            assert heard.wait(PATIENCE)
        answer = really(self, method, path, *rest, **options)
        if method == "GET" and "/leases/" in path and changed.is_set():
            heard.set()
        return answer

    monkeypatch.setattr(Client, "send", send)


def steal(cluster: Api, name: str, where: str, **amounts: Any) -> PlannedBinding:
    """Another scheduler puts a pod of its own somewhere."""
    (made,) = cluster.create(live_pod(name, scheduler="default-scheduler", **amounts))
    cluster.bind("default", name, where)
    return PlannedBinding(Key("default", name), made["metadata"]["uid"], where)


def recreate(cluster: Api, document: Document) -> None:
    name = document["metadata"]["name"]
    cluster.delete(f"{PODS}/{name}")
    cluster.create(document)
