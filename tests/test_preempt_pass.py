"""What a loop may take from one pass to the next of a search for room: only what was proved."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any

from placer.answers.solving import solve
from placer.passes.cluster.reading.snapshot import Snapshot
from placer.passes.preempt_pass import _RoomMaker
from placer.passes.scheduling_pass import Pass, PassOptions, PassSession, ReadCluster, lasting_answer
from placer.problem import GroupKey
from tests.support import instance_of, node, pod


class _Clock:
    def now(self) -> datetime:
        return datetime.now(UTC)


def searched(seconds: float, priority: int) -> Pass:
    """A pass that has looked for room for a pod on a node that one of priority 5 fills."""
    instance = instance_of(
        node("n", cpu=4),
        pod("runs", node="n", cpu=4, spec={"priority": 5}),
        pod("waits", cpu=4, spec={"priority": priority}),
    )
    done = Pass(PassOptions(scheduler_name="placer", workers=1))
    snapshot: Any = Snapshot(scheduler_name="placer", items=(), versions={}, counts={})
    done.read = ReadCluster(snapshot, instance, cache=None)  # type: ignore[arg-type]  # nothing is bound
    done.result = solve(instance, workers=1)
    client: Any = _Clock()
    found = _RoomMaker(PassSession(client, threading.Event()), done)
    assert found._plan(instance, GroupKey("", "default", "waits"), seconds) is None
    return done


def test_that_there_is_no_room_to_be_made_lasts_once_it_is_proved() -> None:
    done = searched(30.0, priority=1)
    assert not done.report.undecided
    assert lasting_answer(done) is not None


def test_a_search_that_ran_out_of_time_is_made_again() -> None:
    done = searched(0.0, priority=9)
    assert done.report.undecided
    assert lasting_answer(done) is None
