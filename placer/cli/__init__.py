"""The command line: arguments, progress, exit codes (models/interface.md). What a command needs is imported when it
runs.

Belongs here: flags and what they do, one module per kind of command; all printing. Does not: anything that a notebook
would want to call.
"""

from __future__ import annotations

import sys
import time

TYPE_CHECKING = (
    False  # that of ``typing``: until ``main`` runs an interrupt is a traceback, so nothing is imported here
)
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments
        Without the program's name; None: those of the process, which then is the command's own: an interrupt may end
        it at once.

    Returns
    -------
    int
        The exit code, one of those in models/interface.md.
    """
    began = time.monotonic()
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
