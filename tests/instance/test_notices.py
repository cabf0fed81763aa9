"""Findings about what nobody reads: unknown owners and gangs, preferences, AppGroups that are not there; the policy."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from placer.errors import BadInstance
from placer.instance import Finding, Instance, Policy
from tests.support import Document, instance_of, node, pod, pod_group, policy, queue


def codes(instance: Instance) -> list[tuple[str, str]]:
    return [(finding.code, finding.object) for finding in instance.findings]


def owned(name: str, kind: str, version: str, **options: Any) -> Document:
    owner = {"apiVersion": version, "kind": kind, "name": "o", "controller": True}
    return pod(name, metadata={"ownerReferences": [owner]}, **options)


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        ("ReplicaSet", "apps/v1"),
        ("Job", "batch/v1"),
        ("Job", "batch.volcano.sh/v1alpha1"),
        ("DaemonSet", "apps/v1"),
        ("Node", "v1"),
    ],
)
def test_owners_that_are_read_are_no_finding(kind: str, version: str) -> None:
    assert instance_of(node("n1"), owned("p", kind, version)).findings == ()


def test_an_owner_that_is_not_read_is_one_finding_per_kind() -> None:
    pods = [owned(name, "PyTorchJob", "kubeflow.org/v1") for name in ("b", "a")]
    instance = instance_of(node("n1"), *pods, owned("c", "RayCluster", "ray.io/v1"))
    message = (
        "PyTorchJob.kubeflow.org is not read, so Pod default/a and 1 other count as pods by themselves and not as a "
        "gang of it"
    )
    assert instance.findings[0] == Finding("UnsupportedKind", "PyTorchJob.kubeflow.org", message)
    assert codes(instance)[1:] == [("UnsupportedKind", "RayCluster.ray.io")]


def test_an_owner_is_no_finding_where_the_pod_is_in_a_gang_or_runs() -> None:
    gang = owned("p", "PyTorchJob", "kubeflow.org/v1", group="g")
    running = owned("q", "PyTorchJob", "kubeflow.org/v1", node="n1")
    assert instance_of(node("n1"), pod_group("g"), gang, running).findings == ()


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


def test_kinds_that_are_skipped_are_counted_and_no_finding() -> None:
    job_set = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "j"}}
    instance = instance_of(node("n1"), job_set)
    assert instance.findings == ()
    assert instance.skipped == {"jobset.x-k8s.io/v1alpha2 JobSet": 1}


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


def test_preferences_of_nodes_do_not_matter_where_nothing_is_pending() -> None:
    soft = {**node("n1"), "spec": {"taints": [{"key": "a", "effect": "PreferNoSchedule"}]}}
    assert instance_of(soft, pod("e", node="n1", spec=SPREAD)).findings == ()


def test_an_app_group_that_is_not_there() -> None:
    pods = [pod(name, labels={"appgroup.diktyo.x-k8s.io": "shop"}) for name in ("a", "b")]
    assert codes(instance_of(node("n1"), *pods)) == [("UnknownReference", "AppGroup shop")]


def test_the_policy_is_the_default_where_there_is_none() -> None:
    assert instance_of(node("n1")).policy == instance_of(node("n1"), policy()).policy == Policy()


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


#: What two queues say of their share, and which fields the finding names.
SHARES = {
    "equal": ({"weight": 2, "deserved": {"cpu": 4}}, {"weight": 2, "deserved": {"cpu": "4000m"}}, None),
    "nothing, and what that means": ({"weight": 1, "deserved": {"cpu": 0}}, {}, None),
    "weight": ({"weight": 3}, {}, "weight"),
    "guarantee": ({"guarantee": {"resource": {"cpu": 2}}}, {"guarantee": {}}, "guarantee"),
    "deserved": ({"deserved": {"cpu": 4}}, {"deserved": {"cpu": 4, "nvidia.com/gpu": 1}}, "deserved"),
    "two": ({"weight": 3, "deserved": {"cpu": 4}}, {}, "weight and deserved"),
}


def _in_queues(one: dict[str, Any], other: dict[str, Any], *, pending: tuple[str, ...] = ("a", "b")) -> Instance:
    queues = [{**queue(name), "spec": spec} for name, spec in (("a", one), ("b", other))]
    at = "scheduling.volcano.sh/queue-name"
    pods = [pod(f"p-{name}", annotations={at: name}, node=None if name in pending else "n1") for name in ("a", "b")]
    return instance_of(node("n1"), *queues, *pods)


@pytest.mark.parametrize("case", SHARES)
def test_shares_of_queues_that_differ_are_one_finding(case: str) -> None:
    one, other, named = SHARES[case]
    message = f"{named} of Queue a and 1 other differ and decide nothing yet: priority and capability do"
    expected = () if named is None else (Finding("QueueShareIgnored", "Queue a", message),)
    assert _in_queues(one, other).findings == expected


def test_shares_of_queues_in_which_nothing_waits_are_no_finding() -> None:
    assert _in_queues({"weight": 3}, {}, pending=("a",)).findings == ()


@pytest.mark.parametrize(
    ("disruption", "said"),
    [
        ({"evict": "none", "move": None, "protect": [{"namespaces": ["ml"]}], "maxPods": 0}, None),
        ({"evict": "lower-priority"}, "disruption.evict lower-priority"),
        ({"evict": "lower-priority", "move": "fewest"}, "disruption.evict lower-priority and disruption.move fewest"),
    ],
)
def test_what_a_policy_allows_and_is_not_done_is_a_finding(disruption: dict[str, Any], said: str | None) -> None:
    """What it protects is no finding: nothing at all is disturbed."""
    message = f"{said} of Policy default decides nothing yet: nothing that runs is disturbed"
    expected = () if said is None else (Finding("DisruptionIgnored", "Policy default", message),)
    assert instance_of(node("n1"), policy(disruption=disruption)).findings == expected


def test_gangs_by_owner_are_refused_in_words() -> None:
    with pytest.raises(BadInstance) as caught:
        instance_of(node("n1"), policy(gangs="owners"))
    (fault,) = caught.value.faults
    assert (fault.field, fault.found) == ("spec.gangs", "'owners'")
    assert fault.expected == "declared: owners are not read as gangs yet, so name their pods in PodGroups"
