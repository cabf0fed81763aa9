"""scheduling.k8s.io PodGroup and Workload (KEP-4671), and scheduling.run.ai PodGroup: gangs of both.

In v1alpha1 (1.35) there is no PodGroup of Kubernetes: pods name a Workload, one of its pod groups and a key. Source:
KAI-Scheduler ``pkg/apis/scheduling/v2alpha2/podgroup_types.go``.
"""

from __future__ import annotations

from placer.kube.base import Count, Name, Positive, Present, Priority, Schema, Specified


class GangPolicy(Schema, frozen=True, kw_only=True):
    min_count: Positive | None = None


class UpstreamSchedulingPolicy(Schema, frozen=True, kw_only=True):
    """Pods one by one (``basic``), or as a gang; exactly one of them."""

    basic: Present | None = None
    gang: GangPolicy | None = None


class UpstreamTopologyConstraint(Schema, frozen=True, kw_only=True):
    """All pods of the group on nodes with one value of a label."""

    key: Name


class UpstreamSchedulingConstraints(Schema, frozen=True, kw_only=True):
    topology: tuple[UpstreamTopologyConstraint, ...] | None = None


class UpstreamScheduling(Schema, frozen=True, kw_only=True):
    """Without a ``minCount`` a gang is all pods that run at once."""

    scheduling_policy: UpstreamSchedulingPolicy | None = None
    scheduling_constraints: UpstreamSchedulingConstraints | None = None


class DisruptionMode(Schema, frozen=True, kw_only=True):
    """One by one (``single``) or together; exactly one of them."""

    single: Present | None = None
    all: Present | None = None


class UpstreamPodGroupSpec(UpstreamScheduling, frozen=True, kw_only=True):
    priority_class_name: str | None = None
    priority: Priority | None = None
    preemption_policy: str | None = None
    disruption_mode: str | DisruptionMode | None = None
    parent_composite_pod_group_name: str | None = None

    @property
    def is_disrupted_whole(self) -> bool:
        """Whether its pods are disturbed together: ``{all: {}}``, in v1alpha2 ``PodGroup``."""
        mode = self.disruption_mode
        return mode.all is not None if isinstance(mode, DisruptionMode) else mode in ("PodGroup", "all")


UpstreamPodGroupManifest = Specified[UpstreamPodGroupSpec]


class WorkloadPodGroup(Schema, frozen=True, kw_only=True):
    """A pod group inside a Workload of v1alpha1."""

    name: Name
    policy: UpstreamSchedulingPolicy | None = None


class WorkloadSchedulingSpec(Schema, frozen=True, kw_only=True):
    """Pod groups of v1alpha1; PodGroups are made from templates of later versions."""

    pod_groups: tuple[WorkloadPodGroup, ...] | None = None


WorkloadManifest = Specified[WorkloadSchedulingSpec]


class KaiTopologyConstraint(Schema, frozen=True, kw_only=True):
    """An empty one asks for nothing."""

    topology: str | None = None
    required_topology_level: str | None = None
    preferred_topology_level: str | None = None


class KaiPodGroupSpec(Schema, frozen=True, kw_only=True):
    min_member: Count | None = None
    queue: str | None = None
    priority_class_name: str | None = None
    sub_groups: tuple[Present, ...] | None = None
    topology_constraint: KaiTopologyConstraint | None = None
    preemptibility: str | None = None


KaiPodGroupManifest = Specified[KaiPodGroupSpec]
