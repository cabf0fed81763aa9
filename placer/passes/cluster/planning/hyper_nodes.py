"""Changes that give a cluster the discovered HyperNodes; no request is made here.

Only those with the label of the discovery's manifests (``placer.topology.discovery.hyper_nodes``) are ours. A plan
never breaks the tree: a HyperNode with two parents stops every job with a networkTopology in Volcano.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import filterfalse
from typing import Any

from placer.base.errors import BadInstance, Fault
from placer.base.text import shown
from placer.kube.manifests import from_documents, validate
from placer.problem import Finding, Node
from placer.problem.findings import Findings
from placer.problem.tier_tree import read_tree
from placer.topology.discovery.hyper_node_objects import SOURCE, SOURCE_LABEL

__all__ = ["HyperNodePlan", "plan_hyper_nodes"]

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HyperNodePlan:
    """Changes of HyperNodes."""

    #: Manifests, lower tiers first.
    create: tuple[Document, ...]
    change: tuple[Document, ...]
    unchanged: int  #: number of those that are right already
    remove: tuple[Document, ...] = ()  #: stored ones of ours that are not found
    left: tuple[str, ...] = ()  #: names of ours that are not found and are kept

    def as_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "created": [_name(each) for each in self.create],
            "changed": [_name(each) for each in self.change],
            "removed": [_name(each) for each in self.remove],
            "unchanged": self.unchanged,
            "left": list(self.left),
        }


def plan_hyper_nodes(
    wanted: Sequence[Document], stored: Sequence[Document], nodes: Mapping[str, Node], *, prune: bool = False
) -> HyperNodePlan:
    """Plan changes of HyperNodes.

    Parameters
    ----------
    prune
        Remove ours that are not found.

    Raises
    ------
    BadInstance
        A name is taken by a HyperNode that is not ours, or the tree would be broken: all faults.
    """
    there = {_name(each): each for each in stored}
    gone = _unnamed(filter(_is_ours, stored), wanted)
    left = () if prune else gone
    faults = [*_taken(wanted, there)] or _broken(list(filterfalse(_is_ours, stored)), left, wanted, nodes)
    if faults:
        raise BadInstance(faults)
    create = _unnamed(wanted, stored)
    change = tuple(each for each in _unnamed(wanted, create) if not _same(each, there[_name(each)]))
    return HyperNodePlan(
        create=create,
        change=change,
        unchanged=len(wanted) - len(create) - len(change),
        remove=gone if prune else (),
        left=tuple(sorted(map(_name, left))),
    )


def _unnamed(documents: Iterable[Document], others: Iterable[Document]) -> tuple[Document, ...]:
    """Documents of whose name there is none among others."""
    names = set(map(_name, others))
    return tuple(each for each in documents if _name(each) not in names)


def _name(document: Document) -> str:
    name: str = document["metadata"]["name"]
    return name


def _is_ours(document: Document) -> bool:
    return (document["metadata"].get("labels") or {}).get(SOURCE_LABEL) == SOURCE


def _same(wanted: Document, stored: Document) -> bool:
    parts = ((wanted["metadata"][part], stored["metadata"].get(part) or {}) for part in ("labels", "annotations"))
    return bool(wanted["spec"] == stored.get("spec")) and all(mine.items() <= theirs.items() for mine, theirs in parts)


def _taken(wanted: Iterable[Document], there: Mapping[str, Document]) -> Iterator[Fault]:
    for each in wanted:
        name = _name(each)
        if name in there and not _is_ours(there[name]):
            source = (there[name]["metadata"].get("labels") or {}).get(SOURCE_LABEL)
            by = f"{SOURCE_LABEL}: {shown(source)}" if source else f"no {SOURCE_LABEL}"
            yield Fault("cluster", None, f"HyperNode {name}", "metadata.labels", by, f"{SOURCE}, or no such HyperNode")


def _broken(
    others: Sequence[Document], left: Sequence[Document], wanted: Sequence[Document], nodes: Mapping[str, Node]
) -> list[Fault]:
    """Faults of the tree that it has not without us."""
    before = _findings(others, nodes)
    hint = " (--prune removes HyperNodes of placer that are not found any more)" if left else ""
    return [
        Fault("cluster", None, each.object, each.code, each.message, f"a tree{hint}")
        for each in sorted(_findings([*others, *left, *wanted], nodes) - before)
    ]


def _findings(documents: Sequence[Document], nodes: Mapping[str, Node]) -> set[Finding]:
    """Findings of a tree except absent members, which break nothing."""
    findings = Findings()
    kept = [{key: each[key] for key in ("apiVersion", "kind", "metadata", "spec")} for each in documents]
    read_tree(validate(from_documents(kept, "cluster")).hyper_nodes, nodes, findings)
    return {each for each in findings.all() if each.code != "HyperNodeMember"}
