"""Calls of ``--apply`` in tests, and what the server says of them afterwards."""

from __future__ import annotations

import json
from typing import Any

import pytest

from placer.cli import main
from tests.cluster.api import Api
from tests.cluster.controllers import PODS, owned, priority_class
from tests.cluster.passes import Passes
from tests.cluster.proxy import Proxy
from tests.cluster.server import ControlPlane
from tests.support import Document, hyper_node, node, pod_group, policy

__all__ = ["REFUSED", "Applied", "Run", "allowed", "evictions", "full", "nominated", "still_run", "told"]

EVENTS = "/apis/events.k8s.io/v1/events"
REFUSED = json.dumps(
    {
        "kind": "Status",
        "message": "Cannot evict pod as it would violate the pod's disruption budget.",
        "details": {"causes": [{"reason": "DisruptionBudget"}]},
    }
)


class Applied:
    """Calls of a command with ``--apply``, at the server or at what is in front of it in passes."""

    def __init__(
        self, control_plane: ControlPlane, capsys: pytest.CaptureFixture[str], passes: Passes, command: str
    ) -> None:
        self._control_plane, self._capsys, self._passes, self._command = control_plane, capsys, passes, command
        self.err = ""

    def __call__(self, *flags: str, code: int | None = 0) -> dict[str, Any]:
        """Make one that ends with a code, None: with any; the plan, and what became of it."""
        config = self._control_plane.kubeconfig(self._command, url=self._passes.url)
        self._capsys.readouterr()
        within = [] if "--gone-within" in flags else ["--gone-within", "60"]
        fixed = ["--apply", "--json", "--quiet", "--workers", "1", "--time-limit", "600"]
        arguments = [self._command, *fixed, *within, *flags]
        found = main([*arguments, "--kubeconfig", str(config)])
        told = self._capsys.readouterr()
        self.err = told.err
        assert code in (found, None), (told.out, told.err)
        decoder, text, documents = json.JSONDecoder(), told.out.strip(), []
        while text:
            document, end = decoder.raw_decode(text)
            documents.append(document)
            text = text[end:].strip()
        return {key: value for each in documents for key, value in each.items()} | {"code": found}


class Run:
    """Passes of ``run`` that may disturb."""

    def __init__(self, passes: Passes) -> None:
        self._passes = passes

    def __call__(self, *flags: str, hourly: int = 20, code: int | None = 0) -> dict[str, Any]:
        """Make one; what it says."""
        return self._passes(*self.flags(*flags, hourly=hourly), code=code)

    @staticmethod
    def flags(*flags: str, hourly: int = 20) -> list[str]:
        """What such a pass is called with."""
        within = [] if "--gone-within" in flags else ["--gone-within", "60"]
        return ["--max-evictions-per-hour", str(hourly), "--time-limit", "600", "--workers", "1", *within, *flags]


def allowed(cluster: Api, **disruption: Any) -> None:
    """Have the Policy let passes disturb."""
    cluster.create(policy(disruption=disruption))


def nominated(cluster: Api) -> dict[str, str]:
    """Pod to the node that it is nominated to, of those that wait."""
    there = {each["metadata"]["name"]: each for each in cluster.items(PODS)}
    found = {name: each["status"].get("nominatedNodeName") for name, each in there.items()}
    return {name: node for name, node in found.items() if node and not there[name]["spec"].get("nodeName")}


def evictions(proxy: Proxy) -> dict[str, int]:
    """Pod to how often the server took an eviction of it, dry runs included."""
    return {path.split("/")[-2]: n for (_, path), n in proxy.done.items() if path.endswith("/eviction")}


def told(cluster: Api, reason: str) -> dict[str, str]:
    """Name of what Events of a reason are about to what they say."""
    return {each["regarding"]["name"]: each["note"] for each in cluster.items(EVENTS) if each.get("reason") == reason}


def full(cluster: Api, *, spare: int = 0) -> list[Document]:
    """Two nodes with a gang of low priority each, of two pods, and ``train`` of two pods, which needs one of them.

    Returns
    -------
    list[Document]
        The pods that run.
    """
    running = [
        owned(f"eval{gang}-{number}", f"eval{gang}", "low", f"n{gang}", group=f"eval{gang}", cpu=4)
        for gang in range(2)
        for number in range(2 - gang)
    ]
    cluster.create(priority_class("low", 10), priority_class("high", 1000))
    nodes = [node("n0", cpu=8), node("n1", cpu=8), *(node(f"s{number}", cpu=4) for number in range(spare))]
    names = [each["metadata"]["name"] for each in nodes]
    cluster.create(*nodes, *(hyper_node(f"of-{name}", 1, nodes=(name,)) for name in names))
    one_node = {"mode": "hard", "highestTierAllowed": 1}
    cluster.create(
        pod_group("eval0", minMember=2),
        pod_group("eval1", minMember=1),
        pod_group("train", minMember=2, networkTopology=one_node),
    )
    cluster.create(*running, steal_spec("filler", "n1"))
    cluster.create(*(owned(f"train-{number}", "train", "high", group="train", cpu=4) for number in range(2)))
    return running


def steal_spec(name: str, where: str) -> Document:
    """A pod of high priority, which does not go."""
    return owned(name, "service", "high", where, cpu=4)


def still_run(cluster: Api) -> set[str]:
    """Pods that have a node and are not on their way out."""
    return {
        each["metadata"]["name"]
        for each in cluster.items(PODS)
        if each["spec"].get("nodeName") and not each["metadata"].get("deletionTimestamp")
    }
