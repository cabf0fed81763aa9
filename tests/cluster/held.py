"""Pods with the hold gate in tests, and what became of them."""

from __future__ import annotations

from typing import Any

from placer.problem.pod_states import HOLD_GATE
from tests.cluster.api import Api
from tests.cluster.faults import PODS
from tests.cluster.passes import bound, gang
from tests.support import Document
from tests.waiting import wait_until

__all__ = ["GATES", "all_bound", "gated", "held", "held_gang", "only_nodes", "read", "scheduled"]

GATES = ("--enforce", "gates")


def held(document: Document, *others: str, scheduler: str = "default-scheduler") -> Document:
    """A pod of another scheduler with the gate, and with others beside it; any other object as it is."""
    if document["kind"] != "Pod":
        return document
    gates = [{"name": name} for name in (HOLD_GATE, *others)]
    return {**document, "spec": {**document["spec"], "schedulerName": scheduler, "schedulingGates": gates}}


def held_gang(name: str, pods: int, least: int | None = None, **options: Any) -> list[Document]:
    """A PodGroup with its pods, which have the gate."""
    return [held(each) for each in gang(name, pods, least, **options)]


def read(cluster: Api, name: str) -> dict[str, Any]:
    return cluster.get(f"{PODS}/{name}")


def gated(cluster: Api) -> set[str]:
    """Pods that have a scheduling gate."""
    return {each["metadata"]["name"] for each in cluster.items(PODS) if each["spec"].get("schedulingGates")}


def only_nodes(cluster: Api) -> dict[str, str]:
    """Pod to the node that its affinity names, of those without gates whose affinity names one."""
    found = {}
    for each in cluster.items(PODS):
        affinity = each["spec"].get("affinity", {}).get("nodeAffinity", {})
        terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [])
        names = {field["values"][0] for term in terms for field in term.get("matchFields", [])}
        if len(names) == 1 and not each["spec"].get("schedulingGates"):
            found[each["metadata"]["name"]] = names.pop()
    return found


def all_bound(cluster: Api, *names: str) -> dict[str, str]:
    """Wait until pods have a node; which."""
    wait_until(lambda: set(names) <= bound(cluster).keys(), f"{', '.join(names)} bound")
    return {name: bound(cluster)[name] for name in names}


def scheduled(cluster: Api, name: str) -> dict[str, Any]:
    """The condition PodScheduled of a pod."""
    conditions = read(cluster, name)["status"].get("conditions") or []
    return next((each for each in conditions if each["type"] == "PodScheduled"), {})
