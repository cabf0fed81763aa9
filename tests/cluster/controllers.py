"""Controllers and kubelets in one: what is bound runs, what is evicted ends, and is made again."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager, suppress
from typing import Any

from tests.cluster.api import Api, Refused
from tests.cluster.background import at_work
from tests.cluster.things import live_pod
from tests.support import Document

__all__ = ["Controllers", "owned", "priority_class"]

PODS = "/api/v1/namespaces/default/pods"


def priority_class(name: str, value: int) -> Document:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def owned(name: str, owner: str, priority: str, node: str | None = None, **options: Any) -> Document:
    """A pod that a Job has made, of a PriorityClass; running on a node where one is named."""
    controller = {"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": f"uid-of-{owner}", "controller": True}
    status = {"conditions": [{"type": "Ready", "status": "True"}]} if node is not None else {}
    metadata = {"ownerReferences": [controller]}
    spec = {"priorityClassName": priority}
    return live_pod(name, node=node, spec=spec, metadata=metadata, status=status, **options)


class Controllers:
    """Ends pods that are on their way out, and makes others in their place.

    Parameters
    ----------
    api
        The server.
    made
        The pods that they have made.
    renamed
        Whether what is made again has another name.
    lost
        Nodes whose kubelet ends nothing any more: another pod is made at once, as a ReplicaSet's controller does.
    """

    def __init__(self, api: Api, made: Iterable[Document], *, renamed: bool = True, lost: Collection[str] = ()) -> None:
        self._api, self._renamed, self._lost = api, renamed, frozenset(lost)
        self._made = {each["metadata"]["name"]: each for each in made}
        self.ended: list[str] = []  #: names, in the order in which they went
        self.nominated: dict[str, str] = {}  #: pod to the node that it was nominated to while something was going

    def step(self) -> None:
        """End what is to end, once, and make it again."""
        pods = self._api.items(PODS)
        going = [each for each in pods if each["metadata"].get("deletionTimestamp")]
        for each in pods if going else ():
            node = each["status"].get("nominatedNodeName")
            if node:
                self.nominated[each["metadata"]["name"]] = node
        for each in pods:
            if each["spec"].get("nodeName") and each["status"].get("phase") == "Pending" and each not in going:
                with suppress(Refused):  # it went meanwhile
                    ready = [*each["status"].get("conditions", ()), {"type": "Ready", "status": "True"}]
                    status = {"phase": "Running", "conditions": ready}
                    running = {"metadata": {"uid": each["metadata"]["uid"]}, "status": status}
                    self._api.patch(f"{PODS}/{each['metadata']['name']}/status", running)
        for each in going:
            self._end(each)

    def _end(self, pod: Document) -> None:
        name = pod["metadata"]["name"]
        if pod["spec"].get("nodeName") not in self._lost:
            self._api.delete(f"{PODS}/{name}", pod["metadata"]["uid"])
            self.ended.append(name)
        before = self._made.pop(name, None)
        if before is not None:
            new = f"{name}-again" if self._renamed else name
            spec = {key: value for key, value in before["spec"].items() if key != "nodeName"}
            self._made[new] = {**before, "metadata": {**before["metadata"], "name": new}, "spec": spec, "status": {}}
            self._api.create(self._made[new])

    def running(self) -> AbstractContextManager[None]:
        """Work in the background as long as a block lasts."""
        return at_work(self.step, 0.05)
