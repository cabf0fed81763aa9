"""The bindings to make, gang by gang: a pure function of a decision and of the changes since the snapshot.

A gang is bound with all pods that the placement gives a node, or not at all. For C10, a pod on a node whose kubelet
aligns follows the one before it: after the API server's answer where that is enough, since the kubelet sorts pods by
age, else after the kubelet's own. Gangs that meet on such nodes come in the order of the placement. Where each would
have to come before the other, the more urgent comes first if the kubelet admits that; else they are one batch. Urgent
is the higher priority, then namespaces in turn, then the earlier place in the placement.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from placer.arrays.admission_orders import Orders, find_order
from placer.arrays.packed_kubelet import PackedKubelet
from placer.base.errors import VerificationFailed
from placer.base.words import counted
from placer.problem import GroupKey, Instance, Key, Pod
from placer.problem.instance import group_of_one
from placer.problem.numa import aligns
from placer.problem.placement import Binding, Placement, Violation
from placer.rules import verify
from placer.search.numa.binding_order import aligned

if TYPE_CHECKING:
    import networkx as nx

    from placer.passes.cluster.reading.snapshot import Identity

__all__ = ["Batch", "BindingPlan", "PlannedBinding", "is_bound_alone", "plan_bindings"]

#: Most admissions that are tried to find out whether a node where gangs meet takes its pods in any order.
_TRIED = 2_000


@dataclass(frozen=True, slots=True)
class PlannedBinding:
    """A binding to make."""

    #: The pod of the snapshot; another one of its name must not get this node.
    pod: Key
    uid: str
    node: str
    numa_zones: tuple[str, ...] = ()  #: the zones that the kubelet will choose; empty where C10 does not apply
    #: The pod before it on the node, perhaps of an earlier batch; None where it waits for none.
    after: Key | None = None
    admitted: bool = False  #: whether it waits for the kubelet's answer to that pod, not for the API server's alone
    resource_version: str = ""  #: the version of the pod that was decided upon; empty: any
    by_release: bool = False  #: whether its hold gate is removed and its own scheduler binds it, in place of a binding


@dataclass(frozen=True, slots=True)
class Batch:
    """Gangs that are bound together, most often one: all of them or none."""

    gangs: tuple[GroupKey, ...]  #: sorted
    #: Each after the one that it waits for; those that wait for none may all be sent at once.
    bindings: tuple[PlannedBinding, ...]


@dataclass(frozen=True, slots=True)
class BindingPlan:
    """All bindings to make."""

    batches: tuple[Batch, ...] = ()
    #: Gangs of the placement that are not in this plan, each with the reason.
    dropped: Mapping[GroupKey, str] = field(default_factory=dict)
    stale: frozenset[GroupKey] = frozenset()  #: dropped gangs whose reason is a change since the snapshot

    def after(self, other: BindingPlan) -> BindingPlan:
        """Both plans as one, the other first."""
        dropped = {**other.dropped, **self.dropped}
        return BindingPlan((*other.batches, *self.batches), dropped, other.stale | self.stale)

    def of(self, gangs: AbstractSet[GroupKey]) -> BindingPlan:
        """The plan of some gangs alone."""
        return replace(self, batches=tuple(batch for batch in self.batches if not gangs.isdisjoint(batch.gangs)))

    def without(self, other: BindingPlan) -> BindingPlan:
        """The plan without the gangs of another one."""
        keys = {*other.dropped, *chain.from_iterable(batch.gangs for batch in other.batches)}
        batches = tuple(batch for batch in self.batches if keys.isdisjoint(batch.gangs))
        dropped = {key: why for key, why in self.dropped.items() if key not in keys}
        return BindingPlan(batches, dropped, self.stale - keys)


def plan_bindings(
    instance: Instance,
    placement: Placement,
    identities: Mapping[Key, Identity],
    changed: Collection[Key] = (),
    most: int | None = None,
) -> BindingPlan:
    """Plan the bindings of a valid placement.

    Parameters
    ----------
    changed
        Pods that were deleted, made again, bound by another scheduler, or edited.
    most
        Limit of bindings: in the order of the plan each batch that still fits is kept. None: no limit.

    Returns
    -------
    BindingPlan
        Without changes and limit it drops nothing.
    """
    gangs = {binding.pod: _gang(instance, binding) for binding in placement.bindings}
    dropped = {
        gangs[pod]: f"Pod {pod} has changed since the snapshot" for pod in sorted(changed, reverse=True) if pod in gangs
    }
    plan = _planned(instance, placement, identities, gangs, dropped)
    stale = frozenset(plan.dropped)
    over = dict(_over(plan.batches, most)) if most is not None else {}
    kept = _planned(instance, placement, identities, gangs, dropped | over) if over else plan
    return replace(kept, stale=stale)


def _over(batches: Iterable[Batch], most: int) -> Iterator[tuple[GroupKey, str]]:
    left = most
    for batch in batches:
        count = len(batch.bindings)
        if count <= left:
            left -= count
        else:
            room = f"only {left} of" if count <= most else "more than"
            why = f"it takes {counted(count, 'binding')}, {room} --max-bindings {most}"
            yield from ((gang, why) for gang in batch.gangs)


def _planned(
    instance: Instance,
    placement: Placement,
    identities: Mapping[Key, Identity],
    gangs: Mapping[Key, GroupKey],
    without: Mapping[GroupKey, str],
) -> BindingPlan:
    dropped = dict(without)
    kept = _standing(instance, placement, gangs, dropped)
    members: dict[GroupKey, list[int]] = defaultdict(list)
    for place, binding in enumerate(kept.bindings):
        members[gangs[binding.pod]].append(place)
    urgency = _urgency(instance, members)
    lines = _by_gang_if_possible(instance, _lines(instance, kept), gangs, urgency)
    in_line = {each[0].pod: each for line in lines.values() for each in line.in_turn()}
    binds = [_bind(identities, *in_line.get(bind.pod, (bind, None, False))) for bind in kept.bindings]
    batches = (
        Batch(part, tuple(binds[place] for place in sorted(chain(*(members[gang] for gang in part)))))
        for part in _gang_order(urgency, lines.values(), gangs)
    )
    return BindingPlan(tuple(map(_in_turn, batches)), dict(sorted(dropped.items())))


def _urgency(instance: Instance, members: Mapping[GroupKey, Sequence[int]]) -> dict[GroupKey, tuple[int, ...]]:
    """By priority, then namespaces in turn: whoever places much is not bound before everybody else."""
    before: Counter[tuple[int, str]] = Counter()
    found: dict[GroupKey, tuple[int, ...]] = {}
    for gang, places in members.items():
        whose = priority, _ = instance.groups[gang].priority, gang.namespace
        found[gang] = -priority, before[whose], places[0]
        before[whose] += len(places)
    return found


def is_bound_alone(pod: Pod, zones: Collection[str], on_hold: bool) -> bool:
    """Whether no other pod has to be bound before a pod or with it."""
    return group_of_one(pod) is not None and not (zones or on_hold or pod.app_group)


def _bind(identities: Mapping[Key, Identity], binding: Binding, after: Key | None, admitted: bool) -> PlannedBinding:
    pod, what = identities[binding.pod], (binding.node, binding.numa_zones)
    return PlannedBinding(binding.pod, pod.uid, *what, after, admitted, pod.resource_version, pod.on_hold)


def _gang(instance: Instance, binding: Binding) -> GroupKey:
    group = instance.pods[binding.pod].group
    return group if group is not None else GroupKey("", *binding.pod)


def _standing(
    instance: Instance, placement: Placement, gangs: Mapping[Key, GroupKey], dropped: dict[GroupKey, str]
) -> Placement:
    """A placement without the dropped gangs, and without those that cannot stand without them.

    A kubelet gives pods the lowest zones that fit, so without one pod the next may get another zone and a third none.
    """
    while dropped:
        bindings = tuple(each for each in placement.bindings if gangs[each.pod] not in dropped)
        left = aligned(instance, Placement(bindings))
        broken = verify(instance, left)
        if not broken:
            return left
        more = {
            gang: f"without the gangs left out {violation.message}"
            for violation in reversed(broken)
            for gang in _about(instance, violation, bindings, gangs)
        }
        if not more:
            raise VerificationFailed(f"a part of a valid placement breaks a rule: {broken[0].message}")
        dropped |= more
    return placement


def _about(
    instance: Instance, violation: Violation, bindings: Iterable[Binding], gangs: Mapping[Key, GroupKey]
) -> Iterator[GroupKey]:
    for binding in bindings:
        pod = instance.pods[binding.pod]
        names = {f"Pod {binding.pod}", f"AppGroup {pod.app_group}", str(gangs[binding.pod])}
        if not names.isdisjoint(violation.subjects):
            yield gangs[binding.pod]


# ----------------------------------------------------------------------------------------------------- order of gangs


@dataclass(frozen=True, slots=True)
class _Line:
    """The new pods of a node whose kubelet aligns them, in the order of their bindings; ``admitted``: of all but the
    first, as of a :class:`PlannedBinding`.
    """

    bindings: tuple[Binding, ...]
    admitted: bool

    def in_turn(self) -> Iterator[tuple[Binding, Key | None, bool]]:
        """Each with the pod before it, and how it waits for that."""
        before = None
        for each in self.bindings:
            yield each, before, self.admitted and before is not None
            before = each.pod


def _lines(instance: Instance, placement: Placement) -> dict[str, _Line]:
    found: dict[str, list[Binding]] = defaultdict(list)
    for each in placement.bindings:
        node = instance.aligning_nodes.get(each.node)
        if node is not None and aligns(node, instance.pods[each.pod].numa):
            found[each.node].append(each)
    lines = ((name, _Line(tuple(here), name in placement.one_by_one)) for name, here in sorted(found.items()))
    return {name: line for name, line in lines if len(line.bindings) > 1}


def _by_gang_if_possible(
    instance: Instance,
    lines: Mapping[str, _Line],
    gangs: Mapping[Key, GroupKey],
    urgency: Mapping[GroupKey, tuple[int, ...]],
) -> dict[str, _Line]:
    """The lines, gang by gang where some would precede each other and the kubelet allows it."""
    before = _before(urgency, lines.values(), gangs)
    if not any(before.values()):
        return dict(lines)
    import networkx as nx

    part = nx.condensation(_meetings(before)).graph["mapping"]
    found = dict(lines)
    for name, line in lines.items():
        members = {gangs[each.pod] for each in line.bindings}
        by_gang = tuple(sorted(line.bindings, key=lambda each: urgency[gangs[each.pod]]))
        if by_gang != line.bindings and len({part[gang] for gang in members}) < len(members):
            found[name] = _regrouped(instance, name, by_gang) or line
    return found


def _before(
    gangs: Iterable[GroupKey], lines: Iterable[_Line], of: Mapping[Key, GroupKey]
) -> dict[GroupKey, set[GroupKey]]:
    found: dict[GroupKey, set[GroupKey]] = {gang: set() for gang in gangs}
    for line in lines:
        for one, other in pairwise(of[each.pod] for each in line.bindings):
            if one != other:
                found[other].add(one)
    return found


def _regrouped(instance: Instance, name: str, bindings: Sequence[Binding]) -> _Line | None:
    """Another order than that of the placement; None where the kubelet would refuse one of its pods."""
    node = instance.aligning_nodes[name]
    kubelet = PackedKubelet(node)
    units = [kubelet.units(instance.pods[each.pod].numa) for each in bindings]
    start = state = kubelet.start(node)
    found = []
    for each, asked in zip(bindings, units, strict=True):
        answer = kubelet.admit(state, asked)
        if answer is None:
            return None
        state = answer[0]
        found.append(replace(each, numa_zones=kubelet.names(answer[1])))
    # If all were of one age: an order by age is any order then.
    orders = find_order(kubelet, start, units, [0.0] * len(units), limit=_TRIED).orders
    return _Line(tuple(found), orders is not Orders.CREATION)


def _gang_order(
    urgency: Mapping[GroupKey, tuple[int, ...]], lines: Iterable[_Line], gangs: Mapping[Key, GroupKey]
) -> Iterator[tuple[GroupKey, ...]]:
    before = _before(urgency, lines, gangs)
    if not any(before.values()):
        yield from ((gang,) for gang in sorted(urgency, key=urgency.__getitem__))
        return
    import networkx as nx  # half a second, and gangs rarely meet on nodes whose kubelets align

    parts = nx.condensation(_meetings(before))
    members: dict[int, set[GroupKey]] = {part: parts.nodes[part]["members"] for part in parts}
    urgent = {part: min(map(urgency.__getitem__, members[part])) for part in parts}
    for part in nx.lexicographical_topological_sort(parts, key=urgent.__getitem__):
        yield tuple(sorted(members[part]))


def _in_turn(batch: Batch) -> Batch:
    here = {each.pod: each for each in batch.bindings}
    found: dict[Key, PlannedBinding] = {}
    for each in batch.bindings:
        ahead = [each]
        while ahead[-1].after in here and ahead[-1].after not in found:
            ahead.append(here[ahead[-1].after])
        found.update((bind.pod, bind) for bind in reversed(ahead))
    return replace(batch, bindings=tuple(found.values()))


def _meetings(before: Mapping[GroupKey, Iterable[GroupKey]]) -> nx.DiGraph[GroupKey]:
    import networkx as nx

    edges: nx.DiGraph[GroupKey] = nx.DiGraph()
    edges.add_nodes_from(before)
    edges.add_edges_from((other, gang) for gang, others in before.items() for other in others)
    return edges
