"""Seeded tiny instances with NUMA zones: those of :mod:`tests.tiny`, their nodes split, their pods' demands told.

Every third is one with a network, so that gangs, tier limits, calls and zones meet. The instance below stays as it is;
zones take their chances from a stream of their own.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from placer.base.quantity import CPU, Resources
from placer.problem import Instance, Node, Pod, PodState
from placer.problem.numa import UNKNOWN, NumaContainer, NumaDemand, NumaNode, NumaZone, Qos, Stage
from tests.tiny import Tiny, tiny, tiny_network
from tests.world import GPU


def tiny_numa(seed: int) -> Tiny:
    """Make the instance of a seed."""
    base = tiny_network(seed // 3) if seed % 3 == 2 else tiny(seed)
    maker = _Maker(Random(f"tiny numa {seed}"), Random(f"unknown policies {seed}"), base.instance)
    return Tiny(seed, maker.make(), base.tags | maker.tags)


class _Maker:
    """Zones over the nodes of one instance, demands over its pods."""

    def __init__(self, random: Random, strange: Random, instance: Instance) -> None:
        self.random, self.strange, self.instance = random, strange, instance
        self.tags: set[str] = set()

    def make(self) -> Instance:
        nodes = {name: replace(node, numa=self._numa(node)) for name, node in self.instance.nodes.items()}
        pods = {key: self._pod(pod) for key, pod in self.instance.pods.items()}
        policy = self.instance.policy
        if self._chance(0.04, "zonesOff"):
            policy = replace(policy, rules_off=policy.rules_off | {"C10"})
        return replace(self.instance, nodes=nodes, pods=pods, policy=policy)

    def _chance(self, probability: float, tag: str = "") -> bool:
        yes = self.random.random() < probability
        if yes and tag:
            self.tags.add(tag)
        return yes

    def _numa(self, node: Node) -> NumaNode | None:
        """Two zones, or three; now and then none at all, or a resource that they do not list."""
        if self._chance(0.07, "nodeWithoutZones"):
            return None
        kind = self.random.choice(["single-numa-node"] * 7 + ["restricted"] * 3 + ["best-effort", "none"])
        if self.strange.random() < 0.06:
            kind = UNKNOWN
        scope = self.random.choice(["container", "pod"])
        self.tags |= {kind, f"scope:{scope}"}
        names = [name for name in (GPU, CPU) if not self._chance(0.07, "unlisted")]
        count = 3 if self._chance(0.2, "threeZones") else 2
        shares = {name: self._split(node.allocatable[name], 1000 if name == CPU else 1, count) for name in names}
        gone = {name: self._gone(node, name, amounts) for name, amounts in shares.items()}
        zones = []
        for number in range(count):
            capacity = Resources({name: amounts[number] for name, amounts in shares.items()})
            available = capacity - Resources({name: amounts[number] for name, amounts in gone.items()})
            zones.append(NumaZone(number, f"node-{number}", capacity, available, capacity, frozenset(names)))
        return NumaNode(kind, scope, tuple(zones))

    def _split(self, amount: int, piece: int, count: int) -> list[int]:
        """Pieces of a node's amount dealt out to its zones."""
        dealt = [0] * count
        for _ in range(amount // piece):
            dealt[self.random.randrange(count)] += piece
        return dealt

    def _gone(self, node: Node, name: str, amounts: list[int]) -> list[int]:
        """What pods on the node took, from zones by chance."""
        held = self.instance.held.get(node.name, Resources())[name]
        taken = [0] * len(amounts)
        for number in self.random.sample(range(len(amounts)), len(amounts)):
            taken[number] = min(held, amounts[number])
            held -= taken[number]
        return taken

    def _pod(self, pod: Pod) -> Pod:
        """The same pod, with its requests told container by container, and an age."""
        created = float(self.random.randint(1, 2))
        if pod.state is not PodState.PENDING or self._chance(0.05, "podWithoutDemand"):
            return replace(pod, created=created)
        asked = Resources({name: pod.requests[name] for name in (GPU, CPU)})
        parts = [asked]
        if self._chance(0.35, "twoContainers"):
            first = Resources({name: self._part(name, amount) for name, amount in asked.items()})
            parts = [first, asked - first]
        containers = [NumaContainer(f"c{number}", Stage.APP, part) for number, part in enumerate(parts)]
        if len(parts) == 2 and self._chance(0.3, "sidecar"):
            containers[0] = replace(containers[0], stage=Stage.SIDECAR)
        if self._chance(0.2, "initContainer"):
            init = Resources({name: self._part(name, amount) for name, amount in parts[-1].items()})
            containers.insert(
                self.random.randrange(2) if "sidecar" in self.tags else 0, NumaContainer("i", Stage.INIT, init)
            )
            containers.sort(key=lambda each: each.stage is Stage.APP)
        qos = Qos.BURSTABLE if self._chance(0.15, "burstable") else Qos.GUARANTEED
        return replace(pod, created=created, numa=NumaDemand(qos, tuple(containers)))

    def _part(self, name: str, amount: int) -> int:
        """Some of an amount: nothing, all, or a part."""
        return self.random.choice([0, amount, amount // 2 if name == CPU else self.random.randint(0, amount)])
