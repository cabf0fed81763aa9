"""What PodGroup objects ask for, before anybody looks at their pods (C5, C6, C7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from placer.instance.findings import Findings
from placer.instance.group import NO_TIER, Group, GroupKey, NetworkTopology, SubGroupPolicy
from placer.instance.priority import Priorities
from placer.instance.queues import Queues
from placer.instance.selectors import Requirements, label_requirements, matches
from placer.instance.tier_names import TierNames
from placer.kube import coscheduling, volcano
from placer.kube.base import Labels, Metadata
from placer.quantity import Resources

__all__ = ["COSCHEDULING", "VOLCANO", "Gang", "GangReader", "Splitter", "created"]

VOLCANO = "scheduling.volcano.sh"
COSCHEDULING = "scheduling.x-k8s.io"


@dataclass(frozen=True, slots=True)
class Splitter:
    """How one ``subGroupPolicy`` takes pods: those its selector matches, split by the values of its keys."""

    requirements: Requirements
    keys: tuple[str, ...]

    def values(self, labels: Labels) -> tuple[str, ...] | None:
        """Values that say which subgroup of the policy a pod is in; None where the policy does not take it."""
        if not self.keys or not matches(self.requirements, labels):
            return None
        values = tuple(labels.get(key, "") for key in self.keys)
        return values if all(values) else None


@dataclass(frozen=True, slots=True)
class Gang:
    """A PodGroup object as read.

    Parameters
    ----------
    group
        The group without its pods; its priority is filled in with them.
    priority
        Value of the class that the object names; None where its pods decide.
    splitters
        One per policy, in the order in which they are asked.
    """

    group: Group
    priority: int | None = None
    splitters: tuple[Splitter, ...] = ()


@dataclass(frozen=True, slots=True)
class GangReader:
    """Reads PodGroups; holds what their fields refer to.

    Parameters
    ----------
    tier_names, queues, priorities
        What names in PodGroups mean.
    locality_all
        Policy ``locality: all``: a PodGroup without networkTopology wants soft locality.
    findings
        Takes what cannot be as meant.
    """

    tier_names: TierNames
    queues: Queues
    priorities: Priorities
    locality_all: bool
    findings: Findings

    def of_volcano(self, written: volcano.PodGroupManifest) -> Gang:
        """Read a PodGroup of Volcano."""
        key = GroupKey(VOLCANO, written.namespace, written.name)
        spec = written.spec or volcano.PodGroupSpec()
        subject = str(key)
        topology, invalid = self._topology(spec.network_topology, subject)
        policies = []
        for index, policy in enumerate(spec.sub_group_policy or ()):
            read, wrong = self._policy(policy, f"spec.subGroupPolicy[{index}]", subject)
            policies.append(read)
            invalid = invalid or wrong
        group = Group(
            key,
            min_member=spec.min_member or 0,
            min_task_member=_checked_roles(spec),
            topology=self._wanted(topology),
            policies=tuple(policies),
            queue=self.queues.of_group(spec, written.namespace, subject),
            created=created(written.metadata),
            min_resources=Resources.from_nano(spec.min_resources or {}),
            invalid=invalid,
        )
        named = spec.priority_class_name
        return Gang(
            group,
            self.priorities.of_class(named, subject) if named else None,
            tuple(map(_splitter, spec.sub_group_policy or ())),
        )

    def of_coscheduling(self, written: coscheduling.CoschedulingPodGroupManifest) -> Gang:
        """Read a PodGroup of the coscheduling plugin, which knows a least number of pods and nothing else."""
        spec = written.spec or coscheduling.CoschedulingPodGroupSpec()
        group = Group(
            GroupKey(COSCHEDULING, written.namespace, written.name),
            min_member=spec.min_member or 0,
            topology=self._wanted(None),
            created=created(written.metadata),
            min_resources=Resources.from_nano(spec.min_resources or {}),
        )
        return Gang(group)

    def absent(self, key: GroupKey) -> Gang:
        """Stand in for a PodGroup that pods name and that is not there: its pods wait."""
        return Gang(Group(key, invalid=f"{key} is not in the instance"))

    def _wanted(self, topology: NetworkTopology | None) -> NetworkTopology | None:
        return NetworkTopology(hard=False) if topology is None and self.locality_all else topology

    def _policy(
        self, written: volcano.SubGroupPolicyEntry, field: str, subject: str
    ) -> tuple[SubGroupPolicy, str | None]:
        if not written.match_label_keys:
            name = f" ({written.name})" if written.name else ""
            message = f"{field}{name} of {subject} has no matchLabelKeys and takes no pod"
            self.findings.add("PolicyMatchesNothing", subject, message)
        topology, invalid = self._topology(written.network_topology, subject, f"{field}.networkTopology")
        policy = SubGroupPolicy(
            name=written.name or "",
            size=written.sub_group_size or 1,
            min_sub_groups=written.min_sub_groups or 0,
            topology=topology,
        )
        return policy, invalid

    def _topology(
        self, written: volcano.GangTopologySpec | None, subject: str, field: str = "spec.networkTopology"
    ) -> tuple[NetworkTopology | None, str | None]:
        """What a scope asks of the tree, and why its group is invalid where it is."""
        if written is None:
            return None, None
        hard, tier, name = written.mode != "soft", written.highest_tier_allowed, written.highest_tier_name
        if name and tier is not None:
            return NetworkTopology(hard, NO_TIER), f"{field} sets both highestTierAllowed and highestTierName"
        if name:
            known = self.tier_names.tier(name, subject)
            return NetworkTopology(hard, NO_TIER if known is None else known, name), None
        if hard and tier is None:
            message = f"{field} of {subject} is hard and sets no highest tier: that is no limit"
            self.findings.add("HardWithoutLimit", subject, message)
        return NetworkTopology(hard, tier), None


def created(metadata: Metadata) -> float:
    """Seconds since the epoch at which an object was made; 0.0 where it does not say."""
    return metadata.creation_timestamp.timestamp() if metadata.creation_timestamp is not None else 0.0


def _checked_roles(spec: volcano.PodGroupSpec) -> Mapping[str, int]:
    """Least pods per role, none where minMember is below their sum: Volcano does not look at them then."""
    roles = spec.min_task_member or {}
    return dict(sorted(roles.items())) if (spec.min_member or 0) >= sum(roles.values()) else {}


def _splitter(policy: volcano.SubGroupPolicyEntry) -> Splitter:
    requirements = label_requirements(policy.label_selector) if policy.label_selector is not None else ()
    return Splitter(requirements, policy.match_label_keys or ())
