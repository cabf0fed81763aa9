"""Findings about what stands in the input and is not read: unknown fields and kinds, files that give nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.instance.findings import Findings

if TYPE_CHECKING:
    from placer.manifests import Objects
    from placer.manifests.unknown import UnknownField

__all__ = ["note_ignored"]


def note_ignored(objects: Objects, findings: Findings) -> None:
    """Note every place of a field that no object of its kind has, and every file that gives the instance nothing.

    Parameters
    ----------
    objects
        The instance's objects.
    findings
        Takes the findings; a field of many objects is one finding.
    """
    for unknown in objects.unknown_fields:
        findings.add("UnknownField", unknown.object, _message(unknown))
    for file in objects.useless_files:
        if file.holds_placement:
            why = (
                "holds only a Placement, which is no part of an instance: placer verify INSTANCE... PLACEMENT judges it"
            )
        else:
            why = "holds no object"
        findings.add("FileIgnored", file.name, f"{file.name} {why}")


def _message(unknown: UnknownField) -> str:
    others = f", here and in {unknown.count - 1:,} more" if unknown.count > 1 else ""
    if not unknown.path:
        return f"more fields of {unknown.kind} are unknown than are told, and objects after this one were not looked at"
    if unknown.path == "kind":
        return f"no kind {unknown.kind} is read{others}; found like it: {unknown.nearest}"
    nearest = f"; found like it: {unknown.nearest}" if unknown.nearest else ""
    return f"{unknown.path} is no field of {unknown.kind} and decides nothing{others}{nearest}"
