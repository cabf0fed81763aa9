"""Every field of every kind that is read, and what placer makes of it."""

from __future__ import annotations

from collections.abc import Iterator

from field_uses import FieldClass, FieldUse, field_uses

from placer.kube.kinds import BY_ATTRIBUTE, KindInfo

#: Fields of every object.
_COMMON = ("apiVersion", "kind", "metadata")


def as_markdown() -> str:
    """A part for each kind, in the order of their names."""
    kinds = sorted(BY_ATTRIBUTE.values(), key=lambda info: (info.kind, info.group))
    return "\n".join(line for info in kinds for line in _kind(info))


def _kind(info: KindInfo) -> Iterator[str]:
    by_path = {each.path: each for each in field_uses(info)}
    uses = [each for path, each in by_path.items() if path.partition(".")[0] not in _COMMON]
    if not uses:
        return
    yield from (f"## {info.kind} of {info.group or 'the core group'}", "")
    said = [each for each in uses if each.words]
    if said:
        yield from ("| field | is | |", "| --- | --- | --- |")
        yield from (f"| `{each.path}` | {_word(each)} | {each.words} |" for each in said)
        yield ""
    for use in (FieldClass.READ, FieldClass.NEUTRAL):
        paths = [f"`{each.path}`" for each in uses if each.use is use]
        if paths:
            yield from (f"{use.value.capitalize()}: {', '.join(paths)}.", "")


def _word(each: FieldUse) -> str:
    return each.use.value if each.use is not None else ""
