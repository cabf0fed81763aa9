"""Marks: labels, annotations, fields and kinds by which users of other systems state a gang, a topology, a limit or a
protection.

One row per mark. Reading, refusal, findings, the annotations that a snapshot keeps and the page of documentation
follow from this table. A new mark costs one row here, and a reader where it says more than a name.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["MARKS", "Mark", "Meaning", "Place", "Value", "kept_annotations", "kept_labels"]


class Place(Enum):
    """Where a mark stands."""

    LABEL = "label"
    ANNOTATION = "annotation"
    FIELD = "field"
    KIND = "kind"


class Meaning(Enum):
    """What placer makes of a mark."""

    GANG = "gang"
    TOPOLOGY = "topology"
    NODES = "nodes"
    PROTECTED = "protected"
    REFUSED = "refused"
    IGNORED = "ignored"


class Value(Enum):
    """What the value of a mark holds, for who replaces names in it."""

    WORD = "word"  #: a number, or a word that the system knows
    NAME = "name"
    KEY = "key"  #: of a label of nodes
    JSON = "JSON"


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark of another system.

    Parameters
    ----------
    name
        Key of the label or annotation, path of the field from the object's root, or API group of the kind.
    place
        Where it stands.
    on
        Kinds of objects that bear it; templates of pods count as pods. Of a kind: the kind itself.
    system
        Who reads it.
    meaning
        What placer makes of it.
    reading
        What follows from it, for users: a short phrase.
    value
        What its value holds.
    """

    name: str
    place: Place
    on: tuple[str, ...]
    system: str
    meaning: Meaning
    reading: str
    value: Value = Value.WORD


# Gangs, in the order in which they count where one pod bears several.
LIGHT_NAME = "pod-group.scheduling.sigs.k8s.io/name"
LIGHT_MINIMUM = "pod-group.scheduling.sigs.k8s.io/min-available"
KOORDINATOR_GANG = "gang.scheduling.koordinator.sh/name"
KOORDINATOR_MINIMUM = "gang.scheduling.koordinator.sh/min-available"
KOORDINATOR_TOTAL = "gang.scheduling.koordinator.sh/total-number"
KOORDINATOR_MODE = "gang.scheduling.koordinator.sh/mode"
KOORDINATOR_MATCH = "gang.scheduling.koordinator.sh/match-policy"
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
KAI_GROUP = "pod-group-name"
GROVE_GANG = "grove.io/podgang"

# Topology, nodes and shares of GPUs
KUEUE_REQUIRED = "kueue.x-k8s.io/podset-required-topology"
KUEUE_PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"
KUEUE_UNCONSTRAINED = "kueue.x-k8s.io/podset-unconstrained-topology"
KUEUE_POD_SET_GROUP = "kueue.x-k8s.io/podset-group-name"
KUEUE_SLICE = "kueue.x-k8s.io/podset-slice-required-topology"
KUEUE_SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"
NODE_GROUP = "volcano.sh/nodegroup-name"
VOLCANO_NUMA = "volcano.sh/numa-topology-policy"
KAI_FRACTION = "gpu-fraction"
KAI_MEMORY = "gpu-memory"

# Protection
VOLCANO_PREEMPTABLE = "volcano.sh/preemptable"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
KAI_PREEMPTIBILITY = "kai.scheduler/preemptibility"
YUNIKORN_PREEMPTION = "yunikorn.apache.org/allow-preemption"
KOORDINATOR_PREEMPTIBLE = "quota.scheduling.koordinator.sh/preemptible"

_POD, _BOTH, _QUEUE = ("Pod",), ("Pod", "PodGroup"), ("Queue",)
_WORK = ("Pod", "Deployment", "ReplicaSet", "StatefulSet", "Job")
_LIGHT = "coscheduling, Koordinator"
_LABEL, _NOTE, _FIELD, _KIND = Place.LABEL, Place.ANNOTATION, Place.FIELD, Place.KIND

#: Every mark, in the order in which it counts.
MARKS: tuple[Mark, ...] = (
    Mark(LIGHT_NAME, _LABEL, _POD, _LIGHT, Meaning.GANG, "a gang of that name", Value.NAME),
    Mark(LIGHT_MINIMUM, _LABEL, _POD, _LIGHT, Meaning.GANG, "its minMember, the largest of its pods"),
    Mark(KOORDINATOR_GANG, _NOTE, _POD, "Koordinator", Meaning.GANG, "a gang of that name", Value.NAME),
    Mark(KOORDINATOR_MINIMUM, _NOTE, _POD, "Koordinator", Meaning.GANG, "its minMember, 1 where it is left out"),
    Mark(KOORDINATOR_TOTAL, _NOTE, _POD, "Koordinator", Meaning.GANG, "GangIncomplete while fewer pods exist"),
    Mark(KOORDINATOR_MATCH, _NOTE, _BOTH, "Koordinator", Meaning.REFUSED, "only-waiting is Unsupported, others are C5"),
    Mark(KOORDINATOR_MODE, _NOTE, _BOTH, "Koordinator", Meaning.IGNORED, "NonStrict: placed whole all the same"),
    Mark(
        KOORDINATOR_GROUPS,
        _NOTE,
        _BOTH,
        "Koordinator",
        Meaning.REFUSED,
        "Unsupported: gangs admitted together",
        Value.JSON,
    ),
    Mark(
        LIGHT_GROUPS,
        _NOTE,
        _BOTH,
        "Koordinator, ACK",
        Meaning.REFUSED,
        "Unsupported: gangs admitted together",
        Value.JSON,
    ),
    Mark(
        KOORDINATOR_TOPOLOGY,
        _NOTE,
        _BOTH,
        "Koordinator",
        Meaning.REFUSED,
        "MustGather: Unsupported; PreferGather: ignored",
        Value.JSON,
    ),
    Mark(KUEUE_GROUP, _LABEL, _POD, "Kueue", Meaning.GANG, "a gang of that name", Value.NAME),
    Mark(KUEUE_TOTAL, _NOTE, _POD, "Kueue", Meaning.GANG, "its minMember; succeeded pods count as placed"),
    Mark(KUEUE_FAST, _NOTE, _POD, "Kueue", Meaning.GANG, "its minMember is 1"),
    Mark(
        YUNIKORN_APP_ID, _LABEL, _POD, "YuniKorn", Meaning.GANG, "the gang of pods that name a task group", Value.NAME
    ),
    Mark(YUNIKORN_APP_ID, _NOTE, _POD, "YuniKorn", Meaning.GANG, "the same, where no label says it", Value.NAME),
    Mark(
        YUNIKORN_APPLICATION, _LABEL, _POD, "YuniKorn", Meaning.GANG, "the same, where no app-id is stated", Value.NAME
    ),
    Mark(YUNIKORN_APPLICATION, _NOTE, _POD, "YuniKorn", Meaning.GANG, "the same, where no label says it", Value.NAME),
    Mark(
        SPARK_APPLICATION, _LABEL, _POD, "YuniKorn", Meaning.GANG, "the same, where nothing above says it", Value.NAME
    ),
    Mark(
        YUNIKORN_TASK_GROUP,
        _NOTE,
        _POD,
        "YuniKorn",
        Meaning.GANG,
        "the pod's role in the gang of its application",
        Value.NAME,
    ),
    Mark(
        YUNIKORN_TASK_GROUPS, _NOTE, _POD, "YuniKorn", Meaning.GANG, "least pods of each role of that gang", Value.JSON
    ),
    Mark(YUNIKORN_PLACEHOLDER, _NOTE, _POD, "YuniKorn", Meaning.GANG, "placeholders are pods like others"),
    Mark(VOLCANO_GROUP_MINIMUM, _NOTE, _WORK, "Volcano", Meaning.GANG, "minMember of the gang of the pod's owner"),
    Mark(KAI_GROUP, _NOTE, _POD, "KAI", Meaning.GANG, "the PodGroup of scheduling.run.ai of this name", Value.NAME),
    Mark(GROVE_GANG, _LABEL, _POD, "Grove", Meaning.REFUSED, "Unsupported: a PodGang is not read", Value.NAME),
    Mark("scheduler.grove.io", _KIND, ("PodGang",), "Grove", Meaning.REFUSED, "Unsupported"),
    Mark("scheduling.k8s.io", _KIND, ("CompositePodGroup",), "Kubernetes", Meaning.REFUSED, "Unsupported"),
    Mark(KUEUE_REQUIRED, _NOTE, _POD, "Kueue", Meaning.TOPOLOGY, "C7 by label: its pod set in one domain", Value.KEY),
    Mark(KUEUE_POD_SET_GROUP, _NOTE, _POD, "Kueue", Meaning.TOPOLOGY, "pod sets of one name are one", Value.NAME),
    Mark(KUEUE_PREFERRED, _NOTE, _POD, "Kueue", Meaning.IGNORED, "PreferenceIgnored", Value.KEY),
    Mark(KUEUE_UNCONSTRAINED, _NOTE, _POD, "Kueue", Meaning.IGNORED, "nothing is asked for"),
    Mark(KUEUE_SLICE, _NOTE, _POD, "Kueue", Meaning.REFUSED, "Unsupported: slices are not modelled", Value.KEY),
    Mark(KUEUE_SLICE_SIZE, _NOTE, _POD, "Kueue", Meaning.REFUSED, "Unsupported: slices are not modelled"),
    Mark("spec.affinity.nodeGroupAffinity", _FIELD, _QUEUE, "Volcano", Meaning.NODES, "C3: nodes of these groups only"),
    Mark(
        "spec.affinity.nodeGroupAntiAffinity", _FIELD, _QUEUE, "Volcano", Meaning.NODES, "C3: no node of these groups"
    ),
    Mark(NODE_GROUP, _LABEL, ("Node",), "Volcano", Meaning.NODES, "the node's group", Value.NAME),
    Mark(VOLCANO_NUMA, _NOTE, _POD, "Volcano", Meaning.NODES, "C3: only nodes whose NUMA policy is this one"),
    Mark(
        "nodeinfo.volcano.sh", _KIND, ("Numatopology",), "Volcano", Meaning.IGNORED, "a finding: zones are not modelled"
    ),
    Mark(KAI_FRACTION, _NOTE, _POD, "KAI", Meaning.REFUSED, "Unsupported: a share that no resource states"),
    Mark(KAI_MEMORY, _NOTE, _POD, "KAI", Meaning.REFUSED, "Unsupported: a share that no resource states"),
    Mark(
        VOLCANO_PREEMPTABLE,
        _NOTE,
        ("Pod", "PodGroup", "Job"),
        "Volcano",
        Meaning.PROTECTED,
        "false: D2, never disturbed",
    ),
    Mark(SAFE_TO_EVICT, _NOTE, _POD, "Cluster Autoscaler", Meaning.PROTECTED, "false: D2, never disturbed"),
    Mark(DO_NOT_DISRUPT, _NOTE, _POD, "Karpenter", Meaning.PROTECTED, "true: D2, never disturbed"),
    Mark(KAI_PREEMPTIBILITY, _LABEL, _BOTH, "KAI", Meaning.PROTECTED, "non-preemptible: D2, never disturbed"),
    Mark(YUNIKORN_PREEMPTION, _NOTE, ("PriorityClass",), "YuniKorn", Meaning.PROTECTED, "false: D2, never disturbed"),
    Mark(KOORDINATOR_PREEMPTIBLE, _LABEL, _POD, "Koordinator", Meaning.PROTECTED, "false: D2, never disturbed"),
    Mark("spec.reclaimable", _FIELD, _QUEUE, "Volcano", Meaning.PROTECTED, "false: only for a group of the same queue"),
)


def kept_annotations() -> frozenset[str]:
    """Annotations that a snapshot keeps since a rule or a finding looks at them."""
    return frozenset(each.name for each in MARKS if each.place is Place.ANNOTATION)


def kept_labels() -> frozenset[str]:
    """Labels that an anonymous snapshot keeps under their own keys."""
    return frozenset(each.name for each in MARKS if each.place is Place.LABEL)
