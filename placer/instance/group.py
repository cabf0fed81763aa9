"""Gangs and their subgroups: what must be placed together, and how near (C5, C6, C7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from placer.instance.pod import Key
from placer.quantity import Resources

__all__ = ["NO_TIER", "Group", "GroupKey", "NetworkTopology", "SubGroup", "SubGroupPolicy"]

#: A limit below every tier: what an unknown tierName admits (nothing).
NO_TIER = -1


class GroupKey(NamedTuple):
    """Identity of a group.

    ``api_group`` is ``scheduling.volcano.sh`` or ``scheduling.x-k8s.io`` for a PodGroup, and empty for a pod that is a
    gang of one.
    """

    api_group: str
    namespace: str
    name: str

    @property
    def kind(self) -> str:
        """``PodGroup``, or ``Pod`` for a pod in no group."""
        return "PodGroup" if self.api_group else "Pod"

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class NetworkTopology:
    """How near the pods of a scope must (hard) or should (soft) be.

    Parameters
    ----------
    hard
        ``mode: hard`` (also where mode is absent); soft never forbids.
    highest_tier
        ``highestTierAllowed``, or the tier that ``highestTierName`` names; None where neither is set; :data:`NO_TIER`
        where the name is unknown or ambiguous.
    tier_name
        ``highestTierName`` as it is written; empty where there is none.
    """

    hard: bool
    highest_tier: int | None = None
    tier_name: str = ""

    @property
    def limit(self) -> int | None:
        """The tier that must not be exceeded (C7); None where there is no limit."""
        return self.highest_tier if self.hard else None

    @property
    def asked(self) -> str:
        """The limit as people read it."""
        if self.highest_tier == NO_TIER:
            if not self.tier_name:
                return "a tierName that admits nothing"
            what = "is not the name of one tier (the findings say why), so that it admits nothing"
            return f"tierName {self.tier_name}, which {what}"
        return f"highest tier {self.highest_tier}" + (f" ({self.tier_name})" if self.tier_name else "")


@dataclass(frozen=True, slots=True)
class SubGroupPolicy:
    """One ``subGroupPolicy`` of a PodGroup: every set of pods it makes is a gang of at least ``size`` (C6).

    Parameters
    ----------
    name
        Its name.
    size
        ``subGroupSize``: the least pods a subgroup may end with, at least 1.
    min_sub_groups
        How many ready subgroups the group needs of this policy (C5); 0: none in particular.
    topology
        What each of its subgroups asks of the tree; None: nothing.
    """

    name: str
    size: int = 1
    min_sub_groups: int = 0
    topology: NetworkTopology | None = None


@dataclass(frozen=True, slots=True)
class SubGroup:
    """The pods of one policy that share the values of its ``matchLabelKeys``.

    Parameters
    ----------
    name
        Policy name and label values joined by ``-`` (for people; not necessarily unique).
    policy
        Index into the group's ``policies``.
    pending
        Our pending pods, sorted.
    bound
        Pods that run already.
    succeeded
        Members that finished and count as placed (Volcano only).
    """

    name: str
    policy: int
    pending: tuple[Key, ...] = ()
    bound: tuple[Key, ...] = ()
    succeeded: int = 0

    @property
    def placed_before(self) -> int:
        """Pods that count as placed before this placement."""
        return len(self.bound) + self.succeeded


@dataclass(frozen=True, slots=True)
class Group:
    """A gang: a PodGroup, or one pod in no group.

    Parameters
    ----------
    key
        Its identity.
    min_member
        Least placed pods (C5).
    min_task_member
        Least placed pods per role, as they are checked: empty where ``minMember`` is below their sum.
    topology
        What the whole group asks of the tree; None: nothing. Policy ``locality: all`` is applied already.
    policies, sub_groups
        See there; ``sub_groups`` has one entry per set that has a pod.
    queue
        Volcano queue of the PodGroup; None: in none.
    priority
        Compared in O1, higher first.
    created
        Seconds since the epoch, for ties.
    pending
        Our pending pods, sorted; those that are unsupported included.
    bound
        Members that run (not terminating).
    succeeded
        Members that finished and count as placed, by role (Volcano only).
    min_resources
        ``minResources``; no rule looks at it, other schedulers do (``policies``).
    invalid
        Why nothing of it may be placed (InvalidGroup); None where the group is in order.
    """

    key: GroupKey
    min_member: int = 0
    min_task_member: Mapping[str, int] = field(default_factory=dict)
    topology: NetworkTopology | None = None
    policies: tuple[SubGroupPolicy, ...] = ()
    sub_groups: tuple[SubGroup, ...] = ()
    queue: str | None = None
    priority: int = 0
    created: float = 0.0
    pending: tuple[Key, ...] = ()
    bound: tuple[Key, ...] = ()
    succeeded: Mapping[str, int] = field(default_factory=dict)
    min_resources: Resources = field(default_factory=Resources)
    invalid: str | None = None

    @property
    def placed_before(self) -> int:
        """Pods that count as placed before this placement."""
        return len(self.bound) + sum(self.succeeded.values())

    @property
    def need(self) -> int:
        """How many of its pending pods the group needs at least (models/README.md, O1)."""
        by_role = sum(self.min_task_member.values())
        by_policy = sum(policy.min_sub_groups * policy.size for policy in self.policies)
        return max(0, max(self.min_member, by_role, by_policy) - self.placed_before)
