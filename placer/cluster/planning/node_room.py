"""What room every node has: which pods hold what on it, and what pods that are about to be bound would find (C2)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from placer.cluster.planning.binding_plan import PlannedBinding
from placer.cluster.reading.views import KubeletAnswer
from placer.instance import HostPort, Key, Node, Pod, PodState
from placer.quantity import Resources, format_amount

__all__ = ["ON_NODE", "Holding", "NodeRoom", "Overfull"]

#: States of pods that a kubelet knows of.
ON_NODE = (PodState.BOUND, PodState.TERMINATING)


@dataclass(frozen=True, slots=True)
class Overfull:
    """A node on which pods request more than there is: ``amount`` of ``room``, in the units of ``Resources``."""

    node: str
    resource: str
    amount: int
    room: int

    def __str__(self) -> str:
        amounts = " of ".join(format_amount(self.resource, each) for each in (self.amount, self.room))
        return f"Node {self.node}: {self.resource} {amounts}"


@dataclass(slots=True)
class Holding:
    """What a pod holds on its node; ``ours`` where that is by a binding of this pass."""

    uid: str
    node: str
    state: PodState
    requests: Resources
    ports: tuple[HostPort, ...]
    ours: bool = False
    seen: bool = True  #: whether an event showed it there
    answer: KubeletAnswer = KubeletAnswer.NOTHING

    def is_as(self, other: Holding) -> bool:
        """Whether another one is of the same pod and holds the same, in the same way."""
        one, two = ((each.uid, each.node, each.requests, each.state in ON_NODE) for each in (self, other))
        return one == two


class NodeRoom:
    """Which pods hold room on which nodes, with the sums of what they request."""

    def __init__(self) -> None:
        self.holdings: dict[Key, Holding] = {}
        self._on: dict[str, set[Key]] = defaultdict(set)
        self._used: dict[str, Counter[str]] = defaultdict(Counter)

    def hold(self, key: Key, holding: Holding) -> None:
        """Take room for a pod that holds none."""
        self.holdings[key] = holding
        self._on[holding.node].add(key)
        self._used[holding.node].update(dict(holding.requests))

    def release(self, key: Key) -> bool:
        """Give back what a pod holds; whether it held something."""
        holding = self.holdings.pop(key, None)
        if holding is None:
            return False
        self._on[holding.node].discard(key)
        self._used[holding.node].subtract(dict(holding.requests))
        return True

    def refusal(
        self, binds: Iterable[PlannedBinding], pods: Mapping[Key, Pod], nodes: Mapping[str, Node]
    ) -> str | None:
        """Why there is no room for pods that are bound together, in one sentence; None where there is."""
        by_node: dict[str, list[Pod]] = defaultdict(list)
        for each in binds:
            by_node[each.node].append(pods[each.pod])
        refusals = (
            self._amount_refusal(nodes[name], new) or self._port_refusal(name, new) for name, new in by_node.items()
        )
        return next(filter(None, refusals), None)

    def _amount_refusal(self, node: Node, new: Sequence[Pod]) -> str | None:
        wanted: Counter[str] = Counter()
        for pod in new:
            wanted.update(dict(pod.requests))
        for resource, amount in sorted(wanted.items()):
            room = node.allocatable[resource] - self._used[node.name][resource]
            if amount > room:
                amounts = " of ".join(format_amount(resource, each) for each in (amount, max(0, room)))
                return f"the room is gone on Node {node.name}: {resource} {amounts} left"
        return None

    def _port_refusal(self, node: str, new: Sequence[Pod]) -> str | None:
        taken = [port for key in self._on[node] for port in self.holdings[key].ports]
        wanted = (port for pod in new for port in pod.host_ports)
        clash = next((port for port in wanted if any(port.clashes(other) for other in taken)), None)
        return None if clash is None else f"the room is gone on Node {node}: {clash.protocol} host port {clash.port}"

    def overfull(self, nodes: Mapping[str, Node]) -> list[Overfull]:
        """What is too much on nodes on which pods of this pass request it too."""
        ours = {holding.node for holding in self.holdings.values() if holding.ours}
        return [each for name in sorted(ours) if name in nodes for each in self._overfull_on(nodes[name])]

    def _overfull_on(self, node: Node) -> Iterator[Overfull]:
        standing = [each for each in map(self.holdings.__getitem__, self._on[node.name]) if each.state in ON_NODE]
        for resource in sorted({name for each in standing if each.ours for name in each.requests}):
            amount = sum(each.requests[resource] for each in standing)
            if amount > node.allocatable[resource]:
                yield Overfull(node.name, resource, amount, node.allocatable[resource])
