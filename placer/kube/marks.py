"""Marks of other systems that state a gang, a topology, a limit or a protection: one row each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum


class Place(Enum):
    """Where a mark stands."""

    LABEL = "label"
    ANNOTATION = "annotation"
    FIELD = "field"
    KIND = "kind"


class Meaning(Enum):
    """Meaning of a mark to placer."""

    GANG = "gang"
    TOPOLOGY = "topology"
    NODES = "nodes"
    PROTECTED = "protected"
    REFUSED = "refused"
    IGNORED = "ignored"


class Holds(Enum):
    """Content of a mark's value, for code that replaces names in it."""

    WORD = "word"  #: a number, or a word that the system knows
    NAME = "name"
    KEY = "key"  #: of a label of nodes
    JSON = "JSON"


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark of another system.

    ``name``: key, path of the field, or API group of the kind. ``on``: kinds of objects that bear it. ``reading``:
    consequence for users.
    """

    name: str
    place: Place
    on: tuple[str, ...]
    system: str
    meaning: Meaning
    reading: str
    value: Holds = Holds.WORD


# Gangs, in the order in which they count where one pod bears several.
LIGHT_NAME = "pod-group.scheduling.sigs.k8s.io/name"
LIGHT_MINIMUM = "pod-group.scheduling.sigs.k8s.io/min-available"
KOORDINATOR_GANG = "gang.scheduling.koordinator.sh/name"
KOORDINATOR_MINIMUM = "gang.scheduling.koordinator.sh/min-available"
KOORDINATOR_TOTAL = "gang.scheduling.koordinator.sh/total-number"
KOORDINATOR_MODE = "gang.scheduling.koordinator.sh/mode"
KOORDINATOR_MATCH = "gang.scheduling.koordinator.sh/match-policy"
LIGHT_MATCH = "pod-group.scheduling.sigs.k8s.io/match-policy"
KOORDINATOR_GROUPS = "gang.scheduling.koordinator.sh/groups"
LIGHT_GROUPS = "pod-group.scheduling.sigs.k8s.io/groups"
KOORDINATOR_TOPOLOGY = "gang.scheduling.koordinator.sh/network-topology-spec"
KUEUE_GROUP = "kueue.x-k8s.io/pod-group-name"
KUEUE_TOTAL = "kueue.x-k8s.io/pod-group-total-count"
KUEUE_FAST = "kueue.x-k8s.io/pod-group-fast-admission"
YUNIKORN_APP_ID = "yunikorn.apache.org/app-id"
YUNIKORN_APPLICATION = "applicationId"
SPARK_APPLICATION = "spark-app-selector"
YUNIKORN_TASK_GROUP = "yunikorn.apache.org/task-group-name"
YUNIKORN_TASK_GROUPS = "yunikorn.apache.org/task-groups"
YUNIKORN_PLACEHOLDER = "yunikorn.apache.org/placeholder"
VOLCANO_GROUP_MINIMUM = "scheduling.volcano.sh/group-min-member"
VOLCANO_TOPOLOGY_MODE = "volcano.sh/network-topology-mode"
VOLCANO_TOPOLOGY_TIER = "volcano.sh/network-topology-highest-tier"
KAI_GROUP = "pod-group-name"
GROVE_GANG = "grove.io/podgang"

# Topology, nodes and shares of GPUs
KUEUE_REQUIRED = "kueue.x-k8s.io/podset-required-topology"
KUEUE_PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"
KUEUE_UNCONSTRAINED = "kueue.x-k8s.io/podset-unconstrained-topology"
KUEUE_POD_SET_GROUP = "kueue.x-k8s.io/podset-group-name"
KUEUE_SLICE = "kueue.x-k8s.io/podset-slice-required-topology"
KUEUE_SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"
KUEUE_SLICE_LAYERS = "kueue.x-k8s.io/podset-slice-required-topology-constraints"
KUEUE_WORKLOAD = "kueue.x-k8s.io/workload"
KUEUE_POD_SET = "kueue.x-k8s.io/podset"
NODE_GROUP = "volcano.sh/nodegroup-name"
VOLCANO_NUMA = "volcano.sh/numa-topology-policy"
KAI_REQUIRED = "kai.scheduler/topology-required-placement"
KAI_SEGMENT_REQUIRED = "kai.scheduler/segment-topology-required-placement"
KAI_PREFERRED = "kai.scheduler/topology-preferred-placement"
KAI_FRACTION = "gpu-fraction"
KAI_MEMORY = "gpu-memory"
KAI_DEVICES = "gpu-fraction-num-devices"
SIMULATED_MEMORY = "alibabacloud.com/gpu-mem"
SIMULATED_COUNT = "alibabacloud.com/gpu-count"
SIMULATED_SHARE = "alibabacloud.com/gpu-milli"
FUSION_MEMORY = "tensor-fusion.ai/vram-request"
FUSION_SPEED = "tensor-fusion.ai/tflops-request"
FUSION_COMPUTE = "tensor-fusion.ai/compute-percent-request"
KUBESHARE_REQUEST = "sharedgpu/gpu_request"
KUBESHARE_MEMORY = "sharedgpu/gpu_mem"
ALIYUN_MEMORY = "aliyun.com/gpu-mem"
VGPU_NUMBER, VGPU_MEMORY, VGPU_CORES = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"
HAMI_MEMORY, HAMI_CORES, HAMI_PERCENT = "nvidia.com/gpumem", "nvidia.com/gpucores", "nvidia.com/gpumem-percentage"
#: Annotations and labels of pods that state a share of GPUs which their requests do not.
SHARES = (
    *(ALIYUN_MEMORY, VGPU_NUMBER, VGPU_MEMORY, VGPU_CORES, HAMI_MEMORY, HAMI_CORES, HAMI_PERCENT),
    *(KAI_FRACTION, KAI_MEMORY, KAI_DEVICES, SIMULATED_MEMORY, SIMULATED_COUNT, SIMULATED_SHARE),
    *(FUSION_MEMORY, FUSION_SPEED, FUSION_COMPUTE, KUBESHARE_REQUEST, KUBESHARE_MEMORY),
)
KAI_TOPOLOGIES = (KAI_REQUIRED, KAI_SEGMENT_REQUIRED)
SLICES = (KUEUE_SLICE, KUEUE_SLICE_SIZE, KUEUE_SLICE_LAYERS)

# Protection
VOLCANO_PREEMPTABLE = "volcano.sh/preemptable"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
DO_NOT_EVICT = "karpenter.sh/do-not-evict"
KAI_PREEMPTIBILITY = "kai.scheduler/preemptibility"
KAI_FIELD = "spec.preemptibility"
KOORDINATOR_QOS = "koordinator.sh/qosClass"
YUNIKORN_PREEMPTION = "yunikorn.apache.org/allow-preemption"
KOORDINATOR_PREEMPTIBLE = "quota.scheduling.koordinator.sh/preemptible"
KOORDINATOR_NO_VICTIM = "scheduling.koordinator.sh/disable-preemptible"
KOORDINATOR_COST = "scheduling.koordinator.sh/eviction-cost"

# Queues and quotas that are not read
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
KUEUE_LOCAL_QUEUE = "kueue.x-k8s.io/local-queue-name"
KAI_QUEUE = "kai.scheduler/queue"
RUNAI_QUEUE = "runai/queue"
KOORDINATOR_QUOTA = "quota.scheduling.koordinator.sh/name"
YUNIKORN_QUEUE = "yunikorn.apache.org/queue"
YUNIKORN_PLAIN_QUEUE = "queue"
YUNIKORN_QUOTAS = (
    *("yunikorn.apache.org/namespace.quota", "yunikorn.apache.org/namespace.max.cpu"),
    *("yunikorn.apache.org/namespace.max.memory", "yunikorn.apache.org/namespace.maxApps"),
    "yunikorn.apache.org/parentqueue",
)
NAMESPACE_SELECTORS = ("scheduler.alpha.kubernetes.io/node-selector", "openshift.io/node-selector")

_POD, _BOTH, _QUEUE = ("Pod",), ("Pod", "PodGroup"), ("Queue",)
_WORK = ("Pod", "Deployment", "ReplicaSet", "StatefulSet", "Job")
#: Pods, and the workloads whose own marks KAI and Kueue read, those of kinds that are not read included.
_OWNERS = (*_WORK, "JobSet", "LeaderWorkerSet")
_LIGHT = "coscheduling, Koordinator"
#: Koordinator's cost of a pod that is never evicted.
_NEVER = "2147483647"
_UNREAD = "UnsupportedKind: its limits decide nothing"
_RUNNING = ("Pod", "PodGroup", "Job")
_IGNORED, _PREFERENCE = "FieldIgnored", "PreferenceIgnored"
_NAMESPACE = ("Namespace",)
_SHARE, _ALSO = "Unsupported: a share that no resource states", "Unsupported, unless also requested"
_TOGETHER, _SLICED = "Unsupported: gangs admitted together", "Unsupported: slices are not modelled"
_OF_KAI, _NO_LABEL = "Unsupported: a topology of KAI", "the same, where no label says it"
_GATHER = "MustGather: Unsupported; PreferGather: ignored"
_FALSE, _TRUE = "false: D2, never disturbed", "true: D2, never disturbed"
_GANG, _REFUSED, _TOPOLOGY = Meaning.GANG, Meaning.REFUSED, Meaning.TOPOLOGY
_NODES, _PROTECTED, _SKIPPED = Meaning.NODES, Meaning.PROTECTED, Meaning.IGNORED
_LABEL, _NOTE, _FIELD, _KIND = Place.LABEL, Place.ANNOTATION, Place.FIELD, Place.KIND

#: Every mark, in the order in which it counts.
MARKS: tuple[Mark, ...] = (
    Mark(LIGHT_NAME, _LABEL, _POD, _LIGHT, _GANG, "a gang of that name", Holds.NAME),
    Mark(LIGHT_MINIMUM, _LABEL, _POD, _LIGHT, _GANG, "its minMember, the largest of its pods"),
    Mark(KOORDINATOR_GANG, _NOTE, _POD, "Koordinator", _GANG, "a gang of that name", Holds.NAME),
    Mark(KOORDINATOR_MINIMUM, _NOTE, _POD, "Koordinator", _GANG, "its minMember, 1 where it is left out"),
    Mark(KOORDINATOR_TOTAL, _NOTE, _POD, "Koordinator", _GANG, "GangIncomplete while fewer pods exist"),
    Mark(KOORDINATOR_MATCH, _NOTE, _BOTH, "Koordinator", _REFUSED, "only-waiting is Unsupported, others are C5"),
    Mark(LIGHT_MATCH, _NOTE, _BOTH, "Koordinator", _REFUSED, "the same, where no annotation above says it"),
    Mark(KOORDINATOR_MODE, _NOTE, _BOTH, "Koordinator", _SKIPPED, "NonStrict: placed whole all the same"),
    Mark(KOORDINATOR_GROUPS, _NOTE, _BOTH, "Koordinator", _REFUSED, _TOGETHER, Holds.JSON),
    Mark(LIGHT_GROUPS, _NOTE, _BOTH, "Koordinator, ACK", _REFUSED, _TOGETHER, Holds.JSON),
    Mark(KOORDINATOR_TOPOLOGY, _NOTE, _BOTH, "Koordinator", _REFUSED, _GATHER, Holds.JSON),
    Mark(KUEUE_GROUP, _LABEL, _POD, "Kueue", _GANG, "a gang of that name", Holds.NAME),
    Mark(KUEUE_TOTAL, _NOTE, _POD, "Kueue", _GANG, "its minMember; succeeded pods count as placed"),
    Mark(KUEUE_FAST, _NOTE, _POD, "Kueue", _GANG, "its minMember is 1"),
    Mark(YUNIKORN_APP_ID, _LABEL, _POD, "YuniKorn", _GANG, "the gang of pods that name a task group", Holds.NAME),
    Mark(YUNIKORN_APP_ID, _NOTE, _POD, "YuniKorn", _GANG, _NO_LABEL, Holds.NAME),
    Mark(YUNIKORN_APPLICATION, _LABEL, _POD, "YuniKorn", _GANG, "the same, where no app-id is stated", Holds.NAME),
    Mark(YUNIKORN_APPLICATION, _NOTE, _POD, "YuniKorn", _GANG, _NO_LABEL, Holds.NAME),
    Mark(SPARK_APPLICATION, _LABEL, _POD, "YuniKorn", _GANG, "the same, where nothing above says it", Holds.NAME),
    Mark(
        YUNIKORN_TASK_GROUP, _NOTE, _POD, "YuniKorn", _GANG, "the pod's role in the gang of its application", Holds.NAME
    ),
    Mark(YUNIKORN_TASK_GROUPS, _NOTE, _POD, "YuniKorn", _GANG, "least pods of each role of that gang", Holds.JSON),
    Mark(YUNIKORN_PLACEHOLDER, _NOTE, _POD, "YuniKorn", _GANG, "placeholders are pods like others"),
    Mark(VOLCANO_GROUP_MINIMUM, _NOTE, _WORK, "Volcano", _GANG, "minMember of the gang of the pod's owner"),
    Mark(VOLCANO_TOPOLOGY_MODE, _NOTE, _POD, "Volcano", _TOPOLOGY, "C7 of the gang of the pod's owner"),
    Mark(VOLCANO_TOPOLOGY_TIER, _NOTE, _POD, "Volcano", _TOPOLOGY, "its tier limit, the lowest of its pods"),
    Mark(KAI_GROUP, _NOTE, _POD, "KAI", _GANG, "the PodGroup of scheduling.run.ai of this name", Holds.NAME),
    Mark(GROVE_GANG, _LABEL, _POD, "Grove", _REFUSED, "Unsupported: a PodGang is not read", Holds.NAME),
    Mark("scheduler.grove.io", _KIND, ("PodGang",), "Grove", _REFUSED, "Unsupported"),
    Mark("scheduling.k8s.io", _KIND, ("CompositePodGroup",), "Kubernetes", _REFUSED, "Unsupported"),
    Mark(KUEUE_REQUIRED, _NOTE, _POD, "Kueue", _TOPOLOGY, "C7 by label: its pod set in one domain", Holds.KEY),
    Mark(KUEUE_POD_SET_GROUP, _NOTE, _POD, "Kueue", _TOPOLOGY, "pod sets of one name are one", Holds.NAME),
    Mark(KUEUE_PREFERRED, _NOTE, _POD, "Kueue", _SKIPPED, _PREFERENCE, Holds.KEY),
    Mark(KUEUE_UNCONSTRAINED, _NOTE, _POD, "Kueue", _SKIPPED, "nothing is asked for"),
    Mark(KUEUE_SLICE, _NOTE, _POD, "Kueue", _REFUSED, _SLICED, Holds.KEY),
    Mark(KUEUE_SLICE_SIZE, _NOTE, _POD, "Kueue", _REFUSED, _SLICED),
    Mark(KUEUE_SLICE_LAYERS, _NOTE, _POD, "Kueue", _REFUSED, _SLICED),
    Mark(KUEUE_WORKLOAD, _NOTE, _POD, "Kueue", _TOPOLOGY, "whose pod set it is, without another owner", Holds.NAME),
    Mark(KUEUE_POD_SET, _LABEL, _POD, "Kueue", _TOPOLOGY, "which pod set of that owner it is in", Holds.NAME),
    Mark("spec.affinity.nodeGroupAffinity", _FIELD, _QUEUE, "Volcano", _NODES, "C3: nodes of these groups only"),
    Mark("spec.affinity.nodeGroupAntiAffinity", _FIELD, _QUEUE, "Volcano", _NODES, "C3: no node of these groups"),
    Mark(NODE_GROUP, _LABEL, ("Node",), "Volcano", _NODES, "the node's group", Holds.NAME),
    Mark(VOLCANO_NUMA, _NOTE, _POD, "Volcano", _NODES, "C3: only nodes whose NUMA policy is this one"),
    Mark("nodeinfo.volcano.sh", _KIND, ("Numatopology",), "Volcano", _SKIPPED, "a finding: zones are not modelled"),
    Mark(KAI_REQUIRED, _NOTE, _OWNERS, "KAI", _REFUSED, _OF_KAI, Holds.NAME),
    Mark(KAI_SEGMENT_REQUIRED, _NOTE, _OWNERS, "KAI", _REFUSED, _OF_KAI, Holds.NAME),
    Mark(KAI_PREFERRED, _NOTE, _POD, "KAI", _SKIPPED, _PREFERENCE, Holds.NAME),
    *(Mark(each, _NOTE, _POD, "KAI", _REFUSED, _SHARE) for each in (KAI_FRACTION, KAI_MEMORY, KAI_DEVICES)),
    *(
        Mark(each, _NOTE, _POD, "open-simulator", _REFUSED, _ALSO)
        for each in (SIMULATED_MEMORY, SIMULATED_COUNT, SIMULATED_SHARE)
    ),
    *(
        Mark(each, _NOTE, _POD, "TensorFusion", _REFUSED, _SHARE)
        for each in (FUSION_MEMORY, FUSION_SPEED, FUSION_COMPUTE)
    ),
    Mark(ALIYUN_MEMORY, _NOTE, _POD, "gpushare", _REFUSED, _ALSO),
    *(Mark(each, _NOTE, _POD, "Volcano", _REFUSED, _ALSO) for each in (VGPU_NUMBER, VGPU_MEMORY, VGPU_CORES)),
    *(Mark(each, _NOTE, _POD, "HAMi", _REFUSED, _ALSO) for each in (HAMI_MEMORY, HAMI_CORES, HAMI_PERCENT)),
    *(
        Mark(f"nvidia.com/{each}", _NOTE, _POD, "HAMi", _SKIPPED, _IGNORED)
        for each in ("use-gputype", "nouse-gputype", "use-gpuuuid", "nouse-gpuuuid", "vgpu-mode", "numa-bind")
    ),
    *(
        Mark(f"volcano.sh/{each}", _NOTE, _POD, "Volcano", _SKIPPED, _IGNORED)
        for each in ("vgpu-use-gpuuuid", "vgpu-nouse-gpuuuid", "vgpu-mode", "jdb-min-available", "jdb-max-unavailable")
    ),
    Mark("volcano.sh/cooldown-time", _NOTE, _POD, "Volcano", _SKIPPED, _IGNORED),
    Mark("volcano.sh/cooldown-time", _LABEL, _POD, "Volcano", _SKIPPED, _IGNORED),
    Mark("scheduling.volcano.sh/group-min-resources", _NOTE, _WORK, "Volcano", _SKIPPED, _IGNORED),
    *(
        Mark(f"scheduling.koordinator.sh/{each}", _NOTE, _POD, "Koordinator", _SKIPPED, _IGNORED, Holds.JSON)
        for each in (
            *("resource-spec", "numa-topology-spec", "reservation-affinity", "exact-match-reservation"),
            *("gpu-partition-spec", "device-joint-allocate", "device-allocate-hint"),
        )
    ),
    Mark(KOORDINATOR_QOS, _LABEL, _POD, "Koordinator", _SKIPPED, f"{_IGNORED}, of LSR and LSE"),
    Mark("kai.scheduler/node-pool", _LABEL, _OWNERS, "KAI", _SKIPPED, _IGNORED, Holds.NAME),
    Mark("priorityClassName", _LABEL, _OWNERS, "KAI", _SKIPPED, _IGNORED, Holds.NAME),
    Mark("kueue.x-k8s.io/priority-class", _LABEL, _OWNERS, "Kueue", _SKIPPED, _IGNORED, Holds.NAME),
    Mark(KUBESHARE_REQUEST, _LABEL, _POD, "KubeShare", _REFUSED, _SHARE),
    Mark(KUBESHARE_MEMORY, _LABEL, _POD, "KubeShare", _REFUSED, _SHARE),
    Mark(VOLCANO_PREEMPTABLE, _NOTE, _RUNNING, "Volcano", _PROTECTED, _FALSE),
    Mark(VOLCANO_PREEMPTABLE, _LABEL, _RUNNING, "Volcano", _PROTECTED, "the same where no annotation says it"),
    Mark(SAFE_TO_EVICT, _NOTE, _POD, "Cluster Autoscaler", _PROTECTED, _FALSE),
    Mark(DO_NOT_DISRUPT, _NOTE, _POD, "Karpenter", _PROTECTED, _TRUE),
    Mark(DO_NOT_EVICT, _NOTE, _POD, "Karpenter before 0.32", _PROTECTED, _TRUE),
    Mark(KAI_PREEMPTIBILITY, _LABEL, ("PodGroup", *_OWNERS), "KAI", _PROTECTED, "non-preemptible: D2, never disturbed"),
    Mark(KAI_FIELD, _FIELD, ("PodGroup",), "KAI", _PROTECTED, "the same; counts before the group's label"),
    Mark(YUNIKORN_PREEMPTION, _NOTE, _POD, "YuniKorn", _PROTECTED, "false: D2; true: whatever its class says"),
    Mark(YUNIKORN_PREEMPTION, _NOTE, ("PriorityClass",), "YuniKorn", _PROTECTED, _FALSE),
    Mark(KOORDINATOR_PREEMPTIBLE, _LABEL, _POD, "Koordinator", _PROTECTED, _FALSE),
    Mark(KOORDINATOR_NO_VICTIM, _LABEL, _POD, "Koordinator", _PROTECTED, _TRUE),
    Mark(KOORDINATOR_COST, _NOTE, _POD, "Koordinator", _PROTECTED, f"{_NEVER}: D2, never disturbed"),
    Mark(KUEUE_QUEUE, _LABEL, _OWNERS, "Kueue", _SKIPPED, _UNREAD),
    Mark(KUEUE_LOCAL_QUEUE, _LABEL, _POD, "Kueue", _SKIPPED, _UNREAD),
    Mark(KAI_QUEUE, _LABEL, _OWNERS, "KAI", _SKIPPED, _UNREAD),
    Mark(RUNAI_QUEUE, _LABEL, _OWNERS, "KAI", _SKIPPED, _UNREAD),
    Mark(KOORDINATOR_QUOTA, _LABEL, _POD, "Koordinator", _SKIPPED, _UNREAD),
    Mark(YUNIKORN_QUEUE, _LABEL, _POD, "YuniKorn", _SKIPPED, _UNREAD),
    Mark(YUNIKORN_QUEUE, _NOTE, _POD, "YuniKorn", _SKIPPED, _UNREAD),
    Mark(YUNIKORN_PLAIN_QUEUE, _LABEL, _POD, "YuniKorn", _SKIPPED, f"{_UNREAD}, of YuniKorn's pods"),
    Mark("volcano.sh/nodegroup-resource-limits", _NOTE, _QUEUE, "Volcano", _SKIPPED, _IGNORED),
    Mark("volcano.sh/revocable-zone", _LABEL, ("Node",), "Volcano", _SKIPPED, _IGNORED),
    *(Mark(each, _NOTE, _NAMESPACE, "YuniKorn", _SKIPPED, _UNREAD) for each in YUNIKORN_QUOTAS),
    *(
        Mark(each, _NOTE, _NAMESPACE, "Kubernetes", _SKIPPED, "UnsupportedKind, of pods that placer makes")
        for each in NAMESPACE_SELECTORS
    ),
    Mark("spec.reclaimable", _FIELD, _QUEUE, "Volcano", _PROTECTED, "false: only for a group of the same queue"),
)


#: Values, in lower case, that protect pods, mark by mark; of Volcano's every one does but those that mean yes.
_YES = frozenset(("true", "t", "1"))
_PROTECTS = {
    SAFE_TO_EVICT: frozenset(("false",)),
    DO_NOT_DISRUPT: frozenset(("true",)),
    DO_NOT_EVICT: frozenset(("true",)),
    KAI_PREEMPTIBILITY: frozenset(("non-preemptible", "semi-preemptible")),
    YUNIKORN_PREEMPTION: frozenset(("false",)),
    KOORDINATOR_PREEMPTIBLE: frozenset(("false",)),
    KOORDINATOR_NO_VICTIM: frozenset(("true",)),
    KOORDINATOR_COST: frozenset((_NEVER,)),
}


def protections(
    kind: str, labels: Mapping[str, str] | None, annotations: Mapping[str, str] | None
) -> Iterator[tuple[str, str, bool]]:
    """Protecting marks of an object (D2): name, value, and whether it protects."""
    said = set[str]()
    found = {Place.LABEL: labels or {}, Place.ANNOTATION: annotations or {}, Place.FIELD: {}}
    for mark in _PROTECTING if labels or annotations else ():
        value = found[mark.place].get(mark.name)
        if value is not None and kind in mark.on and mark.name not in said:
            said.add(mark.name)
            yield mark.name, value, _protects(mark.name, value.lower())


_PROTECTING = tuple(mark for mark in MARKS if mark.meaning is Meaning.PROTECTED)


def _protects(name: str, value: str) -> bool:
    return value not in _YES if name == VOLCANO_PREEMPTABLE else value in _PROTECTS[name]


def decide_nothing(
    kind: str, labels: Mapping[str, str] | None, annotations: Mapping[str, str] | None, said: str = _IGNORED
) -> Iterator[tuple[str, str]]:
    """Marks of an object that no rule reads, of one code: name, and its place with the name."""
    found = {Place.LABEL: labels or {}, Place.ANNOTATION: annotations or {}}
    for mark in () if all(map(_IDLE_NAMES.isdisjoint, found.values())) else _IDLE:
        value = found[mark.place].get(mark.name)
        limits = value is not None and (mark.name != KOORDINATOR_QOS or value in ("LSR", "LSE"))
        if limits and kind in mark.on and mark.reading.startswith(said):
            yield mark.name, f"{mark.place.value} {mark.name}"


_IDLE = tuple(mark for mark in MARKS if mark.reading.startswith((_IGNORED, _PREFERENCE)))
_IDLE_NAMES = frozenset(mark.name for mark in _IDLE)


def is_protection(key: str, value: str) -> bool:
    """Whether a label or annotation is a protecting mark with a value of such a mark."""
    known = _YES.union(("false", "f", "0", "preemptible"), *_PROTECTS.values())
    return (key in _PROTECTS or key == VOLCANO_PREEMPTABLE) and value.lower() in known


def kept_annotations() -> frozenset[str]:
    """Annotations that a snapshot keeps since a rule or a finding looks at them."""
    return frozenset(each.name for each in MARKS if each.place in (Place.ANNOTATION, Place.LABEL))


#: Labels that others than these systems may have, too.
_PLAIN = frozenset((YUNIKORN_PLAIN_QUEUE, "priorityClassName"))


def _of_pods(place: Place) -> frozenset[str]:
    return frozenset(each.name for each in MARKS if each.place is place and "Pod" in each.on).difference(SHARES, _PLAIN)


ANNOTATIONS_ONLY = _of_pods(Place.ANNOTATION) - _of_pods(Place.LABEL)
LABELS_ONLY = _of_pods(Place.LABEL) - _of_pods(Place.ANNOTATION)


def kept_labels() -> frozenset[str]:
    """Labels that an anonymous snapshot keeps under their own keys."""
    return frozenset(each.name for each in MARKS if each.place is Place.LABEL)
