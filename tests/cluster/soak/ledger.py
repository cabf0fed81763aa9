"""What a judge knows of a cluster: read from what its API server says happened, and by no code of placer's.

A change of state is one of these, and nothing else is:

=============  =========================================================================================================
``binding``    a pod of placer's has a node that had none
``condition``  why a pod of placer's waits is said for the first time, or is another cause than was said before
``PodGroup``   phase or conditions of a PodGroup say something else than before
``Event``      an Event of placer's says of its subject what the one before it, of the same subject, did not say
=============  =========================================================================================================

Other amounts alone are no other cause, nor is another node or domain that comes nearest: of a reason that counts up to
its first semicolon. What nobody but placer itself reads (its record of gangs that are under way, its
Lease) is no state of the cluster, so that writing it is no change.
"""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["OURS", "Gang", "Ledger", "OverfullBinding", "SeenPod"]

OURS = "placer"
_GROUP = "scheduling.k8s.io/group-name"
_OVER = ("Succeeded", "Failed")
#: Thousandths of a unit, by what stands behind a number.
_UNITS = {None: 1000, "m": 1, "Ki": 1000 * 2**10, "Mi": 1000 * 2**20, "Gi": 1000 * 2**30}
#: What a gang lacks; behind a semicolon it is said where it lacks least.
_COUNTED = ("InsufficientResources: ", "TopologyTooNarrow: ")
#: A number with what belongs to it.
_NUMBER = re.compile(r"(?<![\w.-])-?\d[\d.,]*[a-zA-Z]{0,2}(?![\w-])")


@dataclass
class SeenPod:
    """A pod as it was seen last."""

    uid: str
    name: str
    gang: str  #: the name of its PodGroup, or its own
    ours: bool
    requests: Mapping[str, int]
    node: str = ""
    phase: str = "Pending"
    told: tuple[str, str] | None = None  #: reason and text of why it waits

    @property
    def holds_room(self) -> bool:
        return bool(self.node) and self.phase not in _OVER


@dataclass
class Gang:
    """What a PodGroup asks for; of a pod without one, itself.

    Parameters
    ----------
    least
        Pods that it needs.
    in_rack
        Whether they must be in one rack.
    """

    least: int
    in_rack: bool = False
    told: object = None  #: its status as it was seen last


@dataclass(frozen=True, slots=True)
class OverfullBinding:
    """A binding by placer to a node that has no room for it.

    Parameters
    ----------
    pod, node
        Which.
    beside
        Seconds since another scheduler bound something to that node, or the node was changed; infinite: none has.
    """

    pod: str
    node: str
    beside: float


@dataclass
class Ledger:
    """What happened in a cluster so far, in the order in which the server did it.

    Parameters
    ----------
    racks
        The nodes of each rack.
    clock
        Seconds.
    """

    racks: Sequence[Sequence[str]]
    clock: Callable[[], float] = time.monotonic
    changes: Counter[str] = field(default_factory=Counter)
    rebound: list[str] = field(default_factory=list)  #: pods whose node became another one
    overfull: list[OverfullBinding] = field(default_factory=list)
    holders: list[str] = field(default_factory=list)  #: who held the Lease, one after another
    pods: dict[str, SeenPod] = field(default_factory=dict)  #: by uid
    gangs: dict[str, Gang] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._there: dict[str, dict[str, int]] = {}
        self._used: dict[str, Counter[str]] = defaultdict(Counter)
        self._others_at: dict[str, float] = {}  # node to when another scheduler bound something to it
        self._told: dict[str, tuple[str, str]] = {}  # subject to what was said of it last

    # -------------------------------------------------------------------------------------------------- what happened

    def node_is(self, node: Mapping[str, Any]) -> None:
        """Note how much there is of a node."""
        there = node["status"]["allocatable"]
        self._there[node["metadata"]["name"]] = {name: _amount(each) for name, each in there.items()}

    def pod_happened(self, kind: str, pod: Mapping[str, Any]) -> None:
        """Note what became of a pod."""
        uid = pod["metadata"]["uid"]
        seen = self.pods.get(uid) or self._first_seen(pod)
        before = seen.holds_room
        if kind == "DELETED":
            self.pods.pop(uid, None)
            self._count(seen, -before)
            return
        self.pods[uid] = seen
        seen.phase = pod["status"].get("phase") or "Pending"
        where = pod["spec"].get("nodeName") or ""
        if seen.node and where != seen.node:
            self.rebound.append(seen.name)
        is_bound_now = bool(where) and not seen.node
        seen.node = where
        self._count(seen, seen.holds_room - before)
        if is_bound_now:
            self._bound(seen)
        elif seen.ours and not where:
            self._waits(seen, pod["status"].get("conditions") or ())

    def group_happened(self, kind: str, group: Mapping[str, Any]) -> None:
        """Note what became of a PodGroup."""
        name, spec, status = group["metadata"]["name"], group["spec"], group.get("status") or {}
        if kind == "DELETED":
            self.gangs.pop(name, None)
            return
        says = (
            status.get("phase") or "Pending",
            frozenset(
                (each["type"], each["status"], each.get("reason"), _cause(each.get("message") or ""))
                for each in status.get("conditions") or ()
            ),
        )
        in_rack = (spec.get("networkTopology") or {}).get("highestTierAllowed") == 1
        gang = self.gangs.setdefault(name, Gang(spec.get("minMember") or 0, in_rack))
        self.changes["PodGroup"] += gang.told not in (None, says)
        gang.told = says

    def event_happened(self, kind: str, event: Mapping[str, Any]) -> None:
        """Note an Event."""
        if kind != "ADDED" or event.get("reportingController") != OURS:
            return
        about = event["regarding"]
        subject = f"{about['kind']} {about.get('uid') or about['name']}"
        says = (event["reason"], _cause(event.get("note") or ""))
        self.changes["Event"] += self._told.get(subject) != says
        self._told[subject] = says

    def lease_happened(self, kind: str, lease: Mapping[str, Any]) -> None:
        """Note who holds the Lease."""
        holder = (lease.get("spec") or {}).get("holderIdentity")
        if kind != "DELETED" and holder and holder not in self.holders[-1:]:
            self.holders.append(holder)

    def _first_seen(self, pod: Mapping[str, Any]) -> SeenPod:
        metadata, spec = pod["metadata"], pod["spec"]
        requests: Counter[str] = Counter(pods=1000)
        for container in spec["containers"]:
            for name, amount in (container["resources"].get("requests") or {}).items():
                requests[name] += _amount(amount)
        gang = (metadata.get("annotations") or {}).get(_GROUP) or metadata["name"]
        return SeenPod(metadata["uid"], metadata["name"], gang, spec.get("schedulerName") == OURS, requests)

    def _count(self, pod: SeenPod, times: int) -> None:
        for name, amount in pod.requests.items() if times else ():
            self._used[pod.node][name] += times * amount

    def _bound(self, pod: SeenPod) -> None:
        if not pod.ours:
            self._others_at[pod.node] = self.clock()
            return
        self.changes["binding"] += 1
        if any(amount < 0 for amount in self.free(pod.node).values()):
            beside = self.clock() - self._others_at.get(pod.node, float("-inf"))
            self.overfull.append(OverfullBinding(pod.name, pod.node, beside))

    def _waits(self, pod: SeenPod, conditions: Iterable[Mapping[str, Any]]) -> None:
        for each in conditions:
            if each["type"] == "PodScheduled" and each["status"] == "False":
                says = (each.get("reason") or "", _cause(each.get("message") or ""))
                self.changes["condition"] += says != pod.told
                pod.told = says

    # ----------------------------------------------------------------------------------------------------- what is so

    def free(self, node: str) -> dict[str, int]:
        """What is left of a node, in thousandths; below zero where there is too much on it."""
        used = self._used[node]
        return {name: self._there[node].get(name, 0) - used[name] for name in self._there[node].keys() | used.keys()}

    def members(self) -> dict[str, list[SeenPod]]:
        """Gang to its pods that have not ended."""
        found: dict[str, list[SeenPod]] = defaultdict(list)
        for pod in list(self.pods.values()):
            if pod.ours and pod.phase not in _OVER:
                found[pod.gang].append(pod)
        return found

    def half_bound(self) -> frozenset[str]:
        """Gangs that have pods with a node, and fewer than they need."""
        return frozenset(self._half_bound())

    def _half_bound(self) -> Iterator[str]:
        for name, pods in self.members().items():
            placed = sum(bool(each.node) for each in pods)
            if name in self.gangs and 0 < placed < min(self.gangs[name].least, len(pods)):
                yield name

    def fit(self) -> frozenset[str]:
        """Gangs that wait as a whole and would fit, alone, into what is free: counted, as their pods are equal."""
        free = {name: self.free(name) for name in list(self._there)}
        everywhere = [list(free)]
        found = set[str]()
        for name, pods in self.members().items():
            gang = self.gangs.get(name) or Gang(1)
            if len(pods) < gang.least or any(each.node for each in pods):
                continue
            asked = pods[0].requests
            domains = self.racks if gang.in_rack else everywhere
            if any(sum(_copies(free[node], asked) for node in nodes) >= gang.least for nodes in domains):
                found.add(name)
        return frozenset(found)


def _copies(free: Mapping[str, int], asked: Mapping[str, int]) -> int:
    """How many pods that ask for so much there is room for."""
    return max(0, min(free.get(name, 0) // amount for name, amount in asked.items() if amount))


def _amount(text: object) -> int:
    """A quantity, in thousandths."""
    match = re.fullmatch(r"(\d+)(m|Ki|Mi|Gi)?", str(text))
    assert match is not None, text
    return int(match[1]) * _UNITS[match[2]]


def _cause(text: str) -> str:
    """What is said of a cause: of reasons that placer counts, the first clause."""
    return _NUMBER.sub("#", text.partition(";")[0] if text.startswith(_COUNTED) else text)
