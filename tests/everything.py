"""Every placement of an instance, named pod by named pod, without any short cut; for the tiniest ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from placer.instance import Instance
from placer.placement import Placement, Score, better
from placer.score import score
from placer.verify import verify


def everything(instance: Instance) -> Iterator[Placement]:
    """Every placement there is, valid or not."""
    for nodes in product([*instance.nodes, None], repeat=len(instance.pending)):
        yield Placement.of((pod.key, node) for pod, node in zip(instance.pending, nodes, strict=True) if node)


def plainly(instance: Instance) -> Score:
    """The best score of all valid ones."""
    found = score(instance, Placement())
    for placement in everything(instance):
        value = score(instance, placement)
        if better(value, found) and not verify(instance, placement):
            found = value
    return found
