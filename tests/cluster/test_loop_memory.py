"""What a pass frees goes back to the system: a loop is as large as what it keeps, not as its largest pass."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import pytest

from placer.passes.scheduling_loop import give_back, run_loop
from placer.passes.scheduling_pass import PassOptions
from tests.cluster.loops import Loop

_MANY, _SIZE = 100_000, 1_000
_WHOLE = _MANY * _SIZE


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


class _Listing:
    """A pass that lists much anew, and of which little stays, here and there."""

    def __init__(self) -> None:
        self.kept: list[bytes] = []
        self.during = 0

    def __call__(self, *_: object, **__: object) -> None:
        texts = [bytes([number % 256]) * _SIZE for number in range(_MANY)]
        self.kept = texts[::100]
        self.during = resident()


class _Waiting(Loop):
    """Looks how large the process is once a pass is over, and ends the loop."""

    after = 0

    def waiting(self) -> None:
        self.after = resident()
        self.stop.set()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only the GNU C library can be told to")
def test_what_a_pass_frees_goes_back_to_the_system() -> None:
    """Of pages between what is kept, too, which an allocator holds on to by itself."""
    make, loop = _Listing(), _Waiting()
    client: Any = None  # that nobody asks for anything
    run_loop(client, PassOptions(dry_run="client", every=600), loop.stop, loop, make=make)
    assert len(loop.passes) == 1
    assert make.during - loop.after > _WHOLE / 2


def test_where_the_c_library_cannot_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another C library, and a system on which none is there by itself."""

    def none(_: object) -> object:
        raise TypeError

    for found in (lambda _: object(), none):
        monkeypatch.setattr("placer.passes.scheduling_loop.ctypes.CDLL", found)
        give_back()
