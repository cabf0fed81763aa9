"""Volcano: PodGroup, Queue, Job and HyperNode, with the limits of the CRDs, not of the webhooks."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from placer.kube.base import (
    Count,
    LabelSelector,
    Named,
    ObjectBase,
    Phase,
    Positive,
    Problem,
    Quantities,
    Schema,
    SpecifiedWithStatus,
    WorkWithStatus,
)
from placer.kube.pod import PodTemplateSpec


class GangTopologySpec(Schema, frozen=True, kw_only=True):
    """A mode left out is hard."""

    mode: Literal["hard", "soft"] | None = None
    highest_tier_allowed: Count | None = None
    highest_tier_name: Annotated[str, Meta(max_length=253)] | None = None


class SubGroupPolicyEntry(Schema, frozen=True, kw_only=True):
    name: Annotated[str, Meta(max_length=253)] | None = None
    network_topology: GangTopologySpec | None = None
    sub_group_size: Positive | None = None
    min_sub_groups: Count | None = None
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None


class PodGroupSpec(Schema, frozen=True, kw_only=True):
    min_member: Count | None = None
    min_task_member: dict[str, Count] | None = None
    min_resources: Quantities | None = None
    queue: str | None = None
    priority_class_name: str | None = None
    network_topology: GangTopologySpec | None = None
    sub_group_policy: tuple[SubGroupPolicyEntry, ...] | None = None


PodGroupManifest = SpecifiedWithStatus[PodGroupSpec, Phase]


class Guarantee(Schema, frozen=True, kw_only=True):
    """Amounts that are kept free for a queue."""

    resource: Quantities | None = None


class NodeGroups(Schema, frozen=True, kw_only=True):
    """Node groups that a queue's pods must, or should, be on or keep off."""

    required: tuple[str, ...] | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[str, ...] | None = field(default=None, name="preferredDuringSchedulingIgnoredDuringExecution")


class QueueAffinity(Schema, frozen=True, kw_only=True):
    node_group_affinity: NodeGroups | None = None
    node_group_anti_affinity: NodeGroups | None = None


class QueueSpec(Schema, frozen=True, kw_only=True):
    weight: Annotated[int, Meta(ge=1, le=65535)] | None = None
    capability: Quantities | None = None
    guarantee: Guarantee | None = None
    deserved: Quantities | None = None
    parent: str | None = None
    priority: int | None = None
    dequeue_strategy: str | None = None
    reclaimable: bool | None = None
    affinity: QueueAffinity | None = None


class QueueStatus(Schema, frozen=True, kw_only=True):
    state: str | None = None


class QueueManifest(ObjectBase, frozen=True, kw_only=True):
    spec: QueueSpec | None = None
    status: QueueStatus | None = None


class PartitionPolicy(Schema, frozen=True, kw_only=True):
    total_partitions: Positive
    partition_size: Positive
    min_partitions: Count | None = None
    network_topology: GangTopologySpec | None = None


class DependsOn(Schema, frozen=True, kw_only=True):
    """Tasks that must have started before this one gets its pods."""

    name: tuple[str, ...] | None = None


class TaskEntry(Schema, frozen=True, kw_only=True):
    name: str | None = None
    replicas: Count | None = None
    min_available: Count | None = None
    template: PodTemplateSpec
    topology_policy: str | None = None
    depends_on: DependsOn | None = None
    partition_policy: PartitionPolicy | None = None


class JobVolume(Schema, frozen=True, kw_only=True):
    """A claim that all pods of a job mount."""

    volume_claim_name: str | None = None


class VolcanoJobSpec(Schema, frozen=True, kw_only=True):
    min_available: Count | None = None
    queue: str | None = None
    priority_class_name: str | None = None
    scheduler_name: str | None = None
    network_topology: GangTopologySpec | None = None
    tasks: tuple[TaskEntry, ...] | None = None
    volumes: tuple[JobVolume, ...] | None = None


class VolcanoJobStatus(Schema, frozen=True, kw_only=True):
    state: Phase | None = None


VolcanoJobManifest = WorkWithStatus[VolcanoJobSpec, VolcanoJobStatus]


class RegexMatch(Schema, frozen=True, kw_only=True):
    """Members whose name the pattern (RE2, unanchored) finds."""

    pattern: Annotated[str, Meta(min_length=1)]


class MemberSelector(Schema, frozen=True, kw_only=True):
    """Exactly one of the three."""

    exact_match: Named | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelector | None = None

    def __post_init__(self) -> None:
        given = sum(part is not None for part in (self.exact_match, self.regex_match, self.label_match))
        if given != 1:
            found = f"{given or 'none'} of them"
            raise Problem("exactly one of exactMatch, regexMatch and labelMatch", found)


class HyperNodeMember(Schema, frozen=True, kw_only=True):
    type: Literal["Node", "HyperNode"]
    selector: MemberSelector


class HyperNodeSpec(Schema, frozen=True, kw_only=True):
    """The lower the tier, the nearer the members."""

    tier: Count
    tier_name: Annotated[str, Meta(max_length=253)] | None = None
    members: Annotated[tuple[HyperNodeMember, ...], Meta(min_length=1)]


class HyperNodeManifest(ObjectBase, frozen=True, kw_only=True):
    spec: HyperNodeSpec
