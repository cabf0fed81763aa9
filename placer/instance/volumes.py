"""Claims of pods: a bound one decides by its volume where the pod can run (C3), any other is refused (C4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from placer.instance.findings import Findings
from placer.instance.pod import Key
from placer.kube.base import NodeSelector
from placer.kube.core import PersistentVolumeClaimManifest, PersistentVolumeManifest
from placer.kube.pod import PodManifest, VolumeEntry

__all__ = ["Volumes"]

_ONE_POD = "ReadWriteOncePod"


class Volumes:
    """Claims and volumes of an instance.

    Parameters
    ----------
    claims, volumes
        The PersistentVolumeClaim and PersistentVolume objects.
    users
        The pods that are pending or have a node: a claim for one pod only is taken by any of them.
    findings
        Takes volumes that a bound claim names and that are not there.
    """

    def __init__(
        self,
        claims: Sequence[PersistentVolumeClaimManifest],
        volumes: Sequence[PersistentVolumeManifest],
        users: Iterable[PodManifest],
        findings: Findings,
    ) -> None:
        self._claims = {Key(each.namespace, each.name): each for each in claims}
        self._volumes = {each.name: each for each in volumes}
        self._findings = findings
        exclusive = {key for key, claim in self._claims.items() if _for_one_pod(claim)}
        self._taken: Counter[Key] = Counter()
        if exclusive:
            self._taken.update(key for pod in users for _, key in _claimed(pod) if key in exclusive)

    def affinities(self, pod: PodManifest) -> tuple[NodeSelector, ...]:
        """Node affinity of every bound volume of the pod."""
        if not pod.spec.volumes:
            return ()
        bound = (self._volume(key) for _, key in _claimed(pod) if self._refusal(key) is None)
        affinities = (each.spec.node_affinity for each in bound if each is not None and each.spec is not None)
        return tuple(each.required for each in affinities if each is not None and each.required is not None)

    def refusals(self, pod: PodManifest) -> Iterator[str]:
        """What its volumes ask for that is not modelled."""
        for field, key in _claimed(pod):
            reason = self._refusal(key)
            if reason is not None:
                yield f"{field}: claim {key.name} {reason}"

    def _refusal(self, key: Key) -> str | None:
        claim = self._claims.get(key)
        if claim is None:
            return "is not in the instance, so it is not seen Bound"
        if claim.status is None or claim.status.phase != "Bound":
            return "is not Bound"
        if self._taken[key] > 1:
            return f"is {_ONE_POD} and more than one pod names it"
        return None

    def _volume(self, key: Key) -> PersistentVolumeManifest | None:
        spec = self._claims[key].spec
        name = spec.volume_name if spec is not None else None
        if not name:
            return None
        if name not in self._volumes:
            self._findings.missing(f"PersistentVolume {name}", f"PersistentVolumeClaim {key}")
        return self._volumes.get(name)


def _claimed(pod: PodManifest) -> Iterator[tuple[str, Key]]:
    """Field and claim of every volume that a claim backs; a generic ephemeral one has a claim of its own name."""
    for volume in pod.spec.volumes or ():
        name = _claim_name(pod, volume)
        if name is not None:
            kind = "ephemeral" if volume.ephemeral is not None else "persistentVolumeClaim"
            yield f"spec.volumes[{volume.name or ''}].{kind}", Key(pod.namespace, name)


def _claim_name(pod: PodManifest, volume: VolumeEntry) -> str | None:
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.name}-{volume.name}" if volume.ephemeral is not None else None


def _for_one_pod(claim: PersistentVolumeClaimManifest) -> bool:
    return claim.spec is not None and _ONE_POD in (claim.spec.access_modes or ())
