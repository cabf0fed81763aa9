"""The rule about NUMA zones: C10 numa."""

from __future__ import annotations

from collections.abc import Iterator

from placer.instance.numa import TopologyManager
from placer.outcome import Outcome
from placer.placement import Violation
from placer.verify.words import pod_name


def numa(outcome: Outcome) -> Iterator[Violation]:
    """C10: where the policy is single-numa-node or restricted, the kubelet admits every new pod in plan order.

    The kubelet is replayed. A refused pod is a violation of amount 1 and takes nothing. Under an unknown policy every
    pod that would be aligned counts as refused.
    """
    for name, node in outcome.instance.aligning_nodes.items():
        manager = TopologyManager(node)
        for pod in outcome.new_on.get(name, ()):
            refusal = manager.admit(pod.numa).refusal
            if refusal:
                subjects = (pod_name(pod.key), f"Node {name}")
                kubelet = f"{subjects[1]} ({node.policy}, scope {node.scope})"
                yield Violation("C10", subjects, 1, f"{subjects[0]} is refused by the kubelet of {kubelet}: {refusal}")
