"""Every code of a catalogue in ``placer.base.codes``: meaning, a message as an example, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from placer.base.codes import CONDITIONS, EVENTS, FINDINGS, REASONS, Code

__all__ = ["PARTS"]


def _as_markdown(codes: Mapping[str, Code]) -> str:
    """An index of the codes, and a section for each."""
    index = ", ".join(f"[{name}](#{name.lower()})" for name in codes)
    sections = [
        f"### {name}\n\n{code.meaning}\n\n```\n{code.example}\n```\n\n**What to do:** {code.remedy}"
        for name, code in codes.items()
    ]
    return "\n\n".join([index, *sections])


#: A part of the page of codes for each catalogue.
PARTS: Mapping[str, Callable[[], str]] = {
    "reasons": partial(_as_markdown, REASONS),
    "findings": partial(_as_markdown, FINDINGS),
    "conditions": partial(_as_markdown, CONDITIONS),
    "events": partial(_as_markdown, EVENTS),
}
