"""Calls of ``--apply`` in tests, and what the server says of them afterwards."""

from __future__ import annotations

import json
from typing import Any

import pytest

from placer.cli import main
from tests.cluster.api import Api
from tests.cluster.proxy import Proxy
from tests.cluster.server import ControlPlane

__all__ = ["REFUSED", "Applied", "evictions", "told"]

EVENTS = "/apis/events.k8s.io/v1/events"
REFUSED = json.dumps(
    {
        "kind": "Status",
        "message": "Cannot evict pod as it would violate the pod's disruption budget.",
        "details": {"causes": [{"reason": "DisruptionBudget"}]},
    }
)


class Applied:
    """Calls of a command with ``--apply``, ``preempt`` or ``repair``."""

    def __init__(self, control_plane: ControlPlane, capsys: pytest.CaptureFixture[str], command: str) -> None:
        self._control_plane, self._capsys, self._command = control_plane, capsys, command
        self.url: str | None = None
        self.err = ""

    def __call__(self, *flags: str, code: int | None = 0) -> dict[str, Any]:
        """Make one that ends with a code, None: with any; the plan, and what became of it."""
        config = self._control_plane.kubeconfig(self._command, url=self.url)
        self._capsys.readouterr()
        within = [] if "--gone-within" in flags else ["--gone-within", "60"]
        arguments = [self._command, "--apply", "--json", "--quiet", "--workers", "1", *within, *flags]
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


def evictions(proxy: Proxy) -> dict[str, int]:
    """Pod to how often the server took an eviction of it, dry runs included."""
    return {path.split("/")[-2]: n for (_, path), n in proxy.done.items() if path.endswith("/eviction")}


def told(cluster: Api, reason: str) -> dict[str, str]:
    """Name of what Events of a reason are about to what they say."""
    return {each["regarding"]["name"]: each["note"] for each in cluster.items(EVENTS) if each.get("reason") == reason}
