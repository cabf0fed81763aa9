"""The hard rules, executable and free of any solver: what a placement breaks, all of it, as data.

One function per rule, under the name that every formulation uses for it. A rule looks at the outcome of a placement
and yields a :class:`~placer.placement.Violation` per breach. What bound pods break by themselves is no violation: a
rule speaks only where something new takes part. :data:`RULES` lists them in the order of the spec.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from placer.instance import HostPort, Instance, Key, Pod, PodState
from placer.instance.group import NO_TIER
from placer.outcome import Outcome, sub_group_subject
from placer.placement import Placement, Violation
from placer.quantity import Resources, format_amount

__all__ = ["RULES", "Rule", "verify"]

#: A rule: yields every breach of it.
Rule = Callable[[Outcome], Iterator[Violation]]


def verify(instance: Instance, placement: Placement) -> list[Violation]:
    """Judge a placement, anybody's.

    Parameters
    ----------
    instance
        The problem; rules that its policy switches off are not looked at.
    placement
        May name pods and nodes that are not there; whatever cannot be carried out is a violation itself and does not
        count for the other rules.

    Returns
    -------
    list[Violation]
        Every violation, in the order of :data:`RULES`; empty where the placement is valid.
    """
    outcome = Outcome(instance, placement)
    on = (rule for name, rule in RULES if name not in instance.policy.rules_off)
    return [violation for rule in on for violation in rule(outcome)]


def once(outcome: Outcome) -> Iterator[Violation]:
    """C1: a pending pod gets at most one node; a bound pod keeps its node.

    A binding of a pod that is not there or not pending, and each binding of a pod after its first, is a violation of
    amount 1.
    """
    pods = outcome.instance.pods
    seen: set[Key] = set()
    for binding in outcome.placement.bindings:
        pod, node = pods.get(binding.pod), f"Node {binding.node}"
        subjects = (_pod(binding.pod), node)
        if pod is None:
            yield Violation("C1", subjects, 1, f"{_pod(binding.pod)} is not in the instance, cannot be bound to {node}")
        elif pod.state is not PodState.PENDING:
            message = f"{_pod(binding.pod)} is {pod.state.value} on node {pod.node}, it cannot be bound to {node}"
            yield Violation("C1", subjects, 1, message)
        elif binding.pod in seen:
            message = f"{_pod(binding.pod)} is bound to {node} after node {outcome.placement.node_of[binding.pod]}"
            yield Violation("C1", subjects, 1, message)
        seen.add(binding.pod)


def capacity(outcome: Outcome) -> Iterator[Violation]:
    """C2 (seeds N, A): per node n and resource r, the sum of requests(p, r) over the pods on n is ≤ allocatable(n, r).

    The pods on a node are bound, terminating, nominated and new ones. Only resources that a new pod on the node
    requests can be violated; the amount is what exceeds allocatable, in the resource's unit. Host ports do not clash:
    each clash that a new pod is part of has amount 1.
    """
    instance = outcome.instance
    for name, new in outcome.new_on.items():
        allocatable, added = instance.nodes[name].allocatable, _requested(new)
        held = instance.held.get(name, Resources())
        for resource, excess, sums in _excesses(held, added, {resource: allocatable[resource] for resource in added}):
            yield Violation("C2", (f"Node {name}",), excess, f"Node {name}: {resource} {sums}")
    yield from _port_clashes(outcome)


def _port_clashes(outcome: Outcome) -> Iterator[Violation]:
    """Host ports that a new pod shares with another pod on its node (C2)."""
    asking = {name: [pod for pod in new if pod.host_ports] for name, new in outcome.new_on.items()}
    taken: Mapping[str, list[Pod]] = _port_holders(outcome.instance) if any(asking.values()) else {}
    for name, new in asking.items():
        others = list(taken.get(name, ()))
        for pod in new:
            for other in others:
                for mine, theirs in _clashes(pod, other):
                    subjects = (f"Node {name}", _pod(pod.key), _pod(other.key))
                    message = (
                        f"{subjects[0]}: {_port(mine)} of {subjects[1]} clashes with {_port(theirs)} of {subjects[2]}"
                    )
                    yield Violation("C2", subjects, 1, message)
            others.append(pod)


def eligibility(outcome: Outcome) -> Iterator[Violation]:
    """C3: a pod is bound only to a node that is there, Ready and schedulable, whose NoSchedule and NoExecute taints it
    tolerates, and that its node selector, required node affinity and volumes admit. The amount is 1 per pod.
    """
    instance = outcome.instance
    for key, name in outcome.placement.node_of.items():
        pod, node = instance.pods.get(key), instance.nodes.get(name)
        if pod is None or pod.state is not PodState.PENDING:
            continue
        reason = "node is not in the instance" if node is None else pod.constraints.refusal(node)
        if reason is not None:
            yield Violation("C3", (_pod(key), f"Node {name}"), 1, f"{_pod(key)} may not be on Node {name}: {reason}")


def refusal(outcome: Outcome) -> Iterator[Violation]:
    """C4: a pod that needs what is not modelled is never bound. The amount is 1 per pod."""
    for key, name in outcome.new.items():
        unsupported = outcome.instance.pods[key].unsupported
        if unsupported:
            message = f"{_pod(key)} needs what is not modelled and is bound to Node {name}: {'; '.join(unsupported)}"
            yield Violation("C4", (_pod(key),), 1, message)


def gang(outcome: Outcome) -> Iterator[Violation]:
    """C5 (seed V): a group that is not ready after the placement gets none of its pending pods.

    One violation per unmet condition (minMember, a role's minTaskMember, a policy's minSubGroups); the amount is the
    number of pods missing. A group that is not in order gets none at all: the amount is the number of pods added.
    """
    for group in outcome.instance.groups.values():
        new = outcome.added(group.pending)
        if not new:
            continue
        subject = str(group.key)
        if group.invalid is not None:
            message = f"{subject} gets {_count(len(new), 'pod')} but must wait: {group.invalid}"
            yield Violation("C5", (subject,), len(new), message)
            continue
        for shortage in outcome.shortages(group):
            message = f"{subject} gets {_count(len(new), 'pod')} but is not ready: {shortage.message}"
            yield Violation("C5", (subject,), shortage.missing, message)


def subgroup(outcome: Outcome) -> Iterator[Violation]:
    """C6 (seed V): a subgroup ends with at least subGroupSize placed pods, or gets none of its pending ones.

    The amount is the number of pods missing.
    """
    for group in outcome.instance.groups.values():
        for part in group.sub_groups:
            new = len(outcome.added(part.pending))
            size = group.policies[part.policy].size
            placed = part.placed_before + new
            if new and placed < size:
                subject = sub_group_subject(group, part.name)
                message = f"{subject}: {placed} of subGroupSize {size} placed ({part.placed_before} before, {new} new)"
                yield Violation("C6", (str(group.key), subject), size - placed, message)


def tier_limit(outcome: Outcome) -> Iterator[Violation]:
    """C7 (seed V): with mode hard and limit t, all placed pods of the scope lie under one HyperNode of tier ≤ t.

    Scopes are groups and subgroups that get something new; their bound pods count. The virtual root holds every node.
    The amount is the tier of the smallest common HyperNode minus t.
    """
    tree = outcome.instance.topology
    for scope in outcome.scopes():
        limit = scope.topology.limit
        if limit is None or not scope.new:
            continue
        common = tree.smallest_common((*scope.before, *scope.new))
        tier = tree.tier(common)
        if tier > limit:
            where = "the virtual root" if common is None else f"HyperNode {common}"
            asked = "a tierName that admits nothing" if limit == NO_TIER else f"highest tier {limit}"
            message = (
                f"{scope.subject} asks for {asked}: the smallest common HyperNode of its {len(scope.before)} bound "
                f"and {len(scope.new)} new pods is {where}, tier {tier}"
            )
            yield Violation("C7", (scope.subject,), tier - limit, message)


def queue(outcome: Outcome) -> Iterator[Violation]:
    """C11 (seed V): per queue q and resource r of its capability, the sum of requests(p, r) over the pods in q or in a
    queue below it is ≤ capability(q, r); a closed queue, or one below a closed queue, takes no new pods.

    Bound and terminating pods count. Only resources that a new pod requests can be violated. The amount is what exceeds
    the capability, in the resource's unit, or the number of new pods in a closed queue.
    """
    instance = outcome.instance
    new = _by_queue(instance, (instance.pods[key] for key in outcome.new))
    if not new:
        return
    running = (PodState.BOUND, PodState.TERMINATING)
    before = _by_queue(instance, (pod for pod in instance.pods.values() if pod.state in running))
    for name, pods in sorted(new.items()):
        if not instance.queues[name].open:
            message = f"Queue {name} is closed and gets {_count(len(pods), 'new pod')}"
            yield Violation("C11", (f"Queue {name}",), len(pods), message)
        held, added = _requested(before.get(name, ())), _requested(pods)
        for resource, excess, sums in _excesses(held, added, instance.queues[name].capability):
            yield Violation("C11", (f"Queue {name}",), excess, f"Queue {name}: {resource} {sums}")


#: Every rule in the order of the spec.
RULES: tuple[tuple[str, Rule], ...] = (
    ("C1", once),
    ("C2", capacity),
    ("C3", eligibility),
    ("C4", refusal),
    ("C5", gang),
    ("C6", subgroup),
    ("C7", tier_limit),
    # C8 network_cost: issue 6
    # C9 bandwidth: issue 6
    # C10 numa: issue 7
    ("C11", queue),
)


def _pod(key: Key) -> str:
    return f"Pod {key}"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _port(port: HostPort) -> str:
    return f"host port {port.ip}:{port.port}/{port.protocol}"


def _requested(pods: Sequence[Pod]) -> Counter[str]:
    """Sum of the requests of the pods, per resource; equal requests are multiplied, not added one by one."""
    total: Counter[str] = Counter()
    for requests, count in Counter(pod.requests for pod in pods).items():
        for resource, amount in requests.items():
            total[resource] += count * amount
    return total


def _excesses(
    before: Mapping[str, int], added: Mapping[str, int], most: Mapping[str, int]
) -> Iterator[tuple[str, int, str]]:
    """Limited resources of which something is added and the sum is above the limit: name, excess, the sums as text."""
    for resource, limit in sorted(most.items()):
        held, fresh = before[resource], added[resource]
        excess = held + fresh - limit
        if fresh > 0 and excess > 0:
            total, old, new, room, over = (
                format_amount(resource, amount) for amount in (held + fresh, held, fresh, limit, excess)
            )
            yield resource, excess, f"{total} requested ({old} before, {new} new) of {room}: {over} too much"


def _clashes(one: Pod, other: Pod) -> Iterator[tuple[HostPort, HostPort]]:
    """Pairs of host ports of the two pods that cannot be open on one node."""
    return ((mine, theirs) for mine in one.host_ports for theirs in other.host_ports if mine.clashes(theirs))


def _port_holders(instance: Instance) -> dict[str, list[Pod]]:
    """Node name to the pods with host ports that hold room there before the placement."""
    found: dict[str, list[Pod]] = defaultdict(list)
    for pod in instance.pods.values():
        if pod.host_ports and pod.node is not None:
            found[pod.node].append(pod)
    return found


def _by_queue(instance: Instance, pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """Known queue to those of the pods that count against it: its own and those of the queues below it."""
    own: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.queue is not None:
            own[pod.queue].append(pod)
    found: dict[str, list[Pod]] = defaultdict(list)
    for queue_name, members in own.items():
        for name in instance.queue_path(queue_name):
            found[name] += members
    return found
