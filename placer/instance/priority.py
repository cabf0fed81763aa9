"""Priorities of pods and groups (O1): the number in the spec, else the class, else the global default, else 0.

Source: the Priority admission plugin of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Sequence

from placer.instance.findings import Findings
from placer.kube.core import PriorityClassManifest
from placer.kube.pod import PodSpec

__all__ = ["Priorities"]

#: Classes that every cluster has, whether or not its objects were given.
_BUILT_IN = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class Priorities:
    """Priority classes by name.

    Parameters
    ----------
    classes
        The PriorityClass objects.
    findings
        Takes a finding for each class that is named and not there.
    """

    def __init__(self, classes: Sequence[PriorityClassManifest], findings: Findings) -> None:
        self._values = _BUILT_IN | {each.name: each.value for each in classes}
        # Of several global defaults Kubernetes takes the lowest.
        self._default = min((each.value for each in classes if each.global_default), default=0)
        self._findings = findings

    def of_class(self, name: str, subject: str) -> int | None:
        """Value of the class that ``subject`` names; None, and a finding, where there is none of that name."""
        value = self._values.get(name)
        if value is None:
            self._findings.missing(f"PriorityClass {name}", subject)
        return value

    def of_pod(self, spec: PodSpec, subject: str) -> int:
        """Priority of a pod of its own."""
        if spec.priority is not None:
            return spec.priority
        value = self.of_class(spec.priority_class_name, subject) if spec.priority_class_name else None
        return self._default if value is None else value
