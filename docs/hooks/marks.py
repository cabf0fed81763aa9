"""Every mark of other systems that placer knows, from its own table."""

from __future__ import annotations

from placer.kube.marks import MARKS, Mark, Meaning

_TITLES = {
    Meaning.GANG: "Gangs that are read",
    Meaning.TOPOLOGY: "Topology",
    Meaning.NODES: "Nodes",
    Meaning.PROTECTED: "Protection",
    Meaning.REFUSED: "Refused: the pods wait as Unsupported",
    Meaning.IGNORED: "Decides nothing: a finding",
}


def as_markdown() -> str:
    """A table for each meaning, with a row for each mark."""
    return "\n\n".join(f"## {title}\n\n{_table(meaning)}" for meaning, title in _TITLES.items())


def _table(meaning: Meaning) -> str:
    rows = [_row(mark) for mark in MARKS if mark.meaning is meaning]
    table = "\n".join(["| mark | on | of | reading |", "| --- | --- | --- | --- |", *rows])
    return f'<div class="keys" markdown>\n\n{table}\n\n</div>'


def _row(mark: Mark) -> str:
    name = f"{mark.place.value} <code>{mark.name.replace('/', '/<wbr>')}</code>"
    return f"| {name} | {', '.join(mark.on)} | {mark.system} | {mark.reading} |"
