"""Shared by ``compare`` and ``sweep``: configurations of policies, columns of figures, and notes below the tables."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from placer.base.errors import UsageError
from placer.base.table import Column
from placer.base.text import legible
from placer.lab.policies.mimicry import read_config
from placer.problem import ANY_SCHEDULER

#: What a row of a table is about.
T = TypeVar("T")

#: Mark of a figure beside a bound, of a placement that breaks rules; and what it says.
BROKEN = "*"
BREAKS = f"{BROKEN} breaks rules, so its values can exceed the bound"


def scheduler_configs(paths: Sequence[str], scheduler_name: str | None = None) -> dict[str, Any]:
    """Read the configurations of schedulers, policy to its arguments; two for one policy are a usage error."""
    profile = None if scheduler_name == ANY_SCHEDULER else scheduler_name
    found: dict[str, Any] = {}
    for path in paths:
        try:
            text = Path(path).read_bytes()
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
        for policy, arguments in read_config(text, path, scheduler_name=profile).items():
            if policy in found:
                raise UsageError(f"{path}: found another configuration for {policy}, expected one")
            found[policy] = arguments
    return found


def columns_of(rows: Sequence[T], figures: Mapping[str, Callable[[T], str]], texts: Sequence[str] = ()) -> list[Column]:
    """A column for each figure, by its head; those of words are among ``texts``."""
    return [Column(head, [of(row) for row in rows], text=head in texts) for head, of in figures.items()]


def print_notes(notes: Mapping[str, Iterable[str]], terminal: Console) -> None:
    """Print notes, policy to its notes, on parts that are not mimicked; each once."""
    policies: dict[str, list[str]] = {}
    for policy, told in notes.items():
        for note in told:
            policies.setdefault(note, []).append(policy)
    if policies:
        terminal.print("\nNot mimicked, not judged, or to be read in more than one way")
    for note, names in policies.items():
        told = legible(f"{', '.join(names)}: {note}")
        lines = textwrap.wrap(
            told, terminal.width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
        )
        for line in lines:
            terminal.print(line, markup=False)
