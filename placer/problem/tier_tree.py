"""From HyperNode objects, or labels of nodes, to the tier tree and its tierNames (C7).

Selectors work as in Volcano (``pkg/scheduler/api/hyper_node_info.go``), with RE2, since no pattern can stretch its
time. Broken HyperNodes are left out with all their ancestors (models/reading.md, "broken tree").
"""

from __future__ import annotations

import graphlib
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

import re2

from placer.base.codes import FindingCode
from placer.kube.base import LabelSelector
from placer.problem.eligibility import label_requirements, matches
from placer.problem.findings import Findings
from placer.problem.nodes import HyperNode, Node, Requirement, TopologyTree

if TYPE_CHECKING:
    from placer.kube import volcano
    from placer.kube.volcano import HyperNodeManifest, HyperNodeMember

#: A bad pattern is a finding; RE2 shall not write to standard error on its own.
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 64 << 20


def pattern_error(pattern: str) -> str | None:
    """Why a pattern is no regular expression of RE2; None where it is one."""
    try:
        re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        raw = error.args[0] if error.args else "unknown error"
        return raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    return None


def names_found(patterns: Iterable[str], names: Sequence[str]) -> dict[str, list[str]]:
    """Pattern to the names that contain a match, in the order of ``names``; no pattern may have an error."""
    wanted = sorted(set(patterns))
    found: dict[str, list[str]] = {pattern: [] for pattern in wanted}
    together = _together(wanted)
    if together is None:
        for pattern in wanted:
            compiled = re2.compile(pattern, _OPTIONS)
            found[pattern] = [name for name in names if compiled.search(name)]
        return found
    for name in names:
        for index in together.Match(name) or ():
            found[wanted[index]].append(name)
    return found


def _together(patterns: Sequence[str]) -> re2.Set | None:
    if not patterns:
        return None
    together = re2.Set.SearchSet(_OPTIONS)
    try:
        for pattern in patterns:
            together.Add(pattern)
        together.Compile()
    except re2.error:
        return None
    return together


class TierNames:
    """Tier names of an instance, from ``(HyperNode, tier, tierName)`` of every HyperNode, sound or not."""

    def __init__(self, named: Iterable[tuple[str, int, str]], findings: Findings) -> None:
        self._tiers: dict[str, dict[int, str]] = {}
        for hyper_node, tier, name in sorted(named):
            if name:
                self._tiers.setdefault(name, {}).setdefault(tier, hyper_node)
        self._findings = findings
        for name, tiers in self._tiers.items():
            if len(tiers) > 1:
                where = ", ".join(f"{tier} (HyperNode {hyper_node})" for tier, hyper_node in sorted(tiers.items()))
                subject = f"HyperNode {min(tiers.values())}"
                findings.add("TierNameAmbiguous", subject, f"tierName {name} stands on {len(tiers)} tiers: {where}")

    def tier(self, name: str, subject: str) -> int | None:
        """Tier of the name that ``subject`` uses; None, and a finding, where it has none."""
        tiers = self._tiers.get(name, {})
        if len(tiers) == 1:
            return next(iter(tiers))
        if tiers:
            numbers = " and ".join(map(str, sorted(tiers)))
            message = f"{subject} names tierName {name}, which stands on tiers {numbers}: it admits nothing"
            self._findings.add("TierNameAmbiguous", subject, message)
        else:
            message = f"{subject} names tierName {name}, which no HyperNode has: it admits nothing"
            self._findings.add("TierNameUnknown", subject, message)
        return None


@dataclass(frozen=True, slots=True)
class Members:
    """Existing direct members of a HyperNode."""

    nodes: frozenset[str]
    children: frozenset[str]


class _MemberSelection:
    def __init__(self, hyper_nodes: Sequence[HyperNodeManifest], nodes: Mapping[str, Node], findings: Findings) -> None:
        self._nodes = nodes
        self._hyper_nodes = frozenset(each.name for each in hyper_nodes)
        self._findings = findings
        self._by_pattern = names_found(_patterns(hyper_nodes), tuple(nodes))
        self._labelled: dict[tuple[str, str], list[str]] = {}
        for node in nodes.values():
            for label in node.labels.items():
                self._labelled.setdefault(label, []).append(node.name)

    def members(self, hyper_node: HyperNodeManifest) -> Members:
        nodes: set[str] = set()
        children: set[str] = set()
        for member in hyper_node.spec.members:
            if member.type == "Node":
                nodes.update(self._node_members(hyper_node.name, member))
            else:
                children.update(self._hyper_node_members(hyper_node.name, member))
        return Members(frozenset(nodes), frozenset(children))

    def _node_members(self, owner: str, member: HyperNodeMember) -> Iterable[str]:
        selector = member.selector
        if selector.exact_match is not None:
            return self._existing(owner, "Node", selector.exact_match.name, self._nodes)
        if selector.regex_match is not None:
            return self._found_by_pattern(owner, selector.regex_match.pattern)
        return self._found_by_labels(owner, selector.label_match or LabelSelector())

    def _hyper_node_members(self, owner: str, member: HyperNodeMember) -> Iterable[str]:
        if member.selector.exact_match is not None:
            return self._existing(owner, "HyperNode", member.selector.exact_match.name, self._hyper_nodes)
        way = "regexMatch" if member.selector.regex_match is not None else "labelMatch"
        self._report(owner, f"members of type HyperNode are taken by exactMatch only, and {way} adds none")
        return ()

    def _existing(self, owner: str, kind: str, name: str, known: Container[str]) -> Iterable[str]:
        if name in known:
            return (name,)
        self._report(owner, f"its member {kind} {name} is not in the instance")
        return ()

    def _found_by_pattern(self, owner: str, pattern: str) -> Iterable[str]:
        error = pattern_error(pattern)
        if error is not None:
            self._report(owner, f"its pattern {pattern!r} is no regular expression of RE2: {error}")
            return ()
        names = self._by_pattern[pattern]
        if not names:
            self._report(owner, f"its pattern {pattern!r} takes no node")
        return names

    def _found_by_labels(self, owner: str, selector: LabelSelector) -> Iterable[str]:
        requirements = label_requirements(selector)
        if not requirements:
            self._report(owner, "an empty labelMatch selects no node")
            return ()
        # A label that must have one value narrows the search from all nodes to those that carry it.
        label = next(((each.key, *each.values) for each in requirements if _single(each.operator, each.values)), None)
        names = self._nodes if label is None else self._labelled.get((label[0], label[1]), ())
        found = [name for name in names if matches(requirements, self._nodes[name].labels)]
        if not found:
            self._report(owner, f"its labelMatch {', '.join(map(_worded, requirements))} takes no node")
        return found

    def _report(self, owner: str, what: str) -> None:
        self._findings.add("HyperNodeMember", f"HyperNode {owner}", f"HyperNode {owner}: {what}")


def _worded(requirement: Requirement) -> str:
    if _single(requirement.operator, requirement.values):
        return f"{requirement.key}={requirement.values[0]}"
    return " ".join((requirement.key, requirement.operator, ", ".join(requirement.values))).rstrip()


def _single(operator: str, values: tuple[str, ...]) -> bool:
    return operator == "In" and len(values) == 1


def _patterns(hyper_nodes: Sequence[HyperNodeManifest]) -> Iterator[str]:
    for member in (member for hyper_node in hyper_nodes for member in hyper_node.spec.members):
        regex = member.selector.regex_match
        if member.type == "Node" and regex is not None and pattern_error(regex.pattern) is None:
            yield regex.pattern


@dataclass(frozen=True)
class _Memberships:
    children: Mapping[str, Sequence[str]]
    parents: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, names: Iterable[str], members: Mapping[str, Members]) -> _Memberships:
        children = {name: sorted(members[name].children) for name in names}
        parents: dict[str, list[str]] = {name: [] for name in children}
        for name, below in children.items():
            for child in below:
                parents[child].append(name)
        return cls(children, parents)

    def above(self, names: Set[str]) -> set[str]:
        found: set[str] = set()
        frontier = list(names)
        while frontier:
            new = set(self.parents[frontier.pop()]) - found
            found |= new
            frontier.extend(new)
        return found

    def cycles(self) -> Iterator[list[str]]:
        try:
            graphlib.TopologicalSorter(self.children).prepare()
        except graphlib.CycleError:
            import networkx as nx  # takes half a second, and cycles are rare

            edges = [(name, child) for name, below in self.children.items() for child in below]
            for component in nx.strongly_connected_components(nx.DiGraph(edges)):
                circle = sorted(component)
                if len(circle) > 1 or circle[0] in self.children[circle[0]]:
                    yield circle


def read_tree(
    hyper_nodes: Sequence[volcano.HyperNodeManifest], nodes: Mapping[str, Node], findings: Findings
) -> TopologyTree:
    """Build the tree of all sound HyperNodes; each fault is one finding."""
    tiers = {each.name: each.spec.tier for each in sorted(hyper_nodes, key=lambda each: each.name)}
    selection = _MemberSelection(hyper_nodes, nodes, findings)
    members = {each.name: selection.members(each) for each in hyper_nodes}
    between = _Memberships.of(tiers, members)
    broken = set[str]()
    for code, names, message in _faults(between, tiers, members):
        findings.add(code, f"HyperNode {names[0]}", message)
        broken.update(names)
    left_out = broken | between.above(broken)
    tier_names = {each.name: each.spec.tier_name or "" for each in hyper_nodes}
    sound = {
        name: HyperNode(
            name=name,
            tier=tier,
            tier_name=tier_names[name],
            parent=next((parent for parent in between.parents[name] if parent not in left_out), None),
            children=tuple(sorted(members[name].children)),
            nodes=tuple(sorted(members[name].nodes)),
        )
        for name, tier in tiers.items()
        if name not in left_out
    }
    return TopologyTree(sound, root_tier=1 + max(tiers.values(), default=0), left_out=tuple(sorted(left_out)))


#: Code, the HyperNodes that are left out for it, and the sentence.
_Fault = tuple[FindingCode, Sequence[str], str]


def _faults(between: _Memberships, tiers: Mapping[str, int], members: Mapping[str, Members]) -> Iterator[_Fault]:
    cyclic: set[str] = set()
    for circle in between.cycles():
        yield "HyperNodeCycle", circle, f"{_listed(circle)} contain each other in a cycle"
        cyclic.update(circle)
    yield from _two_parents(between)
    yield from _overlaps(between, members)
    yield from _tier_order(between, tiers, cyclic)


def _two_parents(between: _Memberships) -> Iterator[_Fault]:
    for name, parents in between.parents.items():
        if len(parents) > 1:
            message = f"HyperNode {name} is a member of {len(parents)} parents: {_listed(parents)}"
            yield "HyperNodeTwoParents", [name], message


def _tier_order(between: _Memberships, tiers: Mapping[str, int], cyclic: Set[str]) -> Iterator[_Fault]:
    for name, tier in tiers.items():
        # Tiers around a cycle cannot grow: that is said once, as a cycle.
        judged = (child for child in between.children[name] if not {name, child} <= cyclic)
        children = sorted(child for child in judged if tiers[child] >= tier)
        if children:
            below = ", ".join(f"{child} (tier {tiers[child]})" for child in children)
            message = f"HyperNode {name} has tier {tier}, which is not above that of its members {below}"
            yield "HyperNodeTierOrder", [name], message


def _overlaps(between: _Memberships, members: Mapping[str, Members]) -> Iterator[_Fault]:
    listing: dict[str, set[str]] = defaultdict(set)
    for name, each in members.items():
        for node in each.nodes:
            listing[node].add(name)
    shared: dict[frozenset[str], list[str]] = defaultdict(list)
    for node, names in listing.items():
        if len(names) > 1:
            shared[frozenset(names)].append(node)
    above = {name: between.above({name}) for owners in shared for name in owners}
    for owners, nodes in shared.items():
        apart = _side_by_side(owners, above)
        if apart:
            message = f"{_listed(apart)} share {_nodes(sorted(nodes))}, but do not lie one above the other"
            yield "HyperNodeOverlap", apart, message


def _side_by_side(names: Set[str], above: Mapping[str, Set[str]]) -> list[str]:
    related = dict.fromkeys(names, 0)
    for name in names:
        # On a cycle two are above each other: that counts once, from the one that comes first by name.
        for other in above[name] & names:
            if other != name and not (name in above[other] and other < name):
                related[name] += 1
                related[other] += 1
    return sorted(name for name, count in related.items() if count < len(names) - 1)


def _nodes(names: Sequence[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"Node {names[0]}{more}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f"HyperNode{'s' if len(names) > 1 else ''} {shown}{more}"


#: Label values from the widest key down to the domain's own; empty where the node has no such label.
Path = tuple[str, ...]


def label_tree(keys: Sequence[str], nodes: Mapping[str, Node]) -> TopologyTree:
    """Build the tree of the domains that node labels name, nearest key first; a domain's name is its path, widest
    first.
    """
    leaves: dict[Path, list[str]] = defaultdict(list)
    for name, node in nodes.items():
        path = tuple(node.labels.get(key, "") for key in reversed(keys))
        if any(path):
            leaves[_trimmed(path)].append(name)
    parents = _parents(leaves)
    children: dict[Path, list[Path]] = defaultdict(list)
    for path, parent in parents.items():
        if parent is not None:
            children[parent].append(path)
    made = {}
    for path, parent in sorted(parents.items(), key=lambda item: _name(item[0])):
        made[_name(path)] = HyperNode(
            name=_name(path),
            tier=len(keys) - len(path) + 1,
            tier_name=keys[len(keys) - len(path)],
            parent=None if parent is None else _name(parent),
            children=tuple(sorted(map(_name, children[path]))),
            nodes=tuple(sorted(leaves.get(path, ()))),
        )
    return TopologyTree(made, root_tier=len(keys) + 1)


def _trimmed(path: Path) -> Path:
    end = max(index for index, value in enumerate(path) if value)
    return path[: end + 1]


def _parents(leaves: Mapping[Path, object]) -> dict[Path, Path | None]:
    found: dict[Path, Path | None] = {}
    for leaf in leaves:
        path: Path | None = leaf
        while path is not None and path not in found:
            wider = path[:-1]
            found[path] = _trimmed(wider) if any(wider) else None
            path = found[path]
    return found


def _name(path: Path) -> str:
    return "/".join(path)
