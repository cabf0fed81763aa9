"""Findings about requests that the API server refuses as they are written, or that hardly mean what they say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from placer.codes import FindingCode
from placer.instance.findings import Findings, counted
from placer.kube.pod import PodManifest, ResourceRequirements
from placer.quantity import NANO, format_amount, from_nano

__all__ = ["note_inadmissible"]

_MILLI = NANO // 1000
_REFUSED = "; the API server refuses such a pod"
_BYTES = ("memory", "ephemeral-storage", "hugepages-")

#: Code, and what is wrong.
_Told = tuple[FindingCode, str]


def note_inadmissible(pods: Iterable[PodManifest], findings: Findings) -> None:
    """Note requests that cannot be as meant, once for each container of equal pods.

    Parameters
    ----------
    pods
        The pending pods.
    findings
        Takes the findings.
    """
    found: dict[tuple[str, _Told], set[str]] = {}
    for pod in pods:
        for where, resources in _resources(pod):
            for told in _wrong(resources):
                found.setdefault((where, told), set()).add(f"Pod {pod.namespace}/{pod.name}")
    for (where, (code, what)), subjects in found.items():
        findings.add(code, min(subjects), f"{where}{counted(subjects)} {what}")


def _resources(pod: PodManifest) -> Iterator[tuple[str, ResourceRequirements]]:
    """What is asked and allowed, each with the words that say by whom."""
    for container in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ())):
        if container.resources is not None:
            yield f"container {container.name or ''} of ", container.resources
    if pod.spec.resources is not None:
        yield "", pod.spec.resources


def _wrong(resources: ResourceRequirements) -> Iterator[_Told]:
    requests, limits = resources.requests or {}, resources.limits or {}
    for name, asked in requests.items():
        limit = limits.get(name)
        if limit is not None and limit != asked:
            yield from _beside(name, asked, limit)
    for name, amount in {**limits, **requests}.items():
        if amount % NANO and name != "cpu":
            yield from _in_parts(name, amount)


def _beside(name: str, asked: int, limit: int) -> Iterator[_Told]:
    """What is wrong with a request that differs from its limit."""
    said, bound = (format_amount(name, from_nano(name, amount)) for amount in (asked, limit))
    if asked > limit:
        yield "InvalidObject", f"requests {name} {said}, above its limit {bound}{_REFUSED}"
    elif not _overcommits(name):
        what = f"requests {name} {said}, below its limit {bound}, and {name} cannot be overcommitted"
        yield "InvalidObject", f"{what}{_REFUSED}"


def _in_parts(name: str, amount: int) -> Iterator[_Told]:
    """What is wrong with an amount that is no whole number, of what is counted in whole ones."""
    if name.startswith(_BYTES):
        said = f"{amount // _MILLI}m"
        yield "FractionalBytes", f"asks for {name} {said}: m is a thousandth of a byte, M a million bytes, Mi 2^20"
    elif not _overcommits(name):
        yield "InvalidObject", f"asks for {name} {amount // _MILLI}m, which is no whole number{_REFUSED}"


def _overcommits(name: str) -> bool:
    """Whether a request may be below its limit: native resources but huge pages (``IsOvercommitAllowed``)."""
    domain, slash, _ = name.partition("/")
    return (not slash or domain.endswith("kubernetes.io")) and not name.startswith("hugepages-")
