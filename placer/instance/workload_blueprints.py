"""Pods of Deployments, StatefulSets and batch Jobs (kubernetes ``pkg/controller/{statefulset,job}``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.instance.blueprints import Blueprint, Marks, upstream_pod_group
from placer.instance.gangs import COMPLETION_INDEX, names_group

if TYPE_CHECKING:
    from placer.kube.apps import DeploymentManifest, JobManifest, JobSpec, StatefulSetManifest
    from placer.kube.scheduling import UpstreamPodGroupManifest

_TEMPLATE_PATH = ("spec", "template")


def deployment_blueprint(workload: DeploymentManifest) -> Blueprint:
    """Pods of a Deployment, without the hash of the template."""
    count = 1 if workload.spec.replicas is None else workload.spec.replicas
    return Blueprint(workload, _TEMPLATE_PATH, workload.spec.template, workload.name, range(count))


def stateful_set_blueprint(workload: StatefulSetManifest) -> Blueprint:
    """Pods of a StatefulSet, numbered from ``spec.ordinals.start``, each with claims of its own."""
    spec = workload.spec
    count = 1 if spec.replicas is None else spec.replicas
    start = (spec.ordinals.start if spec.ordinals is not None else None) or 0
    names = [template.metadata.name for template in spec.volume_claim_templates or ()]
    return Blueprint(
        workload,
        _TEMPLATE_PATH,
        spec.template,
        workload.name,
        range(start, start + count),
        labels=Marks(numbered={"apps.kubernetes.io/pod-index": 1}, named=("statefulset.kubernetes.io/pod-name",)),
        hostname=True,
        claims={name: f"{name}-{{pod}}" for name in names},
    )


def job_blueprint(workload: JobManifest) -> Blueprint:
    """Pods of a batch Job: as many as may run at once."""
    spec, uid = workload.spec, workload.metadata.uid
    labels = {"job-name": workload.name, "batch.kubernetes.io/job-name": workload.name}
    if uid:
        labels |= {"controller-uid": uid, "batch.kubernetes.io/controller-uid": uid}
    indexed = {COMPLETION_INDEX: 1} if spec.completion_mode == "Indexed" else {}
    return Blueprint(
        workload,
        _TEMPLATE_PATH,
        spec.template,
        workload.name,
        range(0 if spec.suspend else job_size(spec)),
        labels=Marks(labels, indexed),
        annotations=Marks(numbered=indexed),
        hostname=bool(indexed),
        pod_group=None if spec.scheduling is None or names_group(spec.template) else workload.name,
    )


def job_pod_groups(workload: JobManifest) -> tuple[UpstreamPodGroupManifest, ...]:
    """The PodGroup of a batch Job with a scheduling field."""
    spec = workload.spec
    if spec.scheduling is None or names_group(spec.template):
        return ()
    said, priority_class = spec.scheduling, spec.template.spec.priority_class_name
    policy, constraints = said.scheduling_policy, said.scheduling_constraints
    return (upstream_pod_group(workload, workload.name, job_size(spec), policy, constraints, priority_class),)


def job_size(spec: JobSpec) -> int:
    """How many pods of a batch Job run at once."""
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    return parallelism if spec.completions is None else min(parallelism, spec.completions)


def job_finished(workload: JobManifest) -> bool:
    """Whether a batch Job makes no more pods."""
    conditions = (workload.status.conditions if workload.status is not None else None) or ()
    return any(each.type in ("Complete", "Failed") and each.status == "True" for each in conditions)
