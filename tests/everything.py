"""Every placement of an instance, named pod by named pod, without any short cut; for the tiniest ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from placer.problem import Instance, PodState
from placer.problem.placement import Binding, Placement, Score, Step, better
from placer.rules import verify
from placer.rules.scoring import score


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


def everything_disturbing(instance: Instance) -> Iterator[Placement]:
    """Every placement there is, with every bound pod where it is, evicted, or moved anywhere; all in one step."""
    bound = [key for key, pod in instance.pods.items() if pod.state is PodState.BOUND]
    for ways in product(["stays", "goes", *instance.nodes], repeat=len(bound)):
        evicted = tuple(key for key, way in zip(bound, ways, strict=True) if way == "goes")
        ends = zip(bound, ways, strict=True)
        moves = tuple(Binding(key, way) for key, way in ends if way not in ("stays", "goes"))
        for placement in everything(instance):
            come = (*placement.bindings, *moves)
            step = Step((*evicted, *(each.pod for each in moves)), tuple(each.pod for each in come))
            steps = (step,) if step.go else ()
            yield Placement(placement.bindings, evictions=evicted, moves=moves, steps=steps)


def plainly_preempting(instance: Instance) -> Score:
    """The best score of all valid ones of these."""
    found = score(instance, Placement(), disturbing=True)
    for placement in everything_disturbing(instance):
        value = score(instance, placement, disturbing=True)
        if better(value, found) and not verify(instance, placement):
            found = value
    return found
