"""Controllers and kubelets in one: what is bound runs, what is evicted ends, and is made again."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tests.cluster.api import Api, Refused
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
    late
        Gives for the name of a pod the steps for which it is on its way out, and those after which another one is made
        in its place, None: never. Default: both at once.
    besides
        What others do in each step.
    """

    def __init__(
        self,
        api: Api,
        made: Iterable[Document],
        *,
        renamed: bool = True,
        lost: Collection[str] = (),
        late: Callable[[str], tuple[int, int | None]] = lambda _name: (0, 0),
        besides: Callable[[], None] = lambda: None,
    ) -> None:
        self._besides = besides
        self._api, self._renamed, self._lost, self._late = api, renamed, frozenset(lost), late
        self._steps: Counter[str] = Counter()  # uid to the steps for which it has been on its way out
        self._to_make: dict[str, int] = {}  # name to the steps until another one is made
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
        for name, left in list(self._to_make.items()):
            self._to_make[name] = left - 1
            if left <= 0:
                del self._to_make[name]
                self._again(name)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is on its way out, and nothing is to be made again."""
        pods = self._api.items(PODS)
        going = (each for each in pods if each["metadata"].get("deletionTimestamp"))
        return not self._to_make and all(each["spec"].get("nodeName") in self._lost for each in going)

    def _end(self, pod: Document) -> None:
        """End a pod that is on its way out, if it is time."""
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        ends, again = self._late(name)
        self._steps[uid] += 1
        if self._steps[uid] <= ends:
            return
        if pod["spec"].get("nodeName") not in self._lost:
            self._api.delete(f"{PODS}/{name}", uid)
            self.ended.append(name)
        if name in self._made and again is not None:
            self._to_make.setdefault(name, again)

    def _again(self, name: str) -> None:
        before = self._made.pop(name)
        new = f"{name}-again" if self._renamed else name
        spec = {key: value for key, value in before["spec"].items() if key != "nodeName"}
        again = {**before, "metadata": {**before["metadata"], "name": new}, "spec": spec, "status": {}}
        self._made[new] = again
        self._api.create(again)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Work in the background as long as the block lasts; what goes wrong there is raised at its end."""
        over, faults = threading.Event(), list[BaseException]()

        def work() -> None:
            try:
                while not over.wait(0.05):
                    self.step()
                    self._besides()
            except BaseException as fault:
                faults.append(fault)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        if faults:
            raise faults[0]
