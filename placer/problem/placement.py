"""The decision only: which pod goes to which node, in which order; what breaks a rule; how good it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from placer.problem.keys import Key

#: Values of which more is better; of all others less is.
MAXIMISED = frozenset({"admitted", "placed"})
#: Of how many domains can be empty a search says so; no placement is valued by it.
FREED = "freed"
#: Values that stand for each priority that loses something, in the order they are compared.
LOSSES = ("evicted", "evictedUnits")


@dataclass(frozen=True, slots=True)
class Binding:
    """A pending pod and the node it shall run on; ``numa_zones`` only where C10 applies."""

    pod: Key
    node: str
    numa_zones: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a placement that disturbs something: first whole units ``go``, then pods are bound (D5)."""

    go: tuple[Key, ...] = ()
    bind: tuple[Key, ...] = ()


@dataclass(frozen=True)
class Placement:
    """Bindings in plan order; a pod may stand in it more than once only if another program wrote it (C1).

    ``one_by_one``: nodes whose pods must be bound one after another (C10). ``evictions``, ``moves``: bound pods that
    go, to wait or to another node. ``lost``: nodes whose bound pods stand in ``bindings``, where it repairs.
    ``wanted``: objects of wanted room, as JSON. ``freed``: HyperNodes that are empty in the end, where asked for.
    """

    bindings: tuple[Binding, ...] = ()
    one_by_one: tuple[str, ...] = ()
    evictions: tuple[Key, ...] = ()
    moves: tuple[Binding, ...] = ()
    steps: tuple[Step, ...] = ()
    lost: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    freed: tuple[str, ...] = ()

    @property
    def disturbs(self) -> bool:
        """Whether anything that runs is evicted or moved."""
        return bool(self.evictions or self.moves)

    @classmethod
    def of(cls, assignment: Mapping[Key, str] | Iterable[tuple[Key, str]]) -> Placement:
        """Make a placement from pod to node, in the order given."""
        pairs = assignment.items() if isinstance(assignment, Mapping) else assignment
        return cls(tuple(Binding(pod, node) for pod, node in pairs))

    @cached_property
    def node_of(self) -> Mapping[Key, str]:
        """Pod to node; of a pod bound twice, the first."""
        found: dict[Key, str] = {}
        for binding in self.bindings:
            found.setdefault(binding.pod, binding.node)
        return found


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule broken once, by an ``amount`` of at least 1 in the unit of the rule.

    ``subjects`` are ``Kind namespace/name``; every number in ``message`` can be checked by hand against the instance.
    """

    rule: str
    subjects: tuple[str, ...]
    amount: int
    message: str


@dataclass(frozen=True, slots=True)
class Value:
    """One number of the objective; ``priority`` only for ``admitted`` and ``placed``."""

    name: str
    value: int
    priority: int | None = None


#: Values in the order they are compared.
Score = tuple[Value, ...]


def better(one: Score, other: Score) -> bool:
    """Whether ``one`` is strictly better than ``other``: the first value that differs decides.

    Of a priority that only one evicts something of, the other has 0. Scores of different instances raise ValueError.
    """
    priorities = _priorities((*one, *other))
    for mine, theirs in zip(_comparable(one, priorities), _comparable(other, priorities), strict=True):
        if (mine.name, mine.priority) != (theirs.name, theirs.priority):
            raise ValueError(f"{mine.name} and {theirs.name} cannot be compared")
        if mine.value != theirs.value:
            return (mine.value > theirs.value) == (mine.name in MAXIMISED)
    return False


def _priorities(values: Iterable[Value]) -> set[int]:
    return {each.priority or 0 for each in values if each.name in LOSSES}


def loses_more_above(value: Value, known: Score, score: Score) -> bool:
    """Whether a score evicts something above a value, of a priority that is not in the known values."""
    lost = _priorities(each for each in score if each.value) - _priorities(known)
    if value.name in LOSSES:
        return any(priority > (value.priority or 0) for priority in lost)
    return bool(lost) and value.name != "admitted"


def _comparable(score: Score, priorities: Iterable[int]) -> Iterator[Value]:
    lost = {(each.name, each.priority): each for each in score if each.name in LOSSES}
    for value in score:
        if value.name == "moved":
            for priority in sorted(priorities, reverse=True):
                yield from (lost.get((name, priority), Value(name, 0, priority)) for name in LOSSES)
        if value.name not in LOSSES:
            yield value
