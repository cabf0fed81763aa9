"""The command line: arguments, progress, exit codes (models/interface.md). What a command needs is imported when it
runs.

Belongs here: flags and what they do, one module per kind of command; all printing. Does not: anything that a notebook
would want to call.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import placer
from placer.cli import comparing, generating, running, snapshotting, solving, sweeping, topology
from placer.cli.common import OK
from placer.errors import BadInstance, PlacerError

__all__ = ["main"]

INTERRUPTED = 130  #: Ctrl-C before there was an answer, as shells expect it

FAULTS_SHOWN = 20  #: most faults that a terminal shows; a file and ``--json`` get all of them

SAME_WISH = 1.0  #: seconds within which signals are one and the same


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments
        Without the program's name; default ``sys.argv[1:]``.

    Returns
    -------
    int
        The exit code, one of those in models/interface.md.
    """
    began = time.monotonic()
    options = _parser().parse_args(arguments)
    options.began = began
    with _heeded_signals():
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    """Run the chosen command; what it raises on purpose becomes a message and an exit code."""
    try:
        run: Callable[[argparse.Namespace], int] = options.run
        code = run(options)
        sys.stdout.flush()
    except PlacerError as error:
        _complain(error, options.json)
        return error.exit_code
    except KeyboardInterrupt:
        print("placer: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone; nobody is left to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    return code


@contextlib.contextmanager
def _heeded_signals() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM interrupt, once: timeout(1) and wrappers signal us and then our whole group, and the
    second signal of one wish must not cost the answer that the first one asked for.
    """
    last = -math.inf

    def interrupt(*_: object) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last > SAME_WISH:
            last = now
            raise KeyboardInterrupt

    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    for each, handler in before.items():
        if handler != signal.SIG_IGN:  # a job in the background of a script does not heed Ctrl-C
            signal.signal(each, interrupt)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _complain(error: PlacerError, as_json: bool) -> None:
    if as_json:
        faults = [
            {name: getattr(fault, name) for name in ("file", "document", "object", "field", "found", "expected")}
            for fault in (error.faults if isinstance(error, BadInstance) else ())
        ]
        document = {"error": type(error).__name__, "message": str(error), "faults": faults}
        print(json.dumps(document, indent=2), file=sys.stderr)
    else:
        most = FAULTS_SHOWN if sys.stderr.isatty() else None
        told = error.told(most) if isinstance(error, BadInstance) else str(error)
        print(f"placer: {told}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="placer",
        description="Place the whole pending queue of a Kubernetes cluster at once, and prove how good the answer is.",
        epilog="`placer COMMAND --help` tells more. Exit codes: 0 answered, 1 violations or a bug, 2 usage, 3 bad "
        "instance, 4 nothing found in time, 5 --require-all not met, 6 cluster error.",
    )
    parser.add_argument("--version", action="version", version=f"placer {placer.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    solving.add_solve(commands)
    solving.add_verify(commands)
    solving.add_expand(commands)
    generating.add_generate(commands)
    comparing.add_compare(commands)
    sweeping.add_sweep(commands)
    topology.add_topology(commands)
    snapshotting.add_snapshot(commands)
    running.add_run(commands)
    return parser
