"""PodDisruptionBudgets of a real API server, with their status kept as the disruption controller does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.cluster.api import Api, Refused
from tests.cluster.controllers import PODS
from tests.support import Document

__all__ = ["Budgets"]

_PATH = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


class Budgets:
    """Budgets of applications, whose pods have the label ``app``.

    Parameters
    ----------
    api
        The server.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._kept: dict[str, tuple[int, int]] = {}  # application to how many pods it has, and how many must run
        self.broken: list[str] = []  #: where fewer ran than must

    def add(self, app: str, pods: int, **spec: int) -> None:
        """Give an application of so many pods a budget: ``minAvailable`` or ``maxUnavailable``."""
        least = spec["minAvailable"] if "minAvailable" in spec else pods - spec["maxUnavailable"]
        self._kept[app] = pods, max(0, least)
        selector = {"matchLabels": {"app": app}}
        body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app}}
        self._api.create({**body, "spec": {"selector": selector, **spec}})

    def step(self) -> None:
        """Count once, as the controller does after each change of a pod."""
        pods = {each["metadata"]["name"]: each for each in self._api.items(PODS)}
        for each in self._api.items(_PATH):
            app = each["metadata"]["name"]
            self._count(each, {name: pod for name, pod in pods.items() if pod["metadata"]["labels"].get("app") == app})

    def _count(self, budget: Document, pods: Mapping[str, Document]) -> None:
        app, status = budget["metadata"]["name"], budget.get("status") or {}
        expected, least = self._kept[app]
        healthy = {name for name, pod in pods.items() if _is_healthy(pod)}
        if len(healthy) < least:
            self.broken.append(f"{len(healthy)} of at least {least} pods of {app} run")
        evicted = (
            status.get("disruptedPods") or {}
        )  # by the server, which looks at them before they are on their way out
        healthy -= evicted.keys()
        counted = {
            "observedGeneration": budget["metadata"]["generation"],
            "expectedPods": expected,
            "desiredHealthy": least,
            "currentHealthy": len(healthy),
            "disruptionsAllowed": max(0, len(healthy) - least),
            "disruptedPods": {name: None for name in evicted if name not in pods or not _is_healthy(pods[name])},
        }
        version = {"resourceVersion": budget["metadata"]["resourceVersion"]}
        try:
            self._api.patch(f"{_PATH}/{app}/status", {"metadata": version, "status": counted})
        except Refused as refusal:
            if refusal.status != 409:  # the server has evicted a pod meanwhile
                raise


def _is_healthy(pod: Mapping[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", ())
    is_ready = any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)
    return is_ready and "deletionTimestamp" not in pod["metadata"]
