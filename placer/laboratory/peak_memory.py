"""The most memory that a process and the ones it started held at once.

``getrusage`` cannot tell: the peak it gives for a process begins with that of the process it was forked from. So the
high-water marks (VmHWM) are read from ``/proc`` while they run, from outside, which costs the run nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

__all__ = ["PeakOfTree", "high_water"]

INTERVAL = 0.05  #: seconds between two looks; what a process takes on between the last one and its end is not seen


class PeakOfTree:
    """Looks at a tree of processes until the ``with`` block is left.

    ``peak`` is the largest sum of high-water marks of processes that lived at the same time, in KiB: at least what they
    held at once, and more where they peaked one after another. 0 where the system does not tell who started whom.
    """

    def __init__(self) -> None:
        self.peak = 0
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def hear(self, pid: int | None) -> None:
        """Take what the process tells: its id when it begins, None when what comes after is not of interest."""
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
    """The process and all below it, as long as they live."""
    yield pid
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:
        return
    for child in children:
        yield from tree(child)
