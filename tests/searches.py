"""Searches that behave badly, for the tests of the process they run in."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable


def honest(value: int, emit: Callable[[object], None]) -> str:
    emit(("found", value))
    emit(("found", value + 1))
    return "finished"


def hangs(emit: Callable[[object], None]) -> str:
    emit("before")
    time.sleep(3600)
    return "never"


def hangs_deaf(emit: Callable[[object], None]) -> str:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    emit("before")
    while True:
        time.sleep(60)


def aborts(emit: Callable[[object], None]) -> str:
    emit("before")
    os.abort()


def is_killed(emit: Callable[[object], None]) -> str:
    emit("before")
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


def raises(emit: Callable[[object], None]) -> str:
    emit("before")
    raise ValueError("a fault in the search")


def prints(emit: Callable[[object], None]) -> str:
    print("noise on standard output")
    print("noise on standard error", file=sys.stderr)
    emit("x" * 5_000_000)
    return "finished"


def tells_its_pid(emit: Callable[[object], None]) -> str:
    emit(os.getpid())
    time.sleep(3600)
    return "never"
