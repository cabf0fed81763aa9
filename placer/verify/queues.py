"""The rule about queues: C11."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from placer.instance import Instance, Pod
from placer.outcome import Outcome
from placer.placement import Violation
from placer.verify.words import count_of, excesses, requested

__all__ = ["pods_by_queue", "queue"]


def queue(outcome: Outcome) -> Iterator[Violation]:
    """C11: per queue q and resource r of its capability, the sum of requests(p, r) over the pods in q or in a
    queue below it is ≤ capability(q, r); a closed queue, or one below a closed queue, takes no new pods.

    Bound and terminating pods count. Only resources that a new pod requests can be violated. The amount is what exceeds
    the capability, in the resource's unit, or the number of new pods in a closed queue.
    """
    instance = outcome.instance
    new = pods_by_queue(instance, (instance.pods[key] for key in outcome.new))
    if not new:
        return
    before = pods_by_queue(instance, (pod for pod in instance.pods.values() if pod.state.on_node))
    for name, pods in sorted(new.items()):
        if not instance.queues[name].open:
            message = f"Queue {name} is closed and gets {count_of(len(pods), 'new pod')}"
            yield Violation("C11", (f"Queue {name}",), len(pods), message)
        held, added = requested(before.get(name, ())), requested(pods)
        for resource, excess, sums in excesses(held, added, instance.queues[name].capability):
            yield Violation("C11", (f"Queue {name}",), excess, f"Queue {name}: {resource} {sums}")


def pods_by_queue(instance: Instance, pods: Iterable[Pod]) -> dict[str, list[Pod]]:
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
