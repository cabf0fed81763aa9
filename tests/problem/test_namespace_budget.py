"""What a namespace costs, and who waits beyond its budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from placer.answers.solving import solve
from placer.problem import Instance, Key
from placer.problem.namespace_budget import NamespaceBudget, namespace_costs, parse_budget, within_budget
from placer.problem.placement import Placement, Value
from placer.rules import verify
from placer.rules.scoring import score
from tests.examples import every
from tests.hostile import EVIL, HOSTILE, hostile_pod
from tests.support import Document, instance_of, node, pod, pod_group

#: Small, so that few objects are beyond it.
SMALL = NamespaceBudget(terms=40, resources=20, bytes=200_000)


def honest() -> list[Document]:
    """Three nodes, and pods of two namespaces that fit on them as a whole, a gang and a pod that fits nowhere."""
    nodes = [node(f"n{number}", labels={"kubernetes.io/hostname": f"n{number}"}, cpu=8) for number in range(3)]
    gang = [pod(f"g{number}", group="gang", cpu=3) for number in range(4)]
    return [*nodes, pod_group("gang", minMember=4), *gang, pod("alone", cpu=2, namespace="other"), pod("large", cpu=20)]


def spent(instance: Instance) -> dict[str, Any]:
    return namespace_costs(instance)[EVIL].as_dict()


def placed(node_of: Mapping[Key, str]) -> list[Value]:
    """What is admitted and placed of the others; nodes on which pods of that namespace are may be used as well."""
    values = score(instance_of(*honest()), Placement.of(node_of))
    return [value for value in values if value.name in ("admitted", "placed")]


@pytest.mark.parametrize("kind", every(4, HOSTILE))
def test_the_others_are_placed_as_if_it_were_not_there(kind: str) -> None:
    """With a budget and without one: the same values, counted over the other namespaces' pods."""
    alone = solve(instance_of(*honest()), method="greedy", time_limit=None)
    assert alone.placement is not None
    with_it = instance_of(*honest(), *HOSTILE[kind](12))
    for budget in (None, SMALL):
        instance = within_budget(with_it, budget)
        result = solve(instance, method="greedy", time_limit=None)
        assert result.placement is not None
        assert verify(instance, result.placement) == []
        kept = {key: name for key, name in result.placement.node_of.items() if key.namespace != EVIL}
        assert len(kept) == len(alone.placement.node_of) == 5
        assert placed(kept) == placed(alone.placement.node_of)


def test_each_kind_of_cost_is_measured() -> None:
    pods = [
        hostile_pod(
            f"p{number}",
            {"n": str(number)},
            main={
                "resources": {"requests": {"cpu": "1m", f"a.b/r{number}": "1"}},
                "ports": [{"hostPort": 80 + number}],
            },
            nodeSelector={"n": str(number)},
        )
        for number in range(3)
    ]
    found = spent(instance_of(*honest(), *pods))
    assert (found["pending"], found["waiting"], found["daemons"]) == (3, 0, 0)
    assert found["terms"] == 3 + 3  # host ports and node selectors
    assert found["resources"] == 3 + 2  # cpu and pods beside
    assert found["bytes"] == 3 * 2


def test_long_demands_count_as_text_and_short_ones_do_not() -> None:
    long = spent(instance_of(*honest(), *HOSTILE["long_terms"](2)))["bytes"]
    assert long > 2 * 30_000
    assert spent(instance_of(*honest(), *HOSTILE["affinity"](2)))["bytes"] == 2 * 2  # labels


def test_the_newest_wait_and_the_reason_names_the_budget() -> None:
    pods = HOSTILE["anti_affinity"](4)  # 20 terms each, and one node constraint of all
    for number, each in enumerate(pods):
        each["metadata"]["creationTimestamp"] = f"2026-01-0{9 - number}T00:00:00Z"
    instance = within_budget(instance_of(*honest(), *pods), NamespaceBudget(terms=45))
    waiting = sorted(key.name for key in instance.beyond_budget)
    assert waiting == ["t-0", "t-1"]
    result = solve(instance, method="greedy", time_limit=None)
    reasons = {key.name: reason for key, reason in result.reasons.items()}
    assert reasons["t-0"].code == "NamespaceBudget"
    assert "terms: found 81" in reasons["t-0"].message
    assert "expected at most 45" in reasons["t-0"].message
    assert {finding.code for finding in instance.findings} == {"BudgetExceeded"}
    assert spent(instance)["waiting"] == 2


def test_what_runs_is_spent_first() -> None:
    running, waits = HOSTILE["anti_affinity"](2)
    running["spec"]["nodeName"] = "n0"
    instance = within_budget(instance_of(*honest(), running, waits), NamespaceBudget(terms=30))
    assert [key.name for key in instance.beyond_budget] == ["t-1"]


def test_a_gang_waits_as_a_whole() -> None:
    gang = [pod(f"m{number}", group="g", namespace=EVIL, cpu=1) for number in range(3)]
    gang[2]["spec"]["nodeSelector"] = {"a": "b"}
    group = pod_group("g", EVIL, minMember=2)
    instance = within_budget(instance_of(*honest(), group, *gang), NamespaceBudget(terms=1))
    assert sum(key.namespace == EVIL for key in instance.beyond_budget) == 3


def test_more_resources_or_text_than_is_looked_at_is_not_supported() -> None:
    many, much = HOSTILE["one_of_many_resources"](201)[0], HOSTILE["huge_labels"](1)[0]
    instance = instance_of(*honest(), many, much)
    said = {each.name: each.unsupported for each in instance.pending if each.namespace == EVIL}
    assert said["many"][0].startswith("resources.requests: 203 resources, of 200 at most")
    assert "bytes of labels and annotations, of 65,536 at most" in said["l-0"][0]


@pytest.mark.parametrize("words", ["terms", "terms=-1", "pods=3", "terms=1,"])
def test_a_budget_that_does_not_parse_says_so(words: str) -> None:
    with pytest.raises(ValueError, match="expected off, default, or terms=N,resources=N,bytes=N"):
        parse_budget(words)


def test_a_budget_leaves_out_what_keeps_its_default() -> None:
    assert parse_budget("resources=7") == NamespaceBudget(resources=7)
    assert parse_budget("default") == NamespaceBudget()
