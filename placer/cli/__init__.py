"""The command line: arguments, progress, exit codes (models/interface.md). What a command needs is imported when it
runs.

Belongs here: flags and what they do, one module per kind of command; all printing. Does not: anything that a notebook
would want to call.

==============  ========================================================================================
module          commands, or what it is for
==============  ========================================================================================
`solving`       `solve`, `verify`, `expand`
`queueing`      `queue`
`explaining`    `explain`
`preempting`    `preempt`
`applying`      `--apply`: a plan that disturbs, carried out in the cluster
`auditing`      `audit`
`reporting`     `report`
`running`       `run`, the pass in a cluster
`live_report`   the page of the last pass of a loop
`inspection`    what an operator sees of it while it runs
`checking`      `check`, before there is one
`configuring`   `config`, the options that hold for either
`pass_flags`    flags of these three, and the file in their place
`snapshotting`  `snapshot`, and flags of nodes that cool down and of the Lease
`topology`      `topology show`, `topology discover`, `topology costs`
`completing`    `completion`
`program`       one call: all commands, those of ``placer.laboratory`` among them; messages, exit codes
`sources`       time limit and budget that several have; files, or a cluster in place of them
`help_texts`    groups of commands, and examples
`parser`        how words are parsed, whichever the command
`signals`       Ctrl-C and SIGTERM
`streams`       standard output and standard error
==============  ========================================================================================
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
