"""The table of marks: each row has the effect that it states, on each kind that it names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pytest

from placer.kube import marks
from placer.kube.marks import MARKS, Mark, Place
from placer.problem import Instance, Pod
from tests.support import instance_of, node, pod, pod_group, queue

Observe = Callable[[Instance], Any]
Documents = list[dict[str, Any]]


@dataclass(frozen=True)
class Effect:
    """What a mark does: an observation that has one value with it and another one without.

    Parameters
    ----------
    value
        Of the mark.
    observe, expected
        What is looked at, and what it must be.
    labels, notes
        Other marks of the pods.
    more
        Objects besides.
    bound
        Whether the pods run.
    """

    value: str
    observe: Observe
    expected: Any
    labels: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    more: Documents = field(default_factory=list)
    bound: bool = False


def first(instance: Instance) -> Pod:
    return next(each for each in instance.pods.values() if not each.daemon)


def gang(instance: Instance) -> tuple[str, str, int]:
    """API group and name of the gang of the first pod, and the least pods of it."""
    found = instance.groups[first(instance).group or next(iter(instance.groups))]
    return found.key.api_group, found.key.name, found.min_member


def role(instance: Instance) -> str:
    return first(instance).role


def unsupported(name: str) -> Observe:
    return lambda instance: any(name in why for each in instance.pods.values() for why in each.unsupported)


def finds(code: str, name: str) -> Observe:
    return lambda instance: any(each.code == code and name in each.message for each in instance.findings)


def protected(name: str) -> Observe:
    return lambda instance: name in first(instance).protected


def tier_limits(instance: Instance) -> list[int | None]:
    return [each.topology.highest_tier for each in instance.groups.values() if each.topology is not None]


def units(instance: Instance) -> set[str]:
    """Names of the units whose pods must be in one domain of the label rack."""
    asked = (unit for each in instance.pods.values() for unit in each.neighbours.units)
    return {unit.name.partition(" (")[0] for unit in asked if unit.topology_key == "rack"}


def nodes(instance: Instance) -> list[str]:
    return [name for name, each in sorted(instance.nodes.items()) if first(instance).constraints.admits(each)]


def told(instance: Instance) -> int:
    return len(instance.findings)


def refuses(name: str, value: str, **other: Any) -> Effect:
    return Effect(value, unsupported(name), True, **other)


def ignores(code: str, name: str, value: str = "x", **other: Any) -> Effect:
    return Effect(value, finds(code, name), True, **other)


def protects(name: str, value: str) -> Effect:
    return Effect(value, protected(name), True, bound=True)


TASK_GROUPS = '[{"name": "w", "minMember": 2}]'
LIGHT, KOORD, KUEUE, YUNI = marks.LIGHT_NAME, marks.KOORDINATOR_GANG, marks.KUEUE_GROUP, marks.YUNIKORN_TASK_GROUP
OF_APPLICATION = {YUNI: "w", marks.YUNIKORN_TASK_GROUPS: TASK_GROUPS}
NODES_OF_GROUPS = [
    {**node(name), "metadata": {"name": name, "labels": {marks.NODE_GROUP: name}}} for name in ("blue", "red")
]


OF_ONE_APPLICATION = Effect("a", gang, ("yunikorn.apache.org", "a", 2), notes=OF_APPLICATION)


def upstream(**spec: Any) -> dict[str, Any]:
    metadata, policy = {"name": "g", "namespace": "default"}, {"gang": {"minCount": 1}}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": {"schedulingPolicy": policy, **spec},
    }


def kai_group(name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": {"minMember": 2},
    }


NUMA = {
    "apiVersion": "topology.node.k8s.io/v1alpha2",
    "kind": "NodeResourceTopology",
    "metadata": {"name": "m"},
    "attributes": [{"name": "topologyManagerPolicy", "value": "restricted"}],
    "zones": [],
}

API = {
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "Job": "batch/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
}


def workload(kind: str) -> dict[str, Any]:
    """A workload, whose pods are there."""
    template = {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [{"name": "c"}]}}
    spec: dict[str, Any] = {"template": template, "selector": {"matchLabels": {"app": "w"}}}
    if kind == "JobSet":
        spec = {"replicatedJobs": [{"name": "r", "template": {"spec": {"template": template}}}]}
    if kind == "LeaderWorkerSet":
        spec = {"leaderWorkerTemplate": {"size": 1, "workerTemplate": template}}
    return {"apiVersion": API[kind], "kind": kind, "metadata": {"name": "w", "namespace": "default"}, "spec": spec}


#: Labels and annotations, by name and place.
EFFECTS: dict[tuple[str, Place], Effect] = {
    (LIGHT, Place.LABEL): Effect("g", gang, (marks.LIGHT_NAME[:-5], "g", 2), labels={marks.LIGHT_MINIMUM: "2"}),
    (marks.LIGHT_MINIMUM, Place.LABEL): Effect("2", gang, (marks.LIGHT_NAME[:-5], "g", 2), labels={LIGHT: "g"}),
    (KOORD, Place.ANNOTATION): Effect("g", gang, (KOORD[:-5], "g", 1)),
    (marks.KOORDINATOR_MINIMUM, Place.ANNOTATION): Effect("2", gang, (KOORD[:-5], "g", 2), notes={KOORD: "g"}),
    (marks.KOORDINATOR_TOTAL, Place.ANNOTATION): Effect("3", gang, (KOORD[:-5], "g", 3), notes={KOORD: "g"}),
    (marks.KOORDINATOR_MATCH, Place.ANNOTATION): refuses(marks.KOORDINATOR_MATCH, "only-waiting"),
    (marks.KOORDINATOR_MODE, Place.ANNOTATION): ignores("PreferenceIgnored", marks.KOORDINATOR_MODE, "NonStrict"),
    (marks.KOORDINATOR_GROUPS, Place.ANNOTATION): refuses(marks.KOORDINATOR_GROUPS, '["default/g", "default/h"]'),
    (marks.LIGHT_GROUPS, Place.ANNOTATION): refuses(marks.LIGHT_GROUPS, '["default/g", "default/h"]'),
    (marks.KOORDINATOR_TOPOLOGY, Place.ANNOTATION): refuses(
        marks.KOORDINATOR_TOPOLOGY, '{"gatherStrategy": [{"layer": "l", "strategy": "MustGather"}]}'
    ),
    (KUEUE, Place.LABEL): Effect("g", gang, ("kueue.x-k8s.io", "g", 2), notes={marks.KUEUE_TOTAL: "2"}),
    (marks.KUEUE_TOTAL, Place.ANNOTATION): Effect("2", gang, ("kueue.x-k8s.io", "g", 2), labels={KUEUE: "g"}),
    (marks.KUEUE_FAST, Place.ANNOTATION): Effect(
        "true", gang, ("kueue.x-k8s.io", "g", 1), labels={KUEUE: "g"}, notes={marks.KUEUE_TOTAL: "2"}
    ),
    (marks.YUNIKORN_APP_ID, Place.LABEL): OF_ONE_APPLICATION,
    (marks.YUNIKORN_APP_ID, Place.ANNOTATION): OF_ONE_APPLICATION,
    (marks.YUNIKORN_APPLICATION, Place.LABEL): OF_ONE_APPLICATION,
    (marks.YUNIKORN_APPLICATION, Place.ANNOTATION): OF_ONE_APPLICATION,
    (marks.SPARK_APPLICATION, Place.LABEL): OF_ONE_APPLICATION,
    (YUNI, Place.ANNOTATION): Effect("w", role, "w", notes={marks.YUNIKORN_TASK_GROUPS: TASK_GROUPS}),
    (marks.YUNIKORN_TASK_GROUPS, Place.ANNOTATION): Effect(
        TASK_GROUPS, gang, ("yunikorn.apache.org", "yunikorn-default-autogen", 2), notes={YUNI: "w"}
    ),
    (marks.LIGHT_MATCH, Place.ANNOTATION): refuses(marks.LIGHT_MATCH, "only-waiting"),
    (marks.VOLCANO_GROUP_MINIMUM, Place.ANNOTATION): Effect("2", lambda instance: gang(instance)[2], 2),
    (marks.VOLCANO_TOPOLOGY_MODE, Place.ANNOTATION): ignores("HardWithoutLimit", marks.VOLCANO_TOPOLOGY_MODE, "hard"),
    (marks.VOLCANO_TOPOLOGY_TIER, Place.ANNOTATION): Effect("1", tier_limits, [1]),
    (marks.KAI_GROUP, Place.ANNOTATION): Effect("g", gang, ("scheduling.run.ai", "g", 2), more=[kai_group("g")]),
    (marks.GROVE_GANG, Place.LABEL): refuses(marks.GROVE_GANG, "g"),
    (marks.KUEUE_REQUIRED, Place.ANNOTATION): Effect("rack", units, {"pod group default/g"}, labels={KUEUE: "g"}),
    (marks.KUEUE_POD_SET_GROUP, Place.ANNOTATION): Effect(
        "s", units, {"pod sets s of pod group default/g"}, labels={KUEUE: "g"}, notes={marks.KUEUE_REQUIRED: "rack"}
    ),
    (marks.KUEUE_PREFERRED, Place.ANNOTATION): ignores("PreferenceIgnored", marks.KUEUE_PREFERRED, "rack"),
    **{(name, Place.ANNOTATION): refuses(name, "2") for name in marks.SLICES},
    (marks.KUEUE_WORKLOAD, Place.ANNOTATION): Effect(
        "x", units, {"Workload default/x"}, notes={marks.KUEUE_REQUIRED: "rack"}
    ),
    (marks.KUEUE_POD_SET, Place.LABEL): Effect(
        "s",
        units,
        {"pod set s of Workload default/x"},
        notes={marks.KUEUE_REQUIRED: "rack", marks.KUEUE_WORKLOAD: "x"},
    ),
    (marks.VOLCANO_NUMA, Place.ANNOTATION): Effect("restricted", nodes, ["m"], more=[node("m"), NUMA]),
    **{(each.name, each.place): refuses(each.name, "1") for each in MARKS if each.name in marks.SHARES},
    **{(name, Place.ANNOTATION): refuses(name, "rack") for name in marks.KAI_TOPOLOGIES},
    (marks.KAI_PREFERRED, Place.ANNOTATION): ignores("PreferenceIgnored", marks.KAI_PREFERRED, "rack"),
    **{
        (each.name, each.place): ignores("FieldIgnored", f"{each.name} of")
        for each in MARKS
        if each.reading == "FieldIgnored"
    },
    (marks.KOORDINATOR_QOS, Place.LABEL): ignores("FieldIgnored", f"{marks.KOORDINATOR_QOS} of", "LSR"),
    (marks.VOLCANO_PREEMPTABLE, Place.ANNOTATION): protects(marks.VOLCANO_PREEMPTABLE, "false"),
    (marks.VOLCANO_PREEMPTABLE, Place.LABEL): protects(marks.VOLCANO_PREEMPTABLE, "false"),
    (marks.SAFE_TO_EVICT, Place.ANNOTATION): protects(marks.SAFE_TO_EVICT, "false"),
    (marks.DO_NOT_DISRUPT, Place.ANNOTATION): protects(marks.DO_NOT_DISRUPT, "true"),
    (marks.DO_NOT_EVICT, Place.ANNOTATION): protects(marks.DO_NOT_EVICT, "true"),
    (marks.KAI_PREEMPTIBILITY, Place.LABEL): protects(marks.KAI_PREEMPTIBILITY, "non-preemptible"),
    (marks.YUNIKORN_PREEMPTION, Place.ANNOTATION): protects(marks.YUNIKORN_PREEMPTION, "false"),
    (marks.KOORDINATOR_PREEMPTIBLE, Place.LABEL): protects(marks.KOORDINATOR_PREEMPTIBLE, "false"),
    (marks.KOORDINATOR_NO_VICTIM, Place.LABEL): protects(marks.KOORDINATOR_NO_VICTIM, "true"),
    (marks.KOORDINATOR_COST, Place.ANNOTATION): protects(marks.KOORDINATOR_COST, "2147483647"),
    **{
        (each.name, each.place): ignores("UnsupportedKind", "of team that hold for", "team")
        for each in MARKS
        if each.name
        in (
            *(marks.KUEUE_QUEUE, marks.KUEUE_LOCAL_QUEUE, marks.KAI_QUEUE, marks.RUNAI_QUEUE),
            *(marks.KOORDINATOR_QUOTA, marks.YUNIKORN_QUEUE),
        )
    },
    (marks.YUNIKORN_PLAIN_QUEUE, Place.LABEL): ignores(
        "UnsupportedKind", "of team that hold for", "team", labels={marks.YUNIKORN_APPLICATION: "a"}
    ),
    **{
        (name, Place.ANNOTATION): ignores("UnsupportedKind", "queue of YuniKorn is not read")
        for name in marks.YUNIKORN_QUOTAS
    },
    **{
        (name, Place.ANNOTATION): ignores(
            "UnsupportedKind", "node selector of a Namespace is not read", more=[workload("Job")]
        )
        for name in marks.NAMESPACE_SELECTORS
    },
}
#: Marks that change nothing, for who reads the table: pods with one are pods like others.
NOTHING = (marks.YUNIKORN_PLACEHOLDER, marks.KUEUE_UNCONSTRAINED)


def bearing(kind: str, effect: Effect) -> Documents:
    """Two pods in no gang but what the effect says; the first object is the one that bears the mark."""
    owner = kind if kind in API else "ReplicaSet"
    reference = {"apiVersion": API[owner], "kind": owner, "name": "w", "uid": "u", "controller": True}
    place = "n" if effect.bound else None
    pods = [pod(name, node=place, labels=dict(effect.labels), annotations=dict(effect.notes)) for name in "pq"]
    documents: Documents = [deepcopy(dict(each)) for each in pods]
    for each in documents:
        each["metadata"]["ownerReferences"] = [reference]
        if kind == "PodGroup":
            each["metadata"]["annotations"][marks.KAI_GROUP] = "g"
        if kind == "Queue":
            each["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] = "q"
        if kind == "PriorityClass":
            each["spec"]["priorityClassName"] = "c"
    above: dict[str, dict[str, Any]] = {
        "PodGroup": kai_group("g"),
        "PriorityClass": {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "c"},
            "value": 1,
        },
        "Namespace": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
        "Queue": {**queue("q"), "metadata": {"name": "q"}},
    }
    first = [] if kind == "Pod" else [above.get(kind) or workload(kind)]
    return [*first, *documents, node("n"), *effect.more]  # type: ignore[list-item]


LABELLED = [(mark, kind) for mark in MARKS for kind in mark.on if mark.place in (Place.LABEL, Place.ANNOTATION)]


@pytest.mark.parametrize(
    ("mark", "kind"),
    [
        pytest.param(mark, kind, id=f"{mark.place.value} {mark.name} {kind}")
        for mark, kind in LABELLED
        if kind != "Node"
    ],
)
def test_a_label_or_annotation_does_what_the_table_says(mark: Mark, kind: str) -> None:
    if mark.name in NOTHING:
        effect = Effect("true", told, 0, notes=OF_APPLICATION if "yunikorn" in mark.name else {})
    else:
        effect = EFFECTS[mark.name, mark.place]
    without = bearing(kind, effect)
    bears = deepcopy(without)
    where = "labels" if mark.place is Place.LABEL else "annotations"
    bears[0]["metadata"].setdefault(where, {})[mark.name] = effect.value
    if kind == "Pod":
        bears[1]["metadata"].setdefault(where, {})[mark.name] = effect.value
    assert effect.observe(instance_of(*bears)) == effect.expected
    if mark.name not in NOTHING:
        assert effect.observe(instance_of(*without)) != effect.expected


def kinds_of_gangs(mark: Mark) -> Documents:
    """Pods that name an object of a kind that is not read, next to it."""
    if mark.name == "scheduler.grove.io":
        named = pod("p", labels={marks.GROVE_GANG: "g"})
        other = {"apiVersion": "scheduler.grove.io/v1alpha1", "kind": mark.on[0], "metadata": {"name": "g"}}
        return [named, other]  # type: ignore[list-item]
    group = upstream(parentCompositePodGroupName="c")
    other = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": mark.on[0], "metadata": {"name": "c"}}
    return [pod("p", spec={"schedulingGroup": {"podGroupName": "g"}}), group, other]  # type: ignore[list-item]


def refused_by_kind(mark: Mark) -> bool:
    return bool(first(instance_of(node("n"), *kinds_of_gangs(mark))).unsupported)


def numatopology(_mark: Mark) -> bool:
    there = {"apiVersion": "nodeinfo.volcano.sh/v1alpha1", "kind": "Numatopology", "metadata": {"name": "n"}}
    return finds("UnsupportedKind", "Numatopology is not read")(instance_of(node("n"), there, pod("p")))


def nodes_of_queue(mark: Mark) -> bool:
    groups = {"requiredDuringSchedulingIgnoredDuringExecution": ["blue"]}
    spec = {"affinity": {mark.name.rpartition(".")[2]: groups}}
    found = nodes(
        instance_of(*NODES_OF_GROUPS, {**queue("q"), "spec": spec}, pod_group("g", queue="q"), pod("p", group="g"))
    )
    return found == (["red"] if "Anti" in mark.name else ["blue"])


def group_of_node(_mark: Mark) -> bool:
    groups = {"requiredDuringSchedulingIgnoredDuringExecution": ["blue"]}
    asks = {**queue("q"), "spec": {"affinity": {"nodeGroupAffinity": groups}}}
    documents = [asks, pod_group("g", queue="q"), pod("p", group="g")]
    return nodes(instance_of(*NODES_OF_GROUPS, *documents)) == ["blue"] and not nodes(
        instance_of(node("n"), *documents)
    )


def field_of_kai(_mark: Mark) -> bool:
    documents = bearing("PodGroup", Effect("", told, 0, bound=True))
    documents[0]["spec"]["preemptibility"] = "non-preemptible"
    return protected(marks.KAI_FIELD)(instance_of(*documents))


def not_reclaimable(_mark: Mark) -> bool:
    said = {**queue("q"), "spec": {"reclaimable": False}}
    instance = instance_of(node("n"), said, pod_group("g", queue="q"), pod("p", group="g", node="n"))
    return instance.queues["q"].reclaimable is False


def revocable(mark: Mark) -> bool:
    return finds("FieldIgnored", f"{mark.name} of Node n")(instance_of(node("n", {mark.name: "z"}), pod("p")))


#: Fields, kinds and labels of nodes, by name.
OTHERS: dict[str, Callable[[Mark], bool]] = {
    "scheduler.grove.io": refused_by_kind,
    "scheduling.k8s.io": refused_by_kind,
    "nodeinfo.volcano.sh": numatopology,
    "spec.affinity.nodeGroupAffinity": nodes_of_queue,
    "spec.affinity.nodeGroupAntiAffinity": nodes_of_queue,
    marks.NODE_GROUP: group_of_node,
    "volcano.sh/revocable-zone": revocable,
    marks.KAI_FIELD: field_of_kai,
    "spec.reclaimable": not_reclaimable,
}


@pytest.mark.parametrize(
    "mark",
    [mark for mark in MARKS if mark.place in (Place.FIELD, Place.KIND) or "Node" in mark.on],
    ids=lambda mark: f"{mark.place.value} {mark.name}",
)
def test_a_field_or_kind_does_what_the_table_says(mark: Mark) -> None:
    assert OTHERS[mark.name](mark)


def test_no_effect_is_of_a_mark_that_is_gone() -> None:
    there = {(mark.name, mark.place) for mark in MARKS}
    assert not EFFECTS.keys() - there
    assert not {*OTHERS, *NOTHING} - {mark.name for mark in MARKS}


def test_every_mark_stands_once_in_the_table() -> None:
    counted = Counter((mark.name, mark.place, kind) for mark in MARKS for kind in mark.on)
    assert [each for each, count in counted.items() if count > 1] == []


def test_snapshots_keep_every_annotation_that_is_a_mark() -> None:
    from placer.passes.cluster.reading.field_filter import is_kept

    assert [mark.name for mark in MARKS if mark.place is Place.ANNOTATION and not is_kept(mark.name)] == []
