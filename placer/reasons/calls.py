"""What the calls of a group allow, in words: which dependencies concern it, and which nodes they leave."""

from __future__ import annotations

from collections.abc import Iterator

from placer.dense import Dense
from placer.instance import Dependency, Instance, Key, Pod
from placer.reasons.words import plural

__all__ = ["calls_text"]

#: How many dependencies a message names.
NAMED = 3


def calls_text(instance: Instance, dense: Dense, group: int, code: str) -> str:
    """Name the dependencies that a group breaks with everything else kept.

    Parameters
    ----------
    instance
        By name.
    dense
        Its arrays.
    group
        Index of the group.
    code
        ``NetworkCost`` or ``Bandwidth``; of any other reason nothing is said.

    Examples
    --------
    ``web calls db at a cost of 5 at most, 2/3 nodes are near enough to 1 running pod of db``
    """
    if code not in ("NetworkCost", "Bandwidth"):
        return ""
    texts = []
    for pod, each in _calls(instance, dense, group):
        if code == "NetworkCost":
            texts.append(f"{each.origin} calls {each.destination} at a cost of {each.max_network_cost} at most")
            texts[-1] += _near(instance, pod, each)
        elif each.min_bandwidth:
            texts.append(f"{each.origin} calls {each.destination} with {each.min_bandwidth} bit/s a pair of pods")
    texts = list(dict.fromkeys(texts))
    more = len(texts) - NAMED
    return "; ".join(texts[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _calls(instance: Instance, dense: Dense, group: int) -> Iterator[tuple[Pod, Dependency]]:
    """Dependencies at an end of which is a pod of the group, with one such pod."""
    pods: dict[tuple[Key | None, str | None], Pod] = {}
    for index in dense.groups[group].classes:
        if index in dense.workload_of:
            pod = instance.pods[dense.classes[index].pods[0]]
            pods.setdefault((pod.app_group, pod.workload), pod)
    for pod in pods.values():
        app = instance.app_groups[pod.app_group] if pod.app_group else None
        for each in app.dependencies if app else ():
            if pod.workload in (each.origin, each.destination):
                yield pod, each


def _near(instance: Instance, pod: Pod, each: Dependency) -> str:
    """How many nodes are near enough to every pod of the other end that runs."""
    network, app = instance.network, pod.app_group
    calling = pod.workload == each.origin
    other = each.destination if calling else each.origin
    if network is None or app is None or (app, other) not in instance.bound_spreads:
        return ""
    running = instance.bound_spreads[app, other].areas
    near = sum(
        all(network.near(*((area, there) if calling else (there, area)), each.max_network_cost) for there in running)
        for area in map(network.area, instance.nodes)
    )
    return (
        f", {near}/{len(instance.nodes)} nodes are near enough to {plural(running.total(), 'running pod')} of {other}"
    )
