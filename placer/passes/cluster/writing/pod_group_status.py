"""Status of a PodGroup of any API, and its change.

It is read again before it is written, so that nothing is written twice; the patch names the version that was read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from placer.base.errors import ClusterError
from placer.passes.cluster.reading.client import MERGE, Writer
from placer.problem import GroupKey

__all__ = ["PodGroupStatus", "cause_in", "change_status", "means_the_same"]

#: A number with its unit, standing alone: names of nodes and pods keep theirs.
_AMOUNT = re.compile(r"(?<![\w./-])-?[0-9][0-9.,]*(?:[munkKMGTPE]i?)?(?![\w/-])")
#: Where a gang comes nearest to a place, in the words of :mod:`placer.answers.reasons`.
_NEAREST = re.compile(r"; (?:of the nodes with room )?(?:Node \S+ comes nearest: |the roomiest [^(]*\().*", re.DOTALL)
#: Seconds to wait for an answer.
_PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class PodGroupStatus:
    """Whether a gang is ready, whether some of its pods run, and why it waits."""

    key: GroupKey
    ready: bool
    some: bool
    reason: str = ""
    message: str = ""


def change_status(
    server: Writer,
    key: GroupKey,
    path: str,
    change: Callable[[Mapping[str, Any]], dict[str, Any] | None],
    subresource: str = "",
) -> bool | None:
    """Change the status of a PodGroup; whether it was changed, None where there is no such object.

    Parameters
    ----------
    change
        From the object to the changes of its status; None: nothing.
    subresource
        Below ``path``, for the write.

    Raises
    ------
    ClusterError
        The server refuses, or does not answer.
    """
    answer = server.send("GET", path, timeout=_PATIENCE)
    if answer.status == 404:
        return None
    if answer.status != 200:
        raise ClusterError(f"{key}: {answer.status} {answer.message}")
    group = msgspec.json.decode(answer.text)
    patch = change(group)
    if patch is None:
        return False
    body = {"metadata": {"resourceVersion": group["metadata"]["resourceVersion"]}, "status": patch}
    sent = server.send("PATCH", path + subresource, body, kind=MERGE, timeout=_PATIENCE)
    if sent.status in (404, 409):
        return False
    if sent.status >= 300:
        raise ClusterError(f"{key}: {sent.status} {sent.message}")
    return True


def cause_in(message: str) -> str:
    """The cause in a message, without numbers and the nearest node or domain, which change all the time.

    Examples
    --------
    >>> cause_in("cpu 60 of 40 left") == cause_in("cpu 60500m of 1.5 left")
    True
    >>> cause_in("needs 8 pods in one HyperNode; the roomiest (leaf-7, tier 1) has room for 7")
    'needs # pods in one HyperNode'
    """
    return _AMOUNT.sub("#", _NEAREST.sub("", message))


def means_the_same(wanted: Mapping[str, Any], there: Mapping[str, Any]) -> bool:
    """Whether a condition equals the wanted one, or names the same cause."""
    others = {key: text for key, text in wanted.items() if key != "message"}
    return others.items() <= there.items() and cause_in(there.get("message") or "") == cause_in(wanted["message"])
