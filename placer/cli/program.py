"""One call of the program: which command, what it raises on purpose, and the exit code."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module

from placer.base.errors import BadInstance, ClusterError, PlacerError, UsageError
from placer.base.text import legible
from placer.base.version import __version__
from placer.cli import completing, flags, printing
from placer.cli.commands import CALLS, COMMANDS, GENERATE, GROUPS
from placer.cli.parser import EXAMPLES, HelpAll, Parser, leaves
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
    words = parser(as_json, None if completing.is_asked() else arguments)
    completing.complete(words)
    try:
        options = words.parse_args(arguments)
    except SystemExit:  # --help and --version have said it
        return flags.OK
    options.began = began
    options.format = options.format or ("json" if options.json else None)
    options.json = options.format not in (None, "wide")
    options.wide = options.format == "wide" or getattr(options, "wide", False)
    module, function = options.run.split(":")
    command: Callable[[argparse.Namespace], int] = getattr(import_module(f"placer.cli.{module}"), function)
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


def parser(as_json: bool = False, arguments: Sequence[str] | None = None) -> Parser:
    """Make the parser of all commands.

    ``arguments``: to be parsed: if they begin with a command, others are left out; None: of any.
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
    first = "".join(arguments[:1]) if arguments is not None else ""
    for name in (first,) if first in COMMANDS else COMMANDS:
        if name != "generate" or arguments is None or name in arguments:
            COMMANDS[name](commands)
        else:  # its families are slow to import
            flags.add_command(commands, name, GENERATE)
    top.command_groups = GROUPS
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
    parser.epilog = "\n".join([EXAMPLES, *(f"  {each}" for each in CALLS.get(name, family))])


def run_version(options: argparse.Namespace) -> int:
    """Carry out ``version``."""
    if options.json:
        printing.tell(printing.headed("Version", {"placer": __version__}), options, [__version__])
    else:
        print(f"placer {__version__}")
    return flags.OK


def run_help(options: argparse.Namespace) -> int:
    """Carry out ``help``."""
    with suppress(SystemExit):
        parser().parse_args([*options.words, "--help"])
    return flags.OK
