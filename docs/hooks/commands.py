"""Every command with every option, from the parsers themselves."""

from __future__ import annotations

import argparse
import html
import re
from collections.abc import Iterator

from placer.cli import program

#: Of a cell in the table of commands.
_MOST_WORDS = 10


def as_markdown() -> str:
    """A section for each command, in the order in which ``placer --help`` lists them."""
    parts = [_section(name, parser) for name, parser in parsers(program.parser())]
    return "\n\n".join([_contents(program.parser()), *parts])


def parsers(parser: argparse.ArgumentParser, name: str = "placer") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command with its parser, each before its own commands."""
    for action in _commands(parser):
        for word, each in action.choices.items():
            yield f"{name} {word}", each
            yield from parsers(each, f"{name} {word}")


def _commands(parser: argparse.ArgumentParser) -> list[argparse._SubParsersAction[argparse.ArgumentParser]]:
    return [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]


def _contents(parser: argparse.ArgumentParser) -> str:
    """A row for each command, in the words of its list."""
    rows = [
        f"| [`{name}`](#{name.replace(' ', '-')}) | {_sentence(_short(words))} |"
        for name, words in _listed(parser, "placer")
    ]
    return "\n".join(["| command | does |", "| --- | --- |", *rows])


def _short(text: str) -> str:
    """The first parts of a sentence, ten words at most if it has parts; its section has all of it."""
    parts = re.split(r"(?<=[,;:]) ", text)
    while len(parts) > 1 and len(" ".join(parts).split()) > _MOST_WORDS:
        parts.pop()
    return " ".join(parts).rstrip(",;:.")


def _listed(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, str]]:
    for action in _commands(parser):
        words = {each.dest: each.help or "" for each in action._choices_actions}
        for word, each in action.choices.items():
            yield f"{name} {word}", words[word]
            yield from _listed(each, f"{name} {word}")


def _section(name: str, parser: argparse.ArgumentParser) -> str:
    head = "###" if name.startswith("placer generate ") else "##"
    parts = [f"{head} {name}", _sentence(parser.description or "")]
    if _commands(parser):
        return "\n\n".join(parts)
    usage = parser.format_usage().removeprefix("usage: ").strip()
    parts.append(f"```text\n{re.sub(r'^ {7}', '', usage, flags=re.MULTILINE)}\n```")
    parts += [
        _table(group) for group in parser._action_groups if any(_is_shown(action) for action in group._group_actions)
    ]
    return "\n\n".join(parts)


def _is_shown(action: argparse.Action) -> bool:
    return action.help != argparse.SUPPRESS and "--help" not in action.option_strings


def _table(group: argparse._ArgumentGroup) -> str:
    """What a command takes, of one group, with the words of the group above it."""
    title = {"positional arguments": "argument", "options": "option"}.get(str(group.title), str(group.title))
    rows = [f"| {_words(action)} | {_help(action)} |" for action in group._group_actions if _is_shown(action)]
    return "\n".join([f"| {title} | |", "| --- | --- |", *rows])


def _words(action: argparse.Action) -> str:
    """How it is written: every name, and what follows it."""
    value = _value(action)
    if not action.option_strings:
        return f"`{value}`"
    return ", ".join(f"`{option} {value}`" if value else f"`{option}`" for option in action.option_strings)


def _value(action: argparse.Action) -> str:
    """What follows a name, choices separated by bars; nothing behind a switch."""
    if action.nargs == 0:
        return ""
    if action.metavar is None and action.choices is not None:
        return "\\|".join(map(str, action.choices))
    return str(action.metavar or action.dest.upper())


def _help(action: argparse.Action) -> str:
    text = action.help or ""
    if "%" in text:
        text = text % {**vars(action), "prog": "placer"}
    return _escaped(text)


def _sentence(text: str) -> str:
    return _escaped(" ".join(text.split()))


def _escaped(text: str) -> str:
    """Text of the terminal as Markdown that looks the same, but for what stands in backticks."""
    parts = re.split(r"(`[^`]+`)", text)
    plain = [re.sub(r"([*_|\\[\]])", r"\\\1", html.escape(part, quote=False)) for part in parts[::2]]
    code = [part.replace("|", "\\|") for part in parts[1::2]]
    return "".join(word for pair in zip(plain, [*code, ""], strict=True) for word in pair)
