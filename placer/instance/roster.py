"""Who is in which PodGroup, in which role and subgroup (C5, C6).

Source: Volcano ``pkg/scheduler/api`` (group annotations, role, the walk over subGroupPolicy); the pod labels of the
coscheduling plugin, now and in its first releases.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from sys import intern

from placer.instance.findings import Findings, counted
from placer.instance.gangs import COSCHEDULING, VOLCANO, Gang, Splitter
from placer.instance.group import Group, GroupKey, SubGroup, SubGroupPolicy
from placer.instance.pod import Key, PodState
from placer.instance.priority import Priorities
from placer.instance.state import Ownership, has_succeeded
from placer.kube.base import Labels, Metadata
from placer.kube.pod import PodManifest

__all__ = ["Entry", "Slot", "assemble", "call_roster", "find_slot", "named_group", "note_misplaced_names", "role"]

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
class Entry:
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
        Of two that are named Volcano's, unless only the other exists; a group that nobody has made where none exists;
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


def find_slot(splitters: Iterable[Splitter], labels: Labels) -> Slot | None:
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
) -> list[Entry]:
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
        entries.append(Entry(pod, key, state, priority, group, role(pod.metadata), slot))
    return entries


def assemble(gang: Gang, members: Sequence[Entry]) -> tuple[Group, Mapping[Slot, int]]:
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
    slots: dict[Slot, list[Entry]] = {}
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


def _sub_group(policies: tuple[SubGroupPolicy, ...], slot: Slot, entries: list[Entry]) -> SubGroup:
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


def _keys(entries: Iterable[Entry], state: PodState) -> tuple[Key, ...]:
    return tuple(entry.key for entry in entries if entry.state is state)


def _by_role(entries: Iterable[Entry]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for entry in entries:
        counts[entry.role] = counts.get(entry.role, 0) + 1
    return dict(sorted(counts.items()))


def _first(values: Labels | None, names: Iterable[str]) -> str:
    """The first of the names that has a value that is not empty."""
    return next((value for name in names if (value := (values or {}).get(name))), "")
