"""Pods and the pods around them by index: C12 to C15 and C7 by label, for classes and domains of node labels.

A *domain* is the set of the nodes of one value of a topology key; nodes without the label are in none. Running pods
close nodes to classes for good (``shut``); the rest are rows about classes: :class:`Repulsion` (C13, C15 between
exclusive and other Jobs), :class:`Attraction` (C12), :class:`SpreadRow` (C14),
:class:`~placer.arrays.units.Confinement` (C7 by label) and :class:`~placer.arrays.units.Exclusion` (C15).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, product
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from placer.arrays.affinity_orders import Attraction, affinity_order, joined_classes
from placer.arrays.solution import BoolArray, IntArray
from placer.arrays.units import Confinement, Exclusion, StandingUnits
from placer.base.grouping import grouped
from placer.problem import Instance, Key, Pod, PodState
from placer.problem.neighbours import AffinityTerm, DomainUnit, Neighbours, SpreadLimit
from placer.problem.pod_index import PodIndex, owners_of_terms

if TYPE_CHECKING:
    from placer.arrays.numa import DenseNuma

__all__ = [
    "ANY_NUMBER",
    "NEIGHBOUR_RULES",
    "Attraction",
    "Confinement",
    "DenseNeighbours",
    "Exclusion",
    "NeighbourKinds",
    "Repulsion",
    "SpreadRow",
]


ANY_NUMBER = 2**40

#: The rules about pods around a pod to their rows, in the order of models/README.md; of C7 only that by label.
NEIGHBOUR_RULES = {
    "C7": "confinements",
    "C12": "attractions",
    "C13": "repulsions",
    "C14": "spreads",
    "C15": "exclusions",
}


@dataclass(frozen=True)
class Repulsion:
    """Of ``owners``, which have a term, and ``matched`` a domain takes no two pods (C13; C15 of JobSets); classes
    ascend.
    """

    key: int
    owners: tuple[int, ...]
    matched: tuple[int, ...]
    rule: str = "C13"

    @property
    def mutual(self) -> tuple[int, ...]:
        """Of all of them together a domain takes one pod."""
        return tuple(sorted({*self.owners} & {*self.matched}))


@dataclass(frozen=True)
class SpreadRow:
    """A spread constraint of the classes ``owners``, which counts the pods of ``matched`` (C14); classes ascend.

    ``skew``: by how many pods a domain may exceed the one with the fewest. ``counted``: bool, shape (nodes,).
    ``before``: every domain that counts, ascending, to the pods counted there already; a part of an instance has those
    of its nodes and those held, and one other domain with the fewest. ``floor``: whether the fewest is taken to be 0
    (``minDomains``). ``held``: domains of fixed owners; empty in a whole instance.
    """

    key: int
    owners: tuple[int, ...]
    matched: tuple[int, ...]
    skew: int
    counted: BoolArray
    before: Mapping[int, int]
    floor: bool
    held: frozenset[int] = frozenset()

    @cached_property
    def counting(self) -> IntArray:
        """Every domain that counts: int64, ascending."""
        return np.array(list(self.before), dtype=np.int64)


@dataclass(frozen=True)
class DenseNeighbours:
    """Demands of classes on each other.

    ``domain``: per topology key: int64, shape (nodes,): domain of each node, -1 where it is in none. ``shut``: rule to
    one entry per kind (``PodClass.neighbours``): bool, shape (nodes,): nodes that running pods or missing labels close
    to it; None: none of them.
    """

    domain: tuple[IntArray, ...]
    shut: Mapping[str, tuple[BoolArray | None, ...]]
    repulsions: tuple[Repulsion, ...] = ()
    attractions: tuple[Attraction, ...] = ()
    spreads: tuple[SpreadRow, ...] = ()
    confinements: tuple[Confinement, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()

    @cached_property
    def _members(self) -> tuple[frozenset[int], ...]:
        rows: list[Repulsion | Attraction | SpreadRow] = [*self.repulsions, *self.attractions, *self.spreads]
        return (
            *(frozenset((*row.owners, *row.matched)) for row in rows),
            *(frozenset(row.classes) for row in self.confinements),
            *(frozenset(chain.from_iterable(row.units)) for row in self.exclusions),
        )

    def closed(self, kind: int) -> BoolArray | None:
        """Nodes closed to a kind from the beginning: bool, shape (nodes,); None: none."""
        if kind < 0:
            return None
        if kind not in self._closed:
            rows = [row for rule in self.shut.values() if (row := rule[kind]) is not None]
            self._closed[kind] = np.logical_or.reduce(rows) if rows else None
        return self._closed[kind]

    @cached_property
    def _closed(self) -> dict[int, BoolArray | None]:
        return {}

    def most(self, index: int, kind: int) -> IntArray:
        """Most pods of a class on each node whatever else is placed: shape (nodes,)."""
        found: IntArray = np.full(len(self.domain[0]), 1 if index in self.lonely else ANY_NUMBER, dtype=np.int64)
        closed = self.closed(kind)
        if closed is not None:
            found[closed] = 0
        return found

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Per topology key the number of its domains."""
        return tuple(int(each.max(initial=-1)) + 1 for each in self.domain)

    @cached_property
    def lonely(self) -> frozenset[int]:
        """Classes of which a node takes one pod at most."""
        return frozenset(index for row in self.repulsions for index in row.mutual if self._covers(row.key))

    def _covers(self, key: int) -> bool:
        return bool((self.domain[key] >= 0).all())

    @cached_property
    def single(self) -> tuple[bool, ...]:
        """Per topology key whether each domain is one node."""
        return tuple(bool((np.bincount(each[each >= 0]) <= 1).all()) for each in self.domain)

    @cached_property
    def tied(self) -> frozenset[int]:
        """Classes whose pods on one node change where others of the class may be."""
        found: set[int] = set()
        for row in self.repulsions:
            if not self.single[row.key]:
                found.update(row.mutual)
        for attraction in self.attractions:
            found.update(attraction.owners)
        for spread in self.spreads:
            found.update((*spread.owners, *spread.matched))
        return frozenset(found)

    @cached_property
    def volatile(self) -> frozenset[int]:
        """Classes whose room on a node may change with pods elsewhere."""
        wide = (row for row in self.repulsions if not self.single[row.key])
        rows: list[Repulsion | Attraction | SpreadRow] = [*wide, *self.attractions, *self.spreads]
        return self.in_units.union(index for row in rows for index in (*row.owners, *row.matched))

    @cached_property
    def in_units(self) -> frozenset[int]:
        """Classes whose pods tie others to their domain, or keep them out (C7 by label, C15)."""
        found = {index for confined in self.confinements for index in confined.classes}
        return frozenset(found).union(index for row in self.exclusions for unit in row.units for index in unit)

    @cached_property
    def depth(self) -> Mapping[int, int]:
        """Class to how many others must come before it (C12); absent: none."""
        found: dict[int, int] = {}
        for _ in self.attractions:
            before = dict(found)
            for row in self.attractions:
                if row.others and not any(row.ground) and not row.firsts:
                    deepest = 1 + min(before.get(index, 0) for index in row.others)
                    found.update({index: max(deepest, found.get(index, 0)) for index in row.owners})
            if found == before:
                break
        return found

    @cached_property
    def let_in_by(self) -> Mapping[int, frozenset[int]]:
        """Class to all classes that may have to come before it (C12)."""
        found: dict[int, set[int]] = defaultdict(set)
        for row in self.attractions:
            for index in filter(self.depth.get, row.owners):
                found[index].update(row.others)
        return {index: frozenset(others) for index, others in found.items()}

    @cached_property
    def concerned(self) -> frozenset[int]:
        """Classes in any row."""
        return frozenset().union(*self._members)

    def kind_of(self, node: int) -> tuple[object, ...]:
        """Equal for nodes that no row tells apart."""
        return (*(int(each[node]) for each in self.domain), *(bool(row.counted[node]) for row in self.spreads))

    @cached_property
    def components(self) -> list[frozenset[int]]:
        """Disjoint sets of classes that rows tie together."""
        return joined_classes(map(set, self._members))

    def order(self, entries: Sequence[tuple[int, int]], numa: DenseNuma | None = None) -> list[int] | None:
        """:func:`placer.arrays.affinity_orders.affinity_order` by the rows that are not ``lasting``."""
        rows = [row for row in self.attractions if not row.lasting]
        return affinity_order(rows, self.domain, entries, numa) if rows else list(range(len(entries)))

    def renumbered(self, copies: Mapping[int, Iterable[int]]) -> DenseNeighbours:
        """The same rows about copies of the classes."""

        def mapped(classes: Iterable[int]) -> tuple[int, ...]:
            return tuple(sorted({copy for index in classes for copy in copies.get(index, ())}))

        def all_mapped(rows: Iterable[Any]) -> tuple[Any, ...]:
            return tuple(replace(row, owners=mapped(row.owners), matched=mapped(row.matched)) for row in rows)

        return replace(
            self,
            repulsions=all_mapped(self.repulsions),
            attractions=all_mapped(self.attractions),
            spreads=all_mapped(self.spreads),
            confinements=tuple(replace(row, classes=mapped(row.classes)) for row in self.confinements),
            exclusions=tuple(replace(row, units=tuple(map(mapped, row.units))) for row in self.exclusions),
        )

    def without(self, rule: str) -> DenseNeighbours | None:
        """The same without a rule; None where that changes nothing."""
        others = tuple(row for row in self.repulsions if row.rule != rule)
        left: dict[str, Any] = {NEIGHBOUR_RULES[rule]: ()} | {"repulsions": others}
        same = all(len(getattr(self, rows)) == len(kept) for rows, kept in left.items())
        if same and all(row is None for row in self.shut[rule]):
            return None
        shut = {name: each for name, each in self.shut.items() if name != rule}
        return replace(self, shut={**shut, rule: (None,) * len(self.shut[rule])}, **left)


#: Demands of a pod, the numbers of terms that mean it, and whether it runs in truth.
Signature = tuple[Neighbours, frozenset[tuple[str, int]], bool]


class NeighbourKinds:
    """Kinds of pods by their demands on others and others' on them, and the rows about them.

    ``running``: pods that run in truth: of pending ones only D5 is asked and that new pods keep away; for bound ones
    the near pods have to last, too.
    """

    def __init__(
        self, instance: Instance, pods: Sequence[Pod], nodes: Sequence[str], running: Collection[Key] = ()
    ) -> None:
        self._instance, self._nodes, self._running = instance, nodes, frozenset(running)
        standing = [pod for pod in instance.pods.values() if pod.state.on_node]
        asked = list(dict.fromkeys(pod.neighbours for pod in pods if pod.neighbours))
        self._repelling = _numbered(chain.from_iterable(each.anti_affinity for each in asked))
        self._to_keep = [instance.pods[key] for key in sorted(self._running) if instance.pods[key].neighbours.affinity]
        self._lasting = _numbered(pod.neighbours.affinity for pod in self._to_keep)
        self._attracting = self._attractions(pods)
        self._spreading = _numbered(chain.from_iterable(each.spread for each in asked))
        self._owners = owners_of_terms(standing)
        self._keeping = _numbered(self._owners)
        self._standing = PodIndex(standing, instance.namespaces)
        self._number: dict[Signature, int] = {}
        self._meant = self._memberships(PodIndex(pods, instance.namespaces))
        self._domains: dict[str, int] = {}
        self._values: list[dict[str, int]] = []
        self._arrays: list[IntArray] = []
        self._counting: dict[object, BoolArray] = {}
        self._repelled: dict[tuple[str, int], set[int]] = {}
        self._keepers: dict[int, set[int]] = {}
        self.units = StandingUnits(standing, asked, self._domain_of)

    def _attractions(self, pods: Iterable[Pod]) -> dict[tuple[AffinityTerm, ...], int]:
        asked = (pod.neighbours.affinity for pod in pods if pod.key not in self._running)
        return _numbered(terms for terms in asked if terms)

    def _memberships(self, pods: PodIndex) -> dict[Key, frozenset[tuple[str, int]]]:
        found: dict[Key, set[tuple[str, int]]] = defaultdict(set)
        single: list[tuple[str, dict[Any, int]]] = [("repels", self._repelling), ("keeps", self._keeping)]
        several: list[tuple[str, dict[Any, int]]] = [("attracts", self._attracting), ("lasts", self._lasting)]
        for name, asked in (*single, ("counts", self._spreading), *several):
            numbers: dict[tuple[object, ...], int] = {}
            for terms, number in asked.items():
                matched = pods.matching_all(term.pods for term in (terms if isinstance(terms, tuple) else (terms,)))
                asked[terms] = numbers.setdefault(self._alike(terms, id(matched)), number)
                for pod in matched if asked[terms] == number else ():
                    found[pod.key].add((name, number))
        return {key: frozenset(each) for key, each in found.items()}

    def _alike(self, term: AffinityTerm | SpreadLimit | tuple[AffinityTerm, ...], meant: int) -> tuple[object, ...]:
        if isinstance(term, tuple):
            keys = dict.fromkeys(each.topology_key for each in term)
            return *keys, meant, id(self._standing.matching_all(each.pods for each in term))
        if isinstance(term, AffinityTerm):
            return term.topology_key, meant
        there = id(self._standing.matching(term.pods))
        return term.topology_key, meant, there, term.max_skew, term.min_domains, term.keys, term.counted

    def of(self, pod: Pod) -> int:
        """Number of a pod's kind; -1: none."""
        meant = self._meant.get(pod.key, frozenset())
        if not meant and not pod.neighbours:
            return -1
        signature = pod.neighbours, meant, pod.key in self._running
        return self._number.setdefault(signature, len(self._number))

    def rows(self, kinds: Sequence[int]) -> DenseNeighbours | None:
        """The rows, where class ``i`` is of kind ``kinds[i]``; None where no pod is of any kind."""
        if not self._number:
            return None
        about = _KindClasses(self._number, kinds)
        repulsions = tuple(self._repulsions(about))
        attractions = {
            number: self._attracted(alike[0], about.owners(*alike), about.all_meant("attracts", number))
            for number, alike in _by_number(self._attracting).items()
        }
        spreads = [self._spread(limits, number, about) for number, limits in _by_number(self._spreading).items()]
        shut = _Closing(self, {terms: attractions[n] for terms, n in self._attracting.items()}).shut(self._number)
        lasting = tuple(self._to_last(about))
        confinements, exclusions = self.units.rows(self.key, about.all_owners)
        return DenseNeighbours(
            domain=tuple(self._arrays),
            shut=shut,
            repulsions=repulsions,
            attractions=(*(row for row in attractions.values() if row.open or row.others), *lasting),
            spreads=tuple(spreads),
            confinements=confinements,
            exclusions=exclusions,
        )

    # Rows

    def _repulsions(self, about: _KindClasses) -> Iterator[Repulsion]:
        rows: list[Repulsion] = []
        for number, terms in _by_number(self._repelling).items():
            key, matched = self.key(terms[0].topology_key), about.all_meant("repels", number)
            rows.append(Repulsion(key, about.owners(*terms), matched))
            rows.append(Repulsion(key, about.owners(*terms, running=True), about.meant("repels", number)))
        for job in self.units.jobs:
            key, others = self.key(job.topology_key), job.opposite
            if job.exclusive:
                rows.append(Repulsion(key, about.owners(job), about.all_owners(others), "C15"))
                rows.append(Repulsion(key, about.owners(job, running=True), about.owners(others), "C15"))
        return (row for row in rows if row.owners and row.matched)

    def _to_last(self, about: _KindClasses) -> Iterator[Attraction]:
        for terms, number in self._lasting.items():
            matched = about.all_meant("lasts", number)
            owners = tuple(sorted({*about.owners(terms, running=True)} - {*matched}))
            row = self._attracted(terms, owners, matched)
            held = self._held(terms) - frozenset(product(*row.ground))
            if owners or held:
                yield replace(row, open=False, held=held, lasting=True)

    def _held(self, terms: tuple[AffinityTerm, ...]) -> frozenset[tuple[int, ...]]:
        labels = tuple(dict.fromkeys(term.topology_key for term in terms))
        pods = (pod for pod in self._to_keep if pod.state is PodState.BOUND and pod.neighbours.affinity == terms)
        return frozenset(tuple(self._domain_of(label, pod.node) for label in labels) for pod in pods)

    def _attracted(
        self, terms: tuple[AffinityTerm, ...], owners: tuple[int, ...], matched: tuple[int, ...]
    ) -> Attraction:
        there = [pod for pod in self._standing.matching_all(t.pods for t in terms) if pod.state is PodState.BOUND]
        keys = tuple(dict.fromkeys(self.key(term.topology_key) for term in terms))
        ground = tuple(frozenset(self.domains(key, there)) for key in keys)
        return Attraction(keys, owners, matched, ground, not any(ground))

    def _spread(self, limits: Sequence[SpreadLimit], number: int, about: _KindClasses) -> SpreadRow:
        limit, owners, matched = limits[0], about.owners(*limits), about.all_meant("counts", number)
        key, counted = self.key(limit.topology_key), self._counted(limit)
        before = dict.fromkeys(np.unique(self._arrays[key][counted]).tolist(), 0)
        index = self.node_index
        for pod in self._standing.matching(limit.pods):
            node = index.get(pod.node or "", -1)
            if pod.state is PodState.BOUND and node >= 0 and counted[node]:
                before[int(self._arrays[key][node])] += 1
        return SpreadRow(key, owners, matched, limit.max_skew, counted, before, len(before) < limit.min_domains)

    def _counted(self, limit: SpreadLimit) -> BoolArray:
        kind = limit.keys, limit.counted
        if kind not in self._counting:
            nodes = self._instance.nodes
            self._counting[kind] = np.array([limit.counts(nodes[name]) for name in self._nodes], dtype=bool)
        return self._counting[kind]

    # Domains

    @cached_property
    def node_index(self) -> dict[str, int]:
        """Node name to index."""
        return {name: index for index, name in enumerate(self._nodes)}

    def key(self, label: str) -> int:
        """Number of a topology key."""
        if label not in self._domains:
            values: dict[str, int] = {}
            nodes = self._instance.nodes
            found = [nodes[name].labels.get(label) for name in self._nodes]
            numbers = [-1 if value is None else values.setdefault(value, len(values)) for value in found]
            self._domains[label] = len(self._arrays)
            self._arrays.append(np.array(numbers, dtype=np.int64))
        return self._domains[label]

    def _domain_of(self, label: str, node: str | None) -> int:
        index = self.node_index.get(node or "", -1)
        return int(self._arrays[self.key(label)][index]) if index >= 0 else -1

    def domains(self, key: int, pods: Iterable[Pod]) -> set[int]:
        """Domains of a key with one of these pods."""
        nodes = (self.node_index.get(pod.node or "", -1) for pod in pods)
        return {int(self._arrays[key][node]) for node in nodes if node >= 0} - {-1}

    def without_label(self, key: str) -> BoolArray:
        """Nodes that lack a label."""
        return self._arrays[self.key(key)] < 0

    def within(self, key: str, domains: Iterable[int]) -> BoolArray:
        """Nodes of some domains of a label."""
        return np.isin(self._arrays[self.key(key)], sorted(domains))

    def repelled(self, term: AffinityTerm) -> set[int]:
        """Domains of a term with a pod that it means."""
        matched = self._standing.matching(term.pods)
        place = term.topology_key, id(matched)
        if place not in self._repelled:
            self._repelled[place] = self.domains(self.key(term.topology_key), matched)
        return self._repelled[place]

    def keeping(self, number: int) -> tuple[AffinityTerm, set[int]]:
        """The first of equal terms of running pods, and the domains of these pods."""
        terms = self._kept[number]
        key = self.key(terms[0].topology_key)
        if number not in self._keepers:
            self._keepers[number] = self.domains(key, chain.from_iterable(map(self._owners.__getitem__, terms)))
        return terms[0], self._keepers[number]

    @cached_property
    def _kept(self) -> dict[int, list[AffinityTerm]]:
        return _by_number(self._keeping)


class _Closing:
    def __init__(self, kinds: NeighbourKinds, attractions: Mapping[tuple[AffinityTerm, ...], Attraction]) -> None:
        self._kinds, self._attractions = kinds, attractions
        self._shared: dict[bytes, BoolArray] = {}

    def shut(self, kinds: Iterable[Signature]) -> dict[str, tuple[BoolArray | None, ...]]:
        found: dict[str, list[BoolArray | None]] = {rule: [] for rule in NEIGHBOUR_RULES}
        for asked, meant, running in kinds:
            keeping = [number for name, number in meant if name == "keeps"]
            found["C12"].append(None if running else self._union(self._by_affinity(asked)))
            found["C13"].append(None if running else self._union(self._by_anti_affinity(asked, keeping)))
            found["C14"].append(None if running else self._union(self._unlabelled(asked.spread)))
            found["C7"].append(self._union(self._by_unit(asked)))
            found["C15"].append(self._union(self._by_exclusion(asked, running=running)))
        return {rule: tuple(rows) for rule, rows in found.items()}

    def _unlabelled(self, asked: Iterable[AffinityTerm | SpreadLimit | DomainUnit]) -> Iterator[BoolArray]:
        for key in dict.fromkeys(each.topology_key for each in asked):
            yield self._kinds.without_label(key)

    def _by_affinity(self, asked: Neighbours) -> Iterator[BoolArray]:
        """Where only running pods can be matched, all nodes outside their domains."""
        yield from self._unlabelled(asked.affinity)
        row = self._attractions.get(asked.affinity)
        if row is not None and not row.open and not row.others:
            keys = dict.fromkeys(term.topology_key for term in asked.affinity)
            for key, ground in zip(keys, row.ground, strict=True):
                yield ~self._kinds.within(key, ground)

    def _by_anti_affinity(self, asked: Neighbours, keeping: Iterable[int]) -> Iterator[BoolArray]:
        """Domains of pods that its own terms mean, and of pods whose terms mean it."""
        closed = [(term, self._kinds.repelled(term)) for term in asked.anti_affinity]
        closed += map(self._kinds.keeping, keeping)
        yield from self._within((term.topology_key, domains) for term, domains in closed)

    def _by_unit(self, asked: Neighbours) -> Iterator[BoolArray]:
        """Of a unit that runs already, all nodes outside its domain."""
        yield from self._unlabelled(asked.units)
        for unit in asked.units:
            allowed = self._kinds.units.allowed(unit)
            if allowed is not None:
                yield ~self._kinds.within(unit.topology_key, allowed)

    def _by_exclusion(self, asked: Neighbours, *, running: bool) -> Iterator[BoolArray]:
        units = self._kinds.units
        closed = [(unit.topology_key, units.taken(unit)) for unit in asked.units]
        closed += [(job.topology_key, units.beside(job)) for job in asked.jobs if not running]
        yield from self._within(closed)

    def _within(self, closed: Iterable[tuple[str, AbstractSet[int]]]) -> Iterator[BoolArray]:
        """One row for each key: a class may have many terms of one."""
        of_key: dict[str, set[int]] = defaultdict(set)
        for key, domains in closed:
            of_key[key] |= domains
        yield from (self._kinds.within(key, domains) for key, domains in of_key.items() if domains)

    def _union(self, closed: Iterable[BoolArray]) -> BoolArray | None:
        found: BoolArray | None = None
        for row in closed:
            found = row if found is None else found | row
        return self._shared.setdefault(found.tobytes(), found) if found is not None and found.any() else None


class _KindClasses:
    def __init__(self, signatures: Mapping[Signature, int], kinds: Sequence[int]) -> None:
        classes = grouped(range(len(kinds)), kinds.__getitem__)
        self._owners: dict[tuple[object, bool], list[int]] = defaultdict(list)
        self._meant: dict[tuple[str, int, bool], list[int]] = defaultdict(list)
        for (asked, meant, running), kind in signatures.items():
            for each in (*asked.anti_affinity, *asked.spread, asked.affinity, *asked.units, *asked.jobs):
                self._owners[each, running] += classes.get(kind, ())
            for name, number in meant:
                self._meant[name, number, running] += classes.get(kind, ())

    def owners(self, *asked: object, running: bool = False) -> tuple[int, ...]:
        return tuple(sorted({index for each in asked for index in self._owners.get((each, running), ())}))

    def all_owners(self, asked: object) -> tuple[int, ...]:
        return tuple(sorted((*self.owners(asked), *self.owners(asked, running=True))))

    def meant(self, name: str, number: int, *, running: bool = False) -> tuple[int, ...]:
        return tuple(sorted(self._meant.get((name, number, running), ())))

    def all_meant(self, name: str, number: int) -> tuple[int, ...]:
        return tuple(sorted((*self.meant(name, number), *self.meant(name, number, running=True))))


T = TypeVar("T")


def _by_number(numbers: Mapping[T, int]) -> dict[int, list[T]]:
    return grouped(numbers, numbers.__getitem__)


def _numbered(things: Iterable[T]) -> dict[T, int]:
    return {thing: number for number, thing in enumerate(dict.fromkeys(things))}
