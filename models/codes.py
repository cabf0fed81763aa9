"""Writes ``models/codes.md``, the page of every code, from ``placer.codes``: ``python models/codes.py``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import fill

from placer.codes import CONDITIONS, EVENTS, FINDINGS, REASONS, Code

__all__ = ["page"]

PAGE = Path(__file__).with_suffix(".md")
WIDTH = 120

#: Title, what the codes below it are, the codes.
SECTIONS: tuple[tuple[str, str, Mapping[str, Code]], ...] = (
    (
        "Reasons",
        "Why a group is pending: `groups[].reason` of a Placement, and the first word of the message that a "
        "waiting pod carries in a cluster. It is the first in this order that keeps the group out when it is alone "
        "with the pods that run now. `Outcompeted` means that none of those before it does; `NotDecided` that "
        "there was no time to decide.",
        REASONS,
    ),
    (
        "Findings",
        "Likely mistakes in the input: `findings` of a Placement. They stop nothing, unless `--strict` makes them "
        "errors (exit code 3). Objects that do not depend on those in a finding are placed as usual.",
        FINDINGS,
    ),
    (
        "Conditions in a cluster",
        "Reasons that `placer run` writes in the condition `PodScheduled=False` of a pod.",
        CONDITIONS,
    ),
    (
        "Events in a cluster",
        "Reasons of the Events of `placer run`: of a PodGroup, of a pod that is in none, of a node.",
        EVENTS,
    ),
)

HEAD = """\
# Reasons, findings, Events

Every code of placer, with its meaning, a message as an example, and what to do. This page is made
from `placer/codes.py` by `python models/codes.py`. The rules (C1, C2, ...) that some messages name are
those of [README.md](README.md).
"""


def page() -> str:
    """The whole page."""
    return "\n".join((HEAD, *_index(), *(line for section in SECTIONS for line in _section(*section)))).rstrip() + "\n"


def _index() -> Iterator[str]:
    for title, _, codes in SECTIONS:
        names = ", ".join(f"[{name}](#{name.lower()})" for name in codes)
        yield _filled(f"- {title}: {names}", "  ")
    yield ""


def _section(title: str, what: str, codes: Mapping[str, Code]) -> Iterator[str]:
    yield from (f"## {title}", "", _filled(what), "")
    for name, code in codes.items():
        yield from (
            f"### {name}",
            "",
            code.meaning,
            "",
            "```",
            code.example,
            "```",
            "",
            f"**What to do:** {code.remedy}",
            "",
        )


def _filled(text: str, indent: str = "") -> str:
    """In lines of the page's width; what has no spaces stays whole."""
    return fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
