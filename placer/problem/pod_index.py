"""Finding the pods that a selector means, and their domains (C12, C13, C14)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, reduce
from itertools import chain
from operator import and_

from placer.problem.instance import Pod, PodState
from placer.problem.keys import Key
from placer.problem.neighbours import AffinityTerm, PodSelector, SpreadLimit
from placer.problem.nodes import Node, Requirement

#: Up to so many pods are looked at one by one; of more sets are cut, so that no term costs a look at each pod.
_FEW = 16


class PodIndex:
    """Finds the pods that a selector means; selectors that mean the same pods get the very same tuple."""

    def __init__(self, pods: Iterable[Pod], namespaces: Mapping[str, Mapping[str, str]]) -> None:
        self._pods, self._namespaces = tuple(pods), namespaces
        self._by_label: dict[str, dict[str, list[int]]] = {}
        self._found: dict[PodSelector, tuple[int, ...] | int] = {}
        self._sets: dict[tuple[int, ...] | int, tuple[Pod, ...]] = {}
        self._masks: dict[object, int] = {}

    def matching(self, selector: PodSelector) -> tuple[Pod, ...]:
        """The pods that a selector means, in the given order."""
        return self._at(self._place(selector))

    def matching_all(self, selectors: Iterable[PodSelector]) -> tuple[Pod, ...]:
        """The pods that each of some selectors means, one selector at least."""
        first, *others = dict.fromkeys(map(self._place, selectors))
        if not others:
            return self._at(first)
        masks = (each if isinstance(each, int) else sum(1 << at for at in each) for each in (first, *others))
        return self._at(_few_or_bits(reduce(and_, masks)))

    def _at(self, place: tuple[int, ...] | int) -> tuple[Pod, ...]:
        if place not in self._sets:
            positions = _positions(place) if isinstance(place, int) else place
            self._sets[place] = tuple(self._pods[each] for each in positions)
        return self._sets[place]

    def _place(self, selector: PodSelector) -> tuple[int, ...] | int:
        if selector not in self._found:
            found = self._candidates(selector)
            if len(found) <= _FEW:
                few = (each for each in found if selector.matches(self._pods[each], self._namespaces))
                self._found[selector] = tuple(few)
            else:
                self._found[selector] = _few_or_bits(self._meant(selector))
        return self._found[selector]

    def _candidates(self, selector: PodSelector) -> Sequence[int]:
        """Starts from the requirement that fewest pods meet, of those that ask for a label."""
        if selector.requirements is None:
            return ()
        asked = [self._with_any(each) for each in selector.requirements if each.operator == "In"]
        if asked:
            lists = min(asked, key=lambda lists: sum(map(len, lists)))
            return lists[0] if len(lists) == 1 else sorted(chain.from_iterable(lists))
        if selector.namespace_requirements is None:
            return sorted(chain.from_iterable(self._in_namespace.get(name, ()) for name in selector.namespaces))
        return range(len(self._pods))

    def _with_any(self, requirement: Requirement) -> list[Sequence[int]]:
        labelled = self._labelled(requirement.key)
        return [labelled[value] for value in set(requirement.values).intersection(labelled)]

    def _meant(self, selector: PodSelector) -> int:
        found = self._once(
            (selector.namespaces, selector.namespace_requirements), lambda: self._in_namespaces(selector)
        )
        for each in selector.requirements or ():
            found &= self._holding(each)
        return found

    def _in_namespaces(self, selector: PodSelector) -> int:
        anywhere = PodSelector(selector.namespaces, selector.namespace_requirements, ())
        meant = (
            positions
            for positions in self._in_namespace.values()
            if anywhere.matches(self._pods[positions[0]], self._namespaces)
        )
        return _mask(chain.from_iterable(meant), len(self._pods))

    def _holding(self, requirement: Requirement) -> int:
        every = (1 << len(self._pods)) - 1
        if requirement.operator in ("Exists", "DoesNotExist"):
            there = chain.from_iterable(self._labelled(requirement.key).values())
            found = self._once(requirement.key, lambda: _mask(there, len(self._pods)))
            return found if requirement.operator == "Exists" else every ^ found
        found = 0
        if requirement.operator in ("In", "NotIn"):
            for value in set(requirement.values).intersection(self._labelled(requirement.key)):
                found |= self._valued(requirement.key, value)
            return found if requirement.operator == "In" else every ^ found
        met = (at for at, pod in enumerate(self._pods) if requirement.holds(pod.labels.get(requirement.key)))
        return _mask(met, len(self._pods))

    def _valued(self, key: str, value: str) -> int:
        there = self._labelled(key)[value]
        if len(there) <= _FEW:
            return sum(1 << each for each in there)
        return self._once((key, value), lambda: _mask(there, len(self._pods)))

    def _once(self, key: object, make: Callable[[], int]) -> int:
        if key not in self._masks:
            self._masks[key] = make()
        return self._masks[key]

    def _labelled(self, key: str) -> Mapping[str, list[int]]:
        if key not in self._by_label:
            found: dict[str, list[int]] = defaultdict(list)
            for position, pod in enumerate(self._pods):
                if key in pod.labels:
                    found[pod.labels[key]].append(position)
            self._by_label[key] = found
        return self._by_label[key]

    @cached_property
    def _in_namespace(self) -> Mapping[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for position, pod in enumerate(self._pods):
            found[pod.namespace].append(position)
        return found


def _mask(positions: Iterable[int], size: int) -> int:
    found = bytearray(size // 8 + 1)
    for each in positions:
        found[each >> 3] |= 1 << (each & 7)
    return int.from_bytes(found, "little")


def _positions(mask: int) -> Sequence[int]:
    return [at for at, bit in enumerate(bin(mask)[:1:-1]) if bit == "1"]


def _few_or_bits(mask: int) -> tuple[int, ...] | int:
    return tuple(_positions(mask)) if mask.bit_count() <= _FEW else mask


def owners_of_terms(pods: Iterable[Pod]) -> dict[AffinityTerm, list[Pod]]:
    """Term of anti-affinity to the pods that have it."""
    found: dict[AffinityTerm, list[Pod]] = defaultdict(list)
    for pod in pods:
        for term in pod.neighbours.anti_affinity:
            found[term].append(pod)
    return found


def domain_of(nodes: Mapping[str, Node], name: str | None, key: str) -> str | None:
    """Value of a node's label; None where there is none."""
    node = nodes.get(name) if name is not None else None
    return node.labels.get(key) if node is not None else None


def by_domain(
    nodes: Mapping[str, Node], key: str, pods: Iterable[Pod], node_of: Callable[[Pod], str | None]
) -> dict[str, list[Key]]:
    """Value of a node's label to the pods there."""
    found: dict[str, list[Key]] = defaultdict(list)
    for pod in pods:
        value = domain_of(nodes, node_of(pod), key)
        if value is not None:
            found[value].append(pod.key)
    return found


def pairs_apart(owners: Iterable[Key], matched: Iterable[Key]) -> int:
    """Number of pairs of distinct pods, one of the owners and one matched."""
    one, other = set(owners), set(matched)
    both, only_owners, only_matched = len(one & other), len(one - other), len(other - one)
    return both * (both - 1) // 2 + both * (only_owners + only_matched) + only_owners * only_matched


class CountedDomains:
    """The pods that spread constraints (C14) count per domain; terminating ones are not counted."""

    def __init__(self, nodes: Mapping[str, Node], pods: PodIndex, node_of: Callable[[Pod], str | None]) -> None:
        self._all, self._pods, self._node_of = nodes, pods, node_of
        self._nodes: dict[object, list[str]] = {}
        self._domains: dict[object, dict[str, str]] = {}
        self._counts: dict[tuple[int, int], Counter[str]] = {}

    def _of(self, limit: SpreadLimit) -> Mapping[str, str]:
        kind = limit.keys, limit.counted
        if kind not in self._nodes:
            self._nodes[kind] = [name for name, node in self._all.items() if limit.counts(node)]
        place = (*kind, limit.topology_key)
        if place not in self._domains:
            self._domains[place] = {name: self._all[name].labels[limit.topology_key] for name in self._nodes[kind]}
        return self._domains[place]

    def counts(self, limit: SpreadLimit) -> Counter[str]:
        """Every domain that counts to the pods that are counted there."""
        counting, matched = self._of(limit), self._pods.matching(limit.pods)
        place = id(counting), id(matched)  # both are kept
        if place not in self._counts:
            found = self._counts[place] = Counter(dict.fromkeys(counting.values(), 0))
            for pod in matched:
                value = counting.get(self._node_of(pod) or "")
                if value is not None and pod.state is not PodState.TERMINATING:
                    found[value] += 1
        return self._counts[place]
