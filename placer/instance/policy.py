"""What the user wants otherwise than the default (models/interface.md, "Policy")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

__all__ = ["LEVELS", "Policy"]

#: O1..O4 in the default order.
LEVELS = ("placed", "locality", "networkCost", "packing")


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy object of an instance, defaults filled in.

    Parameters
    ----------
    levels
        The levels that decide, in the order they are compared.
    network_cost
        ``all`` or ``majority`` (C8).
    network_topology, network_weights
        Which NetworkTopology (``namespace/name``) and which list of it; None: as models/reading.md says.
    topology_keys
        Node labels, nearest first, that make the tree where no HyperNode is given.
    locality_all
        Every PodGroup without networkTopology wants soft locality.
    resource_weights
        Where not empty, O1 looks at these resources only, each share times its number.
    rules_off
        Rules (C8, C9, C10, C11) that this cluster does not know.
    """

    levels: tuple[str, ...] = LEVELS
    network_cost: str = "all"
    network_topology: str | None = None
    network_weights: str | None = None
    topology_keys: tuple[str, ...] = ()
    locality_all: bool = False
    resource_weights: Mapping[str, Fraction] = field(default_factory=dict)
    rules_off: frozenset[str] = frozenset()
