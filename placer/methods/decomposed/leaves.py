"""Leaves of the tree as a step sees them: pieces of equal size, and what a scope would need of them alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from placer.dense import Dense, Scope

__all__ = ["bins_of", "cells_of", "least_of"]

IntArray = npt.NDArray[np.int64]

#: Leaves with more nodes than this are looked at in pieces; smaller ones where nodes are divided.
CELL = 16


def least_of(dense: Dense, scope: Scope) -> tuple[int, int]:
    """Lowest tier of a domain, and fewest leaves, that could hold all pods of a scope alone, class by class."""
    tree, lowest, fewest = dense.domains, int(dense.domains.tier.min()), 1
    for index in scope.classes:
        fits, size = dense.fits(index), dense.classes[index].size
        sums = np.concatenate(([0], np.cumsum(fits)))
        able = sums[tree.end] - sums[tree.begin] >= size
        lowest = max(lowest, int(tree.tier[able].min())) if able.any() else int(tree.tier[tree.root])
        rooms = np.sort(np.bincount(_leaf_numbers(dense), weights=fits))[::-1].cumsum()
        fewest = max(fewest, min(int(np.searchsorted(rooms, size)) + 1, len(rooms)))
    return lowest, fewest


def _leaf_numbers(dense: Dense) -> IntArray:
    numbers: IntArray = np.unique(dense.leaf_unit, return_inverse=True)[1].reshape(-1)
    return numbers


def bins_of(dense: Dense) -> int:
    """Into how many bins a node is divided: one, or its NUMA zones on average where kubelets refuse pods."""
    if dense.numa is None:
        return 1
    bins = np.maximum(dense.numa.zones, 1)
    return max(1, round(int(bins.sum()) / max(1, len(bins))))


def cells_of(dense: Dense) -> IntArray:
    """Number of the leaf, or of the piece of a large one, that each node is in."""
    most = max(1, CELL // bins_of(dense) ** 2)
    number = np.zeros(len(dense.nodes), dtype=np.int64)
    last, count, inside = None, -1, 0
    for node, leaf in enumerate(dense.leaf.tolist()):
        if leaf != last or inside == most:
            last, count, inside = leaf, count + 1, 0
        number[node] = count
        inside += 1
    return number
