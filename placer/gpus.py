"""GPUs of pods and nodes: which resources they are, and how broken up the free ones are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from placer.outcome import Outcome
from placer.quantity import Resources

__all__ = ["SIZES", "Placeable", "gpus_in", "gpus_placed", "is_gpu", "placeable"]

_NOTHING = Resources()

#: GPUs of the pods that are asked for in :class:`Placeable`.
SIZES = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Placeable:
    """How broken up the free GPUs are.

    Parameters
    ----------
    size
        GPUs of a pod, k.
    pods
        How many more pods of k GPUs fit: the sum over nodes of floor(free / k). Only GPUs are looked at.
    at_best
        floor(F / k), where F is the sum of the free GPUs: as many would fit if they lay together.
    """

    size: int
    pods: int
    at_best: int


def is_gpu(resource: str) -> bool:
    """Whether a resource counts whole GPUs: ``nvidia.com/gpu``, ``amd.com/gpu``, any vendor's ``gpu``."""
    return resource.endswith("/gpu")


def gpus_in(amounts: Mapping[str, int]) -> int:
    """GPUs among some amounts, of whichever vendor."""
    return sum(amount for resource, amount in amounts.items() if is_gpu(resource))


def gpus_placed(outcome: Outcome) -> int:
    """GPUs that the newly placed pods request."""
    return sum(gpus_in(outcome.instance.pods[key].requests) for key in outcome.new)


def placeable(outcome: Outcome) -> tuple[Placeable, ...]:
    """How many more pods of 1, 2, 4 and 8 GPUs fit after a placement; empty where there are no GPUs.

    Of nodes that are ready and not cordoned; kinds of GPUs on one node are counted apart.
    """
    free = _free(outcome)
    if not free:
        return ()
    whole = sum(free)
    return tuple(Placeable(size, sum(each // size for each in free), whole // size) for size in SIZES)


def _free(outcome: Outcome) -> list[int]:
    """What is left after the placement, one number per node and kind of GPU."""
    instance, taken = outcome.instance, Counter[tuple[str, str]]()
    for name, pods in outcome.new_on.items():
        for pod in pods:
            for resource in filter(is_gpu, pod.requests):
                taken[name, resource] += pod.requests[resource]
    whole = (
        (name, resource, amount)
        for name, node in instance.nodes.items()
        if node.ready and not node.unschedulable
        for resource, amount in node.allocatable.items()
        if is_gpu(resource)
    )
    held = instance.held
    return [max(0, amount - held.get(name, _NOTHING)[gpu] - taken[name, gpu]) for name, gpu, amount in whole]
