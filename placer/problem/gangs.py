"""Gangs: demands of PodGroup objects, and their member pods by role and subgroup (C5, C6, C7).

Source: Volcano ``pkg/scheduler/api``; coscheduling's pod labels, now and first; KEP-4671.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from operator import itemgetter
from sys import intern
from typing import TYPE_CHECKING

from placer.base.quantity import Resources
from placer.kube.base import Labels, LabelSelector, Metadata, controller
from placer.kube.marks import KAI_GROUP, VOLCANO_TOPOLOGY_MODE
from placer.problem.eligibility import Requirements, label_requirements, matches
from placer.problem.findings import Findings
from placer.problem.instance import NO_TIER, Group, NetworkTopology, PodState, SubGroup, SubGroupPolicy
from placer.problem.keys import GroupKey, Key
from placer.problem.mark_gangs import KOORDINATOR, KUEUE, LIGHT, YUNIKORN, MarkedGang, gangs_named, task_group
from placer.problem.mark_gangs import VOLCANO as VOLCANO
from placer.problem.pod_states import (
    JOB_SET,
    JOB_SETS,
    LEADER_WORKER_SET,
    LEADER_WORKER_SETS,
    Ownership,
    has_succeeded,
    is_daemon,
    scheduler_of,
)

if TYPE_CHECKING:
    from placer.kube import volcano
    from placer.kube.pod import PodManifest, PodSpec, PodTemplateSpec
    from placer.kube.scheduler_plugins import CoschedulingPodGroupManifest
    from placer.kube.scheduling import (
        KaiPodGroupManifest,
        KaiPodGroupSpec,
        UpstreamPodGroupManifest,
        UpstreamSchedulingPolicy,
        WorkloadManifest,
    )
    from placer.problem.queues import Priorities, Queues
    from placer.problem.tier_tree import TierNames

UPSTREAM = "scheduling.k8s.io"
COSCHEDULING = "scheduling.x-k8s.io"
KAI = "scheduling.run.ai"


@dataclass(frozen=True, slots=True)
class Gang:
    """A PodGroup object as read; its ``group`` has no pods yet.

    ``priority``: of the class that it names. ``splitters``: of each policy, with its matchLabelKeys.
    ``unsupported``: part that is not modelled (C4). ``topology_keys``: C7 by label. ``never_preempts``: None where its
    pods decide.
    """

    group: Group
    priority: int | None = None
    priority_field: str = ""
    splitters: tuple[tuple[Requirements, tuple[str, ...]], ...] = ()
    unsupported: str = ""
    topology_keys: tuple[str, ...] = ()
    never_preempts: bool | None = None


_MOST_POLICIES = 200
#: Where a pod is that is in no PodGroup.
_NO_GANG = Gang(Group(GroupKey("", "", "")))


@dataclass(frozen=True, slots=True)
class GangReader:
    """Reads PodGroups; ``unread`` are those of versions that are not read."""

    tier_names: TierNames
    queues: Queues
    priorities: Priorities
    locality_all: bool
    findings: Findings
    unread: Set[GroupKey] = frozenset()

    def of_volcano(self, written: volcano.PodGroupManifest) -> Gang:
        """Read a PodGroup of Volcano."""
        from placer.kube.volcano import PodGroupSpec

        key = GroupKey(VOLCANO, written.namespace, written.name)
        spec = written.spec or PodGroupSpec()
        subject = str(key)
        topology, invalid = self._topology(spec.network_topology, subject)
        policies, asked = [], spec.sub_group_policy or ()
        if len(asked) > _MOST_POLICIES:  # each pod is held against all of them
            most = f"at most {_MOST_POLICIES:,}"
            asked, invalid = (), f"spec.subGroupPolicy: found {len(asked):,} entries, expected {most}"
        for index, policy in enumerate(asked):
            read, wrong = self._policy(policy, f"spec.subGroupPolicy[{index}]", subject)
            policies.append(read)
            invalid = invalid or wrong
        group = Group(
            key,
            min_member=spec.min_member or 0,
            min_task_member=_checked_roles(spec),
            topology=self._wanted(topology),
            policies=tuple(policies),
            queue=self.queues.of_group(spec.queue, written.namespace, subject),
            created=created(written.metadata),
            min_resources=Resources.from_nano(spec.min_resources or {}),
            inqueue=written.status is not None and written.status.phase == "Inqueue",
            invalid=invalid,
        )
        return Gang(group, *self._class_named(spec.priority_class_name, key), tuple(map(_splitter, asked)))

    def of_coscheduling(self, written: CoschedulingPodGroupManifest) -> Gang:
        """Read a PodGroup of the coscheduling plugin."""
        from placer.kube.scheduler_plugins import CoschedulingPodGroupSpec

        spec = written.spec or CoschedulingPodGroupSpec()
        key, least = GroupKey(COSCHEDULING, written.namespace, written.name), spec.min_member or 0
        group = self._plain(key, least, created(written.metadata))
        return Gang(replace(group, min_resources=Resources.from_nano(spec.min_resources or {})))

    def of_kai(self, written: KaiPodGroupManifest) -> Gang:
        """Read a PodGroup of KAI."""
        from placer.kube.scheduling import KaiPodGroupSpec

        key, spec = GroupKey(KAI, written.namespace, written.name), written.spec or KaiPodGroupSpec()
        group = self._plain(key, spec.min_member or 0, created(written.metadata))
        named = self._class_named(spec.priority_class_name, key)
        return Gang(group, *named, unsupported="; ".join(_not_modelled_of_kai(spec)))

    def of_marks(self, read: MarkedGang, missing: str | None = None) -> Gang:
        """Make the gang that marks of pods declare; ``missing``: an absent object of it."""
        queue, key = None, read.key
        topology, limit = self._topology(read.topology, str(key), f"annotation {VOLCANO_TOPOLOGY_MODE}")
        if key.api_group == VOLCANO:
            named = (self.queues.named(pod.metadata) for pod in read.pods)
            queue = self.queues.of_group(next(filter(None, named), None), key.namespace, str(key))
        group = Group(
            key,
            min_member=read.min_member,
            min_task_member=read.roles,
            topology=self._wanted(topology),
            queue=queue,
            created=min((created(pod.metadata) for pod in read.pods), default=0.0),
            invalid=read.invalid or limit or missing,
            stated=read.stated,
        )
        return Gang(group, unsupported=read.unsupported)

    def of_upstream(self, written: UpstreamPodGroupManifest) -> Gang:
        """Read a PodGroup of Kubernetes itself."""
        from placer.kube.scheduling import UpstreamPodGroupSpec

        key = GroupKey(UPSTREAM, written.namespace, written.name)
        spec = written.spec or UpstreamPodGroupSpec()
        min_member, invalid = _least_pods(spec.scheduling_policy, "spec.schedulingPolicy")
        group = self._plain(key, min_member, created(written.metadata), invalid)
        group = replace(group, disrupted_whole=spec.is_disrupted_whole)
        value, where = self._class_named(spec.priority_class_name, key)
        if value is None and spec.priority is not None:
            value, where = spec.priority, "spec.priority"
        constraints, parent = spec.scheduling_constraints, spec.parent_composite_pod_group_name
        refused = f"spec.parentCompositePodGroupName: {parent}, and no CompositePodGroup is read" if parent else ""
        return Gang(
            group,
            value,
            where,
            unsupported=refused,
            topology_keys=tuple(each.key for each in (constraints and constraints.topology) or ()),
            never_preempts=self.priorities.never_preempts(spec.preemption_policy, spec.priority_class_name),
        )

    def of_workload(self, written: WorkloadManifest, keys: Iterable[GroupKey]) -> Iterator[Gang]:
        """Read those gangs of a Workload of v1alpha1 that have ``keys``."""
        declared = {each.name: each for each in (written.spec.pod_groups if written.spec is not None else None) or ()}
        for key in keys:
            pod_group = declared.get(key.name.split("/")[1])
            if pod_group is not None:
                min_member, invalid = _least_pods(pod_group.policy, f"spec.podGroups[{pod_group.name}].policy")
                yield Gang(self._plain(key, min_member, created(written.metadata), invalid))

    def undeclared(self, key: GroupKey, members: Sequence[PodEntry]) -> Gang:
        """Stand in for the PodGroup of a workload, or for an absent one (a finding)."""
        if key.api_group in _OWNERS:
            alive = [entry for entry in members if entry.state in _COUNTED]
            made = min((created(entry.pod.metadata) for entry in alive), default=0.0)
            return Gang(self._plain(key, len(alive), made))
        for entry in members:
            self.findings.missing(str(key), f"Pod {entry.key}")
        return self.absent(key)

    def absent(self, key: GroupKey) -> Gang:
        """Stand in for a PodGroup that is absent or not read: its pods wait."""
        if key in self.unread:
            return Gang(Group(key), unsupported=f"its version is not read, of API {key.api_group}")
        return Gang(Group(key, invalid=f"{key} is not in the instance"))

    def _class_named(self, name: str | None, key: GroupKey) -> tuple[int | None, str]:
        value = self.priorities.of_class(name, str(key)) if name else None
        return value, "" if value is None else f"spec.priorityClassName {name}"

    def _plain(self, key: GroupKey, least: int, made: float, invalid: str | None = None) -> Group:
        return Group(key, min_member=least, topology=self._wanted(None), created=made, invalid=invalid)

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
        if written is None:
            return None, None
        hard, tier, name = written.mode != "soft", written.highest_tier_allowed, written.highest_tier_name
        if name and tier is not None:
            both = f"highestTierAllowed ({tier}) and highestTierName ({name})"
            return NetworkTopology(hard, NO_TIER), f"{field} sets both {both}, expected one of them"
        if name:
            known = self.tier_names.tier(name, subject)
            return NetworkTopology(hard, NO_TIER if known is None else known, name), None
        if hard and tier is None:
            message = f"{field} of {subject} is hard and sets no highest tier: that is no limit"
            self.findings.add("HardWithoutLimit", subject, message)
        return NetworkTopology(hard, tier), None


def created(metadata: Metadata) -> float:
    """Creation time in seconds since the epoch; 0.0 where absent."""
    return metadata.creation_timestamp.timestamp() if metadata.creation_timestamp is not None else 0.0


def _least_pods(policy: UpstreamSchedulingPolicy | None, field: str) -> tuple[int, str | None]:
    if policy is None or (policy.basic is None) == (policy.gang is None):
        found = "neither" if policy is None or policy.basic is None else "both"
        return 0, f"{field}: found {found}, expected one of basic and gang"
    if policy.gang is None:
        return 0, None
    if policy.gang.min_count is None:
        return 0, f"{field}.gang.minCount: found none, expected at least 1"
    return policy.gang.min_count, None


def _not_modelled_of_kai(spec: KaiPodGroupSpec) -> Iterator[str]:
    if spec.sub_groups:
        yield f"spec.subGroups: {len(spec.sub_groups)} of them, and subgroups of KAI are not modelled"
    asked = spec.topology_constraint
    if asked is not None and (asked.topology or asked.required_topology_level or asked.preferred_topology_level):
        level = asked.required_topology_level or asked.preferred_topology_level or "no level"
        yield f"spec.topologyConstraint: {level} of {asked.topology or 'no topology'}, and no Topology of KAI is read"


def _splitter(written: volcano.SubGroupPolicyEntry) -> tuple[Requirements, tuple[str, ...]]:
    return label_requirements(written.label_selector or LabelSelector()), written.match_label_keys or ()


def _checked_roles(spec: volcano.PodGroupSpec) -> Mapping[str, int]:
    """Volcano looks at no minimum of a role where minMember is below their sum."""
    roles = spec.min_task_member or {}
    return dict(sorted(roles.items())) if (spec.min_member or 0) >= sum(roles.values()) else {}


#: The older name comes second, as in Volcano.
GROUP_ANNOTATIONS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
GROUP_LABELS = (
    "scheduling.x-k8s.io/pod-group",
    "scheduling.sigs.k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
)
_ROLE = "volcano.sh/task-spec"
#: Pods in these states count for their group, and so does their priority.
_COUNTED = (PodState.PENDING, PodState.BOUND)
#: API groups of gangs for which pods that have succeeded count on.
_COUNTING_SUCCEEDED = (VOLCANO, KUEUE)

#: Index of the policy that takes a pod, and the values of its matchLabelKeys.
Slot = tuple[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class PodEntry:
    """A pod as its group sees it; ``state`` None: it has succeeded; ``stated``: its own priority."""

    pod: PodManifest
    key: Key
    state: PodState | None
    stated: int | None
    group: GroupKey | None = None
    role: str = ""
    slot: Slot | None = None
    counts: bool = True


#: Scheduler to the gangs that it reads: the API group of PodGroups first, then those that stand for marks.
_READ_BY = {
    "default-scheduler": (UPSTREAM,),
    "volcano": (VOLCANO,),
    "scheduler-plugins-scheduler": (COSCHEDULING, LIGHT),
    "koord-scheduler": (COSCHEDULING, LIGHT, KOORDINATOR),
    "kai-scheduler": (KAI,),
    "yunikorn": (YUNIKORN,),
}


def named_group(pod: PodManifest, namespace: str, known: Container[GroupKey], findings: Findings) -> GroupKey | None:
    """Find the gang that a pod names.

    Of several the one counts that exists and that the pod's scheduler would read, objects before marks.
    """
    metadata = pod.metadata
    names = (
        (UPSTREAM, _upstream_name(pod.spec)),
        (VOLCANO, _first(metadata.annotations, GROUP_ANNOTATIONS)),
        (COSCHEDULING, _first(metadata.labels, GROUP_LABELS)),
        (KAI, _first(metadata.annotations, (KAI_GROUP,))),
    )
    objects = [GroupKey(api_group, namespace, name) for api_group, name in names if name]
    marked = gangs_named(metadata, namespace)
    if not (objects or marked):  # as in nearly all pods
        return None
    named = [*objects, *marked]
    if len(named) > 1:
        read = _READ_BY.get(scheduler_of(pod), ())
        named.sort(key=lambda key: (key.api_group not in read, key not in objects))
    existing = list(dict.fromkeys(key for key in named if key in known))
    _note_two_groups(f"Pod {namespace}/{metadata.name}", existing, findings)
    return next(iter(existing or named))


def names_group(template: PodTemplateSpec) -> bool:
    """Whether pods of a template name a PodGroup, of whichever API."""
    metadata = template.metadata
    if metadata is not None and _first(metadata.annotations, (*GROUP_ANNOTATIONS, KAI_GROUP)):
        return True
    return bool(metadata is not None and _first(metadata.labels, GROUP_LABELS)) or bool(_upstream_name(template.spec))


def _upstream_name(spec: PodSpec) -> str:
    if spec.scheduling_group is not None:
        return spec.scheduling_group.pod_group_name or ""
    if spec.workload_ref is None:
        return ""
    reference = spec.workload_ref
    parts = (reference.name or "", reference.pod_group or "", reference.pod_group_replica_key or "")
    return "/".join(parts).removesuffix("/")


def workload_gangs(pods: Iterable[PodManifest]) -> dict[Key, set[GroupKey]]:
    """Workload to the gangs that pods name by ``spec.workloadRef``."""
    found: dict[Key, set[GroupKey]] = {}
    for pod in pods:
        reference = pod.spec.workload_ref
        if reference is not None and pod.spec.scheduling_group is None:
            gang = GroupKey(UPSTREAM, pod.namespace, _upstream_name(pod.spec))
            found.setdefault(Key(pod.namespace, reference.name or ""), set()).add(gang)
    return found


def note_misplaced_names(pods: Iterable[PodManifest], findings: Findings) -> None:
    """Note names of PodGroups that are a label in place of an annotation, or the reverse."""
    for pod in pods:
        for stands, written, keys, read in (
            ("label", pod.metadata.labels, GROUP_ANNOTATIONS, "an annotation"),
            ("annotation", pod.metadata.annotations, GROUP_LABELS, "a label"),
        ):
            for key in keys:
                if written and written.get(key):
                    after = f" is read as {read} only, so each counts as a pod by itself"
                    subject = f"Pod {pod.namespace}/{pod.name}"
                    findings.several("GroupNameMisplaced", subject, after, f"{stands} {key} of ")


def _role(group: GroupKey | None, metadata: Metadata) -> str:
    if group is not None and group.api_group == YUNIKORN:
        return task_group(metadata)
    return _first(metadata.annotations, (_ROLE,)) or _first(metadata.labels, (_ROLE,))


def _slot(gang: Gang, pod: PodManifest, *, counts: bool) -> Slot | None:
    labels = pod.metadata.labels or {}
    for index, (requirements, keys) in enumerate(gang.splitters if counts else ()):
        if keys and matches(requirements, labels):
            values = tuple(labels.get(key, "") for key in keys)
            if all(values):
                return index, values
    return None


def _roster_group(
    key: Key, pod: PodManifest, gangs: Mapping[GroupKey, Gang], findings: Findings, *, owners: bool
) -> GroupKey | None:
    group = named_group(pod, key.namespace, gangs, findings)
    if group is None and owners:
        group = _owner_gang(pod, key.namespace)
    if group is None or not is_daemon(pod.metadata):
        return group
    _note_stranger(key, group, gangs, findings)
    return None


def call_roster(
    pods: Iterable[PodManifest],
    ownership: Ownership,
    gangs: Mapping[GroupKey, Gang],
    priorities: Priorities,
    findings: Findings,
    *,
    owners: bool = False,
) -> list[PodEntry]:
    """Find the state and group of every pod, sorted; with ``owners`` its workload's where it names no PodGroup."""
    entries = []
    for key, pod, state in _present(pods, ownership):
        group = _roster_group(key, pod, gangs, findings, owners=owners)
        gang = gangs.get(group, _NO_GANG) if group is not None else _NO_GANG
        counts = state is not None or gang.group.key.api_group in _COUNTING_SUCCEEDED
        if not counts and gang is _NO_GANG:
            continue
        stated = priorities.stated(pod.spec, key) if state in _COUNTED else None
        slot = _slot(gang, pod, counts=counts)
        entries.append(PodEntry(pod, key, state, stated, group, _role(group, pod.metadata), slot, counts))
    return entries


def _note_stranger(pod: Key, group: GroupKey, gangs: Container[GroupKey], findings: Findings) -> None:
    """Whoever has a node could tie any gang to it by pods that belong to the node, so these are in none."""
    if group in gangs or group.api_group in (UPSTREAM, VOLCANO, COSCHEDULING, KAI, *_OWNERS):
        expected = "which are no members; expected pods that can run on other nodes"
        after = f": found static or DaemonSet pods, {expected}"
        findings.several("NoMember", f"Pod {pod}", after, f"{group} is named by ")


_JOBS = "batch"
_OWNERS = (JOB_SETS, LEADER_WORKER_SETS, _JOBS)
GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
JOB_EXCLUSIVE_TOPOLOGY = "alpha.jobset.sigs.k8s.io/exclusive-topology"
REPLICA_EXCLUSIVE_TOPOLOGY = "leaderworkerset.sigs.k8s.io/exclusive-topology"
SUB_GROUP_EXCLUSIVE_TOPOLOGY = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
SUB_GROUP_INDEX = "leaderworkerset.sigs.k8s.io/subgroup-index"


def _present(pods: Iterable[PodManifest], ownership: Ownership) -> Iterator[tuple[Key, PodManifest, PodState | None]]:
    keyed = [(Key(intern(pod.namespace), pod.name), pod) for pod in pods]
    for key, pod in sorted(keyed, key=itemgetter(0)):
        state = ownership.state(pod)
        if state is not None or has_succeeded(pod):
            yield key, pod, state


def _owner_gang(pod: PodManifest, namespace: str) -> GroupKey | None:
    labels = pod.metadata.labels or {}
    if labels.get(JOB_SET):
        return GroupKey(JOB_SETS, namespace, labels[JOB_SET])
    if labels.get(LEADER_WORKER_SET) and labels.get(GROUP_INDEX):
        return GroupKey(LEADER_WORKER_SETS, namespace, f"{labels[LEADER_WORKER_SET]}-{labels[GROUP_INDEX]}")
    owner = controller(pod.metadata)
    if owner is None or (owner.kind, owner.api_version.rpartition("/")[0]) != ("Job", _JOBS):
        return None
    indexed = COMPLETION_INDEX in labels or COMPLETION_INDEX in (pod.metadata.annotations or {})
    return GroupKey(_JOBS, namespace, owner.name) if indexed else None


def group_priority(
    gang: Gang, members: Iterable[PodEntry], default: int, findings: Findings, *, class_decides: bool
) -> int:
    """Priority of a waiting group: of its least urgent pod, since quotas on classes see pods alone.

    ``class_decides``: the class of the PodGroup decides, where it names one.
    """
    stated = [(entry.stated, entry.key) for entry in members if entry.stated is not None]
    if not stated or (class_decides and gang.priority is not None):
        return default if gang.priority is None else gang.priority
    _note_priorities(gang, stated, findings)
    return min(stated)[0]


def _note_priorities(gang: Gang, stated: Sequence[tuple[int, Key]], findings: Findings) -> None:
    (least, key), (most, other), subject = min(stated), max(stated), str(gang.group.key)
    if gang.priority is not None and gang.priority > least:
        message = f"{gang.priority_field} of {subject} is {gang.priority}, and Pod {key} states {least}, which counts"
        findings.add("PriorityAboveItsPods", subject, f"{message}: expected at most {least}")
    if most > least:
        message = f"pods of {subject} state priorities from {least} (Pod {key}) to {most} (Pod {other})"
        findings.add("PodsOfSeveralPriorities", subject, f"{message}; it waits with {least}")


def assemble(gang: Gang, members: Sequence[PodEntry], priority: int) -> tuple[Group, Mapping[Slot, int]]:
    """Put its pods, sorted, into a PodGroup; returns the index in ``sub_groups`` of each slot, too."""
    slots: dict[Slot, list[PodEntry]] = {}
    for entry in members:
        if entry.slot is not None:
            slots.setdefault(entry.slot, []).append(entry)
    ordered = sorted(slots, key=_natural)
    succeeded = Counter(entry.role for entry in members if entry.state is None and entry.counts)
    group = replace(
        gang.group,
        sub_groups=tuple(_sub_group(gang.group.policies, slot, slots[slot]) for slot in ordered),
        priority=priority,
        class_priority=gang.priority,
        pending=_keys(members, PodState.PENDING),
        bound=_keys(members, PodState.BOUND),
        succeeded=dict(sorted(succeeded.items())),
        finished=_keys(members, None),
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
    return slot[0], [(len(value) if value.isdecimal() else 0, value) for value in slot[1]]


def _keys(entries: Iterable[PodEntry], state: PodState | None) -> tuple[Key, ...]:
    return tuple(entry.key for entry in entries if entry.state is state)


def _first(values: Labels | None, names: Iterable[str]) -> str:
    if values:
        for name in names:
            if value := values.get(name):
                return value
    return ""


def _note_two_groups(subject: str, existing: Sequence[GroupKey], findings: Findings) -> None:
    if len(existing) > 1:
        named = " and ".join(f"{key.name} of {key.api_group}" for key in existing)
        findings.several("TwoGroups", subject, ", expected one; the first counts", f"PodGroup {named} are named by ")
