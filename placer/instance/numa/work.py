"""What of a pod is aligned at once: each container, or the pod as a whole (C10).

With scope container every container is aligned in turn, init containers first; a one-shot one must fit and takes
nothing. With scope pod the pod must fit at its worst moment, by the Kubernetes request formula, and takes what runs to
the end: its containers and sidecars. The overhead counts with scope pod, for resources that a container has aligned.

Source: Kubernetes ``pkg/kubelet/cm/cpumanager/policy_static.go`` (whole cores, init containers, sidecars).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from placer.instance.numa.model import NumaDemand, Stage, is_device
from placer.quantity import CPU, Resources

__all__ = ["Work", "works_of"]


class Work(NamedTuple):
    """Something that is aligned at once.

    Parameters
    ----------
    label
        Who asks, in words.
    need
        What must be there, by resource; sorted, never empty.
    take
        What stays taken of it.
    """

    label: str
    need: Mapping[str, int]
    take: Mapping[str, int]


def works_of(demand: NumaDemand, scope: str, resources: Sequence[str]) -> Iterator[Work]:
    """What a kubelet aligns of a pod, in order.

    Parameters
    ----------
    demand
        The pod.
    scope
        ``container`` or ``pod``.
    resources
        What the kubelet's zones list and it aligns, sorted.
    """
    asked = [(each, _aligned(demand, each.requests, resources)) for each in demand.containers]
    if scope == "pod":
        need, take = _whole([(each.stage, amounts) for each, amounts in asked])
        if need:
            over = demand.overhead
            yield Work(
                "the pod",
                {name: need[name] + over[name] for name in sorted(need)},
                {name: take.get(name, 0) + over[name] for name in need},
            )
        return
    for each, amounts in asked:
        if amounts:
            label = f"{each.stage.value} {each.name}".strip()
            yield Work(label, amounts, {} if each.stage is Stage.INIT else amounts)


def _aligned(demand: NumaDemand, requests: Resources, resources: Sequence[str]) -> dict[str, int]:
    """Of a container's requests those that are aligned: the kubelet pins whole cores only."""
    return {
        name: requests[name]
        for name in resources
        if requests[name] and (is_device(name) or (demand.pinned and (name != CPU or requests[name] % 1000 == 0)))
    }


def _whole(asked: Sequence[tuple[Stage, Mapping[str, int]]]) -> tuple[dict[str, int], dict[str, int]]:
    """What a pod needs at its worst moment, and what it takes once it runs."""
    need: dict[str, int] = {}
    take: dict[str, int] = {}
    for stage, amounts in asked:
        for name, amount in amounts.items():
            before = take.get(name, 0)
            need[name] = max(need.get(name, 0), before + amount)
            if stage is not Stage.INIT:
                take[name] = before + amount
    return need, take
