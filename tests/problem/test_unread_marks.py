"""Marks that no rule reads: a finding names each, or the pods wait; and the topology of a gang of Volcano's marks."""

from __future__ import annotations

import pytest

import placer
from placer.kube import marks
from placer.kube.marks import MARKS, Mark
from placer.problem import Instance
from placer.rules import verify
from tests.support import Document, hyper_node, instance_of, node, pod

IGNORED = [mark for mark in MARKS if mark.reading.startswith("FieldIgnored") and "Pod" in mark.on]
MODE, TIER = marks.VOLCANO_TOPOLOGY_MODE, marks.VOLCANO_TOPOLOGY_TIER


def bearing(mark: Mark, value: str = "x") -> dict[str, dict[str, str]]:
    return {f"{mark.place.value}s": {mark.name: value}}


def job(name: str = "j", *, pods: int = 1, template: Document | None = None, **metadata: object) -> Document:
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {"parallelism": pods, "completions": pods, "template": {"metadata": template or {}, "spec": spec}},
    }


def said(*documents: Document) -> list[str]:
    return [each.message for each in instance_of(node("n1"), *documents).findings]


def placed(instance: Instance) -> list[str]:
    placement = placer.solve(instance, method="greedy").placement
    assert placement is not None
    assert not list(verify(instance, placement))
    return sorted(binding.node for binding in placement.bindings)


@pytest.mark.parametrize("mark", IGNORED, ids=lambda mark: f"{mark.place.value} {mark.name}")
def test_a_mark_that_no_rule_reads_is_a_finding(mark: Mark) -> None:
    value = "LSR" if mark.name == marks.KOORDINATOR_QOS else "x"
    words = f"{mark.place.value} {mark.name} of"
    assert said(pod("p", **bearing(mark, value))) == [f"{words} Pod default/p decides nothing"]
    if "Job" in mark.on:
        assert said(job(**bearing(mark, value))) == [f"{words} Job default/j decides nothing"]


def namespace(**annotations: str) -> Document:
    notes = {key.replace("__", "/"): value for key, value in annotations.items()}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "annotations": notes}}


@pytest.mark.parametrize("mark", marks.YUNIKORN_QUOTAS)
def test_quotas_of_a_namespace_are_a_finding(mark: str) -> None:
    limited = namespace(**{mark: "4"})
    message = "queue of YuniKorn is not read: the limits that hold for Pod default/p decide nothing"
    assert said(limited, pod("p")) == [message]
    assert said(namespace(**{mark: ""}), pod("p")) == []


@pytest.mark.parametrize("mark", marks.NAMESPACE_SELECTORS)
def test_a_node_selector_of_a_namespace_counts_for_pods_that_are_made_here(mark: str) -> None:
    selecting = namespace(**{mark: "disk=ssd"})
    message = "node selector of a Namespace is not read: the limits that hold for Pod default/j-0 decide nothing"
    assert said(selecting, job()) == [message]
    assert said(selecting, pod("p")) == []


@pytest.mark.parametrize("mark", marks.KAI_TOPOLOGIES)
def test_a_topology_of_kai_keeps_pods_waiting_whoever_states_it(mark: str) -> None:
    why = (f"metadata.annotations[{mark}]: a topology of KAI",)
    for written in (pod("p", annotations={mark: "rack"}), job(annotations={mark: "rack"})):
        instance = instance_of(node("n1"), written)
        assert placed(instance) == []
        assert [each.unsupported for each in instance.pending] == [why]
    assert placed(instance_of(node("n1"), pod("p", annotations={mark: ""}))) == ["n1"]


@pytest.mark.parametrize("mark", [marks.KAI_PREFERRED, marks.KUEUE_PREFERRED])
def test_a_preferred_topology_is_a_preference_whoever_states_it(mark: str) -> None:
    for written in (pod("p", annotations={mark: "rack"}), job(annotations={mark: "rack"})):
        found = instance_of(node("n1"), written).findings
        assert [each.code for each in found] == ["PreferenceIgnored"]


def of_unread(kind: str, api_version: str, **metadata: object) -> list[Document]:
    """A workload of which no pods are made, and its pod."""
    owner = {"apiVersion": api_version, "kind": kind, "name": "w", "uid": "u", "controller": True}
    written: Document = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "w", **metadata}, "spec": {}}
    if kind == "ReplicaSet":
        written["spec"] = {"selector": {}, "template": job()["spec"]["template"]}  # type: ignore[index]
    return [written, pod("w-0", metadata={"ownerReferences": [owner]})]


@pytest.mark.parametrize(("kind", "api_version"), [("PyTorchJob", "kubeflow.org/v1"), ("ReplicaSet", "apps/v1")])
def test_marks_of_workloads_of_which_no_pods_are_made_count_or_are_findings(kind: str, api_version: str) -> None:
    refused = instance_of(node("n1"), *of_unread(kind, api_version, annotations={marks.KAI_REQUIRED: "rack"}))
    assert [bool(each.unsupported) for each in refused.pending] == [True]
    unread = said(*of_unread(kind, api_version, labels={"kai.scheduler/node-pool": "a"}))
    assert f"label kai.scheduler/node-pool of {kind} default/w decides nothing" in unread


def test_a_mark_of_a_workload_and_of_other_pods_is_one_finding_with_a_count() -> None:
    label = {"kai.scheduler/node-pool": "a"}
    assert said(job(labels=label), pod("p", labels=label), pod("q", labels=label)) == [
        "label kai.scheduler/node-pool of Job default/j and 2 others decides nothing"
    ]
    assert said(job(labels=label, template={"labels": label})) == [
        "label kai.scheduler/node-pool of Pod default/j-0 decides nothing"
    ]


def test_a_minimum_of_a_job_of_volcano_is_a_finding_and_no_second_gang() -> None:
    task = {"name": "t", "replicas": 2, "template": job()["spec"]["template"]}  # type: ignore[index]
    notes = {marks.VOLCANO_GROUP_MINIMUM: "1"}
    written: Document = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "w", "namespace": "default", "annotations": notes},
        "spec": {"minAvailable": 2, "tasks": [task]},
    }
    instance = instance_of(node("n1"), written)
    assert [group.min_member for group in instance.groups.values()] == [2]
    assert [each.code for each in instance.findings] == ["FieldIgnored"]


@pytest.mark.parametrize("mark", [marks.LIGHT_MATCH, marks.KOORDINATOR_MATCH])
def test_a_policy_of_matching_that_is_not_modelled_refuses_a_gang_by_either_name(mark: str) -> None:
    notes = {marks.KOORDINATOR_GANG: "g", marks.KOORDINATOR_MINIMUM: "1"}
    assert placed(instance_of(node("n1"), pod("p", annotations={**notes, mark: "only-waiting"}))) == []
    assert placed(instance_of(node("n1"), pod("p", annotations={**notes, mark: "once-satisfied"}))) == ["n1"]


# -------------------------------------------------------------------- the topology of a gang of Volcano's annotations


def two_racks(pods: int, **notes: str) -> Instance:
    """Two racks of two nodes of one cpu each, and the pods of one Job."""
    nodes = [node(f"{rack}{index}", cpu=1) for rack in "ab" for index in range(2)]
    racks = [hyper_node(rack, 1, nodes=(f"{rack}0", f"{rack}1")) for rack in "ab"]
    written = {key.replace("__", "/"): value for key, value in notes.items()}
    return instance_of(*nodes, *racks, job(pods=pods, template={"annotations": written}))


def test_without_a_minimum_one_pod_is_needed_and_the_others_are_near_it() -> None:
    assert len(placed(two_racks(3, **{TIER: "1"}))) == 2


def test_a_tier_that_is_no_number_keeps_the_gang_waiting() -> None:
    instance = two_racks(2, **{MODE: "hard", TIER: "rack"})
    assert placed(instance) == []
    (group,) = [each for each in instance.groups.values() if each.pending]
    assert group.invalid is not None
    assert f"annotation {TIER} of Pod default/j-0: found 'rack', expected a number" in group.invalid


def test_pods_that_state_two_tiers_have_the_lower_one() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
    pods = [
        pod(name, cpu=1, annotations={TIER: tier}, metadata={"ownerReferences": [owner]})
        for name, tier in (("p", "1"), ("q", "2"))
    ]
    instance = instance_of(node("a0", cpu=1), node("b0", cpu=1), hyper_node("a", 1, nodes=("a0",)), *pods)
    assert placed(instance) == ["a0"]
    assert ["the least counts" in each.message for each in instance.findings] == [True]


# ------------------------------------------------------------------------------------- marks on objects above the pods


@pytest.mark.parametrize(
    "mark", ["kueue.x-k8s.io/podset-required-topology", "gang.scheduling.koordinator.sh/name", MODE]
)
def test_a_mark_that_is_read_on_pods_only_is_a_finding_on_a_workload_whose_pods_do_not_bear_it(mark: str) -> None:
    where = "it is read in the metadata of pods, as spec.template states it"
    message = f"annotation {mark} in the metadata of Job default/j decides nothing: {where}"
    assert said(job(annotations={mark: "x"})) == [message]
    assert message not in said(job(annotations={mark: "x"}, template={"annotations": {mark: "x"}}))


def test_limits_of_node_groups_and_revocable_nodes_are_findings_where_pods_wait() -> None:
    volcano: Document = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "q", "annotations": {"volcano.sh/nodegroup-resource-limits": "{}"}},
        "spec": {},
    }
    revocable = node("n2", {"volcano.sh/revocable-zone": "z"})
    waits = pod("p", annotations={"scheduling.volcano.sh/queue-name": "q"})
    assert sorted(said(volcano, revocable, waits)) == [
        "annotation volcano.sh/nodegroup-resource-limits of Queue q decides nothing",
        "label volcano.sh/revocable-zone of Node n2 decides nothing",
    ]
    assert said(volcano, revocable) == []


def test_room_that_a_reservation_holds_is_said_to_count_as_free() -> None:
    reservation: Document = {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Reservation",
        "metadata": {"name": "r"},
    }
    message = "Reservation is not read: the room that Reservation r holds counts as free"
    assert said(reservation, pod("p")) == [message]
    assert said(reservation) == []
