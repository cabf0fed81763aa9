"""A soak: passes beside kube-scheduler, with arrivals and ends, faults, and a Lease that is handed over."""

from __future__ import annotations

import queue
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from tests.cluster.api import Api
from tests.cluster.processes import Line, PlacerProcess
from tests.cluster.proxy import Proxy, proxied
from tests.cluster.server import ControlPlane
from tests.cluster.soak.faults import (
    FAULTS,
    SERVER_ENDS,
    SERVER_IS_KILLED,
    STANDBY_IS_KILLED,
    WATCHES_BREAK,
    drawn_faults,
)
from tests.cluster.soak.judge import Records, Sample
from tests.cluster.soak.watching import heard
from tests.cluster.soak.world import World

__all__ = ["SoakOptions", "resource_of", "soak"]

#: Passes at the end in which nothing arrives, ends or goes wrong.
_QUIET = 6
#: Most seconds for which something goes wrong, less than a leader may be without an answer; and to wait for a line.
_FAULT, _PATIENCE = 8.0, 300.0
_HANDED = "the Lease is handed over"
_NEVER: Callable[[str, str, int], None] = lambda *_: None  # noqa: E731 (a rule that a proxy goes by)


@dataclass(frozen=True, slots=True)
class SoakOptions:
    """How long, and of what.

    Parameters
    ----------
    passes, nodes, seed
        How many, and what everything is drawn by.
    fault_every
        In each so many passes something goes wrong.
    flags
        Of ``placer run``, besides those of every soak.
    """

    passes: int = 360
    nodes: int = 1_000
    seed: int = 0
    fault_every: int = 5
    flags: tuple[str, ...] = ("--method", "greedy")


def resource_of(path: str) -> str:
    """The resource of a request, with its subresource."""
    parts = path.partition("?")[0].strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    return "/".join(rest[:1] + rest[2:])


@dataclass
class _Heard:
    """Lines of passes, as they come from any process."""

    lines: queue.SimpleQueue[tuple[PlacerProcess, Line]] = field(default_factory=queue.SimpleQueue)

    def __call__(self, process: PlacerProcess, line: Line) -> None:
        self.lines.put((process, line))


class _Soak:
    def __init__(self, control_plane: ControlPlane, api: Api, options: SoakOptions, proxy: Proxy) -> None:
        self._control_plane, self._options, self._proxy = control_plane, options, proxy
        self._world = World(api, options.nodes, options.seed)
        self._heard, self._began = _Heard(), time.monotonic()
        self._processes: dict[str, PlacerProcess] = {}
        self._leader = ""
        self._faults = drawn_faults(options.seed)
        self._samples: list[Sample] = []
        self._exits: list[int] = []
        #: The Lease is handed over after so many passes: its holder is killed, then another one told to end.
        self._handovers = {max(2, options.passes // 6): signal.SIGKILL, max(4, options.passes // 3): signal.SIGTERM}

    # --------------------------------------------------------------------------------------------------- what happens

    def run(self) -> Iterator[dict[str, Any]]:
        """Make the passes; what is told of each."""
        self._world.fill()
        with ExitStack() as stack:
            stack.enter_context(heard(self._control_plane, self._world.listeners()))
            stack.enter_context(self._world.kubelets())
            stack.callback(self._close)
            self._control_plane.start_kube_scheduler()
            stack.callback(self._control_plane.end, "kube-scheduler")
            self._start()
            self._next_line()
            self._start()
            self._began = time.monotonic()
            for number in range(1, self._options.passes + 1):
                yield self._pass(number)

    def _pass(self, number: int) -> dict[str, Any]:
        quiet = number > self._options.passes - _QUIET
        fault = next(self._faults) if number % self._options.fault_every == 0 and not quiet else ""
        if not quiet:
            self._world.step()
        if number in self._handovers:
            fault = _HANDED
            self._hand_over(self._handovers[number])
        line = self._spoilt(number, fault) if fault and fault != _HANDED else self._next_line()
        before = self._samples[-1].fault if self._samples else ""
        told_fault = fault or (f"after {before}" if before and not before.startswith("after ") else "")
        self._samples.append(self._sample(number, told_fault))
        return self._told(line, fault)

    def _spoilt(self, number: int, fault: str) -> Line:
        """A pass in which something goes wrong."""
        over = threading.Timer(_FAULT, self._clear)
        over.start()
        works = {
            WATCHES_BREAK: self._proxy.cut_watches,
            SERVER_ENDS: lambda: self._restart(signal.SIGTERM),
            SERVER_IS_KILLED: lambda: self._restart(signal.SIGKILL),
            STANDBY_IS_KILLED: self._kill_standby,
        }
        spoilt = FAULTS[fault]
        if spoilt is not None:
            self._proxy.rule = spoilt.rule(f"{self._options.seed} {number}")
            if fault == "silent":
                self._proxy.cut_watches()  # those that are opened then say nothing
        else:
            works[fault]()
        try:
            return self._next_line()
        finally:
            over.cancel()
            self._clear()

    def _clear(self) -> None:
        self._proxy.rule = _NEVER

    def _restart(self, how: signal.Signals) -> None:
        self._control_plane.end("kube-apiserver", how)
        self._control_plane.start_api_server()

    # ------------------------------------------------------------------------------------------------------ processes

    def _start(self) -> None:
        config = self._control_plane.kubeconfig("soak", url=self._proxy.url)
        flags = ["--kubeconfig", str(config), "--every", "5s", "--settle", "0.5", *self._options.flags]
        name = f"process {len(self._processes) + 1}"
        self._processes[name] = PlacerProcess(flags, self._heard)

    def _hand_over(self, how: signal.Signals) -> None:
        """End the leader, and begin another one in its place, which stands by."""
        process = self._processes[self._leader]
        process.process.send_signal(how)
        code = process.wait()
        if how is signal.SIGTERM:
            self._exits.append(code)
        self._start()

    def _kill_standby(self) -> None:
        for name, process in self._processes.items():
            if name != self._leader and process.memory is not None:
                process.kill()
                process.wait()
                self._start()
                return

    def _close(self) -> None:
        for process in self._processes.values():
            process.close()

    def _next_line(self) -> Line:
        """The line of the next pass that was made."""
        end = time.monotonic() + _PATIENCE
        while True:
            process, line = self._heard.lines.get(timeout=max(0.1, end - time.monotonic()))
            name = next((name for name, each in self._processes.items() if each is process), "")
            if name and process.memory is not None:
                self._leader = name
                return line

    # -------------------------------------------------------------------------------------------------- what is noted

    def _sample(self, number: int, fault: str) -> Sample:
        memory = {name: each.memory for name, each in self._processes.items()}
        time.sleep(0.1)  # the watches of the judge hear of the last bindings
        with self._world.lock:
            half_bound, fits = self._world.ledger.half_bound(), self._world.ledger.fit()
        there = {name: each for name, each in memory.items() if each is not None}
        return Sample(number, time.monotonic() - self._began, fault, self._leader, half_bound, fits, there)

    def _told(self, line: Line, fault: str) -> dict[str, Any]:
        sample = self._samples[-1]
        return {
            "pass": sample.number,
            "seconds": round(time.monotonic() - self._began, 1),
            "fault": fault,
            "leader": sample.leader,
            "pending": line.get("pending"),
            "bound": line.get("bound"),
            "error": line.get("error"),
            "halfBound": sorted(sample.half_bound),
            "fit": sorted(sample.fits),
            "memoryMiB": {name: round(each / 1024, 1) for name, each in sample.memory.items()},
            "writes": sum(self._writes().values()),
            "changes": sum(self._world.ledger.changes.values()),
            "took": line.get("seconds"),
        }

    def _writes(self) -> Counter[tuple[str, str]]:
        found: Counter[tuple[str, str]] = Counter()
        for (method, path), times in list(self._proxy.reached.items()):
            if method != "GET":
                found[method, resource_of(path)] += times
        return found

    def records(self) -> Records:
        """All that was seen and counted."""
        ledger = self._world.ledger
        with self._world.lock:
            return Records(
                samples=self._samples,
                bound=dict(self._proxy.bound),
                rebound=list(ledger.rebound),
                overfull=list(ledger.overfull),
                writes=self._writes(),
                changes=dict(ledger.changes),
                holders=list(ledger.holders),
                exits=self._exits,
                seconds=time.monotonic() - self._began,
            )


def soak(
    control_plane: ControlPlane, api: Api, options: SoakOptions, tell: Callable[[dict[str, Any]], None]
) -> Records:
    """Make passes at a server that knows Volcano's kinds; what was seen and counted of them.

    Parameters
    ----------
    control_plane, api
        The server, without anything in it.
    options
        How long, and of what.
    tell
        Is called after each pass with what is told of it.
    """
    with proxied(control_plane) as proxy:
        made = _Soak(control_plane, api, options, proxy)
        for told in made.run():
            tell(told)
        return made.records()
