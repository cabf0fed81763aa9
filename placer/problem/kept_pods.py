"""Pods as they were made before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from placer.kube.manifests.validation import KeptObjects
from placer.kube.pod import PodManifest
from placer.problem.instance import Pod

if TYPE_CHECKING:
    from placer.problem.findings import Findings


class KeptPods:
    """Pods by their manifests and all else that they were made of; one with a finding is not kept."""

    def __init__(self) -> None:
        self._around: object = None
        self._known: dict[int, tuple[PodManifest, object, Pod]] = {}
        self._used: set[int] = set()

    def among(self, around: object) -> None:
        """Make pods from now on with these around them, compared by value."""
        if around != self._around:
            self._around = around
            self._known.clear()

    def pod(self, manifest: PodManifest, depends_on: object, make: Callable[[], Pod], findings: Findings) -> Pod:
        """A kept pod, else a new one; ``manifest`` is the same object as long as nothing in it changes."""
        known = self._known.get(id(manifest))
        if known is None or known[1] != depends_on:
            before = findings.noted
            known = manifest, depends_on, make()
            if findings.noted != before:
                self._known.pop(id(manifest), None)
                return known[2]
            self._known[id(manifest)] = known
        self._used.add(id(manifest))
        return known[2]

    def forget_unused(self) -> None:
        """Forget the pods that were not asked for since this was called last."""
        for place in self._known.keys() - self._used:
            del self._known[place]
        self._used.clear()


@dataclass(frozen=True)
class KeptFacts:
    """What a loop knows of single objects from one pass to the next."""

    objects: KeptObjects = field(default_factory=KeptObjects)
    pods: KeptPods = field(default_factory=KeptPods)

    def forget_unused(self) -> None:
        """Forget what was not asked for since this was called last."""
        self.objects.forget_unused()
        self.pods.forget_unused()
