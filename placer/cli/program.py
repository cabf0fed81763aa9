"""One call of the program: which command, what it raises on purpose, and the exit code."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from placer.base.errors import BadInstance, ClusterError, PlacerError, UsageError
from placer.base.text import legible
from placer.base.version import __version__
from placer.cli import completing, flags, help_texts, printing, solving
from placer.cli.parser import EXAMPLES, HelpAll, Parser
from placer.cli.signals import Signals
from placer.cli.streams import Output

FAULTS_SHOWN = 20  #: most faults that a terminal shows; a file and ``--json`` get all of them


def run(arguments: Sequence[str], began: float, signals: Signals, output: Output | None) -> int:
    """Run the chosen command; what it raises on purpose becomes a message and an exit code.

    ``began``: ``time.monotonic()`` of the call. ``output``: standard output, where it remembers what went wrong.
    """
    as_json = _asks_for_json(list(itertools.takewhile(lambda word: word != "--", arguments)))
    try:
        code = _run(arguments, began, signals, as_json)
        sys.stdout.flush()
    except PlacerError as error:
        _complain(error, as_json)
        code = error.exit_code
    except BaseException as error:  # native code may make another error of an interrupt
        if not signals.heard and not isinstance(error, KeyboardInterrupt):
            raise
        words = f": {error}" if isinstance(error, KeyboardInterrupt) and error.args else ""
        print(f"placer: interrupted{words}", file=sys.stderr)
        return signals.exit_code
    if output is not None and output.trouble is not None:
        unwritten = UsageError(f"standard output: cannot be written: {output.trouble}")
        _complain(unwritten, as_json)
        code = code or unwritten.exit_code  # what the command found stays, for who reads exit codes only
    return code


def _asks_for_json(words: Sequence[str]) -> bool:
    machine, flags = ("json", "yaml"), ("-o", "--output")
    joined = {"--json", *(f"-o{each}" for each in machine), *(f"--output={each}" for each in machine)}
    pairs = itertools.pairwise(words)
    return bool(joined & set(words)) or any(flag in flags and word in machine for flag, word in pairs)


def _run(arguments: Sequence[str], began: float, signals: Signals, as_json: bool) -> int:
    asked = next((word for word in arguments if not word.startswith("-")), "")
    words = parser(as_json, None if completing.is_asked() else asked)
    completing.complete(words)
    try:
        options = words.parse_args(arguments)
    except SystemExit:  # --help and --version have said it
        return flags.OK
    options.began = began
    options.format = options.format or ("json" if options.json else None)
    options.json = options.format not in (None, "wide")
    options.wide = options.format == "wide" or getattr(options, "wide", False)
    command: Callable[[argparse.Namespace], int] = options.run
    signals.raised()
    return command(options)


def _complain(error: PlacerError, as_json: bool) -> None:
    if as_json:
        faults = [
            {name: getattr(fault, name) for name in ("file", "document", "object", "field", "found", "expected")}
            for fault in (error.faults if isinstance(error, BadInstance) else ())
        ]
        document = printing.headed("Error", {"error": type(error).__name__, "message": str(error), "faults": faults})
        print(json.dumps(document, indent=2), file=sys.stderr)
    else:
        most = FAULTS_SHOWN if sys.stderr.isatty() else None
        told = error.told(most) if isinstance(error, BadInstance) else str(error)
        told = legible(told) if isinstance(error, ClusterError) else told  # the server's words may be a tenant's
        print(f"placer: {told}", file=sys.stderr)


def parser(as_json: bool = False, asked: str | None = None) -> Parser:
    """Make the parser of all commands.

    ``asked``: the only command to be parsed; slow imports of others, and families of ``generate``, are then left out.
    """
    version = json.dumps(printing.headed("Version", {"placer": __version__})) if as_json else f"placer {__version__}"
    top = Parser(
        prog="placer",
        description="Place the whole pending queue of a Kubernetes cluster at once, and prove how good the answer is.",
        epilog="`placer help COMMAND` says more of one. Exit codes: 0 answered, 1 violations or a bug, 2 usage, 3 bad "
        "instance, 4 nothing found in time, 5 not all placed, 6 cluster error.",
    )
    top.set_defaults(json=False, quiet=False, format=None)
    top.add_argument("--version", action="version", version=version, help="print the version and exit")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True, help="one of")
    if asked in ("solve", "verify", "expand"):
        _add_deciding(commands)
    else:
        _add_all(commands, families=asked in (None, "generate"))
    top.command_groups = help_texts.GROUPS
    for each in leaves(top):
        _complete(each)
    return top


def _complete(parser: argparse.ArgumentParser) -> None:
    if "-o" not in parser._option_string_actions:
        text = f"how to print: {', '.join(printing.FORMATS)}"
        parser.add_argument("-o", "--output", dest="format", choices=printing.FORMATS, metavar="FORMAT", help=text)
    if any(getattr(each, "hidden", False) for each in parser._actions):
        text = "show this help and the flags of leader election, and exit"
        parser.add_argument("--help-all", action=HelpAll, nargs=0, default=argparse.SUPPRESS, help=text)
    name = parser.prog.partition(" ")[2]
    family = f"placer {name} -o instance.yaml", f"placer {name} | placer solve -"
    parser.epilog = "\n".join([EXAMPLES, *(f"  {each}" for each in help_texts.EXAMPLES.get(name, family))])


def _add_version(commands: Any) -> None:
    def run(options: argparse.Namespace) -> int:
        if options.json:
            printing.tell(printing.headed("Version", {"placer": __version__}), options, [__version__])
        else:
            print(f"placer {__version__}")
        return flags.OK

    flags.add_command(commands, "version", "print the version", run)


def _add_help(commands: Any) -> None:
    def run(options: argparse.Namespace) -> int:
        with suppress(SystemExit):
            parser().parse_args([*options.words, "--help"])
        return flags.OK

    words = flags.add_command(commands, "help", "print the help of a command", run)
    words.add_argument("words", nargs="*", metavar="COMMAND", help="which; default: all commands in a line each")


def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Give the parsers of commands that have none below them."""
    below = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    for action in below:
        for each in action.choices.values():
            yield from leaves(each)
    if not below:
        yield parser


def _add_deciding(commands: Any) -> None:
    solving.add_solve(commands)
    solving.add_verify(commands)
    solving.add_expand(commands)


def _add_all(commands: Any, *, families: bool) -> None:
    from placer.cli import (
        auditing,
        checking,
        configuring,
        explaining,
        preempting,
        queueing,
        reporting,
        running,
        snapshotting,
        topology,
    )
    from placer.cli.lab import comparing, generating, plotting, sweeping

    _add_deciding(commands)
    queueing.add_queue(commands)
    explaining.add_explain(commands)
    preempting.add_preempt(commands)
    preempting.add_defrag(commands)
    preempting.add_repair(commands)
    auditing.add_audit(commands)
    generating.add_generate(commands, families=families)
    comparing.add_compare(commands)
    sweeping.add_sweep(commands)
    plotting.add_plot(commands)
    reporting.add_report(commands)
    topology.add_topology(commands)
    snapshotting.add_snapshot(commands)
    running.add_run(commands)
    checking.add_check(commands)
    configuring.add_config(commands)
    completing.add_completion(commands)
    _add_version(commands)
    _add_help(commands)
