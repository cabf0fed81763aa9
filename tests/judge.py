"""Short hand for rule tests: placements as text, violations and values as plain tuples."""

from __future__ import annotations

from placer.problem import Key
from placer.problem.placement import Placement
from placer.rules import verify
from placer.rules.scoring import score
from tests.world import SPACE, World


def placement(text: str) -> Placement:
    """``a@n1 b@n2`` binds pod a to node n1 and b to n2, in this order."""
    pairs = (word.split("@") for word in text.split())
    return Placement.of((Key(SPACE, pod), node) for pod, node in pairs)


def broken(world: World, text: str) -> list[tuple[str, tuple[str, ...], int]]:
    """Rule, subjects and amount of every violation of the placement; empty where all rules are kept."""
    return [(found.rule, found.subjects, found.amount) for found in verify(world.instance(), placement(text))]


def messages(world: World, text: str) -> list[str]:
    """What the violations of the placement say."""
    return [found.message for found in verify(world.instance(), placement(text))]


def values(world: World, text: str, *names: str) -> list[int]:
    """Values of the placement that have one of the names, in the order they are compared."""
    return [value.value for value in score(world.instance(), placement(text)) if value.name in names]
