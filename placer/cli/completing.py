"""``completion``: commands, options and values for shells, by argcomplete."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from placer.base.errors import UsageError
from placer.cli import flags, printing

SHELLS = ("bash", "zsh", "fish")

TEXT = """Print the script by which a shell completes commands, options, choices, policies and files. For bash put
`eval "$(placer completion bash)"` into ~/.bashrc; for zsh put `eval "$(placer completion zsh)"` into ~/.zshrc, after
compinit; for fish run `placer completion fish > ~/.config/fish/completions/placer.fish`."""

Completer = Callable[..., Any]


def add_completion(commands: Any) -> None:
    """Add ``completion`` and its flags."""
    parser = flags.add_command(
        commands, "completion", "print the script by which a shell completes commands", _completion
    )
    parser.description = TEXT
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def _completion(options: argparse.Namespace) -> int:
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

    for each in _tree(parser):
        for action in each._actions:
            if action.choices is None and action.nargs != 0:
                action.completer = _completer(action)  # type: ignore[attr-defined]  # where argcomplete looks for it
    argcomplete.autocomplete(parser, always_complete_options=False)


def _tree(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from _tree(each)


def _completer(action: argparse.Action) -> Completer:
    from argcomplete.completers import DirectoriesCompleter, FilesCompleter

    word = str(action.metavar)
    objects = FilesCompleter([ending.removeprefix(".") for ending in printing.ENDINGS])
    if word in ("INSTANCE", "PLACEMENT") or action.dest == "with_":
        return objects
    if word == "FAMILY|INSTANCE":
        return _or_files(_families, objects)
    if word == "FILE":
        return FilesCompleter()
    if word == "FILE|FORMAT":
        return _or_files(lambda: printing.FORMATS, FilesCompleter())
    if action.dest == "words":
        return _commands
    if word == "FOLDER":
        return DirectoriesCompleter()
    if action.dest == "policies":
        return _policies(objects)
    return _nothing


def _families() -> Iterable[str]:
    from placer.lab.generate import FAMILIES

    return FAMILIES


def _or_files(names: Callable[[], Iterable[str]], files: Completer) -> Completer:
    def complete(prefix: str, **more: Any) -> list[str]:
        return [*(name for name in names() if name.startswith(prefix)), *files(prefix, **more)]

    return complete


def _commands(prefix: str, **_: Any) -> list[str]:
    from placer.cli.help_texts import GROUPS

    return [name for names in GROUPS.values() for name in names if name.startswith(prefix)]


def _nothing(**_: Any) -> list[str]:
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
