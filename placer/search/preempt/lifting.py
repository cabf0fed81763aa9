"""The instance in which all that may be disturbed waits: each such pod twice, to stay where it is and to be moved.

So every rule and every value is decided by what decides them for pending pods; what is said of disturbing alone (D1 to
D3) are a few rows about how many of each kind stay (:mod:`placer.search.exact.disturbing`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from placer.arrays import Dense
from placer.arrays.dense_builder import make_dense
from placer.arrays.network import NO_LIMIT
from placer.base.grouping import grouped
from placer.problem import Constraints, Group, GroupKey, Instance, Key, Pod, PodState, Requirement, SubGroup, Term
from placer.problem.communication import AppGroup, Network
from placer.problem.disruption import Disruption, unit_priority
from placer.problem.instance import DisruptionBudget
from placer.problem.nodes import Toleration
from placer.problem.outcome import Outcome
from placer.problem.placement import LOSSES, Placement
from placer.rules.disruption import without_affinity
from placer.rules.rules import broken
from placer.rules.scoring import score, used_nodes
from placer.rules.words import pod_subjects

#: Ends the name of the copy of a pod that is moved; no pod has a space in its name.
MOVED = " moved"
#: Ends the name of the copy of a pod that stays while its group waits on.
IDLE = " idle"
#: Ends the name of a workload of pods that stand, where calls between them cost more than they may.
STANDING = " standing"
#: What every node admits.
ANYWHERE = Constraints(tolerations=(Toleration(operator="Exists"),))
#: API group of groups that are made here.
_OURS = "placer.dev"
#: Rounds of leaving out what breaks rules by itself.
_ROUNDS = 8

Part = TypeVar("Part", Group, SubGroup)


class LiftedPart(NamedTuple):
    """Pods of a group that may be disturbed, and go together where fewer than ``least`` of them stay; 0: each alone.

    ``policy``: of the subgroup that they are; -1: of none that is ready. ``whole``: all of them may go; else some of
    the subgroup stay for certain.
    """

    pods: tuple[Key, ...]
    least: int = 0
    policy: int = -1
    whole: bool = True


class LiftedGroup(NamedTuple):
    """A group of which something may be disturbed: ``parts``, its subgroups, and its pods in none.

    ``priority``: of the unit that it is where it goes as a whole. ``whole``: it goes so where too few stay; else some
    of its pods stay for certain, or it needs none. ``least``, ``by_role``, ``by_policy``: how many of its pods stay, in
    all and per role, and how many subgroups per policy, if it does not go as a whole. ``unit_size``: how many of the
    pods that go alone are one unit at most: 1, unless they stand for groups. ``waits_as``: a group that waits for more
    pods: what runs of it stays as part of it where it is admitted, else as a copy with :data:`IDLE` behind its name.
    """

    priority: int
    parts: tuple[LiftedPart, ...]
    whole: bool = False
    least: int = 0
    by_role: Mapping[str, int] = {}
    by_policy: Mapping[int, int] = {}
    unit_size: int = 1
    waits_as: GroupKey | None = None

    @property
    def goes_whole(self) -> bool:
        """Whether all of it goes where any of it does."""
        return self.whole and self.least == sum(len(part.pods) for part in self.parts)


@dataclass(frozen=True)
class Lifted:
    """``groups`` of which something may be disturbed, and the ``instance`` in which that waits.

    It waits under its name to stay, and under its name and :data:`MOVED` to be moved. ``complete``: nothing was left
    out that could be disturbed: only then is a bound one. ``last``: the last value that is decided; empty: all are.
    """

    before: Instance
    instance: Instance
    groups: tuple[LiftedGroup, ...]
    complete: bool = True
    last: str = ""

    @property
    def pods(self) -> tuple[Key, ...]:
        """Everything that may be disturbed."""
        return tuple(key for group in self.groups for part in group.parts for key in part.pods)

    @cached_property
    def priorities(self) -> tuple[int, ...]:
        """Of the units that may go, highest first."""
        found: set[int] = set()
        for group in self.groups:
            if group.whole:
                found.add(group.priority)
            if not group.goes_whole:
                found.update(self.before.pods[key].unit_priority for part in group.parts for key in part.pods)
        return tuple(sorted(found, reverse=True))

    @cached_property
    def standing(self) -> Placement:
        """All of it where it is."""
        return Placement.of({self.idle.get(key, key): self.before.pods[key].node or "" for key in self.pods})

    @cached_property
    def idle(self) -> Mapping[Key, Key]:
        """Pods of groups that wait for more to the copies under which they stay while these do."""
        waiting = (part for group in self.groups if group.waits_as is not None for part in group.parts)
        return {key: Key(key.namespace, key.name + IDLE) for part in waiting for key in part.pods}

    @cached_property
    def _running(self) -> frozenset[Key]:
        alone = without_affinity(Outcome(self.before, Placement()))
        bound = (pod for pod in self.instance.pods.values() if pod.state is PodState.BOUND and pod.neighbours.affinity)
        return frozenset((*self.pods, *self.idle.values(), *(pod.key for pod in bound if pod.key not in alone)))

    @cached_property
    def dense(self) -> Dense:
        """The arrays, with the values of what waits and of what is disturbed."""
        before, raw = self.before, make_dense(self.instance, self._running)
        weights = before.weights
        names = used_nodes(before)
        used = raw.node_used.copy()
        used[:] = [name in names for name in raw.nodes]
        tree = raw.domains
        domains = tree.used.copy()
        domains[:] = [used[begin:end].any() for begin, end in zip(tree.begin, tree.end, strict=True)]
        needs = before.need_weights
        return replace(
            raw,
            node_used=used,
            domains=replace(tree, used=domains),
            classes=tuple(replace(each, weight=weights.get(each.pods[0], 0)) for each in raw.classes),
            groups=tuple(replace(each, need_weight=needs.get(each.key, 0)) for each in raw.groups),
            criteria=self._criteria(),
        )

    def _criteria(self) -> tuple[tuple[str, int | None], ...]:
        found: list[tuple[str, int | None]] = []
        for value in score(self.before, Placement(), disturbing=True):
            if value.name == "moved":
                found += [(name, priority) for priority in self.priorities for name in LOSSES]
            found.append((value.name, value.priority))
        return tuple(found)


def waiting(instance: Instance) -> list[Group]:
    """Groups that would be made ready by a placement and need something for it, higher priority and older first."""
    standing = Outcome(instance, Placement())
    found = (
        group
        for group in instance.groups.values()
        if group.pending and instance.need_weights[group.key] and not (group.placed_before and standing.ready(group))
    )
    return sorted(found, key=lambda group: (-group.priority, group.created, group.key))


def may_be_disturbed(instance: Instance, priority: int) -> list[Key]:
    """Pods that may be evicted or moved for a group of a priority (D2, D3), and with them all that has to go then.

    What a queue keeps is among them where a group of the queue waits for which it may go.
    """
    highest, least = _highest_of_queues(instance), least_priorities(instance)
    allowed: dict[Key, None] = {}
    for key, pod in instance.pods.items():
        if _may_leave(pod) and _is_let_go(instance, pod, least[key], priority, highest):
            allowed[key] = None
    kept = _kept(instance, allowed)
    return [key for key in allowed if key not in kept]


def _may_leave(pod: Pod) -> bool:
    return pod.state is PodState.BOUND and not pod.protected


def _is_let_go(instance: Instance, pod: Pod, least: int, priority: int, highest: Mapping[str, int]) -> bool:
    """Whether a group of ``priority`` may have a pod of priority ``least`` go, and no queue keeps it."""
    if least > priority and not instance.moves_only:
        return False
    queue = None if pod.queue is None else instance.keeping_queue(pod)
    return queue is None or least < highest.get(queue, least)


def _highest_of_queues(instance: Instance) -> dict[str, int]:
    found: dict[str, int] = {}
    for group in instance.groups.values() if not all(each.reclaimable for each in instance.queues.values()) else ():
        queue = instance.waiting_queue(group) if group.pending else None
        if queue is not None:
            found[queue] = max(found.get(queue, group.priority), group.priority)
    return found


def _kept(instance: Instance, allowed: Mapping[Key, None]) -> set[Key]:
    limited = frozenset[Key]().union(*(_counted(instance, budget) for budget in instance.budgets))
    unsure = limited.union(*(_beside(group, limited, allowed) for group in instance.groups.values()))
    return {key for key in unsure & allowed.keys() if not _may_go(instance, key, allowed)}


def _counted(instance: Instance, budget: DisruptionBudget) -> Iterable[Key]:
    sizes = {key: len(group.bound) for key, group in instance.groups.items()}
    pods = instance.pods
    return (key for key in budget.pods if sizes.get(pods[key].group or GroupKey("", *key), 1) > budget.allowed)


def _beside(group: Group, limited: Collection[Key], allowed: Collection[Key]) -> tuple[Key, ...]:
    return group.bound if any(key in limited or key not in allowed for key in group.bound) else ()


def _may_go(instance: Instance, key: Key, allowed: Collection[Key]) -> bool:
    group = instance.groups.get(instance.pods[key].group or GroupKey("", *key))
    going = {key}
    if group is not None:
        pods = {each: instance.pods[each] for each in (*group.bound, *group.pending)}
        alone = replace(instance, pods=pods, groups={group.key: group})
        going = {pod for unit in Disruption(alone, Placement(evictions=(key,))).units for pod in unit.pods}
    return going.issubset(allowed) and all(len(each.pods & going) <= each.allowed for each in instance.budgets)


def least_priorities(instance: Instance) -> dict[Key, int]:
    """Bound pod to the least priority of a unit that it may be of: its own, but where all of its group goes with it."""
    found = {key: pod.unit_priority for key, pod in instance.pods.items() if pod.state is PodState.BOUND}
    for group in instance.groups.values():
        if group.bound and goes_whole(group):
            found.update(dict.fromkeys(group.bound, unit_priority(instance, group.bound)))
    return found


def goes_whole(group: Group) -> bool:
    """Whether all of a group goes for certain where any of it does."""
    return group.disrupted_whole or group.placed_before <= group.min_member


def moved_key(key: Key) -> Key:
    """The name of the copy of a pod that is moved."""
    return Key(key.namespace, key.name + MOVED)


def on_nodes(names: Iterable[str], constraints: Constraints = ANYWHERE, operator: str = "In") -> Constraints:
    """The same constraints, which only these nodes meet; with ``NotIn`` only others."""
    term = Term(fields=(Requirement("metadata.name", operator, tuple(sorted(names))),))
    return replace(constraints, required=(*constraints.required, (term,)))


def marked(constraints: Constraints, *marks: object) -> Constraints:
    """The same constraints, told apart from equal ones of other marks."""
    tolerations = (Toleration(key=f"placer.dev/{mark!r}") for mark in marks)
    return replace(constraints, tolerations=(*constraints.tolerations, *tolerations))


def lift(
    instance: Instance, candidates: Collection[Key], unit_sizes: Mapping[Key, int] = MappingProxyType({})
) -> Lifted:
    """Let everything wait that may be disturbed (:func:`may_be_disturbed`).

    Pods that break rules where they stand keep their nodes, and so do those that no rule can be asked of. Calls that
    cost too much where both ends stand, and links that carry too much, keep nobody. ``unit_sizes``: pod in no group
    to the most pods of its unit; an absent one is 1.
    """
    left, apart, complete = set(candidates), set[Key](), True
    for _ in range(_ROUNDS):
        lifter = _Lifter(instance, left, unit_sizes, apart)
        found = lifter.lifted()
        subjects = _broken(found)
        calling = {key for key in instance.app_groups if f"AppGroup {key}" in subjects} - apart
        if calling:
            apart |= calling
            continue
        trouble = _in_trouble(found, subjects)
        complete = complete and lifter.complete and not trouble
        if not trouble:
            return replace(found, complete=complete)
        left -= trouble
    return replace(_Lifter(instance, (), unit_sizes).lifted(), complete=False)


def _in_trouble(lifted: Lifted, subjects: set[str]) -> set[Key]:
    dense, before = lifted.dense, lifted.before
    trouble = {key for key in lifted.pods if key not in dense.class_of}
    if trouble:
        return _with_groups(before, trouble, lifted.pods)
    if not subjects:
        return set()
    found = {key for key in lifted.pods if not subjects.isdisjoint(pod_subjects(before, before.pods[key]))}
    return _with_groups(before, found or set(lifted.pods), lifted.pods)


def _broken(lifted: Lifted) -> set[str]:
    """Names of what breaks a rule where it stands; that pods are near each other, or too near, is asked of new ones."""
    standing = broken(Outcome(lifted.instance, lifted.standing))
    return {name for each in standing if each.rule not in {"C12", "C13"} for name in each.subjects}


def _with_groups(instance: Instance, pods: set[Key], candidates: Iterable[Key]) -> set[Key]:
    groups = {instance.pods[key].group for key in pods} - {None}
    return pods | {key for key in candidates if instance.pods[key].group in groups}


class _Lifter:
    def __init__(
        self,
        instance: Instance,
        candidates: Collection[Key],
        unit_sizes: Mapping[Key, int],
        apart: Collection[Key] = (),
    ) -> None:
        self.before, self.unit_sizes = instance, unit_sizes
        #: AppGroups of which pods that stand are workloads of their own: no limit is between two of them.
        self.apart = apart
        self.standing = Outcome(instance, Placement())
        self.pods = dict(instance.pods)
        self.groups = dict(instance.groups)
        self.lifted_groups: list[LiftedGroup] = []
        self.complete = True
        self.budgets: dict[Key, list[int]] = defaultdict(list)
        for number, budget in enumerate(instance.budgets):
            for key in budget.pods:
                self.budgets[key].append(number)
        self.alike: dict[object, int] = {}
        #: Pods that lack already what they need near.
        self.alone = without_affinity(self.standing)
        nodes = {instance.pods[key].node or "" for key in candidates}
        #: Nodes that are not ready and have pods that may go: others cannot come, whatever they tolerate.
        self.lost = tuple(sorted(name for name in nodes if name in instance.nodes and not instance.nodes[name].ready))
        self.by_group: dict[GroupKey | None, list[Key]] = defaultdict(list)
        for key in sorted(candidates):
            self.by_group[instance.pods[key].group].append(key)

    def lifted(self) -> Lifted:
        for key in self.by_group.pop(None, []):
            kind = GroupKey(_OURS, str(self.unit_sizes.get(key, 1)), str(self.before.pods[key].unit_priority))
            self.by_group[kind].append(key)
        for name, keys in sorted(self.by_group.items(), key=lambda each: str(each[0])):
            if name is not None:
                self._group(name, keys)
        self._others()
        calls = {key: _apart(each) if key in self.apart else each for key, each in self.before.app_groups.items()}
        nodes = {**self.before.nodes, **{name: replace(self.before.nodes[name], ready=True) for name in self.lost}}
        queues = {name: replace(each, open=True, namespaces=None) for name, each in self.before.queues.items()}
        groups = dict(sorted(self.groups.items()))
        changed = replace(self.before, nodes=nodes, pods=self.pods, groups=groups, queues=queues)
        instance = replace(changed, app_groups=calls, network=self._network())
        return Lifted(self.before, instance, tuple(self.lifted_groups), self.complete)

    def _others(self) -> None:
        for key, pod in self.before.pods.items():
            if pod.state is PodState.PENDING:
                self.pods[key] = self._still_waiting(pod)
            elif self.apart and pod.state is PodState.BOUND and self.pods[key] is pod:
                self.pods[key] = replace(pod, workload=self._standing(pod))

    def _network(self) -> Network | None:
        """The network, in which links that carry too much as it stands have room for that."""
        network, traffic = self.before.network, self.standing.traffic()
        if network is None or all(traffic[link] <= room for link, room in network.capacities.items()):
            return network
        room = {link: max(each, traffic[link]) for link, each in network.capacities.items()}
        return replace(network, capacities=room)

    def _standing(self, pod: Pod) -> str | None:
        return f"{pod.workload}{STANDING}" if pod.workload is not None and pod.app_group in self.apart else pod.workload

    def _still_waiting(self, pod: Pod) -> Pod:
        if self.before.closed_queue(pod.queue, pod.namespace) is not None:
            return replace(pod, unsupported=("its queue takes no new pods",))
        return replace(pod, constraints=self._elsewhere(pod.constraints))

    def _elsewhere(self, constraints: Constraints) -> Constraints:
        return on_nodes(self.lost, constraints, "NotIn") if self.lost else constraints

    def _group(self, name: GroupKey, keys: list[Key]) -> None:
        group = self.before.groups.get(name)
        if group is None:
            self._lone(name, keys)
        elif group.invalid is None and self.standing.ready(group):
            self._ready(group, keys, beyond=self._beyond_limits(group))
        elif group.pending and group.invalid is None:
            self._waiting(group, keys)
        else:
            self._unready(group, keys)

    def _lone(self, name: GroupKey, keys: list[Key]) -> None:
        priority, size = self.before.pods[keys[0]].unit_priority, self.unit_sizes.get(keys[0], 1)
        pending = [each for key in keys for each in self._wait(key, name, move=True)]
        self.groups[name] = Group(name, priority=priority, pending=tuple(sorted(pending)))
        self.lifted_groups.append(LiftedGroup(priority, (LiftedPart(tuple(keys)),), unit_size=size))

    def _ready(self, group: Group, keys: list[Key], *, beyond: bool) -> None:
        """A ready group: its pods that remain or move have to be ready as well, within its limits of tiers.

        ``beyond``: it breaks these as it stands, and so nothing of it is moved.
        """
        self.complete &= not beyond
        whole = frozenset(keys).issuperset(group.bound)
        if group.disrupted_whole and not whole:
            return
        stuck = self._stuck(group, keys)
        away = {key for key in keys if stuck.get(key, True)}
        still = away if beyond else stuck.keys()
        copies = {key: self._wait(key, group.key, move=key not in still) for key in sorted(away)}
        lifted = _left(group, copies, still)
        self.groups[group.key] = _without_limits(lifted) if beyond else lifted
        if group.disrupted_whole:
            self.lifted_groups.append(self._as_one(keys))
            return
        least = max(0, group.min_member - lifted.placed_before)
        by_role = self._roles(group, lifted)
        parts, by_policy = self._parts(group, lifted, away, stuck)
        whole = whole and any((least, by_role, by_policy))
        priority = unit_priority(self.before, keys)
        self.lifted_groups.append(LiftedGroup(priority, parts, whole, least, by_role, by_policy))

    def _as_one(self, keys: Sequence[Key]) -> LiftedGroup:
        return LiftedGroup(unit_priority(self.before, keys), (LiftedPart(tuple(keys)),), True, len(keys))

    def _waiting(self, group: Group, keys: list[Key]) -> None:
        """A group that waits for more pods: what runs of it is one unit, which is moved with it or stays."""
        if self.standing.ready(group) or _has_spare_parts(group):
            self.complete = False  # what stays may be of no part that is ready
        elif frozenset(keys).issuperset(group.bound):
            copies = {key: self._wait(key, group.key, move=True) for key in keys}
            self.groups[group.key] = _left(group, copies, {})
            name = GroupKey(_OURS, group.key.namespace, group.key.name)
            idle = tuple(sorted(self._idle(key, name) for key in keys))
            self.groups[name] = Group(name, priority=group.priority, pending=idle)
            self.lifted_groups.append(self._as_one(keys)._replace(waits_as=group.key))

    def _idle(self, key: Key, group: GroupKey) -> Key:
        stays, pod = self.pods[key], self.before.pods[key]
        constraints = marked(stays.constraints, pod.sub_group, pod.role)
        copy = replace(stays, name=key.name + IDLE, group=group, sub_group=None, constraints=constraints)
        self.pods[copy.key] = copy
        return copy.key

    def _stuck(self, group: Group, keys: Iterable[Key]) -> dict[Key, bool]:
        """Pods of subgroups that are not ready as they stand and cannot be moved, to whether they may go together."""
        found: dict[Key, bool] = {}
        for part in group.sub_groups:
            policy = group.policies[part.policy]
            if part.bound and part.placed_before < policy.size:
                self.complete = self.complete and not part.pending and policy.topology is None
                found.update(dict.fromkeys(part.bound, frozenset(keys).issuperset(part.bound)))
        return found

    def _roles(self, group: Group, left: Group) -> dict[str, int]:
        there: dict[str, int] = defaultdict(int, group.succeeded)
        for key in left.bound:
            there[self.before.pods[key].role] += 1
        return {role: most - there[role] for role, most in group.min_task_member.items() if most > there[role]}

    def _parts(
        self, group: Group, left: Group, keys: Iterable[Key], stuck: Collection[Key]
    ) -> tuple[tuple[LiftedPart, ...], dict[int, int]]:
        by_part = grouped(sorted(keys), lambda key: self.before.pods[key].sub_group)
        parts, ready = [], defaultdict[int, int](int)
        for index, sub in enumerate(left.sub_groups):
            policy, pods = group.policies[sub.policy], tuple(by_part.pop(index, ()))
            ready[sub.policy] += sub.placed_before >= policy.size
            if pods and pods[0] in stuck:
                parts.append(LiftedPart(pods, len(pods)))
            elif pods:
                parts.append(LiftedPart(pods, max(0, policy.size - sub.placed_before), sub.policy, not sub.bound))
        parts += [LiftedPart(tuple(each)) for each in by_part.values()]
        missing = {index: each.min_sub_groups - ready[index] for index, each in enumerate(group.policies)}
        return tuple(parts), {index: short for index, short in missing.items() if short > 0}

    def _unready(self, group: Group, keys: list[Key]) -> None:
        """A group that is not ready as it stands goes as a whole, and cannot be moved: it would have to be ready."""
        if not frozenset(keys).issuperset(group.bound):
            return
        name = GroupKey(_OURS, group.key.namespace, group.key.name)
        pending = [each for key in keys for each in self._wait(key, name, move=False)]
        self.groups[group.key] = replace(
            group,
            bound=(),
            sub_groups=tuple(replace(part, bound=()) for part in group.sub_groups),
        )
        self.groups[name] = Group(name, priority=group.priority, pending=tuple(pending))
        self.lifted_groups.append(self._as_one(keys))

    def _beyond_limits(self, group: Group) -> bool:
        tree = self.before.topology
        scopes = [(group.topology, group.bound)]
        scopes += [(group.policies[part.policy].topology, part.bound) for part in group.sub_groups]
        for topology, bound in scopes:
            limit = None if topology is None else topology.limit
            nodes = [self.before.pods[key].node or "" for key in bound]
            if limit is not None and nodes and tree.tier(tree.smallest_common(nodes)) > limit:
                return True
        return False

    def _wait(self, key: Key, group: GroupKey, *, move: bool) -> tuple[Key, ...]:
        pod = self.before.pods[key]
        part = pod.sub_group if move else None
        move = move and not pod.unsupported and self.before.closed_queue(pod.queue, pod.namespace) is None
        ties = pod.unit_priority, (pod.constraints, pod.numa, pod.neighbours) if move else None
        alike = self.alike.setdefault(ties, len(self.alike))
        near = replace(pod.neighbours, spread=())
        self.pods[key] = replace(
            pod,
            state=PodState.PENDING,
            node=None,
            group=group,
            sub_group=part,
            constraints=marked(on_nodes([pod.node or ""]), alike, *self.budgets[key]),
            numa=None,
            neighbours=replace(near, affinity=()) if key in self.alone else near,
            unsupported=(),
            workload=self._standing(pod),
        )
        if not move:
            return (key,)
        copy = replace(pod, name=pod.name + MOVED, state=PodState.PENDING, node=None, group=group)
        # Equal pods of which other budgets speak are told apart, as those that stay are.
        self.pods[copy.key] = replace(copy, constraints=marked(self._elsewhere(pod.constraints), alike))
        return key, copy.key


def _apart(app: AppGroup) -> AppGroup:
    calls = (
        replace(
            each,
            origin=each.origin + caller,
            destination=each.destination + callee,
            max_network_cost=NO_LIMIT if caller and callee else each.max_network_cost,
        )
        for each in app.dependencies
        for caller, callee in product(("", STANDING), repeat=2)
    )
    return replace(app, dependencies=tuple(calls))


def _has_spare_parts(group: Group) -> bool:
    counts = Counter(part.policy for part in group.sub_groups)
    short = (part for part in group.sub_groups if part.bound and part.placed_before < group.policies[part.policy].size)
    return any(group.policies[part.policy].min_sub_groups < counts[part.policy] for part in short)


def _without_limits(group: Group) -> Group:
    return replace(group, topology=None, policies=tuple(replace(each, topology=None) for each in group.policies))


def _left(group: Group, copies: Mapping[Key, tuple[Key, ...]], stuck: Collection[Key]) -> Group:
    moving = {key: () if key in stuck else each for key, each in copies.items()}
    return replace(_without(group, copies), sub_groups=tuple(_without(part, moving) for part in group.sub_groups))


def _without(part: Part, copies: Mapping[Key, tuple[Key, ...]]) -> Part:
    gone: list[Key] = [copy for key in part.bound if key in copies for copy in copies[key]]
    bound = tuple(key for key in part.bound if key not in copies)
    return replace(part, bound=bound, pending=tuple(sorted((*part.pending, *gone))))
