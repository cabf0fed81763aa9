"""What a pod takes of its node: the Kubernetes formula (C2).

Per resource: the sum over app containers and sidecars (init containers with ``restartPolicy: Always``), or, if that is
more, the running maximum over init containers of the container and the sidecars started before it. Pod-level resources
then stand in for cpu, memory and hugepages, the overhead is added, and the pod itself counts as one of ``pods``.

Source: component-helpers ``resource/helpers.go`` (``PodRequests``, ``AggregateContainerRequests``,
``determineContainerReqs``); defaults of requests as in core/v1 ``defaults.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from placer.kube.base import Quantities
from placer.kube.pod import Container, ContainerStatus, PodSpec, PodStatus, ResourceRequirements
from placer.quantity import NANO, PODS, Resources

__all__ = ["container_requests", "is_sidecar", "pod_requests"]

Amounts = dict[str, int]


@dataclass(frozen=True, slots=True)
class _Given:
    """What the kubelet gave a bound pod: in-place resizes that the spec may be ahead of, or behind."""

    containers: Mapping[str, Amounts] = field(default_factory=dict)
    pod: Amounts = field(default_factory=dict)
    refused: bool = False

    def in_force(self, wanted: Mapping[str, int], given: Mapping[str, int] | None) -> Mapping[str, int]:
        """What counts of a request: the larger one while a resize is under way, what was given once it is refused."""
        if not given:
            return wanted
        return {**wanted, **given} if self.refused else _larger(dict(wanted), given)


_NOTHING_GIVEN = _Given()


def pod_requests(spec: PodSpec, status: PodStatus | None = None) -> Resources:
    """Sum up what a pod requests.

    Parameters
    ----------
    spec
        The pod's spec. A request left out is its limit, as the API server fills it in.
    status
        The status of a bound pod, which counts what the kubelet gave it; None for a pod without a node.

    Returns
    -------
    Resources
        Milli-cpu, bytes and counts, ``pods: 1`` included. Equal requests are one and the same object.
    """
    given = _given(status) if status is not None else _NOTHING_GIVEN
    if given is _NOTHING_GIVEN and (alone := _only_container(spec)) is not None:
        return _alone(frozenset(container_requests(alone.resources).items()))
    total = _containers(spec, given)
    _stand_in(total, spec.resources, given)
    _add(total, spec.overhead or {})
    total[PODS] = NANO
    return _vector(frozenset(total.items()))


def container_requests(resources: ResourceRequirements | None) -> Mapping[str, int]:
    """Requests of one container in nano-units, each one left out filled in from its limit."""
    if resources is None:
        return {}
    if not resources.limits:
        return resources.requests or {}
    return {**resources.limits, **(resources.requests or {})}


def is_sidecar(container: Container) -> bool:
    """Whether an init container keeps running beside the app containers."""
    return container.restart_policy == "Always"


def _only_container(spec: PodSpec) -> Container | None:
    """The container whose requests are the pod's, where there is nothing beside it; most pods are like that."""
    if spec.containers is None or len(spec.containers) != 1:
        return None
    more = spec.init_containers or spec.resources is not None or spec.overhead
    return None if more else spec.containers[0]


def _containers(spec: PodSpec, given: _Given) -> Amounts:
    """Requests of all containers: what runs together, or the start-up if that needs more."""
    running: Amounts = {}
    for container in spec.containers or ():
        _add(running, _running_requests(container, given))
    sidecars: Amounts = {}
    start: Amounts = {}
    for container in spec.init_containers or ():
        if is_sidecar(container):
            requests = _running_requests(container, given)
            _add(running, requests)
            _add(sidecars, requests)
            _larger(start, sidecars)
        else:
            alone = dict(sidecars)
            _add(alone, container_requests(container.resources))
            _larger(start, alone)
    return _larger(running, start)


def _running_requests(container: Container, given: _Given) -> Mapping[str, int]:
    """Requests of a container that stays, resizes included."""
    wanted = container_requests(container.resources)
    return given.in_force(wanted, given.containers.get(container.name)) if container.name is not None else wanted


def _stand_in(total: Amounts, resources: ResourceRequirements | None, given: _Given) -> None:
    """Put pod-level requests in place of the sums; a limit counts only where no container requests the resource."""
    if resources is None:
        return
    limits = {name: amount for name, amount in _pod_level(resources.limits).items() if name not in total}
    stated = limits | _pod_level(resources.requests)
    resized = {name: amount for name, amount in given.pod.items() if name in stated}
    total.update(given.in_force(stated, resized))


def _pod_level(amounts: Quantities | None) -> Amounts:
    """Those that count where they are stated for the pod as a whole."""
    return {
        name: amount
        for name, amount in (amounts or {}).items()
        if name in ("cpu", "memory") or name.startswith("hugepages-")
    }


def _given(status: PodStatus) -> _Given:
    """Read what the kubelet allocated and actuated."""
    statuses, pod = (*(status.container_statuses or ()), *(status.init_container_statuses or ())), _actual(status)
    return _told(status, statuses, pod) if statuses or pod else _NOTHING_GIVEN


def _told(status: PodStatus, statuses: tuple[ContainerStatus, ...], pod: Amounts) -> _Given:
    conditions = {(each.type, each.status, each.reason) for each in status.conditions or ()}
    refused = status.resize == "Infeasible" or ("PodResizePending", "True", "Infeasible") in conditions
    containers = {each.name: _actual(each) for each in statuses if each.name is not None}
    return _Given(containers, pod, refused)


def _actual(status: ContainerStatus | PodStatus) -> Amounts:
    """The larger of what was allocated and what was actuated."""
    return _larger(dict(status.allocated_resources or {}), (status.resources and status.resources.requests) or {})


def _add(total: Amounts, amounts: Mapping[str, int] | Quantities) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def _larger(amounts: Amounts, others: Mapping[str, int]) -> Amounts:
    """Raise each amount to that of ``others``; returns the dictionary that it changed."""
    for name, amount in others.items():
        if amount > amounts.get(name, -1):
            amounts[name] = amount
    return amounts


@lru_cache(maxsize=65536)
def _alone(nano: frozenset[tuple[str, int]]) -> Resources:
    """The vector of a pod of one container with such requests."""
    return _vector(frozenset({**dict(nano), PODS: NANO}.items()))


@lru_cache(maxsize=65536)
def _vector(nano: frozenset[tuple[str, int]]) -> Resources:
    """Round sums to their units; one object per distinct vector."""
    return Resources.from_nano(dict(nano))
