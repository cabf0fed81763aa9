"""What a pod asks of the zones of its node, read from its spec (C10).

Source: Kubernetes ``pkg/apis/core/v1/helper/qos`` for the QoS class (cpu and memory decide, of every container and init
container); ``pkg/kubelet/cm/{cpumanager,memorymanager}``, which leave pods with pod-level resources alone while the
feature gate PodLevelResourceManagers is off, as it is by default.
"""

from __future__ import annotations

from collections.abc import Iterable

from placer.instance.numa.numa_values import HUGE_PAGES, NumaContainer, NumaDemand, Qos, Stage, is_device
from placer.instance.requests import container_requests, is_sidecar
from placer.kube.pod import Container, PodSpec, ResourceRequirements
from placer.quantity import Resources

__all__ = ["DemandPool", "qos_class"]

_QOS_RESOURCES = ("cpu", "memory")


class DemandPool:
    """Reads demands; pods of one template share one object."""

    def __init__(self) -> None:
        self._by_spec: dict[object, NumaDemand | None] = {}

    def of(self, spec: PodSpec) -> NumaDemand | None:
        """Read what a pod asks of zones; None where it is not Guaranteed and asks for no device."""
        written = _written(spec)
        if written not in self._by_spec:
            self._by_spec[written] = _demand(spec)
        return self._by_spec[written]


def qos_class(spec: PodSpec) -> Qos:
    """Quality of service class of a pod.

    Guaranteed: every container has limits of cpu and memory above 0, and requests as much; with pod-level resources the
    pod itself. BestEffort: nothing of either is requested or limited.
    """
    stated = [spec.resources] if _pod_level(spec) else [each.resources for each in _containers(spec)]
    if not any(_has_qos_resource(each) for each in stated):
        return Qos.BEST_EFFORT
    return Qos.GUARANTEED if all(map(_guaranteed, stated)) else Qos.BURSTABLE


def _has_qos_resource(resources: ResourceRequirements | None) -> bool:
    if resources is None:
        return False
    parts = (resources.requests or {}, resources.limits or {})
    return any(part.get(name) for part in parts for name in _QOS_RESOURCES)


def _guaranteed(resources: ResourceRequirements | None) -> bool:
    limits = (resources.limits if resources is not None else None) or {}
    requests = container_requests(resources)
    return all(limits.get(name) and limits[name] == requests.get(name) for name in _QOS_RESOURCES)


def _containers(spec: PodSpec) -> Iterable[Container]:
    """All containers in the order of admission."""
    return (*(spec.init_containers or ()), *(spec.containers or ()))


def _pod_level(spec: PodSpec) -> bool:
    if spec.resources is None:
        return False
    parts = (spec.resources.requests or {}, spec.resources.limits or {})
    return any(name in _QOS_RESOURCES or name.startswith(HUGE_PAGES) for part in parts for name in part)


def _demand(spec: PodSpec) -> NumaDemand | None:
    inits = [
        NumaContainer(each.name or "", Stage.SIDECAR if is_sidecar(each) else Stage.INIT, _requests(each))
        for each in spec.init_containers or ()
    ]
    apps = [NumaContainer(each.name or "", Stage.APP, _requests(each)) for each in spec.containers or ()]
    overhead = Resources.from_nano(spec.overhead or {})
    demand = NumaDemand(qos_class(spec), (*inits, *apps), overhead, _pod_level(spec))
    devices = any(is_device(name) for each in demand.containers for name in each.requests)
    return demand if demand.qos is Qos.GUARANTEED or devices else None


def _requests(container: Container) -> Resources:
    return Resources.from_nano(dict(container_requests(container.resources)))


def _written(spec: PodSpec) -> object:
    """Everything that the demand is made of, hashable."""
    inits = tuple((each.name, is_sidecar(each), _stated(each.resources)) for each in spec.init_containers or ())
    apps = tuple((each.name, _stated(each.resources)) for each in spec.containers or ())
    return inits, apps, _stated(spec.resources), frozenset((spec.overhead or {}).items())


def _stated(resources: ResourceRequirements | None) -> object:
    if resources is None:
        return None
    return frozenset((resources.requests or {}).items()), frozenset((resources.limits or {}).items())
