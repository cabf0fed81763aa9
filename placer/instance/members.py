"""Members of HyperNodes: which existing nodes and HyperNodes their selectors take.

Source: Volcano ``pkg/scheduler/api/hyper_node_info.go``: a regular expression is searched anywhere in the node's name,
an empty label selector takes nothing, and a HyperNode is a member by its exact name only.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from placer.instance.constraints import Requirement
from placer.instance.findings import Findings
from placer.instance.node import Node
from placer.instance.patterns import names_found, pattern_error
from placer.instance.selectors import label_requirements, matches
from placer.kube.base import LabelSelector
from placer.kube.volcano import HyperNodeManifest, HyperNodeMember

__all__ = ["Members", "read_members"]

CODE: Final = "HyperNodeMember"


@dataclass(frozen=True, slots=True)
class Members:
    """What a HyperNode has directly below it, as far as it exists."""

    nodes: frozenset[str]
    children: frozenset[str]


def read_members(
    hyper_nodes: Sequence[HyperNodeManifest], nodes: Mapping[str, Node], findings: Findings
) -> dict[str, Members]:
    """Find the members of every HyperNode; what leads nowhere is a finding and adds nothing."""
    reader = _Reader(hyper_nodes, nodes, findings)
    return {each.name: reader.members(each) for each in hyper_nodes}


class _Reader:
    """Looks members up among the nodes and HyperNodes there are."""

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
        self._findings.add(CODE, f"HyperNode {owner}", f"HyperNode {owner}: {what}")


def _worded(requirement: Requirement) -> str:
    if _single(requirement.operator, requirement.values):
        return f"{requirement.key}={requirement.values[0]}"
    return " ".join((requirement.key, requirement.operator, ", ".join(requirement.values))).rstrip()


def _single(operator: str, values: tuple[str, ...]) -> bool:
    return operator == "In" and len(values) == 1


def _patterns(hyper_nodes: Sequence[HyperNodeManifest]) -> Iterator[str]:
    """Patterns without error that take nodes."""
    for member in (member for hyper_node in hyper_nodes for member in hyper_node.spec.members):
        regex = member.selector.regex_match
        if member.type == "Node" and regex is not None and pattern_error(regex.pattern) is None:
            yield regex.pattern
