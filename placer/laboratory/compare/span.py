"""How many leaf domains a gang is spread over beyond the fewest that could hold it: excess span."""

from __future__ import annotations

import bisect
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property

from placer.instance import Constraints, Instance, Key, Node
from placer.outcome import Outcome
from placer.quantity import Resources

__all__ = ["excess_spans"]

#: A leaf HyperNode (True, its name), or a node in none, which is a leaf of its own (False, the node's name).
Leaf = tuple[bool, str]


def excess_spans(outcome: Outcome) -> list[int]:
    """Excess span of every PodGroup of which the placement adds a pod, in the order of the groups; at least 0 each.

    It is the number of leaves that the new pods of the gang touch, less the fewest leaves that could hold these pods if
    the gang were alone with what runs already (solver-free: see :class:`_Room`). 0 is as near as can be. The fewest is
    exact where the pods of a gang are alike and a lower bound where they are not, so the excess is never too small.
    """
    room = _Room(outcome.instance)
    found = []
    for group in outcome.instance.groups.values():
        new = outcome.added(group.pending)
        if group.key.api_group and new:
            leaves = {room.leaf(outcome.new[key]) for key in new}
            found.append(max(0, len(leaves) - room.fewest(new)))
    return found


class _Room:
    """What each leaf could take before the placement.

    For pods that are alike: the sum over the leaf's eligible nodes of how many fit, by every resource; the leaves that
    take most come first, and the shortest row of them that takes all pods is the fewest. For pods that differ: the
    largest of these numbers over their kinds, and of the same count with each resource summed up.
    """

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._of_kind: dict[tuple[Constraints, Resources], list[int]] = {}
        self._of_resource: dict[str, list[int]] = {}

    @cached_property
    def _free(self) -> dict[str, dict[str, int]]:
        """Node to what is free of each resource; more may be held than there is."""
        held = self._instance.held
        return {
            name: {
                resource: max(0, amount - held[name][resource] if name in held else amount)
                for resource, amount in node.allocatable.items()
            }
            for name, node in self._instance.nodes.items()
        }

    def leaf(self, node: str) -> Leaf:
        """The leaf that a node lies in."""
        leaf = self._instance.topology.leaf.get(node)
        return (False, node) if leaf is None else (True, leaf)

    def fewest(self, pods: Sequence[Key]) -> int:
        """At least so many leaves are needed for the pods, at least 1."""
        kinds = Counter((self._instance.pods[key].constraints, self._instance.pods[key].requests) for key in pods)
        total: Counter[str] = Counter()
        for (_, requests), count in kinds.items():
            total.update({resource: count * amount for resource, amount in requests.items()})
        numbers = [_shortest(self._kind(*kind), count) for kind, count in kinds.items()]
        numbers += [_shortest(self._resource(name), amount) for name, amount in total.items() if amount]
        return max(1, *numbers)

    def _kind(self, constraints: Constraints, requests: Resources) -> list[int]:
        """How many pods of a kind the first leaf takes, the first two, ..."""
        known = self._of_kind.get((constraints, requests))
        if known is None:
            amounts = ((name, self._fits(node, constraints, requests)) for name, node in self._instance.nodes.items())
            known = self._of_kind[constraints, requests] = self._prefixes(amounts)
        return known

    def _fits(self, node: Node, constraints: Constraints, requests: Resources) -> int:
        free = self._free[node.name]
        asked = [free.get(resource, 0) // amount for resource, amount in requests.items() if amount]
        fits = min(asked, default=len(self._instance.pending))
        return fits if fits and constraints.admits(node) else 0

    def _resource(self, resource: str) -> list[int]:
        known = self._of_resource.get(resource)
        if known is None:
            amounts = ((name, free.get(resource, 0)) for name, free in self._free.items())
            known = self._of_resource[resource] = self._prefixes(amounts)
        return known

    def _prefixes(self, amounts: Iterable[tuple[str, int]]) -> list[int]:
        """Sums over the leaves with most, with two that have most, ..."""
        of_leaf: dict[Leaf, int] = defaultdict(int)
        for node, amount in amounts:
            of_leaf[self.leaf(node)] += amount
        return list(itertools.accumulate(sorted(of_leaf.values(), reverse=True)))


def _shortest(prefixes: Sequence[int], wanted: int) -> int:
    """How many of the leaves with most it takes; all of them where even these are too few."""
    return min(len(prefixes), bisect.bisect_left(prefixes, wanted) + 1)
