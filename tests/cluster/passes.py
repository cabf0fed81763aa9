"""Passes of ``placer run`` in tests: a cluster to make one in, the call, and what must hold after any of them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from placer.base.quantity import Resources
from placer.cli import main
from tests.cluster.api import Api
from tests.cluster.server import ControlPlane
from tests.cluster.things import live_pod
from tests.support import Document, hyper_node, node, pod_group

__all__ = ["Passes", "bound", "gang", "leaves", "overfull"]


class Passes:
    """Makes passes at a server, or at something in front of it."""

    def __init__(self, control_plane: ControlPlane, capsys: pytest.CaptureFixture[str]) -> None:
        self._control_plane, self._capsys = control_plane, capsys
        self.url: str | None = None  #: of what is in front of the server
        self.config: str | None = None  #: a kubeconfig of another user than an administrator
        self.code: int | None = None  #: with which the last one ended
        self.err = ""  #: what it wrote to standard error

    def __call__(self, *flags: str, code: int | None = 0) -> dict[str, Any]:
        """Make one that ends with a code, None: with any; its summary."""
        self._capsys.readouterr()
        config = self.config or self._control_plane.kubeconfig("passes", url=self.url)
        settle = [] if "--settle" in flags else ["--settle", "0.1"]  # most have no kubelet that would answer
        found = main(["run", "--kubeconfig", str(config), "--method", "greedy", *settle, *flags])
        self.code = found
        told = self._capsys.readouterr()
        self.err = told.err
        (line,) = told.out.splitlines()
        assert code in (found, None), (line, told.err)
        summary: dict[str, Any] = json.loads(line)
        return summary


def leaves(count: int, nodes: int, **amounts: Any) -> Iterator[Document]:
    """Nodes ``n-LEAF-NUMBER`` and their HyperNodes: leaves of so many nodes, and one spine."""
    for leaf in range(count):
        names = tuple(f"n-{leaf:02d}-{number:02d}" for number in range(nodes))
        yield from (node(name, **amounts) for name in names)
        yield hyper_node(f"leaf-{leaf:02d}", 1, nodes=names)
    yield hyper_node("spine", 2, children=tuple(f"leaf-{leaf:02d}" for leaf in range(count)))


def gang(name: str, pods: int, least: int | None = None, tier: int | None = None, **amounts: Any) -> list[Document]:
    """A PodGroup with its pods."""
    spec: dict[str, Any] = {"minMember": pods if least is None else least}
    if tier is not None:
        spec["networkTopology"] = {"mode": "hard", "highestTierAllowed": tier}
    members = [
        live_pod(f"{name}-{number}", group=name, guaranteed=True, **({"cpu": 1} | amounts)) for number in range(pods)
    ]
    return [pod_group(name, **spec), *members]


def bound(cluster: Api) -> dict[str, str]:
    """Pod to its node, of those that have one and have not failed."""
    return {
        each["metadata"]["name"]: each["spec"]["nodeName"]
        for each in cluster.items("/api/v1/pods")
        if each["spec"].get("nodeName") and each["status"].get("phase") != "Failed"
    }


def overfull(cluster: Api) -> list[str]:
    """Nodes on which pods request more than there is, counted here by the requests of their only containers."""
    used: dict[str, Counter[str]] = defaultdict(Counter)
    for each in cluster.items("/api/v1/pods"):
        where = each["spec"].get("nodeName")
        if where and each["status"].get("phase") not in ("Failed", "Succeeded"):
            for container in each["spec"]["containers"]:
                used[where].update(Resources.parse(container["resources"].get("requests") or {}))
            used[where]["pods"] += 1
    there = {
        each["metadata"]["name"]: Resources.parse(each["status"]["allocatable"])
        for each in cluster.items("/api/v1/nodes")
    }
    return sorted(name for name, amounts in used.items() if not Resources(amounts).fits(there[name]))
