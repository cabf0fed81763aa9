"""Words and sums that several rules share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from placer.base.quantity import format_amount
from placer.problem import Instance, Key, Pod


def pod_name(key: Key) -> str:
    """Name of a pod in a violation."""
    return f"Pod {key}"


def pod_subjects(instance: Instance, pod: Pod) -> Iterator[str]:
    """Names by which violations of rules mean a pod, among others."""
    yield from (pod_name(pod.key), f"Node {pod.node}", f"AppGroup {pod.app_group}", str(pod.group))
    yield from (f"Queue {name}" for name in instance.queue_path(pod.queue))
    yield from (unit.name for unit in pod.neighbours.units)


def count_of(number: int, thing: str) -> str:
    """A number of things, in words."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def bound_and_new(bound: int, new: int) -> str:
    """Some bound and some new pods, in words."""
    return f"{bound} bound and {count_of(new, 'new pod')}" if bound else count_of(new, "new pod")


def excesses(
    before: Mapping[str, int], added: Mapping[str, int], most: Mapping[str, int]
) -> Iterator[tuple[str, int, str]]:
    """Limits that added amounts exceed: name, excess, the sums as text."""
    for resource, limit in sorted(most.items()):
        held, fresh = before[resource], added[resource]
        excess = held + fresh - limit
        if fresh > 0 and excess > 0:
            total, old, new, room, over = (
                format_amount(resource, amount) for amount in (held + fresh, held, fresh, limit, excess)
            )
            yield resource, excess, f"{total} requested ({old} before, {new} new) of {room}: {over} too much"
