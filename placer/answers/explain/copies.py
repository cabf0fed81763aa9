"""How many copies of a group fit together, with a bound; also when nodes of each domain are lost."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from placer.answers.reasons.cause import plural
from placer.answers.solving import solve
from placer.arrays import Dense
from placer.arrays.amounts import NodeAmounts
from placer.arrays.dense_builder import make_dense
from placer.base.deadline import Deadline
from placer.base.errors import UsageError
from placer.problem import GroupKey, Instance
from placer.problem.wanted import count_at_tier
from placer.problem.what_if import alone, unready, with_copies

#: Pods of all copies that are tried at once; a bound beyond that is counted only.
MOST_PODS = 20_000

SECONDS = 6.0


@dataclass(frozen=True)
class Copies:
    """Copies placed together, verified; no more than ``bound`` fit, as ``proved_by`` proved."""

    group: GroupKey
    copies: int
    bound: int
    proved_by: str

    def as_dict(self) -> dict[str, Any]:
        """Plain data (models/interface.md)."""
        numbers = {"copies": self.copies, "bound": self.bound, "provedBy": self.proved_by}
        return {"group": self.group.as_dict(), **numbers}


def read_spare(words: str, instance: Instance) -> tuple[int, int]:
    """Read ``K@TIER``, by number or tierName; a wrong text or an absent tier is a :class:`UsageError`."""
    return count_at_tier("--spare", words, instance)


def with_spares(instance: Instance, key: GroupKey, lost_of_each: int, tier: int) -> Instance:
    """The instance without the nodes of each domain that have room for most pods of the group."""
    lone = alone(instance, key)
    room = _room(lone, make_dense(lone))
    by_domain: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for node, count in room.items():
        for domain in instance.topology.path(node):
            if instance.topology.hyper_nodes[domain].tier == tier:
                by_domain[domain].append((-count, node))
    lost = {node for nodes in by_domain.values() for _, node in sorted(nodes)[:lost_of_each]}
    return unready(instance, lost)


def how_many(instance: Instance, key: GroupKey, deadline: Deadline) -> Copies:
    """Find the most copies of a group that fit next to running pods.

    A group that runs in part, or needs no pod: :class:`UsageError`.
    """
    _check(instance, key)
    lone = alone(instance, key)
    counted = _counted(lone, key)
    pods = max(1, len(lone.groups[key].pending))
    tried = min(counted, max(1, MOST_PODS // pods))
    if not tried:
        return Copies(key, 0, 0, "counting")
    copied = with_copies(lone, key, tried)
    need = lone.need_weights[key]
    seconds = min(SECONDS, max(0.0, deadline.left))
    result = solve(copied, time_limit=seconds)
    admitted = result.objective[0]
    found = admitted.value.value // need
    bound, by = counted, "counting"
    if tried == counted and admitted.bound is not None and admitted.bound.value // need < bound:
        bound, by = admitted.bound.value // need, admitted.bound.by
    return Copies(key, found, bound, by)


def _check(instance: Instance, key: GroupKey) -> None:
    group = instance.groups[key]
    if group.bound or not group.pending:
        runs = plural(len(group.bound), "running pod")
        raise UsageError(f"--how-many: {key} has {runs}, expected a group that waits whole")
    if group.need == 0:
        raise UsageError(f"--how-many: {key} needs no pod to be admitted (minimum 0), expected a minimum of 1 or more")


def _counted(lone: Instance, key: GroupKey) -> int:
    dense = make_dense(lone)
    if not dense.groups:
        return 0
    room = list(_room(lone, dense).values())
    domains = dense.limit_domains(dense.groups[0].scope)
    tree = dense.domains
    spans = [(0, len(room))] if domains is None else [(int(tree.begin[each]), int(tree.end[each])) for each in domains]
    return sum(sum(room[begin:end]) // max(1, lone.groups[key].need) for begin, end in spans)


def _room(lone: Instance, dense: Dense) -> dict[str, int]:
    amounts, room = NodeAmounts(lone), dict.fromkeys(dense.nodes, 0)
    for index, each in {each.shape: (index, each) for index, each in enumerate(dense.classes)}.values():
        single = each.host_ports or (dense.neighbours is not None and index in dense.neighbours.lonely)
        asked, fits = amounts.asked(lone.pods[each.pods[0]]), dense.fits(index).tolist()
        for name, fit in zip(dense.nodes, fits, strict=True):
            room[name] += min(1, fit) if single or not fit else asked.copies_in(amounts.left(name))
    return room
