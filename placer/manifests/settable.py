"""Whether anything reads the field that ``--set`` names: what nothing reads decides nothing."""

from __future__ import annotations

from collections.abc import Sequence

from placer.kube import KindInfo
from placer.kube.fields import Fields, Steps, known_fields, nearest, read_fields
from placer.manifests.paths import path_text

__all__ = ["is_list", "unread"]


def unread(info: KindInfo | None, kind: str, steps: Sequence[str]) -> str:
    """Say why setting a field decides nothing; empty where something reads it.

    Parameters
    ----------
    info
        How the kind is read; None if it is not.
    kind
        ``apiVersion Kind`` of the object.
    steps
        The path, which fits the object; indices of lists as they are written.
    """
    if info is None:
        return f"{kind} is not read, so nothing that is set in it decides anything"
    above: list[tuple[Steps, Fields]] = [((), read_fields(info))]
    for number, step in enumerate(steps):
        place, here = above[-1]
        if here.is_list:
            above[-1] = ((*place, int(step)), Fields(here.names, here.values))
            continue
        below = here.under(step)
        if below is None:
            return _why(info, kind, above, steps[number:])
        above.append(((*place, step), below))
    return ""


def is_list(info: KindInfo | None, steps: Sequence[str]) -> bool:
    """Whether the field at a path is a list; of what nothing reads it is not known."""
    here: Fields | None = read_fields(info) if info is not None else None
    for step in steps:
        if here is None:
            break
        here = Fields(here.names, here.values) if here.is_list and step.isdecimal() else here.under(step)
    return here is not None and here.is_list


def _why(info: KindInfo, kind: str, above: Sequence[tuple[Steps, Fields]], rest: Sequence[str]) -> str:
    place, here = above[-1]
    path = path_text((*place, rest[0]))
    if len(above) > 1 and above[-2][1].values is here:  # below a label: its name was cut at its dots
        whole = path_text((*above[-2][0], ".".join((str(place[-1]), *rest))))
        return f"nothing reads {path}; a key that has dots stands in brackets: {whole}"
    like = nearest(rest[0], above)
    words = f"; found like it: {path_text(like)}" if like else ""
    if _is_known(info, (*place, rest[0])):
        return f"{path} is a field of {kind} that nothing reads, so it decides nothing{words}"
    return f"{path} is no field of {kind}{words}"


def _is_known(info: KindInfo, steps: Steps) -> bool:
    fields = known_fields(info)
    for step in steps:
        if fields is None or fields.open:
            break
        fields = fields if isinstance(step, int) else fields.under(step)
    return fields is not None
