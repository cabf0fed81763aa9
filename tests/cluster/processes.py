"""``placer run`` in processes of their own, as in pods: what each prints, how much memory it has, how it is ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["PlacerProcess", "running"]

Line = dict[str, Any]

#: Runs the command line as that of another version.
_AS_VERSION = """
import sys
import placer.base.version
placer.base.version.__version__ = sys.argv.pop(1)
from placer.cli import main
sys.exit(main())
"""


class PlacerProcess:
    """A process; its lines are read as they come.

    Parameters
    ----------
    flags
        Of ``placer run``.
    heard
        Is called with each line of a pass, in a thread of its own.
    version
        What it says that it is; default: what it is.
    """

    def __init__(
        self, flags: Sequence[str], heard: Callable[[PlacerProcess, Line], None] | None = None, version: str = ""
    ) -> None:
        start = ["-c", _AS_VERSION, version] if version else ["-m", "placer"]
        self._heard = heard
        self.lines: list[Line] = []
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed when the process is)
        self.process = subprocess.Popen(
            [sys.executable, *start, "run", *flags], stdout=subprocess.PIPE, stderr=self._said, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for text in self.process.stdout:
            line: Line = json.loads(text)
            self.lines.append(line)
            if self._heard is not None:
                self._heard(self, line)

    @property
    def memory(self) -> int | None:
        """KiB that are resident; None of one that has ended."""
        if self.process.poll() is not None:  # another process may have its number by now
            return None
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return None
        return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")), None)

    @property
    def processor(self) -> float:
        """Seconds of processor that it has had, of all its threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def said(self) -> str:
        """What it wrote to its standard error."""
        self._said.seek(0)
        return self._said.read()

    def terminate(self) -> None:
        """Tell it to end, as a kubelet does first."""
        self.process.terminate()

    def kill(self) -> None:
        """End it at once, as a kubelet does last."""
        self.process.kill()

    def wait(self) -> int:
        """Wait until it has ended and all its lines are read; its exit code."""
        code = self.process.wait()
        self._reader.join()
        return code

    def close(self) -> None:
        """End it, however it is, and what goes with it."""
        self.process.kill()
        self.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._said.close()


@contextmanager
def running(flags: Sequence[str], version: str = "") -> Iterator[PlacerProcess]:
    """A process that is gone after the block."""
    found = PlacerProcess(flags, version=version)
    try:
        yield found
    finally:
        found.close()
