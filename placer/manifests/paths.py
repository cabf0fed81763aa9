"""Paths of fields, as faults show them and ``--set`` takes them: ``spec.containers[0].resources.requests.cpu``.

A key that is no plain word stands in brackets: ``metadata.labels[topology.kubernetes.io/zone]``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["parse_path", "path_text"]

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_STEP = re.compile(r"(?P<dot>\.?)(?:(?P<word>[^.\[\]]+)|\[(?P<bracket>[^\[\]]+)\])")


def path_text(steps: Sequence[int | str]) -> str:
    """Write a path.

    Examples
    --------
    >>> path_text(["spec", "containers", 0, "resources", "requests", "nvidia.com/gpu"])
    'spec.containers[0].resources.requests[nvidia.com/gpu]'
    """
    text = ""
    for step in steps:
        if isinstance(step, str) and _WORD.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{step}]"
    return text


def parse_path(text: str) -> list[str]:
    """Read a path; whether a step of digits is an index or a key depends on what it is applied to.

    Raises
    ------
    ValueError
        The text is no path.

    Examples
    --------
    >>> parse_path("spec.containers[0].name"), parse_path("metadata.labels[a.b/c]")
    (['spec', 'containers', '0', 'name'], ['metadata', 'labels', 'a.b/c'])
    """
    steps, position = [], 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None or match["dot"] != ("." if position and match["word"] else ""):
            raise ValueError(text)
        steps.append(match["word"] or match["bracket"])
        position = match.end()
    if not steps:
        raise ValueError(text)
    return steps
