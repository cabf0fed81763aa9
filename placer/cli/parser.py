"""The parser of commands: exact names, the nearest one where a name is not known, ``--json`` in every position."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from placer.base.deadline import duration
from placer.base.errors import UsageError
from placer.base.text import alike

#: What an option takes whose words are read as numbers.
_NUMBERS: Mapping[Any, str] = {
    int: "a whole number",
    float: "a number",
    duration: "a number of seconds, or a duration such as 10s or 2m",
}

#: An option of one letter, its value at once behind it or not; ``-1`` and ``-.5`` are numbers, ``-`` is a file.
_SHORT_OPTION = re.compile(r"-[^\d. ][^ ]*\Z")

EXAMPLES = "Examples:"  #: first line of what stands below the flags


class HelpAll(argparse.Action):
    """Prints the help with what ``--help`` leaves out."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print it, and end."""
        print(parser.format_whole_help(), end="")  # type: ignore[attr-defined]  # all parsers here have it
        parser.exit()


class _Formatter(argparse.HelpFormatter):
    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith(EXAMPLES) else super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """A parser that takes only whole names, and whose mistakes are :class:`UsageError`."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=_Formatter, **arguments)
        self.command_groups: Mapping[str, Sequence[str]] = {}  #: title to commands, as the help lists them
        # No default here: each parser of the tree has these, and what one was told is not undone by the next.
        for flag, text in (("--json", "print JSON"), ("--quiet", "no progress")):
            self.add_argument(flag, action="store_true", default=argparse.SUPPRESS, help=text)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse words; an unknown option is reported before anything that is missing because of it."""
        for word in self._options_in(args or ()):
            if word not in self._option_string_actions:
                hint = _hint(word, self._option_string_actions)
                self.error(f"unknown option {word}{hint}")
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"found {' '.join(rest)}, expected nothing more")
        for action in self._get_positional_actions():
            if getattr(action, "needed", False) and not getattr(found, action.dest):
                self.error(self._lacking(action, found))
        return found, rest

    def _lacking(self, action: argparse.Action, found: Any) -> str:
        positional = self._get_positional_actions()
        only = [str(getattr(found, each.dest)) for each in positional if getattr(found, each.dest)]
        so_far = f"found {' '.join(only)} alone, expected {_words(positional)}" if only else ""
        return so_far or f"the following arguments are required: {action.metavar}"

    def format_help(self) -> str:
        """Give the help, with commands in groups, and without hidden flags."""
        hidden = [each for each in self._actions if getattr(each, "hidden", False)]
        texts = [each.help for each in hidden]
        for each in hidden:
            each.help = argparse.SUPPRESS
        try:
            return self._grouped_help() if self.command_groups else super().format_help()
        finally:
            for each, text in zip(hidden, texts, strict=True):
                each.help = text

    def format_whole_help(self) -> str:
        """Give the help with hidden flags."""
        return super().format_help()

    def _grouped_help(self) -> str:
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        (commands,) = (each for each in self._actions if isinstance(each, argparse._SubParsersAction))
        listed = {each.dest: each for each in commands._choices_actions}
        for title, names in self.command_groups.items():
            formatter.start_section(title)
            formatter.add_arguments([listed[name] for name in names if name in listed])
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments([each for each in self._actions if each is not commands])
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def _options_in(self, words: Sequence[str]) -> Iterable[str]:
        for word in words:
            if word == "--" or (self._subparsers is not None and not word.startswith("-")):
                return
            if word.startswith("--"):
                yield word.partition("=")[0]
            elif _SHORT_OPTION.match(word):
                yield word[:2]

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        names = list(map(str, action.choices))
        hint = _hint(str(value), names)
        raise argparse.ArgumentError(action, f"found {value!r}, expected one of {', '.join(names)}{hint}")

    def error(self, message: str) -> NoReturn:
        """Refuse."""
        raise UsageError(f"{message}\nusage: {self._short_usage()} (`{self.prog} --help` lists them)")

    def _short_usage(self) -> str:
        words = _words(self._get_positional_actions())
        return " ".join(filter(None, (self.prog, words, "[OPTION...]")))

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError:
            expected = _NUMBERS.get(action.type)
            if expected is None:
                raise
            raise argparse.ArgumentError(action, f"found {arg_string!r}, expected {expected}") from None


def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Give the parsers of commands that have none below them."""
    below = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    for action in below:
        for each in action.choices.values():
            yield from leaves(each)
    if not below:
        yield parser


def _words(positional: Iterable[argparse.Action]) -> str:
    words = []
    for action in positional:
        word = str(action.metavar or action.dest)
        several = f"{word}..." if action.nargs in ("+", "*") else word
        words.append(several if action.nargs != "*" or getattr(action, "needed", False) else f"[{several}]")
    return " ".join(words)


#: Words for commands that other tools, or kubectl-placer, have.
_MEANT = {"why": "explain", "schedule": "solve", "status": "queue", "get": "queue"}


def _hint(word: str, names: Iterable[str]) -> str:
    known = [*names]
    longer = [name for name in known if len(word.strip("-")) > 1 and name.startswith(word)]
    near = longer or filter(None, [_MEANT.get(word) or alike(word, known)])
    words = " or ".join(near)
    return f"; did you mean {words}?" if words else ""
