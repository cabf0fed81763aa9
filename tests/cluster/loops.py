"""A loop of passes in tests: it runs in a thread of its own, and what it tells is noted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from placer.passes.cluster import Client
from placer.passes.cluster.writing.lease import LeaseOptions
from placer.passes.cluster.writing.plan_execution import BindingOptions
from placer.passes.scheduling_loop import LoopObserver, run_loop
from placer.passes.scheduling_pass import MakePass, Pass, PassOptions, make_pass
from tests.cluster.server import ControlPlane
from tests.waiting import wait_until

__all__ = ["Loop", "looping"]

#: Of a loop whose Lease changes hands within seconds; it is kept, however long a renewal takes on a busy machine.
_OPTIONS = PassOptions(
    binding=BindingOptions(settle=0.1),
    lease=LeaseOptions(duration=600, renew_deadline=300.0, retry_period=0.2),
)


class Loop:
    """Notes what a loop tells."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.passes: list[Pass] = []  #: those that have ended
        self.reasons: list[str] = []  #: why none was made
        self.phases: list[str] = []  #: what went on
        self.error: Exception | None = None

    def begun(self, done: Pass) -> None:
        pass

    def phase(self, text: str) -> None:
        self.phases.append(text)

    def binding(self) -> None:
        pass

    def waiting(self) -> None:
        pass

    def ended(self, done: Pass) -> None:
        self.passes.append(done)

    def standing_by(self, why: str) -> None:
        self.reasons.append(why)

    undecided = paused = standing_by

    @property
    def bound(self) -> int:
        """Pods that it has bound so far."""
        return sum(len(gang.bound) for each in self.passes for gang in each.bound.gangs)

    def wait_for_passes(self, count: int) -> None:
        """Wait until so many have ended."""
        wait_until(lambda: len(self.passes) >= count or self.error is not None, f"pass {count}")
        if self.error is not None:
            raise self.error


@contextmanager
def looping(
    control_plane: ControlPlane,
    every: float,
    *observers: LoopObserver,
    url: str | None = None,
    method: str = "greedy",
    gates: bool = False,
    client: Client | None = None,
    make: MakePass = make_pass,
    **changes: Any,
) -> Iterator[Loop]:
    """A loop for as long as the block lasts; its first pass has ended when it begins, if it may make one.

    ``changes`` are options of its passes.
    """
    loop = Loop()
    client = client or Client.connect(str(control_plane.kubeconfig("loop", url=url)))
    wanted = replace(_OPTIONS, every=every, method=method, gates=gates, **changes)

    def work() -> None:
        try:
            run_loop(client, wanted, loop.stop, *observers, loop, make=make)
        except Exception as error:  # raised in the test's own thread
            loop.error = error

    thread = threading.Thread(target=work, name="loop")
    thread.start()
    try:
        wait_until(lambda: bool(loop.passes or loop.reasons or loop.error), "the first pass")
        yield loop
    finally:
        loop.stop.set()
        thread.join()
    if loop.error is not None:
        raise loop.error
