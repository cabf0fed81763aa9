"""Gangs: what PodGroup objects ask for, and which pods are their members, in which role and subgroup (C5, C6, C7).

Source: Volcano ``pkg/scheduler/api`` (group annotations, role, the order in which subGroupPolicies take pods); the pod
labels of the coscheduling plugin, now and in its first releases.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from sys import intern
from typing import TYPE_CHECKING

from placer.instance.eligibility import Requirements, label_requirements, matches
from placer.instance.findings import Findings, counted
from placer.instance.keys import GroupKey, Key
from placer.instance.pod_states import Ownership, has_succeeded
from placer.instance.problem import NO_TIER, Group, NetworkTopology, PodState, SubGroup, SubGroupPolicy
from placer.kube import coscheduling, volcano
from placer.kube.base import Labels, Metadata
from placer.kube.pod import PodManifest
from placer.quantity import Resources

if TYPE_CHECKING:
    from placer.instance.queues import Priorities, Queues
    from placer.instance.tier_tree import TierNames

__all__ = [
    "COSCHEDULING",
    "VOLCANO",
    "Gang",
    "GangReader",
    "PodEntry",
    "Slot",
    "SubGroupSplitter",
    "assemble",
    "call_roster",
    "created",
    "find_slot",
    "named_group",
    "note_misplaced_names",
    "role",
]


VOLCANO = "scheduling.volcano.sh"
COSCHEDULING = "scheduling.x-k8s.io"


@dataclass(frozen=True, slots=True)
class SubGroupSplitter:
    """How one ``subGroupPolicy`` takes pods: those its selector matches, split by the values of its keys."""

    requirements: Requirements
    keys: tuple[str, ...]

    def values(self, labels: Labels) -> tuple[str, ...] | None:
        """Values that say which subgroup of the policy a pod is in; None where the policy does not take it."""
        if not self.keys or not matches(self.requirements, labels):
            return None
        values = tuple(labels.get(key, "") for key in self.keys)
        return values if all(values) else None


@dataclass(frozen=True, slots=True)
class Gang:
    """A PodGroup object as read.

    Parameters
    ----------
    group
        The group without its pods; its priority is filled in with them.
    priority
        Value of the class that the object names; None where its pods decide.
    splitters
        One per policy, in the order in which they are asked.
    """

    group: Group
    priority: int | None = None
    splitters: tuple[SubGroupSplitter, ...] = ()


@dataclass(frozen=True, slots=True)
class GangReader:
    """Reads PodGroups; holds what their fields refer to.

    Parameters
    ----------
    tier_names, queues, priorities
        What names in PodGroups mean.
    locality_all
        Policy ``locality: all``: a PodGroup without networkTopology wants soft locality.
    findings
        Takes what cannot be as meant.
    """

    tier_names: TierNames
    queues: Queues
    priorities: Priorities
    locality_all: bool
    findings: Findings

    def of_volcano(self, written: volcano.PodGroupManifest) -> Gang:
        """Read a PodGroup of Volcano."""
        key = GroupKey(VOLCANO, written.namespace, written.name)
        spec = written.spec or volcano.PodGroupSpec()
        subject = str(key)
        topology, invalid = self._topology(spec.network_topology, subject)
        policies = []
        for index, policy in enumerate(spec.sub_group_policy or ()):
            read, wrong = self._policy(policy, f"spec.subGroupPolicy[{index}]", subject)
            policies.append(read)
            invalid = invalid or wrong
        group = Group(
            key,
            min_member=spec.min_member or 0,
            min_task_member=_checked_roles(spec),
            topology=self._wanted(topology),
            policies=tuple(policies),
            queue=self.queues.of_group(spec, written.namespace, subject),
            created=created(written.metadata),
            min_resources=Resources.from_nano(spec.min_resources or {}),
            invalid=invalid,
        )
        named = spec.priority_class_name
        return Gang(
            group,
            self.priorities.of_class(named, subject) if named else None,
            tuple(map(_splitter, spec.sub_group_policy or ())),
        )

    def of_coscheduling(self, written: coscheduling.CoschedulingPodGroupManifest) -> Gang:
        """Read a PodGroup of the coscheduling plugin, which knows a least number of pods and nothing else."""
        spec = written.spec or coscheduling.CoschedulingPodGroupSpec()
        group = Group(
            GroupKey(COSCHEDULING, written.namespace, written.name),
            min_member=spec.min_member or 0,
            topology=self._wanted(None),
            created=created(written.metadata),
            min_resources=Resources.from_nano(spec.min_resources or {}),
        )
        return Gang(group)

    def absent(self, key: GroupKey) -> Gang:
        """Stand in for a PodGroup that pods name and that is not there: its pods wait."""
        return Gang(Group(key, invalid=f"{key} is not in the instance"))

    def _wanted(self, topology: NetworkTopology | None) -> NetworkTopology | None:
        return NetworkTopology(hard=False) if topology is None and self.locality_all else topology

    def _policy(
        self, written: volcano.SubGroupPolicyEntry, field: str, subject: str
    ) -> tuple[SubGroupPolicy, str | None]:
        if not written.match_label_keys:
            name = f" ({written.name})" if written.name else ""
            message = f"{field}{name} of {subject} has no matchLabelKeys and takes no pod"
            self.findings.add("PolicyMatchesNothing", subject, message)
        topology, invalid = self._topology(written.network_topology, subject, f"{field}.networkTopology")
        policy = SubGroupPolicy(
            name=written.name or "",
            size=written.sub_group_size or 1,
            min_sub_groups=written.min_sub_groups or 0,
            topology=topology,
        )
        return policy, invalid

    def _topology(
        self, written: volcano.GangTopologySpec | None, subject: str, field: str = "spec.networkTopology"
    ) -> tuple[NetworkTopology | None, str | None]:
        """What a scope asks of the tree, and why its group is invalid where it is."""
        if written is None:
            return None, None
        hard, tier, name = written.mode != "soft", written.highest_tier_allowed, written.highest_tier_name
        if name and tier is not None:
            return NetworkTopology(hard, NO_TIER), f"{field} sets both highestTierAllowed and highestTierName"
        if name:
            known = self.tier_names.tier(name, subject)
            return NetworkTopology(hard, NO_TIER if known is None else known, name), None
        if hard and tier is None:
            message = f"{field} of {subject} is hard and sets no highest tier: that is no limit"
            self.findings.add("HardWithoutLimit", subject, message)
        return NetworkTopology(hard, tier), None


def created(metadata: Metadata) -> float:
    """Seconds since the epoch at which an object was made; 0.0 where it does not say."""
    return metadata.creation_timestamp.timestamp() if metadata.creation_timestamp is not None else 0.0


def _checked_roles(spec: volcano.PodGroupSpec) -> Mapping[str, int]:
    """Least pods per role, none where minMember is below their sum: Volcano does not look at them then."""
    roles = spec.min_task_member or {}
    return dict(sorted(roles.items())) if (spec.min_member or 0) >= sum(roles.values()) else {}


def _splitter(policy: volcano.SubGroupPolicyEntry) -> SubGroupSplitter:
    requirements = label_requirements(policy.label_selector) if policy.label_selector is not None else ()
    return SubGroupSplitter(requirements, policy.match_label_keys or ())


#: The older name comes second, as in Volcano.
GROUP_ANNOTATIONS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
_GROUP_LABELS = (
    "scheduling.x-k8s.io/pod-group",
    "scheduling.sigs.k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
)
_ROLE = "volcano.sh/task-spec"
#: Pods in these states count for their group, and so does their priority.
_COUNTED = (PodState.PENDING, PodState.BOUND)

#: Index of the policy that takes a pod, and the values of its matchLabelKeys.
Slot = tuple[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class PodEntry:
    """A pod with what its group has to know of it; ``state`` None: it has succeeded."""

    pod: PodManifest
    key: Key
    state: PodState | None
    priority: int
    group: GroupKey | None = None
    role: str = ""
    slot: Slot | None = None


def named_group(metadata: Metadata, namespace: str, known: Container[GroupKey], findings: Findings) -> GroupKey | None:
    """Find the PodGroup that a pod names.

    Parameters
    ----------
    metadata, namespace
        Of the pod.
    known
        The PodGroups there are.
    findings
        Takes a pod that names two.

    Returns
    -------
    GroupKey or None
        Of two that are named Volcano's, unless only the other exists; a group without an object where none exists;
        None where the pod names none.
    """
    volcano = _first(metadata.annotations, GROUP_ANNOTATIONS)
    coscheduling = _first(metadata.labels, _GROUP_LABELS)
    pairs = ((VOLCANO, volcano), (COSCHEDULING, coscheduling))
    named = [GroupKey(api_group, namespace, name) for api_group, name in pairs if name]
    existing = [key for key in named if key in known]
    if len(existing) > 1:
        subject = f"Pod {namespace}/{metadata.name}"
        message = f"{subject} names a PodGroup of {VOLCANO} and one of {COSCHEDULING}; it counts for the first"
        findings.add("TwoGroups", subject, message)
    return next(iter(existing or named), None)


def note_misplaced_names(pods: Iterable[PodManifest], findings: Findings) -> None:
    """Note, once per key, names of PodGroups that stand as a label where an annotation is read, or the other way round.

    Parameters
    ----------
    pods
        Pending pods that are in no PodGroup.
    findings
        Takes the findings.
    """
    found: dict[tuple[str, str, str], set[str]] = {}
    for pod in pods:
        for stands, written, keys, read in (
            ("label", pod.metadata.labels, GROUP_ANNOTATIONS, "an annotation"),
            ("annotation", pod.metadata.annotations, _GROUP_LABELS, "a label"),
        ):
            for key in keys:
                if written and written.get(key):
                    found.setdefault((stands, key, read), set()).add(f"Pod {pod.namespace}/{pod.name}")
    for (stands, key, read), subjects in found.items():
        message = f"{stands} {key} of {counted(subjects)} is read as {read} only, so each counts as a pod by itself"
        findings.add("GroupNameMisplaced", min(subjects), message)


def role(metadata: Metadata) -> str:
    """Role of a pod in its gang: the task of its VCJob; empty where it has none."""
    return _first(metadata.annotations, (_ROLE,)) or _first(metadata.labels, (_ROLE,))


def find_slot(splitters: Iterable[SubGroupSplitter], labels: Labels) -> Slot | None:
    """Find the first policy that takes a pod, and its subgroup there; None where no policy does."""
    for index, splitter in enumerate(splitters):
        values = splitter.values(labels)
        if values is not None:
            return index, values
    return None


def call_roster(
    pods: Iterable[PodManifest],
    ownership: Ownership,
    gangs: Mapping[GroupKey, Gang],
    priorities: Priorities,
    findings: Findings,
) -> list[PodEntry]:
    """Find out of every pod what it is to us and where it belongs.

    Parameters
    ----------
    pods
        The pods of the input, in any order.
    ownership
        Whose pending pods are ours.
    gangs
        The PodGroups there are.
    priorities
        The priority classes.
    findings
        Takes references that lead nowhere, and a pod that names two PodGroups.

    Returns
    -------
    list of Entry
        Sorted by key: the pods that are pending, nominated or have a node, and those that succeeded in a PodGroup of
        Volcano, which counts them on.
    """
    entries = []
    for pod in sorted(pods, key=lambda each: (each.namespace, each.name)):
        state = ownership.state(pod)
        key = Key(intern(pod.namespace), pod.name)
        if state is None and not has_succeeded(pod):
            continue
        group = named_group(pod.metadata, key.namespace, gangs, findings)
        gang = gangs.get(group) if group is not None else None
        if state is None and (gang is None or gang.group.key.api_group != VOLCANO):
            continue
        priority = priorities.of_pod(pod.spec, f"Pod {key}") if state in _COUNTED else 0
        slot = find_slot(gang.splitters, pod.metadata.labels or {}) if gang is not None else None
        entries.append(PodEntry(pod, key, state, priority, group, role(pod.metadata), slot))
    return entries


def assemble(gang: Gang, members: Sequence[PodEntry]) -> tuple[Group, Mapping[Slot, int]]:
    """Put the pods of a PodGroup into it.

    Parameters
    ----------
    gang
        What the object says.
    members
        Its pods that are pending, run or have succeeded, sorted by key.

    Returns
    -------
    Group
        With its pods and subgroups; its priority is that of its class, else the highest of its pods.
    Mapping
        Slot to index in the group's ``sub_groups``.
    """
    slots: dict[Slot, list[PodEntry]] = {}
    for entry in members:
        if entry.slot is not None:
            slots.setdefault(entry.slot, []).append(entry)
    ordered = sorted(slots, key=_natural)
    alive = [entry.priority for entry in members if entry.state is not None]
    group = replace(
        gang.group,
        sub_groups=tuple(_sub_group(gang.group.policies, slot, slots[slot]) for slot in ordered),
        priority=gang.priority if gang.priority is not None else max(alive, default=0),
        pending=_keys(members, PodState.PENDING),
        bound=_keys(members, PodState.BOUND),
        succeeded=_by_role(entry for entry in members if entry.state is None),
    )
    return group, {slot: index for index, slot in enumerate(ordered)}


def _sub_group(policies: tuple[SubGroupPolicy, ...], slot: Slot, entries: list[PodEntry]) -> SubGroup:
    policy, values = slot
    return SubGroup(
        name="-".join(part for part in (policies[policy].name, *values) if part),
        policy=policy,
        pending=_keys(entries, PodState.PENDING),
        bound=_keys(entries, PodState.BOUND),
        succeeded=sum(entry.state is None for entry in entries),
    )


def _natural(slot: Slot) -> tuple[int, list[tuple[int, str]]]:
    """Order of subgroups: by policy, then by values, numbers by their size."""
    return slot[0], [(len(value) if value.isdecimal() else 0, value) for value in slot[1]]


def _keys(entries: Iterable[PodEntry], state: PodState) -> tuple[Key, ...]:
    return tuple(entry.key for entry in entries if entry.state is state)


def _by_role(entries: Iterable[PodEntry]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for entry in entries:
        counts[entry.role] = counts.get(entry.role, 0) + 1
    return dict(sorted(counts.items()))


def _first(values: Labels | None, names: Iterable[str]) -> str:
    """The first of the names that has a value that is not empty."""
    return next((value for name in names if (value := (values or {}).get(name))), "")
