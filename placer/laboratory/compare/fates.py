"""What becomes of each group under a placement, and of which groups it is not the same under all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from placer.instance import GroupKey, Instance
from placer.outcome import Outcome
from placer.placement import Placement

__all__ = ["GroupFate", "differing", "fates"]


@dataclass(frozen=True, slots=True)
class GroupFate:
    """What a placement makes of a group with pending pods; a pod in no group is a group of its own name.

    Parameters
    ----------
    group
        The group.
    admitted
        Whether it is ready after the placement (C5).
    placed
        Its pods with a node, bound ones included.
    tier, hyper_node
        Of the smallest common HyperNode of these, where the group asks for a topology; None where it does not, and
        ``hyper_node`` is None for the virtual root.
    """

    group: GroupKey
    admitted: bool
    placed: int
    tier: int | None = None
    hyper_node: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data with the names of the contract."""
        return {
            "kind": "PodGroup" if self.group.api_group else "Pod",
            "namespace": self.group.namespace,
            "name": self.group.name,
            "admitted": self.admitted,
            "placed": self.placed,
            "tier": self.tier,
            "hyperNode": self.hyper_node,
        }


def fates(instance: Instance, placement: Placement) -> tuple[GroupFate, ...]:
    """Say what becomes of every group with pending pods, in the order of the groups."""
    outcome = Outcome(instance, placement)
    found = []
    for group in instance.groups.values():
        if group.pending:
            placed = (*group.bound, *outcome.added(group.pending))
            tier, hyper_node = outcome.common(group.topology, placed)
            found.append(GroupFate(group.key, outcome.ready(group), len(placed), tier, hyper_node))
    return tuple(found)


def differing(several: Iterable[Iterable[GroupFate]]) -> list[GroupKey]:
    """Groups that are ready under one placement and not under another, or have more pods there.

    Where their pods are is not compared: few groups have all pods in one place under every policy.
    """
    known: dict[GroupKey, set[tuple[bool, int]]] = {}
    for row in several:
        for fate in row:
            known.setdefault(fate.group, set()).add((fate.admitted, fate.placed))
    return [group for group, ends in known.items() if len(ends) > 1]
