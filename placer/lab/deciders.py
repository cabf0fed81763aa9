"""Ask a policy or a method by its name, and measure the peak memory of a process tree.

The peak of ``getrusage`` begins with that of the forking process, so high-water marks (VmHWM) are read from ``/proc``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from placer.answers.solving import solve
from placer.base.text import found_like
from placer.lab.own_policies import OwnPolicy, Proposal, propose
from placer.lab.policies.mimicry import POLICIES, PREEMPTING, SORTED, mimic
from placer.problem import Instance
from placer.problem.result import Result
from placer.search import METHODS
from placer.search.process import ProcessEnd, ProcessResult, run_apart
from placer.search.search_limits import limit_faults

__all__ = ["NAMES", "Asked", "PeakOfTree", "apart", "ask", "configuration_of", "faults_of", "high_water"]


#: Everything that can decide, but for the reader's own policies.
NAMES = (*POLICIES, *SORTED, *METHODS)


@dataclass(frozen=True, slots=True)
class Asked:
    """Who decides, and how; limits are of methods, ``own`` is the policy of the reader's own that has the name."""

    name: str
    arguments: Mapping[str, Any] | None = None
    time_limit: float | None = 60.0
    work_limit: float | None = None
    workers: int | None = None
    seed: int = 0
    own: OwnPolicy | None = None


def faults_of(
    targets: Mapping[str, str | None],
    configured: Mapping[str, Any],
    *,
    time_limit: float | None,
    workers: int | None,
    seeds: Sequence[int],
    work_limit: float | None = None,
) -> list[str]:
    """Faults of names (:func:`placer.lab.own_policies.parse`), configurations and limits."""
    known = f"one of {', '.join(NAMES)}, or NAME=package.module:function, NAME=PLACEMENT"
    bare = {name.partition(":")[0] for name in targets}
    checks = (
        ("policies", "none", "at least one", bool(targets)),
        *(("policy", repr(name), known + found_like(name, NAMES), False) for name in _unknown(targets)),
        *(("configuration", f"one for {name}", "it among the policies", name in bare) for name in configured),
    )
    faults = [f"{what}: found {found}, expected {expected}" for what, found, expected, fine in checks if not fine]
    return faults + limit_faults(time_limit, workers, seeds, work_limit)


def _unknown(targets: Mapping[str, str | None]) -> list[str]:
    return [name for name, own in targets.items() if own is None and name not in NAMES]


def configuration_of(name: str, arguments: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The configuration of a policy: its own, else that of the policy of which it is a variant.

    Examples
    --------
    >>> configuration_of("network-overhead:KahnSort", {"network-overhead": {"percentageOfNodesToScore": 50}})
    {'percentageOfNodesToScore': 50}
    """
    of = PREEMPTING.get(name, name.partition(":")[0])
    return arguments.get(name, arguments.get(of))


def ask(instance: Instance, asked: Asked, began: float | None = None) -> Proposal | Result:
    """Let a policy or a method decide; the time of a method began at ``began`` (``time.monotonic()``; None: now)."""
    if asked.own is not None:
        return propose(
            asked.own, instance, seed=asked.seed, time_limit=asked.time_limit, workers=asked.workers, began=began
        )
    if asked.name in POLICIES or asked.name in SORTED:
        found = mimic(instance, asked.name, seed=asked.seed, arguments=asked.arguments)
        return Proposal(found.placement, found.notes)
    return solve(
        instance,
        method=asked.name,
        time_limit=asked.time_limit,
        work_limit=asked.work_limit,
        workers=asked.workers,
        seed=asked.seed,
        began=time.monotonic() if began is None else began,
    )


def apart(function: Callable[..., Any], arguments: tuple[Any, ...], hear: Callable[[Any], None]) -> ProcessResult:
    """Run a function in its own process; an interrupt there is one here."""
    ended = run_apart(f"{function.__module__}:{function.__name__}", arguments, hear)
    if ended.how is ProcessEnd.INTERRUPTED:
        raise KeyboardInterrupt
    return ended


INTERVAL = 0.05  #: seconds between two looks; what a process takes on between the last one and its end is not seen


class PeakOfTree:
    """Watches a process tree until the ``with`` block is left.

    ``peak`` is the largest sum of high-water marks of processes that lived at the same time, KiB; 0: the system does
    not say.
    """

    def __init__(self) -> None:
        self.peak = 0
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def hear(self, pid: int | None) -> None:
        """Take the id of the process when it begins, and None at the end of the measured part."""
        if pid is None:
            self._end.set()
        else:
            self._thread = threading.Thread(target=self._look, args=(pid,), daemon=True)
            self._thread.start()

    def _look(self, pid: int) -> None:
        while not self._end.wait(INTERVAL):
            self.peak = max(self.peak, sum(map(high_water, tree(pid))))

    def __enter__(self) -> PeakOfTree:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        if self._thread is not None:
            self._thread.join()


def high_water(pid: int | str) -> int:
    """Peak of a process's resident memory in KiB, 0 where it is gone; ``self`` is this one."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def tree(pid: int) -> Iterator[int]:
    yield pid
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:
        return
    for child in children:
        yield from tree(child)
