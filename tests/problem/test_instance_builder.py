"""The whole way from objects to an instance: the order does not matter, workloads are expanded, known cases hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.problem import Instance
from tests.examples import examples
from tests.support import (
    Document,
    hyper_node,
    instance_of,
    node,
    pod,
    pod_group,
    policy,
    queue,
    volcano_case,
    volcano_cases,
)

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]},
        },
    },
}
VCJOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "train", "namespace": "default"},
    "spec": {
        "minAvailable": 2,
        "queue": "q",
        "tasks": [{"name": "w", "replicas": 3, "template": {"spec": {"containers": [{"name": "main"}]}}}],
    },
}

#: One of almost everything, much of it wrong: what could depend on the order of the input has a chance to.
ZOO: tuple[Document, ...] = (
    node("n1", {"rack": "a"}),
    node("n2", {"rack": "a"}),
    node("n3", {"rack": "b"}),
    hyper_node("a", 1, nodes=("n1", "n2", "gone"), tier_name="rack"),
    hyper_node("b", 1, nodes=("n3",), tier_name="rack"),
    hyper_node("c", 1, nodes=("n3",), tier_name="rack"),
    hyper_node("x", 2, children=("y",)),
    hyper_node("y", 3, children=("x", "b"), tier_name="rack"),
    queue("q", {"cpu": 1}),
    queue("r", parent="s"),
    queue("s", parent="r"),
    pod_group("g", minMember=2, queue="q", networkTopology={"mode": "hard"}),
    pod_group(
        "h", subGroupPolicy=[{"name": "s", "matchLabelKeys": ["part"]}], networkTopology={"highestTierName": "no"}
    ),
    pod("g1", group="g", cpu=1, spec={"priorityClassName": "unknown"}),
    pod("g2", group="g", node="n1", cpu=2),
    pod("g3", group="g", node="n2", status={"phase": "Succeeded"}),
    pod("h1", group="h", labels={"part": "1"}),
    pod("h2", group="h", labels={"part": "10"}),
    pod("h3", group="h", labels={"part": "2"}),
    pod("h4", group="h"),
    pod("lost", group="nowhere"),
    pod("lone", spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}),
    pod("far", node="gone"),
    policy(locality="all"),
    DEPLOYMENT,
    VCJOB,
)


def comparable(instance: Instance) -> Instance:
    """The instance without the hash of its text, which the order of the text changes."""
    return replace(instance, digest="")


def ordered(instance: Instance) -> list[list[Any]]:
    mappings: tuple[Any, ...] = (instance.nodes, instance.pods, instance.groups, instance.queues)
    return [list(each) for each in (*mappings, instance.topology.hyper_nodes)]


@examples(40)
@given(st.permutations(ZOO))
def test_the_order_of_the_objects_does_not_matter(docs: list[Document]) -> None:
    expected, found = instance_of(*ZOO), instance_of(*docs)
    assert comparable(found) == comparable(expected)
    assert ordered(found) == ordered(expected)


def test_everything_is_sorted_and_every_pod_knows_its_group() -> None:
    instance = instance_of(*ZOO)
    for keys in ordered(instance):
        assert keys == sorted(keys)
    assert list(instance.findings) == sorted(set(instance.findings))
    for each in instance.pending:
        assert each.group is not None
        assert each.key in instance.groups[each.group].pending
    for key, group in instance.groups.items():
        assert group.key == key
        for index, sub_group in enumerate(group.sub_groups):
            assert {instance.pods[each].sub_group for each in (*sub_group.pending, *sub_group.bound)} == {index}


def test_in_a_cluster_only_pods_that_exist_are_placed() -> None:
    instance = instance_of(node("n1"), DEPLOYMENT, VCJOB, cluster=True)
    assert (instance.pods, instance.groups) == ({}, {})


@pytest.mark.parametrize("name", volcano_cases())
def test_cases_taken_from_volcano(name: str) -> None:
    case, instance = volcano_cases()[name], volcano_case(name)
    assert instance.findings == ()
    assert set(instance.nodes) == set(case["nodes"])
    assert {key.name for key in instance.groups} == {group["name"] for group in case["podgroups"]}
    assert [each.name for each in instance.pending] == sorted(
        each["name"] for each in case["pods"] if "node" not in each
    )
    assert not any(each.unsupported for each in instance.pending)
    daemons = [each for each in instance.pods.values() if each.daemon]
    assert len(daemons) == (len(case["nodes"]) if "daemon" in case else 0)


def test_a_case_with_everything_in_it() -> None:
    instance = volcano_case("e2e-5.2-pairs-spread-over-two-leaves")
    (group,) = instance.groups.values()
    assert (group.min_member, group.min_task_member, group.need) == (4, {"t": 4}, 4)
    assert group.topology is not None
    assert group.topology.limit == 2
    assert [(each.name, len(each.pending)) for each in group.sub_groups] == [("t-0", 2), ("t-1", 2)]
    assert group.policies[0].size == 2
    # f0 takes 3 of 8 cpu, the daemon 100m.
    assert instance.held["n0"]["cpu"] == 3100
    assert instance.topology.path("n0") == ("s0", "s4", "s6")
