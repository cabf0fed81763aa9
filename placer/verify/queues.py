"""The rule about queues: C11."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from placer.instance import Instance, Pod, Queue
from placer.outcome import Outcome
from placer.placement import Violation
from placer.verify.words import count_of, excesses, requested


def queue(outcome: Outcome) -> Iterator[Violation]:
    """C11: per queue q and resource r of its capability, the sum of requests(p, r) over the pods in q or below is ≤
    capability(q, r); a closed queue takes no new pods, one with namespaces only theirs. The amount is the excess, or
    the number of new pods.
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
        yield from _of_others(instance.queues[name], pods)
        held, added = requested(before.get(name, ())), requested(pods)
        for resource, excess, sums in excesses(held, added, instance.queues[name].capability):
            yield Violation("C11", (f"Queue {name}",), excess, f"Queue {name}: {resource} {sums}")


def _of_others(queue_read: Queue, pods: Iterable[Pod]) -> Iterator[Violation]:
    takes = queue_read.namespaces
    others = Counter(pod.namespace for pod in pods if takes is not None and pod.namespace not in takes)
    for namespace, count in sorted(others.items()) if queue_read.open else ():
        whose = ", ".join(sorted(takes or ())) or "no namespace"
        gets = f"gets {count_of(count, 'new pod')} of {namespace}"
        message = f"Queue {queue_read.name} takes pods of {whose} only and {gets}"
        yield Violation("C11", (f"Queue {queue_read.name}",), count, message)


def pods_by_queue(instance: Instance, pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """Known queue to the pods that count against it."""
    own: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.queue is not None:
            own[pod.queue].append(pod)
    found: dict[str, list[Pod]] = defaultdict(list)
    for queue_name, members in own.items():
        for name in instance.queue_path(queue_name):
            found[name] += members
    return found
