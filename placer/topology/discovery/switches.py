"""Records of switches, each with its hosts and the switches below it, to a tier tree.

Switches with the same hosts and the same switches below them, such as rails, are one domain. The graph engine of
NVIDIA's topograph writes such records as JSON; accelerated domains are a tier where each is below one switch.
"""

from __future__ import annotations

import graphlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from placer.base.errors import BadInstance, Fault
from placer.base.text import shown
from placer.problem import Finding, HyperNode, TopologyTree
from placer.problem.domains import natural


@dataclass(frozen=True, slots=True)
class SwitchRecord:
    """A switch, or another domain, of a description; ``name`` is unique, ``place`` is for messages."""

    name: str
    hosts: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    place: str = ""
    tier_name: str = ""


def discover_switches(records: Sequence[SwitchRecord], source: str) -> Discovery:
    """Make the tree of switches, from records in any order; :class:`BadInstance` has every fault."""
    faults: list[Fault] = []
    by_name = _by_name(records, source, faults)
    order = _order(by_name, source, faults)
    if faults:
        raise BadInstance(faults)
    merged, domains = _merge(order, by_name)
    faults += _two_homes(domains, by_name, source)
    if faults:
        raise BadInstance(faults)
    together: dict[str, list[str]] = defaultdict(list)
    for name, domain in merged.items():
        together[domain].append(name)
    titles = {name: ", ".join(sorted(each, key=natural)) for name, each in together.items() if len(each) > 1}
    return Discovery(tree_from(domains, by_name), titles=titles, notes=merged_note(together.values()))


def merged_note(together: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """A note of the switches that were taken for one domain; empty: none."""
    several = sorted((sorted(each, key=natural) for each in together if len(each) > 1), key=lambda each: each[0])
    if not several:
        return ()
    count = sum(map(len, several))
    first = several[0]
    others = f" and {len(first) - 4} more" if len(first) > 4 else ""
    example = f"{', '.join(map(shown, first[:4]))}{others}"
    word = "domain" if len(several) == 1 else "domains"
    return (f"{count:,} switches have the same hosts and make {len(several):,} {word}, such as {example}",)


def tree_from(
    domains: Mapping[str, tuple[Iterable[str], Iterable[str]]],
    records: Mapping[str, SwitchRecord] | None = None,
    tiers: Mapping[str, int] = MappingProxyType({}),
) -> TopologyTree:
    """Make a tree of domains that have one parent at most, each before its parent."""
    parents = {child: name for name, (_, below) in domains.items() for child in below}
    tiers = dict(tiers)
    for name, (_, below) in domains.items():
        tiers.setdefault(name, 1 + max((tiers[child] for child in below), default=0))
    made = {
        name: HyperNode(
            name=name,
            tier=tiers[name],
            tier_name=records[name].tier_name if records else "",
            parent=parents.get(name),
            children=tuple(sorted(domains[name][1])),
            nodes=tuple(sorted(domains[name][0])),
        )
        for name in sorted(domains)
    }
    return TopologyTree(made, root_tier=1 + max(tiers.values(), default=0))


def _by_name(records: Sequence[SwitchRecord], source: str, faults: list[Fault]) -> dict[str, SwitchRecord]:
    found: dict[str, SwitchRecord] = {}
    for record in records:
        subject = f"switch {shown(record.name)}"
        if record.name in found:
            what = f"it again, after {found[record.name].place}"
            faults.append(Fault(source, None, subject, record.place, what, "each switch once"))
        elif not record.hosts and not record.children:
            faults.append(Fault(source, None, subject, record.place, "neither hosts nor switches", "one of them"))
        found.setdefault(record.name, record)
    for record in records:
        for child in record.children:
            if child not in found:
                what = f"switch {shown(child)} below it, which is not described"
                faults.append(
                    Fault(source, None, f"switch {shown(record.name)}", record.place, what, "a switch that is")
                )
    return found


def _order(by_name: Mapping[str, SwitchRecord], source: str, faults: list[Fault]) -> list[str]:
    graph = {name: [child for child in by_name[name].children if child in by_name] for name in sorted(by_name)}
    try:
        return list(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        circle = ", ".join(map(shown, dict.fromkeys(error.args[1])))
        faults.append(Fault(source, None, f"switches {circle}", "", "each below the other, in a circle", "a tree"))
        return []


def _merge(
    order: Sequence[str], by_name: Mapping[str, SwitchRecord]
) -> tuple[dict[str, str], dict[str, tuple[frozenset[str], frozenset[str]]]]:
    same: dict[tuple[frozenset[str], frozenset[str]], list[str]] = defaultdict(list)
    merged: dict[str, str] = {}
    heights: dict[str, int] = {}
    for name in order:
        heights[name] = 1 + max((heights[child] for child in by_name[name].children), default=0)
    domains: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
    for height in range(1, 1 + max(heights.values(), default=0)):
        same.clear()
        for name in order:
            if heights[name] == height:
                record = by_name[name]
                same[frozenset(record.hosts), frozenset(merged[child] for child in record.children)].append(name)
        for content, names in same.items():
            first = min(names, key=natural)
            domains[first] = content
            merged.update(dict.fromkeys(names, first))
    return merged, domains


def _two_homes(
    domains: Mapping[str, tuple[frozenset[str], frozenset[str]]], by_name: Mapping[str, SwitchRecord], source: str
) -> list[Fault]:
    homes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, (hosts, below) in domains.items():
        for host in hosts:
            homes["host", host].append(name)
        for child in below:
            homes["switch", child].append(name)
    faults = []
    for (kind, name), found in sorted(homes.items()):
        if len(found) > 1:
            told = ", ".join(f"{shown(each)} ({by_name[each].place})" for each in sorted(found, key=natural))
            what, expected = f"it on {len(found)} switches: {told}", "one, or switches with the same hosts"
            faults.append(Fault(source, None, f"{kind} {shown(name)}", "", what, expected))
    return faults


@dataclass(frozen=True, slots=True)
class Discovery:
    """A tier tree by names of the source; tiers grow from 1 to the roots.

    ``titles``: domain to its full name. ``labels``: domain to labels of all of its nodes. ``notes``: decisions where
    the source leaves a choice.
    """

    tree: TopologyTree
    titles: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _GraphHost:
    host: str
    layers: tuple[str, ...]
    accelerator: str
    place: str


def discover_graph(document: Mapping[str, Any], source: str) -> Discovery:
    """Read the JSON of the graph engine; :class:`BadInstance` has every fault."""
    faults: list[Fault] = []
    listed = document.get("instances")
    if not isinstance(listed, list) or not listed:
        raise BadInstance([Fault(source, None, "", "instances", "none", "a list of instances")])
    read = [_instance(each, f"instances[{index}]", source, faults) for index, each in enumerate(listed)]
    if faults:
        raise BadInstance(faults)
    found = [each for each in read if each is not None]
    wide = _wide(found)
    made = discover_switches(_records(found, accelerated=not wide), source)
    if not wide:
        return made
    lie = f"{len(wide):,} accelerated domains, such as {shown(min(wide))}, lie below several switches"
    return replace(made, notes=(*made.notes, f"{lie}: all of them are left out"))


def _instance(entry: object, place: str, source: str, faults: list[Fault]) -> _GraphHost | None:
    if isinstance(entry, dict):
        host, layers = entry.get("id"), entry.get("network_layers") or []
        accelerator = (entry.get("attributes") or {}).get("nvlink") or ""
        listed = layers if isinstance(layers, list) else [None]
        if host and all(isinstance(each, str) for each in (host, accelerator, *listed)):
            return _GraphHost(str(host), tuple(filter(None, layers)), accelerator, place)
    faults.append(Fault(source, None, "", place, shown(repr(entry)), "id and network_layers, which are texts"))
    return None


def _wide(found: Sequence[_GraphHost]) -> set[str]:
    above: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for each in found:
        if each.accelerator:
            above[each.accelerator].add(each.layers[:1])
    return {name for name, switches in above.items() if len(switches) > 1}


def _records(found: Sequence[_GraphHost], *, accelerated: bool) -> list[SwitchRecord]:
    hosts: dict[str, dict[str, None]] = defaultdict(dict)
    below: dict[str, dict[str, None]] = defaultdict(dict)
    places: dict[str, str] = {}
    for each in found:
        path = ([f"nvlink/{each.accelerator}"] if accelerated and each.accelerator else []) + list(each.layers)
        for name in path:
            places.setdefault(name, each.place)
        if path:
            hosts[path[0]][each.host] = None
        for near, wide in pairwise(path):
            below[wide][near] = None
    return [SwitchRecord(name, tuple(hosts[name]), tuple(below[name]), place) for name, place in places.items()]
