"""Every metric of a loop, from its own registry."""

from __future__ import annotations

from collections.abc import Iterator


def as_markdown() -> str:
    """A table with a row for each metric, with its labels."""
    return "\n".join(["| metric | means |", "| --- | --- |", *_rows()])


def _rows() -> Iterator[str]:
    from placer.passes.metrics import LoopMetrics  # needs the extra `cluster`

    for collector in LoopMetrics("placer").registry._collector_to_names:
        labels = ",".join(getattr(collector, "_labelnames", ()))
        for family in collector.collect():
            name = family.name + {"counter": "_total", "info": "_info"}.get(family.type, "")
            words = family.documentation.replace("<", "&lt;")
            yield f"| <code>{name.replace('_', '_<wbr>')}{f'{{{labels}}}' if labels else ''}</code> | {words} |"
