"""A pod's request of its node, by the Kubernetes formula (C2).

A bound pod that is resized counts the largest of its spec, the allocated and the actuated amounts. Source:
component-helpers ``resource/helpers.go``; core/v1 ``defaults.go``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from placer.base.quantity import NANO, PODS, Resources
from placer.kube.base import Quantities
from placer.kube.pod import Container, ContainerStatus, PodSpec, PodStatus, ResourceRequirements

Amounts = dict[str, int]
_POD_LEVEL = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class _Given:
    """Amounts that the kubelet gave a bound pod, since in-place resizes may be ahead of the spec, or behind."""

    allocated: Mapping[str, Mapping[str, int]]
    actuated: Mapping[str, Mapping[str, int]]
    pod: tuple[Mapping[str, int], ...]
    refused: bool

    def running(self, spec: PodSpec) -> Amounts:
        sums = [_containers(spec, each) for each in (self.allocated, self.actuated)]
        if not self.refused:
            sums.append(_containers(spec))
        return _largest(sums)

    def stated(self, wanted: Amounts) -> Amounts:
        given = [{**wanted, **{name: amount for name, amount in each.items() if name in wanted}} for each in self.pod]
        return _largest(given if self.refused and given else [wanted, *given])


def pod_requests(spec: PodSpec, status: PodStatus | None = None) -> Resources:
    """Sum up the requests of a pod, in milli-cpu, bytes and counts, ``pods: 1`` included; equal ones share an
    object.
    """
    given = _given(spec, status) if status is not None else None
    if given is None and (alone := _only_container(spec)) is not None:
        return _alone(frozenset(container_requests(alone.resources).items()))
    total = _containers(spec) if given is None else given.running(spec)
    stated = _pod_level(spec.resources, total)
    total.update(stated if given is None else given.stated(stated))
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
    """Whether an init container keeps running next to the app containers."""
    return container.restart_policy == "Always"


def _only_container(spec: PodSpec) -> Container | None:
    if spec.containers is None or len(spec.containers) != 1:
        return None
    more = spec.init_containers or spec.resources is not None or spec.overhead
    return None if more else spec.containers[0]


def _containers(spec: PodSpec, given: Mapping[str, Mapping[str, int]] | None = None) -> Amounts:
    given = given or {}
    running: Amounts = {}
    for container in spec.containers or ():
        _add(running, _requests(container, given))
    sidecars: Amounts = {}
    start: Amounts = {}
    for container in spec.init_containers or ():
        requests = _requests(container, given)
        if is_sidecar(container):
            _add(running, requests)
            _add(sidecars, requests)
            _larger(start, sidecars)
        else:
            alone = dict(sidecars)
            _add(alone, requests)
            _larger(start, alone)
    return _larger(running, start)


def _requests(container: Container, given: Mapping[str, Mapping[str, int]]) -> Mapping[str, int]:
    wanted = container_requests(container.resources)
    there = given.get(container.name) if container.name is not None else None
    return {**wanted, **there} if there else wanted


def _pod_level(resources: ResourceRequirements | None, total: Amounts) -> Amounts:
    """A limit counts only where no container requests the resource."""
    if resources is None:
        return {}
    limits = {name: amount for name, amount in (resources.limits or {}).items() if name not in total}
    stated = limits | (resources.requests or {})
    return {name: amount for name, amount in stated.items() if name.startswith("hugepages-") or name in _POD_LEVEL}


def _statuses(status: PodStatus) -> dict[str, ContainerStatus]:
    every = (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    return {each.name: each for each in every if each.name is not None}


def _given(spec: PodSpec, status: PodStatus) -> _Given | None:
    statuses = _statuses(status)
    allocated = {name: _allocated(each) for name, each in statuses.items()}
    actuated = {name: _actuated(each) for name, each in statuses.items()}
    pod = [each for each in (_allocated(status), _actuated(status)) if each]
    if not any(actuated.values()) and not pod:
        return None
    over = spec.overhead or {}
    without = tuple({name: amount - over.get(name, 0) for name, amount in each.items()} for each in pod)
    return _Given(allocated, actuated, without, _refused(status))


def _refused(status: PodStatus) -> bool:
    conditions = {(each.type, each.status, each.reason) for each in status.conditions or ()}
    return status.resize == "Infeasible" or ("PodResizePending", "True", "Infeasible") in conditions


def _allocated(status: ContainerStatus | PodStatus) -> Mapping[str, int]:
    return status.allocated_resources or {}


def _actuated(status: ContainerStatus | PodStatus) -> Mapping[str, int]:
    return {**_allocated(status), **((status.resources and status.resources.requests) or {})}


def _add(total: Amounts, amounts: Mapping[str, int] | Quantities) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def _larger(amounts: Amounts, others: Mapping[str, int]) -> Amounts:
    for name, amount in others.items():
        if amount > amounts.get(name, -1):
            amounts[name] = amount
    return amounts


def _largest(vectors: Sequence[Amounts]) -> Amounts:
    found: Amounts = {}
    for each in vectors:
        _larger(found, each)
    return found


@lru_cache(maxsize=65536)
def _alone(nano: frozenset[tuple[str, int]]) -> Resources:
    return _vector(frozenset({**dict(nano), PODS: NANO}.items()))


@lru_cache(maxsize=65536)
def _vector(nano: frozenset[tuple[str, int]]) -> Resources:
    return Resources.from_nano(dict(nano))
