"""Writes ``placer/kube/fields.json`` anew: every field of every kind that is read, whether placer reads it or not.

``python -m tests.write_fields``, after a definition in ``deploy/crds`` or the client library has changed. Kinds of
Kubernetes come from the models of its Python client, the others from their custom resource definitions.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "placer" / "kube" / "fields.json"

#: Kinds of Kubernetes that are read, and the client's model of each.
MODELS = {
    "Node": "V1Node",
    "Pod": "V1Pod",
    "ConfigMap": "V1ConfigMap",
    "Namespace": "V1Namespace",
    "PersistentVolumeClaim": "V1PersistentVolumeClaim",
    "PersistentVolume": "V1PersistentVolume",
    "PriorityClass.scheduling.k8s.io": "V1PriorityClass",
    "PodGroup.scheduling.k8s.io": "V1beta1PodGroup",
    "Workload.scheduling.k8s.io": "V1beta1Workload",
    "Deployment.apps": "V1Deployment",
    "StatefulSet.apps": "V1StatefulSet",
    "ReplicaSet.apps": "V1ReplicaSet",
    "Job.batch": "V1Job",
    "PodDisruptionBudget.policy": "V1PodDisruptionBudget",
}

#: Definitions of all other kinds but our own, whose schemas have every field that there is.
DEFINITIONS = (
    "deploy/crds/volcano/podgroups.yaml",
    "deploy/crds/volcano/queues.yaml",
    "deploy/crds/volcano/hypernodes.yaml",
    "tests/data/crds/batch.volcano.sh_jobs.yaml",
    "deploy/crds/scheduler-plugins/podgroups.yaml",
    "deploy/crds/scheduler-plugins/appgroups.yaml",
    "deploy/crds/scheduler-plugins/networktopologies.yaml",
    "deploy/crds/noderesourcetopology/noderesourcetopologies.yaml",
)

#: Fields that API servers serve or have served and that neither source has: type to fields.
BESIDES = {
    # scheduling.k8s.io/v1alpha1 (1.35); 1.36 has schedulingGroup in its place
    "PodSpec": "workloadRef:WorkloadReference",
    "WorkloadReference": "name podGroup podGroupReplicaKey",
    "beta1WorkloadSpec": "podGroups:WorkloadPodGroup",
    "WorkloadPodGroup": "name policy:beta1PodGroupSchedulingPolicy",
    # scheduling.k8s.io/v1alpha2 (1.36)
    "beta1PodGroupSpec": "podGroupTemplateRef:PodGroupTemplateReference",
    "PodGroupTemplateReference": "workload:beta1WorkloadReference",
    # before 1.31 a claim of a pod had its source one level deeper
    "PodResourceClaim": "source:ClaimSource",
    "ClaimSource": "resourceClaimName resourceClaimTemplateName",
    # 1.36
    "NodeAllocatableResourceClaimStatus": "resources",
    # up to 1.23
    "ObjectMeta": "clusterName",
    # KEP-260 spells what is left of a link so
    "NetworkTopology.networktopology.diktyo.x-k8s.io/spec/weights/topologyList/originList/costList": (
        "bandwidthAllocatable"
    ),
}

#: Kinds of which neither source has anything, from their types in Go; an empty type may have any field.
BY_HAND = {
    "JobSet.jobset.x-k8s.io": "apiVersion kind metadata:ObjectMeta spec:JobSetSpec status",
    "JobSetSpec": (
        "coordinator:JobSetCoordinator failurePolicy managedBy network:JobSetNetwork replicatedJobs:ReplicatedJob "
        "scheduling startupPolicy:JobSetStartupPolicy successPolicy suspend ttlSecondsAfterFinished volumeClaimPolicies"
    ),
    "ReplicatedJob": "dependsOn:JobSetDependsOn groupName name replicas scheduling template:JobTemplateSpec",
    "JobSetCoordinator": "jobIndex podIndex replicatedJob",
    "JobSetDependsOn": "name status",
    "JobSetNetwork": "enableDNSHostnames publishNotReadyAddresses subdomain",
    "JobSetStartupPolicy": "startupPolicyOrder",
    "LeaderWorkerSet.leaderworkerset.x-k8s.io": "apiVersion kind metadata:ObjectMeta spec:LeaderWorkerSetSpec status",
    "LeaderWorkerSetSpec": (
        "leaderWorkerTemplate:LeaderWorkerTemplate networkConfig:LeaderWorkerNetwork replicas rolloutStrategy "
        "startupPolicy"
    ),
    "LeaderWorkerTemplate": (
        "leaderTemplate:PodTemplateSpec persistentVolumeClaimRetentionPolicy restartPolicy size "
        "subGroupPolicy:LeaderWorkerSubGroups volumeClaimTemplates workerTemplate:PodTemplateSpec"
    ),
    "PodGroup.scheduling.run.ai": "apiVersion kind metadata:ObjectMeta spec:KaiPodGroupSpec status",
    "KaiPodGroupSpec": (
        "backoffLimit completions markUnschedulable minMember minSubGroup parallelism preemptibility priorityClassName "
        "queue schedulingBackoff stalenessGracePeriod subGroups topologyConstraint:KaiTopologyConstraint"
    ),
    "KaiTopologyConstraint": "preferredTopologyLevel requiredTopologyLevel topology",
    "LeaderWorkerNetwork": "subdomainPolicy",
    "LeaderWorkerSubGroups": "subGroupPolicyType subGroupSize",
}

SOURCES = [
    {
        "name": "kubernetes (the Python client)",
        "version": importlib.metadata.version("kubernetes"),
        "licence": "Apache-2.0, The Kubernetes Authors",
        "kinds": list(MODELS),
    },
    {
        "name": "volcano.sh/volcano",
        "version": "v1.15.1",
        "licence": "Apache-2.0, The Volcano Authors",
        "kinds": [
            "PodGroup.scheduling.volcano.sh",
            "Queue.scheduling.volcano.sh",
            "HyperNode.topology.volcano.sh",
            "Job.batch.volcano.sh",
        ],
    },
    {
        "name": "sigs.k8s.io/scheduler-plugins",
        "version": "v0.33.5",
        "licence": "Apache-2.0, The Kubernetes Authors",
        "kinds": [
            "PodGroup.scheduling.x-k8s.io",
            "AppGroup.appgroup.diktyo.x-k8s.io",
            "NetworkTopology.networktopology.diktyo.x-k8s.io",
        ],
    },
    {
        "name": "github.com/k8stopologyawareschedwg/noderesourcetopology-api",
        "version": "v0.1.2",
        "licence": "Apache-2.0, the authors of noderesourcetopology-api",
        "kinds": ["NodeResourceTopology.topology.node.k8s.io"],
    },
    {
        "name": "sigs.k8s.io/jobset (names of fields)",
        "version": "v0.12.0",
        "licence": "Apache-2.0, The Kubernetes Authors",
        "kinds": ["JobSet.jobset.x-k8s.io"],
    },
    {
        "name": "sigs.k8s.io/lws (names of fields)",
        "version": "v0.10.0",
        "licence": "Apache-2.0, The Kubernetes Authors",
        "kinds": ["LeaderWorkerSet.leaderworkerset.x-k8s.io"],
    },
    {
        "name": "github.com/kai-scheduler/KAI-Scheduler (names of fields)",
        "version": "v0.17",
        "licence": "Apache-2.0, NVIDIA Corporation",
        "kinds": ["PodGroup.scheduling.run.ai"],
    },
]

Types = dict[str, dict[str, str]]


def document() -> dict[str, Any]:
    """The whole file: where the fields are from, the type of each kind, the fields of each type."""
    types: Types = {}
    kinds = {kind: _of_model(model, types) for kind, model in MODELS.items()}
    for path in DEFINITIONS:
        definition = yaml.safe_load((ROOT / path).read_text())["spec"]
        kind = f"{definition['names']['kind']}.{definition['group']}"
        kinds[kind] = kind
        for version in definition["versions"]:  # a field that one version has is known in all
            _of_schema(version["schema"]["openAPIV3Schema"], kind, types)
    _of_model("V1JobTemplateSpec", types)
    kinds |= {name: name for name in BY_HAND if "." in name}
    for name, words in (*BESIDES.items(), *BY_HAND.items()):
        fields = types.setdefault(name, {})
        for field, _, inner in (word.partition(":") for word in words.split()):
            fields[field] = inner
    lines = {name: " ".join(_words(fields)) for name, fields in sorted(types.items())}
    return {"sources": SOURCES, "kinds": kinds, "types": lines}


def _words(fields: dict[str, str]) -> Iterator[str]:
    return (f"{field}:{inner}" if inner else field for field, inner in sorted(fields.items()))


def _of_model(name: str, types: Types) -> str:
    """Note the fields of one of the client's models and of all models in it; say what its type is called."""
    from kubernetes.client import models

    called = re.sub(r"^V\d", "", name)
    if called not in types:
        model = getattr(models, name)
        types[called] = {}
        for attribute, words in model.openapi_types.items():
            inner = re.search(r"\w*V\d\w+", words)
            # What managers note is theirs; a type within itself may be as deep as it likes.
            if inner is None or attribute == "managed_fields" or inner[0] == name:
                of_field = ""
            else:
                of_field = ("*" if words.lower().startswith("dict") else "") + _of_model(inner[0], types)
            types[called][model.attribute_map[attribute]] = of_field
    return called


def _of_schema(schema: dict[str, Any], name: str, types: Types) -> str:
    """Note the fields of one part of a definition; say what its type is called, empty where anything may stand."""
    while "items" in schema:
        schema = schema["items"]
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        inner = _of_schema(values, name, types)
        return f"*{inner}" if inner else ""
    if "properties" not in schema:
        return ""
    fields = types.setdefault(name, {})
    for field, part in schema["properties"].items():
        if field == "metadata":
            fields[field] = "ObjectMeta"
        elif field == "template":
            fields[field] = "PodTemplateSpec"
        else:
            fields[field] = _of_schema(part, f"{name}/{field}", types)
    return name


def text() -> str:
    """The file's text, one type a line."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text())
