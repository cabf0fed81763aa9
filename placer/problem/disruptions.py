"""Bound pods that may never be disturbed, and budgets (D2; Kubernetes ``pkg/controller/disruption``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from placer.kube.base import ObjectBase, controller
from placer.kube.core import BudgetSpec, PodDisruptionBudgetManifest, amount_of
from placer.kube.marks import KAI_FIELD, KAI_PREEMPTIBILITY, YUNIKORN_PREEMPTION, protections
from placer.problem.eligibility import Requirements, label_requirements, matches
from placer.problem.gangs import COSCHEDULING, KAI, UPSTREAM, VOLCANO
from placer.problem.instance import BY_MARK, DisruptionBudget, Pod, PodState
from placer.problem.keys import GroupKey, Key
from placer.problem.nodes import Requirement
from placer.problem.pod_states import Maker, PodMakers, all_workloads, is_daemon
from placer.problem.queues import SYSTEM_PRIORITY

if TYPE_CHECKING:
    from placer.kube.manifests import Objects
    from placer.kube.pod import PodManifest
    from placer.kube.policy import PolicyManifest, Protected
    from placer.kube.scheduling import KaiPodGroupManifest

WITHOUT_OWNER = "no controller would make it again"
#: Protected under a Policy without a list of its own.
_UNTOUCHED = (Requirement("placer.dev/disrupt", "In", ("never",)),)


@dataclass(frozen=True, slots=True)
class ProtectingMarks:
    """Marks of other systems that protect bound pods, by object."""

    groups: Mapping[GroupKey, str]
    workloads: Mapping[Maker, str]
    classes: Mapping[str, str]
    makers: PodMakers = field(default_factory=PodMakers)

    @classmethod
    def of(cls, objects: Objects) -> ProtectingMarks:
        """Marks of the objects of an instance."""
        groups: dict[str, Sequence[ObjectBase]] = {UPSTREAM: objects.upstream_pod_groups, VOLCANO: objects.pod_groups}
        groups |= {COSCHEDULING: objects.coscheduling_pod_groups}
        kai = objects.kai_pod_groups
        stated = {key: mark for each in kai for key, mark in _stated_by_kai(each)}
        groups[KAI] = [each for each in kai if each.spec is None or not each.spec.preemptibility]
        return cls(
            stated | {key: mark for group, each in groups.items() for key, mark in _marked("PodGroup", each, group)},
            dict(_stated_above(objects)),
            {key.name: mark for key, mark in _marked("PriorityClass", objects.priority_classes)},
            PodMakers((*objects.replica_sets, *objects.jobs)),
        )

    def reason(self, pod: PodManifest, group: GroupKey | None) -> str:
        """Why a pod is never disturbed; empty where no mark protects it."""
        said = list(protections("Pod", pod.metadata.labels, pod.metadata.annotations))
        own = next((_words(name, value) for name, value, protects in said if protects), None)
        allowed = YUNIKORN_PREEMPTION in (name for name, _, _ in said)  # what the pod says counts before its class
        named = None if allowed else self.classes.get(pod.spec.priority_class_name or "")
        mark = own or self._of_what_it_is_in(pod, group) or named
        return f"{mark}{BY_MARK}" if mark else ""

    def _of_what_it_is_in(self, pod: PodManifest, group: GroupKey | None) -> str | None:
        above = self.makers.with_sets(pod) if self.workloads else ()
        said = (self.workloads.get(maker) for maker in above)
        return (self.groups.get(group) if group is not None else None) or next(filter(None, said), None)


def _marked(kind: str, objects: Iterable[ObjectBase], api_group: str = "") -> Iterator[tuple[GroupKey, str]]:
    for each in objects:
        for name, value, protects in protections(kind, each.metadata.labels, each.metadata.annotations):
            if protects:
                key = GroupKey(api_group or each.group, getattr(each, "namespace", ""), each.name)
                title = f"{key.namespace}/{key.name}".lstrip("/")
                yield key, f"{_words(name, value)} of {kind} {title}"


def _stated_by_kai(written: KaiPodGroupManifest) -> Iterator[tuple[GroupKey, str]]:
    stated = written.spec.preemptibility if written.spec is not None else None
    for _, value, protects in protections("PodGroup", {KAI_PREEMPTIBILITY: stated or ""}, None):
        if protects:
            key = GroupKey(KAI, written.namespace, written.name)
            yield key, f"{_words(KAI_FIELD, value)} of PodGroup {key.namespace}/{key.name}"


def _words(name: str, value: str) -> str:
    return f'{name}: "{value}"'


class Protection:
    """Which bound pods are never disturbed."""

    def __init__(
        self, policies: Sequence[PolicyManifest], namespaces: Mapping[str, Mapping[str, str]], marks: ProtectingMarks
    ) -> None:
        said = [policy.spec.disruption for policy in policies if policy.spec is not None]
        given = next((each.protect for each in said if each is not None and each.protect is not None), None)
        self._selectors = [(_UNTOUCHED, None)] if given is None else [_selector(each) for each in given]
        self._namespaces, self._marks = namespaces, marks

    def reason(self, pod: PodManifest, state: PodState, priority: int, group: GroupKey | None = None) -> str:
        """Why a bound pod is never disturbed; empty for any other pod."""
        if state is not PodState.BOUND:
            return ""
        if is_daemon(pod.metadata):
            return "it belongs to its node, as pods of DaemonSets and static pods do"
        if controller(pod.metadata) is None:
            return WITHOUT_OWNER
        if priority >= SYSTEM_PRIORITY:
            return f"its priority {priority} is one of the system's"
        return "the Policy protects it" if self._protects(pod) else self._marks.reason(pod, group)

    def of_group(self, group: GroupKey) -> str | None:
        """The mark of a group that protects its pods."""
        return self._marks.groups.get(group)

    def _protects(self, pod: PodManifest) -> bool:
        of_namespace = self._namespaces.get(pod.namespace, {})
        return any(
            (namespaces is None or pod.namespace in namespaces)
            and (matches(wanted, pod.metadata.labels or {}) or matches(wanted, of_namespace))
            for wanted, namespaces in self._selectors
        )


def _selector(protected: Protected) -> tuple[Requirements, frozenset[str] | None]:
    wanted = label_requirements(protected.selector) if protected.selector is not None else ()
    return wanted, None if protected.namespaces is None else frozenset(protected.namespaces)


def read_budgets(
    written: Iterable[PodDisruptionBudgetManifest], pods: Mapping[Key, Pod]
) -> tuple[DisruptionBudget, ...]:
    """Read the budgets that mean a bound pod."""
    budgets = sorted(written, key=lambda each: (each.namespace, each.name))
    here: dict[str, list[Pod]] = {each.namespace: [] for each in budgets}
    for pod in pods.values() if here else ():
        if pod.namespace in here:
            here[pod.namespace].append(pod)
    read = (_budget(each, here[each.namespace]) for each in budgets)
    return tuple(budget for budget in read if budget.pods)


def policy_budgets(policies: Iterable[PolicyManifest], pods: Mapping[Key, Pod]) -> Iterator[DisruptionBudget]:
    """``disruption.maxPods`` of the Policy, as a budget."""
    for policy in policies:
        allowed = policy.spec.disruption if policy.spec is not None else None
        if allowed is not None and allowed.max_pods is not None:
            yield limited(Key("", policy.name), allowed.max_pods, pods)


def limited(key: Key, most: int, pods: Mapping[Key, Pod]) -> DisruptionBudget:
    """At most so many of all bound pods."""
    bound = frozenset(pod.key for pod in pods.values() if pod.state is PodState.BOUND)
    return DisruptionBudget(key, bound, most, of_policy=True)


def _budget(written: PodDisruptionBudgetManifest, pods: Iterable[Pod]) -> DisruptionBudget:
    spec = written.spec or BudgetSpec()
    wanted = None if spec.selector is None else label_requirements(spec.selector)
    meant = [] if wanted is None else [pod for pod in pods if matches(wanted, pod.labels)]
    healthy = frozenset(pod.key for pod in meant if pod.state is PodState.BOUND)
    said = written.status.disruptions_allowed if written.status is not None else None
    key = Key(written.namespace, written.name)
    if said is not None:
        return DisruptionBudget(key, healthy, said)
    return DisruptionBudget(key, healthy, 0, _kept(spec, len(meant))).without(())


def _kept(spec: BudgetSpec, expected: int) -> int:
    if spec.max_unavailable is not None:
        return max(0, expected - amount_of(spec.max_unavailable, expected))
    return amount_of(spec.min_available or 0, expected)


def _stated_above(objects: Objects) -> Iterator[tuple[Maker, str]]:
    for maker, labels, notes in all_workloads(objects):
        for name, value, protects in protections(maker.marked_as, labels, notes):
            if protects:
                yield maker, f"{_words(name, value)} of {maker}"
