"""Pods that ask for what is not modelled are refused, with the field that said so (C4)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from placer import solve
from placer.arrays.eligibility import Eligibility
from placer.kube.marks import SHARES, SLICES
from placer.problem import Key
from placer.problem.placement import Placement
from placer.rules import verify
from tests.problem.test_upstream_gangs import gang, upstream
from tests.support import Document, instance_of, node, pod

READING = Path(__file__).parents[2] / "models" / "reading.md"
NODES = (node("n1", {"zone": "a"}), node("n2"))


def refused(*docs: Document, name: str = "p") -> tuple[str, ...]:
    return instance_of(*NODES, *docs).pods[Key("default", name)].unsupported


def pod_affinity(kind: str, *terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


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
    "pod affinity": (pod_affinity("podAffinity", {"topologyKey": "zone", "labelSelector": {}}), ()),
    "pod affinity without a key": (
        pod_affinity("podAffinity", {"labelSelector": {}}),
        ("spec.affinity.podAffinity: required pod affinity without a topologyKey",),
    ),
    "pod anti-affinity without a key": (
        pod_affinity("podAntiAffinity", {"labelSelector": {}}),
        ("spec.affinity.podAntiAffinity: required pod anti-affinity without a topologyKey",),
    ),
    "hard spread": ({"topologySpreadConstraints": [HARD_SPREAD]}, ()),
    "hard spread without a key": (
        {"topologySpreadConstraints": [HARD_SPREAD, {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]},
        ("spec.topologySpreadConstraints[1]: DoNotSchedule without a topologyKey",),
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
    "a gang without a name": ({"schedulingGroup": {}}, ("spec.schedulingGroup: a gang without a name",)),
    "kernel parameters that every kubelet lets a pod set": (
        {"securityContext": {"fsGroup": 1, "sysctls": [{"name": "net/ipv4/tcp_syncookies", "value": "1"}]}},
        (),
    ),
    "kernel parameters that not every kubelet does": (
        {"securityContext": {"sysctls": [{"name": "net.core.somaxconn", "value": "1024"}]}},
        ("spec.securityContext.sysctls: net.core.somaxconn, which a kubelet allows only if it is configured to",),
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


@pytest.mark.parametrize(
    ("phase", "reason"),
    [("Bound", None), ("Pending", "is not Bound"), ("Lost", "is not Bound"), (None, "is not Bound")],
)
def test_claims(phase: str | None, reason: str | None) -> None:
    expected = () if reason is None else (f"spec.volumes[data].persistentVolumeClaim: claim c {reason}",)
    assert refused(pod("p", spec=DATA), claim("c", phase)) == expected


def test_a_claim_for_one_pod() -> None:
    once = claim("c", "Bound", accessModes=["ReadWriteOncePod"])
    reason = "spec.volumes[data].persistentVolumeClaim: claim c is ReadWriteOncePod and more than one pod names it"
    assert refused(pod("p", spec=DATA), once) == ()
    assert refused(pod("p", spec=DATA), pod("q", node="n1", spec=DATA), once) == (reason,)
    done = pod("q", node="n1", spec=DATA, status={"phase": "Succeeded"})
    assert refused(pod("p", spec=DATA), done, once) == ()


def test_a_job_that_its_controller_makes_an_upstream_gang() -> None:
    """Expanded, its pods are one; where they are there and name no PodGroup, they wait."""
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
    assert {key.name: group.min_member for key, group in instance.groups.items() if key.api_group} == {"gang": 2}
    assert all(not each.unsupported for each in instance.pods.values())
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "gang", "controller": True}
    there = instance_of(node("n1"), *documents, pod("gang-0", metadata={"ownerReferences": [owner]}))
    said = "spec.scheduling of Job default/gang: a gang, of which the pod names no PodGroup"
    assert there.pods[Key("default", "gang-0")].unsupported == (said,)


def test_a_label_of_the_pod_says_of_which_operating_system_its_node_must_be() -> None:
    """Kubelets read it beside `spec.os`; where the two differ none takes the pod."""
    nodes = (node("n1", {"kubernetes.io/os": "linux"}), node("n2", {"kubernetes.io/os": "windows"}))
    label = {"kubernetes.io/os": "windows"}
    instance = instance_of(*nodes, pod("a", labels=label), pod("b", labels=label, spec={"os": {"name": "linux"}}))
    mine, torn = (instance.pods[Key("default", name)] for name in "ab")
    assert [name for name, each in instance.nodes.items() if mine.constraints.admits(each)] == ["n2"]
    assert mine.unsupported == ()
    assert torn.unsupported == (
        "spec.os.name: linux and metadata.labels[kubernetes.io/os]: windows, and a node is of one only",
    )
    (alone,) = instance_of(nodes[0], pod("a", labels=label)).pods.values()
    assert alone.unsupported == ("metadata.labels[kubernetes.io/os]: windows, and no node is of that operating system",)


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


def affinity_terms(field: str, terms: int, values: int = 1) -> dict[str, Any]:
    chosen = {"matchExpressions": [{"key": "app", "operator": "In", "values": [f"v{each}" for each in range(values)]}]}
    asked = [{"topologyKey": f"k{number}", "labelSelector": chosen} for number in range(terms)]
    return {"affinity": {field: {"requiredDuringSchedulingIgnoredDuringExecution": asked}}}


def spread_of(constraints: int, when: str = "DoNotSchedule") -> dict[str, Any]:
    asked = [{"maxSkew": 1, "topologyKey": f"k{at}", "whenUnsatisfiable": when} for at in range(constraints)]
    return {"topologySpreadConstraints": asked}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (spread_of(50), ""),
        (spread_of(51), "spec.topologySpreadConstraints: 51 constraints, of 50 at most"),
        (spread_of(3_000, "ScheduleAnyway"), ""),
        (affinity_terms("podAffinity", 50), ""),
        (affinity_terms("podAffinity", 51), "spec.affinity.podAffinity: 51 terms, of 50 at most"),
        (affinity_terms("podAntiAffinity", 51), "spec.affinity.podAntiAffinity: 51 terms, of 50 at most"),
        (affinity_terms("podAntiAffinity", 1, 4_999), ""),
        (
            affinity_terms("podAntiAffinity", 1, 5_000),
            "spec: 5,001 names and values in its terms about other pods, of 5,000 at most",
        ),
    ],
)
def test_what_every_pod_is_held_against_is_bounded(spec: dict[str, Any], said: str) -> None:
    """A hundred pods of 3,000 spread constraints each kept a pass busy for more than four minutes."""
    assert refused(pod("p", spec=spec)) == ((said,) if said else ())
    there = instance_of(node("n1"), pod("p", node="n1", spec=spec))
    found = [each.message for each in there.findings if each.code == "Unreadable"]
    assert found == ([f"{said}; it keeps no other pod off"] if said else [])
    assert bool(there.pods[Key("default", "p")].neighbours) == (not said and "ScheduleAnyway" not in str(spec))


def node_affinity(terms: int, expressions: int = 1, values: int = 1) -> dict[str, Any]:
    asked = [
        [
            {"key": f"k{number}", "operator": "In", "values": [f"v{at}-{each}" for each in range(values)]}
            for number in range(expressions)
        ]
        for at in range(terms)
    ]
    written = {"nodeSelectorTerms": [{"matchExpressions": each} for each in asked]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": written}}}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (node_affinity(100), ""),
        (node_affinity(101), "spec.affinity.nodeAffinity: 202 terms and expressions, of 200 at most"),
        (node_affinity(1, 200), "spec.affinity.nodeAffinity: 201 terms and expressions, of 200 at most"),
        (node_affinity(1, 1, 5_000), ""),
        (node_affinity(2, 1, 2_501), "spec.affinity.nodeAffinity: 5,002 values, of 5,000 at most"),
        ({"tolerations": [{"key": f"k{at}", "operator": "Exists"} for at in range(200)]}, ""),
        (
            {"tolerations": [{"key": f"k{at}", "operator": "Exists"} for at in range(201)]},
            "spec.tolerations: 201 tolerations, of 200 at most",
        ),
        ({"nodeSelector": {f"k{at}": "v" for at in range(201)}}, "spec.nodeSelector: 201 labels, of 200 at most"),
    ],
)
def test_what_every_node_is_held_against_is_bounded(spec: dict[str, Any], said: str) -> None:
    """One pod of 1.5 MiB, of 10,000 terms, kept a pass over 1,000 nodes busy for minutes."""
    assert refused(pod("p", spec=spec)) == ((said,) if said else ())


def in_gang(group: Document) -> tuple[Document, Document]:
    """A PodGroup of Kubernetes, and its pod."""
    return group, pod("p", spec={"schedulingGroup": {"podGroupName": "g"}})


def job_pod() -> tuple[Document, Document]:
    """A batch Job that is a gang, and a pod of it that names none."""
    template = {"spec": {"containers": [{"name": "main"}], "restartPolicy": "Never"}}
    made = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"template": template, "scheduling": {"schedulingPolicy": {"gang": {}}}},
    }
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "controller": True}
    return made, pod("p", metadata={"ownerReferences": [owner]})


KEYLESS = {"labelSelector": {}}
ENDING = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "default", "deletionTimestamp": "2026-01-01T00:00:00Z"},
}
#: Field, as the page of what is refused names it, to objects with a pod ``p`` that it keeps from being bound.
REFUSED: dict[str, tuple[Document, ...]] = {
    "spec.volumes.persistentVolumeClaim": (pod("p", spec=DATA),),
    "spec.volumes.ephemeral": (pod("p", spec=EPHEMERAL),),
    "spec.resourceClaims": (pod("p", spec={"resourceClaims": [{"name": "gpu"}]}),),
    "spec.os.name": (pod("p", spec={"os": {"name": "windows"}}),),
    "metadata.labels[kubernetes.io/os]": (pod("p", labels={"kubernetes.io/os": "windows"}),),
    "spec.securityContext.sysctls": (pod("p", spec={"securityContext": {"sysctls": [{"name": "kernel.sem"}]}}),),
    "spec.parentCompositePodGroupName": in_gang(upstream(**gang(1, parentCompositePodGroupName="c"))),
    "apiVersion": in_gang(upstream(version="v2", **gang(1))),
    "spec.schedulingGroup": (pod("p", spec={"schedulingGroup": {}}),),
    "spec.scheduling": job_pod(),
    "metadata.annotations": (
        pod("p", annotations={"leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology": "rack"}),
    ),
    "spec.affinity.podAffinity": (pod("p", spec=pod_affinity("podAffinity", KEYLESS)),),
    "spec.affinity.podAntiAffinity": (pod("p", spec=pod_affinity("podAntiAffinity", KEYLESS)),),
    "spec.topologySpreadConstraints": (
        pod("p", spec={"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1}]}),
    ),
    "spec.affinity.nodeAffinity": (pod("p", spec=node_affinity(101)),),
    "metadata.labels": (pod("p", labels={"sharedgpu/gpu_request": "0.5"}),),
    "resources.requests": (pod("p", **{"deviceclass.resource.kubernetes.io/gpu": 1}),),
    "metadata.namespace": (ENDING, pod("p")),
    "spec.nodeSelector": (pod("p", spec={"nodeSelector": {f"k{at}": "v" for at in range(201)}}),),
    "spec.tolerations": (pod("p", spec={"tolerations": [{"key": f"k{at}"} for at in range(201)]}),),
}


SHARE = "a share of GPUs that no request states"


@pytest.mark.parametrize("mark", SHARES)
def test_a_share_that_only_a_mark_states(mark: str) -> None:
    place = "labels" if mark.startswith("sharedgpu") else "annotations"
    marked = pod("p", annotations={mark: "1"} if place == "annotations" else None, labels={mark: "1"})
    if place == "annotations":
        marked["metadata"].pop("labels")
    assert refused(marked) == (f"metadata.{place}[{mark}]: {SHARE}",)


def test_a_share_that_a_request_of_its_name_states() -> None:
    name = "alibabacloud.com/gpu-milli"
    assert refused(pod("p", annotations={name: "500"}, **{name: 500})) == ()
    assert refused(pod("p", annotations={"gpu-fraction": "0.5"}, gpu=1)) == (
        f"metadata.annotations[gpu-fraction]: {SHARE}",
    )


@pytest.mark.parametrize("mark", SLICES)
def test_slices_of_a_pod_set(mark: str) -> None:
    assert refused(pod("p", annotations={mark: "1"})) == (f"annotation {mark}: 1, and slices are not modelled",)


def device_class(name: str, resource: str | None) -> Document:
    spec = {} if resource is None else {"extendedResourceName": resource}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def test_a_resource_that_only_devices_serve() -> None:
    """Of several classes the lowest name is told; a node with a device plugin offers the resource all the same."""
    classes = [device_class(name, "nvidia.com/gpu") for name in ("b", "a")] + [device_class("c", None)]
    said = "resources.requests[nvidia.com/gpu]: devices of DeviceClass a, and no node offers it otherwise"
    assert refused(*classes, pod("p", gpu=1)) == (said,)
    assert refused(*classes, pod("p", cpu=1)) == ()
    assert refused(*classes, pod("p", gpu=1), node("n3", gpu=8)) == ()
    assert refused(pod("p", gpu=1)) == ()


def test_the_page_lists_every_field_that_is_refused() -> None:
    table = READING.read_text(encoding="utf-8").partition("## Refusals\n")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert {field for cell in cells for field in re.findall(r"`([^`]+)`", cell)} == set(REFUSED)


@pytest.mark.parametrize("field", REFUSED)
def test_what_the_page_lists_is_refused_and_the_field_is_named(field: str) -> None:
    """A gang's own fields are told with the gang's name before them."""
    instance = instance_of(*NODES, *REFUSED[field])
    (said,) = instance.pods[Key("default", "p")].unsupported
    assert re.sub(r"\[(?!kubernetes)[^\]]*\]", "", said).startswith(
        (field, f"PodGroup default/g: {field}", "PodGroup default/g: its version is not read, of API scheduling.k8s.io")
    )
    bad = Placement.of({Key("default", "p"): "n1"})
    assert "C4" in {each.rule for each in verify(instance, bad)}
    assert solve(instance, method="greedy").placement.bindings == ()
    assert {reason.code for reason in solve(instance, method="greedy").reasons.values()} == {"Unsupported"}


def test_nothing_is_bound_in_a_namespace_that_is_being_deleted_nor_moved_there() -> None:
    """The server refuses a binding in it, and its controllers make no pod again."""
    stays = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    runs = pod("runs", node="n1")
    said = ("metadata.namespace: default, which is being deleted",)
    assert refused(ENDING, pod("p"), runs) == said
    assert refused(ENDING, pod("p"), runs, name="runs") == said
    assert refused(stays, pod("p"), runs) == ()
    result = solve(instance_of(*NODES, ENDING, pod("p")), method="greedy")
    assert [reason.code for reason in result.reasons.values()] == ["Unsupported"]
