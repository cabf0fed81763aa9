"""The Topology Manager of a kubelet on packed integers, for methods that ask it millions of times (C10).

It finds the same zones as :class:`placer.problem.numa.TopologyManager`. A state has one integer per zone: the room of
every aligned resource in a field, and above each field a guard bit. A demand fits if subtracting it leaves all guard
bits set. With fields of 3 and 4 bits for cores and GPUs::

    room of 6 cores, 2 GPUs    1 110 1 0010
    asked   5 cores, 3 GPUs  - 0 101 0 0011
                             = 1 001 0 1111    the guard bit of GPUs is gone: one is lacking
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, reduce
from itertools import accumulate, combinations
from operator import or_
from typing import NamedTuple

from placer.problem.numa import (
    MOST_ALIGNED,
    UNKNOWN,
    Alignment,
    NumaDemand,
    NumaNode,
    aligned_resources,
    alignments_of,
    lowest_set,
)

#: Room of each zone in the order of ids, packed; only :class:`PackedKubelet` can read it.
State = tuple[int, ...]


class Unit(NamedTuple):
    """Amounts that are aligned at once, of a container or the pod, packed for one :class:`PackedKubelet`.

    ``take``: taken afterwards. ``width``: number of zones; 0: never aligned here. ``amounts``: index, need and take of
    each resource. ``again``: resources that later units of the pod get again, of an init container that ends.
    """

    need: int
    take: int
    width: int
    amounts: tuple[tuple[int, int, int], ...]
    again: tuple[int, ...] = ()


#: A pod as one kubelet sees it; empty where nothing of it is aligned there.
Units = tuple[Unit, ...]


def packed_kubelets(nodes: Mapping[str, NumaNode]) -> dict[str, PackedKubelet]:
    """The kubelet of each node; nodes of equal hardware and settings share one."""
    made: dict[object, PackedKubelet] = {}
    found = {}
    for name, node in nodes.items():
        kubelet = PackedKubelet(node)
        found[name] = made.setdefault(kubelet.kind, kubelet)
    return found


class PackedKubelet:
    """The Topology Manager of one kind of node, with a policy that refuses pods; :meth:`start` reads available amounts.

    Examples
    --------
    >>> from placer.problem.numa import NumaContainer, NumaZone, Qos, Stage
    >>> from placer.base.quantity import Resources
    >>> two, four = Resources({"cpu": 2000}), Resources({"cpu": 4000})
    >>> zones = [NumaZone(i, f"node-{i}", four, room, four, frozenset(["cpu"])) for i, room in enumerate((two, four))]
    >>> node = NumaNode("single-numa-node", "container", tuple(zones))
    >>> pod = NumaDemand(Qos.GUARANTEED, (NumaContainer("main", Stage.APP, Resources({"cpu": 3000, "memory": 5})),))
    >>> kubelet = PackedKubelet(node)
    >>> after, used = kubelet.admit(kubelet.start(node), kubelet.units(pod))
    >>> kubelet.names(used), kubelet.amounts(after), kubelet.admit(after, kubelet.units(pod))
    (('node-1',), [[2000], [1000]], None)
    """

    def __init__(self, node: NumaNode) -> None:
        self.policy, self.scope = node.policy, node.scope
        self.zones = tuple(zone.name for zone in node.zones)
        self.resources = aligned_resources(node)
        capacity = [[zone.capacity[name] for zone in node.zones] for name in self.resources]
        self._bits = [_most_of(node, name).bit_length() for name in self.resources]
        self._shifts = [sum(self._bits[:index]) + index for index in range(len(self._bits))]
        self._guard = sum(1 << (shift + width) for shift, width in zip(self._shifts, self._bits, strict=True))
        self._largest = [sorted(amounts, reverse=True) for amounts in capacity]
        self._units: dict[NumaDemand, Units] = {}

    def __getstate__(self) -> dict[str, object]:
        """Leaves the memory of pods out, since it travels to other processes with every step of a search."""
        return {**self.__dict__, "_units": {}}

    @property
    def kind(self) -> object:
        """Two kubelets of one kind take every pod alike, whatever is available."""
        return (
            self.policy,
            self.scope,
            self.zones,
            self.resources,
            tuple(self._bits),
            tuple(map(tuple, self._largest)),
        )

    # -------------------------------------------------------------------------------------------------------- by state

    def start(self, node: NumaNode) -> State:
        """Available room of the zones of a node, before any new pod."""
        return tuple(self._pack([zone.available[name] for name in self.resources]) for zone in node.zones)

    def amounts(self, state: State) -> list[list[int]]:
        """Room left in each zone, in the order of ``resources``."""
        return [self._amounts(room) for room in state]

    def names(self, zones: int) -> tuple[str, ...]:
        """Names of the zones of a bit mask, in the order of their ids."""
        return tuple(name for index, name in enumerate(self.zones) if zones >> index & 1)

    def units(self, demand: NumaDemand | None) -> Units:
        """A pod as this kubelet sees it; empty where nothing of it is aligned here."""
        if demand is None:
            return ()
        found = self._units.get(demand)
        if found is None:
            found = self._units[demand] = tuple(map(self._unit, alignments_of(demand, self.scope, self.resources)))
        return found

    def admit(self, state: State, units: Units) -> tuple[State, int] | None:
        """Let a pod come: the zones after, and a bit mask of the zones of its containers; None where it is refused."""
        guard, used, before = self._guard, 0, state
        for unit in units:
            if unit.again:
                return self._admit_again(before, units)
            need = unit.need
            if unit.width == 1:
                for zone, room in enumerate(state):
                    if (room - need) & guard == guard:
                        chosen = 1 << zone
                        if unit.take:
                            state = (*state[:zone], room - unit.take, *state[zone + 1 :])
                        break
                else:
                    return None
            else:
                chosen = self._set(state, unit, 0)
                if not chosen:
                    return None
                state = self._drain(state, unit, chosen)
            used |= chosen
        return state, used

    def _admit_again(self, state: State, units: Units) -> tuple[State, int] | None:
        answer = self.follow(state, units)
        return None if answer is None else (answer[0], reduce(or_, answer[1], 0))

    def follow(self, state: State, units: Units) -> tuple[State, list[int]] | None:
        """As :meth:`admit`, with the bit mask of each unit."""
        chosen: list[int] = []
        again = [[0] * len(self.resources) for _ in state]  #: by zone and resource: what units that come get again
        for unit in units:
            held = sum(1 << zone for zone, had in enumerate(again) if any(had[index] for index, _, _ in unit.amounts))
            zones = self._set(state, unit, held)
            if not zones:
                return None
            chosen.append(zones)
            for zone, index, part in self._parts(state, unit, zones):
                had = again[zone]
                had[index] = max(had[index], part) if index in unit.again else max(had[index] - part, 0)
            state = self._drain(state, unit, zones)
        return state, chosen

    def admit_all(self, state: State, pods: Iterable[Units]) -> State | None:
        """Let pods come one after the other: the zones after; None where one of them is refused."""
        for units in pods:
            answer = self.admit(state, units)
            if answer is None:
                return None
            state = answer[0]
        return state

    def share(self, units: Units) -> float:
        """The pod's largest part of any resource of the node, to sort large ones first."""
        sums = self._sums(units)
        return max((amount / (sum(all_of) or 1) for amount, all_of in zip(sums, self._largest, strict=True)), default=0)

    def too_much(self, state: State, pods: Sequence[Units]) -> bool:
        """Whether pods together take more of a resource than all zones have left, so that no order can admit them."""
        taken = self._sums(unit for units in pods for unit in units)
        left = [sum(amounts) for amounts in zip(*self.amounts(state), strict=True)]
        return any(amount > room for amount, room in zip(taken, left, strict=True))

    def enough(self, state: State, pods: Sequence[Units], take: int, first: int = 0) -> bool:
        """Whether there is a chance for all of some pods, in any order, since rooms never grow again.

        Each unit must find zones, none of them below ``first``, and other zones must not be needed for ``take``.
        """
        guard, usable = self._guard, set[int]()
        for unit in {unit for units in pods for unit in units}:
            fitting = self._fitting(state, unit)
            if not fitting or fitting[0] < first:
                return False
            usable.update(fitting)
        return (sum(state[zone] - guard for zone in usable) + guard - take) & guard == guard

    def _fitting(self, state: State, unit: Unit) -> Sequence[int]:
        if unit.width == 1:
            return [zone for zone, room in enumerate(state) if (room - unit.need) & self._guard == self._guard]
        return range(len(state)) if self._set(state, unit, 0) else ()

    def _sums(self, units: Iterable[Unit]) -> list[int]:
        sums = [0] * len(self.resources)
        for unit in units:
            for index, _, take in unit.amounts:
                sums[index] += take
        return sums

    # -------------------------------------------------------------------------------------------------- pods to units

    def _unit(self, asked: Alignment) -> Unit:
        amounts = tuple(
            (index, asked.need[name], asked.take.get(name, 0))
            for index, name in enumerate(self.resources)
            if name in asked.need
        )
        widths = {self._width(index, need) for index, need, _ in amounts}
        fits = all(need >> self._bits[index] == 0 and need < MOST_ALIGNED for index, need, _ in amounts)
        width = widths.pop() if len(widths) == 1 and fits else 0
        need = sum(need << self._shifts[index] for index, need, _ in amounts)
        take = sum(take << self._shifts[index] for index, _, take in amounts)
        return Unit(need, take, width, amounts, tuple(map(self.resources.index, asked.again)))

    def _width(self, index: int, need: int) -> int:
        """0: no number of zones is known to hold it."""
        if self.policy == "single-numa-node":
            return 1
        if self.policy == UNKNOWN:
            return 0
        totals = enumerate(accumulate(self._largest[index]), 1)
        return next((width for width, total in totals if total >= need), 0)

    # ------------------------------------------------------------------------------------------------- sets of zones

    def _set(self, state: State, unit: Unit, held: int) -> int:
        """As a bit mask, 0 where there is none; zones that are ``held`` must be in the set."""
        if not unit.width:
            return 0
        if len(state) > 8:  # all sets of fewer are listed once; by default the kubelet itself starts with no more
            return self._set_of_many(state, unit, held)
        # The fields hold the sum over all zones, so rooms add up as they are packed; one guard is enough for the sum.
        guard = self._guard
        beyond = unit.need + (unit.width - 1) * guard
        for zones, members in _sets(len(state), unit.width):
            if zones & held != held:
                continue
            total = 0
            for zone in members:
                total += state[zone]
            if (total - beyond) & guard == guard:
                return zones
        return 0

    def _set_of_many(self, state: State, unit: Unit, held: int) -> int:
        """The same without a list of all sets, which would be too long."""
        needs = {index: need for index, need, _ in unit.amounts}
        rooms = [dict(enumerate(amounts)) for amounts in self.amounts(state)]
        must = [zone for zone in range(len(state)) if held >> zone & 1]
        return sum(1 << zone for zone in lowest_set(rooms, needs, unit.width, must) or ())

    def _drain(self, state: State, unit: Unit, zones: int) -> State:
        rooms = list(state)
        for zone, index, part in self._parts(state, unit, zones):
            if index not in unit.again:
                rooms[zone] -= part << self._shifts[index]
        return tuple(rooms)

    def _parts(self, state: State, unit: Unit, zones: int) -> Iterator[tuple[int, int, int]]:
        members = [zone for zone in range(len(state)) if zones >> zone & 1]
        for index, need, take in unit.amounts:
            shift, field = self._shifts[index], (1 << self._bits[index]) - 1
            left = need if index in unit.again else take
            for zone in members:
                part = min(left, state[zone] >> shift & field)
                left -= part
                yield zone, index, part

    # ---------------------------------------------------------------------------------------------------- the packing

    def _pack(self, amounts: Sequence[int]) -> int:
        return self._guard + sum(amount << shift for amount, shift in zip(amounts, self._shifts, strict=True))

    def _amounts(self, room: int) -> list[int]:
        return [room >> shift & ((1 << width) - 1) for shift, width in zip(self._shifts, self._bits, strict=True)]


def _most_of(node: NumaNode, resource: str) -> int:
    rooms = ((zone.capacity, zone.allocatable, zone.available) for zone in node.zones)
    return sum(max(amounts[resource] for amounts in zone) for zone in rooms)


@cache
def _sets(zones: int, width: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
    return tuple(sorted((sum(1 << zone for zone in members), members) for members in combinations(range(zones), width)))
