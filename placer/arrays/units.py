"""Units over domains of node labels by index: C7 by label and C15 as rows about classes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from placer.problem import Pod, PodState
from placer.problem.neighbours import ChildJob, DomainUnit, Neighbours


@dataclass(frozen=True)
class Confinement:
    """A unit without running pods (C7 by label); ``key`` is an index into ``DenseNeighbours.domain``, classes
    ascend.
    """

    key: int
    classes: tuple[int, ...]


@dataclass(frozen=True)
class Exclusion:
    """The units that are exclusive in a key (C15); per unit the classes of its pods, ascending, disjoint."""

    key: int
    units: tuple[tuple[int, ...], ...]


def _labels(asked: Neighbours) -> Iterator[str]:
    yield from (unit.topology_key for unit in asked.units)
    yield from (job.topology_key for job in asked.jobs)


class StandingUnits:
    """Domains of running pods, by unit.

    ``pods``: those with a node; terminating ones count for nothing. ``asked``: demands of pending pods: other topology
    keys than theirs do not matter. ``domain``: topology key and name of a node to its domain; -1: none.
    """

    def __init__(
        self, pods: Iterable[Pod], asked: Sequence[Neighbours], domain: Callable[[str, str | None], int]
    ) -> None:
        self._asked = asked
        labels = set(chain.from_iterable(map(_labels, asked)))
        self.domains: dict[DomainUnit, set[int]] = defaultdict(set)
        self._jobs: dict[ChildJob, set[int]] = defaultdict(set)
        for pod in pods if labels else ():
            if pod.state is PodState.BOUND and not labels.isdisjoint(_labels(pod.neighbours)):
                for unit in pod.neighbours.units:
                    self.domains[unit].add(domain(unit.topology_key, pod.node))
                for job in pod.neighbours.jobs:
                    self._jobs[job].add(domain(job.topology_key, pod.node))

    def allowed(self, unit: DomainUnit) -> set[int] | None:
        """The domains that a unit may use: empty where it is in two, or on nodes that are in none; None: any."""
        held = self.domains.get(unit)
        if not held:
            return None
        return held if len(held) == 1 and -1 not in held else set()

    def taken(self, unit: DomainUnit) -> set[int]:
        """Domains that others hold that are exclusive as the unit is."""
        if not unit.exclusive:
            return set()
        holders = self._holders.get(unit.topology_key, {})
        return {domain for domain, units in holders.items() if units - {unit}}

    @property
    def jobs(self) -> Iterable[ChildJob]:
        """Relations of pending pods to exclusive Jobs of JobSets, each once."""
        return dict.fromkeys(job for each in self._asked for job in each.jobs)

    def beside(self, job: ChildJob) -> set[int]:
        """Domains with pods that a pod of a JobSet's Job keeps off, or that keep it off."""
        return self._jobs.get(job.opposite, set()) - {-1}

    @cached_property
    def _holders(self) -> Mapping[str, Mapping[int, set[DomainUnit]]]:
        found: dict[str, dict[int, set[DomainUnit]]] = defaultdict(lambda: defaultdict(set))
        for unit, domains in self.domains.items():
            for domain in domains - {-1} if unit.exclusive else ():
                found[unit.topology_key][domain].add(unit)
        return found

    def rows(
        self, key: Callable[[str], int], classes: Callable[[object], tuple[int, ...]]
    ) -> tuple[tuple[Confinement, ...], tuple[Exclusion, ...]]:
        """Make the rows about pending pods: their ``classes`` by unit."""
        confined: list[Confinement] = []
        apart: dict[str, list[tuple[int, ...]]] = defaultdict(list)
        for unit in dict.fromkeys(unit for each in self._asked for unit in each.units):
            mine = classes(unit)
            if self.allowed(unit) is None:
                confined.append(Confinement(key(unit.topology_key), mine))
            if unit.exclusive:
                apart[unit.topology_key].append(mine)
        exclusions = (Exclusion(key(label), tuple(units)) for label, units in apart.items() if len(units) > 1)
        return tuple(confined), tuple(exclusions)
