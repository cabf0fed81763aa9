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

if TYPE_CHECKING:
    from placer.instance import Instance

__all__ = [
    "OK",
    "add_command",
    "add_reading",
    "add_what_if",
    "console",
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


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the flags of commands that read an instance."""
    group = parser.add_argument_group("reading")
    group.add_argument(
        "--scheduler-name",
        metavar="NAME",
        help="whose pending pods are ours, '*': any scheduler's (default: any; of a snapshot those it was taken for)",
    )
    group.add_argument("--strict", action="store_true", help="findings are errors (exit 3)")


def add_what_if(parser: argparse.ArgumentParser) -> None:
    """Add the flags that change the instance before anything is decided."""
    edits = parser.add_argument_group("what if")
    edits.add_argument(
        "--with", dest="with_", action="append", default=[], metavar="FILE", help="add or replace objects"
    )
    edits.add_argument("--without", action="append", default=[], metavar="KIND/[NAMESPACE/]NAME", help="remove one")
    edits.add_argument(
        "--set",
        dest="set_",
        action="append",
        default=[],
        metavar="KIND/[NAMESPACE/]NAME:PATH=VALUE",
        help="change one field, such as podgroup/ml/train:spec.minMember=4",
    )


def read_instance(options: argparse.Namespace, paths: Sequence[str]) -> Instance:
    """Read an instance as the flags of reading and of *what if* say."""
    from placer.read import read

    return read(
        *paths,
        scheduler_name=options.scheduler_name,
        strict=options.strict,
        with_=getattr(options, "with_", ()),
        without=getattr(options, "without", ()),
        set_=getattr(options, "set_", ()),
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
    """Make the console of standard output: as wide as the terminal or as ``COLUMNS`` says, else of a fixed width."""
    from rich.console import Console

    asked = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if asked else PIPE_WIDTH, highlight=False)
