"""Use of each field of the kinds that placer reads; one that is declared is read, unless it stands here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple

from placer.kube.kinds import KindInfo, schema_in, type_fields, types_of
from placer.kube.reader import fields_of


class FieldClass(Enum):
    """Use of a field by placer."""

    READ = "read"
    IGNORED = "ignored"
    REFUSED = "refused"
    NEUTRAL = "limits nothing"


_IN_TREE = "how many pods or nodes may use the disk at once is not modelled"

#: Fields that may limit a pending pod and that no rule reads, with the case of a finding: ``FieldIgnored``, where the
#: words name no other.
IGNORED: Mapping[tuple[str, str], str] = {
    ("PodGroup.scheduling.volcano.sh/spec", "minResources"): "said where it is more than the group's pods ask for",
    ("PodGroup.scheduling.x-k8s.io/spec", "minResources"): "said where it is more than the group's pods ask for",
    **{
        ("Queue.scheduling.volcano.sh/spec", each): "`QueueShareIgnored`: queues share by `capability` alone"
        for each in ("deserved", "guarantee", "priority", "weight")
    },
    ("Queue.scheduling.volcano.sh/spec", "dequeueStrategy"): "`fifo`: a job waits for those before it in its queue",
    ("KaiPodGroupSpec", "queue"): "`UnsupportedKind`: a Queue of KAI is not read",
    ("PodSpec", "runtimeClassName"): "of pods that no API server has admitted: overhead and nodes of the RuntimeClass",
    **{
        (each, "preferredDuringSchedulingIgnoredDuringExecution"): "`PreferenceIgnored`: a preference"
        for each in ("NodeAffinity", "PodAffinity", "PodAntiAffinity")
    },
    **{
        ("Volume", each): _IN_TREE
        for each in ("awsElasticBlockStore", "azureDisk", "cinder", "gcePersistentDisk", "iscsi", "rbd")
    },
    ("ReplicaSet", "spec"): "`UnsupportedKind`: one without a Deployment is not expanded",
    ("ReplicatedJob", "scheduling"): "of JobSets that are expanded: the policy of the whole set counts",
    ("JobSpec", "managedBy"): "of Jobs that are expanded: another controller makes the pods, or none",
    ("JobSetSpec", "managedBy"): "of JobSets that are expanded: another controller makes the pods, or none",
}

#: Type and field for which a pod waits as ``Unsupported`` (C4), and when.
REFUSED: Mapping[tuple[str, str], str] = {
    ("PodSpec", "resourceClaims"): "devices allocated by claim",
    ("KaiPodGroupSpec", "minSubGroup"): "of subgroups of KAI",
    ("KaiPodGroupSpec", "subGroups"): "subgroups of KAI",
    ("KaiPodGroupSpec", "topologyConstraint"): "a topology of KAI",
    ("beta1PodGroupSpec", "parentCompositePodGroupName"): "a group of groups",
    **{
        ("PersistentVolumeClaimSpec", each): "a claim that is not Bound is refused, whatever it says"
        for each in (
            *("dataSource", "dataSourceRef", "resources", "selector", "storageClassName"),
            *("volumeAttributesClassName", "volumeMode"),
        )
    },
    ("Job.batch.volcano.sh/spec/volumes", "volumeClaim"): "its claim is not Bound",
}

NEUTRAL: Mapping[str, str] = {
    "AppGroup.appgroup.diktyo.x-k8s.io/status": "runningWorkloads",
    "ConfigMap": "binaryData immutable",
    "Container": (
        "args command env envFrom image imagePullPolicy lifecycle livenessProbe readinessProbe resizePolicy "
        "restartPolicyRules securityContext startupProbe stdin stdinOnce terminationMessagePath "
        "terminationMessagePolicy tty volumeDevices volumeMounts workingDir"
    ),
    "ContainerPort": "name",
    "ContainerStatus": (
        "allocatedResourcesStatus containerID image imageID lastState ready restartCount started state stopSignal user "
        "volumeMounts"
    ),
    "Deployment": "status",
    "DeploymentSpec": "minReadySeconds paused progressDeadlineSeconds revisionHistoryLimit strategy",
    "HyperNode.topology.volcano.sh": "status",
    "Job.batch.volcano.sh/spec": "maxRetry minSuccess plugins policies runningEstimate ttlSecondsAfterFinished",
    "Job.batch.volcano.sh/spec/tasks": "maxRetry policies",
    "Job.batch.volcano.sh/spec/tasks/dependsOn": "iteration",
    "Job.batch.volcano.sh/spec/volumes": "mountPath",
    "Job.batch.volcano.sh/status": (
        "conditions controlledResources failed minAvailable pending retryCount running runningDuration succeeded "
        "taskStatusCount terminating unknown version"
    ),
    "Job.batch.volcano.sh/status/state": "lastTransitionTime message reason",
    "JobCondition": "lastProbeTime lastTransitionTime message reason",
    "JobSchedulingConfiguration": "disruptionMode resourceClaims",
    "JobSetDependsOn": "status",
    "JobSetNetwork": "publishNotReadyAddresses",
    "JobSetVolumeClaimPolicy": "retentionPolicy",
    "JobSetSpec": "failurePolicy successPolicy ttlSecondsAfterFinished",
    "JobSpec": (
        "activeDeadlineSeconds backoffLimit backoffLimitPerIndex manualSelector maxFailedIndexes podFailurePolicy "
        "podReplacementPolicy selector successPolicy ttlSecondsAfterFinished"
    ),
    "JobStatus": (
        "active completedIndexes completionTime failed failedIndexes ready startTime succeeded terminating "
        "uncountedTerminatedPods"
    ),
    "KaiPodGroupSpec": (
        "backoffLimit completions markUnschedulable parallelism schedulingBackoff stalenessGracePeriod"
    ),
    "LeaderWorkerSet.leaderworkerset.x-k8s.io": "status",
    "LeaderWorkerSetSpec": "rolloutStrategy",
    "LeaderWorkerTemplate": "persistentVolumeClaimRetentionPolicy restartPolicy",
    "Namespace": "spec status",
    "NetworkTopology.networktopology.diktyo.x-k8s.io": "status",
    "NetworkTopology.networktopology.diktyo.x-k8s.io/spec/weights/topologyList/originList/costList": (
        "bandwidthAllocatable bandwidthAllocated"
    ),
    "NodeCondition": "lastHeartbeatTime lastTransitionTime message reason",
    "NodeResourceTopology.topology.node.k8s.io/v1alpha1/zones": "attributes parent",
    "NodeResourceTopology.topology.node.k8s.io/v1alpha2/zones": "attributes parent",
    "NodeSpec": "configSource externalID podCIDR podCIDRs podPreemptionPolicy providerID",
    "NodeStatus": (
        "addresses config daemonEndpoints declaredFeatures features images nodeInfo phase runtimeHandlers "
        "volumesAttached volumesInUse"
    ),
    "ObjectMeta": (
        "annotations clusterName creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers "
        "generateName generation labels managedFields name namespace ownerReferences resourceVersion selfLink uid"
    ),
    "OwnerReference": "blockOwnerDeletion",
    "PersistentVolume": "status",
    "PersistentVolumeClaim": "apiVersion kind spec status",
    "PersistentVolumeClaimStatus": (
        "accessModes allocatedResourceStatuses allocatedResources capacity conditions "
        "currentVolumeAttributesClassName healthStatus modifyVolumeStatus"
    ),
    "PersistentVolumeClaimVolumeSource": "readOnly",
    "PersistentVolumeSpec": (
        "accessModes awsElasticBlockStore azureDisk azureFile capacity cephfs cinder claimRef csi fc flexVolume "
        "flocker gcePersistentDisk glusterfs hostPath iscsi local mountOptions nfs persistentVolumeReclaimPolicy "
        "photonPersistentDisk portworxVolume quobyte rbd scaleIO storageClassName storageos volumeAttributesClassName "
        "volumeMode vsphereVolume"
    ),
    "PodCondition": "lastProbeTime message observedGeneration",
    "PodDisruptionBudgetSpec": "unhealthyPodEvictionPolicy",
    "PodDisruptionBudgetStatus": (
        "conditions currentHealthy desiredHealthy disruptedPods expectedPods observedGeneration"
    ),
    "PodGroup.scheduling.k8s.io/v1alpha2": "status",
    "PodGroup.scheduling.volcano.sh/status": "conditions failed running succeeded",
    "PodGroup.scheduling.run.ai": "status",
    "PodGroup.scheduling.x-k8s.io/status": "failed occupiedBy running scheduleStartTime succeeded",
    "PodGroup.scheduling.x-k8s.io/spec": "scheduleTimeoutSeconds",
    "PodSecurityContext": (
        "appArmorProfile fsGroup fsGroupChangePolicy runAsGroup runAsNonRoot runAsUser seLinuxChangePolicy "
        "seLinuxOptions seccompProfile supplementalGroups supplementalGroupsPolicy windowsOptions"
    ),
    "PodSpec": (
        "activeDeadlineSeconds automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks ephemeralContainers "
        "evictionResponders hostAliases hostIPC hostPID hostUsers hostname hostnameOverride imagePullSecrets "
        "readinessGates restartPolicy serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace "
        "subdomain terminationGracePeriodSeconds"
    ),
    "PodStatus": (
        "ephemeralContainerStatuses extendedResourceClaimStatus hostIP hostIPs message "
        "nodeAllocatableResourceClaimStatuses observedGeneration podIP podIPs qosClass reason resourceClaimStatuses "
        "volumeHealth"
    ),
    "PriorityClass": "description",
    "Queue.scheduling.volcano.sh/spec": "extendClusters type",
    "Queue.scheduling.volcano.sh/status": "allocated completed inqueue pending reservation running unknown",
    "ReplicaSet": "status",
    "ReplicatedJob": "groupName",
    "ResourceRequirements": "claims",
    "StatefulSet": "status",
    "StatefulSetSpec": (
        "minReadySeconds persistentVolumeClaimRetentionPolicy podManagementPolicy revisionHistoryLimit serviceName "
        "updateStrategy"
    ),
    "Sysctl": "value",
    "Taint": "timeAdded",
    "Toleration": "tolerationSeconds",
    "Volume": (
        "azureFile cephfs configMap csi downwardAPI emptyDir fc flexVolume flocker gitRepo glusterfs hostPath image "
        "nfs photonPersistentDisk portworxVolume projected quobyte scaleIO secret storageos vsphereVolume"
    ),
    "alpha1WorkloadSpec": "controllerRef",
    "alpha2PodGroupSpec": "podGroupTemplateRef resourceClaims",
    "alpha2WorkloadSpec": "controllerRef podGroupTemplates",
    "beta1PodGroup": "status",
    "beta1PodGroupSpec": "resourceClaims workloadRef",
    "beta1WorkloadSpec": "compositePodGroupTemplates controllerRef podGroupTemplates",
}


class FieldUse(NamedTuple):
    """One field of a kind; ``use`` None: unknown."""

    path: str
    at: tuple[str, str]
    use: FieldClass | None

    @property
    def words(self) -> str:
        """The table's words, if any."""
        return IGNORED.get(self.at, "") or REFUSED.get(self.at, "")


def field_uses(info: KindInfo) -> Iterator[FieldUse]:
    """Every field of a kind with its use, none below those that no rule reads."""
    for called in types_of(info).values():
        yield from _uses(called, info.model, "")


def _uses(called: str, model: Any, path: str) -> Iterator[FieldUse]:
    declared = {each.encode_name: each.type for each in fields_of(model)}
    for name, inner in type_fields(called).items():
        use, where = _use((called, name), name in declared), f"{path}.{name}" if path else name
        below = schema_in(declared[name]) if use is FieldClass.READ else None
        if below is None or not inner or inner in _ONCE:
            yield FieldUse(where, (called, name), use)
        else:
            yield from _uses(inner.removeprefix("*"), below, where)


#: Types that are shown once: the metadata of all objects, and the pod of templates.
_ONCE = ("PodTemplateSpec", "LabelSelector")


def _use(at: tuple[str, str], declared: bool) -> FieldClass | None:
    if at in IGNORED:
        return FieldClass.IGNORED
    if at in REFUSED:
        return FieldClass.REFUSED
    if declared:
        return FieldClass.READ
    return FieldClass.NEUTRAL if at[1] in NEUTRAL.get(at[0], "").split() else None
