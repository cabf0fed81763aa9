"""Finding the pods that a selector means, and the domains that they are in (C12, C13, C14)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

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
        self._by_label: dict[str, dict[str, list[Pod]]] = {}
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
        """Pods that have one label that is asked for."""
        narrow = next((each for each in selector.requirements or () if each.operator == "In"), None)
        if narrow is None:
            return self._pods if selector.requirements is not None else ()
        if len(narrow.values) == 1:
            return self._labelled(narrow.key).get(narrow.values[0], ())
        return (pod for pod in self._pods if narrow.holds(pod.labels.get(narrow.key)))

    def _labelled(self, key: str) -> Mapping[str, list[Pod]]:
        """Value of a label to the pods that have it."""
        if key not in self._by_label:
            found: dict[str, list[Pod]] = defaultdict(list)
            for pod in self._pods:
                if key in pod.labels:
                    found[pod.labels[key]].append(pod)
            self._by_label[key] = found
        return self._by_label[key]


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
