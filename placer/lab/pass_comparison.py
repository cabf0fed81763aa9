"""Two series of passes compared: how another version or Policy would have bound differently.

A series is a folder of saved passes (``--save``), or one Placement. Passes of one name decided on the same snapshot; of
two loops next to each other a group counts where both had it waiting. Of a group the first pass that admits it is
compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import placer.kube.manifests as manifests
from placer.base.errors import UsageError
from placer.passes.saved_passes import saved_placements

__all__ = ["compare_series", "read_series"]

#: What may become of a group in the second series that the first one decided otherwise, worst first.
DIFFERENCES = (
    "lost",
    "fewer",
    "later",
    "wider",
    "won",
    "more",
    "sooner",
    "narrower",
    "elsewhere",
    "otherReason",
)
#: And what is no difference: admitted alike, left waiting alike, and not seen waiting by both.
_ALIKE = ("same", "waits", "unseen")
#: When a pass was of which no time is known.
_ONCE = datetime(1970, 1, 1, tzinfo=UTC)


#: Kind, namespace and name, as a Placement names a group.
GroupName = tuple[str, str, str]


class Look(NamedTuple):
    """``node`` is that of a pod in no group."""

    when: datetime
    part: Mapping[str, Any]
    node: str | None

    @property
    def admitted(self) -> bool:
        return bool(self.part["admitted"])

    @property
    def reason(self) -> str | None:
        reason = self.part.get("reason")
        return reason["code"] if reason is not None else None

    def as_dict(self) -> dict[str, Any]:
        return {
            "time": None if self.when == _ONCE else self.when.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "admitted": self.admitted,
            "placed": self.part["placed"],
            "tier": self.part.get("tier"),
            "hyperNode": self.part.get("hyperNode"),
            "node": self.node,
            "reason": self.reason,
        }


@dataclass(slots=True)
class PassSeries:
    source: str
    times: list[datetime] = field(default_factory=list)
    versions: set[str] = field(default_factory=set)
    groups: dict[GroupName, list[Look]] = field(default_factory=lambda: defaultdict(list))
    nodes: dict[tuple[str, str], str] = field(default_factory=dict)  #: namespace and name of a pod to its first node
    evicted: set[tuple[str, str]] = field(default_factory=set)
    moved: set[tuple[str, str]] = field(default_factory=set)

    def add(self, when: datetime, document: Mapping[str, Any]) -> None:
        self.times.append(when)
        self.versions.add(str((document.get("versions") or {}).get("placer", "unknown")))
        bound = {(each["namespace"], each["pod"]): each["node"] for each in document["bindings"]}
        self.nodes = {**bound, **self.nodes}
        self.evicted.update((each["namespace"], each["pod"]) for each in document.get("evictions") or ())
        self.moved.update((each["namespace"], each["pod"]) for each in document.get("moves") or ())
        for part in document["groups"]:
            name = part["kind"], part["namespace"], part["name"]
            node = bound.get(name[1:]) if part["kind"] == "Pod" else None
            self.groups[name].append(Look(when, part, node))

    def as_dict(self) -> dict[str, Any]:
        dated = [when for when in self.times if when != _ONCE]
        first, last = (f"{each:%Y-%m-%dT%H:%M:%SZ}" if dated else None for each in (self.times[0], self.times[-1]))
        return {
            "source": self.source,
            "versions": sorted(self.versions),
            "passes": len(self.times),
            "from": first,
            "until": last,
            "boundPods": len(self.nodes),
            "evictedPods": len(self.evicted),
            "movedPods": len(self.moved),
        }


def read_series(source: str) -> PassSeries:
    """Read a folder of saved passes, or one Placement.

    Raises
    ------
    UsageError
        There is none.
    BadInstance
        A file cannot be read.
    """
    import json

    path, found = Path(source), PassSeries(source)
    files = saved_placements(path) if path.is_dir() else {_ONCE: path}
    if not files:
        raise UsageError(
            f"{source}: found no Placement of a pass, expected files TIME-placement.json as --save names them"
        )
    for when, file in files.items():
        (text,) = manifests.read_texts([str(file)])
        raws = manifests.split([text])
        document = json.loads(bytes(raws[0].text)) if len(raws) == 1 and raws[0].kind == "Placement" else {}
        if not {"bindings", "groups"} <= document.keys():
            raise UsageError(f"{file}: found no Placement with bindings and groups, expected one as solve -o writes it")
        found.add(when, document)
    return found


def compare_series(old: PassSeries, new: PassSeries) -> dict[str, Any]:
    """Compare two series; a single Placement next to several is a :class:`UsageError`.

    Returns
    -------
    dict
        The document that ``placer compare --passes --json`` prints: counts, and the groups that differ, the highest
        priority first, unknown ones last; then the worst.
    """
    _check_times(old, new)
    counts: Counter[str] = Counter(dict.fromkeys((*DIFFERENCES, *_ALIKE), 0))
    differing: list[tuple[tuple[int, int, GroupName], dict[str, Any]]] = []
    for name in sorted({*old.groups, *new.groups}):
        before, after = old.groups.get(name, []), new.groups.get(name, [])
        difference = _difference(before, after)
        counts[difference] += 1
        if difference in DIFFERENCES:
            priority = next((look.part["priority"] for look in (*after, *before) if "priority" in look.part), None)
            item = {
                "group": dict(zip(("kind", "namespace", "name"), name, strict=True)),
                "priority": priority,
                "difference": difference,
                "old": _telling(before).as_dict(),
                "new": _telling(after).as_dict(),
            }
            rank = 2**63 if priority is None else -priority, DIFFERENCES.index(difference), name
            differing.append((rank, item))
    both = old.nodes.keys() & new.nodes.keys()
    same = sum(old.nodes[pod] == new.nodes[pod] for pod in both)
    return {
        "apiVersion": "placer.dev/v1alpha1",
        "kind": "PassComparison",
        "old": old.as_dict(),
        "new": new.as_dict(),
        "groups": dict(counts),
        "pods": {"sameNode": same, "otherNode": len(both) - same},
        "items": [item for _, item in sorted(differing)],
    }


def _check_times(old: PassSeries, new: PassSeries) -> None:
    """Two single passes are one moment, whatever their names say."""
    if len(old.times) == len(new.times) == 1:
        for series in (old, new):
            series.times = [_ONCE]
            for name, looks in series.groups.items():
                series.groups[name] = [Look(_ONCE, look.part, look.node) for look in looks]
    elif _ONCE in old.times or _ONCE in new.times:
        raise UsageError("--passes: found one Placement and a folder of several, expected two of a kind")


def _admitted(looks: Iterable[Look]) -> Look | None:
    return next((look for look in looks if look.admitted), None)


def _telling(looks: list[Look]) -> Look:
    return _admitted(looks) or looks[-1]


def _difference(before: list[Look], after: list[Look]) -> str:
    if not before or not after:
        return "unseen"
    old, new = _admitted(before), _admitted(after)
    if old is not None and new is not None:
        return _manner(before, after, old, new)
    if old is not None:
        return "unseen" if _is_stale(after[-1], before, old) else "lost"
    if new is not None:
        return "unseen" if _is_stale(before[-1], after, new) else "won"
    return "waits" if before[-1].reason == after[-1].reason else "otherReason"


def _is_stale(look: Look, own: Iterable[Look], bound: Look) -> bool:
    """Whether the series that bound a group had left it waiting after the last look of the other: something changed
    since.
    """
    return any(look.when <= each.when < bound.when for each in own)


def _manner(before: list[Look], after: list[Look], old: Look, new: Look) -> str:
    waited = any(new.when <= look.when < old.when for look in before)
    waits = any(old.when <= look.when < new.when for look in after)
    said = {"later": waits, "sooner": waited}
    placed = new.part["placed"] - old.part["placed"]
    said |= {"fewer": placed < 0, "more": placed > 0}
    tier, other = old.part.get("tier"), new.part.get("tier")
    if tier is not None and other is not None:
        said |= {"wider": tier < other, "narrower": tier > other}
    places = [(look.part.get("hyperNode"), look.node) for look in (old, new)]
    said["elsewhere"] = places[0] != places[1]
    return next((each for each in DIFFERENCES if said.get(each)), "same")
