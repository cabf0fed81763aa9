"""What a pod asks for that is not modelled (C4): such a pod is never bound, and the fields that said so are reported.

Each item leaves this list once it is modelled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from placer.instance.anti_affinity import StandingAntiAffinity
from placer.instance.volumes import Volumes
from placer.kube.pod import Pod, PodAffinity

__all__ = ["Refusals"]


@dataclass(frozen=True, slots=True)
class Refusals:
    """Everything that can make a pending pod one that is never bound.

    Parameters
    ----------
    volumes
        Claims, bound and not.
    anti_affinity
        Required anti-affinity of the pods that have a node.
    """

    volumes: Volumes
    anti_affinity: StandingAntiAffinity

    def of(self, pod: Pod) -> tuple[str, ...]:
        """List what keeps a pending pod from being bound at all, as ``field: what``; empty where nothing does."""
        return *_own(pod), *self.volumes.refusals(pod), *self.anti_affinity.refusals(pod)


def _own(pod: Pod) -> Iterator[str]:
    """Fields of the pod's own spec."""
    spec = pod.spec
    if spec.affinity is not None:
        yield from _terms("spec.affinity.podAffinity", spec.affinity.pod_affinity, "affinity")
        yield from _terms("spec.affinity.podAntiAffinity", spec.affinity.pod_anti_affinity, "anti-affinity")
    for index, spread in enumerate(spec.topology_spread_constraints or ()):
        # The field is required, and what it says when left out is the stricter of the two.
        if spread.when_unsatisfiable != "ScheduleAnyway":
            yield f"spec.topologySpreadConstraints[{index}]: DoNotSchedule over {spread.topology_key or 'no key'}"
    for claim in spec.resource_claims or ():
        yield f"spec.resourceClaims[{claim.name or ''}]: devices allocated by claim"


def _terms(field: str, affinity: PodAffinity | None, what: str) -> Iterator[str]:
    for term in (affinity.required or ()) if affinity is not None else ():
        yield f"{field}: required pod {what} over {term.topology_key or 'no key'}"
