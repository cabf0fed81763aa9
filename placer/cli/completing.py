"""``completion``: commands, options and values for shells, by argcomplete."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from typing import Any

from placer.base.errors import UsageError
from placer.cli import flags, printing
from placer.cli.commands import COMMANDS
from placer.cli.parser import leaves

Completer = Callable[..., Any]


def run(options: argparse.Namespace) -> int:
    """Carry out ``completion``."""
    from argcomplete.shell_integration import shellcode

    if options.json:
        raise UsageError("--json: found it with completion, which prints a script for a shell, expected none")
    print(shellcode(["placer"], use_defaults=False, shell=options.shell))  # files are completed here, where they fit
    return flags.OK


def is_asked() -> bool:
    """Whether a shell asks what could stand where the cursor is."""
    return "_ARGCOMPLETE" in os.environ


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer a shell that asks for completions, and end; return where none asks."""
    if not is_asked():
        return
    import argcomplete

    for each in leaves(parser):
        for action in each._actions:
            if action.choices is None and action.nargs != 0:
                action.completer = _completer(action)  # type: ignore[attr-defined]  # where argcomplete looks for it
    argcomplete.autocomplete(parser, always_complete_options=False)


def _completer(action: argparse.Action) -> Completer:
    from argcomplete.completers import DirectoriesCompleter, FilesCompleter

    objects = FilesCompleter([ending.removeprefix(".") for ending in printing.ENDINGS])
    known: dict[str, Completer] = {
        **dict.fromkeys(("INSTANCE", "PLACEMENT", "with_"), objects),
        "FAMILY|INSTANCE": _or_files(_families, objects),
        "FILE": FilesCompleter(),
        "FILE|FORMAT": _or_files(lambda: printing.FORMATS, FilesCompleter()),
        "FOLDER": DirectoriesCompleter(),
        "words": _or_files(lambda: COMMANDS, _nothing),
        "policies": _policies(objects),
    }
    return known.get(action.dest) or known.get(str(action.metavar), _nothing)


def _families() -> Iterable[str]:
    from placer.lab.generate import FAMILIES

    return FAMILIES


def _or_files(names: Callable[[], Iterable[str]], files: Completer) -> Completer:
    def complete(prefix: str, **more: Any) -> list[str]:
        return [*(name for name in names() if name.startswith(prefix)), *files(prefix, **more)]

    return complete


def _nothing(*_: Any, **__: Any) -> list[str]:
    """Complete nothing: a number, or a name of the user's own. (A SuppressCompleter would hide the option, too.)"""
    return []


def _policies(files: Completer) -> Completer:
    def complete(prefix: str, **more: Any) -> list[str]:
        from placer.lab.deciders import NAMES

        *before, last = prefix.split(",")
        name, own, target = last.partition("=")
        if own:
            return [",".join([*before, f"{name}={file}"]) for file in files(target, **more)]
        return [",".join([*before, name]) for name in NAMES if name not in before]

    return complete
