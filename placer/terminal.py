"""What commands share: flags that many have, reading an instance, writing files, the console."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.errors import UsageError
from placer.legible import safe_lines, styled

if TYPE_CHECKING:
    from placer.instance import Instance
    from placer.manifests import Text

__all__ = [
    "OK",
    "add_command",
    "add_reading",
    "add_what_if",
    "console",
    "is_edited",
    "read_instance",
    "writable",
    "write",
    "written",
]

OK = 0

PIPE_WIDTH = 140  #: columns of what is printed where standard output is no terminal

ENDINGS = (".json", ".yaml", ".yml", ".json.gz", ".yaml.gz", ".yml.gz")  #: of files that hold Kubernetes objects


def add_command(
    commands: Any, name: str, text: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    """Add a command; ``text`` is its help, a phrase; ``run`` returns the exit code."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.set_defaults(run=run)
    return parser


def add_reading(parser: argparse.ArgumentParser, *, lenient: bool = False) -> None:
    """Add the flags of commands that read an instance; ``lenient``: and that may go on without some of its objects."""
    group = parser.add_argument_group("reading")
    group.add_argument(
        "--scheduler-name",
        metavar="NAME",
        help="whose pending pods are ours, '*': any scheduler's (default: any; of a snapshot those it was taken for)",
    )
    group.add_argument("--strict", action="store_true", help="findings are errors (exit 3)")
    if lenient:
        group.add_argument(
            "--lenient",
            action="store_true",
            help="unreadable objects are findings, and their dependents wait, as in a cluster",
        )


def add_what_if(parser: argparse.ArgumentParser) -> None:
    """Add the flags that change the instance before anything is decided."""
    edits = parser.add_argument_group("what if")
    edits.add_argument(
        "--with", dest="with_", action="append", default=[], metavar="FILE", help="add or replace objects"
    )
    edits.add_argument(
        "--without",
        action=_Edit,
        default=[],
        metavar="KIND/[NAMESPACE/]NAME",
        help="remove one; KIND[/NAMESPACE] -l SELECTOR: all with these labels",
    )
    edits.add_argument(
        "--set",
        dest="set_",
        action=_Edit,
        default=[],
        metavar="KIND/[NAMESPACE/]NAME:PATH=VALUE",
        help="change one field, such as podgroup/ml/train:spec.minMember=4; KIND[/NAMESPACE]:PATH=VALUE -l SELECTOR: "
        "of all with these labels",
    )
    edits.add_argument(
        "-l",
        "--selector",
        action=_Selector,
        metavar="SELECTOR",
        help="labels, as kubectl takes them, of the --without or --set before it: --without node -l rack=r7",
    )


class _Selector(argparse.Action):
    """Takes a selector to the option before it that names objects."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        """Put the selector behind the words of the last ``--without`` or ``--set``."""
        words = getattr(namespace, "edited", None)
        if not words or " -l " in words[-1]:
            parser.error(f"{option_string} {values}: expected a --without or --set before it, without a selector yet")
        words[-1] += f" -l {values}"


class _Edit(argparse.Action):
    """Takes the words of one what-if option, and remembers which option was the last."""

    def __call__(self, _parser: Any, namespace: argparse.Namespace, values: Any, _option: Any = None) -> None:
        """Append the words."""
        words = [*getattr(namespace, self.dest), values]
        setattr(namespace, self.dest, words)
        namespace.edited = words


def is_edited(options: argparse.Namespace) -> bool:
    """Whether a *what if* was asked for."""
    return any(getattr(options, name, ()) for name in ("with_", "without", "set_"))


def read_instance(options: argparse.Namespace, paths: Sequence[str | Text], *, edited: bool = True) -> Instance:
    """Read an instance as the flags of reading and of *what if* say; not ``edited``: without what if."""
    from placer.read import read

    asked = options if edited else argparse.Namespace()
    return read(
        *paths,
        scheduler_name=options.scheduler_name,
        strict=options.strict,
        lenient=getattr(options, "lenient", False),
        with_=getattr(asked, "with_", ()),
        without=getattr(asked, "without", ()),
        set_=getattr(asked, "set_", ()),
    )


def write(document: Any, target: str, as_json: bool | None = True) -> None:
    """Write to a file by its ending; to standard output as JSON, which YAML readers take too."""
    from placer.manifests import dump

    with written(target):
        dump(document, target, as_json=as_json if target == "-" else None)


@contextmanager
def written(target: str) -> Iterator[None]:
    """Say what cannot be written, where what is done in the block cannot write it."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{target}: cannot be written: {error.strerror}") from error


def writable(targets: Sequence[Path], endings: tuple[str, ...] = ENDINGS) -> None:
    """Refuse before the work, not after it, where the result could not be written."""
    for target in targets:
        if not target.name.endswith(endings):
            raise UsageError(f"{target}: found no known ending, expected one of {', '.join(endings)}")
        if not target.absolute().parent.is_dir():
            raise UsageError(f"{target}: found no folder {target.absolute().parent}, expected one")
        new = not target.exists()
        try:
            target.open("ab").close()
        except OSError as error:
            raise UsageError(f"{target}: cannot be written: {error.strerror}") from error
        if new:
            target.unlink()


def console() -> Any:
    """Make the console of standard output: as wide as the terminal or as ``COLUMNS`` says, else of a fixed width.

    What it prints is legible, so that no text of an object is obeyed by a terminal.
    """
    from rich.console import Console
    from rich.segment import Segment

    class LegibleConsole(Console):
        def render(self, *arguments: Any, **options: Any) -> Iterator[Segment]:
            for text, style, control in super().render(*arguments, **options):
                yield Segment(text if control else safe_lines(text), style, control)

    asked = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = None if asked else PIPE_WIDTH
    # What stands between colons is a name, of a function or a label, and no emoji.
    return LegibleConsole(file=styled(sys.stdout), width=width, highlight=False, emoji=False)
