"""What a discovery has found: a tier tree in the names of its source, and what was noticed on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from placer.instance import Finding, TopologyTree

__all__ = ["Discovery"]


@dataclass(frozen=True, slots=True)
class Discovery:
    """A tier tree that was found.

    Parameters
    ----------
    tree
        Domains by the names that the source gives them; no node is in two that do not lie in each other, and tiers grow
        from 1 towards the roots.
    titles
        Domain to what it is called in full, where that is more than its name.
    labels
        Domain to the labels that all of its nodes have, where it was found by them.
    findings
        What in the source cannot be as meant; sorted.
    notes
        What was decided where the source leaves a choice, in sentences.
    """

    tree: TopologyTree
    titles: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
