"""Finding the pods that a selector means, and the domains that they are in (C12, C13, C14)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from itertools import chain

from placer.instance.keys import Key
from placer.instance.problem import Node, Pod, PodSelector

__all__ = ["PodIndex", "domain_of", "pairs_apart"]


class PodIndex:
    """Finds the pods that a selector means without looking at all of them.

    Parameters
    ----------
    pods
        Those that may be meant.
    namespaces
        Namespace to its labels.
    """

    def __init__(self, pods: Iterable[Pod], namespaces: Mapping[str, Mapping[str, str]]) -> None:
        self._pods, self._namespaces = tuple(pods), namespaces
        self._by_label: dict[str, dict[str, list[int]]] = {}
        self._found: dict[PodSelector, tuple[Pod, ...]] = {}

    def matching(self, selector: PodSelector) -> tuple[Pod, ...]:
        """The pods that a selector means, in the order in which they were given."""
        if selector not in self._found:
            candidates = self._candidates(selector)
            self._found[selector] = tuple(pod for pod in candidates if selector.matches(pod, self._namespaces))
        return self._found[selector]

    def matching_all(self, selectors: Iterable[PodSelector]) -> tuple[Pod, ...]:
        """The pods that each of some selectors means, one selector at least."""
        first, *others = selectors
        return tuple(pod for pod in self.matching(first) if all(each.matches(pod, self._namespaces) for each in others))

    def _candidates(self, selector: PodSelector) -> Iterable[Pod]:
        """Pods that meet the requirement that fewest meet, of those that ask for a label; pods by position."""
        if selector.requirements is None:
            return ()
        found: Collection[int] | None = None
        for each in selector.requirements:
            if each.operator == "In":
                labelled = self._labelled(each.key)
                lists = [labelled.get(value, ()) for value in dict.fromkeys(each.values)]
                if found is None or sum(map(len, lists)) < len(found):
                    found = lists[0] if len(lists) == 1 else sorted(chain.from_iterable(lists))
        if found is None and selector.namespace_requirements is None:
            found = sorted(chain.from_iterable(self._in_namespace.get(name, ()) for name in selector.namespaces))
        return self._pods if found is None else (self._pods[position] for position in found)

    def _labelled(self, key: str) -> Mapping[str, list[int]]:
        """Value of a label to the pods that have it."""
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


def domain_of(nodes: Mapping[str, Node], name: str | None, key: str) -> str | None:
    """Value of a node's label; None for a node without it, one that is not there, and none at all."""
    node = nodes.get(name) if name is not None else None
    return node.labels.get(key) if node is not None else None


def pairs_apart(owners: Iterable[Key], matched: Iterable[Key]) -> int:
    """How many pairs of two pods there are of which one is an owner of a term and the other is meant by it.

    Examples
    --------
    >>> a, b, c = (Key("default", name) for name in "abc")
    >>> pairs_apart([a, b], [a, b]), pairs_apart([a], [a, b, c]), pairs_apart([a, b], [c])
    (1, 2, 2)
    """
    one, other = set(owners), set(matched)
    both, only_owners, only_matched = len(one & other), len(one - other), len(other - one)
    return both * (both - 1) // 2 + both * (only_owners + only_matched) + only_owners * only_matched
