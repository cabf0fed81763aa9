"""Nodes, domains, groups, pods and queues as columns.

Shared values stand once and are pointed at by index (-1: none): 55,000 pods stay a page of a few MiB.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from placer.answers.document import GroupPart
from placer.answers.report.answers import Answer
from placer.answers.summary.queue import reason_words
from placer.base.quantity import CPU, PODS, Resources, is_bytes
from placer.problem import Group, GroupKey, Instance, Key, Node, PodState
from placer.problem.communication import REGION_LABEL, ZONE_LABEL
from placer.problem.gpus import is_gpu
from placer.problem.outcome import pods_by_queue, requested

#: Index of what is not there.
NOTHING = -1
#: Most columns of resources that no node has: one pod may ask for thousands.
_MOST_ASKED = 20

Item = TypeVar("Item", bound=Hashable)


@dataclass
class DomainColumns:
    """Domains, each behind its parent: of the tier tree, else regions and zones.

    ``kind``: ``HyperNode``, ``area`` or empty. ``of_node``: node to its lowest domain's index. The tier of an area is
    null.
    """

    kind: str = ""
    names: list[str] = field(default_factory=list)
    tiers: list[int | None] = field(default_factory=list)
    tier_names: list[str] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    of_node: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, instance: Instance) -> DomainColumns:
        """Take the tier tree, else the regions and zones where there are several."""
        if instance.topology.hyper_nodes:
            return cls._of_tree(instance)
        areas = {_area(node) for node in instance.nodes.values()}
        return cls._of_areas(instance) if len(areas) > 1 else cls()

    @classmethod
    def _of_tree(cls, instance: Instance) -> DomainColumns:
        tree, found, index = instance.topology, cls("HyperNode"), dict[str, int]()
        stack = [name for name, each in tree.hyper_nodes.items() if each.parent is None][::-1]
        while stack:
            each = tree.hyper_nodes[stack.pop()]
            index[each.name] = found._add(
                each.name, each.tier, each.tier_name, NOTHING if each.parent is None else index[each.parent]
            )
            stack += reversed(each.children)
        found.of_node = {node: index[leaf] for node, leaf in tree.leaf.items()}
        return found

    @classmethod
    def _of_areas(cls, instance: Instance) -> DomainColumns:
        found, index = cls("area"), dict[tuple[str, ...], int]()
        regions_of: dict[str, set[str]] = defaultdict(set)
        for node in instance.nodes.values():
            regions_of[_area(node)[1]].add(_area(node)[0])
        for name, node in instance.nodes.items():
            region, zone = _area(node)
            above = NOTHING
            for path, kind in (((region,), "region"), ((region, zone), "zone")):
                if path[-1]:
                    short = len(path) == 1 or len(regions_of[zone]) == 1
                    title = path[-1] if short else "/".join(path)
                    above = index[path] if path in index else found._add(title, None, kind, above)
                    index[path] = above
            if above != NOTHING:
                found.of_node[name] = above
        return found

    def _add(self, name: str, tier: int | None, tier_name: str, parent: int) -> int:
        self.names.append(name)
        self.tiers.append(tier)
        self.tier_names.append(tier_name)
        self.parents.append(parent)
        return len(self.names) - 1

    def as_dict(self) -> dict[str, Any]:
        """The columns."""
        columns = {"name": self.names, "tier": self.tiers, "tierName": self.tier_names, "parent": self.parents}
        return {"kind": self.kind, **columns}


@dataclass(frozen=True)
class Inventory:
    """The columns of one report, and the values they share."""

    answer: Answer

    @cached_property
    def instance(self) -> Instance:
        """The problem; what is evicted, moved or lost waits in it."""
        return self.answer.outcome.instance

    @cached_property
    def before(self) -> Instance:
        """The problem as its objects say."""
        return self.answer.before

    @cached_property
    def resources(self) -> list[str]:
        """Resources of nodes, and those that most pods ask for in vain: GPUs first."""
        names = {name for node in self.instance.nodes.values() for name in node.allocatable}
        asked = Counter(name for pod in self.instance.pods.values() for name in pod.requests if name not in names)
        names |= {name for name, _ in asked.most_common(_MOST_ASKED)}
        return sorted(names, key=lambda name: (_rank(name), name))

    @cached_property
    def _amounts(self) -> dict[tuple[int, ...], int]:
        return {}

    def _vector(self, amounts: Resources) -> int:
        return _shared(self._amounts, tuple(amounts[name] for name in self.resources))

    @cached_property
    def node_index(self) -> Mapping[str, int]:
        """Node name to its index."""
        return {name: index for index, name in enumerate(self.instance.nodes)}

    @cached_property
    def groups(self) -> list[Group]:
        """Groups that have a pod."""
        return [group for group in self.instance.groups.values() if group.pending or group.bound]

    @cached_property
    def group_index(self) -> Mapping[GroupKey, int]:
        """Group to its index."""
        return {group.key: index for index, group in enumerate(self.groups)}

    @cached_property
    def after(self) -> Instance:
        """The problem with the placement carried out."""
        return self.answer.outcome.carried_out()

    def as_dict(self) -> dict[str, Any]:
        """All columns; ``amounts`` last, since the others fill it."""
        tables = {
            "domains": self.domains.as_dict(),
            "nodes": self._nodes(),
            "groups": self._groups(),
            "pods": self._pods(),
            "queues": self._queues(),
            "applications": [str(key) for key in self.instance.app_groups],
        }
        return {
            "resources": [{"name": name, "unit": unit_of(name), "gpu": is_gpu(name)} for name in self.resources],
            **tables,
            "amounts": list(self._amounts),
        }

    @cached_property
    def domains(self) -> DomainColumns:
        """The domains."""
        return DomainColumns.of(self.instance)

    # -------------------------------------------------------------------------------------------------------- nodes

    def _nodes(self) -> dict[str, Any]:
        nodes, held, after = self.instance.nodes, self.before.held, self.after.held
        nothing = Resources()
        notes = {index: note for index, node in enumerate(nodes.values()) if (note := _note(node))}
        return {
            "name": list(nodes),
            "domain": [self.domains.of_node.get(name, NOTHING) for name in nodes],
            "allocatable": [self._vector(node.allocatable) for node in nodes.values()],
            "before": [self._vector(held.get(name, nothing)) for name in nodes],
            "after": [self._vector(after.get(name, nothing)) for name in nodes],
            "notes": notes,
            "closed": [index for index, node in enumerate(nodes.values()) if node.unschedulable or not node.ready],
            "zones": self._zones(),
        }

    def _zones(self) -> dict[int, Any]:
        known = {name: node.numa for name, node in self.instance.nodes.items() if node.numa is not None}
        found = {}
        for name, numa in known.items():
            then = self.after.nodes[name].numa or numa
            zones = [
                [before.name, *map(self._vector, (before.available, now.available, before.capacity))]
                for before, now in zip(numa.zones, then.zones, strict=True)
            ]
            found[self.node_index[name]] = {"policy": numa.policy, "scope": numa.scope, "zones": zones}
        return found

    # ------------------------------------------------------------------------------------------------------- groups

    def _groups(self) -> dict[str, list[Any]]:
        parts: dict[tuple[str, str, str], GroupPart] = {
            (part.kind, part.namespace, part.name): part for part in self.answer.document.groups
        }
        columns: dict[str, list[Any]] = defaultdict(list)
        for group in self.groups:
            part = parts.get((group.key.kind, group.key.namespace, group.key.name)) if group.pending else None
            for name, value in self._group(group, part).items():
                columns[name].append(value)
        return dict(columns)

    def _group(self, group: Group, part: GroupPart | None) -> dict[str, Any]:
        outcome = self.answer.outcome
        new, reason = outcome.added(group.pending), self.answer.result.reasons.get(group.key)
        moved, evicted = (sum(key in gone for key in group.pending) for gone in self._disturbed)
        return {
            "kind": group.key.kind,
            "namespace": group.key.namespace,
            "name": group.key.name,
            "priority": group.priority,
            "queue": group.queue,
            "created": self._created(group),
            "least": group.min_member,
            "ready": outcome.ready(group),
            "before": len(group.bound) + sum(self.before.pods[key].state.on_node for key in group.pending),
            "new": len(new) - moved,
            "moved": moved,
            "evicted": evicted,
            "waiting": len(group.pending) - len(new),
            "asked": _asked(group),
            **self._where(group, new),
            "code": None if reason is None else reason.code,
            "message": None if reason is None else reason.message,
            "words": None if reason is None else reason_words(self.instance, group, reason, self._priorities),
            "subGroups": [] if part is None else [[s.name, s.placed, s.tier, s.hyper_node] for s in part.sub_groups],
        }

    @cached_property
    def _priorities(self) -> Mapping[str, int]:
        return {str(key): group.priority for key, group in self.instance.groups.items()}

    def _created(self, group: Group) -> int | None:
        pods = (self.instance.pods[key].created for key in (*group.pending, *group.bound))
        since = group.created or min((each for each in pods if each), default=0.0)
        return int(since) or None

    @cached_property
    def _disturbed(self) -> tuple[Container[Key], Container[Key]]:
        return self.answer.disruption.moved, frozenset(self.answer.disruption.evicted)

    def _where(self, group: Group, new: Iterable[Key]) -> dict[str, Any]:
        tree = self.instance.topology
        on = [self.instance.pods[key].node or "" for key in group.bound]
        on += [self.answer.outcome.new[key] for key in new]
        if not (tree.hyper_nodes and on):
            return {"tier": None, "domain": None, "leaves": None, "nodes": len(set(on))}
        common = tree.smallest_common(on)
        leaves = {tree.leaf.get(node, node) for node in on}
        return {"tier": tree.tier(common), "domain": common, "leaves": len(leaves), "nodes": len(set(on))}

    # --------------------------------------------------------------------------------------------------------- pods

    def _pods(self) -> dict[str, Any]:
        pods, new = self.instance.pods, self.answer.outcome.new
        namespaces: dict[str, int] = {}
        applications = {key: number for number, key in enumerate(self.instance.app_groups)}
        return {
            "namespace": [_shared(namespaces, key.namespace) for key in pods],
            "name": [key.name for key in pods],
            "group": [_place(self.group_index, pod.group) for pod in pods.values()],
            "requests": [self._vector(pod.requests) for pod in pods.values()],
            "application": [_place(applications, pod.app_group) for pod in pods.values()],
            "state": "".join(_STATES[pod.state] for pod in self.before.pods.values()),
            "before": [_place(self.node_index, pod.node) for pod in self.before.pods.values()],
            "after": [_place(self.node_index, new.get(key, pod.node)) for key, pod in pods.items()],
            "zones": self._zones_of_pods(),
            "namespaces": list(namespaces),
        }

    def _zones_of_pods(self) -> dict[int, list[str]]:
        bindings = self.answer.outcome.placement.bindings
        zones = {binding.pod: list(binding.numa_zones) for binding in bindings if binding.numa_zones}
        return {index: zones[key] for index, key in enumerate(self.instance.pods) if key in zones}

    # ------------------------------------------------------------------------------------------------------- queues

    def _queues(self) -> list[dict[str, Any]]:
        on_node, stay = ([p for p in i.pods.values() if p.state.on_node] for i in (self.before, self.instance))
        new = [self.instance.pods[key] for key in self.answer.outcome.new]
        waiting = [pod for pod in self.instance.pending if pod.key not in self.answer.outcome.new]
        before, after, left = (pods_by_queue(self.instance, pods) for pods in (on_node, [*stay, *new], waiting))
        return [
            {
                "name": name,
                "parent": queue.parent,
                "open": queue.open,
                "weight": queue.weight,
                "capability": dict(queue.capability),
                "before": requested(before.get(name, ())),
                "after": requested(after.get(name, ())),
                "waiting": len(left.get(name, ())),
            }
            for name, queue in self.instance.queues.items()
        ]


def _shared(index: dict[Item, int], item: Item) -> int:
    """Number a value when it is first asked for."""
    return index.setdefault(item, len(index))


def _place(index: Mapping[Item, int], item: Item | None) -> int:
    return NOTHING if item is None else index.get(item, NOTHING)


def _area(node: Node) -> tuple[str, str]:
    return node.labels.get(REGION_LABEL, ""), node.labels.get(ZONE_LABEL, "")


_STATES = {PodState.PENDING: "p", PodState.BOUND: "b", PodState.TERMINATING: "t", PodState.NOMINATED: "n"}


def unit_of(resource: str) -> str:
    """What an amount counts: ``milli`` (cpu), ``bytes``, ``count``."""
    if resource == CPU:
        return "milli"
    return "bytes" if is_bytes(resource) or resource == "storage" else "count"


def _rank(resource: str) -> int:
    if is_gpu(resource):
        return 0
    return {CPU: 2, "memory": 3, PODS: 5}.get(resource, 4 if unit_of(resource) == "bytes" else 1)


def _note(node: Node) -> str:
    said = [
        *([] if node.ready else ["not Ready"]),
        *(["cordoned"] if node.unschedulable else []),
        *(f"taint {each.key}{'=' + each.value if each.value else ''}:{each.effect}" for each in node.taints),
    ]
    return ", ".join(said)


def _asked(group: Group) -> str:
    topology = group.topology
    if topology is None:
        return ""
    if topology.highest_tier is None:
        return "as near as can be"
    return f"{'at most' if topology.hard else 'if possible'} {topology.asked.removeprefix('highest ')}"
