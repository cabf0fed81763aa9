"""Findings about pods that the API server refuses as they are written: offline they are placed all the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from placer.instance.findings import Findings, counted
from placer.kube.pod import PodManifest, ResourceRequirements
from placer.quantity import format_amount, from_nano

__all__ = ["note_inadmissible"]


def note_inadmissible(pods: Iterable[PodManifest], findings: Findings) -> None:
    """Note requests that do not go with their limits, once for each container of equal pods.

    Parameters
    ----------
    pods
        The pending pods.
    findings
        Takes the findings.
    """
    found: dict[tuple[str, str, int, int], set[str]] = {}
    for pod in pods:
        for where, resources in _resources(pod):
            for name, asked, limit in _contradictions(resources):
                found.setdefault((where, name, asked, limit), set()).add(f"Pod {pod.namespace}/{pod.name}")
    for (where, name, asked, limit), subjects in found.items():
        said, bound = (format_amount(name, from_nano(name, amount)) for amount in (asked, limit))
        wrong = "above" if asked > limit else "below"
        rule = "" if asked > limit else f", and {name} cannot be overcommitted"
        message = f"{where}{counted(subjects)} requests {name} {said}, {wrong} its limit {bound}{rule}"
        findings.add("InvalidObject", min(subjects), f"{message}; the API server refuses such a pod")


def _resources(pod: PodManifest) -> Iterator[tuple[str, ResourceRequirements]]:
    """What is asked and allowed, each with the words that say by whom."""
    for container in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ())):
        if container.resources is not None and container.resources.requests and container.resources.limits:
            yield f"container {container.name or ''} of ", container.resources
    if pod.spec.resources is not None:
        yield "", pod.spec.resources


def _contradictions(resources: ResourceRequirements) -> Iterator[tuple[str, int, int]]:
    requests, limits = resources.requests or {}, resources.limits or {}
    for name, asked in requests.items():
        limit = limits.get(name)
        if limit is not None and (asked > limit or (asked < limit and not _overcommits(name))):
            yield name, asked, limit


def _overcommits(name: str) -> bool:
    """Whether a request may be below its limit: native resources but huge pages (``IsOvercommitAllowed``)."""
    domain, slash, _ = name.partition("/")
    return (not slash or domain.endswith("kubernetes.io")) and not name.startswith("hugepages-")
