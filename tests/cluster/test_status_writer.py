"""What is told of a pass, by whose clock, and what is not told again."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from placer.cluster.reading.client import Response
from placer.cluster.reading.views import PodView, read_view
from placer.cluster.writing.status_writer import _says, _WaitingReason
from placer.scheduling_pass import Pass, PassOptions, run_pass
from tests.cluster.test_any_object import Double
from tests.cluster.things import live_pod
from tests.support import Document, node, pod_group

#: The server's clock is years ahead of ours.
NOW = datetime(2031, 1, 1, 12, 0, tzinfo=UTC)


class Told(Double):
    """A double with a clock of its own, which notes what is written."""

    def __init__(self, documents: list[Document]) -> None:
        self.bodies: list[tuple[str, Any]] = []
        super().__init__(documents, [])

    def now(self) -> datetime:
        return NOW

    def send(self, method: str, path: str, body: Any = None, **options: Any) -> Response:
        if method == "GET" and path.rpartition("/")[0].endswith("podgroups"):
            found = next(each for each in self.lists[GROUPS] if each["metadata"]["name"] == path.rpartition("/")[2])
            return Response(200, json.dumps(found).encode())
        if method != "GET":
            self.bodies.append((path, body))
        return super().send(method, path, body, **options)

    def told(self, end: str) -> list[Any]:
        """Bodies of what was written to paths that end so."""
        return [body for path, body in self.bodies if path.endswith(end)]


GROUPS = "/apis/scheduling.volcano.sh/v1beta1/podgroups"


def test_all_that_is_written_is_by_the_servers_clock() -> None:
    """Conditions, Events, phases, the Lease and the line of the pass; and the record of what is under way."""
    members = [live_pod(f"train-{number}", group="train", cpu=1) for number in range(2)]
    server = Told([node("n1"), pod_group("train", minMember=2), *members, live_pod("huge", cpu=99)])
    done = Pass(PassOptions(method="greedy", time_limit=None))
    run_pass(server, done, threading.Event())  # type: ignore[arg-type]  # it has what a pass asks of a client
    (condition,) = server.told("/pods/huge/status")[0]["status"]["conditions"]
    assert condition["lastTransitionTime"] == "2031-01-01T12:00:00Z"
    assert {each["eventTime"] for each in server.told("/events")} == {"2031-01-01T12:00:00.000000Z"}
    (phase,) = server.told("/podgroups/train")
    assert phase["status"]["conditions"][0]["lastTransitionTime"] == "2031-01-01T12:00:00Z"
    assert {each["spec"]["renewTime"] for each in server.told("/leases")} == {"2031-01-01T12:00:00.000000Z"}
    assert (done.began.year, done.began.month) in ((2030, 12), (2031, 1))
    assert abs((done.began - NOW).total_seconds()) < 600


def waiting(message: str, reason: str = "Unschedulable", status: str = "False") -> PodView:
    condition = {"type": "PodScheduled", "status": status, "reason": reason, "message": message}
    found = {**live_pod("a", cpu=1), "status": {"conditions": [condition]}}
    return read_view(json.dumps(found).encode(), PodView)


@pytest.mark.parametrize(
    ("there", "is_said"),
    [
        (waiting("needs cpu 8; the nodes have 7500m in all"), True),
        (waiting("needs cpu 16.5; the nodes have 0 in all"), True),
        (waiting("needs memory 8; the nodes have 7500m in all"), False),
        (waiting("needs cpu 8; the nodes have 7500m in all", reason="SchedulerError"), False),
        (waiting("needs cpu 8; the nodes have 7500m in all", status="True"), False),
        (read_view(json.dumps(live_pod("a", cpu=1)).encode(), PodView), False),
    ],
)
def test_other_amounts_alone_are_no_other_cause(there: PodView, is_said: bool) -> None:
    wait = _WaitingReason("Unschedulable", "needs cpu 8; the nodes have 6 in all")
    assert _says(there, wait) is is_said
