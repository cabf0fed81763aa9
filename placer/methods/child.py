"""The far side of :mod:`placer.methods.process`: runs one search and tells its events through a pipe.

The frames are a length (8 bytes, big endian) and a pickle. A thread watches standard input, which the parent keeps
open: when the parent is gone, whatever way, this process ends too.
"""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import struct
import sys
import threading
from io import RawIOBase
from typing import Any, BinaryIO

__all__ = ["HEAD", "main", "write_frame"]

HEAD = struct.Struct(">Q")


def write_frame(stream: BinaryIO, value: object) -> None:
    """Write one value as a frame and flush it."""
    body = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(HEAD.pack(len(body)) + body)
    stream.flush()


def main() -> None:
    """Read the task from standard input, run it, write events and finally its return value to the given descriptor."""
    answers = os.fdopen(int(sys.argv[1]), "wb")
    with os.fdopen(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as source:
        (length,) = HEAD.unpack(_read(source, HEAD.size))
        target, arguments = pickle.loads(_read(source, length))
    threading.Thread(target=_die_with_parent, daemon=True).start()
    lock = threading.Lock()

    def emit(event: Any) -> None:
        with lock:  # solver callbacks come from other threads
            write_frame(answers, ("event", event))

    module, _, function = target.partition(":")
    outcome = getattr(importlib.import_module(module), function)(*arguments, emit)
    write_frame(answers, ("returned", outcome))


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
    while os.read(sys.stdin.fileno(), 1):
        pass
    if os.getpgrp() == os.getpid():  # ours alone: what we started goes too
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main()
