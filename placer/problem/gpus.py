"""GPUs of pods and nodes, and how broken up the free ones are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import takewhile

from placer.base.quantity import Resources
from placer.problem.numa import NumaContainer, NumaDemand, NumaNode, NumaZone, Qos, Stage, TopologyManager
from placer.problem.outcome import Outcome

_NOTHING = Resources()
#: A GPU of whatever vendor.
_GPU = "nvidia.com/gpu"

#: GPUs of the pods that are asked for in :class:`Placeable`.
SIZES = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Placeable:
    """How broken up the free GPUs are.

    ``pods``: how many more pods of ``size`` k GPUs fit: the sum over nodes of floor(free / k), or of the number that
    kubelets admit into the zones left (C10). ``at_best``: floor(F / k), where F is the sum of the free GPUs.
    """

    size: int
    pods: int
    at_best: int


def is_gpu(resource: str) -> bool:
    """Whether a resource counts whole GPUs, of any vendor."""
    return resource.endswith("/gpu")


def gpus_in(amounts: Mapping[str, int]) -> int:
    """GPUs among some amounts, of whichever vendor."""
    return sum(amount for resource, amount in amounts.items() if is_gpu(resource))


def gpus_placed(outcome: Outcome) -> int:
    """GPUs that the newly placed pods request."""
    return sum(gpus_in(outcome.instance.pods[key].requests) for key in outcome.new)


def placeable(outcome: Outcome) -> tuple[Placeable, ...]:
    """How many more pods of 1, 2, 4 and 8 GPUs fit on usable nodes after a placement, kinds counted apart."""
    free = list(_free(outcome))
    if not free:
        return ()
    whole = sum(amount for amount, _ in free)
    zoned = cache(_admitted)
    return tuple(
        Placeable(
            size,
            sum(amount // size if zones is None else zoned(zones, amount, size) for amount, zones in free),
            whole // size,
        )
        for size in SIZES
    )


def _free(outcome: Outcome) -> Iterator[tuple[int, NumaNode | None]]:
    instance, taken = outcome.instance, _taken(outcome)
    after, held = outcome.nodes_after, instance.held
    for name, node in instance.nodes.items():
        numa = after[name].numa if name in instance.aligning_nodes else None
        for gpu in filter(is_gpu, node.allocatable) if node.ready and not node.unschedulable else ():
            left = max(0, node.allocatable[gpu] - held.get(name, _NOTHING)[gpu] - taken[name, gpu])
            yield left, None if numa is None else _only(numa, gpu)


def _taken(outcome: Outcome) -> Counter[tuple[str, str]]:
    taken: Counter[tuple[str, str]] = Counter()
    for name, pods in outcome.new_on.items():
        for pod in pods:
            for resource in filter(is_gpu, pod.requests):
                taken[name, resource] += pod.requests[resource]
    return taken


def _only(node: NumaNode, gpu: str) -> NumaNode | None:
    if gpu not in node.lists:
        return None
    zones = []
    for zone in node.zones:
        whole, left = (Resources({_GPU: each[gpu]}) for each in (zone.capacity, zone.available))
        zones.append(NumaZone(zone.id, "", whole, left, _NOTHING, frozenset({_GPU})))
    return NumaNode(node.policy, node.scope, tuple(zones))


def _admitted(node: NumaNode, free: int, size: int) -> int:
    manager = TopologyManager(node)
    pod = NumaDemand(Qos.BURSTABLE, (NumaContainer("", Stage.APP, Resources({_GPU: size})),))
    return sum(1 for _ in takewhile(lambda _: not manager.admit(pod).refusal, range(free // size)))
