"""Groups that wait for another scheduler: their fate under placer, and under a policy that mimics that scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from placer.answers.explain.cases import Case, Placed
from placer.answers.explain.decisions import LoneGroup
from placer.base.deadline import Deadline, within
from placer.base.errors import PolicyFailed
from placer.lab.placement_metrics import GroupFate, fates
from placer.lab.policies.mimicry import Mimicry, mimic
from placer.problem import GroupKey, Instance, Key
from placer.problem.gangs import COSCHEDULING, VOLCANO
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement

__all__ = ["ElsewhereFate", "MimickedFate", "OtherSchedulers"]

#: The scheduler whose pods are placer's own where nothing else is said.
OURS = "placer"

#: Share of the time left that is kept for what other schedulers would do.
MIMICRY = 1 / 3

#: Names of schedulers as they are installed, to the policy that mimics them.
_INSTALLED = {"default-scheduler": "kube-default", "volcano": "volcano"}

#: API group of a gang to the policy of the scheduler that reads it.
_READERS = {COSCHEDULING: "coscheduling", VOLCANO: "volcano"}


@dataclass(frozen=True)
class MimickedFate:
    """A group under the mimicked policy of another scheduler.

    Parameters
    ----------
    fate
        None where the policy does not see the group.
    first
        Groups of which it binds pods before any of this one; of a group that gets nothing all up to ``since``.
    since
        The first of them next to which, and those before it, the group fits no more, decided twice.
    fits_beside
        Whether a group that gets nothing fits next to all that the policy binds; None: undecided.
    outside
        Whether Volcano's action enqueue does not let it in, whatever fits.
    """

    fate: GroupFate | None
    first: tuple[GroupKey, ...] = ()
    since: GroupKey | None = None
    fits_beside: bool | None = None
    notes: tuple[str, ...] = ()
    outside: bool = False

    @property
    def admitted(self) -> bool:
        """Whether the group is ready."""
        return self.fate is not None and self.fate.admitted

    def as_dict(self) -> dict[str, Any]:
        """Plain data with the names of models/interface.md."""
        return {
            **(_fate_dict(self.fate) if self.fate is not None else {"admitted": False}),
            "first": [key.as_dict() for key in self.first],
            "since": self.since and self.since.as_dict(),
            "fitsBeside": self.fits_beside,
            "notes": list(self.notes),
            "outside": self.outside,
        }


@dataclass(frozen=True)
class ElsewhereFate:
    """A group that waits for another scheduler.

    Parameters
    ----------
    policy, mimicry
        Who mimics that scheduler; None: no policy does, is in time, or works.
    """

    scheduler: str
    placer: GroupFate
    policy: str | None = None
    mimicry: MimickedFate | None = None
    error: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain data with the names of models/interface.md."""
        mimicry = None if self.mimicry is None else self.mimicry.as_dict()
        return {
            "name": self.scheduler,
            "placer": _fate_dict(self.placer),
            "policy": self.policy,
            "mimicry": mimicry,
            **({"error": self.error} if self.error else {}),
        }


def _fate_dict(fate: GroupFate) -> dict[str, Any]:
    return {key: value for key, value in fate.as_dict().items() if key not in ("kind", "namespace", "name")}


@dataclass(frozen=True)
class OtherSchedulers:
    """The groups of a case that wait for other schedulers; ``placed`` are all pending pods, placed by placer."""

    case: Case
    placed: Placed
    arguments: Mapping[str, Any] = field(default_factory=dict)
    _mimicked: dict[tuple[str, str], _Mimicked | PolicyFailed] = field(default_factory=dict, init=False)

    @cached_property
    def names(self) -> Mapping[GroupKey, str]:
        """Group to the scheduler that its pods name, where that is not the one whose pods are placed here."""
        ours = self.case.instance.scheduler_name or OURS
        groups = (group for group in self.case.instance.groups.values() if group.pending)
        told = {group.key: self.case.scheduler_names.get(group.pending[0], ours) for group in groups}
        return {key: name for key, name in told.items() if name != ours}

    def causes_until(self, keys: Iterable[GroupKey], deadline: Deadline) -> Deadline:
        """When to stop looking for causes, so that mimicry has its share if one of the groups needs it."""
        mimicked = any(key in self.names for key in keys)
        return Deadline.within(deadline.left * (1 - MIMICRY)) if mimicked else deadline

    @cached_property
    def _ours(self) -> Mapping[GroupKey, GroupFate]:
        return {fate.group: fate for fate in fates(self.placed.instance, self.placed.placement)}

    def fate(self, key: GroupKey, deadline: Deadline) -> ElsewhereFate | None:
        """Fate of a group by ``deadline``; None where it waits for no other scheduler."""
        name, ours = self.names.get(key), self._ours.get(key)
        if name is None or ours is None:
            return None
        policy = _policy(self.case.instance, key, name)
        if policy is None or ((name, policy) not in self._mimicked and deadline.over):
            return ElsewhereFate(name, ours, policy)
        late = ElsewhereFate(name, ours, policy)
        return within(deadline, lambda: self._fate(key, late, policy, deadline), late)

    def _fate(self, key: GroupKey, late: ElsewhereFate, policy: str, deadline: Deadline) -> ElsewhereFate:
        name = late.scheduler
        if (name, policy) not in self._mimicked:
            self._mimicked[name, policy] = self._mimic(name, policy, deadline)
        mimicked = self._mimicked[name, policy]
        if isinstance(mimicked, PolicyFailed):
            return replace(late, error=str(mimicked))
        return replace(late, mimicry=mimicked.fate(key, deadline))

    def _mimic(self, name: str, policy: str, deadline: Deadline) -> _Mimicked | PolicyFailed:
        instance, arguments = replace(self.case, scheduler_name=name).instance, self.arguments.get(policy)
        try:
            return _Mimicked(instance, mimic(instance, policy, arguments=arguments, deadline=deadline))
        except PolicyFailed as error:
            return error


def _policy(instance: Instance, key: GroupKey, name: str) -> str | None:
    """By its name, else by the objects that only it reads."""
    if name in _INSTALLED and key.api_group != COSCHEDULING:
        return _INSTALLED[name]
    return _READERS.get(key.api_group) or _plugin(instance, instance.groups[key].pending)


def _plugin(instance: Instance, keys: Sequence[Key]) -> str | None:
    if instance.network is not None and any(instance.pods[key].app_group is not None for key in keys):
        return "network-overhead"
    aligned = instance.aligning_nodes and any(instance.pods[key].numa is not None for key in keys)
    return "numa-match" if aligned else None


class _Mimicked:
    def __init__(self, instance: Instance, told: Mimicry) -> None:
        self.instance, self._told = instance, told

    @cached_property
    def _fates(self) -> Mapping[GroupKey, GroupFate]:
        return {fate.group: fate for fate in fates(self.instance, self._told.placement)}

    @cached_property
    def _order(self) -> Sequence[GroupKey]:
        groups = (self.instance.pods[key].group for key in self._told.placement.node_of)
        return list(dict.fromkeys(each for each in groups if each is not None))

    def fate(self, key: GroupKey, deadline: Deadline) -> MimickedFate | None:
        if not self._told.ended:
            return None
        fate, notes = self._fates.get(key), self._told.notes
        if key in self._order:
            return MimickedFate(fate, tuple(self._order[: self._order.index(key)]), notes=notes)
        if key in self._told.outside:
            return MimickedFate(fate, tuple(self._order), notes=notes, outside=True)
        beside = self._beside(key, len(self._order), deadline).confirmed().fits
        count = self._shut_out(key, deadline) if self._order and beside is False else None
        if count is None:
            return MimickedFate(fate, tuple(self._order), fits_beside=beside, notes=notes)
        first = tuple(self._order[:count])
        return MimickedFate(fate, first, first[-1], fits_beside=False, notes=notes)

    def _beside(self, key: GroupKey, count: int, deadline: Deadline) -> LoneGroup:
        groups = set(self._order[:count])
        bindings = self._told.placement.node_of.items()
        bound = {pod: node for pod, node in bindings if self.instance.pods[pod].group in groups}
        return LoneGroup(Outcome(self.instance, Placement.of(bound)).carried_out(), key, deadline)

    def _shut_out(self, key: GroupKey, deadline: Deadline) -> int | None:
        """Next to how many of the first groups the group fits no more; None where it fits next to none, or that is
        undecided.
        """
        low, high = 0, len(self._order)
        if not self._beside(key, low, deadline).fits().fits:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            fits = self._beside(key, middle, deadline).fits().fits
            if fits is None:
                return None
            low, high = (middle, high) if fits else (low, middle)
        return high if self._beside(key, high, deadline).confirmed().fits is False else None
