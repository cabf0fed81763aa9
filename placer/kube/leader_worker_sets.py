"""leaderworkerset.x-k8s.io LeaderWorkerSet (``api/leaderworkerset/v1``, v0.10): replicas of a leader and workers."""

from __future__ import annotations

from typing import Literal

from placer.kube.apps import ClaimTemplate
from placer.kube.base import Count, Positive, Schema, Work
from placer.kube.pod import PodTemplateSpec


class LeaderWorkerSubGroups(Schema, frozen=True, kw_only=True):
    """The leader is in the first subgroup, or in none."""

    sub_group_policy_type: Literal["LeaderWorker", "LeaderExcluded"] | None = None
    sub_group_size: Positive | None = None


class LeaderWorkerTemplate(Schema, frozen=True, kw_only=True):
    """A leader without a template is as the ``size`` - 1 workers are."""

    size: Positive | None = None
    leader_template: PodTemplateSpec | None = None
    worker_template: PodTemplateSpec
    sub_group_policy: LeaderWorkerSubGroups | None = None
    volume_claim_templates: tuple[ClaimTemplate, ...] | None = None


class LeaderWorkerNetwork(Schema, frozen=True, kw_only=True):
    subdomain_policy: str | None = None


class LeaderWorkerSetSpec(Schema, frozen=True, kw_only=True):
    """Replicas left out are 1."""

    replicas: Count | None = None
    startup_policy: Literal["LeaderCreated", "LeaderReady"] | None = None
    leader_worker_template: LeaderWorkerTemplate
    network_config: LeaderWorkerNetwork | None = None


LeaderWorkerSetManifest = Work[LeaderWorkerSetSpec]
