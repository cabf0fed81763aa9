"""The result of a discovery."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from placer.instance import Finding, TopologyTree


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
