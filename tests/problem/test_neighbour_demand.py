"""What is read of pod affinity, anti-affinity and spread, and which pods are meant (C12, C13, C14)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from placer.problem import Key, Requirement
from placer.problem.neighbours import Neighbours, PodSelector
from placer.problem.placement import Placement
from placer.problem.pod_index import PodIndex
from placer.rules import verify
from tests.support import Document, instance_of, node, pod
from tests.world import World, means

NODES = (node("n1", {"zone": "a"}), node("n2"))


def anti(**term: Any) -> dict[str, Any]:
    terms = [{"topologyKey": "zone", **term}]
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def read(spec: dict[str, Any], **more: Any) -> Neighbours:
    return instance_of(*NODES, pod("p", spec=spec, **more)).pods[Key(more.get("namespace", "default"), "p")].neighbours


def kept_off(*docs: Document) -> list[str]:
    """Rules that pod p breaks on node n1, where it is kept off."""
    found = verify(instance_of(*NODES, *docs), Placement.of({Key("default", "p"): "n1"}))
    return [each.rule for each in found]


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
    "namespaces by label, none of them known": (WEB | OTHERS, {"namespace": "other"}, False),
    "all namespaces": (WEB | EVERYWHERE, {"namespace": "other"}, True),
    "the node lacks the topology key": (WEB, {"node": "n2"}, False),
    "the node is not there": (WEB, {"node": "gone"}, False),
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
    assert kept_off(bound, ours) == (["C13"] if expected else [])


@pytest.mark.parametrize(("labels", "expected"), [({"team": "x"}, ["C13"]), ({"team": "y"}, []), ({}, [])])
def test_namespaces_by_label(labels: dict[str, str], expected: list[str]) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": labels}}
    bound = pod("bound", node="n1", namespace="other", spec=anti(**WEB, **OTHERS))
    assert kept_off(namespace, bound, pod("p", labels={"app": "web"})) == expected


def test_terms_are_read_into_one_form() -> None:
    (term,) = read(
        anti(**WEB, matchLabelKeys=["v", "w"], mismatchLabelKeys=["u"]), labels={"v": "1", "u": "2"}
    ).anti_affinity
    assert term.topology_key == "zone"
    assert term.pods == PodSelector(
        ("default",),
        None,
        (Requirement("app", "In", ("web",)), Requirement("u", "NotIn", ("2",)), Requirement("v", "In", ("1",))),
    )


def test_defaults_of_a_spread_constraint() -> None:
    written = {
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"a": "b"}},
    }
    ignored = {"topologyKey": "host", "whenUnsatisfiable": "ScheduleAnyway"}
    spec = {"topologySpreadConstraints": [written, ignored], "nodeSelector": {"disk": "ssd"}}
    (limit,) = read(spec).spread
    assert (limit.max_skew, limit.min_domains, limit.keys) == (1, 1, ("zone",))
    assert limit.counted.selector == (("disk", "ssd"),)
    assert limit.counted.tolerations[0].operator == "Exists"


@pytest.mark.parametrize(
    "selector",
    [means(app="web"), PodSelector(("default",), None, ()), PodSelector(("default",), None, None)]
    + [
        PodSelector(("default",), None, (Requirement("app", operator, values),))
        for operator, values in (("In", ("web", "db")), ("NotIn", ("web",)), ("Exists", ()), ("DoesNotExist", ()))
    ]
    + [PodSelector((), (Requirement("kubernetes.io/metadata.name", "In", ("default",)),), ())],
)
@pytest.mark.parametrize("copies", [1, 30])
def test_the_index_finds_what_a_look_at_every_pod_finds(selector: PodSelector, copies: int) -> None:
    world = World()
    kinds = [{"app": "web"}, {"app": "db"}, {"tier": "x"}, {"app": "web", "tier": "x"}] * copies
    for number, labels in enumerate(kinds):
        world.pod(f"p{number}", labels=labels)
    pods, index = world.instance().pods.values(), PodIndex(world.instance().pods.values(), {})
    assert list(index.matching(selector)) == [pod for pod in pods if selector.matches(pod, {})]
    # Whoever means the same pods is given the same tuple.
    same = replace(selector, namespaces=("default", "other"))
    assert index.matching(same) is index.matching(selector)
