"""Text of a tenant's objects: what is kept of it is bounded object by object, so a pass does not carry it."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from placer.answers.solving import solve
from placer.kube.base import LEFT_OUT, MOST_TEXT, TEXT_BYTES
from placer.passes.cluster.reading.client import Response
from placer.passes.cluster.reading.snapshot import take
from placer.problem import Instance
from placer.problem.instance_builder import make_instance
from placer.problem.namespace_budget import NamespaceBudget, namespace_costs, within_budget
from tests.cluster.snapshots import ListServer, kept, snapshot_of
from tests.hostile import EVIL, HOSTILE
from tests.support import Document, node, pod

PODS = "/api/v1/pods"
#: Nearly a megabyte of labels.
LONG = {f"k{number}": "v" * 60 for number in range(15_000)}


class _Pages(ListServer):
    """A server with many pods of long labels, which are written when they are asked for."""

    def __init__(self, count: int) -> None:
        super().__init__({"/api/v1/nodes": [node("n1")]})
        self.count = count
        self._text = json.dumps(pod("NAME", cpu=1, labels=LONG)).encode()

    def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Response:
        if path != PODS or parameters is None:
            return super().get(path, parameters)
        begin = int(parameters.get("continue", "0"))
        end = min(self.count, begin + int(parameters["limit"]))
        more = f', "continue": "{end}"' if end < self.count else ""
        items = b",".join(self._text.replace(b"NAME", f"p{number}".encode()) for number in range(begin, end))
        return Response(200, b'{"metadata": {"resourceVersion": "7"%s}, "items": [%s]}' % (more.encode(), items))


def grown(count: int) -> int:
    """MiB by which this process grows at most while it makes an instance of so many pods."""
    made(_Pages(10))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(made(_Pages(count)).pods) == count
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024


def made(server: Any) -> Instance:
    return make_instance(take(server).objects())


def test_memory_does_not_grow_with_labels() -> None:
    """40 pods have 39 MiB of them, which took five times as much."""
    code = "from tests.cluster.test_long_text import grown; print(grown(40))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(ended.stdout) < 30


def instance(*documents: Document) -> Instance:
    return make_instance(snapshot_of([node("n1"), *documents]).objects())


def _keeps_off(*selectors: dict[str, Any]) -> dict[str, Any]:
    terms = [{"labelSelector": each, "topologyKey": "kubernetes.io/hostname"} for each in selectors]
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def test_a_pod_of_long_labels_waits_and_says_why() -> None:
    found = instance(pod("long", cpu=1, labels=LONG), pod("short", cpu=1))
    said = {key.name: each.unsupported for key, each in found.pods.items()}
    assert said["short"] == ()
    count = sum(len(key) + 60 for key in LONG)
    assert said["long"] == (f"metadata: {count:,} bytes of labels and annotations, of 65,536 at most",)


def test_what_runs_keeps_its_room_and_its_short_labels() -> None:
    """Another pod keeps off it by one of these."""
    long = pod("long", node="n1", cpu=1, labels=LONG | {"app": "x"})
    found = instance(long, pod("other", cpu=1, spec=_keeps_off({"matchLabels": {"app": "x"}})))
    there = {key.name: each for key, each in found.pods.items()}["long"]
    assert (there.node, there.requests["cpu"], there.labels["app"]) == ("n1", 1000, "x")
    assert sum(map(len, (*there.labels, *there.labels.values()))) < MOST_TEXT / 2
    (finding,) = (each for each in found.findings if "64 KiB" in each.message)
    assert finding.code == "FieldIgnored"


@pytest.mark.parametrize("bound", [None, "n1"])
def test_of_a_long_spec_requests_are_kept(bound: str | None) -> None:
    selectors = [{"matchLabels": {f"a{number}": "v" * 60}} for number in range(1_000)]
    (found,) = instance(pod("long", node=bound, cpu=1, spec=_keeps_off(*selectors))).pods.values()
    assert (found.node, found.requests["cpu"]) == (bound, 1000)
    assert not found.neighbours
    assert "of all that is read, of 65,536 at most" in found.unsupported[0]


def test_nobody_else_says_that_text_is_left_out() -> None:
    said = json.dumps(kept(pod("p", annotations={LEFT_OUT: "mine", TEXT_BYTES: "1"})))
    assert LEFT_OUT not in said
    assert TEXT_BYTES not in said


LONG_NAME = "gang-of-a-name-that-is-longer-than-others"


def test_marks_are_kept_before_shorter_text() -> None:
    notes = {f"placer.dev/{number}": "" for number in range(9_000)}
    found = kept(pod("p", group=LONG_NAME, annotations=notes))["metadata"]["annotations"]
    assert found["scheduling.k8s.io/group-name"] == LONG_NAME
    assert "bytes of labels and annotations" in found[LEFT_OUT]


# ------------------------------------------------------------------------------------------------ all of a namespace


def hostile(kind: str, count: int) -> list[Document]:
    """Pods of long text, older ones first by name; the first one runs."""
    found = HOSTILE[kind](count)
    for number, each in enumerate(found):
        each["metadata"]["creationTimestamp"] = f"2026-01-01T00:{number:02d}:00Z"
    found[0]["spec"]["nodeName"] = "n1"
    return found


def test_of_a_namespace_beyond_its_bytes_the_newest_pods_wait_and_the_others_are_placed() -> None:
    """Long terms of affinity count like labels; what is left out of a pod is not read, but counts all the same."""
    documents = [node("n1", cpu=4), *hostile("long_terms", 8), pod("good", cpu=1)]
    whole, budget = snapshot_of(documents), NamespaceBudget(bytes=200_000)
    each = len(next(item for item in whole.items if b"w-1" in item))
    cut = whole.within(budget.bytes)
    assert sum(map(len, cut.items)) < budget.bytes + 8 * 1_000
    found = within_budget(make_instance(cut.objects()), budget)
    cost = namespace_costs(found)[EVIL]
    assert 7 * each < cost.bytes < 9 * each
    assert cost.waiting == sum(len(item) < 1_000 for item in cut.of_kind("Pod") if b"w-" in item) > 3
    result = solve(found, method="greedy", time_limit=None)
    assert result.placement is not None
    assert "default/good" in map(str, result.placement.node_of)
    codes = [reason.code for reason in result.reasons.values()]
    assert codes.count("NamespaceBudget") == cost.waiting
    assert "Unsupported" not in codes


def test_within_its_bytes_a_namespace_keeps_its_texts() -> None:
    whole = snapshot_of([node("n1"), *hostile("long_terms", 3)])
    assert whole.within(200_000).items == whole.items


def test_a_pod_without_room_for_its_text_is_never_placed_without_what_it_asks() -> None:
    """Not even where nobody asks for a budget later on."""
    cut = snapshot_of([node("n1", cpu=4), *hostile("long_terms", 8)]).within(200_000)
    refused = [each for each in make_instance(cut.objects()).pending if each.unsupported]
    assert len(refused) > 3
    assert all("namespaceBudget.bytes" in each.unsupported[0] for each in refused)


def test_pods_of_one_template_have_one_text() -> None:
    spec = hostile("long_terms", 1)[0]["spec"]["affinity"]
    objects = snapshot_of(pod(f"p{number}", spec={"affinity": spec}) for number in range(2)).objects()
    first, second = (each.spec.affinity for each in objects.pods)
    assert first is second
