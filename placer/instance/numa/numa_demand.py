"""A pod's demands on the zones of its node (C10).

Source: Kubernetes ``pkg/apis/core/v1/helper/qos``; ``pkg/kubelet/cm/{cpumanager,memorymanager}``.
"""

from __future__ import annotations

from collections.abc import Iterator

from placer.instance.numa.numa_values import HUGE_PAGES, NumaContainer, NumaDemand, Qos, Stage, is_device
from placer.instance.requests import container_requests, is_sidecar
from placer.kube.pod import Container, PodSpec, ResourceRequirements
from placer.quantity import Resources

_QOS_RESOURCES = ("cpu", "memory")


class DemandPool:
    """Reads demands; pods of one template share one object."""

    def __init__(self) -> None:
        self._by_spec: dict[object, NumaDemand | None] = {}

    def of(self, spec: PodSpec) -> NumaDemand | None:
        """Demands on zones; None where the pod is not Guaranteed and asks for no device."""
        written = _written(spec)
        if written not in self._by_spec:
            self._by_spec[written] = _demand(spec)
        return self._by_spec[written]


def qos_class(spec: PodSpec) -> Qos:
    """Quality of service class of a pod."""
    stated = [spec.resources] if _pod_level(spec) else [each.resources for each, _ in _containers(spec)]
    parts = [part or {} for each in stated if each is not None for part in (each.requests, each.limits)]
    if not any(part.get(name) for part in parts for name in _QOS_RESOURCES):
        return Qos.BEST_EFFORT
    return Qos.GUARANTEED if all(map(_guaranteed, stated)) else Qos.BURSTABLE


def _guaranteed(resources: ResourceRequirements | None) -> bool:
    limits = (resources.limits if resources is not None else None) or {}
    requests = container_requests(resources)
    return all(limits.get(name) and limits[name] == requests.get(name) for name in _QOS_RESOURCES)


def _containers(spec: PodSpec) -> Iterator[tuple[Container, Stage]]:
    for each in spec.init_containers or ():
        yield each, Stage.SIDECAR if is_sidecar(each) else Stage.INIT
    for each in spec.containers or ():
        yield each, Stage.APP


def _pod_level(spec: PodSpec) -> bool:
    if spec.resources is None:
        return False
    parts = (spec.resources.requests or {}, spec.resources.limits or {})
    return any(name in _QOS_RESOURCES or name.startswith(HUGE_PAGES) for part in parts for name in part)


def _demand(spec: PodSpec) -> NumaDemand | None:
    containers = tuple(NumaContainer(each.name or "", stage, _requests(each)) for each, stage in _containers(spec))
    demand = NumaDemand(qos_class(spec), containers, Resources.from_nano(spec.overhead or {}), _pod_level(spec))
    devices = any(is_device(name) for each in demand.containers for name in each.requests)
    return demand if demand.qos is Qos.GUARANTEED or devices else None


def _requests(container: Container) -> Resources:
    return Resources.from_nano(dict(container_requests(container.resources)))


def _written(spec: PodSpec) -> object:
    containers = tuple((each.name, stage, _stated(each.resources)) for each, stage in _containers(spec))
    return containers, _stated(spec.resources), frozenset((spec.overhead or {}).items())


def _stated(resources: ResourceRequirements | None) -> object:
    if resources is None:
        return None
    return frozenset((resources.requests or {}).items()), frozenset((resources.limits or {}).items())
