"""Scheduler caches in tests: pods as a snapshot has them and as a watch shows them."""

from __future__ import annotations

import json
from typing import Any

from placer.passes.cluster.planning.binding_plan import PlannedBinding
from placer.passes.cluster.planning.scheduler_cache import SchedulerCache
from placer.passes.cluster.reading.earlier_passes import prepared
from placer.problem import GroupKey, Key
from tests.cluster.snapshots import snapshot_of
from tests.support import Document, pod

__all__ = ["alone", "bind", "cache_of", "event", "mine", "theirs"]


def event(document: Document, node: str | None = None, **status: Any) -> bytes:
    """A pod as a watch shows it, with a node and a status."""
    found = json.loads(json.dumps(document))
    if node is not None:
        found["spec"]["nodeName"] = node
    found["metadata"].setdefault("uid", f"uid-{found['metadata']['name']}")
    found["metadata"]["managedFields"] = [{"manager": "x"}]
    found["status"] |= status
    return json.dumps(found).encode()


def mine(name: str, **options: Any) -> Document:
    """A pending pod of ours."""
    spec = {"schedulerName": "placer", **options.pop("spec", {})}
    return pod(
        name, spec=spec, metadata={**options.pop("metadata", {}), "uid": f"uid-{name}"} | _named(name), **options
    )


def _named(name: str) -> dict[str, str]:
    return {"name": name, "namespace": "default"}


def cache_of(*documents: Document) -> SchedulerCache:
    taken = snapshot_of(documents)
    return SchedulerCache(taken, prepared(taken, ()).instance)


def bind(name: str, where: str, uid: str | None = None, zones: tuple[str, ...] = ()) -> PlannedBinding:
    return PlannedBinding(Key("default", name), uid or f"uid-{name}", where, zones)


def alone(name: str) -> list[GroupKey]:
    return [GroupKey("", "default", name)]


def theirs(name: str, where: str, uid: str = "", **requests: Any) -> Document:
    return pod(name, node=where, metadata={"name": name, "namespace": "default", "uid": uid or name}, **requests)
