"""Searches that behave badly, for the tests of the process they run in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from placer.arrays import Dense, Solution
from placer.search.events import BoundFound, Emit, Improved, SearchOptions


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


def eats(emit: Callable[[object], None]) -> str:
    emit("before")
    eaten = [bytearray(2**24) for _ in range(64)]
    return f"ate {len(eaten)}"


def prints(emit: Callable[[object], None]) -> str:
    print("noise on standard output")
    print("noise on standard error", file=sys.stderr)
    emit("x" * 5_000_000)
    return "finished"


def starts_a_program(emit: Callable[[object], None]) -> str:
    emit(subprocess.Popen(["sleep", "3600"]).pid)
    time.sleep(3600)
    return "never"


def tells_its_state(emit: Callable[[object], None]) -> None:
    emit({"server": os.getppid(), "directory": os.getcwd(), "environment": os.environ.get("PLACER_TEST")})


def tells_its_pid(emit: Callable[[object], None]) -> str:
    emit(os.getpid())
    time.sleep(3600)
    return "never"


# Searches as ``placer.solve`` starts them: (dense, options, emit) -> how it ended.


def _best_known(dense: Dense, options: SearchOptions, emit: Emit) -> None:
    """Put one pod of every class on the first node that takes it: enough for instances of lone pods with room."""
    solution = Solution()
    for index in range(len(dense.classes)):
        solution[(index, int(dense.fits(index).argmax()))] = dense.classes[index].size
    emit(Improved(solution, "test"))


def finds_and_hangs(dense: Dense, options: SearchOptions, emit: Emit) -> str:
    _best_known(dense, options, emit)
    time.sleep(3600)
    return "proved"


def finds_and_aborts(dense: Dense, options: SearchOptions, emit: Emit) -> str:
    _best_known(dense, options, emit)
    os.abort()


def aborts_at_once(dense: Dense, options: SearchOptions, emit: Emit) -> str:
    os.abort()


def is_killed_at_once(dense: Dense, options: SearchOptions, emit: Emit) -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return "proved"


def hangs_at_once(dense: Dense, options: SearchOptions, emit: Emit) -> str:
    time.sleep(3600)
    return "proved"


def claims_a_false_bound(dense: Dense, options: SearchOptions, emit: Emit) -> str:
    emit(BoundFound(criterion=0, bound=0, by="liar"))
    return "proved"


def overfills_a_node(dense: Dense, options: SearchOptions, emit: Emit) -> str:
    emit(Improved(Solution({(index, 0): pods.size for index, pods in enumerate(dense.classes)}), "test"))
    return "proved"
