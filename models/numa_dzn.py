"""NUMA zones of an instance, and what containers ask of them, as data of ``numa.mzn``.

Amounts of a resource are counted in the greatest common divisor of all that are written of it, those of zones included:
rooms of several zones are added up, so none may be rounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import gcd

from minizinc_text import names, numbers, sets, table

from placer.base.quantity import CPU, Resources
from placer.problem import Instance, Pod
from placer.problem.numa import HUGE_PAGES, UNKNOWN, NumaContainer, NumaNode, Stage, is_device

__all__ = ["numa_lines"]

STAGES = {Stage.INIT: "init", Stage.SIDECAR: "sidecar", Stage.APP: "app"}
#: The kubelet pins whole cores.
CORE = 1000


def numa_lines(instance: Instance, pods: Sequence[Pod], node: Mapping[str, int]) -> Iterator[str]:
    """Write the section.

    Parameters
    ----------
    instance
        Any instance.
    pods
        The pending ones, in the order of their numbers.
    node
        Number of each node.
    """
    strict = _strict(instance)
    zones = [(name, zone) for name, each in strict.items() for zone in each.zones]
    containers = [(pod, each) for pod in pods if pod.numa is not None for each in pod.numa.containers]
    overheads = [pod.numa.overhead if pod.numa is not None else Resources() for pod in pods]
    aligned = sorted({name for each in strict.values() for name in each.lists if _alignable(name)})
    amounts = [*(each.requests for _, each in containers), *overheads]
    amounts += [part for _, zone in zones for part in (zone.capacity, zone.available)]
    unit = {name: gcd(CORE if name == CPU else 0, *(each[name] for each in amounts)) or 1 for name in aligned}

    def counted(parts: Iterable[Resources]) -> list[list[int]]:
        return [[part[name] // unit[name] for name in aligned] for part in parts]

    yield f"aligned = {len(aligned)};"
    yield names("aligned_name", [f"{name} in units of {unit[name]}" for name in aligned])
    yield numbers("device", map(is_device, aligned))
    yield numbers("alone", (name == CPU or is_device(name) for name in aligned))
    yield numbers("whole_piece", (CORE // unit[name] if name == CPU else 1 for name in aligned))
    yield f"zones = {len(zones)};"
    labels = [f"{zone.name} of {name}" for name, zone in zones]
    yield names("zone_name", labels)
    yield numbers("zone_node", (node[name] for name, _ in zones))
    yield sets("zone_lists", ([at for at, name in enumerate(aligned, 1) if name in zone.lists] for _, zone in zones))
    yield table("zone_capacity", counted(zone.capacity for _, zone in zones), labels, len(aligned))
    yield table("zone_room", counted(zone.available for _, zone in zones), labels, len(aligned))
    found = [strict.get(name) for name in instance.nodes]
    yield numbers("single", (each is not None and each.policy == "single-numa-node" for each in found))
    yield numbers("known_policy", (each is None or each.policy != UNKNOWN for each in found))
    yield numbers("scope_pod", (each is not None and each.scope == "pod" for each in found))
    number = {pod.key: number for number, pod in enumerate(pods, 1)}
    yield f"containers = {len(containers)};"
    yield numbers("container_pod", (number[pod.key] for pod, _ in containers))
    yield f"stage = [{', '.join(STAGES[each.stage] for _, each in containers)}];"
    yield table("asks", counted(each.requests for _, each in containers), _labels(containers), len(aligned))
    yield numbers("pinned", (pod.numa is not None and pod.numa.pinned for pod in pods))
    yield table("overhead", counted(overheads), [pod.key for pod in pods], len(aligned))


def _strict(instance: Instance) -> dict[str, NumaNode]:
    """Nodes whose kubelet refuses pods; none where the policy switches C10 off."""
    if "C10" in instance.policy.rules_off:
        return {}
    found = {name: node.numa for name, node in instance.nodes.items() if node.numa is not None}
    return {name: node for name, node in found.items() if node.strict}


def _alignable(resource: str) -> bool:
    return resource in (CPU, "memory") or resource.startswith(HUGE_PAGES) or is_device(resource)


def _labels(containers: Iterable[tuple[Pod, NumaContainer]]) -> list[str]:
    return [f"{each.name} of {pod.key}" for pod, each in containers]
