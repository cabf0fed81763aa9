"""Causes: the rule that keeps a group out, the nearest place, and numbers in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from placer.base.codes import ReasonCode
from placer.base.quantity import PODS, Resources, format_amount
from placer.base.text import alike
from placer.base.words import NamedThing, NameList, Sentence, and_list, some
from placer.problem import Constraints, Instance, Pod
from placer.problem.result import Reason

#: So many nodes of one kind, pods, or values of a label are named.
NAMED = 3
#: How alike two resources must be: ``amd.com/gpu`` does not mean ``nvidia.com/gpu``.
RESOURCES_ALIKE = 0.8
#: So many resources of a pod.
SHOWN = 8


def plural(count: int, noun: str) -> str:
    """Write a count with its noun."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def not_offered(instance: Instance, name: str) -> str:
    """No node offers a resource; and one that is offered and has a name like it."""
    like = alike(name, instance.offered, RESOURCES_ALIKE)
    return f"no node offers {name}" + (f" (found like it: {like})" if like else "")


def pod_names(pods: Iterable[Pod], word: Callable[[Pod], str] = lambda pod: f"Pod {pod.key}") -> Sentence:
    """Pods with a word for each; readers see the names of their own pods only."""
    return Sentence.of(NameList(tuple(NamedThing(pod.key.namespace, word(pod), pod.priority) for pod in pods), NAMED))


def shape_text(requests: Mapping[str, int]) -> str:
    """Write the requests of a pod, the pod itself apart.

    Examples
    --------
    >>> shape_text({"cpu": 1500, "nvidia.com/gpu": 8, "pods": 1})
    'cpu 1500m, nvidia.com/gpu 8'
    """
    amounts = [f"{name} {format_amount(name, amount)}" for name, amount in requests.items() if name != PODS]
    return ", ".join(some(amounts, SHOWN)) or "no request"


def counted(counts: Mapping[str, int]) -> str:
    """Write counts of causes, the most frequent first, as kube-scheduler does.

    Examples
    --------
    >>> counted({"node selector pool=gpu": 2, "node is not Ready": 3})
    '3 nodes are not Ready, 2 node selector pool=gpu'
    """
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    said = ((text.replace("node is", "nodes are", 1) if count > 1 else text, count) for text, count in ranked)
    return ", ".join(f"{count} {text}" for text, count in said)


def _no_pod(_pod: Pod, _node: str) -> bool:
    return False


@dataclass(frozen=True)
class Cause:
    """A reason, and where to look for the holders of the missing amounts.

    ``nodes``: whose room would be needed; None: any. ``held``: begins the sentence about pods for which ``holds`` is
    true, those in the way though not by room; ``holds`` None: the message names them.
    """

    code: ReasonCode
    message: str | Sentence
    nodes: frozenset[str] | None = None
    held: str = ""
    holds: Callable[[Pod, str], bool] | None = _no_pod

    @classmethod
    def of(cls, reason: Reason) -> Cause:
        """A reason that names no place."""
        return cls(reason.code, reason.text)

    @property
    def reason(self) -> Reason:
        """Without the place."""
        return Reason(self.code, self.message)


class EligibleNodes:
    """Counts over the nodes of an instance, once per set of constraints."""

    def __init__(self, instance: Instance) -> None:
        self.instance, self.nodes = instance, instance.nodes
        self._refusals: dict[Constraints, dict[str, list[str]]] = {}
        self._takes: dict[tuple[Constraints, Resources], bool] = {}

    def nowhere(self, pod: Pod) -> bool:
        """Whether no node is eligible for a pod."""
        return bool(self.instance.unoffered(pod)) or self.count(pod) == 0

    def count(self, pod: Pod) -> int:
        """How many nodes are eligible for a pod."""
        return len(self.nodes) - sum(map(len, self._refused(pod.constraints).values()))

    def largest_takes(self, pod: Pod) -> bool:
        """Whether an eligible node would have room for a pod if it were empty."""
        kind = pod.constraints, pod.requests
        if kind not in self._takes:
            nodes = (node for node in self.nodes.values() if pod.constraints.admits(node))
            self._takes[kind] = any(pod.requests.fits(node.allocatable) for node in nodes)
        return self._takes[kind]

    def reason(self, pod: Pod, count: int) -> Reason:
        """Why ``count`` pods like this one are kept off every node."""
        pods = f"{plural(count, 'pod')} of {shape_text(pod.requests)}"
        return Reason("NoEligibleNode", f"0/{len(self.nodes)} nodes are eligible for {pods}: {self.refusals(pod)}")

    def refusals(self, pod: Pod) -> str:
        """Refusals of nodes for a pod, those by every node first, with the nodes' names where they are few."""
        absent = [not_offered(self.instance, name) for name in some(self.instance.unoffered(pod), NAMED)]
        refused = self._refused(pod.constraints)
        named = {f"{text}{_names(nodes)}": len(nodes) for text, nodes in refused.items()}
        return "; ".join(filter(None, (and_list(absent), counted(named))))

    def _refused(self, constraints: Constraints) -> dict[str, list[str]]:
        if constraints not in self._refusals:
            found = self._refusals.setdefault(constraints, {})
            for name, node in self.nodes.items():
                if not constraints.admits(node):
                    found.setdefault(" and ".join(constraints.refusals(node)), []).append(name)
        return self._refusals[constraints]


def _names(nodes: list[str]) -> str:
    return f" ({', '.join(nodes)})" if len(nodes) <= NAMED else ""
