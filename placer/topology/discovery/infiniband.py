"""The output of ``ibnetdiscover`` to a tier tree.

A domain of tier t is a set of hosts and switches that are linked without going higher than level t. A switch with hosts
is of level 1, any other of the level above the lowest that it is linked to. A link joins its ends at the level of the
higher one, between equals at the next. A host on a core switch would join too much, so hosts that are no nodes are left
out first.

Source: rdma-core, manual page ibnetdiscover(8), "Topology file format".
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from placer.base.errors import BadInstance, Fault
from placer.base.text import shown
from placer.base.words import counted
from placer.problem.domains import natural
from placer.problem.findings import Findings
from placer.topology.discovery.switches import Discovery, merged_note, tree_from

if TYPE_CHECKING:
    from networkx.utils import UnionFind  # takes half a second

#: ``Switch  36 "S-0002c9020046c588"  # "description" ...``, likewise Ca and Rt.
_RECORD = re.compile(r'(Switch|Ca|Rt)\s+\d+\s+"(\w-[0-9a-fA-F]{1,16})"\s*(?:#\s*"(.*?)"(?=\s|$).*)?')
#: ``[1](port guid)  "S-0002c9020046c588"[33](port guid)  # ...``; chassis have ports ``[1][ext 2]``.
_LINK = re.compile(
    r"\[\d+\](?:\[ext \d+\])?(?:\([0-9a-fA-F]+\))?\s+"
    r'"(\w-[0-9a-fA-F]{1,16})"\[\d+\](?:\[ext \d+\])?(?:\([0-9a-fA-F]+\))?\s*(?:#|$)'
)
_HEADS = ("vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid=", "rtguid=", "#", "Non-Chassis Nodes")
_OTHER = re.compile(r"Chassis \d+.*|DIFF\b.*", re.DOTALL)
#: ``MF0;name:model/U1`` of a managed switch; of a director's modules the model ends in the module, too.
_MANAGED = re.compile(r"[^;:]+;([^;:\s]+):[^;:]+")
#: ``name device`` of a host, ``(vendor's words)`` behind it or not.
_HOST = re.compile(r"(\S+)(?:\s+(?:HCA-\d+|[A-Za-z]+\d*_\w+|ib\w*|roce\w*))?(?:\s+\(.*\))?")
_NO_NAMES = ("localhost", "localhost.localdomain", "(none)")
_TOLD = 200  #: faults that are told one by one


@dataclass(slots=True)
class _Description:
    kinds: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    links: set[tuple[str, str]] = field(default_factory=set)

    def of(self, kind: str) -> list[str]:
        return [each for each, found in self.kinds.items() if found == kind]


def discover_infiniband(text: str, source: str, is_node: Callable[[str], bool] = lambda _: True) -> Discovery:
    """Find the domains of an InfiniBand fabric in the output of ``ibnetdiscover``; BadInstance has every fault."""
    fabric = _read(text, source)
    findings = Findings()
    hosts = _hosts(fabric, findings)
    known = {device: name for device, name in hosts.items() if is_node(name)}
    if not known:
        found = f"{len(fabric.of('Switch')):,} switches and {len(hosts):,} hosts with a name"
        raise BadInstance([Fault(source, None, "", "", found, "hosts whose names are those of nodes")])
    joined = _Joined(fabric, known)
    if not joined.on:
        found = f"{len(fabric.of('Switch')):,} switches and {counted(len(known), 'host')}, no link between them"
        raise BadInstance([Fault(source, None, "", "", found, "a Switch with a link to a host's channel adapter")])
    return _discovery(_Levels(joined, _switch_names(fabric)), findings, len(hosts) - len(known))


def _read(text: str, source: str) -> _Description:
    fabric, faults, named = _Description(), list[Fault](), dict[str, int]()
    current = ""
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("["):
            known = _read_link(stripped, current, number, fabric, named)
        elif not stripped or stripped.startswith(_HEADS):
            known = True
        elif match := _RECORD.fullmatch(stripped):
            current, known = match[2].lower(), True
            fabric.kinds[current], fabric.words[current] = match[1], match[3] or ""
        else:
            known = _OTHER.fullmatch(stripped) is not None
        if not known and len(faults) < _TOLD:
            faults.append(Fault(source, None, "", f"line {number}", shown(stripped), "a line of ibnetdiscover"))
    faults += _undescribed(fabric, named, source)
    if faults:
        raise BadInstance(faults)
    return fabric


def _read_link(line: str, current: str, number: int, fabric: _Description, named: dict[str, int]) -> bool:
    match = _LINK.match(line)
    if match is None or not current:
        return False
    peer = match[1].lower()
    named.setdefault(peer, number)
    fabric.links.add((current, peer) if current < peer else (peer, current))
    return True


def _undescribed(fabric: _Description, named: Mapping[str, int], source: str) -> list[Fault]:
    missing = [(device, number) for device, number in named.items() if device not in fabric.kinds]
    return [
        Fault(source, None, "", f"line {number}", f"a link to {device}, which is not described", "its record")
        for device, number in missing[:_TOLD]
    ]


def _hosts(fabric: _Description, findings: Findings) -> dict[str, str]:
    found, without = dict[str, str](), set[str]()
    for device in fabric.of("Ca"):
        words = fabric.words[device]
        match = _HOST.fullmatch(words)
        if "Aggregation Node" in words:
            continue  # of a switch, for reductions in the network
        if match is None or match[1].lower() in _NO_NAMES:
            without.add(device)
        else:
            found[device] = match[1]
    if without:
        first = min(without)
        told = f"{counted(len(without), 'channel adapter')} without a host's name, such as {first}"
        findings.add("HostWithoutName", first, f"{told} ({shown(fabric.words[first])}): left out")
    return found


def _switch_names(fabric: _Description) -> dict[str, str]:
    said = {device: _said(fabric.words[device]) for device in fabric.of("Switch")}
    count = Counter(said.values())
    names = {}
    for device, name in said.items():
        guid = device.partition("-")[2]
        names[device] = f"switch-{guid}" if not name else name if count[name] == 1 else f"{name}-{guid}"
    return names


def _said(words: str) -> str:
    match = _MANAGED.fullmatch(words)
    if match is not None:
        return match[1]
    return words if words and not re.search(r"[\s;:]", words) else ""


class _Joined:
    def __init__(self, fabric: _Description, hosts: Mapping[str, str]) -> None:
        self.on: dict[str, set[str]] = defaultdict(set)  #: switch to its hosts
        self.linked: dict[str, set[str]] = defaultdict(set)  #: switch to switches
        for one, two in fabric.links:
            kinds = fabric.kinds[one], fabric.kinds[two]
            if kinds == ("Switch", "Switch"):
                self.linked[one].add(two)
                self.linked[two].add(one)
            elif "Switch" in kinds:
                switch, adapter = (one, two) if kinds[0] == "Switch" else (two, one)
                if adapter in hosts:
                    self.on[switch].add(hosts[adapter])
        self.levels = self._levels()
        self.highest = max(self.levels.values(), default=0)

    def _levels(self) -> dict[str, int]:
        levels = dict.fromkeys(self.on, 1)
        frontier = list(levels)
        while frontier:
            above = {each for switch in frontier for each in self.linked[switch] if each not in levels}
            levels.update(dict.fromkeys(above, levels[frontier[0]] + 1))
            frontier = sorted(above)
        return levels

    def sets(self) -> Iterator[tuple[int, list[list[str]]]]:
        """One level more than there are where a link of equals joins."""
        from networkx.utils import UnionFind

        joined, first = UnionFind(self.levels), dict[str, str]()
        for switch in sorted(self.on):
            for host in self.on[switch]:
                joined.union(switch, first.setdefault(host, switch))
        yield 1, self._found(joined, 1)
        links: dict[int, list[tuple[str, str]]] = defaultdict(list)
        for one in self.levels:
            for two in self.linked[one]:
                if one < two:
                    low, high = sorted((self.levels[one], self.levels[two]))
                    links[high + (low == high)].append((one, two))
        for level in range(2, max(links, default=1) + 1):
            for link in links[level]:
                joined.union(*link)
            yield level, self._found(joined, level)

    def _found(self, joined: UnionFind[str], level: int) -> list[list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for switch, its in self.levels.items():
            if its <= level:
                found[joined[switch]].append(switch)
        return list(found.values())


class _Levels:
    def __init__(self, joined: _Joined, names: Mapping[str, str]) -> None:
        self._joined, self._names = joined, names
        self.domains: dict[str, tuple[set[str], set[str]]] = {}  #: to its hosts and the domains below it
        self.tiers: dict[str, int] = {}
        self.titles: dict[str, str] = {}
        self._at: dict[str, str] = {}  #: switch to the widest domain so far that it is in
        for level, sets in joined.sets():
            for switches in sets:
                self._add(level, switches)

    def _add(self, level: int, switches: Sequence[str]) -> None:
        below = {self._at[each] for each in self._at.keys() & switches}
        own = self._named(each for each in switches if self._joined.levels[each] == level)
        if len(below) == 1 and not own:
            return
        first = (own or self._named(switches))[0]
        name = first if first not in self.domains else f"{first}-tier{level}"
        hosts = set[str]().union(*map(self._joined.on.__getitem__, switches)) if level == 1 else set()
        self.domains[name], self.tiers[name], self.titles[name] = (hosts, below), level, ", ".join(own) or name
        self._at.update(dict.fromkeys(switches, name))

    def _named(self, switches: Iterable[str]) -> list[str]:
        return sorted((self._names[each] for each in switches), key=natural)


def _discovery(levels: _Levels, findings: Findings, others: int) -> Discovery:
    titles, tiers = levels.titles, levels.tiers
    notes = [*merged_note([titles[name].split(", ") for name in tiers if tiers[name] == 1])]
    notes += _linked_note(titles, tiers)
    if others:
        notes.append(f"{counted(others, 'channel adapter')} in hosts that are no nodes: left out")
    tree = tree_from(levels.domains, tiers=tiers)
    return Discovery(tree, titles=titles, findings=findings.all(), notes=tuple(notes))


def _linked_note(titles: Mapping[str, str], tiers: Mapping[str, int]) -> Iterator[str]:
    for tier in sorted(set(tiers.values()) - {1}):
        several = [name for name in sorted(tiers, key=natural) if tiers[name] == tier and ", " in titles[name]]
        if several:
            count = sum(titles[name].count(", ") + 1 for name in several)
            word = "domain" if len(several) == 1 else "domains"
            told = f"{count:,} switches of level {tier} make {len(several):,} {word} by their links"
            yield f"{told}, such as {shown(titles[several[0]])}"
