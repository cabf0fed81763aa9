"""The command line (models/interface.md): flags, printing, exit codes; a module for each command, imported when it
runs.

Belongs here: flags and all printing. Does not: anything that a notebook would want to call.
"""

from __future__ import annotations

import gc
import os
import sys
import time

TYPE_CHECKING = (
    False  # that of ``typing``: until ``main`` runs an interrupt is a traceback, so nothing is imported here
)
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main", "plugin"]

#: Options of ``explain`` behind which a word is theirs, and not the name of a group.
TAKE_A_WORD = frozenset(
    (
        *("-n", "--namespace", "-l", "--selector", "-f", "--filename", "-o", "--output", "--kubeconfig", "--context"),
        *("--scheduler-name", "--scheduler-config", "--group", "--job", "--spare", "--time-limit", "--changes"),
        *("--with", "--without", "--set", "--where"),
    )
)

GARBAGE = 50_000  #: objects made and not freed, after which the garbage collector looks for cycles


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    ``arguments``: without the program's name; None: the process's own, which an interrupt may then end at once.
    """
    began = time.monotonic()
    if arguments is None:
        _spare_start()
    try:
        from placer.cli.signals import Signals
    except KeyboardInterrupt:
        sys.stderr.write("placer: interrupted\n")
        return 130
    with Signals(own=arguments is None) as signals:
        from placer.cli.streams import standard_streams

        with standard_streams() as output:
            from placer.cli.program import run

            return run(sys.argv[1:] if arguments is None else arguments, began, signals, output)


def plugin() -> int:
    """Run as kubectl's plug-in: the same, and ``why NAMESPACE/NAME`` for ``explain --group NAMESPACE/NAME``."""
    words = sys.argv[1:]
    if words[:1] == ["why"]:
        named = [at for at, word in enumerate(words) if at and word[0:1] != "-" and words[at - 1] not in TAKE_A_WORD]
        words[0] = "explain"
        if named and "--group" not in words and "--job" not in words:
            words.insert(named[0], "--group")
        sys.argv[1:] = words
    return main()


def _spare_start() -> None:
    """Set up the command's own process for a short life: most of what it makes stays until its end.

    The garbage collector looks far more seldom for cycles, and numpy's BLAS starts no threads: vectors here are short,
    and sums in one order are the same on every machine.
    """
    gc.set_threshold(GARBAGE, 20, 20)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
