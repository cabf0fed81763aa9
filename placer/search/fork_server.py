"""A process that forks children with the modules of a search loaded: loading them takes a second, a fork milliseconds.

Both ends speak by a socket, one request at a time: the name of a module, with the child's descriptors, is answered by
the child's pid; a pid by how that child ended. The server ends when its socket is closed, so never after its parent;
each child watches its standard input, which the parent keeps open, and ends with it, too.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Sequence
from io import RawIOBase
from typing import Any, BinaryIO, NoReturn

from placer.base.deadline import NEVER, Deadline
from placer.search.memory import limit_memory

#: The length of a frame.
HEAD = struct.Struct(">Q")
#: A pid, or how a child ended.
_ANSWER = struct.Struct(">q")
#: How a child ended of which the server knows nothing: no status of a process.
_UNKNOWN = 1 << 32
#: Bytes that no request is longer than.
_MOST = 1 << 12


class ForkServer:
    """The parent's end of its server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parent = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None

    def fork(self, module: str, most: int | None, files: Sequence[int], deadline: Deadline) -> Child:
        """Fork a child that imports ``module`` and runs the :func:`task` which it reads from the first of ``files``.

        ``most``: bytes of memory that the child may take. ``files``: its standard input, where it writes frames, and
        its standard error.

        Raises
        ------
        TimeoutError
            The time was over first.
        OSError
            There is no child to be had, such as for want of memory.
        """
        with contextlib.suppress(EOFError):
            return Child(self._ask((module, most), files, deadline), self)
        try:  # the old server had ended, such as for want of memory
            return Child(self._ask((module, most), files, deadline), self)
        except EOFError as error:
            raise ChildProcessError("the server of the searches ended twice") from error

    def wait(self, pid: int) -> int | None:
        """Exit status of a child when it has ended, negative for a signal; None: unknown."""
        with contextlib.suppress(EOFError):
            status = self._ask(pid)
            return None if status == _UNKNOWN else status
        return None

    def stop(self) -> None:
        """End the server; its children continue."""
        process, self._process = self._process, None
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()
        if process is not None and self._parent == os.getpid():
            process.kill()
            process.wait()

    def _ask(self, request: object, files: Sequence[int] = (), deadline: Deadline = NEVER) -> int:
        if not self._lock.acquire(timeout=-1 if deadline.wait is None else deadline.wait):
            raise TimeoutError
        try:
            channel = self._started()
            socket.send_fds(channel, [pickle.dumps(request)], files)
            if not select.select([channel], [], [], deadline.wait)[0]:
                raise TimeoutError
            answer = channel.recv(_ANSWER.size)
            if len(answer) < _ANSWER.size:
                raise EOFError
            return int(_ANSWER.unpack(answer)[0])
        except ConnectionError as error:
            self.stop()
            raise EOFError from error
        except BaseException:  # an answer that nobody has read would be taken for the next one's
            self.stop()
            raise
        finally:
            self._lock.release()

    def _started(self) -> socket.socket:
        """The socket to the server of this process: one that was itself forked has none yet.

        ``-P`` keeps the server from importing what lies in the directory that the user happens to be in; its own
        session keeps Ctrl-C from it, so that we decide.
        """
        if self._channel is not None and self._parent == os.getpid():
            return self._channel
        self._channel, theirs = socket.socketpair()
        self._parent = os.getpid()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "placer.search.fork_server", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                env=_environment(),
            )
        return self._channel


class Child:
    """A child of a server."""

    def __init__(self, pid: int, server: ForkServer) -> None:
        self._pid, self._server = pid, server
        self._status: int | None = None
        self._ended = False

    def wait(self) -> int | None:
        """Exit status when it has ended, negative for a signal; None: unknown."""
        if not self._ended:
            self._status, self._ended = self._server.wait(self._pid), True
        return self._status

    def kill(self) -> None:
        """Kill it and what it started: a solver may be a program of its own (CBC)."""
        for kill in (os.killpg, os.kill):  # one that has just begun leads no group yet
            with contextlib.suppress(ProcessLookupError):
                kill(self._pid, signal.SIGKILL)
        self.wait()


#: The server of this process.
SERVER = ForkServer()
atexit.register(SERVER.stop)


def task(target: str, arguments: tuple[Any, ...]) -> bytes:
    """Directory, environment and path of modules to run in; then ``package.module:function`` with its arguments."""
    directory = None
    with contextlib.suppress(OSError):  # it was deleted
        directory = os.getcwd()
    return frame((directory, _environment(), _path())) + frame((target, arguments))


def frame(value: object) -> bytes:
    """One value as a frame: its length, and its pickle."""
    body = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return HEAD.pack(len(body)) + body


def _path() -> list[str]:
    return [path for path in sys.path if path]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(_path())}


def _serve(channel: socket.socket) -> None:
    while True:
        request, files, _, _ = socket.recv_fds(channel, _MOST, 3)
        if not request:
            return
        match pickle.loads(request):
            case int(pid):
                answer = _UNKNOWN
                with contextlib.suppress(ChildProcessError):  # it is that of a server that was lost
                    answer = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            case module, most:
                if module.partition(".")[0] == "placer":
                    with contextlib.suppress(Exception):  # the child will report it
                        importlib.import_module(module)
                        gc.freeze()  # pages that no collection touches are shared by all children
                answer = os.fork()
                if not answer:
                    channel.close()
                    _be_child(files, most)
        for each in files:
            os.close(each)
        channel.sendall(_ANSWER.pack(answer))


def _be_child(files: Sequence[int], most: int | None) -> NoReturn:
    status = 1
    try:
        os.setsid()
        os.dup2(files[0], 0)
        os.dup2(files[2], 2)
        if most is not None:
            limit_memory(most)
        _run_task(files[1])
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(status)


def _run_task(descriptor: int) -> None:
    answers = os.fdopen(descriptor, "wb")
    with os.fdopen(0, "rb", buffering=0, closefd=False) as source:
        directory, environment, path = _next(source)
        if directory is not None:
            os.chdir(directory)
        os.environ.clear()
        os.environ.update(environment)
        sys.path[:] = path
        importlib.invalidate_caches()
        target, arguments = _next(source)  # its classes are found on that path
    threading.Thread(target=_die_with_parent, daemon=True).start()
    lock = threading.Lock()

    def emit(event: Any) -> None:
        with lock:  # solver callbacks come from other threads
            _write(answers, ("event", event))

    module, _, function = target.partition(":")
    outcome = getattr(importlib.import_module(module), function)(*arguments, emit)
    _write(answers, ("returned", outcome))


def _write(stream: BinaryIO, value: object) -> None:
    stream.write(frame(value))
    stream.flush()


def _next(source: RawIOBase) -> Any:
    (length,) = HEAD.unpack(_read(source, HEAD.size))
    return pickle.loads(_read(source, length))


def _read(source: RawIOBase, length: int) -> bytes:
    """Read exactly so many bytes; unbuffered, since a buffer's lock must not be held by a thread at exit."""
    parts = []
    while length:
        part = source.read(length)
        if not part:
            raise EOFError("the task ended early")
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _die_with_parent() -> None:
    while os.read(0, 1):
        pass
    if os.getpgrp() == os.getpid():  # ours alone: what we started goes too
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as channel_:
        _serve(channel_)
