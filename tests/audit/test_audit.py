"""What runs, judged: each standing, the best beside it, and the cluster's sums, on cases worked out by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from placer.answers.audit import groups
from placer.answers.audit.groups import Standing, _waiting_alone, _without_search, audit
from placer.answers.audit.sums import largest_gangs
from placer.base.deadline import Deadline
from placer.cli import main
from placer.problem.placement import Placement
from placer.rules import verify
from tests.explain.hand_made import CASES, app, guaranteed, network, numa_node, zoned
from tests.shrink import describe
from tests.support import Document, hyper_node, instance_of, listing, node, pod, pod_group, queue
from tests.tiny_disruption import tiny_disruption

Capture = pytest.CaptureFixture[str]

#: Two racks of two nodes with 8 GPUs each.
RACKS: list[Document] = [
    *(node(f"{rack}{at}", gpu=8) for rack in "ab" for at in (1, 2)),
    hyper_node("a", 1, nodes=("a1", "a2")),
    hyper_node("b", 1, nodes=("b1", "b2")),
    hyper_node("s", 2, children=("a", "b")),
]
SELECTING = (("plain", {}), ("picky", {"nodeSelector": {"a": "b"}}))
SOFT, HARD = {"mode": "soft"}, {"mode": "hard", "highestTierAllowed": 1}


def runs(name: str, *on: str, gpu: int = 8, **spec: Any) -> list[Document]:
    pods = [pod(f"{name}-{at}", group=name, node=where, gpu=gpu) for at, where in enumerate(on)]
    return [pod_group(name, minMember=len(on), **spec), *pods]


def entry(documents: list[Document], name: str = "g") -> dict[str, Any]:
    found = audit(instance_of(*documents), Deadline.within(3600))
    (one,) = (each.as_dict() for each in found if each.group.name == name)
    return one


def test_as_near_as_can_be() -> None:
    found = entry([*RACKS, *runs("g", "a1", "a2", networkTopology=HARD)])
    assert (found["rules"], found["violations"], found["score"]) == ("MATCH", [], 1.0)
    assert (found["tier"], found["leaves"]) == (1, 1)
    assert found["best"] == {"tier": 1, "leaves": 1, "networkCost": None, "provedBy": "counting"}


def test_further_than_it_could_be() -> None:
    found = entry([*RACKS, *runs("g", "a1", "b1", networkTopology=SOFT)])
    assert (found["rules"], found["tier"], found["leaves"]) == ("MATCH", 2, 2)
    assert {key: found["best"][key] for key in ("tier", "leaves")} == {"tier": 1, "leaves": 1}
    assert found["score"] == 0.5


def test_the_best_is_beside_everybody_else() -> None:
    """No rack has two nodes free: what is far apart is as near as can be."""
    others = [*runs("x", "a2"), *runs("y", "b2")]
    found = entry([*RACKS, *others, *runs("g", "a1", "b1", networkTopology=SOFT)])
    assert found["score"] == 1.0
    assert {key: found["best"][key] for key in ("tier", "leaves")} == {"tier": 2, "leaves": 2}


def test_a_tier_limit_that_is_broken() -> None:
    found = entry([*RACKS, *runs("g", "a1", "b1", networkTopology=HARD)])
    assert found["rules"] == "VIOLATION"
    assert found["violations"][0].startswith("C7: ")
    assert found["score"] == 0.5


@pytest.mark.parametrize(
    ("documents", "name", "says"),
    [
        (runs("g", "a1", "b1", networkTopology=HARD), "g", "its 2 running pods is HyperNode s"),
        ([*runs("x", "a1", gpu=5), *runs("g", "a1", gpu=5)], "g", r"\(5 of others, 5 of its own\) of 8"),
        ([pod_group("g", minMember=2), pod("g-0", group="g", node="a1", gpu=8)], "g", "has 1 pod running but"),
    ],
)
def test_what_runs_is_not_called_new(documents: list[Document], name: str, says: str) -> None:
    (text,) = entry([*RACKS, *documents], name)["violations"]
    assert re.search(says, text), text
    assert not re.search(r"\bnew\b|\bgets\b|0 bound", text), text


def test_a_group_runs_on_in_a_queue_that_was_closed_since() -> None:
    closed = queue("q")
    closed["status"] = {"state": "Closed"}
    assert entry([*RACKS, closed, *runs("g", "a1", queue="q")])["rules"] == "MATCH"


def test_half_a_gang() -> None:
    half = [pod_group("g", minMember=2), pod("g-0", group="g", node="a1", gpu=8)]
    found = entry([*RACKS, *half])
    assert found["rules"] == "VIOLATION"
    assert [text.split(":")[0] for text in found["violations"]] == ["C5"]


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ([node("n", cpu=1), pod("p", node="n", cpu=2)], "C2"),
        ([node("n"), pod("p", node="n", spec={"nodeSelector": {"a": "b"}})], "C3"),
    ],
)
def test_a_lone_pod_that_breaks_a_rule(more: list[Document], rule: str) -> None:
    found = entry(more, "p")
    assert (found["rules"], found["group"]["kind"], found["violations"][0].split(":")[0]) == ("VIOLATION", "Pod", rule)


def test_a_queue_that_is_over_full() -> None:
    found = entry([*RACKS, queue("q", {"nvidia.com/gpu": 8}), *runs("g", "a1", "a2", queue="q")])
    assert (found["rules"], found["violations"][0].split(":")[0]) == ("VIOLATION", "C11")


def test_what_a_node_became_later_is_no_fault() -> None:
    cordoned = {**node("n", gpu=8), "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]}}
    assert entry([cordoned, *runs("g", "n")])["rules"] == "MATCH"


def test_without_a_tree_a_limit_cannot_be_looked_at() -> None:
    found = entry([node("n", gpu=8), *runs("g", "n", networkTopology=HARD)])
    assert (found["rules"], found["tier"], found["best"], found["score"]) == ("UNOBSERVABLE", None, None, 1.0)


def test_a_violation_goes_before_what_cannot_be_looked_at() -> None:
    half = [pod_group("g", minMember=2, networkTopology=HARD), pod("g-0", group="g", node="n", gpu=8)]
    assert entry([node("n", gpu=8), *half])["rules"] == "VIOLATION"


def test_calls_that_could_be_cheaper() -> None:
    labels = {"appgroup.diktyo.x-k8s.io": "shop"}
    costs = network({("z1", "z2"): 10, ("z2", "z1"): 10})
    there = [*zoned("a", "r1", "z1"), *zoned("b", "r1", "z2"), costs, app(20)]
    pods = [
        pod(name, node=on, cpu=1, labels={**labels, "appgroup.diktyo.x-k8s.io.workload": name})
        for name, on in (("web", "a"), ("db", "b"))
    ]
    found = entry([*there, *pods], "web")
    assert (found["rules"], found["networkCost"], found["best"]["networkCost"], found["score"]) == ("MATCH", 10, 0, 0.0)
    blind = entry([*zoned("a", "r1", "z1"), *zoned("b", "r1", "z2"), app(20), *pods], "web")
    assert blind["rules"] == "UNOBSERVABLE"


def test_subgroups_with_a_limit_of_their_own() -> None:
    sub = {
        "name": "w",
        "subGroupSize": 2,
        "labelSelector": {"matchLabels": {"role": "w"}},
        "matchLabelKeys": ["part"],
        "networkTopology": HARD,
    }
    labels = {"role": "w", "part": "0"}
    members = [pod(f"g-{at}", group="g", node=on, labels=labels, gpu=8) for at, on in enumerate(("a1", "b1"))]
    found = entry([*RACKS, pod_group("g", minMember=2, subGroupPolicy=[sub]), *members])
    (part,) = found["subGroups"]
    assert (part["rules"], part["tier"], part["leaves"], part["placed"]) == ("VIOLATION", 2, 2, 2)
    assert found["rules"] == "VIOLATION"


def test_without_time_there_is_no_best() -> None:
    instance = instance_of(*RACKS, *runs("g", "a1", "b1", networkTopology=SOFT))
    (found,) = audit(instance, Deadline.within(-0.5))
    assert (found.standing, found.best, found.score) == (Standing.MATCH, None, None)


def test_what_is_judged_together_breaks_nothing_alone() -> None:
    """Where all groups are judged at once, those that are named in no violation break none by themselves."""
    told = 0
    for seed in range(60):
        instance = tiny_disruption(seed).instance
        groups = {key: group for key, group in instance.groups.items() if group.bound}
        for key in _without_search(instance, groups):
            lifted, where = _waiting_alone(instance, groups[key])
            assert verify(lifted, Placement.of(where)) == [], f"seed {seed}\n{describe(instance)}"
            told += 1
    assert told >= 60


def test_single_pods_that_are_as_they_should_be_have_one_line(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "cluster.json"
    pods = [pod(f"p-{number}", node="n", cpu=0) for number in range(3)]
    documents = [node("n"), *pods, pod("wrong", node="n", spec={"nodeSelector": {"a": "b"}})]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    assert main(["audit", str(path), "-n", "default"]) == 1
    out = capsys.readouterr().out
    assert "3 single pods break nothing and cannot be nearer" in out
    assert "p-1" not in out
    assert "node selector a=b (IgnoredDuringExecution: it keeps running)" in out
    assert "Stranded in the whole cluster: free" in out
    assert main(["audit", str(path), "-o", "wide"]) == 1
    out = capsys.readouterr().out
    assert ("p-1" in out, "in the whole cluster" in out) == (True, False)


def test_every_case_made_by_hand_is_judged() -> None:
    """What runs in them breaks no rule, whatever waits beside it."""
    for case in CASES:
        for found in audit(instance_of(*case.documents), Deadline.within(3600)):
            broken = {text.split(":")[0] for text in found.violations}
            assert broken <= {"C5"}, f"{case.name}: {found}"


def test_the_largest_gang_that_still_fits() -> None:
    found = largest_gangs(instance_of(*RACKS, *runs("x", "a1"), pod("w", gpu=8)))
    assert [(each.tier, each.pods, each.hyper_node) for each in found] == [(1, 2, "b"), (2, 3, "s"), (3, 3, None)]


def test_groups_that_the_time_limit_left_open_are_counted(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cluster.json"
    documents = [*RACKS, *runs("g", "a1", "b1", networkTopology=SOFT)]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    monkeypatch.setattr(groups, "SECONDS", 0.0)
    assert main(["audit", str(path)]) == 0
    assert "1 of 1 group: judged, but the best place was not proved in time (--time-limit)" in capsys.readouterr().out
    monkeypatch.setattr(groups, "within", lambda _deadline, _work, late: late)
    assert main(["audit", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("1 of 1 group: not judged in time (--time-limit)\n")
    assert "UNOBSERVABLE" not in out


def test_pods_of_equal_requests_are_told_apart_by_their_selector() -> None:
    found = largest_gangs(
        instance_of(node("n", {"a": "b"}), *(pod(name, cpu=1, spec=spec) for name, spec in SELECTING))
    )
    assert sorted(each.words for each in found) == ["cpu 1", "cpu 1 on a=b"]


def test_on_the_command_line(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "cluster.json"
    documents = [*RACKS, *runs("g", "a1", "b1", networkTopology=HARD), pod("p", node="a2", cpu=8)]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    assert main(["audit", str(path)]) == 1
    out = capsys.readouterr().out
    assert all(text in out for text in ("VIOLATION", "C7: ", "Largest gang", "Stranded"))
    assert main(["audit", str(path), "--json"]) == 1
    assert [each["group"]["name"] for each in listing(capsys.readouterr().out)] == ["p", "g"]
    assert main(["audit", str(path), "--sums", "--json"]) == 0
    assert set(listing(capsys.readouterr().out)) == {"apiVersion", "kind", "stranded", "largestGangs"}
    allowed = "podgroup/g:spec.networkTopology.highestTierAllowed=2"
    assert main(["audit", str(path), "--set", allowed]) == 0
    assert main(["audit", str(path), "--time-limit", "-1"]) == 2


#: Two pods of one Job that asks for one domain of a label, in two of them.
APART: list[Document] = [
    *(node(f"n{rack}", {"rack": str(rack)}) for rack in (1, 2)),
    *(
        pod(
            f"p{at}",
            node=f"n{at}",
            metadata={
                "annotations": {"kueue.x-k8s.io/podset-required-topology": "rack"},
                "ownerReferences": [
                    {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
                ],
            },
        )
        for at in (1, 2)
    ),
]


def test_pods_that_break_a_rule_together_are_told_once(tmp_path: Path, capsys: Capture) -> None:
    (text,) = entry(APART, "p1")["violations"]
    assert text.endswith("asks for one domain of rack: its 2 running pods are in rack=1 and rack=2")
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": APART}))
    assert main(["audit", str(path)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert f"Pod default/p1 and Pod default/p2: {text}" in out
    assert out.count("asks for one domain") == 1


def test_groups_of_one_name_have_rows_of_their_own(tmp_path: Path, capsys: Capture) -> None:
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {}}
    member = pod("c-0", node="a2", labels={"scheduling.x-k8s.io/pod-group": "g"})
    path = tmp_path / "cluster.json"
    items = [*RACKS, *runs("g", "a1"), group, member]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert main(["audit", str(path)]) == 0
    out = capsys.readouterr().out
    assert all(f"podgroup.scheduling.{api}/default/g" in out for api in ("volcano.sh", "x-k8s.io"))


def test_succeeded_pods_are_none_of_others() -> None:
    half = [pod_group("g", minMember=3), pod("g-0", group="g", node="a1"), pod("g-1", group="g", node="a1")]
    half[2] = {**half[2], "status": {"phase": "Succeeded"}}
    (text,) = entry([*RACKS, *half])["violations"]
    assert text.endswith("has 1 pod running but is not ready: 2 of minMember 3 placed (1 succeeded, 1 running)")


@pytest.mark.parametrize(
    ("policies", "rules"),
    [((), "UNOBSERVABLE"), (("restricted",), "VIOLATION"), (("single-numa-node",), "MATCH")],
)
def test_a_policy_of_a_kubelet_that_nothing_tells_cannot_be_looked_at(policies: tuple[str, ...], rules: str) -> None:
    told = [
        {
            "apiVersion": "topology.node.k8s.io/v1alpha2",
            "kind": "NodeResourceTopology",
            "metadata": {"name": "n"},
            "attributes": [{"name": "topologyManagerPolicy", "value": policy}],
            "zones": [],
        }
        for policy in policies
    ]
    asks = pod("p", node="n", annotations={"volcano.sh/numa-topology-policy": "single-numa-node"})
    assert entry([node("n"), *told, asks], "p")["rules"] == rules


def test_what_else_a_pod_breaks_is_told_where_its_kubelet_is_not() -> None:
    asks = {"volcano.sh/numa-topology-policy": "single-numa-node"}
    found = entry([node("n"), pod("p", node="n", annotations=asks, spec={"nodeSelector": {"a": "b"}})], "p")
    assert (found["rules"], len(found["violations"])) == ("VIOLATION", 1)
    assert "node selector a=b" in found["violations"][0]


SPREAD = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "a"}},
}
OPEN = {"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}


@pytest.mark.parametrize(
    ("nodes", "pods", "said"),
    [
        ([node("a")], [guaranteed(6)], ""),
        (numa_node("a", 4, 4), [guaranteed(6)], "NUMA zones may allow fewer pods"),
        (
            [node("a"), queue("q", {"cpu": 2})],
            [pod("p", labels={"app": "a"}, spec={"containers": [OPEN], "topologySpreadConstraints": [SPREAD]})],
            "rules about other pods, host ports and queues may allow fewer pods",
        ),
    ],
)
def test_rules_that_sums_do_not_look_at_are_told(
    nodes: list[Document], pods: list[Document], said: str, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes, *pods]}))
    assert main(["audit", str(path), "--sums"]) == 0
    title = capsys.readouterr().out.partition("Largest gang that still fits")[2].partition("of pods that")[0]
    assert " ".join(title.split()) == (f", by amounts and node labels ({said})" if said else "")


@pytest.mark.parametrize(("cluster", "words"), [([node("a1", cpu=8)], ()), (RACKS, ("tier", "leaves", "HyperNode"))])
def test_a_cluster_without_a_tree_is_not_told_of_tiers(
    cluster: list[Document], words: tuple[str, ...], tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*cluster, pod("p", node="a1", cpu=1)]}))
    assert main(["audit", str(path), "-o", "wide"]) == 0
    out = capsys.readouterr().out
    assert [word for word in ("tier", "leaves", "cost", "HyperNode", "GPU") if word in out] == [*words]
    assert "Largest gang that still fits" in out
