"""Causes: what keeps a group out, where it comes nearest to being let in, and numbers as people read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from placer.codes import ReasonCode
from placer.instance import Constraints, Instance, Pod
from placer.quantity import PODS, format_amount
from placer.result import Reason

__all__ = ["Cause", "EligibleNodes", "counted", "plural", "shape_text"]


def plural(count: int, noun: str) -> str:
    """Write a count with its noun.

    Examples
    --------
    >>> plural(1, "pod"), plural(3, "pod")
    ('1 pod', '3 pods')
    """
    return f"{count} {noun}" + ("" if count == 1 else "s")


def shape_text(requests: Mapping[str, int]) -> str:
    """Write what a pod requests, itself apart.

    Examples
    --------
    >>> shape_text({"cpu": 1500, "nvidia.com/gpu": 8, "pods": 1})
    'cpu 1500m, nvidia.com/gpu 8'
    """
    amounts = [f"{name} {format_amount(name, amount)}" for name, amount in requests.items() if name != PODS]
    return ", ".join(amounts) or "no request"


def counted(counts: Mapping[str, int]) -> str:
    """Write counts of causes, the most frequent first, as kube-scheduler does.

    Examples
    --------
    >>> counted({"node selector pool=gpu": 2, "node is not Ready": 3})
    '3 node is not Ready, 2 node selector pool=gpu'
    """
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count} {text}" for text, count in ranked)


def _no_pod(_: Pod) -> bool:
    return False


@dataclass(frozen=True)
class Cause:
    """A reason, and where to look for those who hold what is missing.

    Parameters
    ----------
    code, message
        As in :class:`placer.result.Reason`.
    nodes
        Whose room would be needed: the best node, those of the best domain, those near enough; None: any.
    held
        Beginning of the sentence about pods for which ``holds`` is true; empty: there is none.
    holds
        Tells pods that are in its way wherever they are (in a queue, on a link, at the other end of a call).
    """

    code: ReasonCode
    message: str
    nodes: frozenset[str] | None = None
    held: str = ""
    holds: Callable[[Pod], bool] = _no_pod

    @classmethod
    def of(cls, reason: Reason) -> Cause:
        """A reason that names no place."""
        return cls(reason.code, reason.message)

    @property
    def reason(self) -> Reason:
        """Without the place."""
        return Reason(self.code, self.message)


class EligibleNodes:
    """Counts over the nodes of an instance, once per set of constraints."""

    def __init__(self, instance: Instance) -> None:
        self.nodes = instance.nodes
        self._refusals: dict[Constraints, Counter[str]] = {}

    def nowhere(self, pod: Pod) -> bool:
        """Whether no node is eligible for a pod."""
        return self._refused(pod.constraints).total() == len(self.nodes)

    def reason(self, pod: Pod, count: int) -> Reason:
        """Say what keeps ``count`` pods like this one off every node."""
        pods = f"{plural(count, 'pod')} of {shape_text(pod.requests)}"
        text = f"0/{len(self.nodes)} nodes are eligible for {pods}: {counted(self._refused(pod.constraints))}"
        return Reason("NoEligibleNode", text)

    def _refused(self, constraints: Constraints) -> Counter[str]:
        if constraints not in self._refusals:
            texts = (constraints.refusal(node) for node in self.nodes.values())
            self._refusals[constraints] = Counter(text for text in texts if text is not None)
        return self._refusals[constraints]
