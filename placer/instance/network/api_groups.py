"""Objects of one kind and name under several API groups: the one in use counts, the others are told of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, TypeVar

from placer.instance.findings import Findings
from placer.instance.pod import Key
from placer.kube.base import NamespacedObject

__all__ = ["CODE", "only_one_each"]

CODE: Final = "SeveralApiGroups"

Written = TypeVar("Written", bound=NamespacedObject)


def only_one_each(written: Iterable[Written], kind: str, in_use: str, findings: Findings) -> dict[Key, Written]:
    """Keep one object of each namespace and name, sorted.

    Parameters
    ----------
    written
        Objects of one kind, of any API group, in any order.
    kind
        The kind, for messages.
    in_use
        API group whose object counts; where none is of it the last one by API group does.
    findings
        Takes a finding that names all of those of one name.
    """
    same: dict[Key, list[Written]] = defaultdict(list)
    for each in sorted(written, key=lambda each: (each.namespace, each.name, each.group != in_use, each.group)):
        same[Key(each.namespace, each.name)].append(each)
    return {key: _one(key, each, kind, in_use, findings) for key, each in same.items()}


def _one(key: Key, same: list[Written], kind: str, in_use: str, findings: Findings) -> Written:
    counts = same[0] if same[0].group == in_use else same[-1]
    others = sorted({each.group for each in same if each is not counts})
    if others:
        subject = f"{kind} {key}"
        rest = f"{', '.join(others)}, which {'is' if len(others) == 1 else 'are'} not read"
        message = f"{subject} is there under the API groups {counts.group}, which counts, and {rest}"
        findings.add(CODE, subject, message)
    return counts
