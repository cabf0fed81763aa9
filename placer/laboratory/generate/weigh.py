"""CPU and memory of pods: in proportion to their GPUs, or straying from it while every node still holds its pods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from placer.laboratory.generate.carving import CarvedGang
from placer.laboratory.generate.fabric import NODE_TYPES, Fabric
from placer.laboratory.generate.options import GangMix
from placer.laboratory.generate.random_source import RandomSource

__all__ = ["weigh"]

#: Requests are multiples of a tenth of a core and of 64 MiB, as people write them.
GRAIN = {"cpu": 100, "memory": 64}


def weigh(gangs: Sequence[CarvedGang], fabric: Fabric, mix: GangMix, source: RandomSource) -> list[CarvedGang]:
    """Give the pods of gangs that were cut from one cluster their CPU and memory, so that every node holds what was
    cut from it.
    """
    cpu, memory = (iter(_Loads(gangs, fabric, mix, source, resource).amounts()) for resource in ("cpu", "memory"))
    return [
        replace(gang, parts=tuple(replace(part, cpu=next(cpu), memory=next(memory)) for part in gang.parts))
        for gang in gangs
    ]


def _factor(grade: int, uneven: float, source: RandomSource) -> float:
    """Draw a factor: of a graded part on its own side of 1."""
    return source.between(1 - uneven * (grade <= 0), 1 + uneven * (grade >= 0))


class _Loads:
    """One resource over all parts: each part asks its GPUs' share times a factor.

    Factors are drawn around 1. Those above 1 shrink until every node holds its pods, and then grow again, one part
    after another, into the room that poorer neighbours leave; so on many nodes this resource is as scarce as the GPUs
    are.
    """

    def __init__(
        self, gangs: Sequence[CarvedGang], fabric: Fabric, mix: GangMix, source: RandomSource, resource: str
    ) -> None:
        rates = [getattr(each, resource) for each in NODE_TYPES]
        self.parts = [part for gang in gangs for part in gang.parts]
        sign = 1 if resource == "cpu" else -1
        self.drawn = [_factor(sign * part.grade, mix.uneven, source) for part in self.parts]
        self.factors = list(self.drawn)
        #: The GPUs' share of a pod, on the poorest kind of node that its part was cut from.
        self.shares = [
            part.gpus * min(rates[kind] for kind in {fabric.types[node] for node in part.nodes}) for part in self.parts
        ]
        self.rooms = [float(mix.gpus * rates[kind]) for kind in fabric.types]
        self.grain = GRAIN[resource]

    def amounts(self) -> list[int]:
        """Amount per pod of each part, rounded down."""
        if any(factor != 1 for factor in self.factors):
            self._shrink()
            self._grow()
        scaled = zip(self.shares, self.factors, strict=True)
        return [int(share * factor) // self.grain * self.grain for share, factor in scaled]

    def _counts(self, index: int) -> dict[int, int]:
        """Pods of a part by node."""
        counts: dict[int, int] = {}
        for node in self.parts[index].nodes:
            counts[node] = counts.get(node, 0) + 1
        return counts

    def _shrink(self) -> None:
        """Bring factors above 1 nearer to 1, node by node; a smaller factor helps every other node too."""
        on_node: dict[int, dict[int, int]] = {}
        for index in range(len(self.parts)):
            for node, count in self._counts(index).items():
                on_node.setdefault(node, {})[index] = count
        for node in sorted(on_node):
            shares = {index: self.shares[index] * count for index, count in on_node[node].items()}
            base = sum(share * min(1.0, self.factors[index]) for index, share in shares.items())
            excess = sum(share * max(0.0, self.factors[index] - 1) for index, share in shares.items())
            if base + excess > self.rooms[node]:
                scale = (self.rooms[node] - base) / excess
                for index in shares:
                    self.factors[index] = min(self.factors[index], 1 + max(0.0, self.factors[index] - 1) * scale)

    def _grow(self) -> None:
        """Let each part that was drawn above 1 grow towards that, as far as all its nodes allow."""
        left = list(self.rooms)
        for index in range(len(self.parts)):
            for node, count in self._counts(index).items():
                left[node] -= self.shares[index] * self.factors[index] * count
        for index, wanted in enumerate(self.drawn):
            counts = self._counts(index)
            step = min(left[node] / (self.shares[index] * count) for node, count in counts.items())
            step = max(0.0, min(step, wanted - self.factors[index]))
            self.factors[index] += step
            for node, count in counts.items():
                left[node] -= self.shares[index] * step * count
