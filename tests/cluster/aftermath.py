"""What must hold after any fault in a pass: counted at the proxy, and looked up in the cluster."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from placer.cli import main
from tests.cluster.api import Api
from tests.cluster.passes import Passes, bound, overfull
from tests.cluster.proxy import Proxy

__all__ = ["check_half_bound", "could_be_bound", "finish", "half_bound_gangs"]

_PODS = "/api/v1/namespaces/default/pods"


def could_be_bound(passes: Passes, folder: Path, *flags: str) -> set[str]:
    """Names of the pods that ``solve`` would bind as the cluster is now."""
    file = folder / "placement.json"
    told = passes("--dry-run", "--save", str(folder), *flags)
    assert main(["solve", told["saved"][0], "--method", "greedy", "-o", str(file), "--quiet"]) == 0
    return {each["pod"] for each in json.loads(file.read_text())["bindings"]}


def half_bound_gangs(cluster: Api, names: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Gangs, named as the beginning of their pods, of which some pods have a node and others have none, to these."""
    pods: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for each in cluster.items(_PODS):
        pods.get(each["metadata"]["name"].rpartition("-")[0], []).append(each)
    waiting = {name: [each for each in found if not each["spec"].get("nodeName")] for name, found in pods.items()}
    return {name: found for name, found in waiting.items() if 0 < len(found) < len(pods[name])}


def check_half_bound(cluster: Api, names: Iterable[str], code: int | None, *, told: bool = True) -> None:
    """Where a gang is half-bound the pass has ended with 6, and with ``told`` its pods' conditions say so."""
    found = half_bound_gangs(cluster, names)
    assert code == 6 or not found
    for pods in found.values() if told else ():
        assert all(map(_is_told, pods)), pods


def _is_told(pod: Mapping[str, Any]) -> bool:
    conditions = pod["status"].get("conditions") or []
    return any(each["type"] == "PodScheduled" and each["message"].startswith("half-bound: ") for each in conditions)


def finish(cluster: Api, passes: Passes, proxy: Proxy, wanted: set[str], names: Iterable[str], *flags: str) -> None:
    """After three passes at most that nothing disturbs all that can be bound is, each pod once, no node over-full."""
    proxy.rule = lambda *_: None
    for _ in range(3):
        if bound(cluster).keys() >= wanted:
            break
        passes(*flags, code=None)
    assert bound(cluster).keys() == wanted
    assert set(proxy.bound.values()) <= {1}
    assert overfull(cluster) == []
    assert half_bound_gangs(cluster, names) == {}
