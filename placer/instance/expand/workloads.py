"""Deployment, StatefulSet and batch Job to pods, with the labels that their controllers set.

Source: kubernetes ``pkg/controller/statefulset`` (identity, claims), ``pkg/controller/job`` (labels, completion index).
"""

from __future__ import annotations

from placer.instance.expand.blueprint import Blueprint, Marks
from placer.kube.apps import DeploymentManifest, JobManifest, StatefulSetManifest

__all__ = ["deployment", "finished", "job", "stateful_set"]

_TEMPLATE = ("spec", "template")
_INDEX = "batch.kubernetes.io/job-completion-index"


def deployment(workload: DeploymentManifest) -> Blueprint:
    """Pods of a Deployment; the hash of the template, which only its controller can tell, is left out."""
    count = 1 if workload.spec.replicas is None else workload.spec.replicas
    return Blueprint(workload, _TEMPLATE, workload.spec.template, workload.name, range(count))


def stateful_set(workload: StatefulSetManifest) -> Blueprint:
    """Pods of a StatefulSet, numbered from ``spec.ordinals.start``, each with claims of its own."""
    spec = workload.spec
    count = 1 if spec.replicas is None else spec.replicas
    start = (spec.ordinals.start if spec.ordinals is not None else None) or 0
    names = [template.metadata.name for template in spec.volume_claim_templates or ()]
    return Blueprint(
        workload,
        _TEMPLATE,
        spec.template,
        workload.name,
        range(start, start + count),
        labels=Marks(numbered={"apps.kubernetes.io/pod-index": 1}, named=("statefulset.kubernetes.io/pod-name",)),
        hostname=True,
        claims={name: f"{name}-{{pod}}" for name in names},
    )


def job(workload: JobManifest) -> Blueprint:
    """Pods of a batch Job: as many as may run at once, and no more than are to complete."""
    spec, uid = workload.spec, workload.metadata.uid
    parallelism = spec.parallelism
    if parallelism is None:
        parallelism = 1
    count = parallelism if spec.completions is None else min(parallelism, spec.completions)
    labels = {"job-name": workload.name, "batch.kubernetes.io/job-name": workload.name}
    if uid:
        labels |= {"controller-uid": uid, "batch.kubernetes.io/controller-uid": uid}
    indexed = {_INDEX: 1} if spec.completion_mode == "Indexed" else {}
    return Blueprint(
        workload,
        _TEMPLATE,
        spec.template,
        workload.name,
        range(0 if spec.suspend else count),
        labels=Marks(labels, indexed),
        annotations=Marks(numbered=indexed),
        hostname=bool(indexed),
    )


def finished(workload: JobManifest) -> bool:
    """Whether a batch Job makes no more pods."""
    conditions = (workload.status.conditions if workload.status is not None else None) or ()
    return any(each.type in ("Complete", "Failed") and each.status == "True" for each in conditions)
