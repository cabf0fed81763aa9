"""Bundles that are counted as one where pods of a shape are pooled and everything is placed.

Then all contents of one leaf, groups or subgroups, can take each other's place if they ask for the same pods and may be
in the same leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from placer.base.grouping import grouped
from placer.search.exact.variables import Bundle, Bundles, Item, Reach


@dataclass(frozen=True)
class PooledBundles(Bundles):
    """Bundles that are counted, each of one or more of those that the exact model has (``apart``).

    A pooled bundle has the members of all that are in it and the scope of the first. ``items`` of a group lack those of
    its subgroups that are pooled with others. ``items_of`` has per item those of ``apart``, in the order of its
    members.
    """

    apart: Bundles
    items_of: tuple[tuple[int, ...], ...]

    def classes(self, bundle: Bundle) -> Iterator[list[int]]:
        """Classes of each member of a bundle; of a group those of its subgroups, too."""
        items = [self.items[item].classes for item in bundle.items]
        alone = [[index for each in items for index in each]]
        yield from alone if bundle.many == 1 else map(list, zip(*items, strict=True))

    def shared_out(self, found: Mapping[int, Counter[int]]) -> dict[int, Counter[int]]:
        """Share out pooled pods among their owners: item of ``apart`` to how many of its pods are at each place.

        ``found`` is the same per pooled item; places of one leaf follow each other. A member is in one leaf with all
        its items.
        """
        shared: dict[int, Counter[int]] = {}
        for item, by_place in found.items():
            places = iter(sorted(by_place.elements()))
            for each in self.items_of[item]:
                shared[each] = Counter(islice(places, self.apart.items[each].total))
        return shared


def pool_bundles(bundles: Bundles, shape_of: Sequence[int]) -> PooledBundles:
    """Pool the bundles that can take each other's place where everything is placed; ``shape_of`` is per item."""
    return _BundlePool(bundles, shape_of).pooled()


class _BundlePool:
    def __init__(self, bundles: Bundles, shape_of: Sequence[int]) -> None:
        self.bundles, self.shape_of = bundles, shape_of
        self.all: tuple[Bundle, ...] = (*bundles.gangs, *bundles.parts)
        self.divided = {part.gang for part in bundles.parts}

    def pooled(self) -> PooledBundles:
        pools = list(grouped(range(len(self.all)), self._key).values())  # by the first of each
        items_of, of_item = self._items(pools)
        gang_of = {
            index: number for number, index in enumerate(pool[0] for pool in pools if pool[0] < len(self.bundles.gangs))
        }
        found = [self._bundle(pool, of_item, gang_of) for pool in pools]
        return PooledBundles(
            tuple(found[: len(gang_of)]),
            tuple(found[len(gang_of) :]),
            tuple(map(self._item, items_of)),
            self.bundles,
            tuple(items_of),
        )

    def _key(self, index: int) -> Hashable:
        bundle = self.all[index]
        free = self.bundles.gangs[bundle.gang].reach is Reach.FREE if bundle.policy >= 0 else index not in self.divided
        if bundle.reach is not Reach.LEAF or not free:
            return index
        asked = tuple((self.shape_of[item], self.bundles.items[item].size) for item in self._ordered(bundle))
        return asked, bundle.homes  # a leaf has to hold it because of a limit, and what has one counts in O2

    def _ordered(self, bundle: Bundle) -> list[int]:
        return sorted(bundle.items, key=lambda item: (self.shape_of[item], self.bundles.items[item].size))

    def _items(self, pools: Sequence[Sequence[int]]) -> tuple[list[tuple[int, ...]], dict[int, int]]:
        together = {}
        for pool in pools:
            if len(pool) > 1:
                for row in zip(*(self._ordered(self.all[index]) for index in pool), strict=True):
                    together.update(dict.fromkeys(row, row))
        rows = (together.get(item, (item,)) for item in range(len(self.bundles.items)))
        items_of = list(dict.fromkeys(rows))
        return items_of, {row[0]: number for number, row in enumerate(items_of)}

    def _item(self, row: Sequence[int]) -> Item:
        items = [self.bundles.items[item] for item in row]
        return Item(tuple(index for each in items for index in each.classes), items[0].size, items[0].fits)

    def _bundle(self, pool: Sequence[int], of_item: Mapping[int, int], gang_of: Mapping[int, int]) -> Bundle:
        first = self.all[pool[0]]
        members = tuple(member for index in pool for member in self.all[index].members)
        items = tuple(of_item[item] for item in first.items if item in of_item)
        return replace(first, members=members, items=items, gang=gang_of[first.gang])
