"""The words that people read for the keys of Placements (models/glossary.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Never

#: Most digits after the point of an amount: an amount is an integer number of micro-nodes.
_MOST_DIGITS = 6

_VALUES = {
    "admitted": "admitted groups",
    "evicted": "evicted pods",
    "evictedUnits": "evicted units",
    "moved": "moved pods",
    "movedUnits": "moved units",
    "placed": "placed pods",
    "locality": "locality",
    "span": "span (leaf switches)",
    "networkCost": "network cost",
    "packedHyperNodes": "packing (HyperNodes opened)",
    "packedNodes": "packing (nodes opened)",
}

_MEANINGS = {
    "admitted": "least needs of the gangs that may start; more is better, and it is compared first of its priority",
    "placed": "size of the pending pods that get a node, optional pods included; more is better",
    "evicted": "size of the running pods that are evicted: lost work; less is better",
    "evictedUnits": "number of gangs and single pods that are evicted; less is better",
    "moved": "size of the running pods that get another node; less is better",
    "movedUnits": "number of gangs and single pods that get another node; less is better",
    "locality": "how far apart the pods of gangs are: pods times the tier of the smallest domain with all of them; "
    "less is better",
    "span": "number of leaf switches that each gang uses, added up; less is better",
    "networkCost": "cost of all calls between workloads; less is better",
    "packedHyperNodes": "empty domains that this placement opens; less leaves more room in one piece",
    "packedNodes": "empty nodes that this placement opens; less leaves more room in one piece",
}

_AMOUNTS = frozenset({"admitted", "placed", "evicted", "moved"})

_PROVERS = {
    "volume": "total capacity",
    "counting": "counting",
    "lp": "a linear relaxation",
    "master": "the master problem",
    "splits": "the cheapest splits",
    "domains": "the least of any domain",
}


def value_word(name: str, priority: int | None = None) -> str:
    """What people call a value of the objective."""
    word = _VALUES.get(name, name)
    return word if priority is None else f"{word}, priority {priority:,}"


def value_meaning(name: str) -> str:
    """Meaning of a value of the objective, and which way is better; empty for one that is not known."""
    return _MEANINGS.get(name, "")


def is_amount(name: str) -> bool:
    """Whether a value is an amount of pods, in micro-nodes, and no count."""
    return name in _AMOUNTS


def prover_word(by: str) -> str:
    """Who proved a bound; a method by its name."""
    return _PROVERS.get(by, by)


def amount_digits(*amounts: int | None) -> int:
    """Digits after the point that tell amounts (micro-nodes) apart from each other and from 0; at least one."""
    told = {amount for amount in amounts if amount is not None} | {0}
    enough = (n for n in range(1, _MOST_DIGITS) if len({f"{each / 1e6:.{n}f}" for each in told}) == len(told))
    return next(enough, _MOST_DIGITS)


def nodes_worth(amount: int, digits: int | None = None) -> str:
    """An amount (micro-nodes) as people say it: ``12.0 nodes``."""
    return f"{amount / 1e6:,.{amount_digits(amount) if digits is None else digits}f} nodes"


def number_word(name: str, value: int, *beside: int | None) -> str:
    """A value as people say it, with the digits that tell it from its neighbours."""
    return nodes_worth(value, amount_digits(value, *beside)) if is_amount(name) else f"{value:,}"


def counted(count: int, word: str) -> str:
    """``1 pod``, ``2,000 pods``."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def some(words: Sequence[str], most: int) -> list[str]:
    """The first few, and how many more there are: ``a``, ``b``, ``1 more``."""
    return [*words[:most], *([f"{len(words) - most:,} more"] if len(words) > most else [])]


def and_list(words: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    found = list(words)
    return " and ".join(part for part in (", ".join(found[:-1]), *found[-1:]) if part)


# ------------------------------------------------------------------------------------ one sentence for several readers


@dataclass(frozen=True, slots=True)
class NamedThing:
    """A thing of a Namespace that a sentence names, for those who may read its name.

    ``pods``: how many it is. ``uid``: for operators alone.
    """

    namespace: str
    text: str
    priority: int
    pods: int = 1
    uid: str = ""


@dataclass(frozen=True, slots=True)
class NameList:
    """Such things: each reader gets the names of their own, and how many others there are of which priority.

    Examples
    --------
    >>> pods = (("a", "Pod a/x", 0), ("b", "Pod b/y", 5), ("b", "Pod b/z", 9))
    >>> names = NameList(tuple(NamedThing(*pod) for pod in pods), 2)
    >>> names.told("a")
    'Pod a/x and 2 pods of other Namespaces (priority 5 to 9)'
    """

    found: tuple[NamedThing, ...]
    most: int
    noun: str = "pod"

    def told(self, namespace: str | None) -> str:
        """The list for readers of a Namespace; None: for operators."""
        own = [each.text for each in self.found if namespace in (None, each.namespace)]
        others = [each for each in self.found if namespace not in (None, each.namespace)]
        return and_list([*some(own, self.most), *([self._others(others)] if others else [])])

    def _others(self, others: Sequence[NamedThing]) -> str:
        priorities = sorted({each.priority for each in others})
        span = " to ".join(f"{each}" for each in dict.fromkeys((priorities[0], priorities[-1])))
        pods = [] if self.noun == "pod" else [counted(sum(each.pods for each in others), "pod")]
        uids = [each.uid for each in others if each.uid][: self.most]
        said = ", ".join([*pods, f"priority {span}", *([f"uid {', '.join(uids)}"] if uids else [])])
        return f"{counted(len(others), self.noun)} of other Namespaces ({said})"


@dataclass(frozen=True, slots=True)
class Owned:
    """A part of a sentence for readers of some Namespaces, and operators, alone; all others read ``other``."""

    namespaces: frozenset[str]
    text: Sentence
    other: Sentence

    def told(self, namespace: str | None) -> str:
        """The part for readers of a Namespace; None: for operators."""
        return (self.text if namespace is None or namespace in self.namespaces else self.other).told(namespace)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of which readers in one Namespace get nothing that belongs to another: one source of several texts.

    Examples
    --------
    >>> text = Sentence.of("held by ", NameList((NamedThing("b", "Pod b/y", 5),), 3), " on Node n1")
    >>> str(text), text.told("a")
    ('held by Pod b/y on Node n1', 'held by 1 pod of other Namespaces (priority 5) on Node n1')
    """

    parts: tuple[str | NameList | Owned, ...] = ()

    @classmethod
    def of(cls, *parts: str | NameList | Owned | Sentence) -> Sentence:
        """Put parts together."""
        flat = (each for part in parts for each in (part.parts if isinstance(part, Sentence) else (part,)))
        return cls(tuple(part for part in flat if part != ""))

    @classmethod
    def listed(cls, words: Iterable[str | Sentence], most: int | None = None) -> Sentence:
        """Join some of them as :func:`some` and :func:`and_list` do."""
        every = list(words)
        found = every if most is None else every[:most]
        found += [f"{len(every) - most:,} more"] if most is not None and len(every) > most else []
        last = len(found) - 1
        return cls.of(*(each for at, word in enumerate(found) for each in (_between(at, last), word)))

    @classmethod
    def joined(cls, words: Iterable[str | Sentence], by: str = "; ") -> Sentence:
        """Those that are not empty, with something between them."""
        found = [word for word in words if word]
        return cls.of(*(each for at, word in enumerate(found) for each in (by if at else "", word)))

    def told(self, namespace: str | None) -> str:
        """The sentence for readers of a Namespace; None: for operators."""
        return "".join(part if isinstance(part, str) else part.told(namespace) for part in self.parts)

    def __str__(self) -> str:
        return self.told(None)

    def __format__(self, spec: str) -> Never:
        raise TypeError("a Sentence is put together by +: an f-string would make the text for operators of it")

    def __bool__(self) -> bool:
        return bool(self.parts)

    def __add__(self, other: str | Sentence) -> Sentence:
        return Sentence.of(self, other)

    def __radd__(self, other: str) -> Sentence:
        return Sentence.of(other, self)


def _between(at: int, last: int) -> str:
    if at == 0:
        return ""
    return " and " if at == last else ", "
