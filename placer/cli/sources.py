"""Where commands read from: files, or a cluster in place of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.base.errors import UsageError
from placer.cli.terminal import add_source, source, source_words

if TYPE_CHECKING:
    from placer.problem.namespace_budget import NamespaceBudget

__all__ = ["SECONDS", "add_source", "namespace_budget", "source", "source_words"]

SECONDS = 60.0  #: of the whole call where no limit is given


def namespace_budget(words: str, name: str = "--namespace-budget") -> NamespaceBudget | None:
    """The budget that an option states; a wrong one is a :class:`UsageError`."""
    from placer.problem.namespace_budget import parse_budget

    try:
        return parse_budget(words)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from error
