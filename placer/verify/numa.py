"""The rule about NUMA zones: C10 numa."""

from __future__ import annotations

from collections.abc import Iterator

from placer.instance.numa import TopologyManager
from placer.outcome import Outcome
from placer.placement import Violation
from placer.verify.words import pod_name


def numa(outcome: Outcome) -> Iterator[Violation]:
    """C10: where the policy is single-numa-node or restricted, the kubelet admits every new pod in plan order.

    The amount is 1 per refused pod, which takes nothing. An unknown policy refuses all that it would align.
    """
    for name, node in outcome.instance.aligning_nodes.items():
        manager = TopologyManager(node)
        for pod in outcome.new_on.get(name, ()):
            refusal = manager.admit(pod.numa).refusal
            if refusal:
                subjects = (pod_name(pod.key), f"Node {name}")
                kubelet = f"{subjects[1]} ({node.policy}, scope {node.scope})"
                yield Violation("C10", subjects, 1, f"{subjects[0]} is refused by the kubelet of {kubelet}: {refusal}")
