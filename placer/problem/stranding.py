"""Free amounts that are of no use, and why: pods ask for the resource, and none of them fits there (C2, C3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from placer.base.deadline import NEVER, Deadline
from placer.base.quantity import PODS, Resources, format_amount
from placer.problem import Constraints, Instance, Node

#: These are looked at last.
_PLAIN = ("cpu", "memory", "ephemeral-storage")


@dataclass(frozen=True, slots=True)
class AlikePods:
    """Pods of equal constraints and requests."""

    constraints: Constraints
    requests: Resources


@dataclass(frozen=True, slots=True)
class Stranded:
    """An amount of one resource, summed over nodes, that pods cannot use for one reason."""

    resource: str
    amount: int
    reason: str
    nodes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"resource": self.resource, "amount": self.amount, "reason": self.reason, "nodes": list(self.nodes)}


def stranded(instance: Instance, held: Mapping[str, Resources], deadline: Deadline = NEVER) -> list[Stranded] | None:
    """Find stranded amounts, the most frequent reason of each resource first; None: not all was looked at in time.

    ``held``: node to the amounts that pods take of it; an untouched node is absent.
    """
    least = _least_kinds(instance)
    sums: dict[tuple[str, str], int] = defaultdict(int)
    nodes: dict[tuple[str, str], list[str]] = defaultdict(list)
    nothing = Resources()
    for name, node in instance.nodes.items():
        free = node.allocatable - held.get(name, nothing)
        refusals: dict[int, str | None] = {}
        if deadline.over:
            return None
        for resource, kinds in least.items():
            if free[resource] > 0:
                reason = _reason(node, free, resource, kinds, refusals)
                if reason:
                    sums[resource, reason] += free[resource]
                    nodes[resource, reason].append(name)
    found = [Stranded(what, amount, why, tuple(nodes[what, why])) for (what, why), amount in sums.items()]
    order = {resource: index for index, resource in enumerate(least)}
    return sorted(found, key=lambda each: (order[each.resource], -each.amount, each.reason))


def _least_kinds(instance: Instance) -> dict[str, list[AlikePods]]:
    """Resource to the kinds of pods that ask for it, without those that ask for more than another one like it."""
    kinds = {AlikePods(pod.constraints, pod.requests) for pod in instance.pods.values() if not pod.daemon}
    found: dict[str, list[AlikePods]] = defaultdict(list)
    for kind in sorted(kinds, key=lambda kind: (sum(kind.requests.values()), str(kind))):
        for resource in kind.requests:
            if resource != PODS and not any(
                other.constraints == kind.constraints and other.requests.fits(kind.requests)
                for other in found[resource]
            ):
                found[resource].append(kind)
    return {resource: found[resource] for resource in sorted(found, key=lambda name: (name in _PLAIN, name))}


def _reason(node: Node, free: Resources, resource: str, kinds: list[AlikePods], known: dict[int, str | None]) -> str:
    for kind in kinds:
        if id(kind.constraints) not in known:  # their hash is dear, and a tenant may write many
            known[id(kind.constraints)] = kind.constraints.refusal(node)
    may = [kind for kind in kinds if known[id(kind.constraints)] is None]
    if not may:
        return known[id(kinds[0].constraints)] or ""
    lacks = [([name for name, amount in kind.requests.items() if amount > free[name]], kind) for kind in may]
    missing, kind = min(lacks, key=lambda lack: len(lack[0]))
    return _words(resource, missing, kind)


def _words(resource: str, missing: list[str], kind: AlikePods) -> str:
    if missing in ([], [resource]):
        return f"too little in one piece: the smallest pods ask for {_amount(kind, resource)}" if missing else ""
    others = [name for name in missing if name != resource]
    asked = " and ".join(f"{_amount(kind, name)} of {name}" for name in others)
    return f"not enough {' and '.join(others)} next to it: the smallest pods ask for {asked}"


def _amount(kind: AlikePods, resource: str) -> str:
    return format_amount(resource, kind.requests[resource])
