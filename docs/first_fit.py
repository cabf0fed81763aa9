"""Two small policies, as a reader of ``docs/notebook.ipynb`` may write them: functions of the instance.

``placer compare INSTANCE --policies mine=first_fit:whole_gangs`` in this folder sets one beside others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from placer.problem import Group, Instance, Key, NetworkTopology

Targets = dict[Key, str]


def first_fit(instance: Instance) -> Mapping[Key, str]:
    """Put each pod on the first node with room for it: no gangs, no tiers."""
    room, found = Room(instance), Targets()
    for pod in instance.pending:
        found |= room.take([pod.key], instance.nodes) or {}
    return found


def whole_gangs(instance: Instance) -> Mapping[Key, str]:
    """Put each gang, the largest first, as a whole into the first domain with room, of the lowest tier there is."""
    room, found = Room(instance), Targets()
    for group in sorted(instance.groups.values(), key=lambda group: -len(group.pending)):
        tries = (room.take_gang(group, domain) for domain in room.domains(group.topology))
        found |= next((targets for targets in tries if targets is not None), {})
    return found


class Room:
    """What is left of each node, and what lies below each domain."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.free = {name: Counter(dict(node.allocatable)) for name, node in instance.nodes.items()}
        for name, held in instance.held.items():
            self.free[name].subtract(dict(held))
        self.nodes: dict[str, list[str]] = defaultdict(list)
        for name in instance.nodes:
            for domain in instance.topology.path(name):
                self.nodes[domain].append(name)

    def domains(self, topology: NetworkTopology | None, within: str | None = None) -> list[str]:
        """Domains of the tiers that are allowed, the lowest first; only those below one, itself among them."""
        tree = self.instance.topology
        limit = tree.root_tier if topology is None or topology.limit is None else topology.limit
        found = [name for name in self.nodes if tree.tier(name) <= limit and within in (None, *tree.paths[name])]
        return sorted(found, key=lambda name: (tree.tier(name), name))

    def take_gang(self, group: Group, domain: str) -> Targets | None:
        """Room for a gang in a domain, for each of its subgroups in a domain there; None where not all of it fits."""
        parts = {key for part in group.sub_groups for key in part.pending}
        found = self.take((key for key in group.pending if key not in parts), self.nodes[domain])
        for part in group.sub_groups:
            topology = group.policies[part.policy].topology
            tries = (self.take(part.pending, self.nodes[inner]) for inner in self.domains(topology, domain))
            targets = next((targets for targets in tries if targets is not None), None)
            if found is None or targets is None:
                self.give_back(found or {})
                return None
            found |= targets
        return found

    def take(self, pods: Iterable[Key], nodes: Iterable[str]) -> Targets | None:
        """Room for pods on the first nodes that have it; None, and none taken, where not all of them fit."""
        found = Targets()
        for key in pods:
            pod = self.instance.pods[key]
            for name in nodes:
                fits = all(self.free[name][resource] >= amount for resource, amount in pod.requests.items())
                if fits and pod.constraints.admits(self.instance.nodes[name]):
                    self.free[name].subtract(dict(pod.requests))
                    found[key] = name
                    break
            else:
                self.give_back(found)
                return None
        return found

    def give_back(self, targets: Targets) -> None:
        """Free the room of pods again."""
        for key, name in targets.items():
            self.free[name].update(dict(self.instance.pods[key].requests))
