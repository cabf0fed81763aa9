"""Reasons in the group itself: its demands, the pods that exist, their needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from placer.answers.reasons.cause import NAMED, EligibleNodes, plural, shape_text
from placer.base.quantity import Resources
from placer.base.words import and_list, some
from placer.problem import Group, Instance, Key
from placer.problem.queues import NAMESPACES
from placer.problem.result import Reason


def never_ready(instance: Instance, group: Group, eligible: EligibleNodes) -> Reason | None:
    """Why the existing pods can never make the group ready, wherever they go; None where they can."""
    if group.invalid is not None:
        return Reason("InvalidGroup", group.invalid)
    missing = _missing(instance, group, group.pending)
    if missing is not None:
        return Reason("GangIncomplete", missing + _succeeded(group))
    within = _within_budget(instance, group.pending)
    if _missing(instance, group, within) is not None:
        return _beyond_budget(instance, group.pending)
    supported = _supported(instance, within)
    if _missing(instance, group, supported) is not None:
        return _unsupported(instance, group.pending)
    return _nowhere_or_closed(instance, group, supported, eligible)


def _nowhere_or_closed(
    instance: Instance, group: Group, supported: Sequence[Key], eligible: EligibleNodes
) -> Reason | None:
    taking = [key for key in supported if not _kept_off(instance, key)]
    if _missing(instance, group, taking) is not None:
        somewhere = [key for key in supported if not eligible.nowhere(instance.pods[key])]
        if _missing(instance, group, somewhere) is not None:
            return _nowhere(instance, supported, eligible)
        return _queue_closed(instance, supported)
    return None


def plain_reason(instance: Instance, group: Group, eligible: EligibleNodes) -> Reason | None:
    """Why a group is never ready, or no node takes its pods, or is as large as they; None: none of these is so."""
    return never_ready(instance, group, eligible) or _no_node_takes(instance, group, eligible)


def _no_node_takes(instance: Instance, group: Group, eligible: EligibleNodes) -> Reason | None:
    somewhere = [key for key in group.pending if not eligible.nowhere(instance.pods[key])]
    if _lacks(instance, group, somewhere):
        return _nowhere(instance, group.pending, eligible)
    fitting = [key for key in group.pending if eligible.largest_takes(instance.pods[key])]
    if not _lacks(instance, group, fitting) or _limited(instance, group.pending):
        return None  # or its queue would be the first reason
    pod = next(instance.pods[key] for key in group.pending if key not in fitting)
    return Reason(
        "InsufficientResources", f"no node that may take it is as large as a pod of {shape_text(pod.requests)}"
    )


#: Causes next to which it is said that a group fits no domain of its tier; the last names a domain itself.
BY_ROOM = ("QueueCapability", "InsufficientResources", "TopologyTooNarrow")


def too_wide(instance: Instance, group: Group) -> str:
    """Why no domain of its tier holds a group, were all nodes empty and the largest; empty: one may."""
    limit = group.topology.limit if group.topology and not instance.policy.rules_off & {"C2", "C7"} else None
    asked = {instance.pods[key].requests for key in group.pending}
    if limit is None or not 0 <= limit < instance.topology.root_tier or group.bound or len(asked) != 1:
        return ""
    return _wider_than(instance, group.need, asked.pop(), limit)


def _wider_than(instance: Instance, need: int, asked: Resources, limit: int) -> str:
    tier, sizes = instance.topology.tier, instance.domain_sizes.items()
    most = max(map(asked.copies_in, instance.allocatables), default=0)
    size, largest = min(((-count, name) for name, count in sizes if tier(name) <= limit), default=(0, ""))
    lack = need + size * most
    if not (size and most) or lack <= 0:
        return ""
    each = "" if size == -1 else " each"
    there = f"the largest ({largest}) has {plural(-size, 'node')}, with room for {most}{each} when empty"
    pods = f"{plural(need, 'pod')} of {shape_text(asked)}"
    return f"needs {pods} in one HyperNode of tier <= {limit}; {there}, {lack} too few"


def task_word(group: Group, name: str) -> str:
    """A role of a group, as its objects call it."""
    return f"{'task group' if group.stated else 'task'} {name}"


def _lacks(instance: Instance, group: Group, keys: Sequence[Key]) -> bool:
    return len(keys) < len(group.pending) and _missing(instance, group, keys) is not None


def _limited(instance: Instance, keys: Iterable[Key]) -> bool:
    queues = {name for key in keys for name in instance.queue_path(instance.pods[key].queue)}
    return "C11" not in instance.policy.rules_off and any(instance.queues[name].capability for name in queues)


def never_placeable(instance: Instance, group: Group, left: Sequence[Key], eligible: EligibleNodes) -> Reason | None:
    """Why no optional pod of a ready group can ever be placed; None where one can."""
    large = _in_whole_sub_groups(instance, group, left, group.pending)
    if not large:
        text = next(_small_sub_groups(instance, group, group.pending, set(left)), None)
        return None if text is None else Reason("GangIncomplete", text + _succeeded(group))
    supported = _supported(instance, large)
    if not supported:
        return _unsupported(instance, large)
    if len(_within_budget(instance, supported)) < len(supported):
        return _beyond_budget(instance, supported)
    if any(_kept_off(instance, key) for key in supported):
        return _kept_off_by(instance, supported, eligible)
    if len(supported) < len(large):  # too few for their subgroup without the others
        return _unsupported(instance, large)
    return None


def _missing(instance: Instance, group: Group, keys: Sequence[Key]) -> str | None:
    whole = _in_whole_sub_groups(instance, group, keys, keys)
    text = next(_unmet(instance, group, whole), None)
    small = next(_small_sub_groups(instance, group, keys, set(keys)), None) if len(whole) < len(keys) else None
    return text if text is None or small in (None, text) else f"{text} in subgroups of full size: {small}"


def _unmet(instance: Instance, group: Group, keys: Sequence[Key]) -> Iterator[str]:
    before = group.placed_before
    roles = list(_unmet_of_roles(instance, group, keys)) if group.min_task_member else []
    if before + len(keys) < group.min_member:
        roles.insert(
            0, f"{group.stated or 'minMember'} is {group.min_member}, but there {_there_are(len(keys), before)}"
        )
    yield from ["; ".join(roles)] if roles else []
    yield from _unmet_of_policies(instance, group, keys) if group.policies else ()
    # A group that may do without all of its pods still has none to place where every subgroup is too small.
    if not keys and group.pending:
        yield from _small_sub_groups(instance, group, group.pending, set(group.pending))


def _unmet_of_policies(instance: Instance, group: Group, keys: Iterable[Key]) -> Iterator[str]:
    counts, policies = _sub_group_sizes(instance, group, keys), group.policies
    whole = Counter(part.policy for at, part in enumerate(group.sub_groups) if counts[at] >= policies[part.policy].size)
    for index, policy in enumerate(policies):
        if whole[index] < policy.min_sub_groups:
            yield (
                f"minSubGroups of policy {policy.name} is {policy.min_sub_groups}, but {whole[index]} of its subgroups "
                f"have subGroupSize {policy.size} pods"
            )


def _unmet_of_roles(instance: Instance, group: Group, keys: Iterable[Key]) -> Iterator[str]:
    there, running = Counter(instance.pods[key].role for key in keys), Counter(group.succeeded)
    running.update(instance.pods[key].role for key in group.bound)
    for role, least in sorted(group.min_task_member.items()):
        if there[role] + running[role] < least:
            minimum = f"{'minMember' if group.stated else 'minTaskMember'} of {task_word(group, role)}"
            yield f"{minimum} is {least}, but there {_there_are(there[role], running[role])}"


def _succeeded(group: Group) -> str:
    counted, named = sum(group.succeeded.values()), [f"Pod {key}" for key in group.finished]
    count = max(counted, len(named))
    if not count:
        return ""
    has = "has" if count == 1 else "have"
    which = f" ({and_list(some(named, NAMED))})" if named else ""
    if counted:
        return f"; {count} of those placed before {has} succeeded{which}"
    return f"; {plural(count, 'member')} {has} succeeded and {'counts' if count == 1 else 'count'} no more{which}"


def _there_are(pending: int, before: int) -> str:
    verb = "is" if pending == 1 else "are"
    return f"{verb} {plural(pending, 'pending pod')}" + (f" and {before} placed before" if before else "")


def _sub_group_sizes(instance: Instance, group: Group, keys: Iterable[Key]) -> Counter[int | None]:
    counts = Counter(instance.pods[key].sub_group for key in keys)
    for at, part in enumerate(group.sub_groups):
        counts[at] += part.placed_before
    return counts


def _in_whole_sub_groups(instance: Instance, group: Group, keys: Sequence[Key], there: Sequence[Key]) -> list[Key]:
    if not group.sub_groups:
        return list(keys)
    counts = _sub_group_sizes(instance, group, there)
    small = {at for at, part in enumerate(group.sub_groups) if counts[at] < group.policies[part.policy].size}
    return [key for key in keys if instance.pods[key].sub_group not in small]


def _small_sub_groups(instance: Instance, group: Group, keys: Iterable[Key], left: set[Key]) -> Iterator[str]:
    counts = _sub_group_sizes(instance, group, keys)
    for at, part in enumerate(group.sub_groups):
        size = group.policies[part.policy].size
        if counts[at] < size and left & set(part.pending):
            there = _there_are(counts[at] - part.placed_before, part.placed_before)
            yield f"subGroupSize of subgroup {part.name} is {size}, but there {there}"


def _supported(instance: Instance, keys: Sequence[Key]) -> list[Key]:
    return [key for key in keys if not instance.pods[key].unsupported]


def _unsupported(instance: Instance, keys: Sequence[Key]) -> Reason:
    asking = [key for key in keys if instance.pods[key].unsupported]
    fields = sorted({text for key in asking for text in instance.pods[key].unsupported})
    verb = "needs" if len(asking) == 1 else "need"
    return Reason(
        "Unsupported", f"{len(asking)} of {plural(len(keys), 'pod')} {verb} unsupported fields: {'; '.join(fields)}"
    )


def _within_budget(instance: Instance, keys: Sequence[Key]) -> list[Key]:
    return [key for key in keys if key not in instance.beyond_budget]


def _kept_off(instance: Instance, key: Key) -> bool:
    return _closed(instance, key) is not None or bool(instance.unoffered(instance.pods[key]))


def _kept_off_by(instance: Instance, keys: Sequence[Key], eligible: EligibleNodes) -> Reason:
    closed = any(_closed(instance, key) is not None for key in keys)
    if not closed or all(eligible.nowhere(instance.pods[key]) for key in keys):
        return _nowhere(instance, keys, eligible)
    return _queue_closed(instance, keys)


def _beyond_budget(instance: Instance, keys: Sequence[Key]) -> Reason:
    return Reason("NamespaceBudget", next(instance.beyond_budget[key] for key in keys if key in instance.beyond_budget))


def _nowhere(instance: Instance, keys: Sequence[Key], eligible: EligibleNodes) -> Reason:
    pods = [pod for key in keys if eligible.nowhere(pod := instance.pods[key])]
    alike = [pod for pod in pods if (pod.constraints, pod.requests) == (pods[0].constraints, pods[0].requests)]
    return eligible.reason(pods[0], len(alike))


def _closed(instance: Instance, key: Key) -> str | None:
    if "C11" in instance.policy.rules_off:
        return None
    return instance.closed_queue(instance.pods[key].queue, key.namespace)


def _queue_closed(instance: Instance, keys: Sequence[Key]) -> Reason:
    found = {name: key.namespace for key in keys if (name := _closed(instance, key)) is not None}
    closed = [name for name in sorted(found) if not instance.queues[name].open]
    if closed:
        return Reason("QueueClosed", f"Queue {', '.join(closed)} is closed and takes no new pods")
    name, namespace = min(found.items())
    named = ", ".join(sorted(instance.queues[name].namespaces or ())) or "no namespace"
    mark = f"annotation {NAMESPACES} of Queue {name}"
    return Reason("QueueClosed", f"{mark} names {named}: found a group of {namespace}, expected one of these")
