"""Volcano queues, which of them a pod counts against (C11), and priorities (O1)."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from placer.base.quantity import CPU, NANO
from placer.kube.base import Metadata
from placer.problem.eligibility import queue_marks
from placer.problem.findings import Findings
from placer.problem.instance import Queue
from placer.problem.nodes import NodeMark
from placer.problem.pod_states import is_static

if TYPE_CHECKING:
    from placer.kube import core, volcano
    from placer.kube.core import PriorityClassManifest
    from placer.kube.pod import PodSpec
    from placer.problem.keys import Key

QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
#: Annotation of a Queue: the namespaces whose pods it takes, with commas.
NAMESPACES = "placer.dev/namespaces"
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
#: These bind only where there are such objects.
_DEFAULT_QUEUE, _ROOT_QUEUE = "default", "root"
_CLOSED = "Closed"


class Queues:
    """Who is in which queue."""

    def __init__(
        self, queues: Sequence[volcano.QueueManifest], namespaces: Sequence[core.NamespaceManifest], findings: Findings
    ) -> None:
        self._findings = findings
        known = {each.name for each in queues}
        marks = queue_marks(queues)
        by_name = sorted(queues, key=lambda each: each.name)
        self.by_name = {each.name: _queue(each, known, marks[each.name], findings) for each in by_name}
        self._of_namespace = {each.name: (each.metadata.annotations or {}).get(QUEUE_ANNOTATION) for each in namespaces}
        for each in queues:
            if each.spec is not None and each.spec.parent and each.spec.parent not in known:
                self._missing(each.spec.parent, f"Queue {each.name}")
        for circle in _circles(self.by_name):
            message = f"queues {', '.join(circle)} are each other's parents; the capability of each binds once"
            findings.add("QueueCycle", f"Queue {circle[0]}", message)

    def of_group(self, stated: str | None, namespace: str, subject: str) -> str | None:
        """Queue of a Volcano PodGroup: its own, its namespace's, or Volcano's default."""
        named = stated or self._of_namespace.get(namespace)
        if named is None:
            return _DEFAULT_QUEUE if _DEFAULT_QUEUE in self.by_name else None
        return self._known(named, subject)

    def of_pod(self, metadata: Metadata, key: Key) -> str | None:
        """Queue of a pod in no Volcano PodGroup. A static pod has none, or one kubelet could use up any queue."""
        named = self.named(metadata)
        if named and is_static(metadata):
            message = f"the annotation {QUEUE_ANNOTATION} of static pods: they are in no queue"
            self._findings.add("FieldIgnored", f"Pod {key}", message)
            return None
        return self._known(named, f"Pod {key}") if named else None

    def marks(self, name: str | None) -> tuple[NodeMark, ...]:
        """Limits of a queue to the nodes of its pods (C3)."""
        queue = self.by_name.get(name) if name is not None else None
        return queue.marks if queue is not None else ()

    @staticmethod
    def named(metadata: Metadata) -> str | None:
        """Queue that a pod's own annotation names."""
        return (metadata.annotations or {}).get(QUEUE_ANNOTATION)

    def _known(self, name: str, subject: str) -> str:
        if name not in self.by_name:
            self._missing(name, subject)
        return name

    def _missing(self, name: str, subject: str) -> None:
        if name not in (_DEFAULT_QUEUE, _ROOT_QUEUE) or f"Queue {name}" in self._findings.unread:
            self._findings.missing(f"Queue {name}", subject, self.by_name)


def _queue(
    written: volcano.QueueManifest, known: Container[str], marks: tuple[NodeMark, ...], findings: Findings
) -> Queue:
    from placer.kube.volcano import QueueSpec

    spec = written.spec or QueueSpec()
    # Sums of whole requests below a limit are the same after rounding down, and none is above it.
    capability = {
        name: amount // (NANO // 1000 if name == CPU else NANO)
        for name, amount in sorted((spec.capability or {}).items())
    }
    state = written.status.state if written.status is not None else None
    return Queue(
        name=written.name,
        capability=capability,
        parent=spec.parent if spec.parent in known else None,
        open=state != _CLOSED,
        weight=spec.weight or 1,
        reclaimable=spec.reclaimable is not False,
        marks=marks,
        namespaces=_namespaces(written, findings),
    )


def _namespaces(written: volcano.QueueManifest, findings: Findings) -> frozenset[str] | None:
    text = (written.metadata.annotations or {}).get(NAMESPACES)
    if text is None:
        return None
    words = [each.strip() for each in text.split(",")]
    names = frozenset(filter(_NAMESPACE.fullmatch, words))
    wrong = next((each for each in words if each not in names), None)
    if wrong is not None:
        subject = f"Queue {written.name}"
        message = f"annotation {NAMESPACES} of {subject}: found {wrong!r}, expected names of namespaces with commas"
        findings.add("QueueNamespaces", subject, f"{message}; the queue takes no new pods by it")
    return names


def _circles(queues: Mapping[str, Queue]) -> Iterator[tuple[str, ...]]:
    seen: set[str] = set()
    for start in queues:
        walked: dict[str, None] = {}
        name: str | None = start
        while name is not None and name not in seen and name not in walked:
            walked[name] = None
            name = queues[name].parent
        if name in walked:
            way = list(walked)
            yield tuple(sorted(way[way.index(name) :]))
        seen.update(walked)


SYSTEM_PRIORITY = 2 * 10**9

#: Classes that every cluster has, whether or not its objects were given.
_BUILT_IN = {"system-cluster-critical": SYSTEM_PRIORITY, "system-node-critical": SYSTEM_PRIORITY + 1_000}


class Priorities:
    """Priority classes by name."""

    def __init__(self, classes: Sequence[PriorityClassManifest], findings: Findings) -> None:
        self._values = _BUILT_IN | {each.name: each.value for each in classes}
        # Of several global defaults Kubernetes takes the lowest.
        self.default = min((each.value for each in classes if each.global_default), default=0)
        self._policies = {each.name: each.preemption_policy for each in classes}
        self._findings = findings

    def never_preempts(self, stated: str | None, name: str | None) -> bool | None:
        """Whether a ``preemptionPolicy`` is Never, the stated one before that of a class."""
        policy = stated or self._policies.get(name or "")
        return None if policy is None else policy == "Never"

    def of_class(self, name: str, subject: str) -> int | None:
        """Value of the class that ``subject`` names; None, and a finding, where it is absent."""
        value = self._values.get(name)
        if value is None:
            self._findings.missing(f"PriorityClass {name}", subject, self._values)
        return value

    def stated(self, spec: PodSpec, key: Key) -> int | None:
        """Priority that a pod states by number or by class."""
        if spec.priority is not None:
            return spec.priority
        return self.of_class(spec.priority_class_name, f"Pod {key}") if spec.priority_class_name else None
