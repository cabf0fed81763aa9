"""Pods that were bound and that no kubelet has answered for: what is recorded, asked and assumed of them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from placer.passes.cluster.reading import rejections
from placer.passes.cluster.reading.client import Response
from placer.passes.cluster.reading.gang_record import (
    GangRecord,
    RecordedGangs,
    UnansweredPods,
    digests,
    mark,
)
from placer.passes.cluster.reading.rejections import RejectedSince, unanswered_after
from placer.passes.cluster.reading.snapshot import Snapshot
from placer.problem import GroupKey
from tests.cluster.snapshots import snapshot_of
from tests.support import Document, node, pod

SINCE = UnansweredPods("5", digests(["uid-a", "uid-b"]))


def snapshot(*pods: Document, version: str = "9") -> Snapshot:
    made = snapshot_of([node("n1"), *pods])
    return Snapshot(scheduler_name="placer", items=made.items, versions={"pods": version}, counts=made.counts)


def bound(name: str, **status: Any) -> Document:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    made = pod(name, node="n1", metadata=metadata, status={"phase": "Pending"} | status)
    return {**made, "spec": {**made["spec"], "schedulerName": "placer"}}


def event(kind: str, name: str, version: int, reason: str = "OutOfcpu", **metadata: Any) -> bytes:
    made = bound(name, phase="Failed", reason=reason, startTime="2026-01-01T12:00:00Z")
    made["metadata"] |= {"resourceVersion": str(version), **metadata}
    return json.dumps({"type": kind, "object": made}).encode()


def bookmark(version: int) -> bytes:
    return json.dumps({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}}).encode()


class Server:
    """Says some lines to who watches, and then nothing."""

    def __init__(self, *lines: bytes) -> None:
        self.lines = lines
        self.asked: list[Mapping[str, str]] = []
        self.shut = threading.Event()

    def get(self, *_: object) -> Response:
        return Response(200, b'{"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}}')

    def follow(
        self, path: str, parameters: Mapping[str, str], opened: Callable[[Callable[[], None]], None]
    ) -> Iterator[bytes]:
        assert path == "/api/v1/pods"
        self.asked.append(parameters)
        opened(self.shut.set)
        yield from self.lines
        self.shut.wait()


def test_nothing_is_asked_as_long_as_all_are_there() -> None:
    server = Server()
    since = RejectedSince(SINCE, snapshot(bound("a"), bound("b", phase="Running")))
    assert (since.ask(server, "placer"), server.asked, since.trouble) == ([], [], None)


def test_of_those_that_are_gone_it_is_heard_which_were_rejected() -> None:
    """Neither c, which placer did not bind, nor b, which ran."""
    lines = [event("ADDED", "c", 6), event("ADDED", "a", 7), event("DELETED", "a", 8), event("ADDED", "b", 8, "Error")]
    server = Server(*lines, bookmark(9))
    since = RejectedSince(SINCE, snapshot())
    assert [(each.node, each.reason) for each in since.ask(server, "placer")] == [("n1", "OutOfcpu")]
    assert since.trouble is None
    (asked,) = server.asked
    assert (asked["resourceVersion"], asked["fieldSelector"]) == ("5", "status.phase=Failed,spec.schedulerName=placer")


FORGOTTEN = b'{"type": "ERROR", "object": {"code": 410}}'


@pytest.mark.parametrize(
    ("lines", "version", "why"),
    [
        pytest.param([FORGOTTEN], "5", "the server has forgotten all changes after resourceVersion 5 (410)", id="410"),
        pytest.param(
            [bookmark(8)], "5", "/api/v1/pods cannot be watched: it does not come up to resourceVersion 9", id="silent"
        ),
        pytest.param([event("ADDED", "c", 6)] * 9, "5", "cannot be watched: more than 2,000 bytes", id="too much"),
        pytest.param([], "10", "the record is of resourceVersion 10, the server is at 9", id="of the future"),
        pytest.param([], "x", "the record is of resourceVersion x, the server is at 9", id="odd"),
    ],
)
def test_what_was_not_heard_is_not_assumed(
    lines: list[bytes], version: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"_SECONDS": 0.2, "_LOOK": 0.05, "_SILENT": 0.1}.items():
        monkeypatch.setattr(rejections, name, value)
    monkeypatch.setattr(rejections, "_MOST_BYTES", 2_000)
    since = RejectedSince(UnansweredPods(version, SINCE.pods), snapshot(bound("b")))
    assert since.ask(Server(*lines), "placer") == []
    assert since.trouble is not None
    assert since.trouble.startswith("whether kubelets rejected 1 bound pods that are gone is not known: ")
    assert why in since.trouble


def test_recorded_are_those_without_an_answer_of_this_pass_and_of_before() -> None:
    """Of before a: b runs, and of d nothing was recorded."""
    pods = [bound("a"), bound("b", phase="Running"), bound("d")]
    found, trouble = unanswered_after(RecordedGangs(unanswered=SINCE), snapshot(*pods), ["uid-e"], heard_between=False)
    assert (found, trouble) == (UnansweredPods("9", digests(["uid-a", "uid-e"])), None)
    record = RecordedGangs(unanswered=SINCE)
    assert unanswered_after(record, snapshot(pods[1]), (), heard_between=False) == (UnansweredPods(), None)


def test_members_of_a_gang_count_on_when_its_record_is_forgotten() -> None:
    """A gang is recorded until it is complete; that its scheduler has bound the last of it, its kubelet may reject."""
    gang = GangRecord(datetime.now(UTC), pods=digests([mark("uid-a", "n1"), mark("uid-b", "n2"), "uid-c"]))
    record = RecordedGangs({GroupKey("scheduling.volcano.sh", "default", "g"): gang})
    there = snapshot(bound("a"), bound("b"), bound("c"), bound("d"))
    assert unanswered_after(record, there, (), heard_between=False)[0].pods == digests(["uid-a", "uid-c"])


def test_a_loop_writes_no_record_for_the_resource_version_alone() -> None:
    there, record = snapshot(bound("a"), bound("b")), RecordedGangs(unanswered=SINCE)
    assert unanswered_after(record, there, (), heard_between=True)[0] is SINCE
    assert unanswered_after(record, there, (), heard_between=False)[0] == UnansweredPods("9", SINCE.pods)


def test_more_than_fit_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejections, "_MOST_PODS", 2)
    found, trouble = unanswered_after(RecordedGangs(), snapshot(), ["1", "2", "3"], heard_between=False)
    assert len(found.pods) == 2
    assert trouble == "of 3 bound pods whose kubelets have not answered 2 are recorded"
