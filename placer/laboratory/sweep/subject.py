"""What is swept: a family with its options, or an instance in files; each is one word of a command line."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placer.errors import UsageError
from placer.laboratory.generate import FAMILIES, Option

__all__ = ["Subject", "Value", "parse_subject", "planted_beside"]

Value = int | float | bool | tuple[int | float, ...]

ENDINGS = (".json", ".yaml", ".yml", ".gz")  #: of names that are meant for files, whether they are there or not


@dataclass(frozen=True, slots=True)
class Subject:
    """A family or an instance.

    Parameters
    ----------
    word
        As it was typed; lines and tables name it so.
    family
        Name of the family; None: the word is the path of a file or folder.
    options
        Options of the family, name and value, without the seed.
    """

    word: str
    family: str | None = None
    options: tuple[tuple[str, Value], ...] = ()


def parse_subject(word: str) -> Subject:
    """Read a word: a family and its options as ``placer generate`` takes them, or a path.

    Parameters
    ----------
    word
        A name of ``FAMILIES`` and its options, with the quotes of a shell where they have spaces; else a path. A file
        that bears a family's name is meant with ``./`` before it.

    Raises
    ------
    UsageError
        Neither a family nor a path; an option that the family does not have, out of range, or at odds with another.

    Examples
    --------
    >>> parse_subject("planted --nodes 16 --pod-sizes=4,8").options
    (('nodes', 16), ('pod_sizes', (4, 8)))
    """
    parts = _split(word)
    if parts and parts[0] in FAMILIES:
        try:
            options: dict[str, Any] = _options(parts[0], parts[1:])
            FAMILIES[parts[0]].options(**options)  # which checks what concerns several of them
        except UsageError as error:
            raise UsageError(f"{word}: {error}") from None
        return Subject(word, parts[0], tuple(options.items()))
    if word == "-":
        raise UsageError("-: found standard input, expected a file or folder, which can be read again for each run")
    meant = "/" in word.split(" ")[0] or word.endswith(ENDINGS)
    if not word or not (meant or Path(word).exists()):
        raise UsageError(
            f"{word or repr(word)}: found neither a file or folder nor a family, expected one of {', '.join(FAMILIES)}"
        )
    return Subject(word)


def _split(word: str) -> list[str]:
    """Split at spaces outside quotes; nothing where quotes do not match, as in the name of some file."""
    try:
        return shlex.split(word)
    except ValueError:
        return []


def _options(family: str, words: list[str]) -> dict[str, Value]:
    """Read the options; the last of several counts, as on a command line."""
    flags = {option.flag: option for option in FAMILIES[family].flags if option.name != "seed"}
    found: dict[str, Value] = {}
    left = list(reversed(words))
    while left:
        flag, equals, text = left.pop().partition("=")
        if flag == "--seed":
            raise UsageError("found --seed in the family's options, expected it in --seeds of the sweep")
        if flag not in flags:
            raise UsageError(f"found {flag!r}, expected one of {', '.join(flags)}")
        option = flags[flag]
        found[option.name] = (
            _switched(option, equals) if option.switch else option.parse(_text(option, equals, text, left))
        )
    return found


def _switched(option: Option, equals: str) -> bool:
    if equals:
        raise UsageError(f"{option.flag}: found a value, expected none")
    return True


def _text(option: Option, equals: str, text: str, left: list[str]) -> str:
    """Text of an option's value, behind ``=`` or the next word."""
    if equals:
        return text
    if not left:
        raise option.fault("nothing")
    return left.pop()


def planted_beside(path: str) -> str:
    """Where the planted placement of an instance goes: ``queue.json.gz`` to ``queue.planted.json.gz``.

    Examples
    --------
    >>> planted_beside("made/queue.yaml")
    'made/queue.planted.yaml'
    """
    file = Path(path)
    endings = "".join(file.suffixes[-2:] if file.suffix == ".gz" else file.suffixes[-1:])
    return str(file.with_name(file.name.removesuffix(endings) + ".planted" + endings))
