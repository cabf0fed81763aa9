"""The Topology Manager of a kubelet, replayed pod after pod on small integers (C10).

The state of a node is a tuple with one integer per zone: the room of every aligned resource in a field of its own, and
above each field a guard bit. A demand that fits leaves all guard bits standing when it is subtracted, so "does this fit
into this zone" is one subtraction and one comparison, whatever the number of resources. States are immutable, so a
search keeps as many as it likes.

Of several sets of zones of one size the lowest is the one whose highest zone is lowest, then whose next one is: the
kubelet compares them as bit masks.

Source: Kubernetes ``pkg/kubelet/cm/topologymanager`` (``policy*.go``, ``scope*.go``, ``bitmask``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import NamedTuple

from placer.instance.numa.model import HUGE_PAGES, UNKNOWN, NumaDemand, NumaNode, is_device
from placer.instance.numa.work import Work, works_of
from placer.quantity import CPU, Resources, format_amount

__all__ = ["Kubelet", "State", "Unit", "Units", "kubelets_of"]

#: Up to so many zones all sets of them are listed once; the kubelet itself starts with no more unless it is told to.
_FEW = 8

#: Nobody gets so much of anything: the kubelet's own amounts have 63 bits, and sums are made of them.
MOST_NEED = 2**62

#: Room of each zone in the order of ids, packed; only :class:`Kubelet` can read it.
State = tuple[int, ...]


class Unit(NamedTuple):
    """What is aligned at once, a container or the pod as a whole, in the packed form of one :class:`Kubelet`.

    Parameters
    ----------
    need
        What must be there.
    take
        What is gone afterwards: nothing for a one-shot init container.
    width
        How many zones it gets; 0: this kubelet never aligns it.
    amounts
        Index of the resource, need and take of each resource; for sets of several zones.
    """

    need: int
    take: int
    width: int
    amounts: tuple[tuple[int, int, int], ...]


#: A pod as one kubelet sees it; empty where nothing of it is aligned there.
Units = tuple[Unit, ...]


def kubelets_of(nodes: Mapping[str, NumaNode]) -> dict[str, Kubelet]:
    """The kubelet of each node; nodes of equal hardware and settings share one."""
    made: dict[object, Kubelet] = {}
    found = {}
    for name, node in nodes.items():
        kubelet = Kubelet(node)
        found[name] = made.setdefault(kubelet.kind, kubelet)
    return found


class Kubelet:
    """The Topology Manager of one kind of node.

    Parameters
    ----------
    node
        Its policy, scope and zones. What is available there is no part of the kind: :meth:`start` reads that.

    Examples
    --------
    >>> from placer.instance.numa.model import NumaContainer, NumaZone, Qos, Stage
    >>> two, four = Resources({"cpu": 2000}), Resources({"cpu": 4000})
    >>> zones = [NumaZone(i, f"node-{i}", four, room, four, frozenset(["cpu"])) for i, room in enumerate((two, four))]
    >>> node = NumaNode("single-numa-node", "container", tuple(zones))
    >>> pod = NumaDemand(Qos.GUARANTEED, (NumaContainer("main", Stage.APP, Resources({"cpu": 3000, "memory": 5})),))
    >>> kubelet = Kubelet(node)
    >>> after, used = kubelet.admit(kubelet.start(node), kubelet.units(pod))
    >>> kubelet.names(used), kubelet.rooms(after)[1]["cpu"], kubelet.admit(after, kubelet.units(pod))
    (('node-1',), 1000, None)
    """

    def __init__(self, node: NumaNode) -> None:
        self.policy, self.scope = node.policy, node.scope
        self.zones = tuple(zone.name for zone in node.zones)
        aligning = node.policy != "none"
        self.resources = tuple(sorted(name for name in node.lists if aligning and _alignable(name)))
        capacity = [[zone.capacity[name] for zone in node.zones] for name in self.resources]
        rooms = [(zone.capacity, zone.allocatable, zone.available) for zone in node.zones]
        most = [sum(max(part[name] for part in zone) for zone in rooms) for name in self.resources]
        self._bits = [amount.bit_length() for amount in most]
        self._shifts = [sum(self._bits[:index]) + index for index in range(len(self._bits))]
        self._guard = sum(1 << (shift + width) for shift, width in zip(self._shifts, self._bits, strict=True))
        self._largest = [sorted(amounts, reverse=True) for amounts in capacity]
        self._units: dict[NumaDemand, Units] = {}

    def __getstate__(self) -> dict[str, object]:
        """Without what is remembered of pods: it travels to other processes with every step of a search."""
        return {**self.__dict__, "_units": {}}

    @property
    def kind(self) -> object:
        """What two kubelets have in common that take every pod alike, whatever is available."""
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
        """What the zones of a node have available, before any new pod."""
        return tuple(self._pack([zone.available[name] for name in self.resources]) for zone in node.zones)

    def rooms(self, state: State) -> list[Resources]:
        """What each zone has left, by name."""
        return [Resources(zip(self.resources, amounts, strict=True)) for amounts in self.amounts(state)]

    def amounts(self, state: State) -> list[list[int]]:
        """What each zone has left, in the order of ``resources``."""
        return [self._amounts(room) for room in state]

    def after(self, node: NumaNode, state: State) -> NumaNode:
        """A node whose zones have available what a state says; what no kubelet aligns stays as it is."""
        zones = []
        for zone, room in zip(node.zones, self.rooms(state), strict=True):
            kept = {name: amount for name, amount in zone.available.items() if name not in self.resources}
            zones.append(replace(zone, available=Resources(kept | dict(room))))
        return replace(node, zones=tuple(zones))

    def names(self, zones: int) -> tuple[str, ...]:
        """Names of the zones of a bit mask, in the order of their ids."""
        return tuple(name for index, name in enumerate(self.zones) if zones >> index & 1)

    def units(self, demand: NumaDemand | None) -> Units:
        """A pod as this kubelet sees it; None, and a pod of which nothing is aligned here, is nothing."""
        if demand is None:
            return ()
        found = self._units.get(demand)
        if found is None:
            found = self._units[demand] = tuple(map(self._unit, works_of(demand, self.scope, self.resources)))
        return found

    def admit(self, state: State, units: Units) -> tuple[State, int] | None:
        """Let a pod come.

        Parameters
        ----------
        state
            The zones before.
        units
            The pod, from :meth:`units`.

        Returns
        -------
        tuple or None
            The zones after, and a bit mask of the zones that the pod gets, all its containers together; None where it
            is refused, which takes nothing.
        """
        guard, used = self._guard, 0
        for unit in units:
            chosen, need = 0, unit.need
            if unit.width == 1:
                for zone, room in enumerate(state):
                    if (room - need) & guard == guard:
                        chosen = 1 << zone
                        if unit.take:
                            state = (*state[:zone], room - unit.take, *state[zone + 1 :])
                        break
            if not chosen:
                chosen = self._choose(state, unit)
                if not chosen:
                    return None
                state = self._drain(state, unit, chosen)
            used |= chosen
        return state, used

    def admit_all(self, state: State, pods: Iterable[Units]) -> State | None:
        """Let pods come one after the other: the zones after; None where one of them is refused."""
        for units in pods:
            answer = self.admit(state, units)
            if answer is None:
                return None
            state = answer[0]
        return state

    def force(self, state: State, units: Units) -> State:
        """The zones after a pod that this kubelet would refuse and that runs all the same: it took what there was."""
        for unit in units:
            state = self._drain(state, unit, (1 << len(state)) - 1)
        return state

    def share(self, units: Units) -> float:
        """How much of the node a pod takes: the largest part of any resource; for sorting, large ones first."""
        sums = self._sums(units)
        return max((amount / (sum(all_of) or 1) for amount, all_of in zip(sums, self._largest, strict=True)), default=0)

    def too_much(self, state: State, pods: Sequence[Units]) -> bool:
        """Whether pods together take more of a resource than all zones have left, so that no order can admit them."""
        if self.policy == "best-effort":
            return False
        taken = self._sums(unit for units in pods for unit in units)
        left = [sum(amounts) for amounts in zip(*self.amounts(state), strict=True)]
        return any(amount > room for amount, room in zip(taken, left, strict=True))

    def enough(self, state: State, pods: Sequence[Units], take: int, first: int = 0) -> bool:
        """Whether there is a chance for all of some pods, in whatever order: rooms never grow again.

        Each unit must find zones now, none of them below ``first``, and zones that are of no use to any must not be
        needed for ``take``, the sum over the units' own (at most what all zones have left).
        """
        if self.policy == "best-effort":
            return True
        guard, usable = self._guard, set[int]()
        for unit in {unit for units in pods for unit in units}:
            if unit.width == 1:
                fitting = [zone for zone, room in enumerate(state) if (room - unit.need) & guard == guard]
            else:
                fitting = list(range(len(state))) if unit.width and self._set(state, unit) else []
            if not fitting or fitting[0] < first:
                return False
            usable.update(fitting)
        return (sum(state[zone] - guard for zone in usable) + guard - take) & guard == guard

    def _sums(self, units: Iterable[Unit]) -> list[int]:
        """What units take of each resource."""
        sums = [0] * len(self.resources)
        for unit in units:
            for index, _, take in unit.amounts:
                sums[index] += take
        return sums

    # ------------------------------------------------------------------------------------------------------- in words

    def refusal(self, state: State, demand: NumaDemand) -> str:
        """Why a pod is refused: who asks for what, and what each zone has left at that moment; empty if it is not."""
        for work, unit in zip(works_of(demand, self.scope, self.resources), self.units(demand), strict=True):
            after = self.admit(state, (unit,))
            if after is None:
                return self._complaint(state, work, unit)
            state = after[0]
        return ""

    def _complaint(self, state: State, work: Work, unit: Unit) -> str:
        asked = f"{work.label} asks for {', '.join(_said(work.need))}"
        if self.policy == UNKNOWN:
            return f"{asked}, to be aligned by a policy that is not known"
        widths = [(self.resources[index], self._width(index, need)) for index, need, _ in unit.amounts]
        beyond = [name for name, width in widths if width == 0]
        if beyond:
            return f"{asked}, of {', '.join(beyond)} more than all zones have together"
        if len({width for _, width in widths}) > 1:
            return f"{asked}, which takes different numbers of zones: {', '.join(f'{n} {w}' for n, w in widths)}"
        where = "one zone" if widths[0][1] == 1 else f"{widths[0][1]} zones"
        rooms = (
            f"{zone} has {', '.join(_said({name: room[name] for name in work.need}))}"
            for zone, room in zip(self.zones, self.rooms(state), strict=True)
        )
        return f"{asked} in {where}: {'; '.join(rooms)}"

    # -------------------------------------------------------------------------------------------------- pods to units

    def _unit(self, work: Work) -> Unit:
        amounts = tuple(
            (index, work.need[name], work.take.get(name, 0))
            for index, name in enumerate(self.resources)
            if name in work.need
        )
        widths = {self._width(index, need) for index, need, _ in amounts}
        fits = all(need >> self._bits[index] == 0 and need < MOST_NEED for index, need, _ in amounts)
        width = widths.pop() if len(widths) == 1 and fits else 0
        need = sum(need << self._shifts[index] for index, need, _ in amounts)
        take = sum(take << self._shifts[index] for index, _, take in amounts)
        return Unit(need, take, width, amounts)

    def _width(self, index: int, need: int) -> int:
        """Fewest zones that could hold so much of a resource if they were empty; 0: none that are known to do."""
        if self.policy == "single-numa-node":
            return 1
        if self.policy == UNKNOWN:
            return 0
        total = 0
        for width, amount in enumerate(self._largest[index], start=1):
            total += amount
            if total >= need:
                return width
        return 0

    # ------------------------------------------------------------------------------------------------- sets of zones

    def _choose(self, state: State, unit: Unit) -> int:
        """The lowest set of zones for a unit that no single zone takes; 0: it is refused."""
        found = self._set(state, unit) if unit.width > 1 else 0
        if found or self.policy != "best-effort":
            return found
        # Where nothing suits, best effort takes the fewest zones that have it all, else whatever there is.
        rooms, needs = self.amounts(state), [(index, need) for index, need, _ in unit.amounts]
        sets = (_lowest(rooms, needs, width, len(rooms)) for width in range(1, len(rooms) + 1))
        return next((found for found in sets if found), (1 << len(rooms)) - 1)

    def _set(self, state: State, unit: Unit) -> int:
        """The lowest set of ``unit.width`` zones that has all of it; 0 where there is none."""
        if len(state) > _FEW:
            rooms, needs = self.amounts(state), [(index, need) for index, need, _ in unit.amounts]
            return _lowest(rooms, needs, unit.width, len(rooms)) or 0
        # The fields hold the sum over all zones, so rooms add up as they are packed; one guard is enough for the sum.
        guard = self._guard
        beyond = unit.need + (unit.width - 1) * guard
        for zones, members in _sets(len(state), unit.width):
            total = 0
            for zone in members:
                total += state[zone]
            if (total - beyond) & guard == guard:
                return zones
        return 0

    def _drain(self, state: State, unit: Unit, zones: int) -> State:
        """Take a unit's amounts from its zones, zone after zone."""
        rooms = list(state)
        members = [zone for zone in range(len(rooms)) if zones >> zone & 1]
        for index, _, left in unit.amounts:
            shift, field = self._shifts[index], (1 << self._bits[index]) - 1
            for zone in members:
                taken = min(left, rooms[zone] >> shift & field)
                rooms[zone] -= taken << shift
                left -= taken
        return tuple(rooms)

    # ---------------------------------------------------------------------------------------------------- the packing

    def _pack(self, amounts: Sequence[int]) -> int:
        return self._guard + sum(amount << shift for amount, shift in zip(amounts, self._shifts, strict=True))

    def _amounts(self, room: int) -> list[int]:
        return [room >> shift & ((1 << width) - 1) for shift, width in zip(self._shifts, self._bits, strict=True)]


def _said(amounts: Mapping[str, int]) -> list[str]:
    return [f"{name} {format_amount(name, amount)}" for name, amount in amounts.items()]


def _alignable(resource: str) -> bool:
    """Whether kubelets align a resource at all: cpu, memory, hugepages and devices."""
    return resource in (CPU, "memory") or resource.startswith(HUGE_PAGES) or is_device(resource)


@cache
def _sets(zones: int, width: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Every set of so many zones, as a bit mask and as numbers, lowest mask first."""
    return tuple(sorted((sum(1 << zone for zone in members), members) for members in combinations(range(zones), width)))


def _lowest(rooms: Sequence[Sequence[int]], needs: Sequence[tuple[int, int]], width: int, below: int) -> int | None:
    """The lowest set of so many of the first ``below`` zones that has all of it; None where there is none.

    Sets compare by their highest zone first, then by the next: that is the order of their bit masks.
    """
    for index, need in needs:
        if need > 0 and sum(sorted((room[index] for room in rooms[:below]), reverse=True)[:width]) < need:
            return None
    if width == 0:
        return 0
    for last in range(width - 1, below):
        rest = [(index, need - rooms[last][index]) for index, need in needs]
        found = _lowest(rooms, rest, width - 1, last)
        if found is not None:
            return found | 1 << last
    return None
