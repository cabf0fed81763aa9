"""C12, C13 and C14 for a single pod admit the nodes that kube-scheduler's filters do.

Each case is a fact that the table tests of ``plugins/interpodaffinity`` and ``plugins/podtopologyspread`` state (their
``filtering_test.go``), told in our words and with objects of our own.
"""

from __future__ import annotations

from typing import Any

import pytest

from placer.problem import Key
from placer.problem.placement import Placement
from placer.rules import verify
from tests.support import Document, instance_of, node, pod

RULES = ("C12", "C13", "C14")
#: Two zones in one region; x has no label of either, y only one of a region.
NODES = {
    "a1": {"zone": "a", "region": "r"},
    "a2": {"zone": "a", "region": "r"},
    "b1": {"zone": "b", "region": "r"},
    "x": {},
    "y": {"region": "r"},
}
ALL = "a1 a2 b1 x y"
WEB, DB = {"app": "web"}, {"app": "db"}


def term(key: str, selector: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, **({} if selector is None else {"labelSelector": selector}), **more}


def equal(**labels: str) -> dict[str, Any]:
    return {"matchLabels": labels}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def apart(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def mixed(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": one["affinity"] | other["affinity"]}


def spread(*limits: dict[str, Any]) -> dict[str, Any]:
    return {"topologySpreadConstraints": list(limits)}


def limit(key: str, skew: int = 1, selector: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    selected = {"labelSelector": equal(app="web") if selector is None else selector}
    return {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule", **selected, **more}


def old(name: str, where: str, labels: dict[str, str], spec: dict[str, Any] | None = None, **more: Any) -> Document:
    return pod(name, node=where, labels=labels, spec=spec, **more)


def webs(text: str) -> list[Document]:
    """One pod of web on each of some nodes."""
    return [old(f"web-{number}", name, WEB) for number, name in enumerate(text.split())]


def namespace(name: str, **labels: str) -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


LEAVING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
#: Name to: labels and spec of the pod, what is there, the nodes that admit it.
CASES: dict[str, tuple[dict[str, str], dict[str, Any], list[Document], str]] = {
    "a pod that asks for nothing goes anywhere": (WEB, {}, [], ALL),
    "affinity with nothing there to match": (WEB, near(term("zone", equal(app="db"))), [], ""),
    "affinity to a pod by In": (WEB, near(term("zone", expression("app", "In", "db", "x"))), webs("b1"), ""),
    "affinity to a pod that is there": (DB, near(term("zone", equal(app="web"))), webs("a1"), "a1 a2"),
    "affinity over a key that the other's node lacks": (DB, near(term("zone", equal(app="web"))), webs("x"), ""),
    "affinity by NotIn": (DB, near(term("region", expression("app", "NotIn", "db"))), webs("a1"), "a1 a2 b1 y"),
    "affinity by Exists": (DB, near(term("zone", expression("app", "Exists"))), webs("b1"), "b1"),
    "affinity by DoesNotExist": (DB, near(term("zone", expression("tier", "DoesNotExist"))), webs("b1"), "b1"),
    "affinity does not match another namespace": (
        DB,
        near(term("zone", equal(app="web"))),
        [old("o", "a1", WEB, namespace="other")],
        "",
    ),
    "affinity to a namespace by name": (
        DB,
        near(term("zone", equal(app="web"), namespaces=["other"])),
        [old("o", "a1", WEB, namespace="other")],
        "a1 a2",
    ),
    "affinity to namespaces by their labels": (
        DB,
        near(term("zone", equal(app="web"), namespaceSelector=equal(team="t"))),
        [namespace("other", team="t"), old("o", "a1", WEB, namespace="other"), old("q", "b1", WEB, namespace="third")],
        "a1 a2",
    ),
    "an empty namespace selector takes every namespace": (
        DB,
        near(term("zone", equal(app="web"), namespaceSelector={})),
        [old("o", "b1", WEB, namespace="third")],
        "b1",
    ),
    "names and labels of namespaces add up": (
        DB,
        near(term("zone", equal(app="web"), namespaces=["third"], namespaceSelector=equal(team="t"))),
        [namespace("other", team="t"), old("o", "a1", WEB, namespace="other"), old("q", "b1", WEB, namespace="third")],
        "a1 a2 b1",
    ),
    "all terms must be met by one pod": (
        DB,
        near(term("region", equal(app="web")), term("zone", equal(tier="front"))),
        [old("o", "a1", WEB), old("q", "b1", {"tier": "front"})],
        "",
    ),
    "one pod that meets all terms": (
        DB,
        near(term("region", equal(app="web")), term("zone", equal(tier="front"))),
        [old("o", "b1", {"tier": "front", **WEB})],
        "b1",
    ),
    "the first of its kind goes where the key is": (WEB, near(term("zone", equal(app="web"))), [], "a1 a2 b1"),
    "the first by two keys": (
        WEB,
        near(term("zone", equal(app="web")), term("region", equal(app="web"))),
        [],
        "a1 a2 b1",
    ),
    "no first once a match has one of the keys": (
        WEB,
        near(term("zone", equal(app="web")), term("region", equal(app="web"))),
        webs("y"),
        "",
    ),
    "the second of its kind goes to the first": (WEB, near(term("zone", equal(app="web"))), webs("b1"), "b1"),
    "no first of a kind that it is not": (
        DB,
        near(term("zone", equal(app="db")), term("zone", equal(app="web"))),
        [],
        "",
    ),
    "affinity by a label of the pod itself": (
        {"app": "web", "pod-template-hash": "2"},
        near(term("zone", equal(app="web"), matchLabelKeys=["pod-template-hash"])),
        [old("o", "a1", {"app": "web", "pod-template-hash": "1"}), old("q", "b1", WEB | {"pod-template-hash": "2"})],
        "b1",
    ),
    "affinity to pods of other labels than its own": (
        {"app": "web", "tenant": "2"},
        near(term("zone", equal(app="web"), mismatchLabelKeys=["tenant"])),
        [old("o", "a1", {"app": "web", "tenant": "1"}), old("q", "b1", {"app": "web", "tenant": "2"})],
        "a1 a2",
    ),
    "anti-affinity to a pod that is there": (DB, apart(term("zone", equal(app="web"))), webs("a1"), "b1 x y"),
    "anti-affinity with nothing there": (DB, apart(term("zone", equal(app="web"))), [], ALL),
    "anti-affinity to one that is being deleted": (
        DB,
        apart(term("zone", equal(app="web"))),
        [old("o", "a1", WEB, metadata=LEAVING)],
        "b1 x y",
    ),
    "anti-affinity of a pod that is there": (
        WEB,
        {},
        [old("o", "b1", DB, apart(term("zone", equal(app="web"))))],
        "a1 a2 x y",
    ),
    "anti-affinity of a pod on a node without the key": (
        WEB,
        {},
        [old("o", "x", DB, apart(term("zone", equal(app="web"))))],
        ALL,
    ),
    "anti-affinity both ways": (
        WEB,
        apart(term("region", equal(app="web"))),
        [old("o", "y", WEB, apart(term("region", equal(app="web"))))],
        "x",
    ),
    "anti-affinity by a term without selector means nobody": (DB, apart(term("zone")), webs("a1"), ALL),
    "anti-affinity by an empty selector means all": (DB, apart(term("zone", {})), webs("a1"), "b1 x y"),
    "any anti-affinity term suffices": (
        DB,
        apart(term("zone", equal(app="web")), term("zone", equal(tier="front"))),
        [old("o", "a1", WEB), old("q", "b1", {"tier": "front"})],
        "x y",
    ),
    "anti-affinity of one there by namespace labels": (
        WEB,
        {},
        [
            namespace("default", team="t"),
            old("o", "b1", DB, apart(term("zone", equal(app="web"), namespaceSelector=equal(team="t"))), namespace="n"),
        ],
        "a1 a2 x y",
    ),
    "affinity and anti-affinity together": (
        DB,
        mixed(near(term("region", equal(app="web"))), apart(term("zone", equal(app="web")))),
        webs("a1"),
        "b1 y",
    ),
    "spread over nothing": (WEB, spread(limit("zone")), [], "a1 a2 b1"),
    "spread to the zone with fewer": (WEB, spread(limit("zone")), webs("a1"), "b1"),
    "spread with more skew": (WEB, spread(limit("zone", 2)), webs("a1"), "a1 a2 b1"),
    "spread of equal zones": (WEB, spread(limit("zone")), webs("a1 b1"), "a1 a2 b1"),
    "spread over a region counts nodes that have it": (WEB, spread(limit("region")), webs("a1 y"), "a1 a2 b1 y"),
    "a pod that its constraint does not count": (DB, spread(limit("zone")), webs("a1"), "a1 a2 b1"),
    "a pod that its constraint does not count, with too many there": (DB, spread(limit("zone")), webs("a1 a2"), "b1"),
    "spread does not count other namespaces": (
        WEB,
        spread(limit("zone")),
        [old("o", "a1", WEB, namespace="other")],
        "a1 a2 b1",
    ),
    "spread does not count pods that are being deleted": (
        WEB,
        spread(limit("zone")),
        [old("o", "a1", WEB, metadata=LEAVING)],
        "a1 a2 b1",
    ),
    "an empty spread selector counts nothing": (WEB, spread(limit("zone", 1, {})), webs("a1 a2"), "a1 a2 b1"),
    "too few domains: the fewest is none": (WEB, spread(limit("zone", minDomains=3)), webs("a1 b1"), ""),
    "enough domains": (WEB, spread(limit("zone", minDomains=2)), webs("a1 b1"), "a1 a2 b1"),
    "too few domains and room within the skew": (
        WEB,
        spread(limit("zone", 2, minDomains=3)),
        webs("a1 b1"),
        "a1 a2 b1",
    ),
    "zone and host, both kept": (
        WEB,
        spread(limit("zone"), limit("kubernetes.io/hostname")),
        webs("a1 b1"),
        "a2",
    ),
    "zone against host": (WEB, spread(limit("zone"), limit("kubernetes.io/hostname")), webs("a1 a2 a2"), "b1"),
    "a node selector takes nodes out of the count": (
        WEB,
        spread(limit("zone")) | {"nodeSelector": {"zone": "a"}},
        webs("a1"),
        "a1 a2",
    ),
    "unless the policy ignores it": (
        WEB,
        spread(limit("zone", nodeAffinityPolicy="Ignore")) | {"nodeSelector": {"zone": "a"}},
        webs("a1"),
        "",
    ),
    "a revision by matchLabelKeys": (
        {"app": "web", "pod-template-hash": "2"},
        spread(limit("zone", matchLabelKeys=["pod-template-hash"])),
        [old("o", "a1", WEB | {"pod-template-hash": "1"}), old("q", "b1", WEB | {"pod-template-hash": "2"})],
        "a1 a2",
    ),
    "spread that only prefers forbids nothing": (
        WEB,
        spread({**limit("zone"), "whenUnsatisfiable": "ScheduleAnyway"}),
        webs("a1 a1"),
        ALL,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_nodes_that_admit_a_single_pod(case: str) -> None:
    labels, spec, there, expected = CASES[case]
    nodes = [node(name, labels) for name, labels in NODES.items()]
    instance = instance_of(*nodes, *there, pod("p", labels=labels, spec=spec))
    key = Key("default", "p")
    eligible = [name for name, each in instance.nodes.items() if instance.pods[key].constraints.admits(each)]
    found = [
        name for name in eligible if not any(each.rule in RULES for each in verify(instance, Placement.of({key: name})))
    ]
    assert " ".join(found) == expected


def taint(name: str, labels: dict[str, str]) -> Document:
    made = dict(node(name, labels))
    return made | {"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}}


@pytest.mark.parametrize(("policy", "expected"), [(None, False), ("Ignore", False), ("Honor", True)])
def test_tainted_nodes_count_unless_taints_are_honoured(policy: str | None, expected: bool) -> None:
    more = {} if policy is None else {"nodeTaintsPolicy": policy}
    asking = pod("p", labels=WEB, spec=spread(limit("zone", **more)))
    instance = instance_of(node("a1", {"zone": "a"}), taint("b1", {"zone": "b"}), *webs("a1"), asking)
    violations = verify(instance, Placement.of({Key("default", "p"): "a1"}))
    assert any(each.rule == "C14" for each in violations) is not expected
