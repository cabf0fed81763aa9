"""The slots of a full cluster: every node is cut into pods whose GPUs sum to those of the node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from placer.generate.dice import Dice
from placer.generate.fabric import Fabric
from placer.generate.options import GangMix, whole

__all__ = ["Ground", "Kind", "cut_nodes"]


class Kind(NamedTuple):
    """What tells slots apart: GPUs of the slot, kind of the node, and the grade of the pod that will stand there.

    Grade 1 is rich in CPU and poor in memory, -1 the reverse, 0 neither. Both grades come in pairs of equal size on one
    node, so that together they ask for no more than their GPUs' share.
    """

    gpus: int
    node_type: int
    grade: int = 0


@dataclass
class Ground:
    """Free slots by leaf and kind, counted for every domain of every tier."""

    fabric: Fabric
    dice: Dice
    leaves: list[dict[Kind, list[int]]] = field(init=False)
    counts: list[list[Counter[Kind]]] = field(init=False)

    def __post_init__(self) -> None:
        self.leaves = [{} for _ in range(self.fabric.domains(1))]
        self.counts = [[Counter() for _ in range(self.fabric.domains(t + 1))] for t in range(self.fabric.tiers)]

    def add(self, node: int, kind: Kind) -> None:
        """Add a free slot."""
        self.leaves[self.fabric.domain(1, node)].setdefault(kind, []).append(node)
        for tier, counts in enumerate(self.counts, start=1):
            counts[self.fabric.domain(tier, node)][kind] += 1

    def free(self, tier: int, domain: int, kinds: Iterable[Kind]) -> int:
        """Count the free slots of some kinds in a domain."""
        counts = self.counts[tier - 1][domain]
        return sum(counts[kind] for kind in kinds)

    def take(self, tier: int, domain: int, kinds: Sequence[Kind], pods: int) -> tuple[int, ...]:
        """Take up to ``pods`` slots out of a domain, leaf by leaf, so that few leaves are left in pieces."""
        taken: list[int] = []
        for leaf in self.dice.shuffled(self.fabric.below(tier, domain, 1)):
            for kind in kinds:
                slots = self.leaves[leaf].get(kind, [])
                count = min(pods - len(taken), len(slots))
                if count:
                    taken += slots[-count:]
                    del slots[-count:]
                    self._uncount(leaf, kind, count)
            if len(taken) == pods:
                break
        return tuple(taken)

    def _uncount(self, leaf: int, kind: Kind, count: int) -> None:
        node = self.fabric.members(1, leaf)[0]
        for tier, counts in enumerate(self.counts, start=1):
            counts[self.fabric.domain(tier, node)][kind] -= count

    @property
    def all_free(self) -> Counter[Kind]:
        """Free slots of the whole cluster by kind."""
        return self.counts[-1][0]


def cut_nodes(fabric: Fabric, mix: GangMix, dice: Dice, fill: float) -> Ground:
    """Cut nodes into slots: sizes drawn one after another, each such that the rest of the node can still be filled."""
    ground = Ground(fabric, dice)
    reach = whole(mix.gpus, mix.pod_sizes)
    count = max(1, round(fill * fabric.nodes))
    for node in dice.shuffled(range(fabric.nodes))[:count]:
        sizes, left = list[int](), mix.gpus
        while left:
            sizes.append(dice.pick([size for size in mix.pod_sizes if size <= left and reach[left - size]]))
            left -= sizes[-1]
        for size, grade in _graded(sizes, mix.uneven > 0):
            ground.add(node, Kind(size, fabric.types[node], grade))
    return ground


def _graded(sizes: Sequence[int], uneven: bool) -> Iterator[tuple[int, int]]:
    """Pair equal sizes of one node, a rich pod with a poor one; what finds no partner stays as it is."""
    for size, count in sorted(Counter(sizes).items()):
        pairs = count // 2 if uneven else 0
        yield from [(size, 1), (size, -1)] * pairs
        yield from [(size, 0)] * (count - 2 * pairs)
