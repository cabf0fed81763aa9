"""Rules about single pods and nodes: C1 once, C2 capacity, C3 eligibility, C4 refusal, C10 numa."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from placer.base.quantity import Resources
from placer.problem import HostPort, Instance, Key, Pod, PodState
from placer.problem.numa import TopologyManager
from placer.problem.outcome import Outcome, clashing_ports, requested
from placer.problem.placement import Violation
from placer.rules.words import excesses, pod_name


def once(outcome: Outcome) -> Iterator[Violation]:
    """C1: a pending pod gets at most one node; a bound pod keeps its node. Each other binding is a violation of amount
    1.
    """
    pods = outcome.instance.pods
    seen: set[Key] = set()
    for binding in outcome.placement.bindings:
        pod, node = pods.get(binding.pod), f"Node {binding.node}"
        subjects = (pod_name(binding.pod), node)
        if pod is None:
            yield Violation(
                "C1", subjects, 1, f"{pod_name(binding.pod)} is not in the instance, cannot be bound to {node}"
            )
        elif pod.state is not PodState.PENDING:
            message = f"{pod_name(binding.pod)} is {pod.state.value} on node {pod.node}, it cannot be bound to {node}"
            yield Violation("C1", subjects, 1, message)
        elif binding.pod in seen:
            message = f"{pod_name(binding.pod)} is bound to {node} after node {outcome.placement.node_of[binding.pod]}"
            yield Violation("C1", subjects, 1, message)
        seen.add(binding.pod)


def capacity(outcome: Outcome) -> Iterator[Violation]:
    """C2: per node n and resource r that a new pod requests, the sum of requests(p, r) over the pods on n is ≤
    allocatable(n, r), and host ports do not clash. The amount is the excess, or 1 per clash.
    """
    instance = outcome.instance
    for name, new in outcome.new_on.items():
        allocatable, added = instance.nodes[name].allocatable, requested(new)
        held = instance.held.get(name, Resources())
        for resource, excess, sums in excesses(held, added, {resource: allocatable[resource] for resource in added}):
            yield Violation("C2", (f"Node {name}",), excess, f"Node {name}: {resource} {sums}")
    yield from _port_clashes(outcome)


def _port_clashes(outcome: Outcome) -> Iterator[Violation]:
    asking = {name: [pod for pod in new if pod.host_ports] for name, new in outcome.new_on.items()}
    taken: Mapping[str, list[Pod]] = _port_holders(outcome.instance) if any(asking.values()) else {}
    for name, new in asking.items():
        for pod, mine, other, theirs in clashing_ports([*taken.get(name, ()), *new]):
            if pod.key in outcome.new:
                subjects = (f"Node {name}", pod_name(pod.key), pod_name(other.key))
                message = f"{subjects[0]}: {_port(mine)} of {subjects[1]} clashes with {_port(theirs)} of {subjects[2]}"
                yield Violation("C2", subjects, 1, message)


def eligibility(outcome: Outcome) -> Iterator[Violation]:
    """C3: a pod is bound only to an existing node that may take it. The amount is 1 per pod."""
    instance = outcome.instance
    for key, name in outcome.placement.node_of.items():
        pod, node = instance.pods.get(key), instance.nodes.get(name)
        if pod is None or pod.state is not PodState.PENDING:
            continue
        reason = "node is not in the instance" if node is None else pod.constraints.refusal(node)
        if reason is not None:
            yield Violation(
                "C3", (pod_name(key), f"Node {name}"), 1, f"{pod_name(key)} may not be on Node {name}: {reason}"
            )


def refusal(outcome: Outcome) -> Iterator[Violation]:
    """C4: a pod with demands that are not modelled is never bound. The amount is 1 per pod."""
    for key, name in outcome.new.items():
        unsupported = outcome.instance.pods[key].unsupported
        if unsupported:
            message = f"{pod_name(key)} needs unsupported fields and is bound to Node {name}: {'; '.join(unsupported)}"
            yield Violation("C4", (pod_name(key),), 1, message)


def _port(port: HostPort) -> str:
    return f"host port {port.ip}:{port.port}/{port.protocol}"


def _port_holders(instance: Instance) -> dict[str, list[Pod]]:
    found: dict[str, list[Pod]] = defaultdict(list)
    for pod in instance.pods.values():
        if pod.host_ports and pod.node is not None:
            found[pod.node].append(pod)
    return found


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
