"""Text of a tenant's objects: what is kept of it is bounded object by object, so a pass does not carry it."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from placer.cluster.reading.client import Response
from placer.cluster.reading.snapshot import take
from placer.instance import Instance
from placer.instance.instance_builder import make_instance
from placer.kube.base import LEFT_OUT, MOST_TEXT
from tests.cluster.snapshots import ListServer, kept, snapshot_of
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
    assert LEFT_OUT not in json.dumps(kept(pod("p", annotations={LEFT_OUT: "mine"})))


LONG_NAME = "gang-of-a-name-that-is-longer-than-others"


def test_marks_are_kept_before_shorter_text() -> None:
    notes = {f"placer.dev/{number}": "" for number in range(9_000)}
    found = kept(pod("p", group=LONG_NAME, annotations=notes))["metadata"]["annotations"]
    assert found["scheduling.k8s.io/group-name"] == LONG_NAME
    assert "bytes of labels and annotations" in found[LEFT_OUT]
