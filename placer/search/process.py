"""A solver in a process of its own: it may hang, abort or eat its time, and the caller still has the last answer.

CP-SAT 9.15 can abort the process it runs in, presolve may overrun a time limit, and native code cannot be interrupted.
In a container it may take the memory that is left and no more, so that it dies alone.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import IO, Any

from placer.base.deadline import NEVER, Deadline, OutOfTime, wall
from placer.problem import Finding
from placer.problem.result import Termination
from placer.search.fork_server import HEAD, SERVER, Child, task
from placer.search.memory import memory_left

#: Part of the container's memory that a child may take, and part below which what is left ends it.
_SHARE, _RESERVE = 0.9, 0.05
#: Seconds between two looks at what is left, and at whether the caller wants no more.
_TICK, _LOOK = 1.0, 0.1


class ProcessEnd(Enum):
    """How a search ended."""

    RETURNED = "returned"  #: by itself
    KILLED = "killed"  #: by us, when its time was over, or its caller wanted no more
    DIED = "died"  #: it aborted, was killed by another process, or raised
    INTERRUPTED = "interrupted"  #: the user wants an end (Ctrl-C)


@dataclass(frozen=True)
class ProcessResult:
    """The end of a search: ``value`` is what the function returned; ``detail`` the last line of its standard error,
    with the signal or exit status, where it DIED.
    """

    how: ProcessEnd
    value: Any = None
    detail: str = ""

    @property
    def termination(self) -> Termination:
        """Why a search that returns the name of a termination stopped."""
        if self.how is ProcessEnd.RETURNED:
            return Termination(self.value)
        ends = {ProcessEnd.KILLED: Termination.TIME, ProcessEnd.INTERRUPTED: Termination.INTERRUPTED}
        return ends.get(self.how, Termination.FINISHED)

    def findings(self, name: str) -> list[Finding]:
        """That the search died, where it did."""
        message = f"The search ended with {self.detail}; its last answer is kept."
        return [Finding("SolverDied", name, message)] if self.how is ProcessEnd.DIED else []


def run_apart(
    target: str,
    arguments: tuple[Any, ...],
    on_event: Callable[[Any], None],
    deadline: Deadline = NEVER,
    enough: Callable[[], ProcessEnd | None] | None = None,
) -> ProcessResult:
    """Run ``target(*arguments, emit)`` in a child process and hand every emitted event to ``on_event``.

    ``target``: ``package.module:function``. ``arguments``: picklable. ``on_event``: called in this process, in order;
    an error in it ends the child. ``deadline``: when the child is killed, even before it has its task. ``enough``:
    asked again and again: how the child ends where the caller wants no more, else None.
    """
    (reader, writer), (source, sink) = os.pipe(), os.pipe()
    with tempfile.TemporaryFile() as errors, os.fdopen(reader, "rb", buffering=0) as answers:
        tasks, left = os.fdopen(sink, "wb"), memory_left()
        child, sender = None, threading.Thread()
        try:
            try:
                with wall(deadline):
                    mine = task(target, arguments)
                most = None if left is None else int(left * _SHARE)
                child = SERVER.fork(target.partition(":")[0], most, (source, writer, errors.fileno()), deadline)
            finally:
                os.close(source)
                os.close(writer)
            sender = threading.Thread(target=_send, args=(tasks, mine), daemon=True)
            sender.start()  # in a thread: a child that stops before it reads must not hold us up
            return _listen(child, answers, on_event, deadline, errors, int((left or 0) * _RESERVE), enough)
        except (TimeoutError, OutOfTime):
            return ProcessResult(ProcessEnd.KILLED)
        except KeyboardInterrupt:
            return ProcessResult(ProcessEnd.INTERRUPTED)
        finally:
            if child is not None:
                child.kill()
            if sender.is_alive():  # not if the interrupt came before it began; to join it then is an error
                sender.join()
            with contextlib.suppress(BrokenPipeError):
                tasks.close()


def _send(tasks: IO[bytes], task: bytes) -> None:
    """Hand over the task; a child that died already is noticed when we listen, and one that is given up has no pipe."""
    with contextlib.suppress(BrokenPipeError, ValueError):
        tasks.write(task)
        tasks.flush()


def _listen(
    child: Child,
    answers: IO[bytes],
    on_event: Callable[[Any], None],
    deadline: Deadline,
    errors: IO[bytes],
    reserve: int,
    enough: Callable[[], ProcessEnd | None] | None,
) -> ProcessResult:
    buffer = bytearray()
    while (ended := _ended(deadline, reserve, enough)) is None:
        waits = (deadline.wait, _TICK if reserve else None, None if enough is None else _LOOK)
        if not select.select([answers], [], [], min((each for each in waits if each is not None), default=None))[0]:
            continue
        chunk = answers.read(1 << 20)
        if not chunk:
            return ProcessResult(ProcessEnd.DIED, detail=_last_words(child, errors))
        buffer += chunk
        for kind, value in _frames(buffer):
            if kind == "returned":
                return ProcessResult(ProcessEnd.RETURNED, value)
            on_event(value)
    return ended


def _ended(deadline: Deadline, reserve: int, enough: Callable[[], ProcessEnd | None] | None) -> ProcessResult | None:
    if enough is not None and (end := enough()) is not None:
        return ProcessResult(end)
    if deadline.over:
        return ProcessResult(ProcessEnd.KILLED)
    if reserve and (memory_left() or 0) < reserve:
        return ProcessResult(ProcessEnd.DIED, detail="the container's memory is nearly used up")
    return None


def _frames(buffer: bytearray) -> list[tuple[str, Any]]:
    found = []
    while len(buffer) >= HEAD.size:
        (length,) = HEAD.unpack_from(buffer)
        if len(buffer) < HEAD.size + length:
            break
        found.append(pickle.loads(bytes(buffer[HEAD.size : HEAD.size + length])))
        del buffer[: HEAD.size + length]
    return found


def _last_words(child: Child, errors: IO[bytes]) -> str:
    status = child.wait()
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines()
    how = "no exit status" if status is None else f"signal {-status}" if status < 0 else f"exit status {status}"
    return f"{how}: {lines[-1]}" if lines else how
