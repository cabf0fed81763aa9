"""Kinds that placer does not read, and that make pods or limit them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from placer.kube import marks

WORKLOADS = frozenset(
    (
        ("", "ReplicationController"),
        ("agents.x-k8s.io", "Sandbox"),
        ("apps", "DaemonSet"),
        ("apps.kruise.io", "CloneSet"),
        ("apps.kruise.io", "StatefulSet"),
        ("argoproj.io", "Rollout"),
        ("argoproj.io", "Workflow"),
        ("flink.apache.org", "FlinkDeployment"),
        ("flow.volcano.sh", "JobFlow"),
        *(("kubeflow.org", f"{each}Job") for each in ("JAX", "MPI", "MX", "Paddle", "PyTorch", "TF", "XGBoost")),
        *(("ray.io", kind) for kind in ("RayCluster", "RayJob", "RayService")),
        ("serving.kserve.io", "InferenceService"),
        ("sparkoperator.k8s.io", "SparkApplication"),
        *(("tekton.dev", kind) for kind in ("PipelineRun", "TaskRun")),
        ("trainer.kubeflow.org", "TrainJob"),
        ("workload.codeflare.dev", "AppWrapper"),
    )
)
KUEUE_QUEUES = (marks.KUEUE_QUEUE, marks.KUEUE_LOCAL_QUEUE)
#: Kinds of Kueue of which the spec is kept.
KUEUE_KINDS = ("LocalQueue", "ClusterQueue", "ResourceFlavor", "Topology")
KUEUE_GATES = ("kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology")

_ENDED = frozenset(("complete", "completed", "error", "failed", "finished", "stopped", "succeeded"))
_STATES = (("phase",), ("jobStatus",), ("jobDeploymentStatus",), ("applicationState", "state"))


@dataclass(frozen=True, slots=True)
class UnreadWorkload:
    """A workload of which no pods are made."""

    group: str
    kind: str
    namespace: str
    name: str
    suspended: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


def read_workload(group: str, kind: str, document: Mapping[str, Any]) -> UnreadWorkload | None:
    """The fields that are looked at; None where the workload makes no pods any more."""
    metadata, spec, status = (_part(document, key) for key in ("metadata", "spec", "status"))
    if metadata.get("deletionTimestamp") or _has_ended(status):
        return None
    labels, annotations = (_texts(_part(metadata, key)) for key in ("labels", "annotations"))
    suspended = spec.get("suspend") is True or _part(spec, "runPolicy").get("suspend") is True
    names = (str(metadata.get("namespace") or "default"), str(metadata.get("name") or ""))
    return UnreadWorkload(group, kind, *names, suspended, labels, annotations)


def kueue_queue(labels: Mapping[str, str] | None) -> str:
    """The queue of Kueue that labels name; empty: none."""
    return next((labels[key] for key in KUEUE_QUEUES if labels.get(key)), "") if labels else ""


def kueue_spec(namespace: str, kind: str, name: str, document: Mapping[str, Any]) -> tuple[tuple[str, str], Any]:
    """An object by its kind and name, that of a LocalQueue with the namespace; and its spec."""
    full = f"{namespace or 'default'}/{name}" if kind == "LocalQueue" else name
    return (kind, full), _part(document, "spec")


def extended_resource(device_class: Mapping[str, Any]) -> str:
    """Resource that a DeviceClass serves; empty: none."""
    name = _part(device_class, "spec").get("extendedResourceName")
    return name if isinstance(name, str) else ""


def _has_ended(status: Mapping[str, Any]) -> bool:
    conditions = status.get("conditions")
    for each in conditions if isinstance(conditions, list) else ():
        if isinstance(each, dict) and str(each.get("type")).lower() in _ENDED and each.get("status") == "True":
            return True
    for *above, last in _STATES:
        part = status
        for step in above:
            part = _part(part, step)
        if str(part.get(last)).lower() in _ENDED:
            return True
    return False


def _part(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = value.get(key)
    return part if isinstance(part, dict) else {}


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {key: value for key, value in values.items() if isinstance(value, str)}


@dataclass(frozen=True, slots=True)
class UnreadLimit:
    """A kind whose objects limit pods.

    ``groups``: the first one is in use. ``marks``: by which a pod, or its workload, names one. ``plain_marks``: of
    YuniKorn. ``of_namespace``: all pods of its namespace are limited. ``on_making``: pods are limited when they are
    made.
    """

    kind: str
    groups: tuple[str, ...] = ()
    plural: str = ""
    marks: tuple[str, ...] = ()
    plain_marks: tuple[str, ...] = ()
    of_namespace: bool = False
    namespace_marks: tuple[str, ...] = ()
    on_making: bool = False

    @property
    def full(self) -> str:
        """Kind and group, as findings call it."""
        return ".".join(each for each in (self.kind, *self.groups[:1]) if each)


LIMITS = (
    UnreadLimit("LocalQueue", ("kueue.x-k8s.io",), "localqueues", KUEUE_QUEUES),
    UnreadLimit("Queue", ("scheduling.run.ai",), "queues", (marks.KAI_QUEUE, marks.RUNAI_QUEUE)),
    UnreadLimit(
        "ElasticQuota",
        ("scheduling.x-k8s.io", "scheduling.sigs.k8s.io", "scheduling.sigs.x-k8s.io"),
        "elasticquotas",
        (marks.KOORDINATOR_QUOTA,),
        of_namespace=True,
    ),
    UnreadLimit(
        "queue of YuniKorn",
        marks=(marks.YUNIKORN_QUEUE,),
        plain_marks=(marks.YUNIKORN_PLAIN_QUEUE,),
        namespace_marks=marks.YUNIKORN_QUOTAS,
    ),
    UnreadLimit("node selector of a Namespace", namespace_marks=marks.NAMESPACE_SELECTORS, on_making=True),
    UnreadLimit("ResourceQuota", ("",), "resourcequotas", of_namespace=True, on_making=True),
    UnreadLimit("LimitRange", ("",), "limitranges", of_namespace=True, on_making=True),
)
