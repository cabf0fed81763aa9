"""GPUs of pods and nodes: which resources they are, and how broken up the free ones are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from placer.outcome import Outcome

__all__ = ["SIZES", "Placeable", "gpus_in", "is_gpu", "placeable"]

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
            taken.update({(name, resource): amount for resource, amount in pod.requests.items() if is_gpu(resource)})
    return [
        max(0, amount - (instance.held[name][resource] if name in instance.held else 0) - taken[name, resource])
        for name, node in instance.nodes.items()
        if node.ready and not node.unschedulable
        for resource, amount in node.allocatable.items()
        if is_gpu(resource)
    ]
