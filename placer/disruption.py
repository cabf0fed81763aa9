"""What a placement evicts and moves: in which units, and what the cluster is without it (models/README.md, D1 to D5).

Whatever leaves its node waits in the instance that :func:`released` makes, so that every rule about new pods holds for
moved ones as it stands.

A unit is what goes together::

    gang of 4 that needs 4       any pod of it        -> the whole gang
    gang of 6 that needs 4       one or two pods      -> each pod alone
                                 three pods           -> the whole gang
    subgroup of 2 that needs 2   any pod of it        -> the subgroup, where its gang stays ready without it
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from placer.instance import Group, GroupKey, Instance, Key, Pod, PodState, SubGroup
from placer.instance.problem import group_of_one
from placer.outcome import Outcome
from placer.placement import Binding, Placement

__all__ = [
    "Disruption",
    "DisruptionUnit",
    "as_asked",
    "in_the_way",
    "leaving_protected",
    "losing",
    "lost_pods",
    "not_ready",
    "outcome_of",
    "protections",
    "ran_on",
    "released",
    "unit_priority",
    "unmarked",
    "with_lost",
    "without",
]


class DisruptionUnit(NamedTuple):
    """Bound pods that are disturbed together.

    Parameters
    ----------
    name
        ``PodGroup/NAMESPACE/NAME``, ``SubGroup/NAMESPACE/GROUP/NAME`` or ``Pod/NAMESPACE/NAME``.
    priority
        The highest of its pods: what runs is as urgent as its most urgent pod.
    pods
        All of them, sorted.
    """

    name: str
    priority: int
    pods: tuple[Key, ...]


def released(instance: Instance, gone: Collection[Key]) -> Instance:
    """Give the instance in which some bound pods have left their nodes and wait.

    Parameters
    ----------
    instance
        Where they run.
    gone
        Pods that are bound.

    Returns
    -------
    Instance
        A pod in no group is a gang of one there. What a pod had of NUMA zones stays taken: no object says which zones
        its kubelet gave it.
    """
    if not gone:
        return instance
    pods, groups = dict(instance.pods), dict(instance.groups)
    touched: dict[GroupKey, list[Key]] = defaultdict(list)
    for key in gone:
        pod = pods[key]
        group = pod.group or GroupKey("", *key)
        pods[key] = waiting = replace(pod, state=PodState.PENDING, node=None, group=group)
        alone = group_of_one(waiting)
        if alone is not None:
            groups[group] = alone
        else:
            touched[group].append(key)
    for name, left in touched.items():
        group_left, away = groups[name], frozenset(left)
        parts = tuple(_part_without(part, away) for part in group_left.sub_groups)
        bound, pending = _without(group_left, away)
        groups[name] = replace(group_left, bound=bound, pending=pending, sub_groups=parts)
    return replace(instance, pods=pods, groups=dict(sorted(groups.items())))


def with_lost(instance: Instance, lost: Collection[str]) -> Instance:
    """Give the instance in which some nodes are lost: what runs there waits, as a member of its group.

    Parameters
    ----------
    instance
        As its objects say.
    lost
        Names of nodes; one that is not in the instance may still be that of bound pods.

    Returns
    -------
    Instance
        The lost nodes are not Ready in it. DaemonSet and static pods stay with them. Nothing may be evicted there.
    """
    gone = ran_on(instance, lost)
    nodes = {name: replace(node, ready=node.ready and name not in lost) for name, node in instance.nodes.items()}
    budgets = tuple(budget.without(gone) for budget in instance.budgets)
    return replace(released(instance, gone), nodes=nodes, budgets=budgets, moves_only=True)


def ran_on(instance: Instance, lost: Collection[str]) -> list[Key]:
    """Pods of lost nodes that may run elsewhere: all but those of DaemonSets and static ones."""
    bound = (pod for pod in instance.pods.values() if pod.state is PodState.BOUND and pod.node in lost)
    return [pod.key for pod in bound if not pod.daemon]


def lost_pods(before: Instance, instance: Instance) -> set[Key]:
    """Pods that wait in the instance of a repair (:func:`with_lost`) and have a node as their objects say."""
    running = {key for key, pod in before.pods.items() if pod.state.on_node}
    return {pod.key for pod in instance.pending if pod.key in running}


def leaving_protected(instance: Instance, lost: Collection[str]) -> Instance:
    """Give the instance in which protected pods of lost nodes stay with these, as those of DaemonSets do.

    What may not be evicted cannot be placed again in a cluster.
    """
    staying = [pod for pod in map(instance.pods.__getitem__, ran_on(instance, lost)) if pod.protected]
    return replace(instance, pods={**instance.pods, **{pod.key: replace(pod, daemon=True) for pod in staying}})


def unmarked(instance: Instance) -> Instance:
    """Give the instance in which no mark of another system protects a pod, and every queue is reclaimable."""
    pods = {key: replace(pod, protected="") for key, pod in instance.pods.items() if pod.protecting_mark}
    queues = {name: replace(queue, reclaimable=True) for name, queue in instance.queues.items()}
    return replace(instance, pods={**instance.pods, **pods}, queues=queues)


def protections(instance: Instance, pods: Iterable[Key]) -> list[str]:
    """Say which marks and queues keep some bound pods from being disturbed, a clause each."""
    marked: dict[str, list[Key]] = defaultdict(list)
    queues: dict[str, None] = {}
    for key in sorted(pods):
        pod = instance.pods[key]
        queue = instance.keeping_queue(pod)
        if pod.protecting_mark:
            marked[pod.protecting_mark].append(key)
        elif queue is not None:
            queues[f"Queue {queue} is not reclaimable"] = None
    whose = {
        mark: f"Pod {keys[0]} is" if len(keys) == 1 else f"{len(keys):,} pods ({keys[0]} ...) are"
        for mark, keys in marked.items()
    }
    return [*(f"{pods} protected by {mark}" for mark, pods in whose.items()), *queues]


def losing(instance: Instance, lost: Collection[str]) -> Instance:
    """Give the instance of a repair: as :func:`with_lost`, and no other groups wait than those with pods there."""
    found = with_lost(instance, lost)
    waiting = {pod.key for pod in found.pending} - {pod.key for pod in instance.pending}
    groups = {found.pods[key].group for key in waiting}
    return without(found, {pod.key for pod in found.pending if pod.group not in groups})


def not_ready(instance: Instance) -> list[str]:
    """Names of the nodes that are not Ready, sorted."""
    return [name for name, node in instance.nodes.items() if not node.ready]


def as_asked(instance: Instance, placement: Placement) -> Instance:
    """Give the instance that a placement speaks of: one that repairs says which nodes are lost.

    Where it makes room for what is wanted, or empties domains, nothing may be evicted.
    """
    lost = set(placement.lost) or _lost(instance, placement)
    asked = with_lost(instance, lost) if lost else instance
    return replace(asked, moves_only=True) if placement.wanted or placement.freed else asked


def in_the_way(instance: Instance, domains: Iterable[str]) -> dict[str, set[Key]]:
    """Per HyperNode the pods that keep it from being empty: bound there, or others' for which room is held there.

    DaemonSet and static pods are no part of that, nor those that are being deleted.
    """
    found: dict[str, set[Key]] = {name: set() for name in domains}
    for key, pod in instance.pods.items():
        if pod.state in (PodState.BOUND, PodState.NOMINATED) and not pod.daemon:
            for name in found.keys() & instance.topology.path(pod.node or ""):
                found[name].add(key)
    return found


def _lost(instance: Instance, placement: Placement) -> set[str]:
    """Nodes that are not Ready and whose bound pods a placement binds: it does not say that they are lost."""
    named = (instance.pods.get(binding.pod) for binding in placement.bindings)
    bound = (pod for pod in named if pod is not None and pod.state is PodState.BOUND and not pod.daemon)
    return {pod.node or "" for pod in bound}.intersection(not_ready(instance))


def without(instance: Instance, pods: Collection[Key]) -> Instance:
    """Give the instance in which some waiting pods are not there."""
    if not pods:
        return instance
    kept = {key: pod for key, pod in instance.pods.items() if key not in pods}
    groups = ((key, _fewer(group, pods)) for key, group in instance.groups.items())
    return replace(instance, pods=kept, groups={key: each for key, each in groups if each.pending or key.api_group})


def _fewer(group: Group, pods: Collection[Key]) -> Group:
    """A group of which some waiting pods are not there."""
    parts = tuple(replace(part, pending=_but(part.pending, pods)) for part in group.sub_groups)
    return replace(group, pending=_but(group.pending, pods), sub_groups=parts)


def _but(keys: Iterable[Key], pods: Collection[Key]) -> tuple[Key, ...]:
    return tuple(key for key in keys if key not in pods)


def _part_without(part: SubGroup, away: frozenset[Key]) -> SubGroup:
    bound, pending = _without(part, away)
    return replace(part, bound=bound, pending=pending)


def _without(part: Group | SubGroup, away: frozenset[Key]) -> tuple[tuple[Key, ...], tuple[Key, ...]]:
    """Pods that stay bound, and those that wait."""
    gone = away.intersection(part.bound)
    return tuple(key for key in part.bound if key not in gone), tuple(sorted({*part.pending, *gone}))


def _units(before: Instance, after: Instance, gone: Collection[Key]) -> Iterator[DisruptionUnit]:
    """Divide what goes into units."""
    without = Outcome(after, Placement())
    by_group: dict[GroupKey, list[Key]] = defaultdict(list)
    for key in sorted(gone):
        group = before.pods[key].group
        if group is None:
            yield _unit(before, f"Pod/{key.namespace}/{key.name}", (key,))
        else:
            by_group[group].append(key)
    for name, keys in sorted(by_group.items()):
        group_before, group_after = before.groups[name], after.groups[name]
        if group_before.disrupted_whole or not without.ready(group_after):
            yield _unit(before, f"PodGroup/{name.namespace}/{name.name}", group_before.bound)
        else:
            yield from _parts(before, group_before, group_after, keys)


def _parts(instance: Instance, before: Group, after: Group, gone: Collection[Key]) -> Iterator[DisruptionUnit]:
    """Units of a group that stays ready: subgroups that do not, and single pods."""
    by_part: dict[int | None, list[Key]] = defaultdict(list)
    for key in gone:
        by_part[instance.pods[key].sub_group].append(key)
    for index, keys in sorted(by_part.items(), key=lambda each: -1 if each[0] is None else each[0]):
        if (
            index is not None
            and after.sub_groups[index].placed_before < before.policies[after.sub_groups[index].policy].size
        ):
            part = before.sub_groups[index]
            name = f"SubGroup/{before.key.namespace}/{before.key.name}/{part.name}"
            yield _unit(instance, name, part.bound)
        else:
            yield from (_unit(instance, f"Pod/{key.namespace}/{key.name}", (key,)) for key in keys)


def _unit(instance: Instance, name: str, pods: tuple[Key, ...]) -> DisruptionUnit:
    return DisruptionUnit(name, unit_priority(instance, pods), pods)


def unit_priority(instance: Instance, pods: Iterable[Key]) -> int:
    """Priority of some bound pods that go as one: the highest of theirs, so that none is cheaper than it says."""
    return max(instance.pods[key].unit_priority for key in pods)


@dataclass(frozen=True)
class Disruption:
    """A placement with what it evicts and moves.

    Of evictions and moves only those of bound pods count, the first of each pod; D1 and D2 report the rest.
    """

    instance: Instance
    placement: Placement

    @cached_property
    def moved(self) -> Mapping[Key, Binding]:
        """Bound pod to where it is moved."""
        found: dict[Key, Binding] = {}
        for move in self.placement.moves:
            if self._is_bound(move.pod):
                found.setdefault(move.pod, move)
        return found

    @cached_property
    def evicted(self) -> tuple[Key, ...]:
        """Bound pods that are evicted and not moved, as they stand in the placement, each once."""
        keys = dict.fromkeys(self.placement.evictions)
        return tuple(key for key in keys if key not in self.moved and self._is_bound(key))

    def _is_bound(self, key: Key) -> bool:
        pod: Pod | None = self.instance.pods.get(key)
        return pod is not None and pod.state is PodState.BOUND

    @cached_property
    def gone(self) -> frozenset[Key]:
        """Everything that leaves its node."""
        return frozenset((*self.evicted, *self.moved))

    @cached_property
    def released(self) -> Instance:
        """The instance in which what goes waits."""
        return released(self.instance, self.gone)

    @cached_property
    def units(self) -> tuple[DisruptionUnit, ...]:
        """What goes, in units (D1), by group, then by pod; one has pods that do not go where it does not go whole."""
        return tuple(_units(self.instance, self.released, self.gone))

    @property
    def admitted(self) -> tuple[Group, ...]:
        """Groups that are made ready; not those that need no pod, for which nothing has to go."""
        needs = self.instance.need_weights
        return tuple(group for group in self.outcome.made_ready if needs[group.key])

    @cached_property
    def outcome(self) -> Outcome:
        """What runs where in the end: the bindings and the moves in the order of the steps."""
        bound = [each for each in self.placement.bindings if each.pod not in self.gone]
        order = [key for step in self.placement.steps for key in step.bind]
        rank = {key: position for position, key in enumerate(order)}
        plan = sorted((*bound, *self.moved.values()), key=lambda each: rank.get(each.pod, len(rank)))
        return Outcome(self.released, replace(self.placement, bindings=tuple(plan)), self.instance)


def outcome_of(instance: Instance, placement: Placement) -> Outcome:
    """What runs where once a placement is carried out, whatever it disturbs."""
    return Disruption(instance, placement).outcome if placement.disturbs else Outcome(instance, placement)
