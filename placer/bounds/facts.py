"""What every bound of an instance counts with, worked out once."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from placer.bounds.alone import Alone
from placer.bounds.everything import Everything
from placer.bounds.volume import Volume
from placer.dense import Dense

__all__ = ["Facts", "facts_of"]


class Facts:
    """What counting finds out about an instance before any value is known.

    Parameters
    ----------
    dense
        The instance.
    """

    def __init__(self, dense: Dense) -> None:
        self.dense = dense
        self.alone = Alone(dense)

    @cached_property
    def asked(self) -> dict[int, int]:
        """Priority to the weight of all its pods that can be placed."""
        found: dict[int, int] = defaultdict(int)
        for group, weight in zip(self.dense.groups, self._weights, strict=True):
            found[group.priority] += weight
        return found

    @cached_property
    def elastic(self) -> frozenset[int]:
        """Priorities with a group that can place more than what ``admitted`` counts of it."""
        pairs = zip(self.dense.groups, self._weights, strict=True)
        return frozenset(group.priority for group, weight in pairs if weight > group.need_weight)

    @cached_property
    def _weights(self) -> list[int]:
        """Per group the weight of its pods that can be placed."""
        sizes, classes = self.alone.sizes.tolist(), self.dense.classes
        return [sum(classes[index].weight * sizes[index] for index in group.classes) for group in self.dense.groups]

    @cached_property
    def volume(self) -> Volume:
        """Amounts and pieces in all."""
        return Volume(self.alone)

    @cached_property
    def everything(self) -> Everything:
        """Values that are minimised where every pod is placed that can be."""
        return Everything(self.alone)


_last: list[Facts] = []


def facts_of(dense: Dense) -> Facts:
    """Find the facts of an instance; those of the last one are kept, since searches ask again with every answer."""
    for facts in _last:
        if facts.dense is dense:
            return facts
    found = Facts(dense)
    _last[:] = [found]
    return found
