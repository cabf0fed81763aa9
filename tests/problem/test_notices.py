"""Findings about what nobody reads: unknown owners and gangs, preferences, AppGroups that are not there; the policy."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from placer.problem import Finding, Instance, Policy
from tests.support import Document, instance_of, node, pod, policy


def codes(instance: Instance) -> list[tuple[str, str]]:
    return [(finding.code, finding.object) for finding in instance.findings]


MAY_MEAN_A_GANG = {
    "job set": (pod("p", labels={"jobset.sigs.k8s.io/jobset-name": "j"}), "JobSet"),
    "leader and workers": (pod("p", labels={"leaderworkerset.sigs.k8s.io/name": "l"}), "LeaderWorkerSet"),
}


@pytest.mark.parametrize("case", MAY_MEAN_A_GANG)
def test_owners_that_may_mean_a_gang(case: str) -> None:
    """Their pods are placed, one by one, with a finding."""
    written, kind = MAY_MEAN_A_GANG[case]
    instance = instance_of(node("n1"), written)
    assert codes(instance) == [("UnsupportedKind", kind)]
    assert [each.unsupported for each in instance.pending] == [()]


def preferred(kind: str) -> dict[str, Any]:
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}}


SPREAD = {"topologySpreadConstraints": [{"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]}


def test_preferences_are_one_finding_per_kind() -> None:
    soft = {**node("n1"), "spec": {"taints": [{"key": "a", "effect": "PreferNoSchedule"}]}}
    pods = (
        pod("a", spec=preferred("nodeAffinity")),
        pod("b", spec=preferred("podAffinity")),
        pod("c", spec=preferred("podAntiAffinity")),
        pod("d", spec=SPREAD),
        pod("e", node="n1", spec=SPREAD),
    )
    instance = instance_of(soft, *pods)
    assert [(each.code, each.object, each.message) for each in instance.findings] == [
        ("PreferenceIgnored", "Node n1", "PreferNoSchedule of Node n1 decides nothing"),
        ("PreferenceIgnored", "Pod default/a", "preferred affinity of Pod default/a and 2 others decides nothing"),
        ("PreferenceIgnored", "Pod default/d", "ScheduleAnyway of Pod default/d decides nothing"),
    ]


def test_an_app_group_that_is_not_there() -> None:
    pods = [pod(name, labels={"appgroup.diktyo.x-k8s.io": "shop"}) for name in ("a", "b")]
    assert codes(instance_of(node("n1"), *pods)) == [("UnknownReference", "AppGroup shop")]


def test_the_policy_as_written() -> None:
    written = policy(
        levels=["packing", "placed"],
        networkCost="majority",
        network={"topology": "net/nt", "weights": "UserDefined"},
        topologyKeys=["rack"],
        locality="all",
        resourceWeights={"cpu": 0.1, "nvidia.com/gpu": 2},
        rules={"C8": False, "C11": "off"},
    )
    assert instance_of(node("n1"), written).policy == Policy(
        levels=("packing", "placed"),
        network_cost="majority",
        network_topology="net/nt",
        network_weights="UserDefined",
        topology_keys=("rack",),
        locality_all=True,
        resource_weights={"cpu": Fraction(1, 10), "nvidia.com/gpu": Fraction(2)},
        rules_off=frozenset({"C8", "C11"}),
    )


# ----------------------------------------------------------------------------------------- what no server would accept


def _with_limits(name: str, requests: dict[str, str], limits: dict[str, str]) -> Document:
    container = {"name": "main", "resources": {"requests": requests, "limits": limits}}
    return pod(name, spec={"containers": [container]})


def test_requests_above_limits_are_one_finding_of_equal_pods() -> None:
    pods = [_with_limits(name, {"cpu": "500m"}, {"cpu": "250m"}) for name in ("b", "a")]
    message = (
        "container main of Pod default/a and 1 other requests cpu 500m, above its limit 250m; the API server refuses "
        "such a pod"
    )
    assert instance_of(node("n1"), *pods).findings == (Finding("InvalidObject", "Pod default/a", message),)


def test_what_cannot_be_overcommitted_is_asked_for_as_it_is_limited() -> None:
    refused = _with_limits("p", {"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "2"})
    (finding,) = instance_of(node("n1", gpu=2), refused).findings
    assert finding.code == "InvalidObject"
    assert "requests nvidia.com/gpu 1, below its limit 2, and nvidia.com/gpu cannot be overcommitted" in finding.message


def test_half_a_device_is_refused() -> None:
    (finding,) = instance_of(node("n1", gpu=2), _with_limits("p", {}, {"nvidia.com/gpu": "1.5"})).findings
    says = "container main of Pod default/p asks for nvidia.com/gpu 1500m, which is no whole number; the API server "
    assert (finding.code, finding.message) == ("InvalidObject", f"{says}refuses such a pod")


def test_thousandths_of_a_byte_are_hardly_meant() -> None:
    (finding,) = instance_of(node("n1"), _with_limits("p", {"memory": "64m", "cpu": "64m"}, {})).findings
    says = (
        "container main of Pod default/p asks for memory 64m: m is a thousandth of a byte, M a million bytes, Mi 2^20"
    )
    assert (finding.code, finding.message) == ("FractionalBytes", says)


def test_pod_level_requests_above_limits_are_a_finding() -> None:
    resources = {"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}
    (finding,) = instance_of(node("n1"), pod("p", spec={"resources": resources})).findings
    assert finding.message.startswith("Pod default/p requests memory 2Gi, above its limit 1Gi; ")


# ------------------------------------------------------------------------------------------- pods that are not made

NOT_MADE = {
    "DaemonSet": ("apps/v1", "DaemonSet.apps"),
    "ReplicaSet": ("apps/v1", "ReplicaSet.apps"),
    "ReplicationController": ("v1", "ReplicationController"),
}


def _workload(kind: str) -> Document:
    metadata = {"name": "agent", "namespace": "ops"}
    return {"apiVersion": NOT_MADE[kind][0], "kind": kind, "metadata": metadata, "spec": {}}


@pytest.mark.parametrize("kind", NOT_MADE)
def test_workloads_that_are_not_expanded_take_no_room_and_say_so(kind: str) -> None:
    name = NOT_MADE[kind][1]
    message = (
        f"{name} is not expanded, and no pod of {kind} ops/agent is in the instance: its pods take no room and are not "
        "placed"
    )
    assert instance_of(node("n1"), _workload(kind)).findings == (Finding("UnsupportedKind", name, message),)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            {"labels": {"gang.scheduling.koordinator.sh/name": "g"}},
            "label gang.scheduling.koordinator.sh/name, which is read as an annotation only, of Pod default/p decides "
            "nothing",
        ),
        (
            {"annotations": {"kueue.x-k8s.io/pod-group-name": "g"}},
            "annotation kueue.x-k8s.io/pod-group-name, which is read as a label only, of Pod default/p decides nothing",
        ),
        (
            {"annotations": {"nvidia.com/use-gputype": "A100"}},
            "annotation nvidia.com/use-gputype of Pod default/p decides nothing",
        ),
    ],
)
def test_a_mark_on_the_wrong_side_or_of_no_rule_is_a_finding(written: Document, message: str) -> None:
    assert instance_of(node("n1"), pod("p", **written)).findings == (Finding("FieldIgnored", "Pod default/p", message),)
