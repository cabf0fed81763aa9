"""Files of a call told apart by content: an instance, a placement, a comparison."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.json import decode

from placer.base.errors import BadInstance, Fault, UsageError
from placer.kube.manifests import Text, read_texts, split
from placer.kube.manifests.faults import Faults
from placer.kube.manifests.syntax import documents

#: Where the first object of a text is looked for.
_HEAD = 2**16
#: ... and the kind of a comparison.
_LIST = 200


class ComparedValue(msgspec.Struct, rename="camel", gc=False):
    """One value of the objective in a row of ``placer compare``."""

    name: str
    value: int
    priority: int | None = None
    bound: int | None = None
    proved_by: str | None = None


class ComparedGroup(msgspec.Struct, rename="camel", gc=False):
    """What a policy makes of a group with pending pods."""

    kind: str
    namespace: str
    name: str
    admitted: bool
    placed: int
    tier: int | None = None
    hyper_node: str | None = None


class ComparedWeight(msgspec.Struct, rename="camel", gc=False):
    """Placed weight of all priorities."""

    value: int
    bound: int | None = None


class ComparedMetrics(msgspec.Struct, rename="camel", gc=False):
    """What of the metrics of a row the page shows."""

    weight: ComparedWeight | None = None


class ComparedRow(msgspec.Struct, rename="camel"):
    """A row of ``placer compare --json`` (models/interface.md), as far as the page shows it."""

    policy: str
    placed_pods: int | None = None
    placed_groups: int | None = None
    gpus_placed: int | None = None
    objective: list[ComparedValue] = []
    violations: dict[str, int] = {}
    metrics: ComparedMetrics | None = None
    groups: list[ComparedGroup] = []
    seconds: float | None = None
    error: str | None = None


class _Comparison(msgspec.Struct):
    items: list[ComparedRow]


class Inputs(NamedTuple):
    """The files of a call; ``comparison``: name of the file with the ``rows``.

    ``moment``: when the instance was so, in seconds since the epoch: the last file's time; None: unknown.
    """

    instance: list[Text]
    placement: Text | None
    comparison: str | None
    rows: list[ComparedRow]
    moment: float | None = None


def told_apart(paths: Sequence[str | Text], cluster: Callable[[], Sequence[str | Text]] | None = None) -> Inputs:
    """Read files and tell what each is; ``cluster`` reads the instance where no file has one.

    ``BadInstance``: unreadable. ``UsageError``: two placements or comparisons, or no instance.
    """
    found = _sorted(paths)
    live = not found["instance"] and cluster is not None
    if live and cluster is not None:
        found["instance"] = read_texts(cluster())
    if not found["instance"]:
        raise UsageError(f"found no INSTANCE among {', '.join(map(str, paths))}, expected Kubernetes objects")
    comparison = next(iter(found["comparison"]), None)
    return Inputs(
        found["instance"],
        next(iter(found["placement"]), None),
        None if comparison is None else comparison.name,
        _rows(comparison) if comparison else [],
        time.time() if live else _written(found["instance"]),
    )


def _sorted(paths: Sequence[str | Text]) -> dict[str, list[Text]]:
    found: dict[str, list[Text]] = {"instance": [], "placement": [], "comparison": []}
    for text in read_texts(paths):
        found[_kind(text)].append(text)
    for kind in ("placement", "comparison"):
        if len(found[kind]) > 1:
            raise UsageError(f"found {len(found[kind])} {kind}s, {', '.join(map(str, found[kind]))}, expected one")
    return found


def _written(texts: Iterable[Text]) -> float | None:
    paths = [Path(text.name) for text in texts]
    return max(path.stat().st_mtime for path in paths) if all(path.is_file() for path in paths) else None


def _kind(text: Text) -> str:
    head = bytes(text.data[:_HEAD]).lstrip()
    if (text.is_json and head.startswith(b"[")) or b"ComparisonList" in head[:_LIST]:
        return "comparison"
    return "placement" if _is_placement(text, head) else "instance"


def _is_placement(text: Text, head: bytes) -> bool:
    if not (b"Binding" in head or (b"Placement" in text.data and b"placer.dev" in text.data)):
        return False
    raws = split([text], Faults())
    kinds = {(raw.group, raw.kind) for raw in raws}
    return bool(kinds) and kinds <= {("placer.dev", "Placement"), ("", "Binding")}


def _rows(text: Text) -> list[ComparedRow]:
    data = bytes(text.data)
    if not text.is_json:
        data = "".join(piece for each in documents(data) for piece in each.pieces).encode()
    try:
        listed = data.lstrip().startswith(b"[")
        rows = decode(data, type=list[ComparedRow]) if listed else decode(data, type=_Comparison).items
    except msgspec.DecodeError as error:
        raise BadInstance([Fault(text.name, None, "", "", str(error), "rows of placer compare --json")]) from error
    if not rows:
        raise BadInstance([Fault(text.name, None, "", "", "an empty list", "rows of placer compare --json")])
    return rows
