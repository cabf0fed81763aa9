"""Room for units in one domain of a node label (C7), and in one that no other holds (C15), by counting."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from placer.answers.reasons.cause import NAMED, Cause, plural
from placer.arrays import DenseGroup
from placer.base.words import Sentence, and_list, some
from placer.problem import Instance, PodState
from placer.problem.keys import label_word
from placer.problem.neighbours import DomainUnit
from placer.problem.pod_index import domain_of
from placer.search.greedy.state import GreedyState

BoolArray = npt.NDArray[np.bool_]


class LabelDomains:
    """``state``: arrays without new pods and neighbours; ``slots`` names nodes where places for pods are short."""

    def __init__(
        self, instance: Instance, state: GreedyState, slots: Callable[[Iterable[int], BoolArray], Sentence]
    ) -> None:
        self.instance, self.state, self.dense, self.slots = instance, state, state.dense, slots

    def cause(self, gang: DenseGroup, asked: int, *, whole: bool) -> Cause | None:
        """Why ``asked`` pods (``whole``: all of the group) find no domain; None: not known, or C7 off."""
        off, found = self.instance.policy.rules_off, []
        for unit, classes in self._units(gang).items() if "C7" not in off else ():
            pods = {index: self.dense.classes[index].size for index in classes}
            # Of an elastic group only a unit of all of its pods has to take so many.
            elastic = asked if len(pods) == len(gang.classes) else 1
            least = sum(pods.values()) if whole else elastic
            rooms = self._rooms(unit, pods)
            held = self._held(unit, least, rooms) if "C15" not in off else None
            found.append(self._with_slots(pods, self._narrow(unit, least, rooms) or held))
        causes = [cause for cause in found if cause is not None]
        return min(causes, key=lambda each: each.code != "TopologyTooNarrow", default=None)

    def _with_slots(self, classes: Iterable[int], cause: Cause | None) -> Cause | None:
        if cause is None or cause.nodes is None:
            return cause
        there = np.array([name in cause.nodes for name in self.dense.nodes], dtype=bool)
        return replace(cause, message=cause.message + self.slots(classes, there))

    def naming_units(self, gang: DenseGroup, cause: Cause) -> Cause:
        """Add units of a group that must be in one domain, and the label."""
        asked = [f"{unit.name} in one domain of {unit.topology_key}" for unit in self._units(gang)]
        more = f" and {len(asked) - NAMED} more" if len(asked) > NAMED else ""
        return replace(cause, message=cause.message + f": {', '.join(asked[:NAMED])}{more}") if asked else cause

    def _units(self, gang: DenseGroup) -> dict[DomainUnit, list[int]]:
        found: dict[DomainUnit, list[int]] = defaultdict(list)
        for index in gang.classes:
            for unit in self.instance.pods[self.dense.classes[index].pods[0]].neighbours.units:
                found[unit].append(index)
        return dict(found)

    def _narrow(self, unit: DomainUnit, asked: int, rooms: Mapping[str, int]) -> Cause | None:
        label, there = unit.topology_key, self._running.get(unit, set())
        who = f"{unit.name} needs {plural(asked, 'pod')} in one domain of {label}"
        if len(there) > 1 or None in there:
            named = sorted("no domain" if value is None else label_word(value) for value in there)
            where = and_list(some(named, NAMED))
            return Cause("TopologyTooNarrow", f"{who}; its running pods are in no one domain of it, but in {where}")
        if not rooms:
            return Cause("TopologyTooNarrow", f"{who}; no node carries that label")
        return self._lacking(
            "TopologyTooNarrow", f"{who}; {'that of its placed pods' if there else 'the roomiest'}", unit, asked, rooms
        )

    def _held(self, unit: DomainUnit, asked: int, rooms: Mapping[str, int]) -> Cause | None:
        held = {value for other, there in self._running.items() if other.keeps_off(unit) for value in there}
        free = {value: room for value, room in rooms.items() if value not in held}
        who = f"{unit.name} needs {plural(asked, 'pod')} in a domain of {unit.topology_key} of its own"
        if len(free) == len(rooms):
            return None
        if not free:
            every = "the only domain" if len(rooms) == 1 else f"each of the {len(rooms)} domains"
            return Cause("Exclusive", f"{who}; others hold {every}")
        return self._lacking("Exclusive", f"{who}; the roomiest that no other holds", unit, asked, free)

    def _lacking(self, code: str, who: str, unit: DomainUnit, asked: int, rooms: Mapping[str, int]) -> Cause | None:
        best = max(sorted(rooms), key=lambda value: rooms[value])
        if rooms[best] >= asked:
            return None
        text = (
            f"{who} ({unit.topology_key}={label_word(best)}) has room for {rooms[best]}, {asked - rooms[best]} too few"
        )
        nodes = (name for name, node in self.instance.nodes.items() if node.labels.get(unit.topology_key) == best)
        return Cause("Exclusive" if code == "Exclusive" else "TopologyTooNarrow", text, frozenset(nodes))

    def _rooms(self, unit: DomainUnit, pods: Mapping[int, int]) -> dict[str, int]:
        values, of = self._domains(unit.topology_key)
        counts: Counter[int] = Counter()
        for index, count in pods.items():
            counts[self.state.layout.shape_of[index]] += count
        found = np.zeros(len(values), dtype=np.int64)
        inside = of >= 0
        for shape, count in counts.items():
            room = np.bincount(of[inside], self.state.fits(shape)[inside], len(values)).astype(np.int64)
            found += np.minimum(count, room)
        there = self._running.get(unit)
        return {value: int(room) for value, room in zip(values, found, strict=True) if not there or value in there}

    def _domains(self, label: str) -> tuple[list[str], np.ndarray[tuple[int], np.dtype[np.int64]]]:
        written = [self.instance.nodes[name].labels.get(label) for name in self.dense.nodes]
        values = sorted({value for value in written if value is not None})
        number = {value: place for place, value in enumerate(values)}
        return values, np.array([-1 if value is None else number[value] for value in written], dtype=np.int64)

    @cached_property
    def _running(self) -> dict[DomainUnit, Collection[str | None]]:
        found: dict[DomainUnit, set[str | None]] = defaultdict(set)
        for unit, node in self._standing():
            found[unit].add(domain_of(self.instance.nodes, node, unit.topology_key))
        return dict(found)

    def _standing(self) -> Iterator[tuple[DomainUnit, str | None]]:
        for pod in self.instance.pods.values():
            if pod.state is PodState.BOUND:
                yield from ((unit, pod.node) for unit in pod.neighbours.units)
