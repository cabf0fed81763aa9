"""Smallest sets of causes: with all of one lifted the group fits, with any one of them kept it does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from placer.answers.explain.decisions import LoneGroup
from placer.answers.explain.lifts import lift_causes, rules_of
from placer.answers.explain.shortages import outside_words, refused_words, shortage_words
from placer.answers.reasons.cause import plural
from placer.answers.reasons.neighbour_words import NeighbourWords
from placer.answers.reasons.relaxations import TRIED
from placer.base.codes import ReasonCode
from placer.problem import GroupKey, Instance
from placer.problem.placement import Placement

OTHERS = 2

#: The condition under which a group fits, for causes of which no single rule of counting says more.
_CONDITION = {
    "InvalidGroup": "without the contradiction in the group",
    "GangIncomplete": "with the existing pods as its minimum",
    "Unsupported": "without its unsupported fields",
    "NoEligibleNode": "if taints, selectors, affinity, cordons and readiness of nodes are ignored",
    "QueueClosed": "with its Queue open to it",
    "QueueCapability": "without the limits of its Queue",
    "InsufficientResources": "where nodes have more room",
    "TopologyTooNarrow": "without its limits of tiers and of node labels",
    "Exclusive": "where several may share a domain",
    "NumaAlignment": "without alignment to NUMA zones",
    "NetworkCost": "without the costs of calls",
    "Bandwidth": "without the bandwidths of links",
}


@dataclass(frozen=True)
class GroupCause:
    """One cause; ``rules`` are lifted with it, and ``message`` is one sentence."""

    code: ReasonCode
    rules: tuple[str, ...]
    message: str


#: Causes of one set, in the order of the catalogue.
Correction = tuple[GroupCause, ...]


def corrections(group: LoneGroup) -> list[Correction] | None:
    """Find smallest correction sets of a group that does not fit alone; None: it fits, or there was no time.

    The smallest comes first, then up to two others, none of which contains another.
    """
    if group.confirmed().fits is not False:
        return None
    found: list[frozenset[str]] = []
    for codes in _by_size(group.codes):
        if group.deadline.over or _enough(found, codes):
            break
        if not any(one <= codes for one in found) and _is_smallest(group, codes):
            found.append(codes)
    found.sort(key=lambda codes: (len(codes), -_named(group, codes)))
    return [_correction(group, codes) for codes in found] or None


def _enough(found: list[frozenset[str]], codes: frozenset[str]) -> bool:
    return bool(found) and (len(codes) > len(found[0]) + 1 or len(found) > OTHERS)


def _named(group: LoneGroup, codes: frozenset[str]) -> int:
    kept = ((code, group.confirmed(codes - {code}).cause) for code in codes)
    return sum(cause is not None and cause.code == code for code, cause in kept)


def _by_size(codes: tuple[str, ...]) -> Iterator[frozenset[str]]:
    for size in range(1, len(codes) + 1):
        yield from map(frozenset, combinations(codes, size))


def _is_smallest(group: LoneGroup, codes: frozenset[str]) -> bool:
    return group.fits(codes).fits is True and all(group.confirmed(codes - {code}).fits is False for code in codes)


def _correction(group: LoneGroup, codes: frozenset[str]) -> Correction:
    of, found, words = group.instance.groups[group.key], [], NeighbourWords(group.instance)
    for code in group.codes:
        if code in codes:
            message = _message(group, code, codes)
            asked = str(words.asked((group.instance.pods[key] for key in of.pending), code))
            texts = [asked if asked.split(": ")[0] not in message else "", message]
            texts += [outside_words(group.instance, of)] if code == "TopologyTooNarrow" else []
            existing = (
                f"for its {plural(len(of.pending), 'pending pod')}: " if "GangIncomplete" in codes - {code} else ""
            )
            message = existing + "; ".join(filter(None, texts))
            found.append(GroupCause(code, rules_of(code, of), message))  # type: ignore[arg-type]  # keys of RULES_OF
    return tuple(found)


def _message(group: LoneGroup, code: str, codes: frozenset[str]) -> str:
    cause, placement = group.confirmed(codes - {code}).cause, group.fits(codes).placement or Placement()
    if cause is not None and cause.code == code:
        return cause.reason.message.replace(f" ({TRIED})", "")  # every claim here is decided twice
    said = _missing(group, codes, placement) if code == "InsufficientResources" else ""
    if code == "NoEligibleNode":
        said = refused_words(group.instance, placement)
    return said or f"fits {_CONDITION.get(code, 'without this rule')}"


def _missing(group: LoneGroup, codes: frozenset[str], placement: Placement) -> str:
    rest = codes - {"InsufficientResources"}
    kept, cause = lift_causes(group.instance, group.key, rest), group.confirmed(rest).cause
    narrow = cause is not None and cause.code == "TopologyTooNarrow" and _asks_for_tiers_alone(kept, group.key)
    return shortage_words(kept, placement, cause.nodes if cause is not None and narrow else None)


def _asks_for_tiers_alone(instance: Instance, key: GroupKey) -> bool:
    group = instance.groups[key]
    pods = (instance.pods[each] for each in group.pending)
    return not group.policies and not any(pod.neighbours or pod.workload is not None for pod in pods)
