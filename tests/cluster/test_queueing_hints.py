"""Which changes begin a pass."""

from __future__ import annotations

import json
from typing import Any

import pytest

from placer.kube.kinds import BY_ATTRIBUTE
from placer.passes.cluster.reading.daemon_sets import DAEMON_SETS
from placer.passes.cluster.reading.queueing_hints import may_help
from placer.problem.node_resource_topology import UPDATED
from tests.cluster.things import live_pod
from tests.support import Document, node

WAITS = live_pod("a", cpu=1)
RUNS = live_pod("a", node="n1", cpu=1)
THEIRS = live_pod("a", scheduler="another", cpu=1)
ENDED = live_pod("a", node="n1", cpu=1, status={"phase": "Succeeded"})


def text(thing: Document | None, version: int) -> bytes | None:
    if thing is None:
        return None
    return json.dumps({**thing, "metadata": {**thing["metadata"], "resourceVersion": str(version)}}).encode()


def helps(kind: str, before: Document | None, after: Document | None) -> bool:
    return may_help(BY_ATTRIBUTE[kind], text(before, 1), text(after, 2), "placer")


def with_labels(thing: Document, **labels: str) -> Document:
    return {**thing, "metadata": {**thing["metadata"], "labels": labels}}


def with_status(thing: Document, **status: Any) -> Document:
    return {**thing, "status": status}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, WAITS, True),
        (None, THEIRS, False),
        (None, RUNS, False),
        (WAITS, RUNS, False),
        (WAITS, None, False),
        (RUNS, None, True),
        (RUNS, ENDED, True),
        (ENDED, None, False),
        (None, ENDED, False),
        (WAITS, WAITS, False),
        (WAITS, with_status(WAITS, conditions=[{"type": "PodScheduled", "status": "False"}]), False),
        (WAITS, with_labels(WAITS, team="ml"), True),
        (THEIRS, with_labels(THEIRS, team="ml"), False),
        (RUNS, with_labels(RUNS, team="ml"), True),
        (live_pod("a", cpu=1, spec={"schedulingGates": [{"name": "hold"}]}), WAITS, True),
    ],
)
def test_of_pods_what_comes_to_wait_and_what_gives_room_back(
    before: Document | None, after: Document | None, expected: bool
) -> None:
    assert helps("pods", before, after) is expected


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (node("n1", cpu=4), False),
        (node("n1", cpu=5), True),
        (node("n1", {"pool": "batch"}, cpu=4), True),
        (with_status(node("n1", cpu=4), allocatable={"cpu": "4"}), True),
        (None, True),
    ],
)
def test_of_nodes_all_that_decides(after: Document | None, expected: bool) -> None:
    assert helps("nodes", node("n1", cpu=4), after) is expected
    assert helps("nodes", None, node("n1", cpu=4))


def test_that_an_exporter_has_written_the_same_again_is_no_change() -> None:
    zones = {"kind": "NodeResourceTopology", "metadata": {"name": "n1"}, "zones": []}
    again = {**zones, "metadata": {"name": "n1", "annotations": {UPDATED: "2026-01-01T00:00:00Z"}}}
    other = {**again, "zones": [{"name": "node-0", "type": "Node"}]}
    assert not helps("node_resource_topologies", zones, again)
    assert helps("node_resource_topologies", again, other)


def test_a_daemon_set_gives_room_back_where_it_goes() -> None:
    """Its counts change with each of its pods, and what it asks for takes room."""
    one, two = ({"metadata": {"name": "a"}, "status": {"numberReady": ready}} for ready in (1, 2))
    assert [
        may_help(DAEMON_SETS, text(before, 1), text(after, 2), "placer")
        for before, after in ((None, one), (one, two), (two, None))
    ] == [False, False, True]
