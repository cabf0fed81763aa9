"""Evictions and moves of a placement, in units, and the cluster without them (models/README.md, D1 to D5).

Pods that leave wait in the instance of :func:`~placer.problem.what_if.released`, so rules for new pods hold for moved
ones. A unit is disturbed together::

    gang of 4 that needs 4       any pod of it        -> the whole gang
    gang of 6 that needs 4       one or two pods      -> each pod alone
                                 three pods           -> the whole gang
    subgroup of 2 that needs 2   any pod of it        -> the subgroup, where its gang remains ready without it
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from placer.problem import Group, GroupKey, Instance, Key, Pod, PodState
from placer.problem.outcome import Outcome
from placer.problem.placement import Binding, Placement
from placer.problem.what_if import released, with_lost


class DisruptionUnit(NamedTuple):
    """Bound pods, sorted, that are disturbed together; ``priority`` is their highest.

    ``name``: ``PodGroup/NAMESPACE/NAME``, ``SubGroup/NAMESPACE/GROUP/NAME`` or ``Pod/NAMESPACE/NAME``.
    """

    name: str
    priority: int
    pods: tuple[Key, ...]


def lost_pods(before: Instance, instance: Instance) -> set[Key]:
    """Pods that wait in the instance of a repair (:func:`with_lost`) and have a node in their objects."""
    running = {key for key, pod in before.pods.items() if pod.state.on_node}
    return {pod.key for pod in instance.pending if pod.key in running}


def protections(instance: Instance, pods: Iterable[Key]) -> list[str]:
    """Clauses that name the marks and queues which protect some bound pods."""
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


def not_ready(instance: Instance) -> list[str]:
    """Names of the nodes that are not Ready, sorted."""
    return [name for name, node in instance.nodes.items() if not node.ready]


def as_asked(instance: Instance, placement: Placement) -> Instance:
    """The instance of a placement: with its lost nodes, and without evictions where it frees room on request."""
    lost = set(placement.lost) or _lost(instance, placement)
    asked = with_lost(instance, lost) if lost else instance
    return replace(asked, moves_only=True) if placement.wanted or placement.freed else asked


def in_the_way(instance: Instance, domains: Iterable[str]) -> dict[str, set[Key]]:
    """HyperNode to the pods that keep it from being empty, bound or nominated, except DaemonSet and static pods."""
    found: dict[str, set[Key]] = {name: set() for name in domains}
    for key, pod in instance.pods.items():
        if pod.state in (PodState.BOUND, PodState.NOMINATED) and not pod.daemon:
            for name in found.keys() & instance.topology.path(pod.node or ""):
                found[name].add(key)
    return found


def _lost(instance: Instance, placement: Placement) -> set[str]:
    """Nodes that are not Ready and whose bound pods a placement binds, although it does not name them as lost."""
    named = (instance.pods.get(binding.pod) for binding in placement.bindings)
    bound = (pod for pod in named if pod is not None and pod.state is PodState.BOUND and not pod.daemon)
    return {pod.node or "" for pod in bound}.intersection(not_ready(instance))


def _units(before: Instance, after: Instance, gone: Collection[Key]) -> Iterator[DisruptionUnit]:
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
    """Units of a group that remains ready: subgroups that do not, and single pods."""
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
    """Priority of bound pods that leave together: their highest."""
    return max(instance.pods[key].unit_priority for key in pods)


@dataclass(frozen=True)
class Disruption:
    """A placement with the bound pods that it evicts and moves, each once; D1 and D2 report other entries."""

    instance: Instance
    placement: Placement

    @cached_property
    def moved(self) -> Mapping[Key, Binding]:
        """Bound pod to its new place."""
        found: dict[Key, Binding] = {}
        for move in self.placement.moves:
            if self._is_bound(move.pod):
                found.setdefault(move.pod, move)
        return found

    @cached_property
    def evicted(self) -> tuple[Key, ...]:
        """Bound pods that are evicted and not moved, in the order of the placement."""
        keys = dict.fromkeys(self.placement.evictions)
        return tuple(key for key in keys if key not in self.moved and self._is_bound(key))

    def _is_bound(self, key: Key) -> bool:
        pod: Pod | None = self.instance.pods.get(key)
        return pod is not None and pod.state is PodState.BOUND

    @cached_property
    def gone(self) -> frozenset[Key]:
        """All pods that leave their nodes."""
        return frozenset((*self.evicted, *self.moved))

    @cached_property
    def released(self) -> Instance:
        """The instance in which these pods wait."""
        return released(self.instance, self.gone)

    @cached_property
    def units(self) -> tuple[DisruptionUnit, ...]:
        """The units (D1), by group, then by pod; one that should leave whole may have other pods."""
        return tuple(_units(self.instance, self.released, self.gone))

    @property
    def admitted(self) -> tuple[Group, ...]:
        """Groups that are made ready, except those that need no pod."""
        needs = self.instance.need_weights
        return tuple(group for group in self.outcome.made_ready if needs[group.key])

    @cached_property
    def outcome(self) -> Outcome:
        """Pods on nodes in the end: the bindings and the moves in the order of the steps."""
        bound = [each for each in self.placement.bindings if each.pod not in self.gone]
        order = [key for step in self.placement.steps for key in step.bind]
        rank = {key: position for position, key in enumerate(order)}
        plan = sorted((*bound, *self.moved.values()), key=lambda each: rank.get(each.pod, len(rank)))
        return Outcome(self.released, replace(self.placement, bindings=tuple(plan)), self.instance)


def outcome_of(instance: Instance, placement: Placement) -> Outcome:
    """Pods on nodes once a placement is carried out."""
    return Disruption(instance, placement).outcome if placement.disturbs else Outcome(instance, placement)
