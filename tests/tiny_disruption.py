"""Seeded tiny instances in which most room is taken: gangs and pods run that may go, and a few wait (D1 to D5).

Those of :mod:`tests.tiny` with more that runs and less that waits; every third one with areas and AppGroups, or with
labels and terms of :mod:`tests.tiny_neighbours`. At most 6 pods of theirs run, and at most 4 wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from placer.base.quantity import Resources
from placer.problem import GroupKey, HyperNode, Instance, Key, PodState, Queue, SubGroupPolicy
from placer.problem.instance import DisruptionBudget
from placer.problem.what_if import losing, without
from tests.tiny import Tiny, TinyMaker, TinyNetworkMaker
from tests.tiny_neighbours import with_neighbours
from tests.world import GPU, hard

#: Most nodes; of running pods that may go; of pods that wait.
MOST_NODES, MOST_RUNNING, MOST_WAITING = 4, 6, 4
#: Share of groups whose pods state several priorities.
SEVERAL = 0.4


def tiny_disruption(seed: int) -> Tiny:
    """Make the instance of a seed."""
    random = Random(f"tiny disruption {seed}")
    most_pods = dict.fromkeys(range(2, MOST_NODES + 1), MOST_WAITING)
    maker = (_NetworkFiller if seed % 6 == 4 else _Filler)(random, most_pods, most_gangs=2)
    instance, tags = maker.make(), frozenset(maker.tags)
    if seed % 6 == 5:
        instance, more = with_neighbours(random, instance)
        tags |= more
    return _with_several_priorities(Tiny(seed, instance, tags))


def _with_several_priorities(tiny: Tiny) -> Tiny:
    """Let running pods of some groups state priorities of their own, which the groups have no more as they wait."""
    random, pods = Random(f"tiny priorities {tiny.seed}"), {}
    for group in tiny.instance.groups.values():
        if len(group.bound) > 1 and random.random() < SEVERAL:
            stated = {key: random.choice([0, 0, 5, 10, 20]) for key in group.bound}
            pods |= {key: replace(tiny.instance.pods[key], running_priority=each) for key, each in stated.items()}
    tags = tiny.tags | ({"several priorities"} if pods else set())
    return Tiny(tiny.seed, replace(tiny.instance, pods={**tiny.instance.pods, **pods}), tags)


class _Filler(TinyMaker):
    """Fills the nodes before anything waits."""

    def make(self) -> Instance:
        super().make()
        instance = self.world.instance()
        keys = [key for key, pod in instance.pods.items() if pod.state is PodState.BOUND]
        pods = {key: replace(instance.pods[key], protected=self._protected(instance, key)) for key in keys}
        budgets = tuple(self._budgets(keys))
        return replace(instance, pods={**instance.pods, **pods}, budgets=budgets, queues=self._kept(instance.queues))

    def _kept(self, queues: Mapping[str, Queue]) -> dict[str, Queue]:
        """The queues, some of which are not reclaimable."""
        kept = {name: self.chance(0.6, "not reclaimable") for name in queues}
        return {name: replace(each, reclaimable=not kept[name]) for name, each in queues.items()}

    def _protected(self, instance: Instance, key: Key) -> str:
        if instance.pods[key].daemon:
            return "it belongs to its node, as pods of DaemonSets and static pods do"
        return "the Policy protects it" if self.chance(0.05, "protected") else ""

    def _budgets(self, keys: Sequence[Key]) -> list[DisruptionBudget]:
        found = []
        for name in "xy"[: self.random.choice([0, 0, 0, 1, 2])]:
            meant = frozenset(key for key in keys if self.chance(0.4))
            if meant:
                self.tags.add("budget")
                found.append(DisruptionBudget(Key("default", name), meant, self.random.choice([0, 1, 1, 2])))
        return found

    def strangers(self) -> None:
        """What runs: gangs and pods of several priorities, until little room is left."""
        if self.chance(0.15, "other strangers"):
            super().strangers()
        self.left = self.random.choice([1, 2, 2, 3, 3, MOST_WAITING])
        self.running, spare = 0, self.random.choice([0, 1, 1, 2])
        while self.running < MOST_RUNNING and len(self._free()) > spare:
            if self.chance(0.5):
                self._running_gang()
            else:
                self._running_pod()

    def _free(self) -> list[str]:
        """The nodes with a GPU to give, each as often as it has one."""
        free = {name: node.allocatable[GPU] for name, node in self.world.node_list.items()}
        for pod in self.world.pods.values():
            if pod.node in free:
                free[pod.node] -= pod.requests[GPU]
        return [name for name, left in free.items() for _ in range(left)]

    def _running_pod(self) -> None:
        free = self._free()
        where = self.random.choice(free)
        gpu = self.random.randint(1, min(3, free.count(where)))
        self._run(where, None, gpu, priority=self.random.choice([0, 0, 0, 0, 5, 10, 20]))

    def _run(self, where: str, gang: GroupKey | None, gpu: int, **more: object) -> None:
        self.world.running(self.name(), where, gang, gpu, **more)
        self.running += 1

    def _running_gang(self) -> None:
        free = self._free()
        most = min(len(free), MOST_RUNNING - self.running, 3)
        free = self.random.sample(free, self.random.randint(1, most))
        parted = len(free) > 1 and self.chance(0.3, "running subGroups")
        policies = [SubGroupPolicy("part", self.random.randint(1, 2), self.random.randint(0, 1))] if parted else []
        slack = len(free) > 1 and self.chance(0.4, "slack")
        gang = self.world.gang(
            self.name(),
            self.random.randint(0, len(free) - 1) if slack else len(free),
            topology=hard(self.random.choice([1, 2])) if self.chance(0.2, "running hard") else None,
            policies=policies,
            queue=self.queue() if self.chance(0.3) else None,
            priority=self.random.choice([0, 0, 0, 0, 5, 10]),
        )
        home = self.world.gangs[gang]
        home.group = replace(home.group, disrupted_whole=slack and self.chance(0.3, "disruptionMode"))
        gpu = 2 if self.chance(0.4) and all(self._free().count(where) >= 2 * free.count(where) for where in free) else 1
        for index, where in enumerate(free):
            self._run(where, gang, gpu, part=f"{index % 2}" if parted else None)

    def gang(self) -> GroupKey:
        gang = super().gang()
        home = self.world.gangs[gang]
        least = max(home.group.min_member, self.random.choice([0, 1, 1]))
        home.group = replace(home.group, min_member=least, priority=self.random.choice([0, 10, 10, 10, 10, 20]))
        return gang


class _NetworkFiller(_Filler, TinyNetworkMaker):
    """The same beneath areas, links and AppGroups."""


def tiny_repair(seed: int) -> Instance:
    """Make an instance of which a node is lost, as ``repair`` sees it: groups with pods there wait, nothing else does.

    Another node is in a leaf of its own, so that what has no room where it was may be moved there.
    """
    random, instance = Random(f"tiny repair {seed}"), tiny_disruption(seed).instance
    pods = [pod for pod in instance.pods.values() if pod.state is PodState.BOUND and not pod.daemon]
    near = [pod for pod in pods if pod.group and instance.groups[pod.group].topology]
    homes = sorted({pod.node or "" for pod in near or pods} & instance.nodes.keys()) or list(instance.nodes)
    wide = with_spare_leaf(instance, homes[0], random.randint(1, 4))
    return losing(wide, [random.choice(homes)])


def with_spare_leaf(instance: Instance, like: str, gpus: int) -> Instance:
    """The instance with one more node, like another but of so many GPUs, in a leaf of its own."""
    room = Resources({GPU: gpus, "pods": 9})
    spare = replace(instance.nodes[like], name="spare", allocatable=room)
    tree = instance.topology
    leaves = {**tree.hyper_nodes, "spare": HyperNode("spare", 1, nodes=("spare",))}
    return replace(
        instance,
        nodes=dict(sorted({**instance.nodes, "spare": spare}.items())),
        topology=replace(tree, hyper_nodes=dict(sorted(leaves.items())), root_tier=max(2, tree.root_tier)),
    )


def tiny_defrag(seed: int) -> Instance:
    """Make an instance in which room is made by moves alone for all that waits, in some by no more than so many."""
    random, instance = Random(f"tiny defrag {seed}"), tiny_disruption(seed).instance
    return replace(instance, moves_only=True, most_moves=random.choice([None, None, 1, 2, 3]))


def tiny_emptying(seed: int) -> tuple[Instance, int, int]:
    """Make an instance of which domains are to be empty, in some by no more moves than so many; tier and number.

    Another node is in a leaf of its own, so that what runs may be moved there.
    """
    random, instance = Random(f"tiny emptying {seed}"), tiny_disruption(seed).instance
    wide = with_spare_leaf(instance, next(iter(instance.nodes)), random.randint(1, 4))
    nothing_waits = without(wide, {pod.key for pod in wide.pending})
    tiers = sorted({each.tier for each in wide.topology.hyper_nodes.values()})
    tier, count, most = random.choice([1, 1, *tiers]), random.choice([1, 1, 2]), random.choice([None, None, 1, 2, 3])
    return replace(nothing_waits, moves_only=True, most_moves=most), tier, count
