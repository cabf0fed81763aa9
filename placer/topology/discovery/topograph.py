"""The JSON of the graph engine of NVIDIA's topograph; accelerated domains are a tier where each is below one switch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from placer.base.errors import BadInstance, Fault
from placer.base.text import shown
from placer.topology.discovery.switches import Discovery, SwitchRecord, discover_switches


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
    notes: tuple[str, ...] = ()
    wide = _wide(found)
    if wide:
        notes = (
            f"{len(wide):,} accelerated domains, such as {shown(min(wide))}, lie below several switches: all of "
            "them are left out",
        )
    made = discover_switches(_records(found, accelerated=not wide), source)
    return Discovery(made.tree, made.titles, made.labels, made.findings, (*made.notes, *notes))


def _instance(entry: object, place: str, source: str, faults: list[Fault]) -> _GraphHost | None:
    if isinstance(entry, dict):
        host, layers = entry.get("id"), entry.get("network_layers") or []
        accelerator = (entry.get("attributes") or {}).get("nvlink") or ""
        if _are_texts(host, accelerator, layers):
            return _GraphHost(str(host), tuple(each for each in layers if each), accelerator, place)
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


def _are_texts(host: object, accelerator: object, layers: object) -> bool:
    listed = layers if isinstance(layers, list) else [None]
    return bool(host) and all(isinstance(each, str) for each in (host, accelerator, *listed))
