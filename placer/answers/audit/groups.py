"""Running groups, each judged as if it were placed now where it is, and compared with its best place.

Not judged: what a node (cordoned, tainted) or queue (closed) became later, and alignment that a kubelet admitted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

from placer.answers.solving import solve
from placer.base.deadline import Deadline, within
from placer.base.words import counted
from placer.problem import Group, GroupKey, Instance, Key, NetworkTopology, Node, Pod, PodState
from placer.problem.group_names import group_of
from placer.problem.keys import label_word
from placer.problem.outcome import sub_group_subject
from placer.problem.placement import MAXIMISED, Placement
from placer.problem.result import Result
from placer.problem.what_if import alone, released, with_pods, without, without_rule
from placer.rules import verify
from placer.rules.scoring import score

#: Most seconds to look for the best place of one group.
SECONDS = 3.0

#: What the judge says of pods that a placement binds, and what is said of those that run.
_SAID_OF_WHAT_RUNS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"\b(\d+) bound and (\d+) new pods?", lambda found: f"{int(found[1]) + int(found[2])} running pods"),
    (r"\b(\d+) new pod", r"\1 running pod"),
    (r"placed \((\S+) before, (\S+) new\)", r"placed (\1 succeeded, \2 running)"),
    (r"\((\S+) before, (\S+) new\b", r"(\1 of others, \2 of its own"),
    (r"\bnew (pair|pod)", r"\1"),
    (r" gets (\d+ pods?) but ", r" has \1 running but "),
    (r"(: (?:node selector .*|required node affinity))$", r"\1 (IgnoredDuringExecution: it keeps running)"),
)


class Standing(StrEnum):
    """How a group stands to the rules."""

    MATCH = "MATCH"
    VIOLATION = "VIOLATION"
    UNOBSERVABLE = "UNOBSERVABLE"  #: the instance lacks what a rule that the group asks for needs, or time was short


@dataclass(frozen=True, slots=True)
class Quality:
    """How near the pods of a group are: tier and leaf HyperNodes (None without a tree), cost of their calls (None: no
    calls).
    """

    tier: int | None
    leaves: int | None
    network_cost: int | None

    def as_dict(self) -> dict[str, Any]:
        """Plain data (models/interface.md)."""
        return {"tier": self.tier, "leaves": self.leaves, "networkCost": self.network_cost}


@dataclass(frozen=True)
class AuditEntry:
    """One group with bound pods.

    Parameters
    ----------
    best, proved_by
        How near it could be, all else where it is; None: nothing asks for nearness, or not proved in time.
    score
        The least of best over achieved, 1 where nothing applies; None without a proved best.
    sub_groups
        Subgroups with a limit of their own: name, rules, tier, leaves.
    late
        Whether it was not judged in time.
    """

    group: GroupKey
    standing: Standing
    violations: tuple[str, ...]
    quality: Quality
    best: Quality | None = None
    proved_by: str | None = None
    score: float | None = None
    sub_groups: tuple[Mapping[str, Any], ...] = ()
    late: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Plain data (models/interface.md)."""
        best = None if self.best is None else {**self.best.as_dict(), "provedBy": self.proved_by}
        return {
            "group": self.group.as_dict(),
            "rules": str(self.standing),
            "violations": list(self.violations),
            **self.quality.as_dict(),
            "best": best,
            "score": self.score,
            **({"subGroups": [dict(each) for each in self.sub_groups]} if self.sub_groups else {}),
        }


def audit(
    instance: Instance,
    deadline: Deadline,
    asked: Set[GroupKey] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> list[AuditEntry]:
    """Judge every group with bound pods; DaemonSet and static pods apart, a pod in no group is one of its own.

    ``deadline``: no best place is sought after it, and nothing is judged a second later. ``asked``: None: all groups.
    """
    groups = _running(instance)
    asked_for = {key: groups[key] for key in sorted(groups if asked is None else groups.keys() & asked)}
    say(f"judging {counted(len(asked_for), 'group')} together")
    found = within(deadline, lambda: _without_search(instance, asked_for), dict[GroupKey, AuditEntry]())
    worst_first = sorted(asked_for.keys() - {key for key in found if found[key].score is not None}, key=_promise(found))
    nothing = Quality(None, None, None)
    for number, key in enumerate(worst_first, 1):
        say(f"judging {key.namespace}/{key.name} ({number:,} of {len(worst_first):,})")
        late = found.get(key, AuditEntry(key, Standing.UNOBSERVABLE, (), nothing, late=True))
        found[key] = within(deadline, partial(_entry, instance, groups[key], deadline, late), late)
    return [found[key] for key in asked_for]


def _running(instance: Instance) -> dict[GroupKey, Group]:
    groups = {key: group for key, group in instance.groups.items() if group.bound}
    lone = (pod for pod in instance.pods.values() if pod.state is PodState.BOUND and not pod.daemon)
    for pod in lone:
        if pod.group is None:
            key = group_of(pod)
            groups[key] = Group(key, min_member=1, queue=pod.queue, priority=pod.priority, bound=(pod.key,))
    return groups


def _promise(found: Mapping[GroupKey, AuditEntry]) -> Callable[[GroupKey], tuple[float, GroupKey]]:
    def order(key: GroupKey) -> tuple[float, GroupKey]:
        quality = found[key].quality if key in found else None
        return 0.0 if quality is None else 1.0 / ((quality.tier or 1) * (quality.leaves or 1)), key

    return order


def _without_search(instance: Instance, groups: Mapping[GroupKey, Group]) -> dict[GroupKey, AuditEntry]:
    """Entries of groups that break nothing; those that could be nearer have no score yet.

    All groups are judged at once, as if all were placed now: that breaks every rule that one alone would break, and
    more, so that a group named in no violation breaks none. Left out are groups of which that is not true (pods that
    ask for others near, whose order decides) and those that make or get calls.
    """
    where = {key: instance.pods[key].node or "" for group in groups.values() for key in group.bound}
    broken = verify(_all_waiting(instance, groups.values()), Placement.of(where))
    wrong = set[str]().union(*(each.subjects for each in broken))
    wrong.update(f"Node {name}" for name in _nodes_of(instance, wrong))
    found = {}
    for key, group in groups.items():
        named = wrong and not wrong.isdisjoint(_subjects(instance, group))
        if not named and not _needs_search(instance, group):
            found[key] = _sound(instance, group)
    return found


def _sound(instance: Instance, group: Group) -> AuditEntry:
    standing = Standing.UNOBSERVABLE if _lacks(instance, group) else Standing.MATCH
    quality = _nearness(instance, {instance.pods[key].node or "" for key in group.bound})
    entry = AuditEntry(group.key, standing, (), quality, sub_groups=tuple(_parts(instance, group, frozenset())))
    return _counted(entry, group, instance) or entry


def _needs_search(instance: Instance, group: Group) -> bool:
    pods = [instance.pods[each] for each in group.bound]
    calls = instance.network is not None and any(pod.workload is not None for pod in pods)
    return calls or any(pod.neighbours.affinity for pod in pods) or bool(_doubts(instance, group))


def _nodes_of(instance: Instance, subjects: Set[str]) -> Iterator[str]:
    domains = {subject for subject in subjects if subject.startswith("Domain ")}
    for name, node in instance.nodes.items() if domains else ():
        values = ((key, word) for key, value in node.labels.items() for word in (value, label_word(value)))
        if not domains.isdisjoint(f"Domain {key}={word}" for key, word in values):
            yield name


def _subjects(instance: Instance, group: Group) -> Iterator[str]:
    yield str(group.key)
    yield from (sub_group_subject(group, part.name) for part in group.sub_groups)
    for key in group.bound:
        pod = instance.pods[key]
        yield from (f"Pod {key}", f"Node {pod.node}")
        yield from (f"Queue {name}" for name in instance.queue_path(pod.queue))
        yield from (unit.name for unit in pod.neighbours.units)


def _entry(instance: Instance, group: Group, deadline: Deadline, known: AuditEntry) -> AuditEntry:
    """The entry with the best there is next to it; ``known``: what is known already, unless that is late."""
    waiting, where = _waiting_alone(instance, group)
    entry = _judged(instance, group, waiting, Placement.of(where)) if known.late else known
    scored = _counted(entry, waiting.groups[group.key], waiting)
    if scored is not None:
        return scored
    found = _best(waiting, group.key, deadline)
    if found is None:
        return entry
    best, by = found
    near = bool(group.topologies) and bool(waiting.topology.hyper_nodes)
    return replace(entry, best=best, proved_by=by, score=_score(entry.quality, best, near=near))


def _judged(instance: Instance, group: Group, waiting: Instance, placement: Placement) -> AuditEntry:
    doubts = _doubts(instance, group)
    broken = [each for each in verify(waiting, placement) if doubts.isdisjoint(each.subjects)]
    violations = tuple(f"{each.rule}: {_of_what_runs(each.message)}" for each in broken)
    quality = _quality(waiting, group.key, placement)
    parts = tuple(_parts(instance, group, {subject for each in broken for subject in each.subjects}))
    lacks = bool(doubts) or _lacks(instance, group)
    standing = Standing.VIOLATION if violations else Standing.UNOBSERVABLE if lacks else Standing.MATCH
    return AuditEntry(group.key, standing, violations, quality, sub_groups=parts)


def _doubts(instance: Instance, group: Group) -> Set[str]:
    lost = {f"Pod {key}" for key in group.bound if instance.pods[key].node not in instance.nodes}
    parts = {sub_group_subject(group, part.name) for part in group.sub_groups}
    return {*lost, str(group.key), *parts} if lost else set()


def _waiting_alone(instance: Instance, group: Group) -> tuple[Instance, dict[Key, str]]:
    where = {key: instance.pods[key].node or "" for key in group.bound}
    return alone(_all_waiting(instance, [group]), group.key), where


def _all_waiting(instance: Instance, groups: Collection[Group]) -> Instance:
    bound = [key for group in groups for key in group.bound]
    observed = with_pods(instance, bound, partial(_observed, instance))
    found = released(without(observed, [pod.key for pod in instance.pending]), bound)
    valid = {group.key: replace(found.groups[group.key], invalid=None) for group in groups}
    nodes = {name: _admitting(node) for name, node in instance.nodes.items()}
    queues = {name: replace(queue, open=True) for name, queue in instance.queues.items()}
    return replace(without_rule(found, "C10"), groups={**found.groups, **valid}, nodes=nodes, queues=queues)


def _admitting(node: Node) -> Node:
    lasting = tuple(taint for taint in node.taints if taint.effect == "NoExecute")
    return replace(node, ready=True, unschedulable=False, taints=lasting)


def _observed(instance: Instance, pod: Pod) -> Pod:
    limits = pod.constraints
    if _is_untold(instance, pod):
        limits = replace(limits, marks=tuple(each for each in limits.marks if not each.asks_kubelet))
    return replace(pod, constraints=limits, unsupported=())


def _is_untold(instance: Instance, pod: Pod) -> bool:
    node = instance.nodes.get(pod.node or "")
    told = node is not None and node.topology_policy
    return not told and any(each.asks_kubelet for each in pod.constraints.marks)


def _of_what_runs(message: str) -> str:
    """A violation in words about pods that run, where the judge speaks of a placement that binds them.

    Examples
    --------
    >>> _of_what_runs("zone link a -> b carries 9 bit/s (3 before, 6 new)"), _of_what_runs("its 1 bound and 1 new pod")
    ('zone link a -> b carries 9 bit/s (3 of others, 6 of its own)', 'its 2 running pods')
    """
    for pattern, said in _SAID_OF_WHAT_RUNS:
        message = re.sub(pattern, said, message)
    return message


def _lacks(instance: Instance, group: Group) -> bool:
    calls = any(instance.pods[key].workload is not None for key in group.bound)
    untold = any(_is_untold(instance, instance.pods[key]) for key in group.bound)
    return untold or (group.limited and not instance.topology.hyper_nodes) or (calls and instance.network is None)


def _quality(waiting: Instance, key: GroupKey, placement: Placement) -> Quality:
    found = _nearness(waiting, set(placement.node_of.values()))
    calls = waiting.network is not None and any(
        waiting.pods[pod].workload is not None for pod in waiting.groups[key].pending
    )
    return replace(found, network_cost=_network_cost(waiting, placement)) if calls else found


def _nearness(instance: Instance, nodes: Set[str]) -> Quality:
    tree = instance.topology
    if not tree.hyper_nodes or not nodes:
        return Quality(None, None, None)
    leaves = len({tree.leaf.get(node, f"node {node}") for node in nodes})
    return Quality(tree.tier(tree.smallest_common(nodes)), leaves, None)


def _network_cost(waiting: Instance, placement: Placement) -> int:
    policy = replace(waiting.policy, levels=("networkCost",))
    costs = [sum(each.value for each in score(replace(waiting, policy=policy), at)) for at in (placement, Placement())]
    return costs[0] - costs[1]


def _counted(entry: AuditEntry, group: Group, instance: Instance) -> AuditEntry | None:
    """The entry with its score where that takes no search, else None."""
    near = bool(group.topologies) and bool(instance.topology.hyper_nodes)
    if not near and entry.quality.network_cost is None:
        return replace(entry, score=1.0)
    if _cannot_be_nearer(instance, entry.quality, near=near):
        return replace(entry, best=entry.quality, proved_by="counting", score=1.0)
    return None


def _cannot_be_nearer(waiting: Instance, quality: Quality, *, near: bool) -> bool:
    tiers = [each.tier for each in waiting.topology.hyper_nodes.values() if each.nodes]
    nearest = not near or (quality.leaves == 1 and quality.tier == min(tiers, default=None))
    return nearest and quality.network_cost in (None, 0)


def _best(waiting: Instance, key: GroupKey, deadline: Deadline) -> tuple[Quality, str] | None:
    group = waiting.groups[key]
    whole = replace(group, min_member=len(group.pending), min_task_member={})
    policy = replace(waiting.policy, levels=("placed", "locality", "networkCost"))
    asked = replace(waiting, groups={**waiting.groups, key: whole}, policy=policy)
    seconds = min(SECONDS, deadline.left)
    if seconds <= 0:
        return None
    result = solve(asked, time_limit=seconds, workers=1)
    provers = _provers(result)
    if result.placement is None or not result.everything_placed or provers is None:
        return None
    return _quality(waiting, key, result.placement), provers[-1] if provers else "counting"


def _provers(result: Result) -> list[str] | None:
    lower = [each for each in result.objective if each.value.name not in MAXIMISED]
    provers = [each.bound.by for each in lower if each.bound is not None and each.met]
    return provers if len(provers) == len(lower) else None


def _score(quality: Quality, best: Quality, *, near: bool) -> float:
    pairs = [(best.tier, quality.tier), (best.leaves, quality.leaves)] if near else []
    pairs += [(best.network_cost, quality.network_cost)] if quality.network_cost is not None else []
    known = [(least, had) for least, had in pairs if least is not None and had is not None]
    return round(min([1.0, *(least / had for least, had in known if had)]), 6)


def _parts(instance: Instance, group: Group, wrong: Set[str]) -> Iterator[dict[str, Any]]:
    tree = instance.topology
    for part in group.sub_groups:
        topology = group.policies[part.policy].topology
        if topology is None or not part.bound:
            continue
        nodes = {instance.pods[key].node or "" for key in part.bound}
        standing = _part_standing(instance, topology, nodes)
        there = bool(tree.hyper_nodes)
        yield {
            "name": part.name,
            "rules": str(Standing.VIOLATION if sub_group_subject(group, part.name) in wrong else standing),
            "placed": len(part.bound),
            "tier": tree.tier(tree.smallest_common(nodes)) if there else None,
            "leaves": len({tree.leaf.get(node, f"node {node}") for node in nodes}) if there else None,
        }


def _part_standing(instance: Instance, topology: NetworkTopology, nodes: Set[str]) -> Standing:
    if topology.limit is None:
        return Standing.MATCH
    if not instance.topology.hyper_nodes or not nodes <= instance.nodes.keys():
        return Standing.UNOBSERVABLE
    tier = instance.topology.tier(instance.topology.smallest_common(nodes))
    return Standing.VIOLATION if tier > topology.limit else Standing.MATCH
