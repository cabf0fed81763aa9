"""Smaller requests of pods of several containers, worked out by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from placer.answers.explain.cases import Case
from placer.answers.explain.explanation import explain, find_groups
from placer.base.deadline import Deadline
from placer.kube.manifests import from_documents
from tests.support import node, pod


def containers(*amounts: str) -> list[dict[str, Any]]:
    return [{"name": f"c{at}", "resources": {"requests": {"cpu": each}}} for at, each in enumerate(amounts)]


def edits(spec: dict[str, Any]) -> dict[str, str]:
    """The cuts that let a pod on a node of 8 cpu: container to what is left."""
    case = Case(from_documents([node("n"), pod("p", spec=spec)]))
    (told,) = explain(case, [find_groups(case, "p")[0]], Deadline.within(3600))
    cuts = [each.change for each in told.changes if each.change.message.startswith("let its pods request")]
    found = {}
    for edit in cuts[0].set_ if cuts else ():
        path, _, value = edit.removeprefix("pod/default/p:spec.").rpartition("=")
        found[path.partition(".")[0]] = value
    return found


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": containers("8", "2")}, {"containers[0]": "6"}),
        ({"containers": containers("8", "8")}, {"containers[0]": "4", "containers[1]": "4"}),
        ({"containers": containers("4", "4", "4")}, {"containers[1]": "2", "containers[2]": "2"}),
        ({"containers": containers("1"), "initContainers": containers("12")}, {"initContainers[0]": "8"}),
        (
            {"containers": containers("6", "6"), "initContainers": containers("12")},
            {"containers[0]": "4", "containers[1]": "4", "initContainers[0]": "8"},
        ),
        (
            {
                "containers": containers("8"),
                "initContainers": [{**each, "restartPolicy": "Always"} for each in containers("8")],
            },
            {"containers[0]": "4", "initContainers[0]": "4"},
        ),
        ({"containers": containers(*["1"] * 9)}, {}),
    ],
)
def test_requests_of_several_containers_are_cut(spec: dict[str, Any], expected: dict[str, str]) -> None:
    assert edits(spec) == expected


def test_a_toleration_that_is_added_keeps_the_written_ones_whole() -> None:
    written = {"key": "slow", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
    tainted = {**node("n"), "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}}
    case = Case(from_documents([tainted, pod("p", spec={"tolerations": [written]})]))
    (told,) = explain(case, [find_groups(case, "p")[0]], Deadline.within(3600))
    (edit,) = next(each.change.set_ for each in told.changes if each.change.message.startswith("tolerate"))
    added = {"key": "gpu", "operator": "Equal", "effect": "NoSchedule"}
    assert json.loads(edit.removeprefix("pod/default/p:spec.tolerations=")) == [written, added]
