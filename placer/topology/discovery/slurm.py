"""Slurm's ``topology.conf``, ``topology.yaml`` (manual pages of section 5) and hostlists (``src/common/hostlist.c``).

Blocks are of tier 1; of several BlockSizes each makes a tier. A ring, a torus and flat have no domains.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from placer.base.errors import BadInstance, Fault, UsageError
from placer.base.text import found_like, shown
from placer.topology.discovery.switches import Discovery, SwitchRecord, discover_switches

_PAIR = re.compile(r"\s*(\w+)\s*=\s*(?:\"([^\"]*)\"|(\S+))(?=\s|$)")
_KEYS = {
    "switchname": ("nodes", "switches", "linkspeed"),
    "blockname": ("nodes",),
    "blocksizes": (),
    "ringname": ("nodes",),
}
_TREE, _BLOCK = "tree", "block"


class _Reading:
    def __init__(self, source: str) -> None:
        self.source = source
        self.records: list[SwitchRecord] = []
        self.sizes: tuple[int, ...] = ()
        self.faults: list[Fault] = []

    def fault(self, place: str, found: str, expected: str) -> None:
        self.faults.append(Fault(self.source, None, "", place, found, expected))

    def names(self, text: object, place: str) -> tuple[str, ...]:
        if text is None:
            return ()
        try:
            if isinstance(text, str) and text.upper() != "ALL":
                return tuple(dict.fromkeys(expand(text)))
            wrong = shown(repr(text))
        except ValueError as error:
            wrong = shown(str(error), 200)
        self.fault(place, wrong, "a hostlist such as tux[0-3,12]")
        return ()

    def size_list(self, sizes: Sequence[object], place: str) -> None:
        told = ",".join(map(str, sizes))
        numbers = [int(each) for each in told.split(",") if re.fullmatch(r"\d{1,9}", each)]
        base = numbers[0] if len(numbers) == len(sizes) else 0
        if not base or any(each % base or (each // base).bit_count() > 1 for each in numbers):
            self.fault(place, shown(told), "the size of a block, and then that times powers of two")
        elif sorted(set(numbers)) != numbers:
            self.fault(place, shown(told), "sizes that grow")
        else:
            self.sizes = tuple(each // base for each in numbers)

    def done(self) -> Discovery:
        if not self.records and not self.faults:
            self.fault("", "no switch and no block", "at least one")
        if self.faults:
            raise BadInstance(self.faults)
        return discover_switches([*self.records, *_joined(self.records, self.sizes)], self.source)


def _joined(blocks: Sequence[SwitchRecord], sizes: Sequence[int]) -> Iterator[SwitchRecord]:
    below = [(each.name, each.name, each.name) for each in blocks]  # the domain, and its first and last block
    before = 1
    for size in sizes[1:]:
        above = []
        for start in range(0, len(below), size // before):
            parts = below[start : start + size // before]
            if len(parts) == 1:
                above.append(parts[0])
                continue
            first, last = parts[0][1], parts[-1][2]
            name = f"{first}-to-{last}-of-{size}"
            place = f"blocks {first} to {last}"
            yield SwitchRecord(name, (), tuple(each[0] for each in parts), place, f"{size} blocks")
            above.append((name, first, last))
        below, before = above, size


# ----------------------------------------------------------------------------------------------------------------- conf


def discover_topology_conf(text: str, source: str, topology: str | None = None) -> Discovery:
    """Read a ``topology.conf``; ``topology`` is ``tree`` or ``block``, where it has both, else UsageError."""
    reading = _Reading(source)
    trees, blocks = list[SwitchRecord](), list[SwitchRecord]()
    for number, line in _lines(text):
        place = f"line {number}"
        fields = _fields(line, place, reading)
        if "switchname" in fields:
            nodes, below = (reading.names(fields.get(key), place) for key in ("nodes", "switches"))
            trees.append(SwitchRecord(fields["switchname"], nodes, below, place))
        elif "blockname" in fields:
            nodes = reading.names(fields.get("nodes"), place)
            blocks.append(SwitchRecord(fields["blockname"], nodes, (), place, _BLOCK))
        elif "blocksizes" in fields:
            reading.size_list(fields["blocksizes"].split(","), place)
        elif "ringname" in fields:
            reading.fault(place, "a ring, which has no domains", "SwitchName or BlockName")
    kind = _chosen(topology, [_TREE] * bool(trees) + [_BLOCK] * bool(blocks), source)
    reading.records = blocks if kind == _BLOCK else trees
    if kind != _BLOCK:
        reading.sizes = ()
    return reading.done()


def _chosen(wanted: str | None, there: Sequence[str], source: str) -> str | None:
    if wanted is not None and wanted not in there:
        known = (", ".join(map(shown, there)) or "none") + found_like(wanted, there)
        raise UsageError(f"--topology: found {wanted!r}, expected one of those in {source}: {known}")
    if wanted is None and len(there) > 1:
        known = ", ".join(map(shown, there))
        raise UsageError(f"{source}: found the topologies {known}, expected --topology with the name of one")
    return wanted if wanted is not None else next(iter(there), None)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start, kept = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        start = start or number
        part = re.sub(r"(?<!\\)#.*", "", line).rstrip()
        if part.endswith("\\"):
            kept += part[:-1] + " "
            continue
        if (kept + part).strip():
            yield start, kept + part
        start, kept = 0, ""
    if kept.strip():
        yield start, kept


def _fields(line: str, place: str, reading: _Reading) -> dict[str, str]:
    found: dict[str, str] = {}
    end = 0
    while match := _PAIR.match(line, end):
        key, end = match[1].lower(), match.end()
        known = _KEYS[next(iter(found))] if found else tuple(_KEYS)
        if key in found:
            reading.fault(place, f"{match[1]} twice", "each key once")
        elif key not in known:
            expected = f"one of {', '.join(known)}{found_like(key, known)}" if known else "nothing more"
            reading.fault(place, shown(match[1]), expected)
            return {}
        found[key] = match[2] if match[2] is not None else match[3]
    if line[end:].strip():
        reading.fault(place, shown(line[end:].strip()), "KEY=VALUE")
        return {}
    return found


# ----------------------------------------------------------------------------------------------------------------- yaml


def discover_topology_yaml(document: object, source: str, topology: str | None = None) -> Discovery:
    """Read the YAML value of a ``topology.yaml``; ``topology`` None: the default, or the only one, else UsageError."""
    reading = _Reading(source)
    entries = _entries(document, "topologies", reading)
    by_name = {_text(each, "topology", f"topologies[{index}]", reading): each for index, each in enumerate(entries)}
    if reading.faults:
        raise BadInstance(reading.faults)
    defaults = [name for name, each in by_name.items() if _value(each, "cluster_default") is True]
    chosen = _chosen(topology, defaults[:1] if defaults and topology is None else list(by_name), source)
    if chosen is not None:
        _read_topology(by_name[chosen], f"topology {shown(chosen)}", reading)
    return reading.done()


def _value(entry: Mapping[str, Any], key: str) -> Any:
    """NVIDIA's topograph spells keys in camel case."""
    head, *rest = key.split("_")
    return entry.get(key, entry.get(head + "".join(map(str.capitalize, rest))))


def _read_topology(entry: Mapping[str, Any], place: str, reading: _Reading) -> None:
    tree, block = _value(entry, _TREE), _value(entry, _BLOCK)
    if isinstance(tree, dict):
        _read_named(tree, "switches", "switch", "", f"{place}: tree", reading)
    elif isinstance(block, dict):
        _read_named(block, "blocks", "block", _BLOCK, f"{place}: block", reading)
        sizes = _value(block, "block_sizes")
        if sizes is not None:
            listed = sizes if isinstance(sizes, list) else str(sizes).split(",")
            reading.size_list(listed, f"{place}: block.block_sizes")
    else:
        beside = ("topology", "cluster_default", "clusterDefault")
        keys = ", ".join(shown(str(key)) for key in entry if key not in beside)
        reading.fault(place, keys or "nothing but its name", "tree or block, which have domains")


def _read_named(part: Mapping[str, Any], key: str, name: str, tier_name: str, place: str, reading: _Reading) -> None:
    for index, each in enumerate(_entries(part.get(key), f"{place}.{key}", reading)):
        at = f"{place}.{key}[{index}]"
        nodes, below = (reading.names(each.get(names), f"{at}.{names}") for names in ("nodes", "children"))
        reading.records.append(SwitchRecord(_text(each, name, at, reading), nodes, below, at, tier_name))


def _entries(value: object, place: str, reading: _Reading) -> list[dict[str, Any]]:
    if isinstance(value, list) and all(isinstance(each, dict) for each in value):
        return value
    reading.fault(place, type(value).__name__ if value is not None else "nothing", "a list of mappings")
    return []


def _text(entry: Mapping[str, Any], key: str, place: str, reading: _Reading) -> str:
    value = entry.get(key)
    if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value):
        return str(value)
    reading.fault(f"{place}.{key}", shown(repr(value)), "a name")
    return ""


MOST_NAMES = 1_000_000

_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)


def expand(text: str) -> list[str]:
    """Names of a hostlist, in its order, or ValueError.

    Examples
    --------
    >>> expand("tux[0-2,08-09],r[1-2]n[1-2]-ib")
    ['tux0', 'tux1', 'tux2', 'tux08', 'tux09', 'r1n1-ib', 'r1n2-ib', 'r2n1-ib', 'r2n2-ib']
    """
    names: list[str] = []
    for part in _parts(text):
        pieces = list(_pieces(part))
        count = len(names)
        for piece in pieces:
            count = max(count, 1) * sum(high - low + 1 for low, high, _ in piece) if isinstance(piece, list) else count
        if count > MOST_NAMES:
            raise ValueError(f"more than {MOST_NAMES:,} names")
        choices = [[piece] if isinstance(piece, str) else list(_numbers(piece)) for piece in pieces]
        names += map("".join, product(*choices))
    return names


def _parts(text: str) -> Iterator[str]:
    start, inside = 0, False
    for place, character in enumerate(text):
        if character in "[]":
            if inside is (character == "["):
                raise ValueError(f"{text!r}, whose brackets do not pair")
            inside = not inside
        elif character == "," and not inside:
            yield _named(text[start:place], text)
            start = place + 1
    if inside:
        raise ValueError(f"{text!r}, whose brackets do not pair")
    yield _named(text[start:], text)


def _named(part: str, text: str) -> str:
    if not part or re.search(r"\s", part):
        raise ValueError(f"{text!r} with an empty name or a space")
    return part


def _pieces(part: str) -> Iterator[str | list[tuple[int, int, int]]]:
    for index, piece in enumerate(re.split(r"[\[\]]", part)):
        if index % 2 == 0:
            yield piece
            continue
        ranges = []
        for each in piece.split(","):
            match = _RANGE.fullmatch(each)
            if match is None or int(match[2] or match[1]) < int(match[1]):
                raise ValueError(f"{part!r} with the range {each!r}")
            ranges.append((int(match[1]), int(match[2] or match[1]), len(match[1])))
        yield ranges


def _numbers(ranges: list[tuple[int, int, int]]) -> Iterator[str]:
    for low, high, width in ranges:
        yield from (f"{number:0{width}d}" for number in range(low, high + 1))
