"""The file of lines: a run that is there without an error is not run again; each new line is there at once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from placer.errors import BadInstance, Fault, UsageError
from placer.laboratory.sweep.line import KEY, Key, Line
from placer.laboratory.sweep.plan import Run

__all__ = ["Store"]

EXPECTED = "a line of placer sweep"


class Store:
    """A file of lines.

    Nothing is written before the first new line. A last line that was cut off (the sweep was killed while it wrote)
    counts for nothing, and the next line takes its place; lines of other sweeps stay as they are.

    Parameters
    ----------
    path
        The file; it need not be there.
    runs
        What is to be run: lines of other runs are of no interest.

    Raises
    ------
    BadInstance
        A line is not one of a sweep: this is some other file.
    UsageError
        The file cannot be read.
    """

    def __init__(self, path: str | Path, runs: Iterable[Run]) -> None:
        self._path = Path(path)
        self._good = 0  #: bytes up to the end of the last whole line
        self._begun = False
        #: Lines of ``runs`` that are there, failed ones too, by key; of several the last.
        self.known: dict[Key, Line] = {}
        wanted = {run.key for run in runs}
        try:
            texts = self._path.read_bytes().splitlines(keepends=True) if self._path.exists() else []
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
        for number, text in enumerate(texts, start=1):
            if number == len(texts) and not text.endswith(b"\n") and _begins_like_ours(text):
                break
            self._good += len(text)
            line = self._line(number, text, wanted)
            if line is not None:
                self.known[line.key] = line

    def _line(self, number: int, text: bytes, wanted: set[Key]) -> Line | None:
        """Read a line, None where it belongs to another sweep."""
        try:
            value: dict[str, Any] = json.loads(text)
            ours = tuple(value[name] for name in KEY) in wanted
        except (ValueError, KeyError, TypeError):
            raise self._fault(number, "", repr(text[:60].decode(errors="replace")), EXPECTED) from None
        try:
            return Line.model_validate(value) if ours else None
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"]))
            raise self._fault(number, field, repr(first["input"])[:60], first["msg"]) from None

    def _fault(self, number: int, field: str, found: str, expected: str) -> BadInstance:
        return BadInstance([Fault(str(self._path), None, f"line {number}", field, found, expected)])

    def add(self, line: Line) -> None:
        """Write a line, at once and whole.

        Raises
        ------
        UsageError
            The file cannot be written.
        """
        try:
            with self._path.open("r+b" if self._path.exists() else "wb") as file:
                if not self._begun:
                    file.truncate(self._good)
                    self._begun = True
                file.seek(0, 2)
                file.write(f"{line.text()}\n".encode())
        except OSError as error:
            raise UsageError(f"{self._path}: cannot be written: {error.strerror}") from error
        self.known[line.key] = line


def _begins_like_ours(text: bytes) -> bool:
    """Whether it may be a line of ours that was cut off; another file's text is never thrown away."""
    head = b'{"instance": '
    return text.startswith(head) or head.startswith(text)
