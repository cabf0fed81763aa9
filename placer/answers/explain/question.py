"""One group that waits, and the cluster in which changes are screened for it before they are tried."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import TypeAlias

from placer.answers.explain.cases import Case, Change, Placed
from placer.answers.explain.decisions import Correction, Decision, LoneGroup
from placer.answers.explain.lifts import RULES_OF
from placer.base.deadline import Deadline
from placer.problem import Group, GroupKey, Instance, Pod
from placer.problem.neighbours import Neighbours
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement
from placer.problem.what_if import with_group, with_pods

#: Is given a few words about each step.
Say: TypeAlias = Callable[[str], None]


def silent(_: str) -> None:
    """Say nothing."""


def numbered(key: GroupKey, at: int, groups: int, say: Say) -> Say:
    """Say that causes of a group are looked for, and then which change is tried."""
    group, numbers = f"{key.namespace}/{key.name} ({at + 1:,} of {groups:,})", count(1)
    say(f"{group}: looking for causes")
    return lambda words: say(f"{group}: trying change {next(numbers):,}: {words}")


#: Cause to the topology keys in whose domains a pod counts.
_KEYS: Mapping[str, Callable[[Neighbours], Iterable[str]]] = {
    "PodAffinity": lambda asked: (term.topology_key for term in asked.affinity),
    "PodAntiAffinity": lambda asked: (term.topology_key for term in asked.anti_affinity),
    "TopologySpread": lambda asked: (key for limit in asked.spread for key in limit.keys),
    "TopologyTooNarrow": lambda asked: (unit.topology_key for unit in asked.units),
    "Exclusive": lambda asked: (
        *(unit.topology_key for unit in asked.units if unit.exclusive),
        *(job.topology_key for job in asked.jobs),
    ),
}


@dataclass(frozen=True)
class Question:
    """A group that is not admitted.

    Parameters
    ----------
    thorough
        Whether all that waits is placed by a search where the greedy does not admit the group.
    disturbs
        Whether pods that run may go.
    lifted
        Causes that another change will lift.
    equal
        Groups that nothing tells from this one, itself included: one more of them must be admitted.
    """

    case: Case
    key: GroupKey
    placed: Placed
    corrections: tuple[Correction, ...]
    deadline: Deadline
    thorough: bool = False
    disturbs: bool = True
    lifted: frozenset[str] = frozenset()
    equal: frozenset[GroupKey] = frozenset()
    say: Say = field(default=silent, compare=False)

    @property
    def codes(self) -> frozenset[str]:
        """Causes of any set, and those next to the placement of a group that fits alone."""
        causes = [cause for causes in self.corrections for cause in causes]
        rules = {rule for cause in causes if cause.code == "Outcompeted" for rule in cause.rules}
        binding = {code for code, those in RULES_OF.items() if not rules.isdisjoint(those)}
        return frozenset(cause.code for cause in causes) | binding

    @cached_property
    def instance(self) -> Instance:
        """Where changes are screened: with the placement carried out where the group fits alone."""
        if "Outcompeted" in self.codes:
            return Outcome(self.placed.instance, self.placed.placement).carried_out()
        return self.placed.instance

    @cached_property
    def group(self) -> Group:
        """The group."""
        return self.instance.groups[self.key]

    @cached_property
    def pods(self) -> tuple[Pod, ...]:
        """Its pending pods."""
        return tuple(self.instance.pods[key] for key in self.group.pending)

    @cached_property
    def kinds(self) -> tuple[Pod, ...]:
        """One pod of each kind of it."""
        return tuple({(pod.requests, pod.constraints): pod for pod in self.pods}.values())

    def decide(self, instance: Instance, codes: frozenset[str] = frozenset()) -> Decision:
        """Whether the group fits with causes lifted."""
        lone, codes = LoneGroup(instance, self.key, self.deadline), codes | self.lifted
        return lone.fits(codes) if self.thorough else lone.found(codes)

    def after(self, change: Change) -> Question:
        """The question with a change made and nothing else placed."""
        case = self.case.changed(change)
        return replace(self, case=case, placed=Placed(case.instance, Placement()), lifted=frozenset())

    def fits(self, instance: Instance) -> bool:
        """Whether it is found to fit."""
        return self.decide(instance).fits is True

    def with_group(self, group: Group) -> Instance:
        """The instance with the group changed."""
        return with_group(self.instance, group)

    def topology_keys(self, codes: Collection[str] = tuple(_KEYS)) -> list[str]:
        """Labels in whose domains the group's pods count, by causes and ``codes``."""
        asked = {pod.neighbours for pod in self.pods}
        wanted = self.codes.intersection(codes, _KEYS)
        return sorted({key for code in wanted for each in asked for key in _KEYS[code](each)})

    def with_neighbours(self, change: Callable[[Neighbours], Neighbours]) -> Instance:
        """The instance with the pods' demands on others changed."""
        keys = (pod.key for pod in self.pods)
        return with_pods(self.instance, keys, lambda pod: replace(pod, neighbours=change(pod.neighbours)))
