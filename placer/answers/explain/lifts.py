"""The cluster with one group that waits, and with rules lifted for its own new pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from placer.answers.reasons.relaxations import LADDER
from placer.arrays import Dense
from placer.base.quantity import Resources
from placer.problem import Constraints, Group, GroupKey, Instance, NetworkTopology, Pod, Queue, SubGroup
from placer.problem.instance import NO_TIER
from placer.problem.what_if import only_waiting

#: Code of a cause to the rules that are set aside when it is lifted.
RULES_OF: Mapping[str, tuple[str, ...]] = {
    "InvalidGroup": ("C5",),
    "GangIncomplete": ("C5", "C6"),
    "Unsupported": ("C4",),
    "NoEligibleNode": ("C3",),
    "QueueClosed": ("C11",),
    "QueueCapability": ("C11",),
    "InsufficientResources": ("C2",),
    "TopologyTooNarrow": ("C7",),
    "PodAffinity": ("C12",),
    "PodAntiAffinity": ("C13",),
    "TopologySpread": ("C14",),
    "Exclusive": ("C15",),
    "NumaAlignment": ("C10",),
    "NetworkCost": ("C8",),
    "Bandwidth": ("C9",),
}

Lift = Callable[[Instance, Group], Instance]


def rules_of(code: str, group: Group) -> tuple[str, ...]:
    """Rules behind a cause of a group; C6 only where the group has subgroups."""
    return tuple(rule for rule in RULES_OF[code] if rule != "C6" or group.policies)


def alone(instance: Instance, key: GroupKey) -> Instance:
    """The instance in which nothing waits but one group, and nothing counts but that it is admitted."""
    left = only_waiting(instance, {key})
    return left.keeping_held(policy=replace(instance.policy, levels=("placed",)))


def _with_pods(instance: Instance, group: Group, change: Callable[[Pod], Pod]) -> Instance:
    changed = {key: change(instance.pods[key]) for key in group.pending}
    return instance.keeping_held(pods={**instance.pods, **changed})


def _with_group(instance: Instance, group: Group) -> Instance:
    return instance.keeping_held(groups={**instance.groups, group.key: group})


def _without_rule(rule: str) -> Lift:
    def lifted(instance: Instance, _: Group) -> Instance:
        policy = replace(instance.policy, rules_off=instance.policy.rules_off | {rule})
        return instance.keeping_held(policy=policy)

    return lifted


def _valid(instance: Instance, group: Group) -> Instance:
    """Tier limits that contradict each other go, too."""
    policies = tuple(replace(policy, topology=_clear(policy.topology)) for policy in group.policies)
    return _with_group(instance, replace(group, invalid=None, topology=_clear(group.topology), policies=policies))


def _clear(topology: NetworkTopology | None) -> NetworkTopology | None:
    return None if topology is not None and topology.highest_tier == NO_TIER else topology


def _existing_minimum(instance: Instance, group: Group) -> Instance:
    there = Counter(instance.pods[key].role for key in (*group.pending, *group.bound))
    there.update(group.succeeded)
    roles = {role: min(least, there[role]) for role, least in group.min_task_member.items()}
    policies = []
    for index, policy in enumerate(group.policies):
        sizes = [_members(part) for part in group.sub_groups if part.policy == index]
        policies.append(
            replace(
                policy,
                size=max(1, min([policy.size, *sizes])),
                min_sub_groups=min(policy.min_sub_groups, len(sizes)),
            )
        )
    least = min(group.min_member, group.placed_before + len(group.pending))
    return _with_group(instance, replace(group, min_member=least, min_task_member=roles, policies=tuple(policies)))


def _members(part: SubGroup) -> int:
    return part.placed_before + len(part.pending)


def _supported(instance: Instance, group: Group) -> Instance:
    return _with_pods(instance, group, lambda pod: replace(pod, unsupported=()))


def _eligible(instance: Instance, group: Group) -> Instance:
    """C3: every node takes the pods; nothing else waits that could notice."""
    nodes = {name: replace(node, ready=True, unschedulable=False, taints=()) for name, node in instance.nodes.items()}
    freed = _with_pods(instance, group, lambda pod: replace(pod, constraints=Constraints()))
    return freed.keeping_held(nodes=nodes)


def _roomy(instance: Instance, group: Group) -> Instance:
    need = Resources()
    for key in group.pending:
        need = need + instance.pods[key].requests
    nodes = {}
    for name, node in instance.nodes.items():
        held = instance.held.get(name, Resources())
        room = {
            what: max(node.allocatable[what], held[what]) + need[what] for what in {*node.allocatable, *held, *need}
        }
        nodes[name] = replace(node, allocatable=Resources(room))
    freed = _with_pods(instance, group, lambda pod: replace(pod, host_ports=()))
    return freed.keeping_held(nodes=nodes)


def _anywhere(instance: Instance, group: Group) -> Instance:
    policies = tuple(replace(policy, topology=None) for policy in group.policies)
    return _with_group(_without_rule("C7")(instance, group), replace(group, topology=None, policies=policies))


def _with_queues(change: Callable[[Queue], Queue]) -> Lift:
    def lifted(instance: Instance, group: Group) -> Instance:
        names = {name for key in group.pending for name in instance.queue_path(instance.pods[key].queue)}
        changed = {name: change(instance.queues[name]) for name in names}
        return instance.keeping_held(queues={**instance.queues, **changed})

    return lifted


#: Cause to how it is lifted by name. One that is not here is lifted in the arrays, as ``placer.answers.reasons`` does
#: it.
LIFTED: Mapping[str, Lift] = {
    "InvalidGroup": lambda instance, group: _valid(instance, group) if group.invalid is not None else instance,
    "GangIncomplete": _existing_minimum,
    "Unsupported": _supported,
    "NoEligibleNode": _eligible,
    "QueueClosed": _with_queues(lambda queue: replace(queue, open=True, namespaces=None)),
    "QueueCapability": _with_queues(lambda queue: replace(queue, capability={})),
    "InsufficientResources": _roomy,
    "TopologyTooNarrow": _anywhere,
    "Exclusive": _without_rule("C15"),
    "NumaAlignment": _without_rule("C10"),
    "NetworkCost": _without_rule("C8"),
    "Bandwidth": _without_rule("C9"),
}

#: Rules about domains of node labels are lifted by name for counting, and in the arrays for all else.
_BOTH = ("TopologyTooNarrow", "Exclusive")
_IN_ARRAYS = {code: without for code, _, without in LADDER if code not in LIFTED or code in _BOTH}


def lift_causes(instance: Instance, key: GroupKey, codes: frozenset[str]) -> Instance:
    """Lift some causes of the group that waits (:func:`alone`), as far as that is done by name, in any order."""
    for code, lifted in LIFTED.items():
        if code in codes:
            instance = lifted(instance, instance.groups[key])
    return instance


def lift_causes_in_arrays(dense: Dense, codes: frozenset[str]) -> Dense:
    """Lift the rest in the arrays of the instance that :func:`lift_causes` gives."""
    for code, without in _IN_ARRAYS.items():
        if code in codes:
            dense = without(dense) or dense
    return dense
