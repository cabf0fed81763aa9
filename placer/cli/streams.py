"""Standard streams that never break off a command: closed ones, full disks, gone readers, poor terminals."""

from __future__ import annotations

import codecs
import errno
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from placer.base.text import safe_lines

LEGIBLE = "placer.base.text"  #: name of the handler of characters that a stream cannot show

#: What stands for a character where it cannot be shown; others are taken apart (``é`` is ``e`` and an accent).
PLAIN = {"×": "x", "·": "-", "•": "*", "→": "->", "←": "<-", "≤": "<=", "≥": ">=", "≠": "!=", "…": "...", "–": "-"} | {
    "—": "-",
    "−": "-",  # a minus sign
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "✓": "+",
    "✗": "x",
}


class Output(io.FileIO):
    """A file that takes everything: the first error is kept, what follows dropped, ``descriptor`` not closed."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._error: OSError | None = None

    def write(self, data: memoryview, /) -> int:  # type: ignore[override]
        """Write some of it."""
        if self._error is None:
            try:
                while (written := super().write(data)) is None:  # a pipe that another program made not to block
                    select.select([], [self], [])
                return written
            except OSError as error:
                self._error = error
        return data.nbytes

    @property
    def trouble(self) -> str | None:
        """Why not everything was written; None also where the reader wanted no more."""
        if self._error is None or self._error.errno == errno.EPIPE:
            return None
        return self._error.strerror or str(self._error)


class LegibleStream(io.TextIOWrapper):
    """A stream of text without control sequences; :attr:`styled` is for a console, whose own pass."""

    @property
    def styled(self) -> StyledStream:
        """The same stream for a console."""
        return StyledStream(self)

    def write(self, text: str, /) -> int:
        """Write text."""
        super().write(safe_lines(text))
        return len(text)

    def write_styled(self, text: str) -> int:
        """Write text of a console as it is."""
        return super().write(text)


class StyledStream:
    """A :class:`LegibleStream` as a console sees it."""

    def __init__(self, stream: LegibleStream) -> None:
        self._stream = stream
        self.write = stream.write_styled

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def standard_streams() -> Iterator[Output | None]:
    """Replace the process's own streams in the block; None where a caller has put others there, which are kept."""
    if sys.stdin is None:
        sys.stdin = open(_nothing(), encoding="utf-8", closefd=False)  # noqa: SIM115  # as long as the process lives
    if sys.stdout is not sys.__stdout__ or sys.stderr is not sys.__stderr__:
        yield None
        return
    codecs.register_error(LEGIBLE, _legible)
    before = sys.stdout, sys.stderr
    output, error = (_stream(stream) for stream in before)
    sys.stdout, sys.stderr = output[1], error[1]
    try:
        yield output[0]
    finally:
        for each in (sys.stdout, sys.stderr):
            each.flush()
        if None not in before:
            sys.stdout, sys.stderr = before


def _stream(stream: TextIO | None) -> tuple[Output, TextIO]:
    if stream is None:
        raw, encoding, lines = Output(_nothing()), "utf-8", False
    else:
        stream.flush()
        raw, encoding = Output(stream.fileno()), stream.encoding
        lines = getattr(stream, "line_buffering", False) or getattr(stream, "write_through", False)  # python -u
    buffer = io.BufferedWriter(raw)  # type: ignore[type-var]  # it writes what BufferedWriter gives, a memoryview
    text = LegibleStream(buffer, encoding=encoding, errors=LEGIBLE, line_buffering=lines)
    return raw, text


def _nothing() -> int:
    """Open what takes and gives nothing: a closed stream's number, which a file of ours would get else, and then what
    a library prints.
    """
    descriptor = os.open(os.devnull, os.O_RDWR)
    os.set_inheritable(descriptor, True)
    return descriptor


def _legible(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_plain, error.object[error.start : error.end])), error.end


def _plain(character: str) -> str:
    if character in PLAIN:
        return PLAIN[character]
    if "\u2800" <= character <= "\u28ff":  # the dots of a spinner
        return "|/-\\"[ord(character) % 4]
    import unicodedata

    if "\u2500" <= character <= "\u257f":  # lines of a table
        name = unicodedata.name(character)
        along, down = "HORIZONTAL" in name, "VERTICAL" in name
        return "-" if along and not down else "|" if down and not along else "+"
    apart = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return apart or character.encode("ascii", "backslashreplace").decode()
