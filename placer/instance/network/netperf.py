"""Measurements of the network between nodes, as a ConfigMap holds them.

A key names the percentile, the unit, and the two nodes; both spellings that are in use are read:

=========================================================================  ==========================================
key                                                                        who
=========================================================================  ==========================================
``netperf.p90.latency.milliseconds.origin.NODE.destination.NODE``          what the shipped controller looks for
``netperf_p90_latency_microseconds.origin.NODE.destination.NODE``          what the published netperf component writes
=========================================================================  ==========================================

The shipped controller knows the first one only, so that with the published component every cost is 0. It also takes
a missing measurement and one that is no integer for 0; here either is none at all, and the latter is a finding.

Source: diktyo-io/networktopology-controller (5db810e), jpedro1992/pushing-netperf-metrics-to-prometheus (fde00c9).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import NamedTuple

from placer.codes import FindingCode
from placer.instance.findings import counted
from placer.instance.model import Finding
from placer.instance.pod import Key
from placer.kube.core import ConfigMapManifest
from placer.kube.diktyo import NetworkTopologyManifest

__all__ = ["NETPERF_COSTS", "Measurements", "Pair", "find_config_map", "read_measurements"]

#: Name of the list of measured costs; all others are the user's.
NETPERF_COSTS = "NetperfCosts"

_KEY = re.compile(r"netperf[._]p([0-9]{1,3})[._]latency[._](milliseconds|microseconds)\.origin\.(.+)", re.DOTALL)
_VALUE = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")
_BETWEEN = ".destination."
_MICROSECONDS = {"milliseconds": 1000, "microseconds": 1}


class Pair(NamedTuple):
    """Two nodes, by name."""

    origin: str
    destination: str


@dataclass(frozen=True, slots=True)
class Measurements:
    """What was measured.

    Parameters
    ----------
    latencies
        Microseconds from one node to another, at least 0; rounded up.
    findings
        Entries that cannot be used, one finding for each kind of them.
    """

    latencies: Mapping[Pair, int]
    findings: tuple[Finding, ...] = ()


class _Entry(NamedTuple):
    """One entry of the ConfigMap."""

    key: str
    value: str
    percentile: int
    unit: str
    nodes: str


def find_config_map(
    topology: NetworkTopologyManifest, config_maps: Iterable[ConfigMapManifest]
) -> tuple[ConfigMapManifest | None, Key | None]:
    """Find the ConfigMap that a NetworkTopology names, in its own namespace; and what it names, None where nothing."""
    name = topology.spec.configmap_name if topology.spec is not None else None
    if not name:
        return None, None
    key = Key(topology.namespace, name)
    return next((each for each in config_maps if Key(each.namespace, each.name) == key), None), key


def read_measurements(config_map: ConfigMapManifest, nodes: Container[str], percentile: int = 90) -> Measurements:
    """Read the measurements of one percentile.

    Parameters
    ----------
    config_map
        The object that a NetworkTopology names.
    nodes
        Names of the nodes there are.
    percentile
        Which one, such as 50, 90 or 99.

    Returns
    -------
    Measurements
        Where a pair of nodes is there in both units, what is in microseconds counts: it is the finer one.
    """
    finest: dict[Pair, tuple[int, int]] = {}
    unused: dict[FindingCode, set[str]] = defaultdict(set)
    others: set[int] = set()
    for entry in _entries(config_map.data or {}, unused):
        if entry.percentile != percentile:
            others.add(entry.percentile)
            continue
        pair = _pair(entry.nodes, nodes)
        if pair is None:
            unused["NetperfNode"].add(entry.key)
        elif not _VALUE.fullmatch(entry.value):
            unused["NetperfValue"].add(f"{entry.key} = {entry.value[:40]!r}")
        else:
            factor = _MICROSECONDS[entry.unit]
            value = int((Decimal(entry.value) * factor).to_integral_value(ROUND_CEILING))
            finest[pair] = min(finest.get(pair, (factor, value)), (factor, value))
    latencies = {pair: value for pair, (_, value) in sorted(finest.items())}
    return Measurements(
        latencies, tuple(_findings(config_map, unused, () if latencies else sorted(others), percentile))
    )


def _entries(data: Mapping[str, str], unused: Mapping[FindingCode, set[str]]) -> Iterator[_Entry]:
    """Entries that are measurements; a key that begins like one and is none is noted, any other passed over."""
    for key, value in data.items():
        match = _KEY.fullmatch(key)
        if match is not None:
            yield _Entry(key, value.strip(), int(match[1]), match[2], match[3])
        elif key.startswith("netperf"):
            unused["NetperfKey"].add(key)


def _pair(text: str, nodes: Container[str]) -> Pair | None:
    """The two nodes, of which each may have dots in its name; None where there is no such node."""
    parts = text.split(_BETWEEN)
    for cut in range(1, len(parts)):
        pair = Pair(_BETWEEN.join(parts[:cut]), _BETWEEN.join(parts[cut:]))
        if pair.origin in nodes and pair.destination in nodes:
            return pair
    return None


def _findings(
    config_map: ConfigMapManifest,
    unused: Mapping[FindingCode, set[str]],
    others: tuple[int, ...] | list[int],
    percentile: int,
) -> Iterator[Finding]:
    subject = f"ConfigMap {config_map.namespace}/{config_map.name}"
    words: dict[FindingCode, str] = {
        "NetperfKey": "no key of a measurement that is known",
        "NetperfNode": "not two nodes that are there",
        "NetperfValue": "no number of at least 0",
    }
    for code, keys in sorted(unused.items()):
        yield Finding(code, subject, f"{subject}: {counted(keys)}: {words[code]}, so not used")
    if others:
        there = ", ".join(f"p{each}" for each in others)
        yield Finding("NetperfPercentile", subject, f"{subject} has no measurement of p{percentile}, but of {there}")
