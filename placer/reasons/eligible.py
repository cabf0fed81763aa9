"""Where a pod may go at all (C3), and what keeps it off the other nodes."""

from __future__ import annotations

from collections import Counter

from placer.instance import Constraints, Instance, Pod
from placer.reasons.words import counted, plural, shape_text
from placer.result import Reason

__all__ = ["Eligible"]


class Eligible:
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
