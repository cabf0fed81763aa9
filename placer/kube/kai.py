"""scheduling.run.ai PodGroup: gangs as KAI's scheduler knows them.

Source: KAI-Scheduler ``pkg/apis/scheduling/v2alpha2/podgroup_types.go``.
"""

from __future__ import annotations

from placer.kube.base import Count, Present, Schema, Specified


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
