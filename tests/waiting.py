"""Waiting for what another process, or a server, does."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

__all__ = ["interrupt", "started", "wait_until"]

#: Seconds; for ever, as far as tests go, on the busiest of machines.
_PATIENCE = 600.0
#: Seconds for which a process must have slept until it is taken for one that has not heard a signal.
_DEAF = 2.0


def wait_until(condition: Callable[[], bool], what: str = "it") -> None:
    """Wait until a condition holds.

    Raises
    ------
    TimeoutError
        Ten minutes have passed; ``what`` did not happen.
    """
    end = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited for ten minutes, and {what} did not happen")
        time.sleep(0.02)


@contextmanager
def started(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """A process whose output is read by us; after the block, however it ends, it is gone and its pipes are closed."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


def interrupt(running: subprocess.Popen[str], *signals: signal.Signals) -> tuple[str, str]:
    """Send signals, as one who presses Ctrl-C does, and wait for the end; what was said, to both outputs.

    A signal that comes between Python's last look for signals and the system call that it then waits in is heard only
    when that call returns, which may be never. So the last signal is sent again to a process that sleeps on.

    Raises
    ------
    TimeoutError
        Ten minutes have passed, and the process has not ended.
    """
    for each in signals:
        running.send_signal(each)
    end = time.monotonic() + _PATIENCE
    before = None
    while time.monotonic() < end:
        try:
            return running.communicate(timeout=_DEAF)
        except subprocess.TimeoutExpired:
            state, *used = _state(running.pid)
            if state == "S" and used == before:
                running.send_signal(signals[-1])
            before = used
    raise TimeoutError(f"waited for ten minutes, and {running.args!r} did not end of {signals[-1].name}")


def _state(pid: int) -> list[str]:
    """What a process does (a letter, see proc(5)), and the processor time that it has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [fields[0], *fields[11:15]]
