"""The bounds that cost no search: those that hold for every placement, and those for the values in hand."""

from __future__ import annotations

from collections.abc import Sequence

from placer.bounds.calls import standing_cost
from placer.bounds.facts import Facts, facts_of
from placer.bounds.given import given_bounds
from placer.bounds.named import NamedBound
from placer.dense import Dense

__all__ = ["bounds_for", "named_bounds"]


def named_bounds(dense: Dense) -> tuple[NamedBound, ...]:
    """Bounds that hold for every placement: one per value, and one on the placed weight.

    Parameters
    ----------
    dense
        The instance.
    """
    facts, found = facts_of(dense), []
    for level, (name, priority) in enumerate(dense.levels):
        if priority is not None:
            most = facts.volume.admitted if name == "admitted" else facts.volume.placed
            bound, by = most(priority, {})
        else:
            bound, by = _standing(facts, name), "counting"
        found.append(NamedBound(level, bound, by))
    bound, by = facts.volume.placed(None, {})
    return (*found, NamedBound(None, bound, by))


def bounds_for(dense: Dense, values: Sequence[int]) -> tuple[NamedBound, ...]:
    """Bounds on each value among the placements that equal ``values`` on the values before it.

    Parameters
    ----------
    dense
        The instance.
    values
        Of the answer in hand, one per level.

    Returns
    -------
    tuple of NamedBound
        Those of :func:`named_bounds`; where they say more, those that follow from what the values before take of the
        room; and of the other values those that follow where the values before say that every pod is placed that can
        be, or where nothing can be better.
    """
    return (*named_bounds(dense), *given_bounds(facts_of(dense), values))


def _standing(facts: Facts, name: str) -> int:
    """Return what running pods make of a value that is minimised: new pods can only add to it."""
    dense = facts.dense
    if name == "networkCost":
        return standing_cost(dense)
    value = {"locality": dense.constant_locality, "span": dense.constant_span}.get(name, 0)
    for scope in dense.scopes if name in ("locality", "span") else ():
        common = dense.common(scope.bound)
        if scope.wanted and common is not None:
            leaves = {int(dense.leaf_unit[node]) for node in scope.bound if node >= 0}
            value += (
                len(scope.bound) * int(dense.domains.tier[common])
                if name == "locality"
                else len(leaves) + scope.lost_leaves
            )
    return value
