"""Pods that ask for what is not modelled are refused, with the field that said so (C4)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from placer.dense.eligibility import Eligibility
from placer.instance import Key
from placer.placement import Placement
from placer.solve import solve
from placer.verify import verify
from tests.support import Document, instance_of, node, pod, pod_group

NODES = (node("n1", {"zone": "a"}), node("n2"))


def refused(*docs: Document, name: str = "p") -> tuple[str, ...]:
    return instance_of(*NODES, *docs).pods[Key("default", name)].unsupported


def pod_affinity(kind: str, *terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def anti(**term: Any) -> dict[str, Any]:
    return pod_affinity("podAntiAffinity", {"topologyKey": "zone", **term})


def claim(name: str, phase: str | None, **spec: Any) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
        "status": {"phase": phase} if phase else {},
    }


DATA = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]}
EPHEMERAL = {"volumes": [{"name": "tmp", "ephemeral": {"volumeClaimTemplate": {}}}]}
HARD_SPREAD = {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1}

OWN = {
    "nothing": ({}, ()),
    "pod affinity": (
        pod_affinity("podAffinity", {"topologyKey": "zone", "labelSelector": {}}),
        ("spec.affinity.podAffinity: required pod affinity over zone",),
    ),
    "pod anti-affinity": (
        anti(labelSelector={"matchLabels": {"app": "x"}}),
        ("spec.affinity.podAntiAffinity: required pod anti-affinity over zone",),
    ),
    "hard spread": (
        {"topologySpreadConstraints": [{**HARD_SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}, HARD_SPREAD]},
        ("spec.topologySpreadConstraints[1]: DoNotSchedule over zone",),
    ),
    "a claim nobody has seen": (
        DATA,
        ("spec.volumes[data].persistentVolumeClaim: claim c is not in the instance, so it is not seen Bound",),
    ),
    "a generic ephemeral volume": (
        EPHEMERAL,
        ("spec.volumes[tmp].ephemeral: claim p-tmp is not in the instance, so it is not seen Bound",),
    ),
    "devices by claim": (
        {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]},
        ("spec.resourceClaims[gpu]: devices allocated by claim",),
    ),
    "an upstream gang": (
        {"schedulingGroup": {"podGroupName": "train-workers"}},
        (
            "spec.schedulingGroup.podGroupName: gang train-workers of a PodGroup of scheduling.k8s.io, which is not "
            "read",
        ),
    ),
    "an upstream gang of the first version": (
        {"workloadRef": {"name": "train", "podGroup": "workers", "podGroupReplicaKey": "0"}},
        ("spec.workloadRef: gang train of a Workload of scheduling.k8s.io, which is not read",),
    ),
    "the operating system of every node": ({"os": {"name": "linux"}}, ()),
    "an operating system that no node has": (
        {"os": {"name": "windows"}},
        ("spec.os.name: windows, and no node is of that operating system",),
    ),
    "volumes without claims": ({"volumes": [{"name": "e", "emptyDir": {}}, {"name": "m", "configMap": {}}]}, ()),
    "preferences": (
        {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}},
        (),
    ),
}


@pytest.mark.parametrize("case", OWN)
def test_own_fields(case: str) -> None:
    spec, expected = OWN[case]
    assert refused(pod("p", spec=spec)) == expected


def test_every_field_is_named() -> None:
    assert len(refused(pod("p", spec=DATA | EPHEMERAL | anti(labelSelector={})))) == 2
    spec = {"volumes": DATA["volumes"] + EPHEMERAL["volumes"], **anti(labelSelector={})}
    assert len(refused(pod("p", spec=spec))) == 3


def test_bound_pods_are_never_refused() -> None:
    assert refused(pod("p", node="n1", spec=DATA)) == ()


@pytest.mark.parametrize(
    ("phase", "reason"),
    [("Bound", None), ("Pending", "is not Bound"), ("Lost", "is not Bound"), (None, "is not Bound")],
)
def test_claims(phase: str | None, reason: str | None) -> None:
    expected = () if reason is None else (f"spec.volumes[data].persistentVolumeClaim: claim c {reason}",)
    assert refused(pod("p", spec=DATA), claim("c", phase)) == expected


def test_a_generic_ephemeral_volume_whose_claim_is_bound() -> None:
    assert refused(pod("p", spec=EPHEMERAL), claim("p-tmp", "Bound")) == ()


def test_a_claim_for_one_pod() -> None:
    once = claim("c", "Bound", accessModes=["ReadWriteOncePod"])
    reason = "spec.volumes[data].persistentVolumeClaim: claim c is ReadWriteOncePod and more than one pod names it"
    assert refused(pod("p", spec=DATA), once) == ()
    assert refused(pod("p", spec=DATA), pod("q", node="n1", spec=DATA), once) == (reason,)
    done = pod("q", node="n1", spec=DATA, status={"phase": "Succeeded"})
    assert refused(pod("p", spec=DATA), done, once) == ()


# anti-affinity of pods that have a node

WEB = {"labelSelector": {"matchLabels": {"app": "web"}}}
OTHERS = {"namespaceSelector": {"matchLabels": {"team": "x"}}}
EVERYWHERE: dict[str, Any] = {"namespaceSelector": {}}

AGAINST: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "labels match": (WEB, {}, True),
    "labels do not match": ({"labelSelector": {"matchLabels": {"app": "db"}}}, {}, False),
    "an empty selector takes every pod": ({"labelSelector": {}}, {}, True),
    "no selector takes none": ({}, {}, False),
    "expressions": (
        {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "web"]}]}},
        {},
        True,
    ),
    "an expression without values": (
        {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}},
        {},
        False,
    ),
    "other namespaces": (WEB | {"namespaces": ["other"]}, {}, False),
    "our namespace among others": (WEB | {"namespaces": ["other", "default"]}, {}, True),
    "a pod of another namespace means its own": (WEB, {"namespace": "other"}, False),
    "namespaces by label, labels unknown": (WEB | OTHERS, {"namespace": "other"}, True),
    "all namespaces": (WEB | EVERYWHERE, {"namespace": "other"}, True),
    "the node lacks the topology key": (WEB, {"node": "n2"}, False),
    "the node is not there": (WEB, {"node": "gone"}, True),
    "being deleted": (WEB, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, True),
    "it has ended": (WEB, {"status": {"phase": "Failed"}}, False),
    "a key whose value differs": (WEB | {"matchLabelKeys": ["v"]}, {"labels": {"v": "1"}}, False),
    "a key whose value is the same": (WEB | {"matchLabelKeys": ["v"]}, {"labels": {"v": "2"}}, True),
    "a key that the bound pod lacks": (WEB | {"matchLabelKeys": ["v"]}, {}, True),
    "a key whose value must differ, and does": (WEB | {"mismatchLabelKeys": ["v"]}, {"labels": {"v": "1"}}, True),
    "a key whose value must differ, and does not": (WEB | {"mismatchLabelKeys": ["v"]}, {"labels": {"v": "2"}}, False),
}


@pytest.mark.parametrize("case", AGAINST)
def test_anti_affinity_of_a_bound_pod(case: str) -> None:
    term, options, expected = AGAINST[case]
    bound = pod("bound", spec=anti(**term), **({"node": "n1"} | options))
    ours = pod("p", labels={"app": "web", "v": "2"})
    name = f"{options.get('namespace', 'default')}/bound"
    message = f"spec.affinity.podAntiAffinity of bound Pod {name}: required, and matches this pod"
    assert refused(bound, ours) == ((message,) if expected else ())


@pytest.mark.parametrize(("labels", "expected"), [({"team": "x"}, 1), ({"team": "y"}, 0), ({}, 0)])
def test_namespaces_by_label(labels: dict[str, str], expected: int) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": labels}}
    bound = pod("bound", node="n1", namespace="other", spec=anti(**WEB, **OTHERS))
    assert len(refused(namespace, bound, pod("p", labels={"app": "web"}))) == expected


def test_the_first_bound_pod_by_name_is_named() -> None:
    bound = [pod(name, node="n1", spec=anti(**WEB)) for name in ("c", "a", "b")]
    (message,) = refused(*bound, pod("p", labels={"app": "web"}))
    assert "Pod default/a" in message


def test_pending_pods_keep_nobody_off() -> None:
    assert refused(pod("other", spec=anti(**WEB)), pod("p", labels={"app": "web"})) == ()


def upstream(kind: str, version: str = "v1beta1", **spec: Any) -> Document:
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": kind,
        "metadata": {"name": "g", "namespace": "default"},
        "spec": spec,
    }


UPSTREAM = {
    "PodGroup": ([upstream("PodGroup", schedulingPolicy={"gang": {"minCount": 2}})], {"podGroupName": "g"}),
    "part of a CompositePodGroup": (
        [
            upstream("CompositePodGroup", "v1alpha3", schedulingPolicy={"gang": {"minGroupCount": 1}}),
            upstream("PodGroup", parentCompositePodGroupName="g"),
        ],
        {"podGroupName": "g"},
    ),
    "one that is made later": ([], {"podGroupName": "later"}),
}


@pytest.mark.parametrize("case", UPSTREAM)
def test_no_half_of_an_upstream_gang_is_bound(case: str) -> None:
    """There is room for one of its two pods; a pod of no gang goes as ever, also beside a Volcano PodGroup's name."""
    objects, group = UPSTREAM[case]
    gang = [pod(name, spec={"schedulingGroup": group}, cpu=5) for name in ("a", "b")]
    both = pod("c", group="v", spec={"schedulingGroup": group}, cpu=1)
    instance = instance_of(node("n1"), *objects, *gang, both, pod_group("v", minMember=1), pod("free", cpu=1))
    everything = Placement.of({Key("default", name): "n1" for name in ("a", "c", "free")})
    assert [each.subjects for each in verify(instance, everything) if each.rule == "C4"] == [
        ("Pod default/a",),
        ("Pod default/c",),
    ]
    result = solve(instance, method="greedy")
    assert [binding.pod.name for binding in result.placement.bindings] == ["free"]
    assert {key.name: reason.code for key, reason in result.reasons.items()} == dict.fromkeys("abv", "Unsupported")
    assert all("spec.schedulingGroup.podGroupName" in reason.message for reason in result.reasons.values())
    assert instance.findings == ()


def test_a_job_that_its_controller_makes_an_upstream_gang() -> None:
    """Expanded, its pods wait, as they do where they are there and the field says so."""
    container = {"name": "main", "resources": {"requests": {"cpu": 1}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    documents = [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"parallelism": 2, "completions": 2, "template": template, **scheduling},
        }
        for name, scheduling in (("gang", {"scheduling": {"schedulingPolicy": {"gang": {}}}}), ("free", {}))
    ]
    instance = instance_of(node("n1"), *documents)
    said = "spec.scheduling of Job default/gang: a gang of a PodGroup of scheduling.k8s.io, which is not read"
    assert {key.name: each.unsupported for key, each in instance.pods.items()} == {
        "free-0": (),
        "free-1": (),
        "gang-0": (said,),
        "gang-1": (said,),
    }


def test_a_pod_goes_to_nodes_of_its_operating_system() -> None:
    """A node that does not say is one of Linux; the kubelet of another system would refuse the pod."""
    nodes = (node("n1"), node("n2", {"kubernetes.io/os": "linux"}), node("n3", {"kubernetes.io/os": "windows"}))
    pods = [pod(name, spec={"os": {"name": name}}, cpu=8) for name in ("linux", "windows")]
    instance = instance_of(*nodes, *pods)
    assert all(each.unsupported == () for each in instance.pods.values())
    for name, right in (("linux", {"n1", "n2"}), ("windows", {"n3"})):
        constraints = instance.pods[Key("default", name)].constraints
        assert {each.name for each in instance.nodes.values() if constraints.admits(each)} == right
        assert set(np.flatnonzero(Eligibility(list(instance.nodes.values())).row(constraints))) == {
            int(each[1]) - 1 for each in right
        }
    wrong = Placement.of({Key("default", "windows"): "n1"})
    assert [(each.rule, each.message) for each in verify(instance, wrong)] == [
        ("C3", "Pod default/windows may not be on Node n1: operating system other than windows")
    ]
