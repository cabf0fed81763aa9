"""What the cluster has left: the largest gang of each usual shape that still fits, by tier."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from placer.base.quantity import PODS, Resources, format_amount
from placer.problem import Instance, Node
from placer.problem.stranding import AlikePods

#: Shapes that are looked at, the most frequent among the pods of the instance.
SHAPES = 8


@dataclass(frozen=True, slots=True)
class LargestGang:
    """Pods of one shape that fit under one HyperNode (None: the virtual root); ``count``: of the instance."""

    shape: AlikePods
    count: int
    tier: int
    pods: int
    hyper_node: str | None

    @property
    def words(self) -> str:
        """The shape as people read it."""
        amounts = (f"{name} {format_amount(name, each)}" for name, each in self.shape.requests.items() if name != PODS)
        on = ",".join(f"{key}={value}" for key, value in self.shape.constraints.selector)
        return (", ".join(amounts) or "no request") + (f" on {on}" if on else "")

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        requests = {name: format_amount(name, each) for name, each in self.shape.requests.items()}
        return {"requests": requests, "tier": self.tier, "pods": self.pods, "hyperNode": self.hyper_node}


def largest_gangs(instance: Instance) -> list[LargestGang]:
    """Find the largest gang that fits, for each usual shape and tier, the most frequent shape first.

    Counted by amounts and eligibility (C2, C3); host ports, queues, zones and waiting pods are left out.
    """
    shapes = Counter(AlikePods(pod.constraints, pod.requests) for pod in instance.pods.values() if not pod.daemon)
    usual = sorted(shapes.items(), key=lambda item: (-item[1], str(item[0])))[:SHAPES]
    return [each for shape, count in usual for each in _by_tier(instance, shape, count)]


def _by_tier(instance: Instance, shape: AlikePods, count: int) -> list[LargestGang]:
    room = {name: _room(instance, node, shape) for name, node in instance.nodes.items()}
    sums: Counter[str] = Counter()
    for name, pods in room.items():
        sums.update(dict.fromkeys(instance.topology.path(name), pods))
    best: dict[int, tuple[int, str]] = {}
    for domain, each in sorted(instance.topology.hyper_nodes.items()):
        if each.tier not in best or sums[domain] > best[each.tier][0]:
            best[each.tier] = sums[domain], domain
    found = [LargestGang(shape, count, tier, pods, where) for tier, (pods, where) in sorted(best.items())]
    return [*found, LargestGang(shape, count, instance.topology.root_tier, sum(room.values()), None)]


def _room(instance: Instance, node: Node, shape: AlikePods) -> int:
    if not shape.constraints.admits(node):
        return 0
    free = node.allocatable - instance.held.get(node.name, Resources())
    return shape.requests.copies_in(free)
